//! How the records lie in a database.

use super::record::{self, LENGTH};
use crate::{fill, readback};
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::Session;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, Result};
use std::sync::Arc;

/// Records that are there before anything is measured, unless the user says otherwise.
const RECORDS: u64 = 10_000;

/// The records of a target: those that were loaded, and apart from them those that a trial adds.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) loaded: Arc<Collection>,
    pub(super) added: Arc<Collection>,
    pub(super) seed: u64,
    /// How many were loaded; their keys are 1 to this. All higher keys are of records that were added.
    pub(super) records: u64,
}

impl Store {
    /// Tables `(id bigint primary key, data varchar(96))`.
    pub(super) fn new(slot: usize, seed: u64, records: Option<u64>) -> Self {
        let table = |part: &str| {
            let id = Field { name: "id", kind: FieldType::Int };
            let data = Field { name: "data", kind: FieldType::Text { max: LENGTH as u32 } };
            Arc::new(Collection::new(format!("kurabe_{slot}_kv_{part}"), vec![id, data], vec![0]))
        };
        Self { loaded: table("r"), added: table("w"), seed, records: records.unwrap_or(RECORDS).max(1) }
    }

    /// Where a record lies.
    pub(super) fn home(&self, key: u64) -> &Arc<Collection> {
        if key <= self.records { &self.loaded } else { &self.added }
    }

    pub(super) fn select(collection: &Arc<Collection>) -> Operation {
        Operation::Get { collection: Arc::clone(collection), fields: vec![1] }
    }

    pub(super) fn insert(&self) -> Operation {
        Operation::Insert { collection: Arc::clone(&self.added) }
    }

    /// Loads the records and holds the server to their number.
    pub(super) fn fill(&self, session: &mut dyn Session) -> Result<()> {
        fill::fill_numbered(session, &self.loaded, self.records, |key, data| {
            record::write(self.seed, key, data);
        })?;
        match fill::count(session, &self.loaded)? {
            Some(rows) if rows != self.records => Err(Error::mismatch(format!(
                "{} records were loaded and the server counts {rows}",
                self.records
            ))),
            _ => Ok(()),
        }
    }

    /// Compares the answer to [`Store::select`] with what it must be: one record, byte for byte.
    #[inline]
    pub(super) fn check(&self, key: u64, reply: &Reply) -> Result<()> {
        match reply.field_bytes(0, 0) {
            Some(bytes) if reply.rows() == 1 => record::check(self.seed, key, bytes),
            _ => Err(wrong_rows(key, reply.rows())),
        }
    }

    /// Reads records that were added back and compares each. Gives how many it read.
    pub(super) fn read_back(
        &self,
        session: &mut dyn Session,
        keys: impl Iterator<Item = u64>,
    ) -> Result<u64> {
        let select = Self::select(&self.added);
        readback::each(
            session,
            &select,
            LENGTH as u64,
            keys,
            |key| [Value::Int(*key as i64)],
            |key, reply| self.check(*key, reply),
        )
        .map_err(|error| error.context("read back"))
    }

    /// Reads all records that were loaded back and compares each.
    pub(super) fn check_load(&self, session: &mut dyn Session) -> Result<()> {
        let keys = 1..self.records as i64 + 1;
        readback::numbered(session, &self.loaded, &[1], LENGTH as u64, keys, |key, found| {
            record::check(self.seed, key as u64, found.bytes(key)?)
        })
    }
}

#[cold]
fn wrong_rows(key: u64, rows: usize) -> Error {
    match rows {
        0 => Error::mismatch(format!("record {key} is not there")),
        1 => Error::mismatch(format!("record {key} came back without its data")),
        _ => Error::mismatch(format!("record {key} came back {rows} times")),
    }
}
