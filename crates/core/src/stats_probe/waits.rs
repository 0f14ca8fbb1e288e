//! Wait states of a server's sessions, sampled.

use super::MAX;
use crate::named::named;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The maximum number of points of the time series. If there are more samples, neighbours are merged.
const POINTS: usize = 48;

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
    /// The samples over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<WaitPoint>,
    /// The total time of all queries, in nanoseconds: an upper bound of the CPU time of sampling on client and
    /// server.
    #[serde(default)]
    pub cost_ns: u64,
}

/// Equal session samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitGroup {
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

/// Consecutive samples of all sessions, as a point of a time series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitPoint {
    /// The time of its last sample: milliseconds since the gate opened.
    pub at_ms: u64,
    /// The number of samples.
    pub samples: u64,
    /// Sessions in each wait state over these samples, without idle ones.
    pub states: BTreeMap<WaitState, u64>,
    /// The server's work in the background that was seen, in its own terms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<String>,
}

impl WaitPoint {
    /// Adds the samples after it.
    fn append(&mut self, later: &Self) {
        self.at_ms = later.at_ms;
        self.samples += later.samples;
        for (state, count) in &later.states {
            *self.states.entry(*state).or_default() += count;
        }
        for work in &later.background {
            if !self.background.contains(work) {
                self.background.push(work.clone());
            }
        }
    }
}

impl EngineWaits {
    /// Adds a sample of all sessions at a time, in milliseconds since the gate opened, and of the server's work in the
    /// background.
    pub fn add_at(&mut self, at_ms: u64, samples: Vec<SessionSample>, background: Vec<String>) {
        let mut point = WaitPoint { at_ms, samples: 1, background, ..WaitPoint::default() };
        for sample in samples.iter().filter(|sample| sample.wait_state != WaitState::Idle) {
            *point.states.entry(sample.wait_state).or_default() += 1;
        }
        // Points cover equally many samples, except the last one, which is not full yet.
        let full = self.course.first().map_or(1, |first| first.samples);
        match self.course.last_mut().filter(|last| last.samples < full) {
            Some(last) => last.append(&point),
            None => self.course.push(point),
        }
        if self.course.len() > POINTS {
            let merged = self.course.chunks(2).map(|pair| {
                let mut point = pair.first().cloned().unwrap_or_default();
                pair.iter().skip(1).for_each(|later| point.append(later));
                point
            });
            self.course = merged.collect();
        }
        self.add(samples);
    }

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
        crate::sort::by_key(&mut self.groups, |group| std::cmp::Reverse(group.seen));
        self.groups.truncate(MAX);
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
        for point in self.course.iter_mut().filter(|point| !point.background.is_empty()) {
            point.background = vec!["background work".to_owned()];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_series_is_bounded_and_keeps_every_sample() {
        let session = |wait_state| SessionSample {
            wait_state,
            state: String::new(),
            event: String::new(),
            statement: String::new(),
        };
        let mut waits = EngineWaits::default();
        for n in 1..=1_000 {
            let background = if n == 500 { vec!["checkpointer".to_owned()] } else { Vec::new() };
            waits.add_at(n * 100, vec![session(WaitState::Lock), session(WaitState::Idle)], background);
        }
        assert!((POINTS / 2..=POINTS).contains(&waits.course.len()), "{}", waits.course.len());
        assert_eq!(waits.course.iter().map(|point| point.samples).sum::<u64>(), 1_000);
        assert_eq!(waits.course.iter().map(|point| point.states[&WaitState::Lock]).sum::<u64>(), 1_000);
        assert!(waits.course.iter().all(|point| !point.states.contains_key(&WaitState::Idle)));
        let working: Vec<&WaitPoint> =
            waits.course.iter().filter(|point| !point.background.is_empty()).collect();
        assert!(working.len() == 1 && working[0].at_ms >= 50_000 && working[0].at_ms < 55_000, "{working:?}");
        assert!(waits.course.is_sorted_by_key(|point| point.at_ms));
        waits.without_names();
        assert!(
            waits.course.iter().all(|point| point.background.iter().all(|work| work == "background work"))
        );
    }

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
