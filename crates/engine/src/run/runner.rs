//! Executes a run: rounds over all trials, with a fixture per target. Every outcome is recorded before the next trial
//! starts.

use crate::conditions::Conditions;
use crate::plan::{Plan, TrialId};
use crate::prepare::eviction::{Stopped, Watch};
use crate::prepare::fixture::{Fixture, Ownership};
use crate::prepare::target::Target;
use crate::run::listener::Event;
use crate::run::log::RunLog;
use crate::run::reruns::{Queued, queue_rerun};
use crate::run::run_state::{Progress, Rerun, RunState, TrialResult};
use crate::run::stopping_rule::StoppingRule;
use crate::run::throwaway::restart_all;
use kurabe_core::Result;
use kurabe_core::fleet::OnLostAgent;
use std::collections::VecDeque;
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
        let result = self.watched(&mut fixtures, &mut state, rule, log);
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
        result?;
        Ok(!self.conditions.cancel.load(Ordering::Relaxed))
    }

    /// Executes the rounds while values of others in servers with limited memory are watched.
    fn watched(
        &self,
        fixtures: &mut Fixtures,
        state: &mut RunState,
        rule: &StoppingRule,
        log: &mut RunLog<'_>,
    ) -> Result<()> {
        let stopped = Stopped::default();
        let result = thread::scope(|scope| {
            let watch = Watch::start(scope, self.plan, self.targets, self.conditions.cancel, &stopped)?;
            let result = self.rounds(fixtures, state, rule, log);
            watch.end();
            result
        });
        // An eviction is the cause of whatever failed after it.
        stopped.take().map_or(result, Err)
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
        let is_made = |id: &TrialId| state.made.contains(&(round, *id)) || state.failed.contains(id);
        if self.plan.trials.iter().all(is_made) || self.conditions.cancel.load(Ordering::Relaxed) {
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

    /// Executes the trials of a group, interleaved if there are several; `None` if the user stopped them.
    fn make(
        &self,
        (round, is_continuous): (u32, bool),
        group: &[TrialId],
        rerun: Option<&Rerun>,
        fixtures: &mut Fixtures,
        progress: Progress,
        log: &mut RunLog<'_>,
    ) -> Result<Option<Vec<TrialResult>>> {
        match *group {
            [] => Ok(Some(Vec::new())),
            // If the other trials of the group have failed, the last one still runs in slices: only equally made
            // trials are compared.
            [id] if is_continuous || !self.plan.is_interleaved(id) => {
                let made = self.execute_trial(round, id, rerun, fixtures, progress, log)?;
                Ok(made.map(|one| vec![one]))
            }
            _ => self.interleave(round, group, rerun, fixtures, progress, log),
        }
    }
}
