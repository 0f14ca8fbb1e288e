//! Stats probe of MySQL and MariaDB: global status, binary logs, processlist and InnoDB's transactions. Sources: MySQL
//! Reference Manual, "Server Status Variables", "The `INFORMATION_SCHEMA` `INNODB_TRX` Table", "Statement Summary
//! Tables"; MariaDB Knowledge Base, "Server Status Variables".
//!
//! Connection IDs increase: a connection with a higher ID than the probe's was opened after it.

use super::lean::{Connection, Lean};
use crate::prelude::*;
use crate::reported::{Reported, listed};
use crate::wire::link::{rows, value};
use std::collections::BTreeSet;

/// Counters of the whole server, always exact. The redo log's counts all bytes written to its files; a block that is
/// written again when more of it is filled counts each time.
const SERVER: &[(Counter, &str, u64)] = &[
    (Counter::LogBytes, "Innodb_os_log_written", 1),
    (Counter::FileBytes, "Innodb_data_written", 1),
    (Counter::LogSyncs, "Innodb_os_log_fsyncs", 1),
    (Counter::PagesRequested, "Innodb_buffer_pool_read_requests", 1),
    (Counter::PagesMissed, "Innodb_buffer_pool_reads", 1),
    (Counter::LockWaits, "Innodb_row_lock_waits", 1),
    (Counter::LockNs, "Innodb_row_lock_time", 1_000_000),
];

/// Counters of all sessions, from which the probe's own part is subtracted.
const SESSIONS: &[(Counter, &str)] = &[
    (Counter::RowsExamined, "Rows_read"),
    (Counter::RowsReturned, "Rows_sent"),
    (Counter::Temporary, "Created_tmp_disk_tables"),
];

/// State of a transaction that waits for a lock.
const LOCK_WAIT: &str = "LOCK WAIT";

pub(super) struct MysqlStatsProbe {
    link: Lean<Connection>,
    mariadb: bool,
    binlog: bool,
    /// Whether the performance schema is enabled.
    digests: bool,
    /// The column with the CPU time of statements; `None` if the server does not account it.
    cpu: Option<&'static str>,
    /// The probe's connection ID.
    own: u64,
    /// The database of the probe and the clients.
    database: String,
    /// The last client's connection ID, if each client keeps its connection.
    last: Option<u64>,
    processlist: &'static str,
}

impl MysqlStatsProbe {
    pub(super) fn new(mut link: Lean<Connection>) -> Result<Self> {
        let sql = "SELECT CONNECTION_ID(), VERSION(), @@log_bin, @@performance_schema, DATABASE()";
        let head = rows(&mut link, sql)?;
        let head = head.into_iter().next().unwrap_or_default();
        let own = head.first().and_then(|id| id.parse().ok()).unwrap_or(u64::MAX);
        let is_on = |at: usize| head.get(at).is_some_and(|value| value == "1");
        let (binlog, digests) = (is_on(2), is_on(3));
        let mariadb = head.get(1).is_some_and(|version| version.to_ascii_lowercase().contains("mariadb"));
        let database = head.get(4).cloned().unwrap_or_default();
        // Since 8.0.28, and off by default.
        let consumer =
            "SELECT enabled FROM performance_schema.setup_consumers WHERE name = 'events_statements_cpu'";
        let cpu = digests && value(&mut link, consumer).is_ok_and(|found| found.as_deref() == Some("YES"));
        // This table, available since 8.0.22, takes no lock that sessions need. With the performance schema disabled,
        // it exists but is empty: even this connection is missing.
        let light = "performance_schema.processlist";
        let in_light = format!("SELECT COUNT(*) FROM {light} WHERE id = {own}");
        let has_light =
            !mariadb && value(&mut link, &in_light).is_ok_and(|rows| rows.as_deref() == Some("1"));
        let processlist = if has_light { light } else { "information_schema.processlist" };
        Ok(Self {
            link,
            mariadb,
            binlog,
            digests,
            cpu: cpu.then_some("SUM_CPU_TIME"),
            own,
            database,
            last: None,
            processlist,
        })
    }

    fn status(&mut self, scope: &str) -> Result<Reported> {
        let names = SERVER.iter().map(|(_, name, _)| name).chain(SESSIONS.iter().map(|(_, name)| name));
        let sql = format!("SHOW {scope} STATUS WHERE Variable_name IN ({})", listed(names));
        rows(&mut self.link, &sql).map(Reported::of)
    }

