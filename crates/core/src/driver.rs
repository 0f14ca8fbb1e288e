//! The interface of a database driver: a [`Driver`] opens [`Session`]s; a [`Namespace`] creates and removes
//! collections.

use crate::collection::Collection;
use crate::compression::Compression;
use crate::dump::DumpTool;
use crate::durability::DurabilityClass;
use crate::error::{Error, Result};
use crate::facts::ServerFacts;
use crate::memory::LimitedServer;
use crate::observation::Endpoint;
use crate::operation::Operation;
use crate::remote::{Link, RemoteAddress, RemoteServer};
use crate::stats_probe::StatsProbe;
use crate::transfer::{Fetch, Moved, Pages, RowSink, RowSource, Transfer};
use crate::value::{Reply, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Connects to one target. All clients of a trial share it.
pub trait Driver: Send + Sync {
    /// Reads from the server what affects results: version, settings, durability class, limits.
    ///
    /// # Errors
    /// If the server cannot be reached or does not allow the queries.
    fn describe(&self) -> Result<ServerFacts>;

    /// Whether this database supports the operation natively. Drivers do not emulate operations.
    fn supports(&self, operation: &Operation) -> Support;

    /// What this client and its protocol support besides single operations.
    fn capabilities(&self) -> Capabilities;

    /// Whether this client can move many rows in this way.
    fn supports_transfer(&self, transfer: Transfer) -> Support {
        Support::no(match transfer {
            Transfer::Read(_) => "its driver does not read a collection as a stream of rows",
            Transfer::Write => "its driver has no bulk write other than inserts of many rows",
        })
    }

    /// Whether its connections can compress what both ends send ([`ConnectOptions::compression`]). May ask the server; of
    /// one that does not run yet, it says what the client can. Never called for [`Compression::Off`].
    fn supports_compression(&self, compression: Compression) -> Support {
        Support::No(match self.endpoint() {
            Endpoint::InProcess => "the database runs in this process, and sends nothing".to_owned(),
            _ => format!("its protocol, or the client used for it, has no compression by {compression}"),
        })
    }

    /// Where the server listens. Observers find its processes by that.
    fn endpoint(&self) -> Endpoint {
        Endpoint::Elsewhere("its driver does not report where it listens".to_owned())
    }

    /// Makes every later connection acknowledge writes in this durability class, with settings of the session
    /// only. Settings of the server are not changed.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the current settings if the class needs a setting that
    /// a session cannot change; or as for [`Driver::describe`].
    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        let facts = self.describe()?;
        if facts.durability == Some(class) {
            return Ok(());
        }
        let hint = "ask the server's administrator, or omit --durability";
        Err(facts.refuse_durability(class, "and no session can change that", hint))
    }

    /// Opens a connection, authenticates, and prepares it for its first operation.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the connection, or has no free connection.
    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>>;

    /// Opens the connection over which the server's own statistics are read. No client uses it.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if the server has no such statistics; or as
    /// for [`Driver::connect`]. The trial continues without statistics.
    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        let _ = options;
        Err(Error::unsupported("its driver does not read server statistics"))
    }

    /// Opens a probe for each server of this target that may have other users and keeps values in a limited memory.
    /// None for databases that store values on disk.
    ///
    /// # Errors
    /// As for [`Driver::connect`].
    fn limited_servers(&self, options: &ConnectOptions) -> Result<Vec<LimitedServer>> {
        let _ = options;
        Ok(Vec::new())
    }

    /// The file of an embedded database, which another database may attach; `None` if it has no such file.
    fn file(&self) -> Option<PathBuf> {
        None
    }

    /// Gives the driver the address of a remote server, to which later namespaces and sessions can link. Nothing is
    /// contacted yet. An address that it cannot link to is a reason for [`Driver::links`].
    fn add_remote(&mut self, remote: RemoteAddress) {
        let _ = remote;
    }

    /// The driver of a remote server, for what the client does there over connections of its own.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if the run has no such server.
    fn remote(&self, server: RemoteServer) -> Result<&dyn Driver> {
        Err(Error::unsupported(format!("this run has no remote '{}'", server.name())))
    }

    /// Whether its server can read collections of a remote server by this link. May ask the server. If the address of
    /// the remote is not known yet, it is not considered.
    ///
    /// # Errors
    /// As for [`Driver::connect`].
    fn links(&self, server: RemoteServer, link: &Link) -> Result<Support> {
        let _ = (server, link);
        Ok(Support::no("Kurabe knows no way by which this database reads another one's tables"))
    }

    /// Opens the part of the database that Kurabe may change.
    ///
    /// # Errors
    /// As for [`Driver::connect`].
    fn namespace(&self) -> Result<Box<dyn Namespace>>;

    /// The engine's own programs that dump and restore tables.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if there are none, or they are not installed; or
    /// as for [`Driver::connect`].
    fn dump_tool(&self) -> Result<Box<dyn DumpTool>> {
        Err(Error::unsupported("its driver knows no programs that dump and restore tables"))
    }
}

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
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Capabilities::literals`] says no, or this operation
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

    /// Executes a prepared query whose answer may be longer than memory, and passes its rows on in pages, as they arrive.
    /// Each page has the time limit and the size limit of a reply. A client that receives an answer whole passes it on
    /// as one page.
    ///
    /// # Errors
    /// As for [`Session::execute`]; or the error of a page's receiver, after which the session must not be used.
    fn execute_in_pages(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        let mut whole = Reply::new();
        self.execute(prepared, parameters, &mut whole)?;
        pages.end(&mut whole)
    }

    /// Executes a prepared operation once for each of `out`, and sends all requests before it reads the first
    /// reply. `parameters` holds those of the first request, then of the second, and so on. Requests are independent:
    /// they are not one transaction, and a failed one does not undo the others.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Capabilities::pipelining`] says no. Otherwise the
    /// first error of any request, after all replies are read: replies of failed requests are empty, the others are
    /// valid. The session stays usable as after [`Session::execute`].
    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        let _ = (prepared, parameters, out);
        Err(Error::unsupported("this client does not support pipelining"))
    }

    /// Reads these fields of all rows of a collection, in any order, and passes each row to `row`. Each round trip has
    /// the time limit of the session, and each row its size limit.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Driver::supports_transfer`] says no; the error of `row`; the
    /// server's error. The session must not be used after an error.
    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        let _ = (collection, fields, fetch, row);
        Err(Error::unsupported("this client does not read a collection as a stream of rows"))
    }

    /// Adds rows in the engine's own way to load many: `COPY`, `LOAD DATA`. All are added or, if the engine can undo it,
    /// none. No transaction may be in progress.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Driver::supports_transfer`] says no; the error of `rows`; the
    /// server's error. The session must not be used after an error.
    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        let _ = (collection, rows);
        Err(Error::unsupported("this client has no bulk write other than inserts of many rows"))
    }

    /// Executes a statement that takes rows from this connection in the engine's own text format, such as PostgreSQL's
    /// `COPY … FROM STDIN`, with these rows. It may be a part of a transaction. Returns the number of rows that the
    /// server added.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the client knows no such statement; the server's error, after
    /// which the session stays usable as after [`Session::execute`].
    fn load_text(&mut self, statement: &str, rows: &[u8]) -> Result<u64> {
        let _ = (statement, rows);
        Err(Error::unsupported("this client sends no rows as text"))
    }

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

    /// The server's counters of the cache that holds the collection.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the target is no cache, or has no counters; the server's
    /// error.
    fn cache_counters(&mut self, collection: &Collection) -> Result<CacheCounters> {
        let _ = collection;
        Err(Error::unsupported("this target has no cache counters"))
    }

    /// Asks the optimizer how many rows an operation with these parameters would return. The operation is planned and
    /// not executed.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Capabilities::estimates`] says no, or the plan has no such
    /// estimate; the server's error.
    fn estimate(&mut self, operation: &Operation, parameters: &[Value<'_>]) -> Result<RowEstimate> {
        let _ = (operation, parameters);
        Err(Error::unsupported("this client does not read the optimizer's estimates"))
    }

    /// Frees a prepared operation, on the server too.
    ///
    /// # Errors
    /// The server's error.
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

/// The part of a database that Kurabe created and may change: collections whose name starts with
/// [`NAMESPACE_PREFIX`](crate::collection::NAMESPACE_PREFIX) and that are listed in Kurabe's ownership table.
pub trait Namespace: Send {
    /// Acquires the lease of the namespace for one run. It ends when this value is dropped or the connection
    /// closes.
    ///
    /// # Errors
    /// [`InUse`](crate::ErrorKind::InUse) if another run holds the lease, with its name if known.
    fn claim(&mut self, run: &str) -> Result<()>;

    /// Creates the collection, empty, and enters it in the ownership table. Replaces one that Kurabe created
    /// before.
    ///
    /// # Errors
    /// [`NotOurs`](crate::ErrorKind::NotOurs) if something of that name exists that is not in the ownership
    /// table.
    fn create(&mut self, collection: &Collection) -> Result<()>;

    /// Empties a collection that Kurabe created.
    ///
    /// # Errors
    /// As for [`Namespace::create`].
    fn clear(&mut self, collection: &Collection) -> Result<()>;

    /// Updates the planner's statistics of a collection that was just filled (`ANALYZE`), so that no trial runs
    /// with missing or changing statistics. Does nothing on databases without such statistics.
    ///
    /// # Errors
    /// As for [`Namespace::create`].
    fn analyse(&mut self, collection: &Collection) -> Result<()> {
        let _ = collection;
        Ok(())
    }

    /// Whether rows stay in the order in which they were inserted; if not, they are stored in the order of their key,
    /// whatever order they come in.
    fn keeps_insertion_order(&self) -> bool {
        true
    }

    /// The text before the key of each row of a collection that was just created or cleared, where rows have keys in one
    /// name space of the server: other programs read the rows by it. `None` where a collection has a place of its own.
    ///
    /// # Errors
    /// The server's error.
    fn key_prefix(&mut self, collection: &Collection) -> Result<Option<String>> {
        let _ = collection;
        Ok(None)
    }

    /// Stops the server from updating the planner's statistics of a collection by itself. Only
    /// [`Namespace::analyse`] updates them from then on. Does nothing on databases that never do so.
    ///
    /// # Errors
    /// As for [`Namespace::create`].
    fn hold_statistics(&mut self, collection: &Collection) -> Result<()> {
        let _ = collection;
        Ok(())
    }

    /// Which statistics of a table the server's planner lacks, and what to do, as a sentence. `None` if they are
    /// complete, there is no such table, or the planner needs none. Changes nothing.
    ///
    /// # Errors
    /// The server's error.
    fn unanalysed(&mut self, table: &str) -> Result<Option<String>> {
        let _ = table;
        Ok(None)
    }

    /// Removes a collection that Kurabe created, and its entry in the ownership table.
    ///
    /// # Errors
    /// As for [`Namespace::create`].
    fn remove(&mut self, name: &str) -> Result<()>;

    /// The names of all collections in the ownership table, including those of earlier runs that did not clean
    /// up.
    ///
    /// # Errors
    /// The server's error.
    fn list(&mut self) -> Result<Vec<String>>;

    /// Removes the ownership table; called when it is empty.
    ///
    /// # Errors
    /// The server's error.
    fn finish(&mut self) -> Result<()>;
}

/// A cache's counters since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Hits.
    pub hits: u64,
    /// Misses.
    pub misses: u64,
    /// Evictions.
    pub evictions: u64,
    /// Items stored now.
    pub items: u64,
}

