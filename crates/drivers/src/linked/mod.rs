//! A target with remotes: second servers whose collections its own server reads by links, or Kurabe's client reads
//! itself.
//!
//! Three kinds of collections are used through one session: ordinary ones of the target; *linked* ones, which the
//! target's driver creates and reads like its own; and ones on a remote, over a connection to that server. Everything
//! else about the target comes from its own server.

mod probe;
mod session;

use crate::members::{
    Member, Members, PairNamespace, PairSession, add_facts, capabilities, limited_servers,
    supports_compression,
};
use crate::prelude::*;
use kurabe_core::interceptor::InterceptedSession;
use kurabe_core::memory::LimitedServer;
use kurabe_core::observation::{Member as Part, Tier};
use kurabe_core::remote::{Link, RemoteAddress, RemoteCollection, RemoteServer};
use probe::PairProbe;
use session::Explain;
use std::path::PathBuf;
use std::sync::Arc;

/// The role of a remote, in messages.
pub fn role(server: RemoteServer) -> &'static str {
    match server {
        RemoteServer::Same => "the target's own server",
        RemoteServer::Second => "the second instance",
        RemoteServer::Host => "the instance on a second host",
        RemoteServer::HostJumbo => "the instance on a second host with an MTU of 9,000",
        RemoteServer::Given => "the remote server",
    }
}

/// A target with remotes.
pub struct Linked {
    target: Box<dyn Driver>,
    remotes: Members,
    /// Why other remotes are missing.
    missing: Vec<(RemoteServer, String)>,
}

impl Linked {
    /// Adds remotes to a target, whose driver knows their addresses already. A member's name is that of its
    /// [`RemoteServer`]. `missing`: why the run has no other ones, as clauses.
    pub fn new(target: Box<dyn Driver>, remotes: Vec<Member>, missing: Vec<(RemoteServer, String)>) -> Self {
        Self { target, remotes: Arc::new(remotes), missing }
    }

    /// Adds the engines and settings of its remotes to a target's facts.
    pub fn add_facts(facts: &mut ServerFacts, remotes: &[Member]) {
        for remote in remotes {
            let about = format!("{} beside it", remote.role);
            add_facts(facts, std::slice::from_ref(remote), "remote", &about);
        }
    }

    fn why_missing(&self, server: RemoteServer) -> Option<&str> {
        self.missing.iter().find(|(known, _)| *known == server).map(|(_, why)| why.as_str())
    }
}

/// The index of the remote that a collection is on; `None` if the target's own server has or reads it.
fn place(remotes: &[Member], collection: &Collection) -> Option<Result<usize>> {
    let RemoteCollection { server, link: None } = collection.remote.as_ref()? else { return None };
    if *server == RemoteServer::Same {
        return None;
    }
    let missing = || Error::new(ErrorKind::Internal, format!("this run has not opened {}", role(*server)));
    Some(remotes.iter().position(|remote| remote.name == server.name()).ok_or_else(missing))
}

impl Driver for Linked {
    fn describe(&self) -> Result<ServerFacts> {
        let mut facts = self.target.describe()?;
        Self::add_facts(&mut facts, &self.remotes);
        Ok(facts)
    }

    fn supports(&self, operation: &Operation) -> Support {
        let Some(collection) = operation.collection() else { return self.target.supports(operation) };
        let server = collection.remote.as_ref().map(|remote| remote.server);
        if let Some(why) = server.and_then(|server| self.why_missing(server)) {
            return Support::no(why);
        }
        match place(&self.remotes, collection) {
            None => self.target.supports(operation),
            Some(Ok(at)) => self.remotes[at].driver.supports(operation),
            Some(Err(error)) => Support::No(error.to_string()),
        }
    }

    fn supports_transfer(&self, transfer: Transfer) -> Support {
        self.target.supports_transfer(transfer)
    }

    fn supports_compression(&self, compression: Compression) -> Support {
        supports_compression(&*self.target, &self.remotes, compression)
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(&*self.target, &self.remotes)
    }

    /// The target and its remotes, each a tier of its own.
    fn endpoint(&self) -> Endpoint {
        let own = self.target.endpoint();
        let remotes: Vec<Endpoint> = self.remotes.iter().map(|remote| remote.driver.endpoint()).collect();
        if remotes.iter().all(|remote| *remote == own) {
            return own;
        }
        let own = Part { endpoint: own, tier: Some(Tier::Database) };
        let part = |endpoint| Part { endpoint, tier: Some(Tier::Remote) };
        Endpoint::Composite([own].into_iter().chain(remotes.into_iter().map(part)).collect())
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        self.target.require_durability(class)
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let own = self.target.connect(options)?;
        let pair: Box<dyn Session> =
            Box::new(PairSession::new(own, Arc::clone(&self.remotes), place, *options));
        Ok(Box::new(InterceptedSession::new(pair, Explain::new(Arc::clone(&self.remotes)))))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        let own = self.target.stats_probe(options)?;
        let separate = self.remotes.iter().filter(|remote| remote.driver.endpoint() != Endpoint::InProcess);
        let remotes = separate.map(|remote| (remote.name.clone(), remote.driver.stats_probe(options)));
        Ok(Box::new(PairProbe::new(own, remotes.collect())))
    }

    fn limited_servers(&self, options: &ConnectOptions) -> Result<Vec<LimitedServer>> {
        limited_servers(&*self.target, &self.remotes, options)
    }

    fn links(&self) -> Result<&dyn Links> {
        Ok(self)
    }

    fn links_mut(&mut self) -> Option<&mut dyn Links> {
        Some(self)
    }

    fn dump_tool(&self) -> Result<Box<dyn DumpTool>> {
        self.target.dump_tool()
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Box::new(PairNamespace::new(self.target.namespace()?, Arc::clone(&self.remotes), place)))
    }
}

impl Links for Linked {
    fn file(&self) -> Option<PathBuf> {
        self.target.links().ok()?.file()
    }

    fn add_remote(&mut self, remote: RemoteAddress) {
        self.target.add_remote(remote);
    }

    fn remote(&self, server: RemoteServer) -> Result<&dyn Driver> {
        if server == RemoteServer::Same {
            return Ok(&*self.target);
        }
        let found = self.remotes.iter().find(|remote| remote.name == server.name());
        found.map(|remote| &*remote.driver).ok_or_else(|| {
            let why = self.why_missing(server).unwrap_or("it was not opened");
            Error::unsupported(format!("this run has no {}: {why}", role(server)))
        })
    }

    fn supports(&self, server: RemoteServer, link: &Link) -> Result<Support> {
        match self.why_missing(server) {
            Some(why) => Ok(Support::no(why)),
            None => self.target.links()?.supports(server, link),
        }
    }
}
