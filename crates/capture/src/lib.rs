//! Captures: what an application asked of a database, recorded between the two.
//!
//! [`recorder`] relays connections and writes a [`file`](mod@file) of [`record`]s; [`show`] says what they show.

pub mod file;
pub mod record;
pub mod recorder;
pub mod show;
mod units;
mod values;

pub use values::Values;
