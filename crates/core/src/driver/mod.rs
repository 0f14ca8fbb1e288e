//! The interface of a database driver: a [`Driver`] opens [`Session`]s; a [`Namespace`] creates and removes
//! collections.
//!
//! What only some databases have is behind an accessor, such as [`Session::bulk`], which returns a small trait. An accessor
//! has no default: a wrapper that forgets one does not compile. [`without!`](crate::without) says what there is not.

mod capabilities;
mod session;
mod without;

pub use capabilities::{Capabilities, Capability, Pace};
pub use session::{Bulk, ConnectTimes, Prepared, Session};

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
use crate::transfer::Transfer;
use crate::value::Value;
use std::path::PathBuf;
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
    fn supports_transfer(&self, transfer: Transfer) -> Support;

    /// Whether its connections can compress what both ends send ([`ConnectOptions::compression`]). May ask the server; of
    /// one that does not run yet, it says what the client can. Never called for [`Compression::Off`].
    fn supports_compression(&self, compression: Compression) -> Support;

    /// Where the server listens. Observers find its processes by that.
    fn endpoint(&self) -> Endpoint;

    /// Makes every later connection acknowledge writes in this durability class, with settings of the session
    /// only. Settings of the server are not changed.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the current settings if the class needs a setting that
    /// a session cannot change; or as for [`Driver::describe`].
    fn require_durability(&mut self, class: DurabilityClass) -> Result<()>;

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
    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>>;

    /// Opens a probe for each server of this target that may have other users and keeps values in a limited memory.
    /// None for databases that store values on disk.
    fn limited_servers(&self, options: &ConnectOptions) -> Result<Vec<LimitedServer>>;

    /// Its tables in other servers, and theirs in it.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if Kurabe knows no way to link this database.
    fn links(&self) -> Result<&dyn Links>;

    /// Gives the driver the address of a remote server, to which later namespaces and sessions can link. Nothing is
    /// contacted yet. An address that it cannot link to is a reason for [`Links::supports`]. A driver without links
    /// ignores it.
    fn add_remote(&mut self, remote: RemoteAddress);

    /// Opens the part of the database that Kurabe may change.
    fn namespace(&self) -> Result<Box<dyn Namespace>>;

    /// The engine's own programs that dump and restore tables.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if there are none, or they are not installed; or
    /// as for [`Driver::connect`].
    fn dump_tool(&self) -> Result<Box<dyn DumpTool>>;
}

/// [`Driver::supports_transfer`] of a driver without [`Bulk`].
pub fn no_transfer(transfer: Transfer) -> Support {
    Support::no(match transfer {
        Transfer::Read(_) => "its driver does not read a collection as a stream of rows",
        Transfer::Write => "its driver has no bulk write other than inserts of many rows",
    })
}

/// [`Driver::supports_compression`] of a driver without compression.
pub fn no_compression(driver: &dyn Driver, compression: Compression) -> Support {
    Support::No(match driver.endpoint() {
        Endpoint::InProcess => "the database runs in this process, and sends nothing".to_owned(),
        _ => format!("its protocol, or the client used for it, has no compression by {compression}"),
    })
}

/// [`Driver::require_durability`] where no setting of a session changes the class.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) if the server has another class; or as for [`Driver::describe`].
pub fn only_class(driver: &dyn Driver, class: DurabilityClass) -> Result<()> {
    let facts = driver.describe()?;
    if facts.durability == Some(class) {
        return Ok(());
    }
    let hint = "ask the server's administrator, or omit --durability";
    Err(facts.refuse_durability(class, "and no session can change that", hint))
}

/// Whether a database supports an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// The driver does it.
    Native,
    /// The driver does not do it; the reason, as a clause: "memcached finds a value by its whole key only".
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

/// A session with a cache that counts its hits.
pub trait Cache {
    /// The server's counters of the cache that holds the collection.
    fn counters(&mut self, collection: &Collection) -> Result<CacheCounters>;
}

/// A cache's counters since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
    /// Items stored now.
    pub items: u64,
}

/// A database that can be linked to others.
pub trait Links {
    /// The file of an embedded database, which another database may attach; `None` if it has no such file.
    fn file(&self) -> Option<PathBuf>;

    /// The driver of a remote server, for what the client does there over connections of its own.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if the run has no such server.
    fn remote(&self, server: RemoteServer) -> Result<&dyn Driver>;

    /// Whether its server can read collections of a remote server by this link. May ask the server. If the address of
    /// the remote is not known yet, it is not considered.
    fn supports(&self, server: RemoteServer, link: &Link) -> Result<Support>;
}

