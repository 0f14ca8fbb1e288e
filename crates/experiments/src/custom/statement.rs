//! The requests of a client, and the answers that it keeps until they are compared.

use super::declared::Execute;
use super::slot::Slot;
use kurabe_core::Result;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};

/// What is asked of a database, in however many steps.
pub(super) struct Asked {
    pub(super) operation: Operation,
    pub(super) prepared: Option<Prepared>,
}

/// One request of a client.
pub(super) struct Statement {
    /// The number of what it asks.
    pub(super) asked: usize,
    pub(super) reply: Reply,
    /// The variables that the check of the answer needs and that may have changed by then, as the request saw them.
    pub(super) seen: Vec<(usize, Slot)>,
}

/// Whether two steps ask the same, so that one prepared statement serves both.
pub(super) fn same(one: &Operation, other: &Operation) -> bool {
    match (one, other) {
        // Where they stand in the file is not asked of the database.
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

/// Adds the rows that came and takes those that went, or the other way round.
pub(super) fn count(execute: &Execute, reply: &Reply, tally: &mut [i64], sign: i64) {
    let rows = reply.affected() as i64 * sign;
    if let Some(home) = execute.adds {
        tally[home] += rows;
    }
    if let Some(home) = execute.removes {
        tally[home] -= rows;
    }
}
