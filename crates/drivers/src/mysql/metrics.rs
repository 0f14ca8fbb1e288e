//! What MySQL and MariaDB say of themselves: global status, the binary logs, and the processlist beside InnoDB's
//! transactions. Sources: MySQL Reference Manual, "Server Status Variables", "The `INFORMATION_SCHEMA` `INNODB_TRX` Table",
//! "Statement Summary Tables"; MariaDB Knowledge Base, "Server Status Variables".
//!
//! Connections are numbered in the order in which they are opened: all with a higher number than the witness's came after it.

use super::lean::Lean;
use crate::reported::listed;
use crate::wire::Stream;
use crate::wire::link::{rows, value};
use kurabe_core::stats_probe::{
    Clients, Counter, CounterScope, EngineCount, Reading, SessionSample, SnapshotPoint, StatementUse,
    StatsProbe, WaitState, shortened,
};
use kurabe_core::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Counters of the whole server, each exact at any moment. The redo log's is what was written to its files, blocks that
/// were filled up later as often as they were written.
const SERVER: &[(Counter, &str, u64)] = &[
    (Counter::LogBytes, "Innodb_os_log_written", 1),
    (Counter::LogSyncs, "Innodb_os_log_fsyncs", 1),
    (Counter::PagesRequested, "Innodb_buffer_pool_read_requests", 1),
    (Counter::PagesMissed, "Innodb_buffer_pool_reads", 1),
    (Counter::LockWaits, "Innodb_row_lock_waits", 1),
    (Counter::LockNs, "Innodb_row_lock_time", 1_000_000),
];

/// Counters of all sessions, of which the witness's own part is known and left out.
const SESSIONS: &[(Counter, &str)] = &[
    (Counter::RowsExamined, "Rows_read"),
    (Counter::RowsReturned, "Rows_sent"),
    (Counter::Temporary, "Created_tmp_disk_tables"),
];

/// The state of a transaction that waits for another one's lock.
const LOCK_WAIT: &str = "LOCK WAIT";

/// The connection that asks.
pub(super) struct MysqlStatsProbe {
    link: Lean<Stream>,
    mariadb: bool,
    /// Whether the server keeps a binary log, …
    binlog: bool,
    /// … and its performance schema.
    digests: bool,
    /// Its number.
    own: u64,
    /// The database in which it and the clients are.
    database: String,
    /// The number of the last client, where each keeps its connection.
    last: Option<u64>,
    processlist: &'static str,
}

impl MysqlStatsProbe {
    pub(super) fn new(mut link: Lean<Stream>) -> Result<Self> {
        let sql = "SELECT CONNECTION_ID(), VERSION(), @@log_bin, @@performance_schema, DATABASE()";
        let head = rows(&mut link, sql)?;
        let head = head.into_iter().next().unwrap_or_default();
        let own = head.first().and_then(|id| id.parse().ok()).unwrap_or(u64::MAX);
        let is_on = |at: usize| head.get(at).is_some_and(|value| value == "1");
        let (binlog, digests) = (is_on(2), is_on(3));
        let mariadb = head.get(1).is_some_and(|version| version.to_ascii_lowercase().contains("mariadb"));
        let database = head.get(4).cloned().unwrap_or_default();
        // It takes no lock that sessions take too; servers before 8.0.22 have only the other. Where the performance schema is
        // switched off, it is there and empty: not even this connection stands in it.
        let light = "performance_schema.processlist";
        let in_light = format!("SELECT COUNT(*) FROM {light} WHERE id = {own}");
        let has_light =
            !mariadb && value(&mut link, &in_light).is_ok_and(|rows| rows.as_deref() == Some("1"));
        let processlist = if has_light { light } else { "information_schema.processlist" };
        Ok(Self { link, mariadb, binlog, digests, own, database, last: None, processlist })
    }

    fn status(&mut self, scope: &str) -> Result<BTreeMap<String, u64>> {
        let names = SERVER.iter().map(|(_, name, _)| name).chain(SESSIONS.iter().map(|(_, name)| name));
        let sql = format!("SHOW {scope} STATUS WHERE Variable_name IN ({})", listed(names));
        let pair = |row: Vec<String>| {
            let [name, value] = <[String; 2]>::try_from(row).ok()?;
            Some((name, value.parse().ok()?))
        };
        Ok(rows(&mut self.link, &sql)?.into_iter().filter_map(pair).collect())
    }

    /// The binary logs' sizes together: what was written to them, where none is purged meanwhile.
    fn binlog(&mut self, reading: &mut Reading) -> Result<()> {
        if !self.binlog {
            reading.add_unavailable("binary log bytes", "the server keeps no binary log");
            return Ok(());
        }
        if let Some(files) =
            reading.reported(rows(&mut self.link, "SHOW BINARY LOGS"), "binary log bytes", "")?
        {
            let sizes = files.iter().filter_map(|file| file.get(1)?.parse::<u64>().ok());
            let count =
                EngineCount::new(Counter::BinlogBytes, sizes.sum(), "SHOW BINARY LOGS", CounterScope::Server);
            reading.counts.push(count);
        }
        Ok(())
    }

