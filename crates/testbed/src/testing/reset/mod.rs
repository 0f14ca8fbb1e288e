//! How a server that a test has used becomes like a new one, through a minimal client of its protocol.
//!
//! Kurabe's drivers are what tests test, so that none of this uses them.

pub(super) mod common;
mod couchdb;
mod memcached;
mod mongodb;
mod mysql;
mod postgres;
mod redis;

use common::{Reset, State};
pub(super) use mysql::make_superuser;

/// How servers of this engine are reset; `None` if they are not.
pub(super) fn of(engine: &str) -> Option<&'static Reset> {
    static TCP: Reset = Reset { with_tls: false, state: |_| Ok(State::new()), clean: |_, _| Ok(()) };
    match engine {
        "postgres" => Some(&postgres::RESET),
        "mysql" | "mariadb" => Some(&mysql::RESET),
        "redis" | "valkey" => Some(&redis::RESET),
        "memcached" => Some(&memcached::RESET),
        "mongodb" => Some(&mongodb::RESET),
        "couchdb" => Some(&couchdb::RESET),
        // It keeps nothing.
        "tcp" => Some(&TCP),
        _ => None,
    }
}
