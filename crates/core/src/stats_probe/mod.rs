//! What an engine says of itself: its own counters around a trial, and what its sessions were doing meanwhile.
//!
//! A [`StatsProbe`] asks over a connection of its own, that no client uses. What it is told is recorded in the engine's own
//! words beside ours, with how far each counter reaches: one of the whole server holds other people's work too. What is
//! not told is said, with the reason.

mod meter;
mod statement;
mod told;
mod waits;

pub use meter::{EngineCount, Counter, CounterScope};
pub use statement::{MOST, StatementUse, TEXT, shortened};
pub use told::{EngineUse, Unavailable, Reading};
pub use waits::{WaitState, EngineWaits, SessionSample, WaitGroup};

use crate::error::Result;

/// Asks a server, over a connection of its own, what it did for a trial. It is opened before the trial's first client
/// connects, so that it can tell their sessions from those that were there before.
pub trait StatsProbe: Send {
    /// Reads what is exact at this moment.
    ///
    /// # Errors
    /// The server's error. What this user may not read is no error but [`Unavailable`].
    fn snapshot(&mut self, point: SnapshotPoint, clients: &Clients) -> Result<Reading>;

    /// Looks what the clients' sessions are doing now.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason where the engine cannot be asked, or this user may
    /// not ask; or the server's error.
    fn sample_sessions(&mut self, clients: &Clients) -> Result<Vec<SessionSample>>;

    /// The local port of its connection, where that is TCP: what goes over it is no client's.
    fn port(&self) -> Option<u16> {
        None
    }
}

/// When a reading is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotPoint {
    /// No client has connected yet.
    Before,
    /// All clients are connected and warm, and stand at the gate.
    Gate,
    /// All clients have made their last transaction and stand; their connections are open.
    End,
    /// All clients have closed their connections: what sessions tell late has been told.
    After,
}

/// What a witness may know of the trial's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// How many there are.
    pub count: u64,
    /// Whether each keeps one connection for the whole trial.
    pub kept: bool,
}
