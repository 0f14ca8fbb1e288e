//! The analysis of runs: results, verdicts and findings, and their formats.
//!
//! [`analyse`] turns a recorded [`Run`](kurabe_core::run::Run) into a [`Summary`], and each format renders the
//! summary as text. Nothing here prints, reads a clock or uses randomness without a seed, so that a run has the same
//! report everywhere. No database or experiment is known by name: descriptions come with the
//! [`ExperimentInfo`](kurabe_core::experiment::ExperimentInfo) and the run.
//!
//! | module | answers |
//! |---|---|
//! | [`summary`] | the analysed run, and the interface of the JSON report |
//! | [`finding`] | the findings of a report, as typed values |
//! | [`terminal`], [`html`], [`markdown`], [`csv`], [`json`], [`hgrm`], [`openmetrics`] | the output formats |
//! | [`View`] | partial and anonymous reports |
//! | [`compare`] | the comparison of two runs |
//! | [`claim`] | the answers to claims |
//! | [`suite`] | what the runs of a suite measured on which target |
//! | [`history`] | equal runs over time, and changes |

mod answer;
pub mod attribution;
mod catalogue;
mod cell;
pub mod claim;
mod comparison;
mod detail;
mod document;
pub mod finding;
mod format;
mod group;
mod labels;
pub mod messages;
mod metrics;
mod noise;
mod proof;
mod results;
mod rule;
mod server_statistics;
pub mod summary;
mod table;
mod target;
mod verdict;
mod view;
mod wording;

pub mod compare;
pub mod csv;
pub mod hgrm;
pub mod history;
pub mod html;
pub mod json;
pub mod markdown;
pub mod openmetrics;
pub mod suite;
pub mod terminal;

pub use format::{command_line, origin, short_commit, timestamp, value_of};
pub use messages::{Language, Message};
pub use proof::writes as verified_writes;
pub use summary::{Summary, analyse};
pub use view::View;
