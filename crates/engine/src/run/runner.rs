//! Executes a run: rounds over all trials, with a fixture per target. Every outcome is emitted before the next trial
//! starts.

use crate::clients::cancellable::cancellable;
use crate::clients::cpu_partition::{CpuPartition, PinGuard};
use crate::fleet::{CellOrder, Fleet, FleetClients};
use crate::plan::budget::{LATE, fewer_blocks};
use crate::plan::draw_seed::DrawSeed;
use crate::plan::{Plan, RunCell, TrialId};
use crate::prepare::eviction::{Stopped, Watch};
use crate::prepare::fixture::{Fixture, Ownership};
use crate::prepare::target::Target;
use crate::run::event::Event;
use crate::run::reruns::{Queued, queue_rerun};
use crate::run::run_state::{
    Disturbance, DisturbanceKind, Progress, Rerun, RunState, TrialResult, standstill,
};
use crate::run::throwaway::{Restricted, restart_all};
use crate::trial::rate_search::RateSearch;
use crate::trial::{Clients, Failure, LoadModel, Trial, panicked};
use kurabe_core::driver::{Access, Namespace, Session};
use kurabe_core::experiment::{DatasetState, OperationInfo, Stop};
use kurabe_core::fleet::OnLostAgent;
use kurabe_core::load::{DEFAULT_SLO_NS, Load};
use kurabe_core::observation::Observer;
use kurabe_core::planned::{Need, PlannedCell, Work};
use kurabe_core::run::{Measurement, Outcome, Replanned, TrialRecord};
use kurabe_core::text::printable;
use kurabe_core::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Checks a trial for interference; returns the reason, as a clause, if it should not be relied on.
pub type InterferenceCheck = fn(&Measurement) -> Option<String>;

/// Receives the events of a run.
pub type Emit<'a> = &'a mut dyn FnMut(Event<'_>) -> Result<()>;

/// The fixtures of a run: one for each target, then one for each A/A control that has its own.
pub(crate) type Fixtures = [Option<Fixture>];

/// Executes the remaining trials of a run.
pub struct Runner<'a> {
    pub plan: &'a Plan,
    /// The run's name, used for the leases of namespaces.
    pub run: &'a str,
    pub targets: &'a [Target],
    /// The start of the run.
    pub began: Instant,
    /// Set by the user's Ctrl-C.
    pub cancel: &'a AtomicBool,
    /// Completed transactions of the current trial.
    pub progress: &'a AtomicU64,
    /// Observes machine, client and server during each trial.
    pub observer: Option<&'a dyn Observer>,
    /// Checks each trial for interference by other processes. A disturbed trial is repeated once at the end of its
    /// round; the repetition counts in any case. `None`: no check. A trial in which Kurabe itself stood still is
    /// always repeated.
    pub interference_check: Option<InterferenceCheck>,
    /// The time of the run. Rounds that would end much later are given up. `None`: all planned rounds are made.
    pub budget: Option<Duration>,
    /// Separate processors for clients and servers; `None`: no pinning.
    pub cpu_partition: Option<&'a CpuPartition>,
    /// The machines that run the clients; `None`: this process runs them.
    pub fleet: Option<&'a dyn Fleet>,
}

/// Cancellation flag used when a run cannot be cancelled.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Progress counter used when there is no progress display.
static UNWATCHED: AtomicU64 = AtomicU64::new(0);

impl<'a> Runner<'a> {
    /// A runner that starts now, without cancellation, progress, observation or interference checks. Add these with a
    /// struct update.
    pub fn new(plan: &'a Plan, run: &'a str, targets: &'a [Target]) -> Self {
        Self {
            plan,
            run,
            targets,
            began: Instant::now(),
            cancel: &NEVER,
            progress: &UNWATCHED,
            observer: None,
            interference_check: None,
            budget: None,
            cpu_partition: None,
            fleet: None,
        }
    }

    /// All trials of an unrecorded run, in execution order; fewer if it was stopped.
    ///
    /// # Errors
    /// If a fixture cannot be opened, or the experiment's declaration has a defect.
    pub fn trials(&self) -> Result<Vec<TrialRecord>> {
        let mut trials = Vec::new();
        self.run(Fixture::open_all(self.plan, self.targets, self.run)?, &[], &mut |event| {
            if let Event::TrialEnds { record } = event {
                trials.push(record.clone());
            }
            Ok(())
        })?;
        Ok(trials)
    }
}

