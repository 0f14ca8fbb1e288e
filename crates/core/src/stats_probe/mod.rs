//! A database server's own statistics: counters before and after a trial, and samples of what its sessions do.
//!
//! A [`StatsProbe`] queries the server over a separate connection. Results keep the server's own names, beside
//! Kurabe's. Each counter has a [scope](CounterScope): one of the whole server includes other users' work. What
//! the server does not report is recorded as [`Unavailable`], with the reason.

mod counter;
mod reading;
mod statement;
mod waits;

pub use counter::{Counter, CounterScope, EngineCount};
pub use reading::{EngineUse, Reading, Unavailable};
pub use statement::{MAX, StatementUse, TEXT, shortened};
pub use waits::{EngineWaits, SessionSample, WaitGroup, WaitPoint, WaitState};

use crate::error::Result;

/// Reads a server's statistics over a separate connection.
///
/// It is opened before the trial's first client connects, so that it can distinguish the clients' sessions.
pub trait StatsProbe: Send {
    /// Reads the counters that are exact at this point of the trial.
    ///
    /// # Errors
    /// The server's error. Statistics that this user may not read are not an error but [`Unavailable`].
    fn snapshot(&mut self, point: SnapshotPoint, clients: &Clients) -> Result<Reading>;

    /// Samples what the clients' sessions do now.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason if there are no such statistics, or this user
    /// may not read them; or the server's error.
    fn sample_sessions(&mut self, clients: &Clients) -> Result<Vec<SessionSample>>;

    /// The server's own work in the background at the last sample of sessions, in the server's terms, such as
    /// `checkpointer`; empty if there was none, or if the server does not report it.
    fn background(&self) -> Vec<String>;

    /// The local TCP port of its connection, if it uses TCP. The traffic of that port is not a client's.
    fn port(&self) -> Option<u16>;
}

/// When a snapshot is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotPoint {
    /// Before any client connects.
    Before,
    /// All clients are connected and warmed up, and wait at the gate.
    Gate,
    /// All clients have made their last transaction; their connections are still open.
    End,
    /// All clients have disconnected. Statistics that sessions report late are complete.
    After,
}

/// What a stats probe knows of the trial's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// The number of clients.
    pub count: u64,
    /// Whether each client keeps one connection for the whole trial.
    pub kept: bool,
}
