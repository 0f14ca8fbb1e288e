//! The tests of what advice is made from: shapes, proposals, the search and its answer. `tests/advise.rs` of the program tries all of it on
//! real servers.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod answer;
mod proposals;
mod shapes;
mod simulation;
