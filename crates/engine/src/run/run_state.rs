//! The state of a run: completed and failed trials, and how long trials take.

use crate::plan::budget::RESTART;
use crate::plan::{Plan, TrialId};
use crate::run::listener::Event;
use kurabe_core::ErrorKind;
use kurabe_core::experiment::OperationInfo;
use kurabe_core::run::{CellRecord, Outcome, RunSpec, TrialRecord};
use kurabe_core::units;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The progress of a run when a trial starts.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) ended: usize,
    pub(crate) planned: usize,
    pub(crate) left: Option<Duration>,
}

impl Progress {
    pub(crate) fn begins<'a>(
        self,
        round: u32,
        cell: &'a CellRecord,
        operation: &'a OperationInfo,
    ) -> Event<'a> {
        let Self { ended, planned, left } = self;
        Event::TrialBegins { round, cell, operation: operation.name, ended, planned, left }
    }
}

/// What the rest of a run needs to know of a finished trial.
pub(crate) struct TrialResult {
    pub(crate) failed: bool,
    /// Its total time.
    pub(crate) took: Duration,
    /// The part of it for loading data.
    pub(crate) loading: Duration,
    /// The disturbance, if any.
    pub(crate) disturbed: Option<Disturbance>,
}

/// A disturbance of a trial, which causes a rerun.
#[derive(Clone, Debug)]
pub(crate) struct Disturbance {
    /// The reason, as a clause.
    pub(crate) why: String,
    pub(crate) kind: DisturbanceKind,
}

/// What disturbed a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisturbanceKind {
    /// Other load: the result is noisy.
    Interference,
    /// Kurabe itself stood still: the result is wrong.
    Standstill,
    /// An agent was lost: there is no result, or it is one of more agents than other trials of its round have.
    LostAgent,
}

impl DisturbanceKind {
    /// Whether the result never counts, so that the trial is rerun whatever time that takes.
    pub(crate) fn is_void(self) -> bool {
        self != Self::Interference
    }
}

/// A rerun of a disturbed trial.
#[derive(Clone, Debug)]
pub(crate) struct Rerun {
    /// What disturbed the previous one, as a clause.
    pub(crate) why: String,
    /// Its number, from 1.
    pub(crate) number: u32,
}

impl TrialResult {
    /// Whether its result never counts.
    pub(crate) fn is_void(&self) -> bool {
        self.disturbed.as_ref().is_some_and(|disturbed| disturbed.kind.is_void())
    }
}

/// Completed and failed trials, and how long trials take.
#[derive(Default)]
pub(crate) struct RunState {
    /// The plan's, with fewer rounds once some are given up.
    pub(crate) spec: RunSpec,
    pub(crate) made: HashSet<(u32, TrialId)>,
    /// The number of rounds in which each trial ran.
    pub(crate) rounds_made: HashMap<TrialId, u32>,
    pub(crate) failed: HashSet<TrialId>,
    pub(crate) ended: usize,
    pub(crate) took: HashMap<TrialId, Duration>,
    pub(crate) total: Duration,
    pub(crate) timed: u32,
    /// The total time of loading.
    pub(crate) loading: Duration,
    /// The total time of reruns.
    pub(crate) rerun_time: Duration,
    /// Recorded trials whose results never count, and which still need a rerun.
    pub(crate) pending_reruns: HashMap<(u32, TrialId), Rerun>,
    /// The block of rounds of the last trial since the program started.
    pub(crate) block: Option<u32>,
}

impl RunState {
    /// The state after these trials. `without_lost_agents`: trials that lost an agent are repeated.
    pub(crate) fn new(earlier: &[TrialRecord], plan: &Plan, without_lost_agents: bool) -> Self {
        let (ids, operations) = (&plan.trials, &plan.operations);
        let mut state = Self { spec: plan.spec.clone(), ..Self::default() };
        for trial in earlier {
            let operation = operations.iter().position(|operation| operation.name == trial.operation);
            let Some(id) = operation.map(|operation| (trial.cell, operation)) else { continue };
            let lost = || without_lost_agents.then(|| connection_lost(&trial.outcome)).flatten();
            if let Some(why) = standstill_of(&trial.outcome).or_else(lost) {
                state.pending_reruns.insert((trial.round, id), Rerun { why, number: 1 });
                continue;
            }
            state.pending_reruns.remove(&(trial.round, id));
            if ids.contains(&id) && state.made.insert((trial.round, id)) {
                *state.rounds_made.entry(id).or_default() += 1;
                state.ended += 1;
            }
            if trial.has_failed() {
                state.failed.insert(id);
            }
        }
        state
    }

    pub(crate) fn note(&mut self, round: u32, id: TrialId, attempt: &TrialResult) {
        let took = attempt.took.saturating_sub(attempt.loading);
        self.loading += attempt.loading;
        if attempt.failed && !attempt.is_void() {
            self.failed.insert(id);
        }
        self.made.insert((round, id));
        *self.rounds_made.entry(id).or_default() += 1;
        self.ended += 1;
        self.took.insert(id, took);
        self.total += took;
        self.timed += 1;
    }

    /// The progress of the run.
    pub(crate) fn progress(&self, plan: &Plan, rounds: u32) -> Progress {
        let planned = plan.trials.len() * rounds as usize;
        let begun = self.block.unwrap_or_default() + 1;
        let restarts = (self.spec.block(rounds.saturating_sub(1)) + 1).saturating_sub(begun);
        // Each block loads what the first one did.
        let loading = self.loading.mul_f64(f64::from(restarts) / f64::from(begun));
        let left = self.left(&plan.trials, rounds).map(|left| left + loading + RESTART * restarts);
        Progress { ended: self.ended, planned, left }
    }

    /// Each remaining trial is expected to take as long as last time, or the mean of the others if it is new; and as many to be
    /// repeated as were.
    pub(crate) fn left(&self, ids: &[TrialId], rounds: u32) -> Option<Duration> {
        let mean = self.total.checked_div(self.timed)?;
        let mut left = Duration::ZERO;
        for id in ids.iter().filter(|id| !self.failed.contains(id)) {
            let made = self.rounds_made.get(id).copied().unwrap_or(0);
            left += self.took.get(id).copied().unwrap_or(mean) * rounds.saturating_sub(made);
        }
        let repeated = self.rerun_time.as_secs_f64() / self.total.as_secs_f64().max(f64::MIN_POSITIVE);
        Some(left.mul_f64(1.0 + repeated))
    }
}

/// Says that Kurabe itself stood still, if it did, as a clause.
fn standstill_of(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Measured(measured) if measured.stood_still_ns > 0 => {
            Some(standstill(Duration::from_nanos(measured.stood_still_ns)))
        }
        _ => None,
    }
}

/// The reason of a trial that lost an agent, or a server: the record does not tell them apart.
fn connection_lost(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed { kind: ErrorKind::ConnectionLost, reason, .. } => Some(reason.clone()),
        _ => None,
    }
}

/// Says how long Kurabe itself stood still, as a clause.
pub(crate) fn standstill(time: Duration) -> String {
    format!("kurabe itself stood still for {}", units::time(time))
}
