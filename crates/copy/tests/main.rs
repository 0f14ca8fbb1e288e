//! The tests of copies between databases.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod choices;
mod common;
mod faults;
mod kinds;
mod pairs;
mod random;
mod sqlite;
