//! The drivers' tests, on embedded databases, real servers, and servers of the tests that misbehave.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;
mod connections_page;
mod couchdb;
mod https;
mod literals;
mod memcached;
mod mongodb;
mod read_only;
mod redis;
mod sql_servers;
mod sqlite;
mod sqlite_harmless;
mod statements;
