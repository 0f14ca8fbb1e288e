//! What a database must offer to be measured: a [`Driver`] opens [`Session`]s, a [`Namespace`] keeps house.

use crate::collection::Collection;
use crate::durability::DurabilityClass;
use crate::error::{Error, Result};
use crate::facts::ServerFacts;
use crate::observation::Endpoint;
use crate::operation::Operation;
use crate::value::{Reply, Value};
use crate::stats_probe::StatsProbe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Speaks to one target. Shared by all clients of a trial.
pub trait Driver: Send + Sync {
    /// Reads from the server what decides its figures: version, settings, durability class, limits.
    ///
    /// # Errors
    /// Where the server cannot be reached or does not let itself be asked.
    fn describe(&self) -> Result<ServerFacts>;

    /// Whether this database has the operation, natively. Never emulated in silence.
    fn supports(&self, operation: &Operation) -> Support;

    /// What this client and protocol can do beside single operations.
    fn capabilities(&self) -> Capabilities;

    /// Where its server listens, for whoever looks what the server's processes do meanwhile.
    fn endpoint(&self) -> Endpoint {
        Endpoint::Elsewhere("its driver does not say where it listens".to_owned())
    }

    /// Has every later connection acknowledge writes in this durability class, by what a session may set. Settings
    /// of the server are its owner's and are left alone.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where that takes a setting that no session may change, with the
    /// settings as they are; or as for [`Driver::describe`].
    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        let facts = self.describe()?;
        if facts.durability == Some(class) {
            return Ok(());
        }
        let hint = "ask the server's owner, or leave --durability out";
        Err(facts.refuse_durability(class, "and no session can change that", hint))
    }

    /// Opens a connection, authenticates and makes it ready for its first operation.
    ///
    /// # Errors
    /// Where the server cannot be reached, refuses, or is full.
    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>>;

    /// Opens a connection that is no client's, over which the engine is asked what it did for a trial.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason where it cannot be asked; or as for
    /// [`Driver::connect`]. The trial goes on without.
    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        let _ = options;
        Err(Error::unsupported("its driver does not ask it"))
    }

    /// Opens the part of the database in which Kurabe may work.
    ///
    /// # Errors
    /// As for [`Driver::connect`].
    fn namespace(&self) -> Result<Box<dyn Namespace>>;
}

/// One open connection of a driver, used by one client at a time.
pub trait Session: Send {
    /// Turns an operation into what the database executes, and announces it to the server where the protocol has
    /// prepared statements (one round trip).
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason, or the server's error.
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared>;

