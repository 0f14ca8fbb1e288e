//! Moving many rows of a collection at once: as a stream to the client, or in bulk to the server.
//!
//! A row is lent, never kept: the memory of a transfer does not depend on the number of its rows.

use crate::error::Result;
use crate::value::{Reply, Value};

/// How many rows a reader gets in one round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fetch {
    /// This many, at least 1, from a cursor of the server. The last round trip may give fewer.
    Rows(u64),
    /// All of them: the answer to one request, in the engine's own way to send a whole table if it has one.
    Whole,
}

/// One way to move many rows of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// [`Bulk::read_rows`](crate::driver::Bulk::read_rows).
    Read(Fetch),
    /// [`Bulk::write_rows`](crate::driver::Bulk::write_rows).
    Write,
}

/// Receives one row: its fields, valid until the call returns. Text arrives as [`Value::Bytes`], as in a reply. An error
/// ends the transfer.
pub type RowSink<'a> = dyn FnMut(&[Value<'_>]) -> Result<()> + 'a;

/// The rows of a bulk write.
pub trait RowSource {
    /// Passes the next row to `put`, once, with every field of the collection. Returns whether there was one.
    ///
    /// # Errors
    /// The error of `put`, or its own: the write is abandoned.
    fn next(&mut self, put: &mut RowSink<'_>) -> Result<bool>;
}

/// What a transfer moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Rows: received, or acknowledged by the server.
    pub rows: u64,
    /// Requests that waited for an answer: the round trips. `None` if the client does not know.
    pub round_trips: Option<u64>,
}

/// Receives a long answer in pages, as it arrives.
pub struct Pages<'a> {
    rows: usize,
    bytes: usize,
    sink: &'a mut dyn FnMut(&Reply) -> Result<()>,
}

impl<'a> Pages<'a> {
    /// Pages that end after so many rows, or with the row that reaches so many bytes. `sink` gets each page; an error of it
    /// ends the answer.
    pub fn new(rows: usize, bytes: usize, sink: &'a mut dyn FnMut(&Reply) -> Result<()>) -> Self {
        Self { rows: rows.max(1), bytes, sink }
    }

    /// The same pages, borrowed.
    pub fn by_ref(&mut self) -> Pages<'_> {
        Pages { rows: self.rows, bytes: self.bytes, sink: &mut *self.sink }
    }

    /// Called after each row. Passes on a full page and empties it; returns whether it did.
    ///
    /// # Errors
    /// The error of the sink.
    #[inline]
    pub fn row(&mut self, page: &mut Reply) -> Result<bool> {
        if page.rows() < self.rows && page.held() < self.bytes {
            return Ok(false);
        }
        self.end(page).map(|()| true)
    }

    /// Called after the last row. Passes on a page that is not empty, and empties it.
    ///
    /// # Errors
    /// The error of the sink.
    pub fn end(&mut self, page: &mut Reply) -> Result<()> {
        if page.rows() > 0 {
            (self.sink)(page)?;
        }
        page.clear();
        Ok(())
    }
}