/// The error of a run without this remote.
///
/// # Errors
/// Always.
pub fn no_remote<T>(server: RemoteServer) -> Result<T> {
    Err(Error::unsupported(format!("this run has no remote '{}'", server.name())))
}

/// A session whose optimizer tells its estimates.
pub trait Planner {
    /// Asks the optimizer how many rows an operation with these parameters would return. The operation is planned and
    /// not executed.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the plan has no such estimate; the server's error.
    fn estimate(&mut self, operation: &Operation, parameters: &[Value<'_>]) -> Result<RowEstimate>;
}

/// The optimizer's estimate of an operation's rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowEstimate {
    /// The number of rows that the optimizer expects the operation to return.
    pub rows: f64,
    /// How long planning took, as the server reports it; `None` if it does not.
    pub planning: Option<Duration>,
}

/// The statistics by which a server plans.
pub trait TableStatistics {
    /// Updates the statistics of a collection that was just filled (`ANALYZE`), so that no trial runs with missing or
    /// changing statistics.
    fn analyse(&mut self, collection: &Collection) -> Result<()>;

    /// Stops the server from updating the statistics of a collection by itself. Only [`TableStatistics::analyse`]
    /// updates them from then on. Does nothing on databases that never do so.
    fn hold(&mut self, collection: &Collection) -> Result<()>;

    /// Which statistics of a table the planner lacks, and what to do, as a sentence. `None` if they are complete, or
    /// there is no such table. Changes nothing.
    fn missing(&mut self, table: &str) -> Result<Option<String>>;
}

/// A session that sends messages of its protocol as they are, and shows what arrives.
pub trait RawMessages {
    /// Sends messages, and passes on what arrives, in pieces of any size, until `receive` says that the answer is complete.
    /// `receive` may write further messages into its second argument. Of HTTP it is one request without `Host` and
    /// `Authorization`, which the session adds.
    ///
    /// # Errors
    /// The error of `receive`, or that of the connection, after which the session must not be used.
    fn exchange_raw(&mut self, messages: &[u8], receive: &mut Receive<'_>) -> Result<()>;

    /// The capability flags of MySQL's protocol that both ends have; 0 for other protocols.
    fn flags(&mut self) -> u32;

    /// The database that each message must name; `None` for protocols whose connections have one.
    fn database(&mut self) -> Option<&str>;
}

/// Reads a piece of an answer. Returns whether the answer is complete.
pub type Receive<'a> = dyn FnMut(&[u8], &mut Vec<u8>) -> Result<bool> + 'a;

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
    fn clear(&mut self, collection: &Collection) -> Result<()>;

    /// Whether rows stay in the order in which they were inserted; if not, they are stored in the order of their key,
    /// whatever order they come in.
    fn keeps_insertion_order(&self) -> bool;

    /// The text before the key of each row of a collection that was just created or cleared, where rows have keys in one
    /// name space of the server: other programs read the rows by it. `None` where a collection has a place of its own.
    fn key_prefix(&mut self, collection: &Collection) -> Result<Option<String>>;

    /// The statistics of its planner; `None` on databases without such statistics.
    fn statistics(&mut self) -> Option<&mut dyn TableStatistics>;

    /// Removes a collection that Kurabe created, and its entry in the ownership table.
    fn remove(&mut self, name: &str) -> Result<()>;

    /// The names of all collections in the ownership table, including those of earlier runs that did not clean
    /// up.
    fn list(&mut self) -> Result<Vec<String>>;

    /// Removes the ownership table; called when it is empty.
    fn finish(&mut self) -> Result<()>;
}

/// Methods of [`TableStatistics`] that do nothing where there are none.
impl dyn Namespace + '_ {
    /// As [`TableStatistics::analyse`].
    pub fn analyse(&mut self, collection: &Collection) -> Result<()> {
        self.statistics().map_or(Ok(()), |statistics| statistics.analyse(collection))
    }

    /// As [`TableStatistics::hold`].
    pub fn hold_statistics(&mut self, collection: &Collection) -> Result<()> {
        self.statistics().map_or(Ok(()), |statistics| statistics.hold(collection))
    }

    /// As [`TableStatistics::missing`].
    pub fn unanalysed(&mut self, table: &str) -> Result<Option<String>> {
        self.statistics().map_or(Ok(None), |statistics| statistics.missing(table))
    }
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
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly). Only if [`Capabilities::read_only_sessions`](Capabilities::read_only_sessions) says so. A server's
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
