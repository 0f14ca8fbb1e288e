//! Executes a run: rounds over all trials, with a fixture per target. Every outcome is recorded before the next trial
//! starts.

use crate::plan::budget::{LATE, RESTART, fewer_blocks};
use crate::plan::{Plan, TrialId};
use crate::prepare::eviction::{Stopped, Watch};
use crate::prepare::fixture::{Fixture, Ownership};
use crate::prepare::target::Target;
use crate::run::Conditions;
use crate::run::group::{Disturbance, DisturbanceKind, Rerun, restart_all, standstill};
use crate::run::listener::{Event, RunLog, StoppingRule};
use kurabe_core::experiment::OperationInfo;
use kurabe_core::fleet::OnLostAgent;
use kurabe_core::run::{CellRecord, Outcome, Replanned, RunSpec, TrialRecord};
use kurabe_core::{ErrorKind, Result};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// The fixtures of a run: one for each target, then one for each A/A control that has its own.
pub(crate) type Fixtures = [Option<Fixture>];

/// Executes the remaining trials of a run.
pub(crate) struct Runner<'a> {
    pub(crate) plan: &'a Plan,
    /// The run's name, used for the leases of namespaces.
    pub(crate) name: &'a str,
    pub(crate) targets: &'a [Target],
    /// The start of the run.
    pub(crate) began: Instant,
    pub(crate) conditions: Conditions<'a>,
    /// The time of the run. Rounds that would end much later are given up. `None`: all planned rounds are made.
    pub(crate) budget: Option<Duration>,
}

/// Reruns may take this share of the time of all other trials.
const RERUN_SHARE: f64 = 0.2;

