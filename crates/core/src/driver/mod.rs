//! The interface of a database driver: a [`Driver`] opens [`Session`]s; a [`Namespace`] creates and removes
//! collections.
//!
//! What only some databases have is behind an accessor, such as [`Session::bulk`], which returns a small trait. An accessor
//! has no default: a wrapper that forgets one does not compile. [`without!`](crate::without) says what there is not.

mod cache;
mod capabilities;
mod links;
mod namespace;
mod options;
mod planner;
mod raw_messages;
mod session;
mod without;

pub use cache::{Cache, CacheCounters};
pub use capabilities::{Capabilities, Capability};
pub use links::{Links, no_remote};
pub use namespace::Namespace;
pub use options::{Access, ConnectOptions};
pub use planner::{Planner, RowEstimate, TableStatistics};
pub use raw_messages::{RawMessages, Receive};
pub use session::{Bulk, ConnectTimes, Prepared, Session};

use crate::compression::Compression;
use crate::dump::DumpTool;
use crate::durability::DurabilityClass;
use crate::error::Result;
use crate::facts::ServerFacts;
use crate::memory::LimitedServer;
use crate::observation::Endpoint;
use crate::operation::Operation;
use crate::remote::RemoteAddress;
use crate::stats_probe::StatsProbe;
use crate::transfer::Transfer;

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
