//! A store with caches in front of it, as one target: the setup of an application that reads its cache before its
//! database.
//!
//! A collection is in the cache that it names ([`Collection::cache`]), or else in the store. Everything else about the
//! target comes from the store.

use crate::members::{
    Member, Members, PairNamespace, PairSession, add_facts, capabilities, limited_servers,
    supports_compression,
};
use crate::prelude::*;
use kurabe_core::driver::Access;
use kurabe_core::memory::LimitedServer;
use kurabe_core::observation::Member as Part;
use std::sync::Arc;

/// The role of a cache, in messages.
pub const ROLE: &str = "the cache";

/// A store with caches in front of it.
pub struct Cached {
    store: Box<dyn Driver>,
    caches: Members,
}

impl Cached {
    /// Puts caches in front of a store.
    pub fn new(store: Box<dyn Driver>, caches: Vec<Member>) -> Self {
        Self { store, caches: Arc::new(caches) }
    }

    /// Adds the engines and settings of its caches to a store's facts.
    pub fn add_facts(facts: &mut ServerFacts, caches: &[Member]) {
        add_facts(facts, caches, "cache", "the cache in front of it");
    }
}

/// The index of the cache that a collection is in; `None` if it is in the store.
fn place(caches: &[Member], collection: &Collection) -> Option<Result<usize>> {
    let name = collection.cache.as_deref()?;
    let missing = || {
        Error::unsupported(match name {
            "as_is" => "there is no running cache: --cache-size as-is needs --cache with the URL of one",
            _ => {
                "a size can be set only for a throwaway cache, which --cache up:memcached or up:redis starts; \
                 --cache-size as-is uses a running cache unchanged"
            }
        })
    };
    Some(caches.iter().position(|cache| cache.name == name).ok_or_else(missing))
}

impl Driver for Cached {
    fn describe(&self) -> Result<ServerFacts> {
        let mut facts = self.store.describe()?;
        Self::add_facts(&mut facts, &self.caches);
        Ok(facts)
    }

    fn supports(&self, operation: &Operation) -> Support {
        let collection = operation.collection().and_then(|collection| place(&self.caches, collection));
        match collection {
            None => self.store.supports(operation),
            Some(Ok(at)) => self.caches[at].driver.supports(operation),
            Some(Err(error)) => Support::No(error.to_string()),
        }
    }

    fn supports_transfer(&self, transfer: Transfer) -> Support {
        self.store.supports_transfer(transfer)
    }

    fn supports_compression(&self, compression: Compression) -> Support {
        supports_compression(&*self.store, &self.caches, compression)
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(&*self.store, &self.caches)
    }

    fn endpoint(&self) -> Endpoint {
        let caches = self.caches.iter().map(|cache| &cache.driver);
        let all = [&self.store].into_iter().chain(caches);
        Endpoint::Composite(all.map(|driver| Part { endpoint: driver.endpoint(), tier: None }).collect())
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        self.store.require_durability(class)
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let store = self.store.connect(options)?;
        // Whoever only reads fills the cache.
        let options = ConnectOptions { access: Access::ReadWrite, ..*options };
        Ok(Box::new(PairSession::new(store, Arc::clone(&self.caches), place, options)))
    }

    /// The store's probe: statistics of the caches are read with the cache counters.
    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        self.store.stats_probe(options)
    }

    fn limited_servers(&self, options: &ConnectOptions) -> Result<Vec<LimitedServer>> {
        limited_servers(&*self.store, &self.caches, options)
    }

    fn links(&self) -> Result<&dyn Links> {
        self.store.links()
    }

    fn links_mut(&mut self) -> Option<&mut dyn Links> {
        self.store.links_mut()
    }

    fn dump_tool(&self) -> Result<Box<dyn DumpTool>> {
        self.store.dump_tool()
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Box::new(PairNamespace::new(self.store.namespace()?, Arc::clone(&self.caches), place)))
    }
}
