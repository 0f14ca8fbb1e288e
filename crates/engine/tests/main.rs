//! The measuring loop's tests: plans, clients, rounds and verification, on experiments and drivers of their own.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod aa_control;
mod allocations;
mod beforehand;
mod budget;
mod common;
mod connecting;
mod contract;
mod fixture;
mod interleaved;
mod keys;
mod lies;
mod noop_engine;
mod noop_job;
mod noop_loop;
#[path = "../examples/one_run.rs"]
mod one_run;
mod open_loop;
mod point;
mod pool;
mod reruns;
mod restarts;
mod transfers;

#[test]
fn program_that_links_the_engine_measures_through_its_door() {
    one_run::main().unwrap();
}
