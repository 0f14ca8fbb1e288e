//! Rows: read in pages in the order of a key, and inserted many at a time.

mod read;
mod write;

use crate::page::Page;
use crate::plan::TablePlan;
use crate::sql::Side;
use kurabe_core::operation::Operation;
use kurabe_core::{Error, ErrorKind, Result};
pub use read::{Of, Reader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
pub use write::{Encoded, Writer, encode};

/// The bytes of a page's values of unlimited length, at most, unless a single row has more.
const PAGE_BYTES: u64 = 4 << 20;

/// The rows of a page, at most.
const PAGE_ROWS: usize = 2_000;

/// The number of rows of a table's pages.
pub fn page_rows(table: &TablePlan) -> usize {
    usize::try_from(PAGE_BYTES / table.longest_row.max(1)).unwrap_or(PAGE_ROWS).clamp(1, PAGE_ROWS)
}

/// Does something in a transaction of a side, and rolls it back if it fails.
pub fn in_transaction<T>(side: &mut Side, work: impl FnOnce(&mut Side) -> Result<T>) -> Result<T> {
    side.control(&Operation::Begin)?;
    match work(side) {
        Ok(done) => side.control(&Operation::Commit).map(|()| done),
        Err(error) => {
            // The first error is the one to report.
            let _ = side.control(&Operation::Rollback);
            Err(error)
        }
    }
}

/// A page, and the key of its last row as the side has it.
pub type Read = Result<(Page, Option<Page>)>;

/// Reads pages in a thread of their own, two ahead of `work`, until the table ends, something fails or the user stops.
pub fn stream<T>(
    side: &mut Side,
    mut reader: Reader<'_>,
    stop: &AtomicBool,
    work: impl FnOnce(&Receiver<Read>) -> Result<T>,
) -> Result<T> {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel(2);
        scope.spawn(move || {
            loop {
                if let Err(error) = check(stop) {
                    let _ = send.send(Err(error));
                    break;
                }
                let read = match reader.page(side) {
                    Ok(None) => break,
                    Ok(Some(page)) => Ok((page, reader.last().cloned())),
                    Err(error) => Err(error),
                };
                let failed = read.is_err();
                if send.send(read).is_err() || failed {
                    break;
                }
            }
        });
        let done = work(&receive);
        // A reader that waits for a place ends.
        drop(receive);
        done
    })
}

/// Fails after the user has stopped the program.
///
/// # Errors
/// [`Interrupted`](ErrorKind::Interrupted).
pub fn check(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) {
        return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
    }
    Ok(())
}
