//! How the rows of a collection get into a database.

use super::rows::{Cell, Rows};
use kurabe_core::collection::Collection;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The most parameters of one request of the load: below what any engine takes.
pub(super) const PARAMETERS: u64 = 800;
/// About the most bytes of one request of the load, where a row has not more.
pub(super) const REQUEST_BYTES: u64 = 100_000;
/// Rows that the load commits at once, where the database has transactions.
const COMMIT_ROWS: u64 = 10_000;

/// Adds all rows, several in a request and many in a transaction as far as the database has either.
pub(super) fn fill(
    session: &mut dyn Session,
    collection: &Arc<Collection>,
    rows: &Rows,
    count: u64,
    row_bytes: u64,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let transaction = match prepare_if_supported(session, &Operation::Begin)? {
        Some(begin) => Some((begin, session.prepare(&Operation::Commit)?)),
        None => None,
    };
    let most =
        (PARAMETERS / rows.width().max(1) as u64).min(REQUEST_BYTES / row_bytes.max(1)).clamp(1, count);
    let (whole, step, together) = several(session, collection, most)?;
    let rest = count % step;
    let rest = if rest > 0 { Some(session.prepare(&insert(collection, rest, together))?) } else { None };
    let mut buffers = vec![Vec::new(); step as usize * rows.width()];
    let mut cells = vec![Cell::Null; buffers.len()];
    let mut reply = Reply::new();
    let mut done = 0;
    while done < count {
        let size = step.min(count - done);
        if let Some((begin, _)) = &transaction
            && done % COMMIT_ROWS < step
        {
            if done > 0 {
                commit(session, transaction.as_ref(), &mut reply)?;
            }
            session.execute(begin, &[], &mut reply)?;
        }
        let used = size as usize * rows.width();
        for (n, (cell, buffer)) in cells.iter_mut().zip(&mut buffers).enumerate().take(used) {
            *cell = rows.make(done + (n / rows.width()) as u64, n % rows.width(), buffer);
        }
        let values = cells.iter().zip(&buffers).take(used).map(|(cell, buffer)| cell.value(buffer));
        let values: Vec<Value<'_>> = values.collect::<Result<_>>()?;
        let insert = if size == step { &whole } else { rest.as_ref().unwrap_or(&whole) };
        session.execute(insert, &values, &mut reply)?;
        if reply.affected() != size {
            let said = reply.affected();
            return Err(Error::mismatch(format!(
                "{size} rows were added and the server acknowledged {said}"
            )));
        }
        done += size;
    }
    commit(session, transaction.as_ref(), &mut reply)?;
    let transaction = transaction.into_iter().flat_map(|(begin, commit)| [begin, commit]);
    for prepared in transaction.chain([whole]).chain(rest) {
        session.release(prepared)?;
    }
    Ok(())
}

fn commit(session: &mut dyn Session, with: Option<&(Prepared, Prepared)>, reply: &mut Reply) -> Result<()> {
    match with {
        Some((_, commit)) => session.execute(commit, &[], reply),
        None => Ok(()),
    }
}

/// What adds several rows in one request, how many, and whether all or none of them.
fn several(
    session: &mut dyn Session,
    collection: &Arc<Collection>,
    most: u64,
) -> Result<(Prepared, u64, bool)> {
    for together in [true, false] {
        if let Some(prepared) = prepare_if_supported(session, &insert(collection, most, together))? {
            return Ok((prepared, most, together));
        }
    }
    Ok((session.prepare(&insert(collection, 1, true))?, 1, true))
}

fn insert(collection: &Arc<Collection>, rows: u64, together: bool) -> Operation {
    let (collection, rows) = (Arc::clone(collection), rows as usize);
    match (rows, together) {
        (1, _) => Operation::Insert { collection },
        (_, true) => Operation::InsertMany { collection, rows },
        (_, false) => Operation::InsertEach { collection, rows },
    }
}

pub(super) fn prepare_if_supported(
    session: &mut dyn Session,
    operation: &Operation,
) -> Result<Option<Prepared>> {
    match session.prepare(operation) {
        Ok(prepared) => Ok(Some(prepared)),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}