/// The optimizer's estimate of an operation's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowEstimate {
    /// The number of rows that the optimizer expects the operation to return.
    pub rows: f64,
    /// How long planning took, as the server reports it; `None` if it does not.
    pub planning: Option<Duration>,
}

/// A prepared operation of a session. The driver chooses the number.
#[derive(Debug, PartialEq, Eq)]
pub struct Prepared(pub usize);

/// Whether a database supports an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Native,
    /// It does not; the reason, as a clause: "memcached finds a value by its whole key only".
    No(String),
}

impl Support {
    /// Not supported, for this reason, a clause.
    pub fn no(reason: impl Into<String>) -> Self {
        Self::No(reason.into())
    }

    /// Supported, unless there is a reason why not.
    pub fn unless(reason: Option<impl Into<String>>) -> Self {
        reason.map_or(Self::Native, Self::no)
    }

    /// The reason why it is not supported.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Native => None,
            Self::No(reason) => Some(reason),
        }
    }
}

/// What a driver supports besides executing one operation after the other.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Whether the server can prepare an operation once and execute it many times, so that preparing once and per
    /// request differ.
    pub prepared_statements: Support,
    /// Whether an operation can be sent as text with literals ([`Session::prepare_literal`]).
    pub literals: Support,
    /// Whether requests can be sent before earlier replies have arrived ([`Session::pipeline`]).
    pub pipelining: Support,
    /// Whether the optimizer's row estimates can be read ([`Session::estimate`]).
    pub estimates: Support,
    /// Whether text can be stored in Latin-1 ([`Charset::Latin1`](crate::collection::Charset)).
    pub latin1: Support,
    /// Whether the target is an application that serves experiments (`docs/app.openapi.yaml`), not a database.
    /// Its sessions support only [`Page`](Operation::Page), and it manages its own data.
    pub is_application: bool,
    /// Whether the database belongs to this driver alone and is deleted with it. Opening its URL again creates
    /// another one.
    pub is_temporary: bool,
    /// Whether many sessions can share a thread. They can if they wait in the crate `kurabe-reactor` only. Any other
    /// wait, such as that of a client library, would stop all clients of the thread.
    pub shared_threads: Support,
    /// Whether the server refuses every change of a session that is opened with [`Access::ReadOnly`]. A session of a
    /// driver that says no may write, whatever its options say.
    pub read_only_sessions: Support,
    /// Whether settings, locks and temporary tables stay with a session. They do not behind a pooler that shares
    /// connections.
    pub own_sessions: Support,
}

