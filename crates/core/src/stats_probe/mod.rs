//! A database server's own statistics: counters before and after a trial, and samples of what its sessions do.
//!
//! A [`StatsProbe`] queries the server over a separate connection. Results keep the server's own names, beside
//! Kurabe's. Each counter has a [scope](CounterScope): one of the whole server includes other users' work. What
//! the server does not report is recorded as [`Unavailable`], with the reason.

mod reading;
mod waits;

pub use reading::{EngineUse, Reading, Unavailable};
pub use waits::{EngineWaits, SessionSample, WaitGroup, WaitPoint, WaitState};

use crate::error::Result;
use crate::named::named;
use serde::{Deserialize, Serialize};

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

named! {
    /// A server counter that helps explain results.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Counter {
        /// Bytes written to the recovery log: redo log, write-ahead log, append-only file.
        LogBytes => "log bytes",
        /// Bytes written to a second log for replication and point-in-time recovery.
        BinlogBytes => "binary log bytes",
        /// Bytes written to all files, including logs.
        FileBytes => "file bytes",
        /// Pages requested from the buffer pool.
        PagesRequested => "pages requested",
        /// Of these, pages that were not in the buffer pool.
        PagesMissed => "pages missed",
        /// Rows, documents or index entries that were examined.
        RowsExamined => "rows examined",
        /// Rows returned to clients.
        RowsReturned => "rows returned",
        /// How often a session waited for a lock.
        LockWaits => "lock waits",
        /// Total time that sessions waited for locks, in nanoseconds.
        LockNs => "time in lock waits",
        /// Temporary tables or files on disk.
        Temporary => "temporary files",
        /// Checkpoints, or complete copies of the data written to disk.
        Checkpoints => "checkpoints",
        LogSyncs => "log syncs",
        /// Items evicted because memory was full.
        Evictions => "evictions",
        /// Pages changed in the buffer pool.
        PagesChanged => "pages changed",
        /// Transactions that began.
        Transactions => "transactions",
    }
    /// Its name in sentences.
    pub fn word;
}

/// What a counter includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterScope {
    /// The sessions of this trial's clients.
    Clients,
    /// All sessions of this database, including other users'.
    Database,
    /// The whole server, including other users' work and background tasks.
    Server,
    /// The process that contains client and database.
    Process,
}

/// A counter's value, or its increase within a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineCount {
    pub what: Counter,
    pub value: u64,
    /// Its name in the server's own terms.
    pub from: String,
    /// What it includes.
    pub scope: CounterScope,
    /// Whether it includes warm-up, since sessions report some counters only when they end.
    pub warmup: bool,
}

impl EngineCount {
    /// A counter with its name in the server's own terms.
    pub fn new(what: Counter, value: u64, from: &str, scope: CounterScope) -> Self {
        Self { what, value, from: from.to_owned(), scope, warmup: false }
    }
}

/// The maximum number of characters of a statement.
pub const TEXT: usize = 200;

/// The maximum number of statements, and of groups of session samples.
pub const MAX: usize = 12;

/// A server's statistics of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementUse {
    /// Its text without values, in the server's normalised form; at most [`TEXT`] characters.
    pub text: String,
    /// The number of executions.
    pub calls: u64,
    /// The total execution time on the server.
    pub time_ns: u64,
    /// The CPU time of that; `None` if the server does not account it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_examined: Option<u64>,
    /// Rows returned or changed.
    pub rows: u64,
}

impl StatementUse {
    /// Adds other executions of the same statement. A figure that either lacks is unknown in the sum.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.time_ns += other.time_ns;
        self.rows += other.rows;
        let sum = |(a, b): (u64, u64)| a + b;
        self.rows_examined = self.rows_examined.zip(other.rows_examined).map(sum);
        self.cpu_ns = self.cpu_ns.zip(other.cpu_ns).map(sum);
    }
}

/// The first characters of a statement on one line, with each value replaced by `?`. Some servers show a statement
/// with its values, which would make every execution a different statement and reveal data.
pub fn shortened(statement: &str) -> String {
    let mut out = String::new();
    let mut letters = statement.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        if out.len() > TEXT * 4 {
            break;
        }
        if letter == '\'' {
            // Skips to the closing quote. A truncated literal has none.
            while let Some(inside) = letters.next() {
                match inside {
                    '\'' if letters.peek() != Some(&'\'') => break,
                    '\'' | '\\' => drop(letters.next()),
                    _ => {}
                }
            }
            out.push('?');
        } else if letter.is_ascii_digit() && !before.is_alphanumeric() && !"_$".contains(before) {
            while letters.peek().is_some_and(|next| next.is_ascii_alphanumeric() || *next == '.') {
                letters.next();
            }
            out.push('?');
        } else {
            out.push(letter);
        }
        before = letter;
    }
    let words: Vec<&str> = out.split_whitespace().collect();
    words.join(" ").chars().take(TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_multiline_statement_is_truncated_to_one_line() {
        assert_eq!(shortened("select\n  a"), "select a");
        assert_eq!(shortened(&"ü".repeat(500)).chars().count(), TEXT);
    }

    #[test]
    fn a_statement_is_kept_without_its_values() {
        let shown =
            "UPDATE `kurabe_0_t1` SET `a` = 'it''s \\' secret', b=X'00ff' WHERE `id` = 17 AND c > -1.5e3";
        assert_eq!(shortened(shown), "UPDATE `kurabe_0_t1` SET `a` = ?, b=X? WHERE `id` = ? AND c > -?");
        assert_eq!(shortened("INSERT INTO t VALUES (1, 'cut off in the mid"), "INSERT INTO t VALUES (?, ?");
        assert_eq!(shortened("SELECT \"data\" FROM t WHERE id = $1"), "SELECT \"data\" FROM t WHERE id = $1");
    }
}
