//! What several crates need of Linux: [`private`] files, and TCP sockets as the kernel lists them, with their counters ([`diag`]) and
//! the [`account`] of each, and [`process`]es.

pub mod account;
pub mod diag;
pub mod private;
pub mod process;
