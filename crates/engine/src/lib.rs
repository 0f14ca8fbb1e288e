//! The measuring loop. It plans cells, runs trials in randomised rounds, drives clients, verifies every reply and
//! accounts for every transaction. It reports progress as [`Event`](run::event::Event)s and prints nothing.

pub mod clients;
pub mod fleet;
mod interleave;
pub mod plan;
pub mod prepare;
pub mod run;
pub mod trial;

pub use clients::cancellable::cancellable;
