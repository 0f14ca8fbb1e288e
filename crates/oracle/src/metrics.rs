//! Stats probe of Oracle: `V$SYSSTAT` and `V$SESSION`. Source: Oracle Database Reference, "V$SYSSTAT", "V$SESSION",
//! "Statistics Descriptions", "Oracle Wait Events". Not yet verified with a server.
//!
//! The probe reads nothing of the Diagnostics Pack, such as `V$ACTIVE_SESSION_HISTORY`, which needs a separate licence.

use super::link::Link;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::probe::ClientSessions;
use kurabe_driver_common::reported::{Reported, listed};

/// Counters of the whole instance; a logical read is a block requested from the buffer cache.
const COUNTERS: &[(Counter, &str)] = &[
    (Counter::LogBytes, "redo size"),
    (Counter::LogSyncs, "redo writes"),
    (Counter::PagesRequested, "session logical reads"),
    (Counter::PagesMissed, "physical reads cache"),
];

/// Sessions of this user and this process, except the probe's own. In state WAITING, a session waits for its event now.
/// In any other state, the event is the last one and the session is on a CPU.
pub(crate) const SESSIONS: &str = "SELECT s.SID || ',' || s.SERIAL#, s.STATUS, s.STATE, s.WAIT_CLASS, s.EVENT, q.SQL_TEXT \
     FROM V$SESSION s LEFT JOIN V$SQL q ON q.SQL_ID = s.SQL_ID AND q.CHILD_NUMBER = s.SQL_CHILD_NUMBER \
     WHERE s.USERNAME = USER AND s.TYPE = 'USER' AND s.SID <> SYS_CONTEXT('USERENV', 'SID') \
     AND s.PROCESS = (SELECT o.PROCESS FROM V$SESSION o WHERE o.SID = SYS_CONTEXT('USERENV', 'SID'))";

pub(super) struct OracleStatsProbe {
    link: Link,
    clients: ClientSessions,
}

impl OracleStatsProbe {
    pub(super) fn new(link: Link) -> Self {
        Self { link, clients: ClientSessions::default() }
    }

    fn sessions(&mut self) -> Result<Vec<Vec<String>>> {
        let mut found = self.link.rows(SESSIONS)?;
        self.clients.retain(&mut found);
        Ok(found)
    }

    fn counters(&mut self, reading: &mut Reading) -> Result<()> {
        let names = listed(COUNTERS.iter().map(|(_, name)| name));
        let sql = format!("SELECT NAME, TO_CHAR(VALUE) FROM V$SYSSTAT WHERE NAME IN ({names})");
        let whose = "this user may not read V$SYSSTAT: ";
        if let Some(found) = reading.reported(self.link.rows(&sql), "all statistics", whose)? {
            let found = Reported::of(found);
            for (what, name) in COUNTERS {
                let missing = "this version has no such statistic";
                reading.count(*what, found.number(name), name, CounterScope::Server, missing);
            }
        }
        Ok(())
    }
}

impl StatsProbe for OracleStatsProbe {
    fn snapshot(&mut self, point: SnapshotPoint, clients: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if ClientSessions::are_noted(point, clients) {
            let sessions = match self.sessions() {
                // This user may not read them, which a sample reports.
                Err(error) if error.server_code().is_some() => Vec::new(),
                found => found?,
            };
            self.clients.note(point, sessions);
        }
        if matches!(point, SnapshotPoint::Gate | SnapshotPoint::End) {
            self.counters(&mut reading)?;
        }
        Ok(reading)
    }

    fn sample_sessions(&mut self, _: &Clients) -> Result<Vec<SessionSample>> {
        let found = self.sessions().map_err(|error| match error.server_code() {
            Some(_) => Error::unsupported(format!("this user may not read V$SESSION and V$SQL: {error}")),
            None => error,
        })?;
        Ok(found.iter().map(|row| session_sample(row)).collect())
    }

    fn background(&self) -> Vec<String> {
        Vec::new()
    }

    fn port(&self) -> Option<u16> {
        None
    }
}

/// Derives a session sample from the name, status, state, wait class, event and statement.
fn session_sample(row: &[String]) -> SessionSample {
    let field = |at: usize| row.get(at).map_or("", String::as_str);
    let (status, state, class, event) = (field(1), field(2), field(3), field(4));
    let wait_state = match (status, state, class) {
        ("ACTIVE", "WAITING", "Idle") => WaitState::Idle,
        // Such as `enq: TX - row lock contention`.
        ("ACTIVE", "WAITING", _) if event.starts_with("enq:") => WaitState::Lock,
        ("ACTIVE", "WAITING", "Commit") => WaitState::Log,
        ("ACTIVE", "WAITING", "User I/O" | "System I/O") => WaitState::File,
        ("ACTIVE", "WAITING", _) => WaitState::Other,
        ("ACTIVE", ..) => WaitState::Running,
        _ => WaitState::Idle,
    };
    let waits = !matches!(wait_state, WaitState::Idle | WaitState::Running);
    SessionSample {
        wait_state,
        state: status.to_owned(),
        event: if waits { format!("{class}: {event}") } else { String::new() },
        statement: if wait_state == WaitState::Idle { String::new() } else { shortened(field(5)) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_state(status: &str, state: &str, class: &str, event: &str) -> WaitState {
        session_sample(&["7,9", status, state, class, event, "UPDATE T SET A = :1"].map(str::to_owned))
            .wait_state
    }

    #[test]
    fn only_waiting_session_has_wait_state() {
        let row = "enq: TX - row lock contention";
        assert_eq!(wait_state("ACTIVE", "WAITING", "Application", row), WaitState::Lock);
        assert_eq!(wait_state("ACTIVE", "WAITED SHORT TIME", "Application", row), WaitState::Running);
        assert_eq!(wait_state("ACTIVE", "WAITING", "Commit", "log file sync"), WaitState::Log);
        assert_eq!(wait_state("ACTIVE", "WAITING", "User I/O", "db file sequential read"), WaitState::File);
        assert_eq!(wait_state("INACTIVE", "WAITING", "Idle", "SQL*Net message from client"), WaitState::Idle);
    }
}
