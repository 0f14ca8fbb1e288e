//! A store with caches in front of it, as one target: the setup of an application that reads its cache before its
//! database.
//!
//! A collection is in the cache that it names ([`Collection::cache`]), or else in the store. An experiment prepares
//! operations on both through one session, so neither its transactions nor the engine handle two connections.
//! Everything else about the target comes from the store.

mod namespace;
mod session;

use crate::prelude::*;
use kurabe_core::observation::Member;
use namespace::PairNamespace;
use session::PairSession;
use std::sync::Arc;

/// A cache in front of a store.
pub struct Cache {
    /// Its name, to which collections refer.
    pub name: String,
    /// Its driver.
    pub driver: Box<dyn Driver>,
    /// Its facts.
    pub facts: ServerFacts,
    /// Whether it is a throwaway server without other users, which needs no claim and no cleanup.
    pub ours: bool,
    /// Whether this target claims the cache's namespace: if several stores share a cache, only the first does.
    pub claims: bool,
}

/// A store with caches in front of it.
pub struct Cached {
    store: Box<dyn Driver>,
    caches: Caches,
}

/// The caches of a target.
type Caches = Arc<Vec<Cache>>;

impl Cached {
    /// Puts caches in front of a store.
    pub fn new(store: Box<dyn Driver>, caches: Vec<Cache>) -> Self {
        Self { store, caches: Arc::new(caches) }
    }

    /// Adds the engines and settings of its caches to a store's facts.
    pub fn add_facts(facts: &mut ServerFacts, caches: &[Cache]) {
        for cache in caches {
            let of = &cache.facts;
            let settings: Vec<String> =
                of.settings.iter().map(|setting| format!("{} = {}", setting.name, setting.value)).collect();
            let value = format!("{} {} ({})", of.engine, of.version, settings.join("; "));
            facts.settings.push(Setting::new(format!("cache {}", cache.name), value));
            let note = format!("the cache in front of it is {} {}", of.engine, of.version);
            if !facts.notes.contains(&note) {
                facts.notes.push(note);
            }
        }
    }
}

/// The index of the cache that a collection is in; `None` if it is in the store.
fn place(caches: &[Cache], collection: &Collection) -> Option<Result<usize>> {
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

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.store.capabilities();
        for cache in self.caches.iter() {
            if let refusal @ Support::No(_) = cache.driver.capabilities().shared_threads {
                capabilities.shared_threads = refusal;
            }
        }
        capabilities
    }

    fn endpoint(&self) -> Endpoint {
        let caches = self.caches.iter().map(|cache| &cache.driver);
        let all = [&self.store].into_iter().chain(caches);
        Endpoint::Composite(all.map(|driver| Member { endpoint: driver.endpoint(), tier: None }).collect())
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        self.store.require_durability(class)
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let store = self.store.connect(options)?;
        Ok(Box::new(PairSession::new(store, Arc::clone(&self.caches), *options)))
    }

    /// The store's probe: statistics of the caches are read with the cache counters.
    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        self.store.stats_probe(options)
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Box::new(PairNamespace::new(self.store.namespace()?, Arc::clone(&self.caches))))
    }
}
