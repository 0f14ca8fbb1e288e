//! Counters of database servers, each with the server's own name and its scope.

use crate::named::named;
use serde::{Deserialize, Serialize};

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
