//! The web tier: an application that serves experiments' transactions over HTTP/1.1, so that any load tool can drive
//! them. `docs/app.openapi.yaml` describes what it answers.
//!
//! Workers, threads that hold sessions and block, wait for all connections at one epoll. Whoever is woken by a request reads
//! it, asks the database, and answers, so that a request changes threads once. What comes while all are busy goes into a
//! bounded queue: the next worker that is done lets it in, or the porter where none is done for a while, who also gives up
//! clients that are too slow. The server's half of HTTP is written here over the parser `httparse`, and not
//! taken from a library: pages take no body, so that little of the protocol is left, and a request that comes too slowly
//! is to end with an answer, 408, and not in silence, but only if it has begun.

mod answer;
mod calendar;
mod catalogue;
mod clock;
mod conversation;
mod crew;
mod door;
mod head;
mod host;
mod porter;
mod queue;
mod seat;
mod server;
mod table;

pub use seat::Tally;
pub use server::Listening;

use kurabe_core::Result;
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::experiment::DatasetState;
use kurabe_core::facts::ServerFacts;
use kurabe_core::observation::Endpoint;
use kurabe_core::page::Serve;
use std::sync::Arc;
use std::time::Duration;

/// Requests after which CPU time per request can be said: starting and waiting have a small part in it.
const ENOUGH: u64 = 1_000;

/// An application, before it listens.
pub struct Application {
    /// Opens a connection to the database.
    pub connect: Connect,
    /// How the database is called in answers: its URL without a password.
    pub target: String,
    /// What the database said of itself.
    pub facts: ServerFacts,
    /// The experiments that are served, with their data loaded.
    pub served: Vec<Served>,
    /// The experiments that are not, and why.
    pub absent: Vec<(&'static str, String)>,
    /// Where the database listens; told to clients where it is this machine alone that reaches it.
    pub database: Endpoint,
    /// How.
    pub options: Options,
}

/// Opens a connection to a database.
pub type Connect = Box<dyn Fn(&ConnectOptions) -> Result<Box<dyn Session>> + Send + Sync>;

/// An experiment that is served.
#[derive(Clone)]
pub struct Served {
    /// Its name: the first part of the paths of its pages.
    pub name: &'static str,
    /// Its operations: the second part.
    pub operations: Vec<&'static str>,
    /// Its pages.
    pub pages: Arc<dyn Serve>,
    /// The state of its data.
    pub state: Arc<DatasetState>,
}

/// How an application serves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a connection to the database lives.
    pub connection: Connection,
    /// Threads that ask the database.
    pub workers: usize,
    /// Requests that may wait for a worker; more are refused at once.
    pub queue: usize,
    /// How long the head of a request may take from its first byte to its last.
    pub head_time: Duration,
    /// How long a connection may be open without a request.
    pub idle_time: Duration,
    /// Seeds what workers draw.
    pub seed: u64,
    /// Which of several applications before one database it is.
    pub part: Part,
}

/// One of several applications that serve the same data: each is other clients of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Part {
    /// The only one.
    pub const WHOLE: Self = Self { number: 1, of: 1 };
}

/// How long a connection to the database lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Opened and closed for every request.
    PerRequest,
    /// Each worker keeps its own.
    Kept,
    /// Workers take one of so many, and give it back.
    Pool(usize),
}

impl Options {
    /// How many places for a connection there are.
    pub fn seats(&self) -> usize {
        match self.connection {
            Connection::PerRequest | Connection::Kept => self.workers,
            Connection::Pool(size) => size,
        }
    }
}

/// What an application did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Requests that were answered, however.
    pub answered: u64,
    /// Those that were refused because too many were waiting.
    pub refused: u64,
    /// Those that the database, or what was read from it, let fail.
    pub failed: u64,
    /// Those that were no requests: garbage, too slow, too long.
    pub malformed: u64,
    /// CPU time of the process while it served, in nanoseconds.
    pub cpu_ns: u64,
    /// CPU time within database calls, in nanoseconds, estimated from a sample of them.
    pub database_cpu_ns: u64,
    /// What each place did on each page that asks the database.
    pub tallies: Vec<Tally>,
}

impl Outcome {
    /// CPU time per answered request without that of database calls, in microseconds; none where there were too few
    /// requests to say.
    pub fn own_cpu_us(&self) -> Option<f64> {
        let own = self.cpu_ns.saturating_sub(self.database_cpu_ns);
        (self.answered >= ENOUGH).then(|| own as f64 / self.answered as f64 / 1e3)
    }
}