    /// The clients' sessions, each with its command, state, statement and transaction's state.
    fn joined(&mut self) -> Result<Vec<Vec<String>>> {
        let last = self.last.map_or_else(String::new, |last| format!(" AND p.id <= {last}"));
        let sql = format!(
            "SELECT p.command, p.state, LEFT(p.info, 400), t.trx_state FROM {} p \
             LEFT JOIN information_schema.innodb_trx t ON t.trx_mysql_thread_id = p.id \
             WHERE p.id > {}{last} AND p.db = DATABASE()",
            self.processlist, self.own
        );
        rows(&mut self.link, &sql)
    }

    /// The same of MariaDB, which makes a table on storage of its sessions for each question: 540 µs of the server's
    /// processor time for eight of them, where the list and the transactions that wait take 70 µs together.
    fn listed(&mut self) -> Result<Vec<Vec<String>>> {
        let waiting =
            "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
        let list = rows(&mut self.link, "SHOW FULL PROCESSLIST")?;
        let waiting: BTreeSet<_> = rows(&mut self.link, waiting)?.into_iter().flatten().collect();
        let clients = self.own.saturating_add(1)..=self.last.unwrap_or(u64::MAX);
        let of_client = |row: Vec<String>| {
            let [id, _, _, database, command, _, state, statement] = row.first_chunk()?.clone();
            let mine = clients.contains(&id.parse().ok()?) && database == self.database;
            let transaction = if waiting.contains(&id) { LOCK_WAIT } else { "" };
            mine.then(|| vec![command, state, statement, transaction.to_owned()])
        };
        Ok(list.into_iter().filter_map(of_client).collect())
    }

    /// Rows that MySQL says the clients' sessions examined and were sent; none where they do not keep their connections.
    /// Digests come only near it: sessions add to one digest without a lock, and what one adds while another is adding is
    /// lost (a row of 400 in 9 of 110 trials of two clients on a busy machine).
    fn sessions(&mut self, reading: &mut Reading) -> Result<Option<(u64, u64)>> {
        let Some(last) = self.last else { return Ok(None) };
        let sql = format!(
            "SELECT SUM(s.SUM_ROWS_EXAMINED), SUM(s.SUM_ROWS_SENT) FROM performance_schema.threads t \
             JOIN performance_schema.events_statements_summary_by_thread_by_event_name s USING (THREAD_ID) \
             WHERE t.PROCESSLIST_ID > {} AND t.PROCESSLIST_ID <= {last} AND t.PROCESSLIST_DB = DATABASE()",
            self.own
        );
        let found = reading.reported(rows(&mut self.link, &sql), "rows of sessions", "")?.unwrap_or_default();
        let [examined, sent] = [0, 1].map(|at| found.first().and_then(|row| row.get(at)?.parse().ok()));
        Ok(examined.zip(sent))
    }

    /// Statement digests of this database, which may miss some executions (see [`Self::sessions`]); MariaDB has them where
    /// its performance schema is switched on.
    fn statements(&mut self, reading: &mut Reading) -> Result<()> {
        if !self.digests {
            reading.add_unavailable("statements", "the server was started without its performance schema");
            return Ok(());
        }
        // What the witness and housekeeping ask is not the clients' work.
        let sql = "SELECT DIGEST_TEXT, COUNT_STAR, SUM_TIMER_WAIT, SUM_ROWS_EXAMINED, SUM_ROWS_SENT + SUM_ROWS_AFFECTED, \
                   SUM_ROWS_SENT FROM performance_schema.events_statements_summary_by_digest \
                   WHERE SCHEMA_NAME = DATABASE() AND COUNT_STAR > 0 AND DIGEST_TEXT NOT LIKE '%\\_schema%' \
                   AND DIGEST_TEXT NOT LIKE 'SHOW %'";
        let Some(found) = reading.reported(rows(&mut self.link, sql), "statements", "")? else {
            return Ok(());
        };
        let (mut examined, mut returned) = (0, 0);
        for row in &found {
            let number = |at: usize| row.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            examined += number(3);
            returned += number(5);
            reading.statements.push(StatementUse {
                text: row.first().map(|text| shortened(text)).unwrap_or_default(),
                calls: number(1),
                // The performance schema counts picoseconds.
                time_ns: number(2) / 1_000,
                rows_examined: Some(number(3)),
                rows: number(4),
            });
        }
        if !self.mariadb {
            let by_session = self.sessions(reading)?;
            let (table, scope) = match by_session {
                Some(_) => ("events_statements_summary_by_thread_by_event_name", CounterScope::Clients),
                None => ("events_statements_summary_by_digest", CounterScope::Database),
            };
            let (examined, returned) = by_session.unwrap_or((examined, returned));
            for (what, value, name) in [
                (Counter::RowsExamined, examined, "SUM_ROWS_EXAMINED"),
                (Counter::RowsReturned, returned, "SUM_ROWS_SENT"),
            ] {
                reading.counts.push(EngineCount::new(what, value, &format!("{table}.{name}"), scope));
            }
        }
        Ok(())
    }
}

