//! Kurabe's drivers: one file or folder per database, one dialect per SQL engine, one registry.
//!
//! [`registry::open`] is the entry point: it takes a [`TargetUrl`](kurabe_core::target::TargetUrl) and returns a
//! [`Driver`](kurabe_core::driver::Driver). A new database is one module and one line of [`registry::DRIVERS`].
//!
//! Each engine is a Cargo feature; those with large client crates are not on by default. Code shared by drivers is in `kurabe-driver-common`, and
//! Oracle's driver in `kurabe-oracle`.

#[allow(unused_imports, reason = "which are used depends on the engines that are built in")]
use kurabe_driver_common::{
    account, charset, clients, contain, datetime, dump, key, lease, ownership, packed, prelude, probe,
    program, reported, slots, ttl, url, watchdog, wire,
};
pub use kurabe_driver_common::{cancel, embedded, environment, info, sql};

pub mod application;
pub mod caution;
#[cfg(any(feature = "mongodb", feature = "mysql"))]
mod compression;
#[cfg(feature = "couchdb")]
pub mod couchdb;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod der;
mod http;
pub mod members;
#[cfg(feature = "memcached")]
pub mod memcached;
#[cfg(feature = "mongodb")]
pub mod mongodb;
#[cfg(feature = "mysql")]
pub mod mysql;
mod nothing;
pub mod null;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod own_code;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
pub mod registry;
#[cfg(any(feature = "mongodb", feature = "postgres"))]
mod scram;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod tcp;
#[cfg(test)]
mod testing;
