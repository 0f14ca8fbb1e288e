//! How the rows lie in a database, and how they get there.

use crate::content::{Content, Kind};
use crate::{fill, readback};
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::Session;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, Result};
use std::sync::Arc;

/// Rows unless the user says otherwise: those of a table of sysbench's documentation, and of pgbench's scale 1.
const RECORDS: u64 = 100_000;
/// Characters of a row's data.
pub(crate) const LENGTH: usize = 100;

/// The version of every row after loading. Writes have higher ones.
pub(crate) const LOADED: u64 = 0;

/// What rows hold.
pub(crate) fn content(seed: u64) -> Content {
    Content::new(Kind::Text, seed, LENGTH)
}

/// The rows of a target.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) collection: Arc<Collection>,
    pub(super) content: Content,
    pub(super) seed: u64,
    /// How many rows there are; their keys are 1 to this.
    pub(super) records: u64,
}

impl Store {
    /// Table `(id bigint primary key, data varchar(100))`.
    pub(super) fn new(name: String, seed: u64, records: Option<u64>) -> Self {
        let id = Field { name: "id", kind: FieldType::Int };
        let data = Field { name: "data", kind: FieldType::Text { max: LENGTH as u32 } };
        Self {
            collection: Arc::new(Collection::new(name, vec![id, data], vec![0])),
            content: content(seed),
            seed,
            records: records.unwrap_or(RECORDS).max(1),
        }
    }

    pub(super) fn select(&self) -> Operation {
        Operation::Get { collection: Arc::clone(&self.collection), fields: vec![1] }
    }

    pub(super) fn update(&self) -> Operation {
        Operation::Update { collection: Arc::clone(&self.collection), fields: vec![1] }
    }

    pub(super) fn insert(&self) -> Operation {
        Operation::Insert { collection: Arc::clone(&self.collection) }
    }

    /// Adds all rows.
    pub(super) fn fill(&self, session: &mut dyn Session) -> Result<()> {
        fill::fill_numbered(session, &self.collection, self.records, |key, data| {
            self.content.write(key, LOADED, data);
        })
    }

    /// Holds the server to the number of rows, where it can count.
    pub(super) fn check_count(&self, session: &mut dyn Session) -> Result<()> {
        match fill::count(session, &self.collection)? {
            Some(rows) if rows != self.records => Err(Error::mismatch(format!(
                "there must be {} rows and the server counts {rows}",
                self.records
            ))),
            _ => Ok(()),
        }
    }

    /// Reads rows back and compares each, byte for byte, with the version that it must have. Gives how many it read.
    pub(super) fn read_back(
        &self,
        session: &mut dyn Session,
        rows: impl Iterator<Item = (u64, u64)>,
    ) -> Result<u64> {
        readback::each(
            session,
            &self.select(),
            LENGTH as u64,
            rows,
            |(key, _)| [Value::Int(*key as i64)],
            |(key, version), reply| self.check(*key, *version, reply),
        )
        .map_err(|error| error.context("read back"))
    }

    /// Reads all rows back as they must be after loading.
    pub(super) fn check_load(&self, session: &mut dyn Session) -> Result<()> {
        let keys = 1..self.records as i64 + 1;
        readback::numbered(session, &self.collection, &[1], LENGTH as u64, keys, |key, found| {
            self.content.check(key as u64, LOADED, found.bytes(key)?)
        })
    }

    /// Compares the answer to [`Store::select`] with what it must be: one row, byte for byte.
    #[inline]
    pub(super) fn check(&self, key: u64, version: u64, reply: &Reply) -> Result<()> {
        match reply.field_bytes(0, 0) {
            Some(bytes) if reply.rows() == 1 => self.content.check(key, version, bytes),
            _ => Err(wrong_rows(key, reply.rows())),
        }
    }
}

#[cold]
fn wrong_rows(key: u64, rows: usize) -> Error {
    Error::mismatch(match rows {
        0 => format!("row {key} is not there"),
        1 => format!("row {key} came back without its data"),
        _ => format!("row {key} came back {rows} times"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_of_a_seed_never_change() {
        let store = Store::new("kurabe_0_point".to_owned(), 1, None);
        let line = |(key, version)| {
            let mut data = Vec::new();
            store.content.write(key, version, &mut data);
            format!("{key} {version} {}", String::from_utf8(data).unwrap())
        };
        let lines = [(1, LOADED), (2, LOADED), (100_000, LOADED), (1, 1 << 32)].map(line).join("\n");
        assert_eq!(lines, include_str!("../../golden/point_rows_seed1.txt").trim_end_matches('\n'));
        assert_eq!(store.records, 100_000);
    }
}
