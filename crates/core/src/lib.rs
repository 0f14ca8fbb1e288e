//! Kurabe's vocabulary as types, without I/O.
//!
//! `docs/ARCHITECTURE.md` defines the terms. A [`Target`](target::TargetUrl) is reached through a
//! [`Driver`](driver::Driver), which opens [`Session`](driver::Session)s. An [`Experiment`](experiment::Experiment)
//! has axes; one value of each makes a [`Cell`](axis::Cell), and [`Operation`](operation::Operation)s make its
//! transaction. A [`TrialRecord`](run::TrialRecord) is one measurement of one cell. A run is all of them.

pub mod axis;
pub mod collection;
pub mod compression;
pub mod cpus;
pub mod custom;
mod defaults;
pub mod driver;
pub mod dump;
pub mod durability;
pub mod error;
pub mod experiment;
pub mod facts;
pub mod fleet;
pub mod interceptor;
pub mod job;
pub mod load;
pub mod memory;
pub mod metric;
pub mod name;
mod named;
pub mod observation;
pub mod operation;
pub mod origin;
pub mod page;
pub mod planned;
pub mod query_plan;
pub mod question;
pub mod raw;
pub mod remote;
pub mod run;
pub mod secret;
pub mod sort;
pub mod statements;
pub mod stats_probe;
pub mod target;
pub mod text;
pub mod threads;
pub mod transfer;
pub mod units;
pub mod value;
pub mod verification;

pub use error::{Error, ErrorKind, FULL_BUILD, Result};
