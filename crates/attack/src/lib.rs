//! Attacks on a `kurabe` program from outside, as a hostile server, client, disk or user.
//!
//! Each attack is a try of a [`case::Case`]: a family, a kind and a target. The module of each family defines what the
//! program must survive (`families/*.rs`). Common to all:
//! - no wrong figure: a trial that was lied to, disturbed or interrupted is recorded as failed;
//! - no hang: the program ends within the time limit of the family;
//! - no growth: its peak memory is at most 64 MB above that of an undisturbed run;
//! - nothing left behind: no process, folder or database file that a later start does not remove;
//! - a clear message and a documented exit code: never a panic, never code 1.
//!
//! The integration tests of the workspace also use the [`relay`] that tells lies.

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
