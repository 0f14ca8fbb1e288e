//! Redis and Valkey, through a lean client of RESP3.
//!
//! **One field outside the key** is one string value, as an application keeps it: `GET`, `SET`, with `NX` where the row
//! must not be there, `XX` where it must, `EX` where it is to expire.
//!
//! **Several fields** are packed into one string value too, and not spread over a hash. An application that keeps a
//! session does so: a serialised value is added, replaced and let expire by one command, `SET` with `NX` and `EX`, while
//! a hash takes `HSET` and `EXPIRE`, and has no command that adds it only where it is not there. What that costs is that
//! some fields of a row cannot be changed alone, and this is said.
//!
//! **A key of several fields** is a hash for all of them but the last, which names the row within it: `HGET`, `HSETNX`,
//! `HGETALL`. Several rows, and rows that expire, are added by one short `script`.

mod answer;
mod config;
mod connect;
mod errors;
mod facts;
mod metrics;
mod namespace;
mod plan;
mod protocol;
mod request;
mod script;
mod session;
mod value;

use crate::info::{DriverInfo, OptionInfo};
use crate::ownership::Owned;
use crate::prelude::*;
use crate::wire::tls;
use config::Config;
use namespace::{Collections, RedisNamespace};
use std::sync::Arc;

/// What the registry knows of it.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["redis", "valkey", "rediss", "valkeys"],
    engine: "Redis, Valkey",
    about: "values and hashes by key, in the server's memory, on disk as it is set",
    url: "redis://[user[:password]@]host[:port][/database]",
    options: &[
        OptionInfo::new("socket", "the server's Unix socket, instead of host and port"),
        OptionInfo::new("ttl", "seconds that a row lives after it was written; none: for ever"),
        OptionInfo::new("tls", "off (default; rediss: verify), require or verify"),
        tls::CA,
        tls::CERT,
        tls::KEY,
    ],
    benchmark_clause: None,
    statements: None,
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    Ok(Box::new(Redis { config: Config::from_url(url)?, collections: Arc::default() }))
}

struct Redis {
    config: Config,
    collections: Arc<Collections>,
}

impl Driver for Redis {
    fn describe(&self) -> Result<ServerFacts> {
        let (mut client, greeting) = connect::connect(&self.config, &ConnectOptions::default())?;
        facts::read(&mut client, &greeting, self.config.ttl)
    }

    fn endpoint(&self) -> Endpoint {
        self.config.place.endpoint()
    }

    fn supports(&self, operation: &Operation) -> Support {
        Support::unless(plan::unsupported(operation, self.config.ttl))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::without_statements("Redis", Support::Native)
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let (client, _) = connect::connect(&self.config, options)?;
        Ok(Box::new(session::RedisSession::new(client, Arc::clone(&self.collections), self.config.ttl)))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(metrics::RedisStatsProbe(connect::connect(&self.config, options)?.0)))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let (client, _) = connect::connect(&self.config, &ConnectOptions::default())?;
        Ok(Box::new(Owned(RedisNamespace::new(client, self.config.clone(), Arc::clone(&self.collections)))))
    }
}
