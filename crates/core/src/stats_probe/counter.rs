//! What engines count, each counter with its own name and how far it reaches.

use serde::{Deserialize, Serialize};

/// What an engine counts that decides figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Bytes of the log from which a crash is recovered: redo log, write-ahead log, append-only file.
    LogBytes,
    /// Bytes of a second log, for replication and recovery to a point in time.
    BinlogBytes,
    /// Bytes of all files together, logs included.
    FileBytes,
    /// Pages that were asked of the buffer.
    PagesRequested,
    /// Of these, those that it had not.
    PagesMissed,
    /// Rows, documents or entries of indexes that were looked at.
    RowsExamined,
    /// Rows that were given to clients.
    RowsReturned,
    /// Times that a session had to wait for a lock.
    LockWaits,
    /// Time that sessions waited for locks, in nanoseconds.
    LockNs,
    /// Temporary tables or files on storage.
    Temporary,
    /// Checkpoints, or whole copies of the data that were written.
    Checkpoints,
    /// Syncs of the log.
    LogSyncs,
    /// Values thrown out since memory was full.
    Evictions,
}

impl Counter {
    /// All of them, in the order in which they are shown.
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

    /// What it counts, as sentences say it.
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

/// How far a counter reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterScope {
    /// The sessions of this trial's clients alone.
    Clients,
    /// All that was done in this database, by anybody.
    Database,
    /// The whole server: other people's work and its own housekeeping too.
    Server,
    /// The process that holds client and database.
    Process,
}

/// A counter: as it stands, or what came to it within a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineCount {
    /// What it counts.
    pub what: Counter,
    /// How many.
    pub value: u64,
    /// Its name in the engine's own words.
    pub from: String,
    /// How far it reaches.
    pub scope: CounterScope,
    /// Whether it holds the clients' warm-up too: sessions tell some things only when they end.
    pub warmup: bool,
}

impl EngineCount {
    /// A counter by its name in the engine's own words.
    pub fn new(what: Counter, value: u64, from: &str, scope: CounterScope) -> Self {
        Self { what, value, from: from.to_owned(), scope, warmup: false }
    }
}
