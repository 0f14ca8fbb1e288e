//! Kurabe's drivers: one file or folder per database, one dialect per SQL engine, one registry.
//!
//! [`registry::open`] is the door: it takes a [`TargetUrl`](kurabe_core::target::TargetUrl) and gives a
//! [`Driver`](kurabe_core::driver::Driver). A new database is one module and one line of [`registry::DRIVERS`].

mod account;
pub mod application;
pub mod cached;
pub mod cancel;
pub mod caution;
mod charset;
mod contain;
pub mod couchdb;
pub mod info;
pub mod memcached;
pub mod mongodb;
pub mod mysql;
pub mod null;
pub mod oracle;
mod ownership;
mod packed;
pub mod postgres;
mod prelude;
pub mod redis;
pub mod registry;
mod reported;
mod slots;
pub mod sql;
pub mod sqlite;
mod watchdog;
mod wire;
