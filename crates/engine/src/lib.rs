//! The measuring loop. It plans cells, runs trials in randomised rounds, drives clients, verifies every reply and
//! accounts for every transaction. Its caller is a [`Listener`]; it prints nothing.

pub mod clients;
pub mod fleet;
pub mod plan;
pub mod prepare;
mod run;
pub mod trial;

pub use prepare::fixture::cancellable;
pub use run::listener::prolongs;
pub use run::listener::{Event, Listener, Start};
pub use run::{Conditions, InterferenceCheck, NewRun, Provenance, RestOfRun, RunError, resume, run};
