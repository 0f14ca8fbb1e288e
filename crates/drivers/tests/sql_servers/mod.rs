//! Tests with real servers of MySQL, MariaDB and PostgreSQL: types, errors, passwords, TLS, sockets, limits.
//! `conformance.rs` tests what all drivers have in common.

mod account;
mod common;
mod ended;
mod environment;
mod errors;
mod harmless;
mod hosts;
mod literals;
mod methods;
mod reach;
mod read_only;
mod tables;
mod types;
