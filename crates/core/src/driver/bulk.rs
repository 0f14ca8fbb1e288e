//! Requests that move many rows.

use super::Prepared;
use crate::collection::Collection;
use crate::error::Result;
use crate::transfer::{Fetch, Moved, Pages, RowSink, RowSource};
use crate::value::Value;
use std::sync::Arc;

/// A session that moves many rows by requests of their own.
pub trait Bulk {
    /// Executes a prepared query whose answer may be longer than memory, and passes its rows on in pages, as they arrive.
    /// Each page has the time limit and the size limit of a reply. A client that receives an answer whole passes it on
    /// as one page.
    ///
    /// # Errors
    /// As for [`Session::execute`](super::Session::execute); or the error of a page's receiver, after which the session
    /// must not be used.
    fn execute_in_pages(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()>;

    /// Reads these fields of all rows of a collection, in any order, and passes each row to `row`. Each round trip has
    /// the time limit of the session, and each row its size limit.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Driver::supports_transfer`](super::Driver::supports_transfer)
    /// says no; the error of `row`; the server's error. The session must not be used after an error.
    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved>;

    /// Adds rows in the engine's own way to load many: `COPY`, `LOAD DATA`. All are added or, if the engine can undo it,
    /// none. No transaction may be in progress.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Driver::supports_transfer`](super::Driver::supports_transfer)
    /// says no; the error of `rows`; the server's error. The session must not be used after an error.
    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved>;

    /// Executes a statement that takes rows from this connection in the engine's own text format, such as PostgreSQL's
    /// `COPY … FROM STDIN`, with these rows. It may be a part of a transaction. Returns the number of rows that the
    /// server added.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the client knows no such statement; the server's error, after
    /// which the session stays usable as after [`Session::execute`](super::Session::execute).
    fn load_text(&mut self, statement: &str, rows: &[u8]) -> Result<u64>;
}
