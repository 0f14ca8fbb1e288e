//! Stats probe of PostgreSQL. Source: its manual, "The Cumulative Statistics System", "Monitoring", `pg_stat_activity`,
//! `pg_stat_statements`.
//!
//! The write-ahead log's position is always exact. Sessions flush their counters at most once a second, or when they
//! end (`pgstat_report_stat`); a reading while clients are connected would miss their last work. These counters are
//! therefore read before the first client connects and after the last session ended; a session flushes them before it
//! leaves `pg_stat_activity`. Before version 15 a collector delayed them further, so they are not read there.

use super::lean::Lean;
use crate::prelude::*;
use crate::probe::ClientSessions;
use crate::wire::Stream;
use crate::wire::link::{rows, value};
use kurabe_core::sort;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// First version with statistics in shared memory.
const SHARED: u32 = 150_000;
/// First version with `pg_stat_checkpointer`.
const CHECKPOINTER: u32 = 170_000;
/// First version that counts syncs of the log in `pg_stat_io`.
const SYNCS_IN_IO: u32 = 180_000;
/// Maximum time for sessions to end.
const LEAVING: Duration = Duration::from_secs(2);

/// Selects sessions that this driver opened, by database, user and application name, and the server's processes that work
/// in the background now: a checkpointer that does not wait for its next checkpoint, and workers of autovacuum. A user
/// without `pg_read_all_stats` sees the type of no such process. It is prepared because it runs ten times a second during
/// a measurement, and planning the view takes five times as long as running it (0.1 ms).
const PREPARE: &str = "PREPARE kurabe_sessions AS \
     SELECT pid, state, wait_event_type, wait_event, left(query, 400), backend_type FROM pg_catalog.pg_stat_activity \
     WHERE datname = current_database() AND usename = current_user AND application_name = current_setting('application_name') \
     AND pid <> pg_backend_pid() \
     OR backend_type = 'checkpointer' AND wait_event IS DISTINCT FROM 'CheckpointerMain' \
     OR backend_type = 'autovacuum worker'";
/// The column of the process's type.
const TYPE: usize = 5;
const SESSIONS: &str = "EXECUTE kurabe_sessions";

pub(super) struct PostgresStatsProbe {
    link: Lean<Stream>,
    version: u32,
    clients: ClientSessions,
    /// The schema of `pg_stat_statements`, quoted, if installed.
    statements: Option<String>,
    /// The server's processes that worked in the background at the last reading of sessions.
    background: Vec<String>,
}

impl PostgresStatsProbe {
    pub(super) fn new(mut link: Lean<Stream>) -> Result<Self> {
        let version = value(&mut link, "SHOW server_version_num")?.and_then(|n| n.parse().ok()).unwrap_or(0);
        // An installed extension is readable only if the server loaded it at its start.
        let sql = "SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension e \
                   JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements'";
        let statements = value(&mut link, sql)?;
        rows(&mut link, PREPARE)?;
        Ok(Self { link, version, clients: ClientSessions::default(), statements, background: Vec::new() })
    }

    /// Reads the clients' sessions.
    fn sessions(&mut self) -> Result<Vec<Vec<String>>> {
        let mut found = rows(&mut self.link, SESSIONS)?;
        let kind = |row: &Vec<String>| row.get(TYPE).cloned().unwrap_or_default();
        let is_background = |row: &Vec<String>| ["checkpointer", "autovacuum worker"].contains(&&*kind(row));
        self.background = found.extract_if(.., |row| is_background(row)).map(|row| kind(&row)).collect();
        sort::by(&mut self.background, Ord::cmp);
        self.background.dedup();
        self.clients.retain(&mut found);
        Ok(found)
    }

    /// Reads one row of numbers, each the value of a counter.
    fn count(
        &mut self,
        reading: &mut Reading,
        sql: &str,
        counters: &[(Counter, &str, CounterScope)],
    ) -> Result<()> {
        let found = match rows(&mut self.link, sql) {
            Err(error) if error.server_code().is_some() => {
                let why = error.to_string();
                for (what, ..) in counters {
                    reading.add_unavailable(what.word(), &*why);
                }
                return Ok(());
            }
            found => found?,
        };
        for ((what, from, scope), text) in counters.iter().zip(found.into_iter().next().unwrap_or_default()) {
            reading.count(*what, text.parse().ok(), from, *scope, "the server returned no number");
        }
        Ok(())
    }

