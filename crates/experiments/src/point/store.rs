//! How the rows lie in a database, and how they get there.

use crate::content::{Content, Kind};
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::Session;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Rows unless the user says otherwise: those of a table of sysbench's documentation, and of pgbench's scale 1.
const RECORDS: u64 = 100_000;
/// Characters of a row's data.
pub(super) const LENGTH: usize = 100;
/// Rows that the load sends in one request, where the database takes several: about 20 kB, which none refuses.
pub(super) const REQUEST_ROWS: u64 = 200;
/// Rows that the load commits at once, where the database has transactions.
const COMMIT_ROWS: u64 = 10_000;

/// The version of every row after loading. Writes have higher ones.
pub(super) const LOADED: u64 = 0;

/// The rows of a target.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) collection: Arc<Collection>,
    pub(super) content: Content,
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
            content: Content::new(Kind::Text, seed, LENGTH),
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

    /// Several rows in one request; `together` where it must be all or none.
    fn insert_several(&self, rows: u64, together: bool) -> Operation {
        if rows == 1 {
            return self.insert();
        }
        let (collection, rows) = (Arc::clone(&self.collection), rows as usize);
        if together {
            Operation::InsertMany { collection, rows }
        } else {
            Operation::InsertEach { collection, rows }
        }
    }

    /// Adds all rows, several in a request and many in a transaction as far as the database has either. A request need
    /// not be all or none: after an error there is nothing to measure, and what was loaded is counted and read back.
    pub(super) fn fill(&self, session: &mut dyn Session) -> Result<()> {
        let transaction = match prepare_if_supported(session, &Operation::Begin)? {
            Some(begin) => Some((begin, session.prepare(&Operation::Commit)?)),
            None => None,
        };
        let most = REQUEST_ROWS.min(self.records);
        let together = prepare_if_supported(session, &self.insert_several(most, true))?;
        let is_together = together.is_some();
        let many = match together {
            Some(many) => Some(many),
            None => prepare_if_supported(session, &self.insert_several(most, false))?,
        };
        let step = if many.is_some() { most } else { 1 };
        let whole = match many {
            Some(many) => many,
            None => session.prepare(&self.insert())?,
        };
        let rest = self.records % step;
        let rest =
            if rest > 0 { Some(session.prepare(&self.insert_several(rest, is_together))?) } else { None };
        let mut data = vec![Vec::new(); step as usize];
        let mut reply = Reply::new();
        let mut done = 0;
        let mut committed = 0;
        while done < self.records {
            if let Some((begin, _)) = &transaction
                && committed == done
            {
                session.execute(begin, &[], &mut reply)?;
            }
            let rows = step.min(self.records - done);
            let insert = if rows == step { &whole } else { rest.as_ref().unwrap_or(&whole) };
            let mut parameters = Vec::with_capacity(2 * rows as usize);
            for (key, data) in (done + 1..).zip(&mut data[..rows as usize]) {
                self.content.write(key, LOADED, data);
                parameters.extend([Value::Int(key as i64), text(data)?]);
            }
            session.execute(insert, &parameters, &mut reply)?;
            if reply.affected() != rows {
                let said = reply.affected();
                return Err(Error::mismatch(format!(
                    "{rows} rows were added and the server acknowledged {said}"
                )));
            }
            done += rows;
            if let Some((_, commit)) = &transaction
                && (done - committed >= COMMIT_ROWS || done == self.records)
            {
                session.execute(commit, &[], &mut reply)?;
                committed = done;
            }
        }
        let transaction = transaction.into_iter().flat_map(|(begin, commit)| [begin, commit]);
        for prepared in transaction.chain([whole]).chain(rest) {
            session.release(prepared)?;
        }
        Ok(())
    }

    /// Holds the server to the number of rows, where it can count.
    pub(super) fn check_count(&self, session: &mut dyn Session) -> Result<()> {
        let operation = Operation::Count { collection: Arc::clone(&self.collection) };
        let Some(count) = prepare_if_supported(session, &operation)? else { return Ok(()) };
        let mut reply = Reply::new();
        session.execute(&count, &[], &mut reply)?;
        session.release(count)?;
        match reply.field_int(0, 0) {
            Some(rows) if rows as u64 == self.records => Ok(()),
            Some(rows) => Err(Error::mismatch(format!(
                "there must be {} rows and the server counts {rows}",
                self.records
            ))),
            None => Err(Error::mismatch("the server's count is not a number")),
        }
    }

    /// Reads rows back and compares each, byte for byte, with the version that it must have. Gives how many it read.
    pub(super) fn read_back(
        &self,
        session: &mut dyn Session,
        rows: impl Iterator<Item = (u64, u64)>,
    ) -> Result<u64> {
        let select = session.prepare(&self.select())?;
        let mut reply = Reply::new();
        let mut read = 0;
        for (key, version) in rows {
            session.execute(&select, &[Value::Int(key as i64)], &mut reply)?;
            self.check(key, version, &reply).map_err(|error| error.context("read back"))?;
            read += 1;
        }
        session.release(select)?;
        Ok(read)
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

/// The data of a row as a parameter.
#[inline]
pub(super) fn text(data: &[u8]) -> Result<Value<'_>> {
    let text = std::str::from_utf8(data);
    text.map(Value::Text).map_err(|_| Error::new(ErrorKind::Internal, "the data of a row is no text"))
}

fn prepare_if_supported(
    session: &mut dyn Session,
    operation: &Operation,
) -> Result<Option<kurabe_core::driver::Prepared>> {
    match session.prepare(operation) {
        Ok(prepared) => Ok(Some(prepared)),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
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
