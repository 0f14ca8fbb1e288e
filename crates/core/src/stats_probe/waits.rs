//! Wait states of a server's sessions, sampled.

use super::statement::MOST;
use crate::named::named;
use serde::{Deserialize, Serialize};

/// A sample of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSample {
    /// Its wait state, common to all engines.
    pub wait_state: WaitState,
    /// Its state in the server's own terms.
    pub state: String,
    /// The wait event in the server's own terms; empty if it does not wait.
    pub event: String,
    /// Its current statement; empty if there is none.
    pub statement: String,
}

named! {
    /// The wait state of a session, in terms common to all engines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum WaitState {
        /// On a processor or runnable, or in a wait that the server does not report.
        Running => "running",
        /// Waiting for a lock of another session: on a row, a table or a name.
        Lock => "lock",
        /// Waiting for a write or sync of the log, its own or a group commit.
        Log => "log",
        /// Waiting for a file.
        File => "file",
        /// In another wait that the server reports.
        Other => "other wait",
        /// Idle: waiting for the client.
        Idle => "idle",
        /// Executing a request, or within a transaction. The server does not report whether it waits for something.
        Active => "active",
    }
    /// Its name in tables.
    pub fn word;
}

/// Wait states of the clients' sessions, as reported by the server, in samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineWaits {
    /// Running or waiting sessions in all samples.
    pub active: u64,
    /// Of these, sessions that waited for a lock.
    pub locks: u64,
    /// Of these, sessions that waited for a write or sync of the log.
    #[serde(default)]
    pub logs: u64,
    /// The number of samples.
    #[serde(default)]
    pub samples: u64,
    /// The clients' sessions in all samples, including idle ones.
    #[serde(default)]
    pub sessions: u64,
    /// The groups of equal samples, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<WaitGroup>,
    /// The total time of all queries, in nanoseconds: an upper bound of the CPU time of sampling on client and
    /// server.
    #[serde(default)]
    pub cost_ns: u64,
}

/// Equal session samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitGroup {
    /// The wait state.
    pub wait_state: WaitState,
    /// The state in the server's own terms.
    pub state: String,
    /// The wait event in the server's own terms; empty if there is none.
    pub event: String,
    /// The statement; empty if there is none.
    pub statement: String,
    /// How often it was sampled.
    pub seen: u64,
}

impl EngineWaits {
    /// Adds a sample of all sessions.
    pub fn add(&mut self, samples: Vec<SessionSample>) {
        self.samples += 1;
        for SessionSample { wait_state, state, event, statement } in samples {
            self.sessions += 1;
            self.active += u64::from(wait_state != WaitState::Idle);
            self.locks += u64::from(wait_state == WaitState::Lock);
            self.logs += u64::from(wait_state == WaitState::Log);
            let group = WaitGroup { wait_state, state, event, statement, seen: 0 };
            let same = |known: &&mut WaitGroup| {
                known.wait_state == group.wait_state
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

    /// Sorts groups by frequency and drops the rarest. The sums keep them.
    pub fn finish(&mut self) {
        self.groups.sort_by_key(|group| std::cmp::Reverse(group.seen));
        self.groups.truncate(MOST);
    }

    /// Removes texts that reveal the engine.
    pub(crate) fn without_names(&mut self) {
        let mut plain: Vec<WaitGroup> = Vec::new();
        for group in &self.groups {
            match plain.iter_mut().find(|known| known.wait_state == group.wait_state) {
                Some(known) => known.seen += group.seen,
                None => plain.push(WaitGroup {
                    wait_state: group.wait_state,
                    state: group.wait_state.word().to_owned(),
                    event: String::new(),
                    statement: String::new(),
                    seen: group.seen,
                }),
            }
        }
        self.groups = plain;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_session_samples_are_counted_together() {
        let session_sample = |wait_state, event: &str| SessionSample {
            wait_state,
            state: "active".to_owned(),
            event: event.to_owned(),
            statement: "update t".to_owned(),
        };
        let mut waits = EngineWaits::default();
        waits.add(vec![session_sample(WaitState::Idle, ""), session_sample(WaitState::Lock, "row")]);
        waits.add(vec![session_sample(WaitState::Lock, "row"), session_sample(WaitState::Log, "sync")]);
        waits.finish();
        assert_eq!((waits.samples, waits.sessions, waits.active, waits.locks, waits.logs), (2, 4, 3, 2, 1));
        assert_eq!(
            (waits.groups[0].wait_state, waits.groups[0].seen, waits.groups.len()),
            (WaitState::Lock, 2, 3)
        );
        waits.without_names();
        assert!(waits.groups.iter().all(|group| group.event.is_empty() && group.statement.is_empty()));
    }
}
