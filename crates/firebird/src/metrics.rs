//! Server statistics from the monitoring tables (Firebird 3.0 Language Reference, "Monitoring Tables"). Their counters are
//! exact at any time. A user who is not an administrator sees only own sessions, but the counters of the whole database.

use crate::dialect::DIALECT;
use crate::link::FirebirdLink;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::probe::ClientSessions;
use kurabe_driver_common::wire::link::{Query, rows};
use std::collections::BTreeSet;

/// The database's counters, and those of the probe's own connection, in the order of [`COUNTERS`].
const COUNTS: &str = "SELECT s.MON$STAT_GROUP, \
    i.MON$PAGE_FETCHES, i.MON$PAGE_READS, i.MON$PAGE_MARKS, i.MON$PAGE_WRITES * d.MON$PAGE_SIZE, \
    r.MON$RECORD_SEQ_READS + r.MON$RECORD_IDX_READS, r.MON$RECORD_WAITS, d.MON$NEXT_TRANSACTION \
    FROM MON$DATABASE d JOIN (SELECT MON$STAT_ID, 0 FROM MON$DATABASE UNION ALL \
    SELECT MON$STAT_ID, 1 FROM MON$ATTACHMENTS WHERE MON$ATTACHMENT_ID = CURRENT_CONNECTION) \
    s(MON$STAT_ID, MON$STAT_GROUP) ON 1 = 1 \
    JOIN MON$IO_STATS i ON i.MON$STAT_ID = s.MON$STAT_ID AND i.MON$STAT_GROUP = s.MON$STAT_GROUP \
    JOIN MON$RECORD_STATS r ON r.MON$STAT_ID = s.MON$STAT_ID AND r.MON$STAT_GROUP = s.MON$STAT_GROUP";

const COUNTERS: [(Counter, &str); 6] = [
    (Counter::PagesRequested, "MON$PAGE_FETCHES"),
    (Counter::PagesMissed, "MON$PAGE_READS"),
    (Counter::PagesChanged, "MON$PAGE_MARKS"),
    (Counter::FileBytes, "MON$PAGE_WRITES * MON$PAGE_SIZE"),
    (Counter::RowsExamined, "MON$RECORD_SEQ_READS + MON$RECORD_IDX_READS"),
    (Counter::LockWaits, "MON$RECORD_WAITS"),
];

/// The sessions of others, each with the statement that it executes, and whether it has a transaction that may write. A
/// statement whose next row the client has not requested yet is *stalled* (2). A commit is no statement: the session has
/// only its transaction then, as it has between two requests.
const SESSIONS: &str = "SELECT a.MON$ATTACHMENT_ID, s.MON$STATE, \
    CAST(SUBSTRING(s.MON$SQL_TEXT FROM 1 FOR 400) AS VARCHAR(400)), (SELECT COUNT(*) FROM MON$TRANSACTIONS t \
    WHERE t.MON$ATTACHMENT_ID = a.MON$ATTACHMENT_ID AND t.MON$READ_ONLY = 0) FROM MON$ATTACHMENTS a \
    LEFT JOIN MON$STATEMENTS s ON s.MON$ATTACHMENT_ID = a.MON$ATTACHMENT_ID AND s.MON$STATE <> 0 \
    WHERE a.MON$SYSTEM_FLAG = 0 AND a.MON$ATTACHMENT_ID <> CURRENT_CONNECTION ORDER BY s.MON$STATE";

pub(crate) struct FirebirdStatsProbe {
    link: FirebirdLink,
    clients: ClientSessions,
    /// Transactions of the probe.
    own: u64,
}

impl FirebirdStatsProbe {
    pub(crate) fn new(link: FirebirdLink) -> Self {
        Self { link, clients: ClientSessions::default(), own: 0 }
    }

    /// Reads monitoring tables, whose content is that of the first read of its transaction.
    fn read(&mut self, sql: &str) -> Result<Vec<Vec<String>>> {
        self.link.query(DIALECT.commit, &mut Reply::new())?;
        self.own += 1;
        rows(&mut self.link, sql)
    }

