//! The requests of a client, and the answers that it keeps until they are compared.

use super::declared::Execute;
use super::slot::Slot;
use crate::prelude::*;

/// A distinct request, which may occur in several steps.
pub(super) struct Asked {
    pub(super) operation: Operation,
    pub(super) prepared: Option<Prepared>,
}

/// One request of a client.
pub(super) struct Statement {
    /// The number of its distinct request.
    pub(super) asked: usize,
    pub(super) reply: Reply,
    /// The variables that the check of the answer reads and that may change before, with their values at the time of
    /// the request.
    pub(super) seen: Vec<(usize, Slot)>,
}

/// Whether two steps make the same request, so that one prepared statement serves both.
pub(super) fn same(one: &Operation, other: &Operation) -> bool {
    match (one, other) {
        // The database does not see the place in the file.
        (Operation::Raw { statement: one }, Operation::Raw { statement: other }) => {
            one.texts == other.texts && one.parameters == other.parameters
        }
        (one, other) => one == other,
    }
}

#[inline]
pub(super) fn ask(
    asked: &Asked,
    once: bool,
    session: &mut dyn Session,
    values: &[Value<'_>],
    reply: &mut Reply,
) -> Result<()> {
    match &asked.prepared {
        Some(prepared) if once => session.execute(prepared, values, reply),
        _ => {
            let prepared = session.prepare(&asked.operation)?;
            session.execute(&prepared, values, reply)?;
            session.release(prepared)
        }
    }
}

/// Adds inserted rows and subtracts deleted rows, or the reverse.
pub(super) fn count(execute: &Execute, reply: &Reply, tally: &mut [i64], sign: i64) {
    let rows = reply.affected() as i64 * sign;
    if let Some(relation) = execute.adds {
        tally[relation] += rows;
    }
    if let Some(relation) = execute.removes {
        tally[relation] -= rows;
    }
}
