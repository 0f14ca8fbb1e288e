//! What an engine says of itself: its own counters around a trial, and what its sessions were doing meanwhile.
//!
//! A [`Witness`] asks over a connection of its own, that no client uses. What it is told is recorded in the engine's own
//! words beside ours, with how far each counter reaches: one of the whole server holds other people's work too. What is
//! not told is said, with the reason.

use crate::error::Result;
use serde::{Deserialize, Serialize};

/// Asks a server, over a connection of its own, what it did for a trial. It is opened before the trial's first client
/// connects, so that it can tell their sessions from those that were there before.
pub trait Witness: Send {
    /// Reads what is exact at this moment.
    ///
    /// # Errors
    /// The server's error. What this user may not read is no error but [`NotTold`].
    fn read(&mut self, moment: Moment, clients: &Clients) -> Result<Reading>;

    /// Looks what the clients' sessions are doing now.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) with the reason where the engine cannot be asked, or this user may
    /// not ask; or the server's error.
    fn look(&mut self, clients: &Clients) -> Result<Vec<Sighting>>;

    /// The local port of its connection, where that is TCP: what goes over it is no client's.
    fn port(&self) -> Option<u16> {
        None
    }
}

/// When a reading is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
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

/// What was read at one moment: counters that only ever rise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The counters.
    pub counts: Vec<EngineCount>,
    /// What is told of each statement.
    pub statements: Vec<StatementUse>,
    /// What is not told.
    pub not_told: Vec<NotTold>,
}

/// What a session was doing when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// What that comes to.
    pub doing: Doing,
    /// The session's state, in the engine's words.
    pub state: String,
    /// What it waited for, in the engine's words; empty where for nothing.
    pub event: String,
    /// The statement that it was at; empty where at none.
    pub statement: String,
}

/// What a session was doing, in words that hold for every engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// At work: on a processor or ready for one, or in a wait that the engine does not name.
    Working,
    /// Waiting for a lock that another session holds: of a row, a table, a name.
    Lock,
    /// Waiting for the log of changes to be written or synced, its own part or the one it shares with others.
    Log,
    /// Waiting for a file.
    File,
    /// In another wait that the engine names.
    Other,
    /// With nothing to do: the client has the move.
    Idle,
}

impl Doing {
    /// As tables name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Working => "at work",
            Self::Lock => "lock",
            Self::Log => "log",
            Self::File => "file",
            Self::Other => "other wait",
            Self::Idle => "idle",
        }
    }
}

/// What an engine counts that decides figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Meter {
    /// Bytes of the log from which a crash is recovered: redo log, write-ahead log, append-only file.
    LogBytes,
    /// Bytes of a second log, for replication and recovery to a point in time.
    BinlogBytes,
    /// Bytes of all files together, logs included.
    FileBytes,
    /// Pages that were asked of the buffer.
    PagesAsked,
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

impl Meter {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 13] = [
        Self::LogBytes,
        Self::BinlogBytes,
        Self::FileBytes,
        Self::PagesAsked,
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
            Self::PagesAsked => "pages asked",
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
pub enum Reach {
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
    pub what: Meter,
    /// How many.
    pub value: u64,
    /// Its name in the engine's own words.
    pub from: String,
    /// How far it reaches.
    pub reach: Reach,
    /// Whether it holds the clients' warm-up too: sessions tell some things only when they end.
    pub warmup: bool,
}

impl EngineCount {
    /// A counter by its name in the engine's own words.
    pub fn new(what: Meter, value: u64, from: &str, reach: Reach) -> Self {
        Self { what, value, from: from.to_owned(), reach, warmup: false }
    }
}

/// What the engine was asked and did not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTold {
    /// What: one of our words, or the engine's.
    pub what: String,
    /// Why, as a clause.
    pub why: String,
}

/// What the engine tells of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementUse {
    /// Its text without its values, in the engine's own form; at most [`TEXT`] characters.
    pub text: String,
    /// How often it was executed.
    pub calls: u64,
    /// How long that took the server, all together.
    pub time_ns: u64,
    /// Rows that it looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_examined: Option<u64>,
    /// Rows that it gave or changed.
    pub rows: u64,
}

/// The most characters of a statement that are kept.
pub const TEXT: usize = 200;

/// The most statements, and groups of sightings, that are kept.
pub const MOST: usize = 12;

