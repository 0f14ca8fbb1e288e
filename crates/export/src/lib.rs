//! A run for other programs: as OpenTelemetry's spans and metrics, and its raw windows as Parquet.
//!
//! Each module is a feature.
//!
//! | module | what it makes |
//! |---|---|
//! | [`otlp`] | spans of the run, its rounds and trials, and metrics of the trials, sent over HTTP |
//! | [`parquet`] | a file with a row for each part of each trial |

#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(feature = "otlp")]
mod otlp_messages;
#[cfg(feature = "otlp")]
mod parent;
#[cfg(feature = "parquet")]
pub mod parquet;
