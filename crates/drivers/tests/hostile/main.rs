//! Servers that drip, flood, announce too much or answer twice: each ends within the time allowed, and makes the
//! client grow by no more than 64 MB. And servers that are too old.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod deadlines;
mod limits;
mod old;
mod server;
mod surplus;
mod text;