    /// Gets ready to send an operation as a text in which its parameters stand as literals. Nothing is announced to the
    /// server: [`Session::execute`] makes the text for the parameters that it is given, and the server parses it, each
    /// time anew. The answer is the same as that of [`Session::prepare`]'s statement.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where [`Capabilities::literals`] says no, or where this operation cannot be
    /// said that way.
    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        let _ = operation;
        Err(Error::unsupported("this client sends values apart from the statement only"))
    }

    /// Executes a prepared operation of this session and replaces the content of `out` by its answer.
    ///
    /// # Errors
    /// The server's error with its code; the session stays usable unless the error's kind is
    /// [`ConnectionLost`](crate::ErrorKind::ConnectionLost) or [`Protocol`](crate::ErrorKind::Protocol).
    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()>;

    /// Executes a prepared operation once for each of `out`, all requests sent before the first answer is awaited.
    /// `parameters` holds those of the first request, of the second, … Each request stands alone: it is no transaction
    /// of all, and one that the server refuses does not take back the others.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where [`Capabilities::pipelining`] says no. Otherwise the first error
    /// of any request, after the answers to all have been received: replies of requests that were refused are empty,
    /// the others hold their answers. The session stays usable as after [`Session::execute`].
    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        let _ = (prepared, parameters, out);
        Err(Error::unsupported("this client awaits each answer before it sends the next request"))
    }

    /// Has the server take into its statistics at once what this session did, where it would take its time: so that it is
    /// not taken for a trial's that comes after. Costs a round trip where it does anything.
    ///
    /// # Errors
    /// Where the connection is lost.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// How long the parts of opening this connection took; `None` where its client does not say.
    fn connect_times(&self) -> Option<ConnectTimes> {
        None
    }

    /// What the server counts of the cache in which the collection lies.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) where it is no cache, or none that counts; the server's error.
    fn cache_counters(&mut self, collection: &Collection) -> Result<CacheCounters> {
        let _ = collection;
        Err(Error::unsupported("this is no cache that counts what it is asked"))
    }

    /// Gives a prepared operation back, on the server too where it keeps one.
    ///
    /// # Errors
    /// The server's error.
    fn release(&mut self, prepared: Prepared) -> Result<()>;

    /// Ends the connection the way the protocol asks for; where it asks for nothing, dropping the connection says it.
    ///
    /// # Errors
    /// Where the goodbye could not be said; the connection is gone all the same.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    /// Ends the connection as [`Session::close`] does, waits until the server has ended it too, and checks that the
    /// server sent nothing that was not asked for: an answer that came twice would otherwise be lost here. Clients that
    /// cannot check it only close.
    ///
    /// # Errors
    /// [`Protocol`](crate::ErrorKind::Protocol) where the server sent more than was asked for,
    /// [`Timeout`](crate::ErrorKind::Timeout) where it does not end the connection; or as for [`Session::close`].
    fn close_checked(self: Box<Self>) -> Result<()> {
        self.close()
    }
}

/// The part of a database that Kurabe made and may touch: collections whose name starts with
/// [`NAMESPACE_PREFIX`](crate::collection::NAMESPACE_PREFIX) and that stand in Kurabe's own marker.
pub trait Namespace: Send {
    /// Claims the namespace for one run until this value is dropped (or the connection ends, however).
    ///
    /// # Errors
    /// [`InUse`](crate::ErrorKind::InUse) where another run holds it; says which where that is known.
    fn claim(&mut self, run: &str) -> Result<()>;

    /// Makes the collection, empty, and enters it in the marker; replaces one that Kurabe made before.
    ///
    /// # Errors
    /// [`NotOurs`](crate::ErrorKind::NotOurs) where something of that name exists that the marker does not know.
    fn create(&mut self, collection: &Collection) -> Result<()>;

    /// Empties a collection of ours.
    ///
    /// # Errors
    /// As for [`Namespace::create`].
    fn clear(&mut self, collection: &Collection) -> Result<()>;

    /// Has the server gather what its planner has to know of a collection of ours that was filled just now, so that no
    /// trial is of a planner which guesses, nor of one that learns in its middle. Nothing where there is no such planner.
    ///
    /// # Errors
    /// As for [`Namespace::create`].
    fn analyse(&mut self, collection: &Collection) -> Result<()> {
        let _ = collection;
        Ok(())
    }

    /// What the server's planner does not know of a table, anybody's, with what to do, as a sentence; `None` where it
    /// knows enough, where there is no such table, and where the planner needs to know nothing. Changes nothing.
    ///
    /// # Errors
    /// The server's error.
    fn unanalysed(&mut self, table: &str) -> Result<Option<String>> {
        let _ = table;
        Ok(None)
    }

    /// Removes a collection of ours and its entry in the marker.
    ///
    /// # Errors
    /// As for [`Namespace::create`].
    fn remove(&mut self, name: &str) -> Result<()>;

    /// The names of all collections that the marker holds, of this run and of earlier ones that died.
    ///
    /// # Errors
    /// The server's error.
    fn list(&mut self) -> Result<Vec<String>>;

    /// Removes the marker itself; called when it holds nothing any more.
    ///
    /// # Errors
    /// The server's error.
    fn finish(&mut self) -> Result<()>;
}

