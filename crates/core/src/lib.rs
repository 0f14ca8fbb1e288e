//! Kurabe's vocabulary as types. No I/O happens here.
//!
//! The words are those of `docs/ARCHITECTURE.md`: a [`Target`](target::TargetUrl) is reached through a
//! [`Driver`](driver::Driver), which opens [`Session`](driver::Session)s; an
//! [`Experiment`](experiment::Experiment) spans [`Cell`](axis::Cell)s by its axes, and says of each cell which
//! [`Operation`](operation::Operation)s make its transaction; a [`TrialRecord`](run::TrialRecord) is one
//! measurement of one cell, and a run is all of them.

pub mod interceptor;
pub mod axis;
pub mod collection;
pub mod custom;
pub mod driver;
pub mod durability;
pub mod error;
pub mod experiment;
pub mod facts;
pub mod job;
pub mod load;
pub mod metric;
pub mod observation;
pub mod operation;
pub mod page;
pub mod planned;
pub mod raw;
pub mod run;
pub mod secret;
pub mod target;
pub mod text;
pub mod units;
pub mod value;
pub mod verification;
pub mod stats_probe;

pub use error::{Error, ErrorKind, Result};
