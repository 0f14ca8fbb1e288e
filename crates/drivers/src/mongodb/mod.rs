//! MongoDB and compatible servers, through the official `mongodb` crate, with commands and answers as raw BSON.
//!
//! **Rows are documents**; see `plan` for keys. Text is a string, bytes are binary, numbers are 64 bits wide, and
//! timestamps are whole numbers of microseconds.
//!
//! **A session is one connection**; see `link` for how the crate's pool ensures this. `connection: per-request`
//! opens one for each request: TCP, TLS if enabled, the handshake and the authentication.
//!
//! **Requests are sent once.** The crate's collections would retry writes in a replica set; here the error is returned.

mod config;
mod durability;
mod errors;
mod facts;
mod ledger;
mod link;
mod metrics;
mod namespace;
mod plan;
mod session;
mod transfer;
mod writer;

use crate::info::{Connections, DriverInfo};
use crate::ownership::{Claim, Owned};
use crate::prelude::*;
use config::Config;
use facts::Deployment;
use kurabe_core::compression::Compression;
use link::{Link, Shared};
use mongodb::bson::rawdoc;
use namespace::MongoNamespace;
use session::MongoSession;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The driver's entry in the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["mongodb", "mongodb+srv"],
    engine: "MongoDB",
    about: "document store; a row is a document, its key _id",
    url: "mongodb://[user[:password]@][host][:port][,…][/database]",
    options: config::OPTIONS,
    benchmark_clause: None,
    connections: Connections {
        authentication: &[("those of MongoDB's crate", "as its connection string says")],
        ..Connections::NONE
    },
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let config = Config::from_url(url)?;
    Ok(Box::new(Mongo { config, shared: Mutex::default(), deployment: OnceLock::new() }))
}

struct Mongo {
    config: Config,
    /// For each compression, created with the first connection.
    shared: Mutex<HashMap<Compression, Arc<Shared>>>,
    deployment: OnceLock<Arc<Deployment>>,
}

impl Mongo {
    fn shared(&self) -> Result<Arc<Shared>> {
        self.compressed(Compression::Off)
    }

    /// The state of sessions with this compression.
    fn compressed(&self, compression: Compression) -> Result<Arc<Shared>> {
        let mut all = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = all.get(&compression) {
            return Ok(Arc::clone(shared));
        }
        let shared = Arc::new(Shared::new(&self.config, compression)?);
        all.insert(compression, Arc::clone(&shared));
        Ok(shared)
    }

    /// Whether the server agrees to a compression (MongoDB Specifications, "Wire Compression": in the answer to hello).
    fn agrees(&self, compression: Compression) -> Result<bool> {
        let name = compression.to_string();
        let mut link = Link::open(self.shared()?, ConnectOptions::default().timeout)?;
        let answer = link.administer(rawdoc! { "hello": 1, "compression": [name.as_str()] })?;
        let agreed = answer.get_array("compression").ok();
        Ok(agreed.is_some_and(|agreed| agreed.iter().any(|known| known.as_str() == Some(name.as_str()))))
    }

    /// The kind of server; queried the first time, on a separate connection.
    fn deployment(&self, options: &ConnectOptions) -> Result<Arc<Deployment>> {
        if let Some(known) = self.deployment.get() {
            return Ok(Arc::clone(known));
        }
        let mut link = Link::open(self.shared()?, options.timeout)?;
        let found = Arc::new(Deployment::ask(&mut link)?);
        Ok(Arc::clone(self.deployment.get_or_init(|| found)))
    }
}

impl Driver for Mongo {
    fn describe(&self) -> Result<ServerFacts> {
        let options = ConnectOptions::default();
        let deployment = self.deployment(&options)?;
        facts::read(&mut Link::open(self.shared()?, options.timeout)?, &deployment)
    }

    fn endpoint(&self) -> Endpoint {
        self.config.endpoint()
    }

    fn supports(&self, operation: &Operation) -> Support {
        // Before the server was asked, this is what MongoDB supports where it has all its features.
        session::supports(operation, &self.deployment.get().cloned().unwrap_or_default())
    }

    fn supports_transfer(&self, _: Transfer) -> Support {
        Support::Native
    }

    fn supports_compression(&self, compression: Compression) -> Support {
        match self.agrees(compression) {
            Ok(true) => Support::Native,
            Ok(false) => Support::No(format!("the server does not offer compression by {compression}")),
            // A server that does not run yet is asked when it does.
            Err(error) if error.kind() == ErrorKind::Unreachable => Support::Native,
            Err(error) => Support::No(format!("the server cannot be asked for compression: {error}")),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let why = "the mongodb crate awaits each answer before it sends the next request";
        Capabilities::without_statements("MongoDB", Support::no(why))
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        let facts = self.describe()?;
        if facts.durability == Some(class) {
            return Ok(());
        }
        let before = self.config.writes.clone();
        if let Some(writes) = durability::writes_for(class, &before) {
            self.config.writes = writes;
            // Later sessions take their write concern from here.
            self.shared = Mutex::default();
            if self.describe()?.durability == Some(class) {
                return Ok(());
            }
            self.config.writes = before;
            self.shared = Mutex::default();
        }
        let hint = "leave --durability out, or use a server that has it (replicated takes a replica set)";
        Err(facts.refuse_durability(class, &format!("and no write concern makes it '{class}'"), hint))
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let deployment = self.deployment(options)?;
        let shared = self.compressed(options.compression)?;
        Ok(Box::new(MongoSession::open(shared, options.timeout, deployment)?))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(metrics::probe(Link::open(self.shared()?, options.timeout)?)))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let link = Link::open(self.shared()?, ConnectOptions::default().timeout)?;
        Ok(Box::new(Owned(MongoNamespace { link, claim: Claim::default(), holder: None })))
    }
}
