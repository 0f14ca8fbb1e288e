//! The counters of a cache.

use crate::collection::Collection;
use crate::error::Result;

/// A session with a cache that counts its hits.
pub trait Cache {
    /// The server's counters of the cache that holds the collection.
    ///
    /// # Errors
    /// The server's error.
    fn counters(&mut self, collection: &Collection) -> Result<CacheCounters>;
}

/// A cache's counters since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Hits.
    pub hits: u64,
    /// Misses.
    pub misses: u64,
    /// Evictions.
    pub evictions: u64,
    /// Items stored now.
    pub items: u64,
}
