//! For each record, the newest version whose write began and the newest that was acknowledged. They decide which
//! answers are stale and which are wrong.
//!
//! One client of a trial writes each record, so that versions are ordered in time as in number. Versions continue
//! from trial to trial of a run, because the store keeps them.

use crate::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// The versions of all records of a store.
#[derive(Debug)]
pub(super) struct Versions {
    /// For each record: the newest version whose write began, and the newest that was acknowledged.
    records: Vec<(AtomicU64, AtomicU64)>,
}

impl Versions {
    /// The versions of a newly filled store: each record has version 1.
    pub(super) fn new(records: usize) -> Self {
        Self { records: (0..records).map(|_| Default::default()).collect() }
    }

    /// The next version of a record. Only the client that owns the record calls this.
    pub(super) fn next(&self, record: usize) -> u64 {
        self.records[record].0.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Records that a version was acknowledged.
    pub(super) fn acknowledge(&self, record: usize, version: u64) {
        self.records[record].1.store(version, Ordering::Release);
    }

    /// The newest version that was acknowledged.
    #[inline]
    pub(super) fn acknowledged(&self, record: usize) -> u64 {
        self.records[record].1.load(Ordering::Acquire)
    }

    /// Whether a read is stale that returned `version` and began when `floor` had been acknowledged.
    ///
    /// # Errors
    /// [`Mismatch`](kurabe_core::ErrorKind::Mismatch) if that version was never written.
    #[inline]
    pub(super) fn is_stale(&self, record: usize, floor: u64, version: i64) -> Result<bool> {
        let begun = self.records[record].0.load(Ordering::Acquire);
        match u64::try_from(version) {
            Ok(version) if version <= begun => Ok(version < floor),
            _ => Err(Error::mismatch(format!(
                "record {record} was returned with version {version}, but the newest written version is \
                 {begun}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_than_acknowledged_version_is_stale_and_unknown_version_is_wrong() {
        let versions = Versions::new(3);
        assert_eq!(versions.next(1), 1);
        // The write began and was not acknowledged: both versions are right.
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
