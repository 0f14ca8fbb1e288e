//! The program on real servers, as a user meets them: what it measures there, what it refuses and why, and what it
//! leaves behind, which is nothing.

mod anonymous;
mod cache;
mod cells;
pub(crate) mod common;
mod connections;
mod disk;
mod ends;
mod footprint;
mod load;
mod memory;
mod reach;
mod refusals;
mod secrets;
mod watch;
