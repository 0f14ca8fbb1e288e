//! The counters of a cache.

use crate::collection::Collection;
use crate::error::Result;

/// A session with a cache that counts its hits.
pub trait Cache {
    /// The server's counters of the cache that holds the collection.
    fn counters(&mut self, collection: &Collection) -> Result<CacheCounters>;
}

/// A cache's counters since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    /// Items stored now.
    pub items: u64,
}
