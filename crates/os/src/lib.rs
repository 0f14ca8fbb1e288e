//! What several crates need of Linux: [`private`] files, and TCP sockets as the kernel lists them, with their counters ([`diag`]) and
//! the [`account`] of each, [`process`]es, and the folder of the [`cache`].

pub mod account;
pub mod cache;
pub mod diag;
pub mod limits;
pub mod private;
pub mod process;
