//! The registry of engines: one line each.

use crate::engine::{Engine, Installed, Missing};
use crate::root::VALKEY;
use crate::{TestbedError, couchdb, firebird, mariadb, memcached, mongodb, mysql, postgres, redis};

static ENGINES: &[&dyn Engine] = &[
    &mysql::MySql, //
    &mariadb::MariaDb,
    &postgres::Postgres,
    &memcached::Memcached,
    &redis::Redis { name: "redis", program: "redis-server", cached: None },
    &redis::Redis { name: "valkey", program: "valkey-server", cached: Some(VALKEY) },
    &mongodb::MongoDb,
    &couchdb::CouchDb,
    &firebird::Firebird,
];

/// The names that [`crate::start`] accepts.
pub fn engines() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().map(|engine| engine.name())
}

/// The engines that can be started as a cache.
pub fn caches() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().filter(|engine| engine.cache(1, 1).is_some()).map(|engine| engine.name())
}

/// Whether each engine can be started on this machine, in the registry's order, and what is missing.
pub fn available() -> Vec<(&'static str, Result<Installed, Missing>)> {
    ENGINES.iter().map(|engine| (engine.name(), engine.find())).collect()
}

pub(crate) fn by_name(name: &str) -> Result<&'static dyn Engine, TestbedError> {
    ENGINES.iter().copied().find(|engine| engine.name() == name).ok_or_else(|| TestbedError::UnknownEngine {
        engine: name.to_owned(),
        known: engines().collect::<Vec<_>>().join(", "),
    })
}
