//! The layout of records in the store and in the cache, which is the same: identifier, version, data.

use crate::content::{Content, Kind};
use crate::ident::Ident;
use crate::prelude::*;

/// The records of a cell.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) seed: u64,
    pub(super) content: Content,
    pub(super) records: usize,
    /// The collection in the store.
    pub(super) stored: Arc<Collection>,
    /// The collection in the cache, if there is a cache.
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
