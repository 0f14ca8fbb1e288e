//! The namespaces of a store and of its caches.

use super::{Caches, place};
use crate::prelude::*;

pub(super) struct PairNamespace {
    store: Box<dyn Namespace>,
    caches: Caches,
    /// The namespaces of the caches, opened on first use.
    namespaces: Vec<Option<Box<dyn Namespace>>>,
}

impl PairNamespace {
    pub(super) fn new(store: Box<dyn Namespace>, caches: Caches) -> Self {
        let namespaces = caches.iter().map(|_| None).collect();
        Self { store, caches, namespaces }
    }

    fn of(&mut self, collection: &Collection) -> Result<&mut dyn Namespace> {
        match place(&self.caches, collection).transpose()? {
            None => Ok(&mut *self.store),
            Some(at) => self.cache(at),
        }
    }

    fn cache(&mut self, at: usize) -> Result<&mut dyn Namespace> {
        let namespace = match self.namespaces[at].take() {
            Some(namespace) => namespace,
            None => self.caches[at].driver.namespace().map_err(|error| error.context("the cache"))?,
        };
        Ok(&mut **self.namespaces[at].insert(namespace))
    }

    /// The caches that may have other users.
    fn shared(&self) -> Vec<usize> {
        (0..self.caches.len()).filter(|at| !self.caches[*at].ours).collect()
    }
}

impl Namespace for PairNamespace {
    fn claim(&mut self, run: &str) -> Result<()> {
        self.store.claim(run)?;
        for at in self.shared() {
            if self.caches[at].claims {
                self.cache(at)?.claim(run).map_err(|error| error.context("the cache"))?;
            }
        }
        Ok(())
    }

    fn create(&mut self, collection: &Collection) -> Result<()> {
        self.of(collection)?.create(collection)
    }

    fn clear(&mut self, collection: &Collection) -> Result<()> {
        self.of(collection)?.clear(collection)
    }

    fn analyse(&mut self, collection: &Collection) -> Result<()> {
        self.of(collection)?.analyse(collection)
    }

    fn hold_statistics(&mut self, collection: &Collection) -> Result<()> {
        self.of(collection)?.hold_statistics(collection)
    }

    fn unanalysed(&mut self, table: &str) -> Result<Option<String>> {
        self.store.unanalysed(table)
    }

    fn remove(&mut self, name: &str) -> Result<()> {
        self.store.remove(name)?;
        // A throwaway cache's data is removed with its server, which may also have evicted the ownership table.
        for at in self.shared() {
            let cache = self.cache(at)?;
            if cache.list()?.iter().any(|known| known == name) {
                cache.remove(name)?;
            }
        }
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<String>> {
        let mut names = self.store.list()?;
        for at in self.shared() {
            names.extend(self.cache(at)?.list()?);
        }
        Ok(names)
    }

    fn finish(&mut self) -> Result<()> {
        self.store.finish()?;
        for at in self.shared() {
            let namespace = self.cache(at)?;
            // Another store of this run may still have collections there.
            if namespace.list()?.is_empty() {
                namespace.finish()?;
            }
        }
        Ok(())
    }
}