/// Why a driver has no read-only sessions, unless it says otherwise.
const WRITES: &str = "its driver opens no sessions in which the server refuses to write; allow writes with --write, or \
                      'write = true' in the file of the workload";

/// Why most clients cannot share a thread.
const BLOCKS: &str = "each request blocks the thread of its session";

impl Capabilities {
    /// The capabilities of a client that prepares statements and can also write values into their text.
    pub fn of_sql(pipelining: Support) -> Self {
        Self {
            prepared_statements: Support::Native,
            literals: Support::Native,
            pipelining,
            estimates: Support::no("its driver does not read the optimizer's estimates"),
            latin1: Support::no(
                "a table has the character set of its database, which Kurabe does not create",
            ),
            is_application: false,
            is_temporary: false,
            shared_threads: Support::no(BLOCKS),
            read_only_sessions: Support::no(WRITES),
            own_sessions: Support::Native,
        }
    }

    /// The capabilities of a database without statements; `engine` names it in the reason.
    pub fn without_statements(engine: &str, pipelining: Support) -> Self {
        let no = Support::No(format!("{engine} has no statements to prepare"));
        Self {
            prepared_statements: no.clone(),
            literals: no,
            pipelining,
            estimates: Support::No(format!("{engine} has no optimizer that estimates rows")),
            latin1: Support::No(format!("{engine} has no character sets")),
            is_application: false,
            is_temporary: false,
            shared_threads: Support::no(BLOCKS),
            read_only_sessions: Support::no(WRITES),
            own_sessions: Support::Native,
        }
    }

