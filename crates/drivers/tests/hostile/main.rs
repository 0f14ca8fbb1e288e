//! Servers that send slowly, endlessly, too much or twice, and servers that are too old. Each test ends within the
//! timeout, and the client's memory grows by at most 64 MB.
//!
//! A program of its own: its tests shorten the time limit of the whole process.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod deadlines;
mod limits;
mod old;
mod server;
mod surplus;
