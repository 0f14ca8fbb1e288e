//! The testbed's tests: what its servers leave behind, and what it says without them.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod absent;
mod accounts;
mod common;
mod reuse;
mod servers;
mod supervisor;
