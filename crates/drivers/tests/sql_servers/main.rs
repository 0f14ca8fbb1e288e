//! MySQL, MariaDB and PostgreSQL as they really answer: types, errors, passwords, TLS, sockets, limits, by the lean
//! clients and by the wrapped ones. What every driver must do stands in `conformance.rs`; this is what these have
//! beyond it.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests fail by panics")]

mod account;
mod common;
mod literals;
mod methods;
mod reach;
mod tables;
mod types;
