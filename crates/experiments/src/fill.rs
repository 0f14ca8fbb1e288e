//! How a table `(id, data)` of small rows gets its rows, and how they are counted.

use kurabe_core::collection::Collection;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Rows that the load sends in one request, where the database takes several: about 20 kB, which none refuses.
pub(crate) const REQUEST_ROWS: u64 = 200;
/// Rows that the load commits at once, where the database has transactions.
const COMMIT_ROWS: u64 = 10_000;
/// Of the rows that a trial changed or added, and of those that were loaded, about so many are read back.
const READ_BACK: usize = 1_000;

/// One row or several in one request; `together` where it must be all or none.
fn insert(collection: &Arc<Collection>, rows: u64, together: bool) -> Operation {
    let (collection, rows) = (Arc::clone(collection), rows as usize);
    match (rows, together) {
        (1, _) => Operation::Insert { collection },
        (_, true) => Operation::InsertMany { collection, rows },
        (_, false) => Operation::InsertEach { collection, rows },
    }
}

/// Adds rows 1 to `records`, whose data `write` makes, several in a request and many in a transaction as far as the
/// database has either. A request need not be all or none: after an error there is nothing to measure, and what was
/// loaded is counted and read back.
pub(crate) fn fill(
    session: &mut dyn Session,
    collection: &Arc<Collection>,
    records: u64,
    mut write: impl FnMut(u64, &mut Vec<u8>),
) -> Result<()> {
    let transaction = match prepare_if_supported(session, &Operation::Begin)? {
        Some(begin) => Some((begin, session.prepare(&Operation::Commit)?)),
        None => None,
    };
    let most = REQUEST_ROWS.min(records);
    let together = prepare_if_supported(session, &insert(collection, most, true))?;
    let is_together = together.is_some();
    let many = match together {
        Some(many) => Some(many),
        None => prepare_if_supported(session, &insert(collection, most, false))?,
    };
    let step = if many.is_some() { most } else { 1 };
    let whole = match many {
        Some(many) => many,
        None => session.prepare(&insert(collection, 1, true))?,
    };
    let rest = records % step;
    let rest = if rest > 0 { Some(session.prepare(&insert(collection, rest, is_together))?) } else { None };
    let mut data = vec![Vec::new(); step as usize];
    let mut reply = Reply::new();
    let mut done = 0;
    let mut committed = 0;
    while done < records {
        if let Some((begin, _)) = &transaction
            && committed == done
        {
            session.execute(begin, &[], &mut reply)?;
        }
        let rows = step.min(records - done);
        let insert = if rows == step { &whole } else { rest.as_ref().unwrap_or(&whole) };
        let mut parameters = Vec::with_capacity(2 * rows as usize);
        for (key, data) in (done + 1..).zip(&mut data[..rows as usize]) {
            write(key, data);
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
            && (done - committed >= COMMIT_ROWS || done == records)
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

/// How many rows the server counts; `None` where it cannot count.
pub(crate) fn count(session: &mut dyn Session, collection: &Arc<Collection>) -> Result<Option<u64>> {
    let operation = Operation::Count { collection: Arc::clone(collection) };
    let Some(count) = prepare_if_supported(session, &operation)? else { return Ok(None) };
    let mut reply = Reply::new();
    session.execute(&count, &[], &mut reply)?;
    session.release(count)?;
    let rows = reply.field_int(0, 0).and_then(|rows| u64::try_from(rows).ok());
    rows.map(Some).ok_or_else(|| Error::mismatch("the server's count is not a number"))
}

/// The data of a row as a parameter.
#[inline]
pub(crate) fn text(data: &[u8]) -> Result<Value<'_>> {
    let text = std::str::from_utf8(data);
    text.map(Value::Text).map_err(|_| Error::new(ErrorKind::Internal, "the data of a row is no text"))
}

/// About [`READ_BACK`] of them, evenly, the first and the last among them.
pub(crate) fn sample<T>(all: &[T]) -> impl Iterator<Item = &T> {
    let step = (all.len() / READ_BACK).max(1);
    let last = all.len().checked_sub(1).filter(|last| last % step != 0).map(|last| &all[last]);
    all.iter().step_by(step).chain(last)
}

fn prepare_if_supported(session: &mut dyn Session, operation: &Operation) -> Result<Option<Prepared>> {
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
    fn a_sample_holds_the_first_and_the_last() {
        for length in [0, 1, 2, 999, 1_000, 1_001, 2_500, 100_000] {
            let all: Vec<usize> = (0..length).collect();
            let picked: Vec<usize> = sample(&all).copied().collect();
            assert_eq!((picked.first(), picked.last()), (all.first(), all.last()));
            assert!(picked.len() <= 2 * READ_BACK && picked.is_sorted_by(|a, b| a < b));
        }
    }
}
