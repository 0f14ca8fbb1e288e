//! A store with caches in front of it, as one target: what an application has that looks into its cache before it asks its
//! database.
//!
//! A collection lies in the cache that it names ([`Collection::cache`]), all others in the store. So an
//! experiment prepares operations on both through one session, and neither its transactions nor the engine have to know
//! that there are two connections. All that a target is asked beside that is asked of the store.

mod namespace;
mod session;

use crate::prelude::*;
use kurabe_core::observation::Member;
use namespace::PairNamespace;
use session::PairSession;
use std::sync::Arc;

/// A cache in front of a store.
pub struct Cache {
    /// Its name, by which collections say that they lie in it.
    pub name: String,
    /// Its driver.
    pub driver: Box<dyn Driver>,
    /// What it says of itself.
    pub facts: ServerFacts,
    /// Whether it is a throwaway server that nobody else uses: then nothing has to be claimed, nor to be tidied, in it.
    pub ours: bool,
    /// Whether its namespace is claimed here: of several stores behind one cache only the first does.
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

    /// Adds to a store's facts what decides the figures of its caches.
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

/// The position of the cache that a collection lies in; `None`: it lies in the store.
fn place(caches: &[Cache], collection: &Collection) -> Option<Result<usize>> {
    let name = collection.cache.as_deref()?;
    let found = caches.iter().position(|cache| cache.name == name);
    Some(found.ok_or_else(|| Error::new(ErrorKind::Unsupported, missing(name))))
}

/// Why there is no cache of this name.
fn missing(name: &str) -> String {
    match name {
        "as_is" => {
            "there is no cache as it is: --cache-size as-is goes with --cache and the URL of one".to_owned()
        }
        _ => "the size of a cache can be chosen of a throwaway one only, which --cache up:memcached or \
              up:redis starts; --cache-size as-is takes any as it is"
            .to_owned(),
    }
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
        self.store.capabilities()
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

    /// Of the store: what a cache tells of itself is asked where its hits are counted.
    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        self.store.stats_probe(options)
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Box::new(PairNamespace::new(self.store.namespace()?, Arc::clone(&self.caches))))
    }
}