/// What a cache counts, since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Requests for a value that was there.
    pub hits: u64,
    /// Requests for one that was not.
    pub misses: u64,
    /// Values thrown out to make room.
    pub evictions: u64,
    /// Values that it holds now.
    pub items: u64,
}

/// Names a prepared operation within its session. The number is the driver's own.
#[derive(Debug, PartialEq, Eq)]
pub struct Prepared(pub usize);

/// Whether a database has an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It has it.
    Native,
    /// It has not; the reason, as a clause: "memcached finds a value by its whole key only".
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

/// What a driver can do beside executing one operation after the other.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Whether an operation can be announced to the server once and executed many times, so that preparing it for each
    /// request and preparing it once differ.
    pub prepared_statements: Support,
    /// Whether an operation can be a text that holds its parameters as literals ([`Session::prepare_literal`]).
    pub literals: Support,
    /// Whether requests can be sent before the answers to earlier ones have come ([`Session::pipeline`]).
    pub pipelining: Support,
    /// Whether the target is an application that serves experiments (`docs/app.openapi.yaml`) and no database: its
    /// sessions have the operation [`Page`](Operation::Page) alone, and it keeps its own data.
    pub is_application: bool,
    /// Whether its database was made for this driver and goes with it, so that opening its URL again makes another one.
    pub is_temporary: bool,
}

impl Capabilities {
    /// Those of a client that prepares statements and can also write values into their text.
    pub fn of_sql(pipelining: Support) -> Self {
        let (prepared_statements, literals) = (Support::Native, Support::Native);
        Self { prepared_statements, literals, pipelining, is_application: false, is_temporary: false }
    }

    /// Those of a database that has no statements; `engine` names it in the reason.
    pub fn without_statements(engine: &str, pipelining: Support) -> Self {
        let no = Support::No(format!("{engine} has no statements to prepare"));
        Self {
            prepared_statements: no.clone(),
            literals: no,
            pipelining,
            is_application: false,
            is_temporary: false,
        }
    }

    /// The capability of this kind.
    pub fn get(&self, capability: Capability) -> &Support {
        match capability {
            Capability::PreparedStatements => &self.prepared_statements,
            Capability::Literals => &self.literals,
            Capability::Pipelining => &self.pipelining,
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
}

/// How a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The longest that connecting may take, and the longest that one answer may take afterwards, however it arrives.
    pub timeout: Duration,
    /// The largest answer that is going to be asked for, in bytes. One that is larger by a fixed amount fails.
    pub largest_answer: u64,
}

/// What [`ConnectOptions::default`] gives: nanoseconds, and bytes.
static TIMEOUT: AtomicU64 = AtomicU64::new(30_000_000_000);
static LARGEST_ANSWER: AtomicU64 = AtomicU64::new(0);

impl ConnectOptions {
    /// The usual options with another time limit.
    pub fn within(timeout: Duration) -> Self {
        Self { timeout, ..Self::default() }
    }

    /// Makes these the options of this process, which [`ConnectOptions::default`] gives from now on: a program sets
    /// them once, before it connects to anything.
    pub fn make_default(self) {
        TIMEOUT.store(u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        LARGEST_ANSWER.store(self.largest_answer, Ordering::Relaxed);
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_nanos(TIMEOUT.load(Ordering::Relaxed)),
            largest_answer: LARGEST_ANSWER.load(Ordering::Relaxed),
        }
    }
}

/// How long the parts of opening a connection took, as its client saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectTimes {
    /// To reach the server: TCP's handshake or the Unix socket. A native client looks a name up once for all connections.
    pub reach: Duration,
    /// To agree on encryption, with the request for it where the protocol has one; `None` without TLS.
    pub tls: Option<Duration>,
    /// To prove who we are. None passes where PostgreSQL asks for no proof; MySQL's answer, proof or not, counts here.
    pub authenticate: Duration,
    /// What the server took to have a session, beside that: MySQL's thread, before its greeting; PostgreSQL's process and
    /// all that it does before it is ready.
    pub set_up: Duration,
}