    /// Reads the counters that are always exact.
    fn exact(&mut self, reading: &mut Reading) -> Result<()> {
        let sql = "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')";
        self.count(reading, sql, &[(Counter::LogBytes, "pg_current_wal_insert_lsn", CounterScope::Server)])?;
        let Some(schema) = self.statements.clone() else {
            reading.add_unavailable("statements", "pg_stat_statements is not installed in this database");
            return Ok(());
        };
        let sql = format!(
            "SELECT query, sum(calls), sum(total_exec_time), sum(rows) FROM {schema}.pg_stat_statements s \
             JOIN pg_catalog.pg_database d ON d.oid = s.dbid WHERE d.datname = current_database() \
             AND query NOT LIKE '%pg\\_%' GROUP BY query"
        );
        let Some(found) = reading.reported(rows(&mut self.link, &sql), "statements", "")? else {
            return Ok(());
        };
        let mut returned = 0;
        for row in found {
            let number = |at: usize| row.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
            let text = row.first().map(|text| shortened(text)).unwrap_or_default();
            let is_select = text.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
            returned += if is_select { number(3) as u64 } else { 0 };
            reading.statements.push(StatementUse {
                text,
                calls: number(1) as u64,
                time_ns: (number(2) * 1e6) as u64,
                cpu_ns: None,
                rows_examined: None,
                rows: number(3) as u64,
            });
        }
        let from = "pg_stat_statements.rows of SELECT";
        reading.counts.push(EngineCount::new(Counter::RowsReturned, returned, from, CounterScope::Database));
        Ok(())
    }

    /// Reads the counters that sessions flush late. System tables are excluded, because each new session reads them.
    fn late(&mut self, reading: &mut Reading) -> Result<()> {
        if self.version < SHARED {
            let why = "before version 15 the server updates them too late";
            reading.add_unavailable("statistics of tables, checkpoints and temporary files", why);
            return Ok(());
        }
        let rows = "SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)::bigint \
                    FROM pg_catalog.pg_stat_user_tables";
        let from = "pg_stat_user_tables.seq_tup_read + idx_tup_fetch";
        self.count(reading, rows, &[(Counter::RowsExamined, from, CounterScope::Database)])?;
        let [hits, reads] = ["hit", "read"].map(|kind| {
            let parts = ["heap_blks", "idx_blks", "toast_blks", "tidx_blks"];
            parts.map(|part| format!("coalesce({part}_{kind}, 0)")).join(" + ")
        });
        let pages = format!(
            "SELECT coalesce(sum({hits} + {reads}), 0)::bigint, coalesce(sum({reads}), 0)::bigint \
             FROM pg_catalog.pg_statio_user_tables"
        );
        let counters = [
            (
                Counter::PagesRequested,
                "pg_statio_user_tables.*_blks_hit + *_blks_read",
                CounterScope::Database,
            ),
            (Counter::PagesMissed, "pg_statio_user_tables.*_blks_read", CounterScope::Database),
        ];
        self.count(reading, &pages, &counters)?;
        let files = "SELECT temp_files FROM pg_catalog.pg_stat_database WHERE datname = current_database()";
        let from = "pg_stat_database.temp_files";
        self.count(reading, files, &[(Counter::Temporary, from, CounterScope::Database)])?;
        let (checkpoints, from) = if self.version < CHECKPOINTER {
            (
                "SELECT checkpoints_timed + checkpoints_req FROM pg_catalog.pg_stat_bgwriter",
                "pg_stat_bgwriter",
            )
        } else {
            ("SELECT num_timed + num_requested FROM pg_catalog.pg_stat_checkpointer", "pg_stat_checkpointer")
        };
        self.count(reading, checkpoints, &[(Counter::Checkpoints, from, CounterScope::Server)])?;
        let (syncs, from) = if self.version < SYNCS_IN_IO {
            ("SELECT wal_sync FROM pg_catalog.pg_stat_wal", "pg_stat_wal.wal_sync")
        } else {
            (
                "SELECT coalesce(sum(fsyncs), 0)::bigint FROM pg_catalog.pg_stat_io WHERE object = 'wal'",
                "pg_stat_io.fsyncs of wal",
            )
        };
        self.count(reading, syncs, &[(Counter::LogSyncs, from, CounterScope::Server)])
    }