/// What the engine said of a trial, as it is recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineUse {
    /// What came to its counters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<EngineCount>,
    /// The statements that took the most time, the first first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementUse>,
    /// What it was asked and did not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_told: Vec<NotTold>,
    /// Why its sessions were not looked at, as a clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_looked: Option<String>,
}

impl EngineUse {
    /// A trial of which the engine says nothing, for this reason.
    pub fn silent(why: &str) -> Self {
        let not_told = vec![NotTold { what: "anything".to_owned(), why: why.to_owned() }];
        Self { not_told, not_looked: Some(why.to_owned()), ..Self::default() }
    }

    /// Adds what came to the counters between two readings.
    pub fn add(&mut self, then: &Reading, now: Reading) {
        for count in now.counts {
            let same = |old: &&EngineCount| old.what == count.what && old.from == count.from;
            match then.counts.iter().find(same).map(|old| count.value.checked_sub(old.value)) {
                Some(Some(value)) => self.counts.push(EngineCount { value, ..count }),
                Some(None) => self.refuse(count.from, "it was set back meanwhile"),
                None => self.refuse(count.from, "it was told only once"),
            }
        }
        for statement in now.statements {
            let old = then.statements.iter().find(|old| old.text == statement.text);
            let past = |now: u64, then: fn(&StatementUse) -> u64| now.saturating_sub(old.map_or(0, then));
            let used = StatementUse {
                calls: past(statement.calls, |s| s.calls),
                time_ns: past(statement.time_ns, |s| s.time_ns),
                rows_examined: statement
                    .rows_examined
                    .map(|rows| past(rows, |s| s.rows_examined.unwrap_or(0))),
                rows: past(statement.rows, |s| s.rows),
                text: statement.text,
            };
            if used.calls > 0 {
                self.statements.push(used);
            }
        }
        self.statements.sort_by_key(|statement| std::cmp::Reverse(statement.time_ns));
        self.statements.truncate(MOST);
        for untold in then.not_told.iter().cloned().chain(now.not_told) {
            if !self.not_told.contains(&untold) {
                self.not_told.push(untold);
            }
        }
    }

    fn refuse(&mut self, what: String, why: &str) {
        self.not_told.push(NotTold { what, why: why.to_owned() });
    }

    /// What came to a counter, where it was told.
    pub fn of(&self, what: Meter) -> Option<&EngineCount> {
        self.counts.iter().find(|count| count.what == what)
    }

    /// Takes out what tells the engine.
    pub(crate) fn without_names(&mut self) {
        for count in &mut self.counts {
            count.from.clear();
        }
        self.statements.clear();
        self.not_told.clear();
        if let Some(why) = &mut self.not_looked {
            "withheld".clone_into(why);
        }
    }
}

/// What the engine itself says its clients' sessions were doing, in samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineWaits {
    /// Sessions seen at work or waiting in all samples together.
    pub active: u64,
    /// Of these, those that waited for a lock that another session held.
    pub locks: u64,
    /// Of these, those that waited for the log to be written or synced.
    #[serde(default)]
    pub logs: u64,
    /// How many samples were taken.
    #[serde(default)]
    pub samples: u64,
    /// Clients' sessions seen in all samples together, idle ones too.
    #[serde(default)]
    pub sessions: u64,
    /// What they were doing, what was met most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<WaitGroup>,
    /// Time from each question to its answer, all together, in nanoseconds: the most CPU time that asking can have taken,
    /// client and server together.
    #[serde(default)]
    pub cost_ns: u64,
}

/// Sessions that were met doing the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitGroup {
    /// What.
    pub doing: Doing,
    /// The state, in the engine's words.
    pub state: String,
    /// What they waited for, in the engine's words; empty where for nothing.
    pub event: String,
    /// The statement; empty where at none.
    pub statement: String,
    /// How often that was met.
    pub seen: u64,
}

