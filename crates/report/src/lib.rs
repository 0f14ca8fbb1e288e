//! What a run means: its figures, verdicts in sentences, and how all of that is shown.
//!
//! [`analyse`] turns a recorded [`Run`](kurabe_core::run::Run) into a [`Summary`], and each rendering turns the
//! summary into text. Nothing here prints, reads a clock or draws without a seed: one run gives one report,
//! everywhere. No database and no experiment is known by name: what there is to know of an experiment comes with
//! its [`ExperimentInfo`](kurabe_core::experiment::ExperimentInfo), and of a database with the run.
//!
//! | module | answers |
//! |---|---|
//! | [`summary`] | what is known of a run, and the contract of the JSON report |
//! | [`terminal`], [`html`], [`markdown`], [`csv`], [`json`], [`ab`] | how is it shown |
//! | [`View`] | what is shown of a run, where that is not all |
//! | [`compare`] | what differs between two runs |

mod advice;
mod analysis;
pub mod attribution;
mod bounds;
mod comparison;
mod disguise;
mod engine;
mod figures;
mod footprint;
mod format;
mod leave_out;
mod noise;
mod overview;
mod phrase;
mod proof;
mod published;
mod publishing;
mod ranking;
mod series;
mod settling;
mod shape;
mod steady;
pub mod summary;
mod table;
mod view;
mod words;

pub mod ab;
pub mod compare;
pub mod csv;
pub mod html;
pub mod json;
pub mod markdown;
pub mod terminal;

pub use analysis::analyse;
pub use proof::writes as verified_writes;
pub use summary::Summary;
pub use view::View;
