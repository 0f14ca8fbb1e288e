//! Moving many rows of a collection at once: as a stream to the client, or in bulk to the server.
//!
//! A row is lent, never kept: the memory of a transfer does not depend on the number of its rows.

use crate::error::Result;
use crate::value::Value;

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
    /// [`Session::read_rows`](crate::driver::Session::read_rows).
    Read(Fetch),
    /// [`Session::write_rows`](crate::driver::Session::write_rows).
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
