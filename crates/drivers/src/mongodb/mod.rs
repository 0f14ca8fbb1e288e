//! MongoDB and compatible servers, through a native client of their wire protocol (`OP_MSG`).
//!
//! **Rows are documents**; see `plan` for keys. Text is a string, bytes are binary, numbers are 64 bits wide, and
//! timestamps are whole numbers of microseconds.
//!
//! **A session is one connection** to the primary, with a session of the server's own where that has them; see `shared`.
//! With a `readPreference` for other members, a second one is for reads; see `readers`.
//!
//! **Requests are sent once**, unless the URL has `retryWrites=true` and the server knows a write by its number.

mod bson;
mod client;
mod concerns;
mod config;
mod connect;
mod connections;
mod credential;
mod deployment;
mod durability;
mod errors;
mod facts;
mod frame;
mod hello;
mod metrics;
mod namespace;
mod plan;
mod readers;
mod session;
mod shared;
mod tail;
mod transfer;
mod writer;

use crate::info::DriverInfo;
use crate::lease::Claim;
use crate::prelude::*;
use config::Config;
use deployment::Deployment;
use kurabe_core::compression::Compression;
use namespace::MongoNamespace;
use session::MongoSession;
use shared::Shared;
use std::sync::Arc;

/// The driver's entry in the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["mongodb", "mongodb+srv"],
    engine: "MongoDB",
    about: "document store; a row is a document, its key _id",
    url: "mongodb://[user[:password]@][host][:port][,…][/database]",
    options: config::OPTIONS,
    benchmark_clause: None,
    connections: connections::CONNECTIONS,
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    Ok(Box::new(Mongo { shared: Arc::new(Shared::new(Config::from_url(url)?)) }))
}

struct Mongo {
    shared: Arc<Shared>,
}

impl Driver for Mongo {
    fn describe(&self) -> Result<ServerFacts> {
        let mut link = self.shared.connect(&ConnectOptions::default())?;
        let deployment = self.shared.deployment(&mut link)?;
        facts::read(&mut link, &self.shared.config, &deployment)
    }

    fn endpoint(&self) -> Endpoint {
        self.shared.config.endpoint()
    }

    fn supports(&self, operation: &Operation) -> Support {
        match self.shared.known_deployment() {
            Some(deployment) => session::supports(operation, deployment),
            // Before the server was asked, this is what MongoDB supports where it has all its features.
            None => session::supports(operation, &Deployment::default()),
        }
    }

    fn supports_transfer(&self, _: Transfer) -> Support {
        Support::Native
    }

    fn supports_compression(&self, compression: Compression) -> Support {
        match self.shared.connect(&ConnectOptions { compression, ..ConnectOptions::default() }) {
            Ok(link) if link.compressor.is_some() => Support::Native,
            Ok(_) => Support::No(format!("the server does not offer compression by {compression}")),
            // A server that does not run yet is asked when it does.
            Err(error) if error.kind() == ErrorKind::Unreachable => Support::Native,
            Err(error) => Support::No(format!("the server cannot be asked for compression: {error}")),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let why = "MongoDB's clients await each answer before they send the next request";
        let expiry = Support::no(
            "a TTL index reads dates, and Kurabe keeps times in MongoDB as integers, in microseconds",
        );
        let of_mongodb = Capabilities::without_statements("MongoDB", Support::no(why)).sharing_threads();
        let pace = self.shared.known_deployment().map_or(of_mongodb.pace, Deployment::pace);
        Capabilities { expiry, pace, ..of_mongodb }
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        let facts = self.describe()?;
        if facts.durability == Some(class) {
            return Ok(());
        }
        let config = &self.shared.config;
        if let Some(writes) = durability::writes_for(class, &config.writes) {
            // Later sessions take their write concern from here.
            let with = Self { shared: Arc::new(Shared::new(Config { writes, ..config.clone() })) };
            if with.describe()?.durability == Some(class) {
                *self = with;
                return Ok(());
            }
        }
        let hint = "leave --durability out, or use a server that has it (replicated takes a replica set)";
        Err(facts.refuse_durability(class, &format!("and no write concern makes it '{class}'"), hint))
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(MongoSession::open(&self.shared, options)?))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(metrics::probe(self.shared.connect(options)?)))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let link = self.shared.connect(&ConnectOptions::default())?;
        let shared = Arc::clone(&self.shared);
        Ok(Owned::boxed(MongoNamespace { shared, link, claim: Claim::default(), holder: None }))
    }

    without!(limited_memory, links, dump_tool);
}