    /// Each session of a client with its statement's state and text, which are empty if it executes none, and its number
    /// of transactions that may write.
    fn sessions(&mut self) -> Result<Vec<Vec<String>>> {
        let mut found = self.read(SESSIONS)?;
        self.clients.retain(&mut found);
        let mut seen = BTreeSet::new();
        // A session with several open statements counts once, by the first.
        found.retain(|row| row.first().is_some_and(|id| seen.insert(id.clone())));
        Ok(found)
    }

    fn count(&mut self, reading: &mut Reading) -> Result<()> {
        let found = self.read(COUNTS)?;
        let numbers = |group: &str| {
            let row = found.iter().find(|row| row.first().is_some_and(|found| found == group))?;
            row.iter().skip(1).map(|text| text.trim().parse::<u64>().ok()).collect::<Option<Vec<_>>>()
        };
        let (all, own) = numbers("0").zip(numbers("1")).unwrap_or_default();
        let missing = "the monitoring tables have no such row";
        for (at, (what, from)) in COUNTERS.iter().enumerate() {
            let value = all.get(at).zip(own.get(at)).map(|(all, own)| all.saturating_sub(*own));
            reading.count(*what, value, from, CounterScope::Database, missing);
        }
        let begun = all.get(COUNTERS.len()).map(|next| next.saturating_sub(self.own));
        reading.count(Counter::Transactions, begun, "MON$NEXT_TRANSACTION", CounterScope::Database, missing);
        reading.add_unavailable(
            Counter::LogBytes.word(),
            "Firebird has no log: a commit writes the changed pages",
        );
        let why = "the monitoring tables do not say what a session waits for, or whether it commits";
        reading.add_unavailable("waits of sessions", why);
        Ok(())
    }
}

impl StatsProbe for FirebirdStatsProbe {
    fn snapshot(&mut self, point: SnapshotPoint, clients: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if ClientSessions::are_noted(point, clients) {
            let sessions = self.sessions()?;
            self.clients.note(point, sessions);
        }
        if matches!(point, SnapshotPoint::Gate | SnapshotPoint::End) {
            self.count(&mut reading)?;
        }
        Ok(reading)
    }

    fn sample_sessions(&mut self, _: &Clients) -> Result<Vec<SessionSample>> {
        Ok(self.sessions()?.iter().map(|row| session_sample(row)).collect())
    }

    fn background(&self) -> Vec<String> {
        Vec::new()
    }

    fn port(&self) -> Option<u16> {
        None
    }
}

/// Derives a session sample from the session's ID, its statement's state and text, and its transactions.
fn session_sample(row: &[String]) -> SessionSample {
    let field = |at: usize| row.get(at).map_or("", |text| text.trim());
    let (wait_state, state) = match (field(1), field(3)) {
        ("1", _) => (WaitState::Active, "active"),
        ("2", _) => (WaitState::Idle, "stalled"),
        (_, "" | "0") => (WaitState::Idle, "idle"),
        _ => (WaitState::Active, "in a transaction"),
    };
    let statement = if wait_state == WaitState::Idle { String::new() } else { shortened(field(2)) };
    SessionSample { wait_state, state: state.to_owned(), event: String::new(), statement }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_without_statement_and_transaction_is_idle() {
        let sample = |state: &str| session_sample(&["7", state, "SELECT 1 FROM t", "0"].map(str::to_owned));
        assert_eq!(sample("1").wait_state, WaitState::Active);
        assert_eq!(sample("1").statement, "SELECT ? FROM t");
        let commits = session_sample(&["7", "", "", "1"].map(str::to_owned));
        assert_eq!((commits.wait_state, commits.state.as_str()), (WaitState::Active, "in a transaction"));
        for (state, name) in [("2", "stalled"), ("", "idle")] {
            let sample = sample(state);
            assert_eq!(
                (sample.wait_state, sample.state.as_str(), sample.statement.as_str()),
                (WaitState::Idle, name, "")
            );
        }
    }
}
