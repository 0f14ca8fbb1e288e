//! The run file's tests.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod checksums;
mod common;
mod json_schema;
mod keep;
mod record;
mod schema;
