//! Copies tables from one SQL database to another: schema, keys, indexes, foreign keys and rows.
//!
//! [`catalog`] is a schema as an engine's catalogue describes it. [`casts`] maps its types. [`plan`] is what will be
//! made, and lists what does not map as [`issue`]s. [`rows`] copies in the order of a key or of places, [`verify`] counts both sides and compares
//! digests of another read, and [`state`] holds on the target how far a copy came. [`run`] does all of it,
//! and tells its progress as [`event`]s. What engines differ in is in [`engines`].
//!
//! The source is only read. On the target, only new tables are made: those of the plan, and one that holds the state,
//! which is recorded in the ownership table and removed at the end.

#![allow(
    clippy::missing_errors_doc,
    reason = "errors are the servers' or the connections', unless a function says otherwise"
)]

pub mod canonical;
pub mod casts;
pub mod catalog;
pub mod classes;
mod column_types;
pub mod columns;
pub mod ddl;
pub mod defaults;
pub mod engines;
pub mod event;
mod foreign;
pub mod issue;
pub mod leftovers;
mod make;
pub mod names;
mod needs;
mod ours;
pub mod page;
pub mod plan;
pub mod planner;
pub mod pool;
mod refused;
pub mod reject;
pub mod rows;
pub mod run;
pub mod scan;
pub mod script;
mod splits;
pub mod sql;
pub mod state;
pub mod types;
pub mod verify;
pub mod wanted;
mod worker;
