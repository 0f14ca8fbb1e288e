//! Attacks on a `kurabe` program, from outside, as a hostile server, client, disk or user makes them.
//!
//! Each attack is a try of a [`case::Case`]: a family, a kind and a target. What it must survive is said where each family
//! begins (`families/*.rs`). The same everywhere:
//! - no wrong figure: a trial that was lied to, disturbed or broken off is recorded as failed;
//! - no hang: the program ends by itself within the limit of the family;
//! - no growth: its memory's peak is at most 64 MB above that of an undisturbed run;
//! - nothing left behind: no process, folder or database file that a later start does not sweep;
//! - a clear message and a documented exit code: never a panic, never code 1.
//!
//! The [`relay`] that tells lies is a library, for the integration tests of the workspace.

pub mod app;
pub mod case;
pub mod context;
pub mod families;
pub mod options;
pub mod process;
pub mod random;
pub mod relay;
pub mod runfile;
pub mod runner;
pub mod server;
pub mod table;
