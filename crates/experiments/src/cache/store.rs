//! The layout of records in the store and in the cache, which is the same: identifier, version, data.

use crate::content::{Content, Kind};
use crate::ident::Ident;
use crate::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// The records of a cell.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) seed: u64,
    pub(super) content: Content,
    pub(super) records: usize,
    pub(super) stored: Arc<Collection>,
    pub(super) cached: Option<Arc<Collection>>,
}

/// Positions of version and data in an answer.
const VERSION: usize = 0;
const DATA: usize = 1;

impl Store {
    pub(super) fn new(name: &str, cache: Option<&str>, seed: u64, records: usize, payload: usize) -> Self {
        let cached = cache.map(|cache| {
            let cache = Some(cache.to_owned());
            Arc::new(Collection { cache, ..collection(format!("{name}_copies")) })
        });
        Self {
            seed,
            content: Content::new(Kind::Text, seed, payload),
            records,
            stored: Arc::new(collection(name.to_owned())),
            cached,
        }
    }

    pub(super) fn ident(&self, record: usize) -> Ident {
        Ident::of(self.seed, record as u64)
    }

    /// The version that an answer contains. Its data are compared with the content of that version.
    #[inline]
    pub(super) fn version_of(&self, record: usize, reply: &Reply) -> Result<i64> {
        if reply.rows() != 1 {
            return Err(Error::mismatch(format!("record {record} was returned {} times", reply.rows())));
        }
        let (Some(version), Some(data)) = (reply.field_int(0, VERSION), reply.field_bytes(0, DATA)) else {
            return Err(Error::mismatch(format!(
                "record {record} was returned without its version or its data"
            )));
        };
        self.content.check(record as u64, version.unsigned_abs(), data)?;
        Ok(version)
    }
}

/// Version and data of an answer, unchecked.
pub(super) fn parts(reply: &Reply) -> Option<(i64, &[u8])> {
    Some((reply.field_int(0, VERSION)?, reply.field_bytes(0, DATA)?))
}

/// Table `(id varchar(72) primary key, version bigint, data blob)`.
fn collection(name: String) -> Collection {
    let id = Field { name: "id", kind: FieldType::Text { max: 72 } };
    let version = Field { name: "version", kind: FieldType::Int };
    let data = Field { name: "data", kind: FieldType::LongBytes };
    Collection::new(name, vec![id, version, data], vec![0])
}

pub(super) fn get(collection: &Arc<Collection>) -> Operation {
    Operation::Get { collection: Arc::clone(collection), fields: vec![1, 2] }
}

pub(super) fn insert(collection: &Arc<Collection>) -> Operation {
    Operation::Insert { collection: Arc::clone(collection) }
}

pub(super) fn put(collection: &Arc<Collection>) -> Operation {
    Operation::Put { collection: Arc::clone(collection) }
}

pub(super) fn update(collection: &Arc<Collection>) -> Operation {
    Operation::Update { collection: Arc::clone(collection), fields: vec![1, 2] }
}

pub(super) fn delete(collection: &Arc<Collection>) -> Operation {
    Operation::Delete { collection: Arc::clone(collection) }
}

/// For each record, the newest version whose write began and the newest that was acknowledged. They decide which
/// answers are stale and which are wrong.
///
/// One client of a trial writes each record, so that versions are ordered in time as in number. Versions continue
/// from trial to trial of a run, because the store keeps them.
#[derive(Debug)]
pub(super) struct Versions {
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
