//! Rows: read as they arrive, in the order of a key, and inserted many at a time.

mod read;
mod write;

use crate::page::Page;
use crate::sql::Side;
use kurabe_core::operation::Operation;
use kurabe_core::{Error, ErrorKind, Result};
pub use read::Reader;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
pub use write::{Encoded, Writer, encode};

/// How many rows are inserted together: a page ends after so many rows, or with the row that reaches so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    /// Rows, at most.
    pub rows: usize,
    /// Bytes, as they arrive.
    pub bytes: usize,
}

impl Default for PageSize {
    fn default() -> Self {
        Self { rows: 2_000, bytes: 4 << 20 }
    }
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
pub type Read = (Page, Option<Page>);

/// Reads pages in a thread of their own, two ahead of `work`, until the table ends, something fails or the user stops.
pub fn stream<T>(
    side: &mut Side,
    reader: &Reader<'_>,
    stop: &AtomicBool,
    work: impl FnOnce(&Receiver<Result<Read>>) -> Result<T>,
) -> Result<T> {
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel(2);
        scope.spawn(move || {
            let read = reader.read(side, &mut |page| {
                check(stop)?;
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
