//! Counters of database servers, each with the server's own name and its scope.

use serde::{Deserialize, Serialize};

/// A server counter that helps explain results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Bytes written to the recovery log: redo log, write-ahead log, append-only file.
    LogBytes,
    /// Bytes written to a second log for replication and point-in-time recovery.
    BinlogBytes,
    /// Bytes written to all files, including logs.
    FileBytes,
    /// Pages requested from the buffer pool.
    PagesRequested,
    /// Of these, pages that were not in the buffer pool.
    PagesMissed,
    /// Rows, documents or index entries that were examined.
    RowsExamined,
    /// Rows returned to clients.
    RowsReturned,
    /// How often a session waited for a lock.
    LockWaits,
    /// Total time that sessions waited for locks, in nanoseconds.
    LockNs,
    /// Temporary tables or files on disk.
    Temporary,
    /// Checkpoints, or complete copies of the data written to disk.
    Checkpoints,
    /// Syncs of the log.
    LogSyncs,
    /// Items evicted because memory was full.
    Evictions,
}

impl Counter {
    /// All counters, in display order.
    pub const ALL: [Self; 13] = [
        Self::LogBytes,
        Self::BinlogBytes,
        Self::FileBytes,
        Self::PagesRequested,
        Self::PagesMissed,
        Self::RowsExamined,
        Self::RowsReturned,
        Self::LockWaits,
        Self::LockNs,
        Self::Temporary,
        Self::Checkpoints,
        Self::LogSyncs,
        Self::Evictions,
    ];

    /// Its name in sentences.
    pub fn word(self) -> &'static str {
        match self {
            Self::LogBytes => "log bytes",
            Self::BinlogBytes => "binary log bytes",
            Self::FileBytes => "file bytes",
            Self::PagesRequested => "pages requested",
            Self::PagesMissed => "pages missed",
            Self::RowsExamined => "rows examined",
            Self::RowsReturned => "rows returned",
            Self::LockWaits => "lock waits",
            Self::LockNs => "time in lock waits",
            Self::Temporary => "temporary files",
            Self::Checkpoints => "checkpoints",
            Self::LogSyncs => "log syncs",
            Self::Evictions => "evictions",
        }
    }
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
    /// The counter.
    pub what: Counter,
    /// Its value.
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
