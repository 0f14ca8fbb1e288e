//! The tests of intervals and comparisons: exact cases, and simulations of whole runs.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod comparison;
mod families;
mod histogram;
mod interim;
mod nested;
mod simulation;
