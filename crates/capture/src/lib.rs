//! Captures: what an application asked of a database, recorded between the two.
//!
//! [`recorder`] relays connections and writes a [`file`](mod@file) of [`record`]s; [`trace`] writes one from packets that were captured,
//! [`log`] from the log of a server. [`show`] says what they show, [`model`] describes them as a custom workload, and [`statements`] has what advice needs.

mod commands;
mod draws;
pub mod file;
mod forms;
mod input;
pub mod log;
pub mod model;
mod old;
pub mod record;
pub mod recorder;
mod rows;
mod secrets;
pub mod session;
pub mod show;
pub mod statements;
mod tape;
pub mod trace;
pub mod units;
mod values;
mod variables;

pub use input::Input;
pub use secrets::Catalogue;
pub use tape::Totals;
pub use values::Values;
