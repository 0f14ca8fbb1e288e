//! Tests with real servers of MySQL, MariaDB and PostgreSQL: types, errors, passwords, TLS, sockets, limits.
//! `conformance.rs` tests what all drivers have in common.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests fail by panics")]

mod account;
mod common;
mod literals;
mod methods;
mod reach;
mod tables;
mod types;
