//! A run for other programs: as OpenTelemetry's spans and metrics, and its raw windows as Parquet.
//!
//! | module | what it makes |
//! |---|---|
//! | [`otlp`] | spans of the run, its rounds and trials, and metrics of the trials, sent over HTTP |
//! | [`parquet`] | a file with a row for each part of each trial |

mod otlp_messages;

pub mod otlp;
pub mod parquet;
