//! The web tier: an application that serves experiments' transactions over HTTP/1.1, so that any load generator can
//! drive them. `docs/app.openapi.yaml` describes its pages.
//!
//! `hyper` serves all clients on one thread. A request that needs the database goes through a bounded queue to a
//! session thread, which blocks on its own connection and sends back the response. Clients that are idle or slow are
//! closed after a time limit ([`Options`]).

mod connection;
mod metrics;
mod queue;
mod response;
mod router;
mod server;
mod slot;

pub use server::{Listening, check_address};
pub use slot::PageSummary;

use kurabe_core::Result;
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::experiment::{DatasetState, OperationInfo, Workload};
use kurabe_core::facts::ServerFacts;
use kurabe_core::observation::Endpoint;
use kurabe_core::page::ServedPages;
use std::sync::Arc;
use std::time::Duration;

/// Requests from which CPU time per request is reported: the share of starting and waiting is then small.
const ENOUGH: u64 = 1_000;

/// An application, before it listens.
pub struct Application {
    /// Opens a connection to the database.
    pub connect: Connect,
    /// The database's name in responses: its URL without a password.
    pub target: String,
    /// What the database reported of itself.
    pub facts: ServerFacts,
    /// The experiments that are served, with their data loaded.
    pub served: Vec<Served>,
    /// The experiments that are not served, each with the reason.
    pub unavailable: Vec<(&'static str, String)>,
    /// Where the database listens; reported to clients if only this machine reaches it.
    pub database: Endpoint,
    /// How it serves.
    pub options: Options,
}

/// Opens a connection to a database.
pub type Connect = Box<dyn Fn(&ConnectOptions) -> Result<Box<dyn Session>> + Send + Sync>;

/// An experiment that is served.
#[derive(Clone)]
pub struct Served {
    /// Its name: the first part of its pages' paths.
    pub name: &'static str,
    /// Its operations. Those that have a page and change the database are requested by POST.
    pub operations: &'static [OperationInfo],
    /// Its pages: the second part of the paths.
    pub pages: ServedPages,
    pub workload: Arc<dyn Workload>,
    /// The state of its data.
    pub state: Arc<DatasetState>,
}

impl Served {
    /// Its operations that have a page.
    pub fn operations(&self) -> impl Iterator<Item = &'static OperationInfo> {
        self.operations.iter().filter(|operation| self.pages.names.contains(&operation.name))
    }
}

/// How an application serves.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a connection to the database is kept.
    pub connection: Connection,
    /// Requests that are processed at once.
    pub workers: usize,
    /// Requests that may wait for a worker; further ones are refused.
    pub queue: usize,
    /// The time limit for the head of a request, from its first byte to its last.
    pub head_time: Duration,
    /// The time after which a client's connection without a request is closed.
    pub idle_time: Duration,
    /// Seed of the inputs that the application chooses.
    pub seed: u64,
    /// Which of several applications of one database it is.
    pub part: Part,
    /// Host names by which clients may address it, besides IP addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Whether pages that change the database are served by GET too, for load generators that cannot POST.
    pub allow_get_writes: bool,
    /// Whether clients of other accounts of this machine are served: the application has the rights of its own account at the
    /// database, and asks for no password.
    pub serves_other_users: bool,
}

/// One of several applications that serve the same data: each is other clients of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: usize,
    /// The number of applications.
    pub of: usize,
}

impl Part {
    /// The only one.
    pub const WHOLE: Self = Self { number: 1, of: 1 };
}

/// How long a connection to the database is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Opened and closed for every request.
    PerRequest,
    /// Each worker keeps its own.
    Kept,
    /// Workers share this many.
    Pool(usize),
}

impl Options {
    /// The number of session slots: the clients that the application is to the database. Each has a thread.
    pub fn session_slots(&self) -> usize {
        match self.connection {
            Connection::PerRequest | Connection::Kept => self.workers,
            Connection::Pool(size) => size,
        }
    }

    /// Requests that wait for a session slot at most. Workers without a slot hold one each.
    fn waiting(&self) -> usize {
        self.queue + self.workers.saturating_sub(self.session_slots())
    }
}

/// What an application did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Requests that were answered, with any status.
    pub answered: u64,
    /// Requests and connections that were refused because there were too many.
    pub refused: u64,
    /// Requests that failed in the database or its client, or with wrong data.
    pub failed: u64,
    /// Requests that were not valid HTTP, too slow, too long or for another host.
    pub malformed: u64,
    /// Requests that a session slot processed.
    pub processed: u64,
    /// The time that those waited for a slot, together.
    pub queue_wait: Duration,
    /// The longest of these times.
    pub longest_wait: Duration,
    /// CPU time of the process while it served, in nanoseconds.
    pub cpu_ns: u64,
    /// CPU time within database calls, in nanoseconds, estimated from a sample of them.
    pub database_cpu_ns: u64,
    /// What each session slot did on each page that uses the database.
    pub pages: Vec<PageSummary>,
}

impl Outcome {
    /// CPU time per answered request without that of database calls, in microseconds; `None` for too few requests.
    pub fn own_cpu_us(&self) -> Option<f64> {
        let own = self.cpu_ns.saturating_sub(self.database_cpu_ns);
        (self.answered >= ENOUGH).then(|| own as f64 / self.answered as f64 / 1e3)
    }

    /// The mean time that a request waited for a session slot; `None` without such requests.
    pub fn mean_wait(&self) -> Option<Duration> {
        let ns = (self.queue_wait.as_nanos() as u64).checked_div(self.processed)?;
        Some(Duration::from_nanos(ns))
    }
}
