//! Which version of each record was ever begun to be written, and which was acknowledged: what is stale and what cannot be.
//!
//! Each record is written by one client of a trial, so that its versions follow each other in time as in number. They go on
//! from trial to trial of a run: the store keeps them.

use kurabe_core::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// The versions of all records of a store.
#[derive(Debug)]
pub(super) struct Versions {
    /// By record: the newest that was begun, and the newest that was acknowledged.
    records: Vec<(AtomicU64, AtomicU64)>,
}

impl Versions {
    /// The versions of a store that was filled: each record has its first.
    pub(super) fn new(records: usize) -> Self {
        Self { records: (0..records).map(|_| Default::default()).collect() }
    }

    /// The next version of a record: only the client whose record it is asks.
    pub(super) fn next(&self, record: usize) -> u64 {
        self.records[record].0.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// A version was acknowledged.
    pub(super) fn acknowledge(&self, record: usize, version: u64) {
        self.records[record].1.store(version, Ordering::Release);
    }

    /// The newest version that was acknowledged.
    #[inline]
    pub(super) fn acknowledged(&self, record: usize) -> u64 {
        self.records[record].1.load(Ordering::Acquire)
    }

    /// Whether a read that began when `floor` had been acknowledged and gave `version` is stale.
    ///
    /// # Errors
    /// [`Mismatch`](kurabe_core::ErrorKind::Mismatch) where nobody ever wrote that version.
    #[inline]
    pub(super) fn is_stale(&self, record: usize, floor: u64, version: i64) -> Result<bool> {
        let begun = self.records[record].0.load(Ordering::Acquire);
        match u64::try_from(version) {
            Ok(version) if version <= begun => Ok(version < floor),
            _ => Err(Error::mismatch(format!(
                "record {record} came back as version {version}, and {begun} is the newest that was ever written"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_before_a_read_began_makes_older_versions_stale_and_unknown_ones_wrong() {
        let versions = Versions::new(3);
        assert_eq!(versions.next(1), 1);
        // Begun and not acknowledged: both are right.
        let floor = versions.acknowledged(1);
        assert_eq!((versions.is_stale(1, floor, 0), versions.is_stale(1, floor, 1)), (Ok(false), Ok(false)));
        versions.acknowledge(1, 1);
        let floor = versions.acknowledged(1);
        assert_eq!((versions.is_stale(1, floor, 0), versions.is_stale(1, floor, 1)), (Ok(true), Ok(false)));
        for wrong in [2, -1, i64::MAX] {
            assert!(versions.is_stale(1, floor, wrong).is_err(), "{wrong}");
        }
    }
}