    /// The same capabilities, of sessions that can share a thread.
    #[must_use]
    pub fn sharing_threads(self) -> Self {
        Self { shared_threads: Support::Native, ..self }
    }

    /// The capability of this kind.
    pub fn get(&self, capability: Capability) -> &Support {
        match capability {
            Capability::PreparedStatements => &self.prepared_statements,
            Capability::Literals => &self.literals,
            Capability::Pipelining => &self.pipelining,
            Capability::Estimates => &self.estimates,
            Capability::Latin1 => &self.latin1,
            Capability::ReadOnlySessions => &self.read_only_sessions,
            Capability::OwnSessions => &self.own_sessions,
        }
    }
}

/// A capability that a workload may need of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// [`Capabilities::prepared_statements`].
    PreparedStatements,
    /// [`Capabilities::literals`].
    Literals,
    /// [`Capabilities::pipelining`].
    Pipelining,
    /// [`Capabilities::estimates`].
    Estimates,
    /// [`Capabilities::latin1`].
    Latin1,
    /// [`Capabilities::read_only_sessions`].
    ReadOnlySessions,
    /// [`Capabilities::own_sessions`].
    OwnSessions,
}

/// How a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Time limit of connecting, and of each reply after that.
    pub timeout: Duration,
    /// Whether a reply may take as long as the server works, such as on an index: only connecting has a time limit.
    pub long_replies: bool,
    /// The largest expected reply, in bytes. A reply that exceeds it by more than a fixed amount fails.
    pub largest_answer: u64,
    /// How the connection compresses what both ends send.
    pub compression: Compression,
    /// What its statements may do.
    pub access: Access,
    /// The trial to which the session belongs, or 0: [`statements`](crate::statements) ends what it runs if that fails.
    pub trial: u64,
}

/// What the statements of a session may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Whatever its user may do.
    #[default]
    ReadWrite,
    /// Read: in every transaction of the session, the server refuses what changes data, with an error of kind
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly). Only if [`Capabilities::read_only_sessions`] says so. A server's
    /// read-only transactions still allow some side effects, such as locks.
    ReadOnly,
}

/// The values of [`ConnectOptions::default`], in nanoseconds and bytes.
static TIMEOUT: AtomicU64 = AtomicU64::new(30_000_000_000);
static LARGEST_ANSWER: AtomicU64 = AtomicU64::new(0);
static LONG_REPLIES: AtomicBool = AtomicBool::new(false);

/// The time limit of a reply that may take as long as the server works.
const LONG: Duration = Duration::from_secs(30 * 24 * 3_600);

impl ConnectOptions {
    /// The default options with another time limit.
    pub fn within(timeout: Duration) -> Self {
        Self { timeout, ..Self::default() }
    }

    /// Makes its limits the defaults of this process. A program calls it once, before it connects to anything.
    pub fn make_default(self) {
        TIMEOUT.store(u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        LARGEST_ANSWER.store(self.largest_answer, Ordering::Relaxed);
        LONG_REPLIES.store(self.long_replies, Ordering::Relaxed);
    }

    /// The time limit of a reply.
    pub fn reply_timeout(&self) -> Duration {
        if self.long_replies { LONG } else { self.timeout }
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_nanos(TIMEOUT.load(Ordering::Relaxed)),
            largest_answer: LARGEST_ANSWER.load(Ordering::Relaxed),
            long_replies: LONG_REPLIES.load(Ordering::Relaxed),
            compression: Compression::Off,
            access: Access::ReadWrite,
            trial: 0,
        }
    }
}

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
}
