//! A target with further servers, to which Kurabe's client connects too: caches in front of a store, and remotes, whose
//! collections the target's own server reads by links or the client reads itself.
//!
//! A collection is in the cache that it names ([`Collection::cache`]), on a remote to which it has no link
//! ([`Collection::remote`]), or on the target's own server. An experiment prepares operations on all collections through
//! one session, so neither its transactions nor the engine handle several connections. Everything else about the target
//! comes from its own server.

mod member;
mod namespace;
mod probe;
mod session;

pub use member::{Member, Role};

use crate::prelude::*;
use kurabe_core::observation::{Member as Part, Tier};
use kurabe_core::remote::{Link, RemoteAddress, RemoteServer};
use member::place;
use namespace::CompositeNamespace;
use probe::CompositeProbe;
use session::CompositeSession;
use std::iter::once;
use std::path::PathBuf;
use std::sync::Arc;

/// Adds the engines and settings of its members to a target's facts.
pub fn add_facts(facts: &mut ServerFacts, members: &[Member]) {
    for Member { role, facts: of, .. } in members {
        let product = format!("{} {}", of.engine, of.version);
        let (name, note) = match role {
            Role::Cache(name) => (format!("cache {name}"), format!("the cache in front of it is {product}")),
            Role::Remote(server) => {
                (format!("remote {}", server.name()), format!("{} beside it is {product}", role.word()))
            }
        };
        let settings: Vec<String> =
            of.settings.iter().map(|one| format!("{} = {}", one.name, one.value)).collect();
        facts.settings.push(Setting::new(name, format!("{product} ({})", settings.join("; "))));
        if !facts.notes.contains(&note) {
            facts.notes.push(note);
        }
    }
}

/// A target with members.
pub struct Composite {
    own: Box<dyn Driver>,
    members: Arc<Vec<Member>>,
    /// Why other remotes are missing.
    missing: Vec<(RemoteServer, String)>,
}

impl Composite {
    /// Adds members to a target, whose driver knows the addresses of its remotes already. `missing`: why the run has no
    /// other remotes, as clauses.
    pub fn new(own: Box<dyn Driver>, members: Vec<Member>, missing: Vec<(RemoteServer, String)>) -> Self {
        Self { own, members: Arc::new(members), missing }
    }

    fn why_missing(&self, server: RemoteServer) -> Option<&str> {
        self.missing.iter().find(|(known, _)| *known == server).map(|(_, why)| why.as_str())
    }

    /// The endpoints of the caches, or of the remotes.
    fn endpoints(&self, remote: bool) -> impl Iterator<Item = Endpoint> {
        let members = self.members.iter().filter(move |member| member.role.is_remote() == remote);
        members.map(|member| member.driver.endpoint())
    }
}

impl Driver for Composite {
    fn describe(&self) -> Result<ServerFacts> {
        let mut facts = self.own.describe()?;
        add_facts(&mut facts, &self.members);
        Ok(facts)
    }

    fn supports(&self, operation: &Operation) -> Support {
        let Some(collection) = operation.collection() else { return self.own.supports(operation) };
        let server = collection.remote.as_ref().map(|remote| remote.server);
        if let Some(why) = server.and_then(|server| self.why_missing(server)) {
            return Support::no(why);
        }
        match place(&self.members, collection) {
            Ok(None) => self.own.supports(operation),
            Ok(Some(at)) => self.members[at].driver.supports(operation),
            Err(error) => Support::No(error.to_string()),
        }
    }

    fn supports_transfer(&self, transfer: Transfer) -> Support {
        self.own.supports_transfer(transfer)
    }

    /// Whether all connections of a session can compress: to the target, and to members in other processes.
    fn supports_compression(&self, compression: Compression) -> Support {
        let elsewhere = self.members.iter().map(|member| &member.driver);
        let elsewhere = elsewhere.filter(|driver| driver.endpoint() != Endpoint::InProcess);
        let mut all = once(&self.own).chain(elsewhere).map(|driver| driver.supports_compression(compression));
        all.find(|support| *support != Support::Native).unwrap_or(Support::Native)
    }

    /// Clients share a thread only if none of their connections blocks it.
    fn capabilities(&self) -> Capabilities {
        let mut all = self.own.capabilities();
        for member in &*self.members {
            if let refusal @ Support::No(_) = member.driver.capabilities().shared_threads {
                all.shared_threads = refusal;
            }
        }
        all
    }

    /// The target with its caches, and its remotes, each a tier of its own.
    fn endpoint(&self) -> Endpoint {
        let part = |tier| move |endpoint| Part { endpoint, tier };
        let mut own = self.own.endpoint();
        let caches: Vec<Part> = self.endpoints(false).map(part(None)).collect();
        if !caches.is_empty() {
            own = Endpoint::Composite(once(part(None)(own)).chain(caches).collect());
        }
        if self.endpoints(true).all(|remote| remote == own) {
            return own;
        }
        let own = part(Some(Tier::Database))(own);
        Endpoint::Composite(once(own).chain(self.endpoints(true).map(part(Some(Tier::Remote)))).collect())
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        self.own.require_durability(class)
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let own = self.own.connect(options)?;
        Ok(Box::new(CompositeSession::new(own, Arc::clone(&self.members), *options)))
    }

    /// Statistics of the caches are read with the cache counters.
    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        let own = self.own.stats_probe(options)?;
        let remotes = self.members.iter().filter_map(|member| match member.role {
            Role::Remote(server) if member.driver.endpoint() != Endpoint::InProcess => {
                Some((server.name(), member.driver.stats_probe(options)))
            }
            _ => None,
        });
        Ok(Box::new(CompositeProbe::new(own, remotes)))
    }

    /// Those of the target, and of members that may have other users.
    fn limited_servers(&self, options: &ConnectOptions) -> Result<Vec<LimitedServer>> {
        let mut all = self.own.limited_servers(options)?;
        for member in self.members.iter().filter(|member| !member.ours) {
            let role = member.role.word();
            let found = member.driver.limited_servers(options).map_err(|error| error.context(role))?;
            all.extend(found.into_iter().map(|found| LimitedServer { role, ..found }));
        }
        Ok(all)
    }

    fn links(&self) -> Result<&dyn Links> {
        Ok(self)
    }

    fn add_remote(&mut self, remote: RemoteAddress) {
        self.own.add_remote(remote);
    }

    fn dump_tool(&self) -> Result<Box<dyn DumpTool>> {
        self.own.dump_tool()
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Box::new(CompositeNamespace::new(self.own.namespace()?, Arc::clone(&self.members))))
    }
}

impl Links for Composite {
    fn file(&self) -> Option<PathBuf> {
        self.own.links().ok()?.file()
    }

    fn remote(&self, server: RemoteServer) -> Result<&dyn Driver> {
        if server == RemoteServer::Same {
            return Ok(&*self.own);
        }
        let role = Role::Remote(server);
        let found = self.members.iter().find(|member| member.role == role);
        found.map(|remote| &*remote.driver).ok_or_else(|| {
            let why = self.why_missing(server).unwrap_or("it was not opened");
            Error::unsupported(format!("this run has no {}: {why}", role.word()))
        })
    }

    fn supports(&self, server: RemoteServer, link: &Link) -> Result<Support> {
        match self.why_missing(server) {
            Some(why) => Ok(Support::no(why)),
            None => self.own.links()?.supports(server, link),
        }
    }
}
