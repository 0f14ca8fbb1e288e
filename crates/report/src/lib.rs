//! What a run means: its figures, verdicts and findings, and how these are shown.
//!
//! [`analyse`] turns a recorded [`Run`](kurabe_core::run::Run) into a [`Summary`], and each rendering turns the
//! summary into text. Nothing here prints, reads a clock or draws without a seed: one run gives one report,
//! everywhere. No database and no experiment is known by name: what there is to know of an experiment comes with
//! its [`ExperimentInfo`](kurabe_core::experiment::ExperimentInfo), and of a database with the run.
//!
//! | module | answers |
//! |---|---|
//! | [`summary`] | what is known of a run, and the contract of the JSON report |
//! | [`finding`] | what a report says, as typed values |
//! | [`terminal`], [`html`], [`markdown`], [`csv`], [`json`], [`ab`], [`hgrm`] | how is it shown |
//! | [`View`] | what is shown of a run, where that is not all |
//! | [`compare`] | what differs between two runs |

mod analysis;
mod anonymise;
pub mod attribution;
mod comparison;
mod engine;
mod results;
pub mod finding;
mod findings;
mod format;
mod labels;
mod leave_out;
mod metrics;
mod noise;
mod proof;
mod published;
mod rule;
mod steady;
pub mod summary;
mod table;
mod template;
mod view;

pub mod ab;
pub mod compare;
pub mod csv;
pub mod hgrm;
pub mod html;
pub mod json;
pub mod markdown;
pub mod terminal;

pub use analysis::analyse;
pub use proof::writes as verified_writes;
pub use summary::Summary;
pub use view::View;
