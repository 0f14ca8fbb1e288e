//! The report's tests: results, verdicts and renderings of synthetic runs.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod answer;
mod attribution;
mod bottlenecks;
mod claims;
mod common;
mod conclusive;
mod connect;
mod contradictions;
mod footprint;
mod gate;
mod golden;
mod history;
mod identity;
mod incomplete;
mod japanese;
mod noise;
mod openmetrics;
mod page;
mod restarts;
mod scaling;
mod scatter;
mod schema;
mod sentences;
mod view;
mod windows;

// One for both published schemas.
#[path = "../../record/tests/json_schema.rs"]
mod json_schema;