/// The default time of the search for the highest rate.
const HIGHEST_TIME: Duration = Duration::from_secs(10);

/// Reruns may take this share of the time of all other trials.
const RERUN_SHARE: f64 = 0.2;
/// The maximum number of reruns of a trial in which Kurabe itself stood still.
const MAX_STALL_RERUNS: u32 = 5;

/// Loads the data of a cell.
pub(crate) type LoadData<'a> = dyn Fn(&mut dyn Namespace, &mut dyn Session) -> Result<DatasetState> + 'a;

impl Runner<'_> {
    /// Executes the trials, and removes what the run created on the targets. Trials in `earlier` are not repeated; a
    /// failed operation of a cell is not tried in later rounds. Returns whether every planned trial was made or is
    /// known to fail; `false` if the user stopped it. `fixtures` are from [`Fixture::open_all`].
    ///
    /// # Errors
    /// An error of `emit` (such as a full disk), a throwaway server that does not restart between blocks, or a defect
    /// of the experiment's declaration. Other errors of targets are outcomes.
    pub fn run(
        &self,
        mut fixtures: Vec<Option<Fixture>>,
        earlier: &[TrialRecord],
        emit: Emit<'_>,
    ) -> Result<bool> {
        let mut state = RunState::new(
            earlier,
            self.plan,
            self.plan.spec.fleet.as_ref().is_some_and(|fleet| fleet.on_lost_agent == OnLostAgent::Continue),
        );
        // A/A controls may have their own fixtures, which are opened when needed.
        fixtures.resize_with(2 * self.targets.len(), || None);
        let result = self.watched(&mut fixtures, &mut state, emit);
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
        Ok(!self.cancel.load(Ordering::Relaxed))
    }

    /// Executes the rounds while values of others in servers with limited memory are watched.
    fn watched(&self, fixtures: &mut Fixtures, state: &mut RunState, emit: Emit<'_>) -> Result<()> {
        let stopped = Stopped::default();
        let result = thread::scope(|scope| {
            let watch = Watch::start(scope, self.plan, self.targets, self.cancel, &stopped)?;
            let result = self.rounds(fixtures, state, emit);
            watch.end();
            result
        });
        // An eviction is the cause of whatever failed after it.
        stopped.take().map_or(result, Err)
    }

    fn rounds(&self, fixtures: &mut Fixtures, state: &mut RunState, emit: Emit<'_>) -> Result<()> {
        let mut rounds = self.plan.spec.rounds;
        let mut round = 0;
        loop {
            while round < rounds {
                if let Some(event) = self.replanned(round, &mut rounds, state) {
                    emit(event)?;
                    continue;
                }
                self.begin_block(round, fixtures, state, emit)?;
                if self.round(round, rounds, fixtures, state, emit)?.is_break() {
                    return Ok(());
                }
                round += 1;
            }
            let mut further = 0;
            if !self.cancel.load(Ordering::Relaxed) {
                emit(Event::RoundsEnd { rounds, further: &mut further })?;
            }
            if further == 0 {
                return Ok(());
            }
            rounds = rounds.saturating_add(further);
        }
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

    /// Restarts the throwaway servers if a round belongs to another block than the last trial since the program
    /// started. A resumed run has just started its servers.
    fn begin_block(
        &self,
        round: u32,
        fixtures: &mut Fixtures,
        state: &mut RunState,
        emit: Emit<'_>,
    ) -> Result<()> {
        let is_made = |id: &TrialId| state.made.contains(&(round, *id)) || state.failed.contains(id);
        if self.plan.trials.iter().all(is_made) || self.cancel.load(Ordering::Relaxed) {
            return Ok(());
        }
        let block = state.spec.block(round);
        if state.block.replace(block).is_none_or(|last| last == block) {
            return Ok(());
        }
        emit(Event::Restarting)?;
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
        emit: Emit<'_>,
    ) -> Result<ControlFlow<()>> {
        let mut queue = VecDeque::new();
        let mut begun: Vec<Vec<TrialId>> = Vec::new();
        for mut group in self.plan.round(&state.spec, round) {
            group.retain(|id| !state.made.contains(&(round, *id)));
            let tried = group.len();
            group.retain(|id| !state.failed.contains(id));
            state.ended += tried - group.len();
            let progress = state.progress(self.plan, rounds);
            let rerun = group.iter().find_map(|id| state.pending_reruns.get(&(round, *id))).cloned();
            let made = self.make(
                (round, state.spec.is_continuous(round)),
                &group,
                rerun.as_ref(),
                fixtures,
                progress,
                emit,
            )?;
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
        while let Some(Queued { mut group, rerun, kind }) = queue.pop_front() {
            group.retain(|id| !state.failed.contains(id));
            let last: Duration = group.iter().filter_map(|id| state.took.get(id)).sum();
            // Whether to rerun depends on the disturbance and on the time spent so far, never on the result.
            if !kind.is_void()
                && (state.rerun_time + last).as_secs_f64() > state.total.as_secs_f64() * RERUN_SHARE
            {
                continue;
            }
            let mut progress = state.progress(self.plan, rounds);
            progress.ended = progress.ended.saturating_sub(group.len());
            let made = self.make(
                (round, state.spec.is_continuous(round)),
                &group,
                Some(&rerun),
                fixtures,
                progress,
                emit,
            )?;
            let Some(made) = made else { return Ok(ControlFlow::Break(())) };
            let mut disturbed = None;
            for (id, attempt) in group.iter().zip(made) {
                if !kind.is_void() {
                    state.rerun_time += attempt.took;
                }
                if attempt.is_void() {
                    disturbed = attempt.disturbed;
                } else if attempt.failed() {
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
        emit: Emit<'_>,
    ) -> Result<Option<Vec<TrialResult>>> {
        match *group {
            [] => Ok(Some(Vec::new())),
            // If the other trials of the group have failed, the last one still runs in slices: only equally made
            // trials are compared.
            [id] if is_continuous || !self.plan.is_interleaved(id) => {
                let made = self.attempt(round, id, rerun, fixtures, progress, emit)?;
                Ok(made.map(|one| vec![one]))
            }
            _ => self.interleave(round, group, rerun, fixtures, progress, emit),
        }
    }

    /// Executes one trial and emits its outcome; `None` if the user stopped it.
    fn attempt(
        &self,
        round: u32,
        id: TrialId,
        rerun: Option<&Rerun>,
        fixtures: &mut Fixtures,
        progress: Progress,
        emit: Emit<'_>,
    ) -> Result<Option<TrialResult>> {
        if self.cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (cell, operation) = (&self.plan.cells[id.0], self.plan.operations[id.1]);
        emit(progress.begins(round, &cell.record, operation))?;
        self.progress.store(0, Ordering::Relaxed);
        let at_ms = self.began.elapsed().as_millis() as u64;
        let started = Instant::now();
        let fixture = &mut fixtures[cell.slot];
        let is_rerun = rerun.is_some();
        let trial =
            catch_unwind(AssertUnwindSafe(|| self.trial(round, cell, operation, is_rerun, fixture, emit)));
        let outcome = trial.unwrap_or_else(|panic| Err(panicked("the trial", &*panic).into()));
        let (outcome, mut disturbed) = self.judge_disturbance(outcome, rerun);
        if let Some(why) = self.lost_agents(&outcome) {
            emit(Event::AgentLost { why: &why })?;
            disturbed = Some(Disturbance { why, kind: DisturbanceKind::LostAgent });
        }
        let Some(outcome) = self.outcome(outcome) else { return Ok(None) };
        self.check_refused_write(cell, &outcome)?;
        let loading = fixtures[cell.slot].as_mut().map_or(Duration::ZERO, Fixture::take_loading);
        if matches!(outcome, Outcome::Failed { .. }) {
            // The next trial on this target uses a new connection and new data.
            fixtures[cell.slot] = None;
        }
        let operation = operation.name.to_owned();
        let rerun_reason = rerun.map(|rerun| rerun.why.clone());
        let record = TrialRecord { round, cell: id.0, operation, at_ms, outcome, rerun_reason };
        emit(Event::TrialEnds { record: &record })?;
        Ok(Some(TrialResult { record, took: started.elapsed(), loading, disturbed }))
    }

    /// The agents that a failed trial lost, as a clause, if the run goes on without them. A wrong reply is a result.
    fn lost_agents(&self, trial: &Result<Measurement, Failure>) -> Option<String> {
        let failure = trial.as_ref().err()?;
        let is_lost = failure.error.kind() == ErrorKind::ConnectionLost && failure.mismatches == 0;
        self.fleet.filter(|_| is_lost && !self.cancel.load(Ordering::Relaxed))?.go_on_without_lost()
    }

    /// The disturbance of a trial, if any. If Kurabe itself stood still, the last allowed rerun fails the trial.
    pub(crate) fn judge_disturbance(
        &self,
        trial: Result<Measurement, Failure>,
        rerun: Option<&Rerun>,
    ) -> (Result<Measurement, Failure>, Option<Disturbance>) {
        let stood_still = match &trial {
            Ok(measured) => Duration::from_nanos(measured.stood_still_ns),
            // Errors caused by a silent client are not the server's fault. A wrong reply is.
            Err(Failure { error, stood_still, .. })
                if matches!(
                    error.kind(),
                    ErrorKind::Timeout | ErrorKind::ConnectionLost | ErrorKind::Limit
                ) =>
            {
                *stood_still
            }
            Err(_) => Duration::ZERO,
        };
        if stood_still.is_zero() {
            let interference_check = self.interference_check.zip(trial.as_ref().ok());
            let why =
                interference_check.and_then(|(interference_check, measured)| interference_check(measured));
            return (trial, why.map(|why| Disturbance { why, kind: DisturbanceKind::Interference }));
        }
        let why = standstill(stood_still);
        let number = rerun.map_or(0, |rerun| rerun.number);
        if number < MAX_STALL_RERUNS {
            return (trial, Some(Disturbance { why, kind: DisturbanceKind::Standstill }));
        }
        let message = format!("{why} during this trial and during {number} earlier attempts");
        let error = Error::new(ErrorKind::Environment, message)
            .hint("use a machine where the process is not stopped, frozen or paused");
        (Err(error.into()), None)
    }

    /// The outcome for the run file; `None` if the user stopped the trial.
    pub(crate) fn outcome(&self, trial: Result<Measurement, Failure>) -> Option<Outcome> {
        match trial {
            Ok(measured) => Some(Outcome::Measured(Box::new(measured))),
            Err(failure) if failure.error.kind() == ErrorKind::Interrupted => None,
            Err(_) if self.cancel.load(Ordering::Relaxed) => None,
            Err(failure) => Some(Outcome::Failed {
                kind: failure.error.kind(),
                reason: printable(&failure.error.to_string()).into_owned(),
                mismatches: failure.mismatches,
            }),
        }
    }

    /// Ends the run if a trial failed because the server refused to write in a session that the cell wants to be
    /// read-only: nothing was changed, and no later trial would do better.
    pub(crate) fn check_refused_write(&self, cell: &RunCell, outcome: &Outcome) -> Result<()> {
        let reads = cell.available().is_some_and(|cell| cell.policy.access == Access::ReadOnly);
        match outcome {
            Outcome::Failed { kind: ErrorKind::ReadOnly, reason, .. } if reads => {
                let target = &self.targets[cell.record.target].name;
                let what = format!("{target}: this statement may change data: {reason}");
                // A job has no such option.
                let allowed = cell.available().is_some_and(|cell| !cell.is_job());
                let hint = "allow this with --write, or 'write = true' in the file of the workload";
                Err(Error::usage(what).hint(if allowed { hint } else { "" }))
            }
            _ => Ok(()),
        }
    }

    /// The fixture of a cell's target, with the cell's data loaded.
    pub(crate) fn prepare<'f>(
        &self,
        run_cell: &RunCell,
        cell: &PlannedCell,
        load: &LoadData<'_>,
        fixture: &'f mut Option<Fixture>,
        emit: Emit<'_>,
    ) -> Result<&'f mut Fixture> {
        let target = &self.targets[run_cell.record.target];
        if let (true, Some(restart)) =
            (cell.needs.contains(&Need::Restart), target.restart_of(&run_cell.record))
        {
            // A restart may lose the loaded data, and closes connections.
            *fixture = None;
            restart().map_err(|error| error.context("restarting the server"))?;
        }
        let fixture = match fixture {
            Some(fixture) => fixture,
            None => fixture.insert(self.open(run_cell.slot, target)?),
        };
        if !fixture.has(cell) {
            emit(Event::Loading { cell: &run_cell.record })?;
            fixture.load(cell, self.cancel, load).map_err(|error| error.context("loading data"))?;
        }
        Ok(fixture)
    }

    fn open(&self, slot: usize, target: &Target) -> Result<Fixture> {
        let targets = self.targets.len();
        let need = self.plan.need(slot % targets);
        if slot < targets {
            // A new first fixture does not remove the collections of A/A controls.
            Fixture::for_need(target, slot, 2 * targets, self.run, need)
        } else {
            Fixture::of_aa_control(target, slot, self.run, need)
        }
    }

    fn trial(
        &self,
        round: u32,
        run_cell: &RunCell,
        operation: &'static OperationInfo,
        rerun: bool,
        fixture: &mut Option<Fixture>,
        emit: Emit<'_>,
    ) -> Result<Measurement, Failure> {
        let around = Instant::now();
        let cell = run_cell.available().ok_or_else(unavailable)?;
        if let Work::Job(make) = &cell.work {
            let job = make();
            let load =
                |namespace: &mut dyn Namespace, session: &mut dyn Session| job.load(namespace, session);
            let fixture = self.prepare(run_cell, cell, &load, fixture, emit)?;
            return self.job(run_cell, cell, operation, &*job, fixture);
        }
        let workload = cell.workload()?;
        let fixture = self.prepare(run_cell, cell, &|n, s| workload.load(n, s), fixture, emit)?;
        let target = &self.targets[run_cell.record.target];
        let restricted = Restricted::of(target, run_cell, cell)?;
        // Observers and other helpers of the trial keep to the clients' processors too.
        let clients = restricted.as_ref().map(|restricted| &*restricted.partition.clients);
        let _pinned = clients.map(PinGuard::pin).transpose()?;
        let cpu_partition =
            restricted.as_ref().map(|restricted| &restricted.partition).or(self.cpu_partition);
        let connected = || restricted.as_ref().map_or(Ok(()), Restricted::connected);
        let seed = DrawSeed::new(self.plan.spec.seed, round, &run_cell.record, operation.name, rerun);
        let options = cell.connect_options();
        let ordered = CellOrder::new(&self.plan.spec, run_cell, self.plan.largest_answer());
        let mut probes = 0;
        let stood_still = Cell::new(Duration::ZERO);
        let mut made = |load_model: LoadModel, stop: Stop| {
            let number = fixture.next_trial();
            fixture.before(cell, operation.name, self.cancel, |trial| workload.before(trial))?;
            let (state, session) = fixture.lend(cell)?;
            if let Some(restricted) = &restricted {
                restricted.begin()?;
            }
            let trial = Trial {
                driver: target.driver_of(&run_cell.record),
                options: &options,
                cell,
                workload: &*workload,
                operation,
                number,
                stop,
                load_model,
                seed: seed.of_probe(probes),
                cancel: self.cancel,
                progress: self.progress,
                observer: self.observer,
                cpu_partition,
                threads: self.plan.spec.threads,
                connected: Some(&connected),
                clients: self
                    .fleet
                    .map_or(Clients::HERE, |fleet| Clients::on_fleet(FleetClients { fleet, cell: &ordered })),
            };
            probes += 1;
            let made = trial.run(state, &mut cancellable(session, self.cancel));
            let meanwhile = match &made {
                Ok(measured) => Duration::from_nanos(measured.stood_still_ns),
                Err(failure) => failure.stood_still,
            };
            stood_still.set(stood_still.get() + meanwhile);
            made
        };
        let stop = self.plan.stop(operation);
        let arrivals = self.plan.spec.arrivals.unwrap_or_default();
        let mut measured = match Load::of(&run_cell.record.axes) {
            Load::Closed => made(LoadModel::Closed, stop)?,
            Load::Open(rate) => made(LoadModel::Open { rate: rate as f64, arrivals }, stop)?,
            Load::Highest => {
                let slo = Duration::from_nanos(self.plan.spec.slo_ns.unwrap_or(DEFAULT_SLO_NS));
                let time = stop.duration.unwrap_or(HIGHEST_TIME);
                let search = RateSearch { slo, arrivals, time };
                let found = search.find(|load_model, time| {
                    made(load_model, Stop { duration: Some(time), ..Stop::default() })
                });
                found.map_err(|failure| Failure { stood_still: stood_still.get(), ..failure })?
            }
        };
        // Any disturbed trial would mislead a rate search.
        measured.stood_still_ns = stood_still.get().as_nanos() as u64;
        measured.overhead_ns = (around.elapsed().as_nanos() as u64).saturating_sub(measured.elapsed_ns);
        Ok(measured)
    }
}

pub(crate) fn unavailable() -> Error {
    Error::new(ErrorKind::Internal, "a trial of a cell that is not available")
}