impl EngineWaits {
    /// Adds a sample.
    pub fn add(&mut self, sightings: Vec<Sighting>) {
        self.samples += 1;
        for Sighting { doing, state, event, statement } in sightings {
            self.sessions += 1;
            self.active += u64::from(doing != Doing::Idle);
            self.locks += u64::from(doing == Doing::Lock);
            self.logs += u64::from(doing == Doing::Log);
            let group = WaitGroup { doing, state, event, statement, seen: 0 };
            let same = |known: &&mut WaitGroup| {
                known.doing == group.doing
                    && known.state == group.state
                    && known.event == group.event
                    && known.statement == group.statement
            };
            match self.groups.iter_mut().find(same) {
                Some(known) => known.seen += 1,
                None => self.groups.push(WaitGroup { seen: 1, ..group }),
            }
        }
    }

    /// Puts what was met most first, and leaves the rest to the sums.
    pub fn finish(&mut self) {
        self.groups.sort_by_key(|group| std::cmp::Reverse(group.seen));
        self.groups.truncate(MOST);
    }

    /// Takes out what tells the engine.
    pub(crate) fn without_names(&mut self) {
        let mut plain: Vec<WaitGroup> = Vec::new();
        for group in &self.groups {
            match plain.iter_mut().find(|known| known.doing == group.doing) {
                Some(known) => known.seen += group.seen,
                None => plain.push(WaitGroup {
                    doing: group.doing,
                    state: group.doing.word().to_owned(),
                    event: String::new(),
                    statement: String::new(),
                    seen: group.seen,
                }),
            }
        }
        self.groups = plain;
    }
}

/// The beginning of a statement on one line, each value in it as `?`: for a [`Sighting`] or a [`StatementUse`]. Some engines
/// show a statement with the values that it was executed with, which makes each another one, and are nobody's business.
pub fn shortened(statement: &str) -> String {
    let mut out = String::new();
    let mut letters = statement.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        if out.len() > TEXT * 4 {
            break;
        }
        if letter == '\'' {
            // To the quote that ends it; one that is cut off ends nowhere.
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

    fn count(what: Meter, value: u64) -> EngineCount {
        EngineCount::new(what, value, what.word(), Reach::Server)
    }

    #[test]
    fn what_came_to_a_counter_is_what_it_rose_by_and_one_that_fell_is_not_told() {
        let then = Reading {
            counts: vec![count(Meter::LogBytes, 100), count(Meter::Evictions, 9)],
            ..Reading::default()
        };
        let now = Reading {
            counts: vec![count(Meter::LogBytes, 175), count(Meter::Evictions, 3), count(Meter::LockWaits, 1)],
            ..Reading::default()
        };
        let mut used = EngineUse::default();
        used.add(&then, now);
        assert_eq!(used.counts, vec![count(Meter::LogBytes, 75)]);
        let untold: Vec<&str> = used.not_told.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(untold, ["evictions", "lock waits"]);
    }

    #[test]
    fn statements_count_from_the_first_reading_on_and_the_longest_comes_first() {
        let statement = |text: &str, calls, time_ns| StatementUse {
            text: text.to_owned(),
            calls,
            time_ns,
            rows_examined: Some(calls),
            rows: calls,
        };
        let then = Reading { statements: vec![statement("old", 5, 50)], ..Reading::default() };
        let now = Reading {
            statements: vec![statement("old", 7, 80), statement("new", 1, 90), statement("none", 0, 0)],
            ..Reading::default()
        };
        let mut used = EngineUse::default();
        used.add(&then, now);
        assert_eq!(used.statements, vec![statement("new", 1, 90), statement("old", 2, 30)]);
    }

    #[test]
    fn sessions_that_do_the_same_are_counted_together() {
        let sighting = |doing, event: &str| Sighting {
            doing,
            state: "active".to_owned(),
            event: event.to_owned(),
            statement: "update t".to_owned(),
        };
        let mut waits = EngineWaits::default();
        waits.add(vec![sighting(Doing::Idle, ""), sighting(Doing::Lock, "row")]);
        waits.add(vec![sighting(Doing::Lock, "row"), sighting(Doing::Log, "sync")]);
        waits.finish();
        assert_eq!((waits.samples, waits.sessions, waits.active, waits.locks, waits.logs), (2, 4, 3, 2, 1));
        assert_eq!((waits.groups[0].doing, waits.groups[0].seen, waits.groups.len()), (Doing::Lock, 2, 3));
        waits.without_names();
        assert!(waits.groups.iter().all(|group| group.event.is_empty() && group.statement.is_empty()));
    }

    #[test]
    fn a_long_statement_on_many_lines_is_kept_as_the_beginning_of_one() {
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
