//! What an engine's sessions were doing, in samples.

use super::statement::MOST;
use serde::{Deserialize, Serialize};

/// What a session was doing when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSample {
    /// What that comes to.
    pub wait_state: WaitState,
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
pub enum WaitState {
    /// At work: on a processor or ready for one, or in a wait that the engine does not name.
    Running,
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

impl WaitState {
    /// As tables name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "at work",
            Self::Lock => "lock",
            Self::Log => "log",
            Self::File => "file",
            Self::Other => "other wait",
            Self::Idle => "idle",
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
    pub wait_state: WaitState,
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

    /// Puts what was met most first, and leaves the rest to the sums.
    pub fn finish(&mut self) {
        self.groups.sort_by_key(|group| std::cmp::Reverse(group.seen));
        self.groups.truncate(MOST);
    }

    /// Takes out what tells the engine.
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
    fn sessions_that_do_the_same_are_counted_together() {
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
        assert_eq!((waits.groups[0].wait_state, waits.groups[0].seen, waits.groups.len()), (WaitState::Lock, 2, 3));
        waits.without_names();
        assert!(waits.groups.iter().all(|group| group.event.is_empty() && group.statement.is_empty()));
    }
}