impl StatsProbe for MysqlStatsProbe {
    fn snapshot(&mut self, point: SnapshotPoint, clients: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        // All that is told is told at once: nothing needs the trial's wider bounds.
        if matches!(point, SnapshotPoint::Before | SnapshotPoint::After) {
            return Ok(reading);
        }
        if point == SnapshotPoint::Gate && clients.kept {
            let sql = format!("SELECT MAX(id) FROM {}", self.processlist);
            self.last = value(&mut self.link, &sql)?.and_then(|id| id.parse().ok());
        }
        // In this order both times, so that what the questions themselves come to is taken off with the first reading.
        let (global, own) = (self.status("GLOBAL")?, self.status("SESSION")?);
        for (what, name, unit) in SERVER {
            let value = global.get(*name).map(|value| value * unit);
            reading.count(*what, value, name, CounterScope::Server, "this version has no such counter");
        }
        for (what, name) in SESSIONS {
            if let (Some(all), Some(own)) = (global.get(*name), own.get(*name)) {
                let value = all.saturating_sub(*own);
                reading.counts.push(EngineCount::new(*what, value, name, CounterScope::Server));
            }
        }
        let why = "InnoDB writes checkpoints all the time and counts none";
        reading.add_unavailable(Counter::Checkpoints.word(), why);
        self.binlog(&mut reading)?;
        self.statements(&mut reading)?;
        Ok(reading)
    }

    fn sample_sessions(&mut self, _: &Clients) -> Result<Vec<SessionSample>> {
        let found = if self.mariadb { self.listed() } else { self.joined() };
        let found = found.map_err(|error| match error.server_code() {
            Some(_) => Error::unsupported(format!(
                "this user may not see which sessions wait for locks (it takes PROCESS): {error}"
            )),
            None => error,
        })?;
        Ok(found.iter().map(|row| session_sample(row)).collect())
    }

    fn port(&self) -> Option<u16> {
        self.link.port()
    }
}

/// What a session is doing, from its command, its state, its statement and its transaction's state.
fn session_sample(row: &[String]) -> SessionSample {
    let field = |at: usize| row.get(at).map_or("", String::as_str);
    let (command, state, trx) = (field(0), field(1), field(3));
    let says = |part: &str| state.to_ascii_lowercase().contains(part);
    let (wait_state, event) = if command == "Sleep" {
        (WaitState::Idle, "")
    } else if trx == LOCK_WAIT {
        (WaitState::Lock, "InnoDB: LOCK WAIT")
    } else if says("waiting for") && says("lock") || says("user lock") {
        (WaitState::Lock, state)
    } else if says("commit") || says("binlog") || says("waiting for semi-sync") {
        (WaitState::Log, state)
    } else if says("user sleep") || says("waiting for") {
        (WaitState::Other, state)
    } else {
        (WaitState::Running, "")
    };
    // A prepared statement shows as its text, or with the word before it.
    let statement = if wait_state == WaitState::Idle { String::new() } else { shortened(field(2)) };
    let state = if state.is_empty() || !event.is_empty() { command } else { state };
    SessionSample { wait_state, state: state.to_owned(), event: event.to_owned(), statement }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_state(command: &str, state: &str, trx: &str) -> WaitState {
        session_sample(&[command, state, "UPDATE t", trx].map(str::to_owned)).wait_state
    }

    #[test]
    fn only_what_waits_for_another_session_waits_for_a_lock() {
        assert_eq!(wait_state("Execute", "updating", "LOCK WAIT"), WaitState::Lock);
        assert_eq!(wait_state("Query", "Waiting for table metadata lock", ""), WaitState::Lock);
        assert_eq!(wait_state("Query", "User lock", ""), WaitState::Lock);
        assert_eq!(wait_state("Query", "User sleep", ""), WaitState::Other);
        assert_eq!(wait_state("Execute", "waiting for handler commit", "RUNNING"), WaitState::Log);
        assert_eq!(wait_state("Execute", "updating", "RUNNING"), WaitState::Running);
        // It had its lock before it could be asked what it did.
        assert_eq!(wait_state("Sleep", "", "LOCK WAIT"), WaitState::Idle);
        assert_eq!(session_sample(&["Sleep".to_owned()]).statement, "");
    }
}
