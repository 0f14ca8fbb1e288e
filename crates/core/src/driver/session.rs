//! One open connection, and what moves many rows over it.

use super::{Cache, Planner, RawMessages, RowEstimate};
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::facts::{LOGIN, Setting};
use crate::operation::Operation;
use crate::transfer::{Fetch, Moved, Pages, RowSink, RowSource};
use crate::value::{Reply, Value};
use std::sync::Arc;
use std::time::Duration;

/// One open connection of a driver, used by one client at a time.
pub trait Session: Send {
    /// Translates an operation for the database, and prepares it on the server if the protocol has prepared
    /// statements (one round trip).
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason, or the server's error.
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared>;

    /// Prepares to send an operation as text with its parameters as literals. The server learns nothing yet:
    /// [`Session::execute`] writes the text for its parameters, and the server parses it each time. The reply is the
    /// same as that of [`Session::prepare`]'s statement.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Capabilities::literals`](super::Capabilities::literals) says no, or this operation
    /// cannot be written that way.
    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        let _ = operation;
        Err(Error::unsupported("this client cannot write values into the statement text"))
    }

    /// Executes a prepared operation of this session and replaces the content of `out` by the reply.
    ///
    /// # Errors
    /// The server's error with its code. The session stays usable unless the kind is
    /// [`ConnectionLost`](crate::ErrorKind::ConnectionLost) or [`Protocol`](crate::ErrorKind::Protocol).
    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()>;

    /// Executes a prepared operation once for each of `out`, and sends all requests before it reads the first
    /// reply. `parameters` holds those of the first request, then of the second, and so on. Requests are independent:
    /// they are not one transaction, and a failed one does not undo the others.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Capabilities::pipelining`](super::Capabilities::pipelining) says no. Otherwise the
    /// first error of any request, after all replies are read: replies of failed requests are empty, the others are
    /// valid. The session stays usable as after [`Session::execute`].
    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        let _ = (prepared, parameters, out);
        Err(Error::unsupported("this client does not support pipelining"))
    }

    /// Whether a transaction is open after the last request, as the server reports it; `None` if it does not.
    fn in_transaction(&self) -> Option<bool>;

    /// Flushes this session's statistics on the server, so that they are not counted for a later trial. Takes a
    /// round trip on servers that report statistics late.
    ///
    /// # Errors
    /// If the connection is lost.
    fn flush_stats(&mut self) -> Result<()> {
        Ok(())
    }

    /// How long each phase of connecting took; `None` if the client does not measure it.
    fn connect_times(&self) -> Option<ConnectTimes> {
        None
    }

    /// What moves many rows.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if the client has no such requests.
    fn bulk(&mut self) -> Result<&mut dyn Bulk>;

    /// The optimizer's estimates.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if the client does not read them.
    fn planner(&mut self) -> Result<&mut dyn Planner>;

    /// The counters of a cache.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if the target is no cache.
    fn cache(&mut self) -> Result<&mut dyn Cache>;

    /// What sends messages of the protocol as they are.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the client has no such requests.
    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages>;

    /// Frees a prepared operation, on the server too.
    fn release(&mut self, prepared: Prepared) -> Result<()>;

    /// Closes the connection as the protocol requires. Without such a message, dropping the connection closes it.
    ///
    /// # Errors
    /// If the message could not be sent. The connection is closed in any case.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    /// Closes the connection as [`Session::close`] does, waits until the server has closed it too, and checks
    /// that the server sent nothing more. A duplicated reply would otherwise go unnoticed. Clients that cannot check
    /// this only close.
    ///
    /// # Errors
    /// [`Protocol`](crate::ErrorKind::Protocol) if the server sent unexpected data,
    /// [`Timeout`](crate::ErrorKind::Timeout) if it does not close the connection; or as for [`Session::close`].
    fn close_checked(self: Box<Self>) -> Result<()> {
        self.close()
    }
}

/// A session that moves many rows by requests of their own.
pub trait Bulk {
    /// Executes a prepared query whose answer may be longer than memory, and passes its rows on in pages, as they arrive.
    /// Each page has the time limit and the size limit of a reply. A client that receives an answer whole passes it on
    /// as one page. The rows of an answer in the engine's own text format, such as that of PostgreSQL's `COPY … TO STDOUT`, have one
    /// column: the lines with their ends.
    ///
    /// # Errors
    /// As for [`Session::execute`]; or the error of a page's receiver, after which the session
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

    /// Executes a statement that takes rows from this connection in one of the engine's own formats, such as PostgreSQL's
    /// `COPY … FROM STDIN`, with these rows. It may be a part of a transaction. Returns the number of rows that the
    /// server added.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the client knows no such statement; the server's error, after
    /// which the session stays usable as after [`Session::execute`].
    fn load_text(&mut self, statement: &str, rows: &[u8]) -> Result<u64>;
}

/// The requests that only some sessions have.
impl dyn Session + '_ {
    /// As [`Bulk::read_rows`].
    pub fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        self.bulk()?.read_rows(collection, fields, fetch, row)
    }

    /// As [`Bulk::write_rows`].
    pub fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        self.bulk()?.write_rows(collection, rows)
    }

    /// As [`Planner::estimate`].
    pub fn estimate(&mut self, operation: &Operation, parameters: &[Value<'_>]) -> Result<RowEstimate> {
        self.planner()?.estimate(operation, parameters)
    }
}

/// A prepared operation of a session. The driver chooses the number.
#[derive(Debug, PartialEq, Eq)]
pub struct Prepared(pub usize);

/// How long each phase of opening a connection took, as the client measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectTimes {
    /// To reach the server: the TCP handshake or the Unix socket. A native client resolves a name once for all
    /// connections.
    pub reach: Duration,
    /// To negotiate encryption, including the request for it if the protocol has one; `None` without TLS.
    pub tls: Option<Duration>,
    /// To authenticate. It is 0 if PostgreSQL requires no authentication. MySQL's login packet always counts
    /// here.
    pub authenticate: Duration,
    /// The server's own time to set up the session: MySQL's thread, before its greeting; PostgreSQL's process,
    /// until it is ready.
    pub set_up: Duration,
    /// How often the client waited for the server meanwhile, after the TCP handshake: for its greeting, and for answers.
    pub round_trips: u64,
    /// How the client logged in, by the server's word for it: `scram-sha-256`; empty: it did not have to.
    pub login: &'static str,
}

impl ConnectTimes {
    /// How the client logged in, as a fact of the target.
    pub fn login(&self) -> Setting {
        Setting::new(LOGIN, if self.login.is_empty() { "none" } else { self.login })
    }
}
