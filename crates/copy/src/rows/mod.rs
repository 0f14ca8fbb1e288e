//! Rows: read as they arrive, in the order of a key, and inserted many at a time.

mod read;
mod write;

use crate::page::Page;
use crate::plan::TablePlan;
use crate::pool::Halt;
use crate::sql::{Side, only_refused};
use kurabe_core::operation::Operation;
use kurabe_core::{Error, ErrorKind, Result};
pub use read::{Read, Reader};
use std::sync::mpsc::{Receiver, sync_channel};
pub use write::{Writer, encode, push_text};

/// Reads pages in a thread of their own, two ahead of `work`, until the table ends, something fails or the user stops.
pub fn stream<T>(
    side: &mut Side,
    reader: &Reader<'_>,
    halt: &Halt<'_>,
    work: impl FnOnce(&Receiver<Result<Read>>) -> Result<T>,
) -> Result<T> {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel(2);
        scope.spawn(move || {
            let read = reader.read(side, &mut |page| {
                halt.check()?;
                // Nobody waits for more after an error on the other side.
                send.send(Ok(page)).map_err(|_| Error::new(ErrorKind::Interrupted, "the copy has failed"))
            });
            if let Err(error) = read {
                let _ = send.send(Err(error));
            }
        });
        let done = work(&receive);
        // A reader that waits for a place ends.
        drop(receive);
        done
    })
}

/// The error of a page that the target refused, with the name of the first row that it refuses. Only a server's error is about a
/// row that has no name yet. A table without transactions keeps the rows of each attempt.
pub fn with_row(side: &mut Side, table: &TablePlan, page: &Page, error: Error) -> Error {
    let is_it = |name: &String| table.to.eq_ignore_ascii_case(name);
    let mut without = || side.without_transactions();
    if error.kind() != ErrorKind::Server || without().map_or(true, |names| names.iter().any(is_it)) {
        return error;
    }
    match refused_rows(side, table, page, 1).unwrap_or_default().pop() {
        Some((row, why)) => why.context(format!("{}{}", table.name, write::named(table, page, row))),
        None => error,
    }
}

/// The first rows of a page that the target refuses, so many at most, each with the reason, found by halves. Nothing is changed.
pub fn refused_rows(
    side: &mut Side,
    table: &TablePlan,
    page: &Page,
    most: usize,
) -> Result<Vec<(usize, Error)>> {
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    let mut halves: Vec<_> = std::iter::once(0..page.rows()).collect();
    while let Some(range) = halves.pop().filter(|_| refused.len() < most) {
        // With those that were taken: two rows may not go together.
        let attempt = page.with_rows(|row| range.contains(&row) || taken.contains(&row));
        let mut writer = Writer::new(side.engine, table);
        side.control(&Operation::Begin)?;
        let inserted = writer.insert(side, &attempt);
        side.control(&Operation::Rollback)?;
        writer.end(side)?;
        match inserted {
            Ok(()) => taken.extend(range),
            Err(error) if range.len() == 1 => refused.push((range.start, only_refused(error)?)),
            Err(error) => {
                only_refused(error)?;
                let middle = range.start + range.len() / 2;
                halves.extend([middle..range.end, range.start..middle]);
            }
        }
    }
    Ok(refused)
}