impl Runner<'_> {
    /// Executes the trials, and removes what the run created on the targets. Recorded trials are not repeated; a failed
    /// operation of a cell is not tried in later rounds. Returns whether every planned trial was made or is known to
    /// fail; `false` if the user stopped it. `fixtures` are from [`Fixture::open_all`].
    ///
    /// # Errors
    /// An error of the listener (such as a full disk), a throwaway server that does not restart between blocks, or a
    /// defect of the experiment's declaration. Other errors of targets are outcomes.
    pub(crate) fn run(
        &self,
        mut fixtures: Vec<Option<Fixture>>,
        rule: &StoppingRule,
        log: &mut RunLog<'_>,
    ) -> Result<bool> {
        let mut state = RunState::new(
            log.trials(),
            self.plan,
            self.plan.spec.fleet.as_ref().is_some_and(|fleet| fleet.on_lost_agent == OnLostAgent::Continue),
        );
        // A/A controls may have their own fixtures, which are opened when needed.
        fixtures.resize_with(2 * self.targets.len(), || None);
        let stopped = Stopped::default();
        // Values of others in servers with limited memory are watched.
        let result = thread::scope(|scope| {
            let watch = Watch::start(scope, self.plan, self.targets, self.conditions.cancel, &stopped)?;
            let result = self.rounds(&mut fixtures, &mut state, rule, log);
            watch.end();
            result
        });
        // A control's fixture is dropped before the one that holds the lease for both.
        fixtures.truncate(self.targets.len());
        for (slot, fixture) in fixtures.into_iter().enumerate() {
            // A failed trial dropped its fixture, which could not clean up if the connection was lost. A server that
            // was removed needs no clean-up.
            let tables = self.plan.need(slot) == Ownership::Tables;
            if tables && fixture.is_none() && self.targets[slot].skip_reason.is_none() {
                let _ = self.open(slot, &self.targets[slot]);
            }
        }
        // An eviction is the cause of whatever failed after it.
        stopped.take().map_or(result, Err)?;
        Ok(!self.conditions.cancel.load(Ordering::Relaxed))
    }

    fn rounds(
        &self,
        fixtures: &mut Fixtures,
        state: &mut RunState,
        rule: &StoppingRule,
        log: &mut RunLog<'_>,
    ) -> Result<()> {
        let mut rounds = self.plan.spec.rounds;
        let mut round = 0;
        loop {
            while round < rounds {
                if let Some(event) = self.replanned(round, &mut rounds, state) {
                    log.emit(event)?;
                    continue;
                }
                self.begin_block(round, fixtures, state, log)?;
                if self.round(round, rounds, fixtures, state, log)?.is_break() {
                    return Ok(());
                }
                round += 1;
            }
            let stopped = self.conditions.cancel.load(Ordering::Relaxed);
            let further = if stopped { 0 } else { rule.further(rounds, log)? };
            if further == 0 {
                return Ok(());
            }
            rounds = rounds.saturating_add(further);
        }
    }

    /// Restarts the throwaway servers if a round belongs to another block than the last trial since the program
    /// started. A resumed run has just started its servers.
    fn begin_block(
        &self,
        round: u32,
        fixtures: &mut Fixtures,
        state: &mut RunState,
        log: &mut RunLog<'_>,
    ) -> Result<()> {
        let is_ended = |id: &TrialId| {
            state.made.contains(&(round, *id))
                || state.failed.contains(id)
                || !self.plan.has_trial(*id, &state.spec, round)
        };
        if self.plan.trials.iter().all(is_ended) || self.conditions.cancel.load(Ordering::Relaxed) {
            return Ok(());
        }
        let block = state.spec.block(round);
        if state.block.replace(block).is_none_or(|last| last == block) {
            return Ok(());
        }
        log.emit(Event::Restarting)?;
        // Restarts close connections and clear stores in memory. So fixtures are dropped first, while the servers can
        // still clean up: those of A/A controls before those that hold the leases.
        for (slot, fixture) in fixtures.iter_mut().enumerate().rev() {
            let target = &self.targets[slot % self.targets.len()];
            if target.restart.is_some() {
                *fixture = None;
            }
        }
        restart_all(self.targets)
    }

    /// Executes one round: its trials in order, then reruns of disturbed ones. Breaks if the user stopped the run.
    fn round(
        &self,
        round: u32,
        rounds: u32,
        fixtures: &mut Fixtures,
        state: &mut RunState,
        log: &mut RunLog<'_>,
    ) -> Result<ControlFlow<()>> {
        let kind = (round, state.spec.is_continuous(round));
        let mut queue = VecDeque::new();
        let mut begun: Vec<Vec<TrialId>> = Vec::new();
        for mut group in self.plan.round(&state.spec, round) {
            group.retain(|id| !state.made.contains(&(round, *id)));
            let tried = group.len();
            group.retain(|id| !state.failed.contains(id));
            state.ended += tried - group.len();
            let progress = state.progress(self.plan, rounds);
            let rerun = group.iter().find_map(|id| state.pending_reruns.get(&(round, *id))).cloned();
            let made = self.make(kind, &group, rerun.as_ref(), fixtures, progress, log)?;
            let Some(made) = made else { return Ok(ControlFlow::Break(())) };
            let mut disturbed = None;
            for (id, attempt) in group.iter().zip(made) {
                state.note(round, *id, &attempt);
                disturbed = disturbed.or(attempt.disturbed);
            }
            begun.push(group.clone());
            if let Some(disturbance) = disturbed {
                queue_rerun(&mut queue, &begun, group, &disturbance, rerun.map_or(0, |rerun| rerun.number));
            }
        }
        while let Some(Queued { mut group, rerun, kind: disturbance }) = queue.pop_front() {
            group.retain(|id| !state.failed.contains(id));
            let last: Duration = group.iter().filter_map(|id| state.took.get(id)).sum();
            // Whether to rerun depends on the disturbance and on the time spent so far, never on the result.
            if !disturbance.is_void()
                && (state.rerun_time + last).as_secs_f64() > state.total.as_secs_f64() * RERUN_SHARE
            {
                continue;
            }
            let mut progress = state.progress(self.plan, rounds);
            progress.ended = progress.ended.saturating_sub(group.len());
            let made = self.make(kind, &group, Some(&rerun), fixtures, progress, log)?;
            let Some(made) = made else { return Ok(ControlFlow::Break(())) };
            let mut disturbed = None;
            for (id, attempt) in group.iter().zip(made) {
                if !disturbance.is_void() {
                    state.rerun_time += attempt.took;
                }
                if attempt.is_void() {
                    disturbed = attempt.disturbed;
                } else if attempt.failed {
                    state.failed.insert(*id);
                }
            }
            if let Some(disturbance) = disturbed {
                queue_rerun(&mut queue, &begun, group, &disturbance, rerun.number);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The expected time of so many rounds since the start of the run.
    fn time_of(&self, rounds: u32, state: &RunState) -> Option<Duration> {
        Some(self.began.elapsed() + state.progress(self.plan, rounds).left?)
    }

    /// Gives up rounds that the budget does not allow. Only time decides, so this does not favour a result. If it does not
    /// allow the blocks that a verdict of any start needs, servers are not restarted.
    fn replanned(&self, made: u32, rounds: &mut u32, state: &mut RunState) -> Option<Event<'static>> {
        // What an interleaved round takes is known after the first one.
        let is_known = made > u32::from(state.spec.slice_ns.is_some());
        let late = self.budget.filter(|_| is_known)?.mul_f64(LATE);
        let (planned, restarts) = (*rounds, state.spec.restarts);
        let expected = self.time_of(planned, state)?;
        while self.time_of(*rounds, state).is_some_and(|time| time > late) {
            match fewer_blocks(&state.spec, *rounds).filter(|fewer| *fewer >= made) {
                Some(fewer) => *rounds = fewer,
                None if state.spec.restarts > 0 && state.block.unwrap_or_default() == 0 => {
                    (state.spec.restarts, *rounds) = (0, planned);
                }
                None => break,
            }
        }
        if (*rounds, state.spec.restarts) == (planned, restarts) {
            return None;
        }
        if state.spec.restarts > 0 {
            state.spec.restarts = *rounds / state.spec.block_length() - 1;
        }
        state.spec.rounds = *rounds;
        let plan = Replanned { rounds: *rounds, restarts: state.spec.restarts };
        Some(Event::Replanned { plan, planned, expected })
    }
}

/// Trials that are repeated at the end of their round.
struct Queued {
    group: Vec<TrialId>,
    rerun: Rerun,
    kind: DisturbanceKind,
}

/// Queues a group that was disturbed after this many reruns. If an agent was lost, all trials that the round has `begun`
/// are repeated: they are compared with those that follow, which run on fewer agents.
fn queue_rerun(
    queue: &mut VecDeque<Queued>,
    begun: &[Vec<TrialId>],
    group: Vec<TrialId>,
    disturbance: &Disturbance,
    reruns: u32,
) {
    let Disturbance { why, kind } = disturbance;
    let queued = |group, number| Queued { group, rerun: Rerun { why: why.clone(), number }, kind: *kind };
    if *kind == DisturbanceKind::LostAgent {
        // They are among those that the round has begun.
        queue.clear();
        queue.extend(begun.iter().map(|group| queued(group.clone(), 1)));
    } else {
        queue.push_back(queued(group, reruns + 1));
    }
}

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

impl TrialResult {
    /// Whether its result never counts.
    pub(crate) fn is_void(&self) -> bool {
        self.disturbed.as_ref().is_some_and(|disturbed| disturbed.kind.is_void())
    }
}

/// Completed and failed trials, and how long trials take.
#[derive(Default)]
struct RunState {
    /// The plan's, with fewer rounds once some are given up.
    spec: RunSpec,
    made: HashSet<(u32, TrialId)>,
    /// The number of rounds in which each trial ran.
    rounds_made: HashMap<TrialId, u32>,
    failed: HashSet<TrialId>,
    ended: usize,
    took: HashMap<TrialId, Duration>,
    total: Duration,
    timed: u32,
    /// The total time of loading.
    loading: Duration,
    /// The total time of reruns.
    rerun_time: Duration,
    /// Recorded trials whose results never count, and which still need a rerun.
    pending_reruns: HashMap<(u32, TrialId), Rerun>,
    /// The block of rounds of the last trial since the program started.
    block: Option<u32>,
}

impl RunState {
    /// The state after these trials. `without_lost_agents`: trials that lost an agent are repeated.
    fn new(earlier: &[TrialRecord], plan: &Plan, without_lost_agents: bool) -> Self {
        let (ids, operations) = (&plan.trials, &plan.operations);
        let mut state = Self { spec: plan.spec.clone(), ..Self::default() };
        for trial in earlier {
            let operation = operations.iter().position(|operation| operation.name == trial.operation);
            let Some(id) = operation.map(|operation| (trial.cell, operation)) else { continue };
            let why = match &trial.outcome {
                Outcome::Measured(measured) if measured.stood_still_ns > 0 => {
                    Some(standstill(Duration::from_nanos(measured.stood_still_ns)))
                }
                // An agent was lost, or a server: the record does not tell them apart.
                Outcome::Failed { kind: ErrorKind::ConnectionLost, reason, .. } if without_lost_agents => {
                    Some(reason.clone())
                }
                _ => None,
            };
            if let Some(why) = why {
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

    fn note(&mut self, round: u32, id: TrialId, attempt: &TrialResult) {
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
    fn progress(&self, plan: &Plan, rounds: u32) -> Progress {
        let planned = plan.trials_of(&self.spec, rounds);
        let begun = self.block.unwrap_or_default() + 1;
        let restarts = (self.spec.block(rounds.saturating_sub(1)) + 1).saturating_sub(begun);
        // Each block loads what the first one did.
        let loading = self.loading.mul_f64(f64::from(restarts) / f64::from(begun));
        let left = self.left(plan, rounds).map(|left| left + loading + RESTART * restarts);
        Progress { ended: self.ended, planned, left }
    }

    /// Each remaining trial is expected to take as long as last time, or the mean of the others if it is new; and as many to be
    /// repeated as were.
    fn left(&self, plan: &Plan, rounds: u32) -> Option<Duration> {
        let mean = self.total.checked_div(self.timed)?;
        let mut left = Duration::ZERO;
        for id in plan.trials.iter().filter(|id| !self.failed.contains(id)) {
            let made = self.rounds_made.get(id).copied().unwrap_or(0);
            let planned = plan.rounds_of(*id, &self.spec, rounds);
            left += self.took.get(id).copied().unwrap_or(mean) * planned.saturating_sub(made);
        }
        let repeated = self.rerun_time.as_secs_f64() / self.total.as_secs_f64().max(f64::MIN_POSITIVE);
        Some(left.mul_f64(1.0 + repeated))
    }
}