    /// Waits until the clients' sessions have ended, and so flushed their counters; returns whether they have.
    fn gone(&mut self) -> Result<bool> {
        let until = Instant::now() + LEAVING;
        while !self.sessions()?.is_empty() {
            if Instant::now() >= until {
                return Ok(false);
            }
            sleep(Duration::from_millis(5));
        }
        Ok(true)
    }
}

impl StatsProbe for PostgresStatsProbe {
    fn snapshot(&mut self, point: SnapshotPoint, clients: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if ClientSessions::are_noted(point, clients) {
            let sessions = self.sessions()?;
            self.clients.note(point, sessions);
        }
        match point {
            SnapshotPoint::Before => self.late(&mut reading)?,
            SnapshotPoint::Gate => {
                self.exact(&mut reading)?;
                let why = "the server does not count them; session samples show them";
                reading.add_unavailable(Counter::LockWaits.word(), why);
            }
            SnapshotPoint::End => self.exact(&mut reading)?,
            SnapshotPoint::After => {
                if self.gone()? {
                    self.late(&mut reading)?;
                } else {
                    let why = "the clients' sessions did not end in time to flush their counters";
                    reading.add_unavailable("statistics of tables", why);
                }
            }
        }
        if matches!(point, SnapshotPoint::Before | SnapshotPoint::After) {
            for count in &mut reading.counts {
                count.warmup = true;
            }
        }
        Ok(reading)
    }

    fn sample_sessions(&mut self, _: &Clients) -> Result<Vec<SessionSample>> {
        Ok(self.sessions()?.iter().map(|row| session_sample(row)).collect())
    }

    fn background(&self) -> Vec<String> {
        self.background.clone()
    }

    fn port(&self) -> Option<u16> {
        self.link.port()
    }
}

/// Derives a session sample from the process, state, wait event type, wait event and statement.
fn session_sample(row: &[String]) -> SessionSample {
    let field = |at: usize| row.get(at).map_or("", String::as_str);
    let (state, kind, wait) = (field(1), field(2), field(3));
    let wait_state = match (state, kind, wait) {
        ("active" | "fastpath function call", "", _) => WaitState::Running,
        ("active" | "fastpath function call", kind, wait) => match (kind, wait) {
            ("Lock", _) => WaitState::Lock,
            ("IO", wait) if wait.starts_with("WAL") || wait.starts_with("Wal") => WaitState::Log,
            // Another session is writing or syncing the log for both.
            ("LWLock", "WALWrite") | ("IPC", "SyncRep") => WaitState::Log,
            ("IO", _) => WaitState::File,
            ("Client", _) => WaitState::Idle,
            _ => WaitState::Other,
        },
        _ => WaitState::Idle,
    };
    let event = if wait_state == WaitState::Idle || kind.is_empty() {
        String::new()
    } else {
        format!("{kind}: {wait}")
    };
    // An idle session shows its previous statement.
    let statement = if wait_state == WaitState::Idle { String::new() } else { shortened(field(4)) };
    SessionSample { wait_state, state: state.to_owned(), event, statement }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_state(state: &str, kind: &str, wait: &str) -> WaitState {
        session_sample(&["1", state, kind, wait, "SELECT 1"].map(str::to_owned)).wait_state
    }

    #[test]
    fn only_wait_for_another_session_is_a_lock_wait() {
        assert_eq!(wait_state("active", "Lock", "transactionid"), WaitState::Lock);
        assert_eq!(wait_state("active", "LWLock", "WALWrite"), WaitState::Log);
        assert_eq!(wait_state("active", "IO", "WALSync"), WaitState::Log);
        // From version 17 on.
        assert_eq!(wait_state("active", "IO", "WalSync"), WaitState::Log);
        assert_eq!(wait_state("active", "IO", "DataFileRead"), WaitState::File);
        assert_eq!(wait_state("active", "Timeout", "PgSleep"), WaitState::Other);
        assert_eq!(wait_state("active", "LWLock", "BufferContent"), WaitState::Other);
        assert_eq!(wait_state("active", "", ""), WaitState::Running);
        assert_eq!(wait_state("active", "Client", "ClientRead"), WaitState::Idle);
        assert_eq!(wait_state("idle in transaction", "Client", "ClientRead"), WaitState::Idle);
        assert_eq!(session_sample(&["1", "idle"].map(str::to_owned)).statement, "");
    }
}