    /// Adds the total size of the binary logs. Its growth is the bytes written, if no log is purged meanwhile.
    fn binlog(&mut self, reading: &mut Reading) -> Result<()> {
        if !self.binlog {
            reading.add_unavailable("binary log bytes", "the server writes no binary log");
            return Ok(());
        }
        let files = reading.reported(rows(&mut self.link, "SHOW BINARY LOGS"), "binary log bytes", "")?;
        let Some(files) = files else { return Ok(()) };
        let sizes = files.iter().filter_map(|file| file.get(1)?.parse::<u64>().ok());
        let from = "SHOW BINARY LOGS";
        reading.count(Counter::BinlogBytes, Some(sizes.sum()), from, CounterScope::Server, "");
        Ok(())
    }

    /// Reads the clients' sessions: command, state, statement and transaction state.
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

    /// Like [`Self::joined`], for MariaDB. Its `information_schema.processlist` creates an on-disk table for each
    /// query: 540 µs of the server's CPU time for eight sessions. `SHOW PROCESSLIST` and the waiting transactions take
    /// 70 µs.
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

    /// Rows examined by and sent to the clients' sessions, according to MySQL; `None` if they do not keep their
    /// connections. Digests are less exact: sessions update a digest without a lock, so concurrent updates may be lost
    /// (1 row of 400 in 9 of 110 trials of two clients on a busy machine).
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

    /// Reads this database's statement digests, which may miss some executions (see [`Self::sessions`]). MariaDB needs
    /// its performance schema enabled.
    fn statements(&mut self, reading: &mut Reading) -> Result<()> {
        if !self.digests {
            reading.add_unavailable("statements", "the server was started without its performance schema");
            return Ok(());
        }
        // Excludes statements of the probe and of the namespace.
        let cpu = self.cpu.unwrap_or("NULL");
        let sql = format!(
            "SELECT DIGEST_TEXT, COUNT_STAR, SUM_TIMER_WAIT, SUM_ROWS_EXAMINED, SUM_ROWS_SENT + SUM_ROWS_AFFECTED, \
             SUM_ROWS_SENT, {cpu} FROM performance_schema.events_statements_summary_by_digest \
             WHERE SCHEMA_NAME = DATABASE() AND COUNT_STAR > 0 AND DIGEST_TEXT NOT LIKE '%\\_schema%' \
             AND DIGEST_TEXT NOT LIKE 'SHOW %'"
        );
        let Some(found) = reading.reported(rows(&mut self.link, &sql), "statements", "")? else {
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
                cpu_ns: self.cpu.map(|_| number(6) / 1_000),
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
        // The counters are current at once, so the snapshots at the trial's outer bounds are not needed.
        if matches!(point, SnapshotPoint::Before | SnapshotPoint::After) {
            return Ok(reading);
        }
        if point == SnapshotPoint::Gate && clients.kept {
            let sql = format!("SELECT MAX(id) FROM {}", self.processlist);
            self.last = value(&mut self.link, &sql)?.and_then(|id| id.parse().ok());
        }
        // The same order in both snapshots: the probe's own queries then cancel out in the difference.
        let (global, own) = (self.status("GLOBAL")?, self.status("SESSION")?);
        for (what, name, unit) in SERVER {
            let value = global.number(&name.to_ascii_lowercase()).map(|value| value * unit);
            reading.count(*what, value, name, CounterScope::Server, "this version has no such counter");
        }
        for (what, name) in SESSIONS {
            let [all, own] = [&global, &own].map(|found| found.number(&name.to_ascii_lowercase()));
            if let (Some(all), Some(own)) = (all, own) {
                let value = all.saturating_sub(own);
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
                "this user may not see which sessions wait for locks (requires the PROCESS privilege): {error}"
            )),
            None => error,
        })?;
        Ok(found.iter().map(|row| session_sample(row)).collect())
    }

    fn port(&self) -> Option<u16> {
        self.link.port()
    }

    fn background(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Derives a session sample from the command, state, statement and transaction state.
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
    // For a prepared statement, the server shows its text, or the text after a keyword.
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
    fn only_wait_for_another_session_is_a_lock_wait() {
        assert_eq!(wait_state("Execute", "updating", "LOCK WAIT"), WaitState::Lock);
        assert_eq!(wait_state("Query", "Waiting for table metadata lock", ""), WaitState::Lock);
        assert_eq!(wait_state("Query", "User lock", ""), WaitState::Lock);
        assert_eq!(wait_state("Query", "User sleep", ""), WaitState::Other);
        assert_eq!(wait_state("Execute", "waiting for handler commit", "RUNNING"), WaitState::Log);
        assert_eq!(wait_state("Execute", "updating", "RUNNING"), WaitState::Running);
        // The session got its lock between the two reads.
        assert_eq!(wait_state("Sleep", "", "LOCK WAIT"), WaitState::Idle);
        assert_eq!(session_sample(&["Sleep".to_owned()]).statement, "");
    }
}
