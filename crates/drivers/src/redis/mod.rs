//! Redis and Valkey, through a native RESP3 client.
//!
//! **One field outside the key** is one string value, as an application stores it: `GET` and `SET`, with `NX` if the
//! row must not exist, `XX` if it must, and `EX` if it expires.
//!
//! **Several fields** are packed into one string value too, not stored as a hash. Applications store sessions this way:
//! one command, `SET` with `NX` and `EX`, adds or replaces a serialized value and sets its expiry. A hash needs `HSET`
//! and `EXPIRE`, and no command adds it only if it does not exist. The cost is that single fields of a row cannot be
//! updated; such operations are reported as unsupported.
//!
//! **A key of several fields** is a hash for all of them but the last, which names the row within it: `HGET`, `HSETNX`,
//! `HGETALL`. A short `script` adds several rows, or rows that expire.

mod answer;
mod config;
mod connect;
mod connections;
mod errors;
mod facts;
mod memory;
mod metrics;
mod namespace;
mod plan;
mod protocol;
mod request;
mod script;
mod session;
mod value;

use crate::info::{DriverInfo, OptionInfo};
use crate::lease::Claim;
use crate::prelude::*;
use crate::ttl;
use crate::wire::tls;
use config::Config;
use kurabe_core::memory::LimitedServer;
use namespace::{Collections, RedisNamespace};
use std::sync::Arc;

/// The driver's entry in the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["redis", "valkey", "rediss", "valkeys"],
    engine: "Redis, Valkey",
    about: "values and hashes by key, in the server's memory, on disk if configured",
    url: "redis://[user[:password]@]host[:port][/database]",
    options: &[
        OptionInfo::file("socket", "the server's Unix socket, instead of host and port"),
        ttl::OPTION,
        OptionInfo::new("tls", "off (default; rediss: verify), require or verify"),
        tls::CA,
        tls::CERT,
        tls::KEY,
    ],
    benchmark_clause: None,
    connections: connections::CONNECTIONS,
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
        facts::read(&mut client, &greeting, &self.config)
    }

    fn endpoint(&self) -> Endpoint {
        self.config.place.endpoint()
    }

    fn supports(&self, operation: &Operation) -> Support {
        Support::unless(plan::unsupported(operation, self.config.ttl))
    }

    fn supports_transfer(&self, transfer: Transfer) -> Support {
        Support::no(match transfer {
            Transfer::Read(_) => {
                "Redis has no cursor over values: SCAN gives keys, and each value is asked for by its key"
            }
            Transfer::Write => {
                "Redis has no bulk write other than inserts of many rows; give --fetch a number"
            }
        })
    }

    fn capabilities(&self) -> Capabilities {
        let of_redis = Capabilities::without_statements("Redis", Support::Native).sharing_threads();
        Capabilities { expiry: Support::Native, ..of_redis }
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let (client, _) = connect::connect(&self.config, options)?;
        Ok(Box::new(session::RedisSession::new(client, Arc::clone(&self.collections), self.config.ttl)))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(metrics::probe(connect::connect(&self.config, options)?.0)))
    }

    fn limited_servers(&self, options: &ConnectOptions) -> Result<Vec<LimitedServer>> {
        let (client, _) = connect::connect(&self.config, options)?;
        Ok(vec![LimitedServer { role: "", probe: Box::new(memory::Probe(client)) }])
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let (client, _) = connect::connect(&self.config, &ConnectOptions::default())?;
        let (config, collections) = (self.config.clone(), Arc::clone(&self.collections));
        Ok(Owned::boxed(RedisNamespace {
            client,
            config,
            collections,
            claim: Claim::default(),
            searched: None,
        }))
    }

    without!(compression, other_durability, links, dump_tool);
}
