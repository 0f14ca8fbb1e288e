//! A group of trials, from its data to its records. A trial alone is a group of one whose slice does not end: only how clients
//! are scheduled differs.

use crate::clients::cpu_partition::{CpuPartition, PinGuard};
use crate::clients::slices::{Lane, SliceScheduler};
use crate::fleet::{CellOrder, FleetClients};
use crate::plan::TrialId;
use crate::plan::cell::{RunCell, unavailable};
use crate::plan::draw_seed::DrawSeed;
use crate::prepare::fixture::{Fixture, cancellable};
use crate::prepare::target::{Restart, Restrict, Target};
use crate::run::Conditions;
use crate::run::listener::{Event, RunLog};
use crate::run::runner::{Fixtures, Progress, Runner, TrialResult};
use crate::trial::rate_search::RateSearch;
use crate::trial::recorded::Executed;
use crate::trial::standstill::Sleeps;
use crate::trial::{Clients, Failure, Interleaved, LoadModel, Trial, caught, panicked};
use kurabe_core::cpus::Placement;
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::experiment::{Before, DatasetState, OperationInfo, Stop};
use kurabe_core::load::{DEFAULT_SLO_NS, Load};
use kurabe_core::observation::{Endpoint, Member, MonitorGuard, Observation};
use kurabe_core::planned::{Need, PlannedCell, TrialWork};
use kurabe_core::run::{Measurement, Outcome, TrialRecord};
use kurabe_core::{Error, ErrorKind, Result, units};
use kurabe_stats::rng::mix;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{slice, thread};

/// The default time of the search for the highest rate.
const HIGHEST_TIME: Duration = Duration::from_secs(10);

/// What precedes the error of a cell whose data cannot be loaded.
const LOADING: &str = "loading data";

/// A trial whose data is loaded.
struct ReadyTrial<'a> {
    run_cell: &'a RunCell,
    cell: &'a PlannedCell,
    operation: &'static OperationInfo,
    work: TrialWork,
    driver: &'a dyn Driver,
    options: ConnectOptions,
    seed: DrawSeed,
    /// What an agent of a fleet must know of its cell.
    ordered: CellOrder,
    restricted: Option<Restricted<'a>>,
}

/// How the trials of a group are made once.
struct Pass {
    load_model: LoadModel,
    stop: Stop,
    /// Its number in a rate search.
    probe: u32,
    /// The seed of the order of slices; `None`: the only trial has the machine to itself.
    slices: Option<u64>,
}

/// Leaves a trial's lane in all cases.
struct LeaveOnDrop<'a>(Lane<'a>);

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Runner<'_> {
    /// Executes the trials of a group, interleaved if there are several, and records their outcomes; `None` if the user
    /// stopped them.
    pub(super) fn make(
        &self,
        (round, is_continuous): (u32, bool),
        group: &[TrialId],
        rerun: Option<&Rerun>,
        fixtures: &mut Fixtures,
        progress: Progress,
        log: &mut RunLog<'_>,
    ) -> Result<Option<Vec<TrialResult>>> {
        if self.conditions.cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if group.is_empty() {
            return Ok(Some(Vec::new()));
        }
        self.conditions.progress.store(0, Ordering::Relaxed);
        let at_ms = self.began.elapsed().as_millis() as u64;
        let started = Instant::now();
        let (mut ready, mut failures) = (Vec::with_capacity(group.len()), Vec::with_capacity(group.len()));
        for &id in group {
            log.emit(progress.begins(round, &self.plan.cells[id.0].record, self.plan.operations[id.1]))?;
            match caught("the trial", || self.ready(round, id, rerun.is_some(), fixtures, log)) {
                Ok(trial) => {
                    ready.push(trial);
                    failures.push(None);
                }
                Err(failure) => failures.push(Some(failure)),
            }
        }
        // If the other trials of the group have failed, the last one still runs in slices: only equally made trials are
        // compared.
        let is_alone = group.len() == 1 && (is_continuous || !self.plan.is_interleaved(group[0]));
        let mut made = if is_alone {
            ready.iter().map(|trial| self.alone(trial, fixtures)).collect()
        } else {
            let stop = self.plan.stop(self.plan.operations[group[0].1]);
            let slices = Some(mix(self.plan.spec.seed, u64::from(round)));
            self.pass(&ready, fixtures, &Pass { load_model: LoadModel::Closed, stop, probe: 0, slices })
        }
        .into_iter();
        let mut outcomes = Vec::with_capacity(group.len());
        for (failure, (cell, _)) in failures.into_iter().zip(group) {
            let made = failure.map_or_else(|| made.next().unwrap_or_else(|| Err(unavailable().into())), Err);
            let Some(settled) = self.settle(&self.plan.cells[*cell], made, rerun, log)? else {
                return Ok(None);
            };
            outcomes.push(settled);
        }
        let took = started.elapsed() / group.len() as u32;
        let loading = fixtures.iter_mut().flatten().map(Fixture::take_loading);
        let loading = loading.sum::<Duration>() / group.len() as u32;
        let mut results = Vec::with_capacity(group.len());
        for (&(cell, operation), (mut outcome, disturbed)) in group.iter().zip(outcomes) {
            match &mut outcome {
                Outcome::Measured(measured) => {
                    measured.overhead_ns = (took.as_nanos() as u64).saturating_sub(measured.elapsed_ns);
                }
                // The next trial on this target uses a new connection and new data.
                Outcome::Failed { .. } => fixtures[self.plan.cells[cell].slot] = None,
            }
            let operation = self.plan.operations[operation].name.to_owned();
            let rerun_reason = rerun.map(|rerun| rerun.why.clone());
            let record = TrialRecord { round, cell, operation, at_ms, outcome, rerun_reason };
            let failed = record.has_failed();
            log.trial(record)?;
            results.push(TrialResult { failed, took, loading, disturbed });
        }
        Ok(Some(results))
    }

    /// Loads the data of a trial, if it is not there.
    fn ready(
        &self,
        round: u32,
        (cell, operation): TrialId,
        is_rerun: bool,
        fixtures: &mut Fixtures,
        log: &mut RunLog<'_>,
    ) -> Result<ReadyTrial<'_>, Failure> {
        let (run_cell, operation) = (&self.plan.cells[cell], self.plan.operations[operation]);
        let cell = run_cell.available().ok_or_else(unavailable)?;
        let work = cell.trial_work();
        let target = &self.targets[run_cell.record.target];
        let fixture = &mut fixtures[run_cell.slot];
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
            log.emit(Event::Loading { cell: &run_cell.record })?;
            fixture
                .load(cell, self.conditions.cancel, |namespace, session| work.load(namespace, session))
                .map_err(|error| error.context(LOADING))?;
        }
        let driver = target.driver_of(&run_cell.record);
        Ok(ReadyTrial {
            run_cell,
            cell,
            operation,
            work,
            driver,
            options: cell.connect_options(driver),
            seed: DrawSeed::new(self.plan.spec.seed, round, &run_cell.record, operation.name, is_rerun),
            ordered: CellOrder::new(&self.plan.spec, run_cell, self.plan.largest_answer()),
            restricted: Restricted::new(target, run_cell, cell)?,
        })
    }

    pub(super) fn open(&self, slot: usize, target: &Target) -> Result<Fixture> {
        let targets = self.targets.len();
        let need = self.plan.need(slot % targets);
        if slot < targets {
            // A new first fixture does not remove the collections of A/A controls.
            Fixture::for_need(target, slot, 2 * targets, self.name, need)
        } else {
            Fixture::of_aa_control(target, slot, self.name, need)
        }
    }

    /// Executes a trial that has the machine to itself: once, or as often as the search for its rate needs.
    fn alone(&self, trial: &ReadyTrial<'_>, fixtures: &mut Fixtures) -> Result<Measurement, Failure> {
        // Observers and other helpers of the trial keep to the clients' processors too.
        let clients = trial.restricted.as_ref().map(|restricted| &*restricted.partition.clients);
        let _pinned = clients.map(PinGuard::pin).transpose()?;
        let mut pass = |load_model, stop, probe| {
            let pass = Pass { load_model, stop, probe, slices: None };
            let made = self.pass(slice::from_ref(trial), fixtures, &pass).pop();
            made.unwrap_or_else(|| Err(unavailable().into()))
        };
        let stop = self.plan.stop(trial.operation);
        let arrivals = self.plan.spec.arrivals.unwrap_or_default();
        match Load::of(&trial.run_cell.record.axes) {
            Load::Closed => pass(LoadModel::Closed, stop, 0),
            Load::Open(rate) => pass(LoadModel::Open { rate: rate as f64, arrivals }, stop, 0),
            Load::Highest => {
                let slo = Duration::from_nanos(self.plan.spec.slo_ns.unwrap_or(DEFAULT_SLO_NS));
                let time = stop.duration.unwrap_or(HIGHEST_TIME);
                let (mut probes, mut stood_still) = (0, Duration::ZERO);
                let found = RateSearch { slo, arrivals, time }.find(|load_model, time| {
                    let made = pass(load_model, Stop { duration: Some(time), ..Stop::default() }, probes);
                    probes += 1;
                    stood_still += match &made {
                        Ok(measured) => Duration::from_nanos(measured.stood_still_ns),
                        Err(failure) => failure.stood_still.unwrap_or_default(),
                    };
                    made
                });
                // Any disturbed trial would mislead a rate search.
                let stood_still_ns = stood_still.as_nanos() as u64;
                found
                    .map(|measured| Measurement { stood_still_ns, ..measured })
                    .map_err(|failure| Failure { stood_still: Some(stood_still), ..failure })
            }
        }
    }

    /// Makes trials once: each is prepared on its data, their clients work, and each is verified.
    fn pass(
        &self,
        ready: &[ReadyTrial<'_>],
        fixtures: &mut Fixtures,
        pass: &Pass,
    ) -> Vec<Result<Measurement, Failure>> {
        let of_trial =
            |trial: &'_ ReadyTrial<'_>| trial.restricted.as_ref().map_or(Ok(()), Restricted::connected);
        let connected: Vec<_> = ready.iter().map(|trial| move || of_trial(trial)).collect();
        let begin = |(trial, connected): (_, _)| {
            caught("the trial", || {
                let number = self.begin(trial, fixtures)?;
                Ok(Trial { connected: Some(connected), ..self.trial(trial, number, pass) })
            })
        };
        let trials: Vec<Result<Trial<'_>, Failure>> = ready
            .iter()
            .zip(connected.iter().map(|connected| connected as &(dyn Fn() -> Result<()> + Sync)))
            .map(begin)
            .collect();
        let executed = self.execute(&trials, ready, fixtures, pass);
        let judge =
            |((trial, ready), executed): ((&Result<Trial<'_>, Failure>, &ReadyTrial<'_>), Result<_, _>)| {
                let trial = trial.as_ref().map_err(Failure::clone)?;
                let (executed, interleaved): (Executed, Option<Interleaved>) = executed?;
                let fixture = fixtures[ready.run_cell.slot].as_mut().ok_or_else(no_fixture)?;
                let (state, session) = fixture.lend(trial.cell)?;
                let mut session = cancellable(session, self.conditions.cancel);
                caught("the trial", || trial.judge(executed, interleaved, state, &mut session))
            };
        trials.iter().zip(ready).zip(executed).map(judge).collect()
    }

    /// Prepares a trial on its data. Returns its number there.
    fn begin(&self, trial: &ReadyTrial<'_>, fixtures: &mut Fixtures) -> Result<u64> {
        let fixture = fixtures[trial.run_cell.slot].as_mut().ok_or_else(no_fixture)?;
        let number = fixture.next_trial();
        let before = |before: Before<'_>| trial.work.before(before);
        fixture.before(trial.cell, trial.operation.name, self.conditions.cancel, before)?;
        trial.restricted.as_ref().map_or(Ok(()), Restricted::begin)?;
        Ok(number)
    }

    fn trial<'a>(&'a self, ready: &'a ReadyTrial<'_>, number: u64, pass: &Pass) -> Trial<'a> {
        let partition = ready.restricted.as_ref().map(|restricted| &restricted.partition);
        let conditions = Conditions {
            // The effect of one of several trials on counters could not be separated from that of the others, so that the
            // group is observed.
            observer: self.conditions.observer.filter(|_| pass.slices.is_none()),
            cpu_partition: partition.or(self.conditions.cpu_partition),
            ..self.conditions
        };
        let on_fleet = |fleet| Clients::Fleet(FleetClients { fleet, cell: &ready.ordered });
        Trial {
            number,
            stop: pass.stop,
            load_model: pass.load_model,
            seed: ready.seed.of_probe(pass.probe),
            conditions,
            threads: self.plan.spec.threads,
            clients: conditions.fleet.map_or(Clients::Here, on_fleet),
            ..Trial::new(ready.driver, &ready.options, ready.cell, &ready.work, ready.operation)
        }
    }

    /// Executes the work of trials that have begun, in slices or alone.
    fn execute(
        &self,
        trials: &[Result<Trial<'_>, Failure>],
        ready: &[ReadyTrial<'_>],
        fixtures: &Fixtures,
        pass: &Pass,
    ) -> Vec<Result<(Executed, Option<Interleaved>), Failure>> {
        let on_data = trials.iter().zip(ready).map(|(trial, ready)| {
            let trial = trial.as_ref().map_err(Failure::clone)?;
            let fixture = fixtures[ready.run_cell.slot].as_ref().ok_or_else(no_fixture)?;
            Ok((trial, fixture.state(trial.cell)?))
        });
        let on_data: Vec<Result<(&Trial<'_>, &DatasetState), Failure>> = on_data.collect();
        let work = |state: &Result<(&Trial<'_>, &DatasetState), Failure>, lane| {
            let (trial, state) = state.as_ref().map_err(Failure::clone)?;
            caught("the trial", || trial.execute(state, lane))
        };
        let Some(seed) = pass.slices else {
            return on_data.iter().map(|state| Ok((work(state, None)?, None))).collect();
        };
        let slice = Duration::from_nanos(self.plan.spec.slice_ns.unwrap_or_default());
        let scheduler = SliceScheduler::new(trials.len(), slice);
        thread::scope(|scope| {
            let mut playing = Vec::with_capacity(trials.len());
            for (number, state) in on_data.iter().enumerate() {
                let lane = scheduler.lane(number);
                let work = &work;
                let execute = move || {
                    let _leave = LeaveOnDrop(lane);
                    work(state, Some(lane))
                };
                let thread =
                    thread::Builder::new().name(format!("trial-{number}")).spawn_scoped(scope, execute);
                if thread.is_err() {
                    lane.leave();
                }
                // One after the other, so that each warms up alone.
                scheduler.wait_until_ready(number);
                playing.push(thread);
            }
            let guard = self.observe(trials);
            let mut sleeps = Sleeps::begin();
            let cancel = self.conditions.cancel;
            let stats = scheduler.run(pass.stop.duration, seed, cancel, &mut || sleeps.stood_still());
            let observed = guard.and_then(ended);
            let ends = playing.into_iter().zip(stats).map(|(thread, slices)| {
                let thread = thread.map_err(|why| Error::no_thread("a trial", why))?;
                let executed =
                    thread.join().unwrap_or_else(|panic| Err(panicked("the trial", &*panic).into()));
                let stood_still = |_| slices.stood_still;
                let executed = executed.map_err(|failure: Failure| Failure {
                    stood_still: failure.stood_still.map(stood_still),
                    ..failure
                })?;
                Ok((executed, Some(Interleaved { slices, observed: observed.clone() })))
            });
            ends.collect()
        })
    }

    /// Observes the client, the servers of all trials, and the machine.
    fn observe(&self, trials: &[Result<Trial<'_>, Failure>]) -> Option<Box<dyn MonitorGuard>> {
        let mut members: Vec<Member> = Vec::new();
        for trial in trials.iter().flatten() {
            let endpoint = trial.driver.endpoint();
            if !members.iter().any(|member| member.endpoint == endpoint) {
                members.push(Member { endpoint, tier: None });
            }
        }
        let in_process = members.iter().all(|member| member.endpoint == Endpoint::InProcess);
        let endpoint = if in_process { Endpoint::InProcess } else { Endpoint::Composite(members) };
        let observer = self.conditions.observer?;
        // Clients wait for their slices; a panic of the observer must not block them.
        catch_unwind(AssertUnwindSafe(|| observer.begin(&endpoint, None))).ok()
    }
}

/// What was observed, without its time series: slices of all trials alternate in it.
fn ended(guard: Box<dyn MonitorGuard>) -> Option<Observation> {
    let observed = catch_unwind(AssertUnwindSafe(|| guard.end())).ok()?;
    Some(Observation { samples: Vec::new(), ..observed })
}

fn no_fixture() -> Error {
    Error::new(ErrorKind::Internal, "no fixture for the target")
}

/// The maximum number of reruns of a trial in which Kurabe itself stood still.
const MAX_STALL_RERUNS: u32 = 5;

impl Runner<'_> {
    /// What becomes of a trial that has ended: its outcome for the run file, and what disturbed it. `None` if the user
    /// stopped it.
    pub(super) fn settle(
        &self,
        cell: &RunCell,
        trial: Result<Measurement, Failure>,
        rerun: Option<&Rerun>,
        log: &mut RunLog<'_>,
    ) -> Result<Option<(Outcome, Option<Disturbance>)>> {
        let (trial, mut disturbed) = self.judge_disturbance(trial, rerun);
        if let Some(why) = self.lost_agents(&trial) {
            log.emit(Event::AgentLost { why: &why })?;
            disturbed = Some(Disturbance { why, kind: DisturbanceKind::LostAgent });
        }
        self.check_wrong_input(cell, &trial)?;
        let Some(outcome) = self.outcome(trial) else { return Ok(None) };
        self.check_refused_write(cell, &outcome)?;
        Ok(Some((outcome, disturbed)))
    }

    /// The agents that a failed trial lost, as a clause, if the run goes on without them. A wrong reply is a result.
    fn lost_agents(&self, trial: &Result<Measurement, Failure>) -> Option<String> {
        let failure = trial.as_ref().err()?;
        let is_lost = failure.error.kind() == ErrorKind::ConnectionLost && failure.mismatches == 0;
        self.conditions
            .fleet
            .filter(|_| is_lost && !self.conditions.cancel.load(Ordering::Relaxed))?
            .go_on_without_lost()
    }

    /// The disturbance of a trial, if any. If Kurabe itself stood still, the last allowed rerun fails the trial.
    fn judge_disturbance(
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
                stood_still.unwrap_or_default()
            }
            Err(_) => Duration::ZERO,
        };
        if stood_still.is_zero() {
            let interference_check = self.conditions.interference_check.zip(trial.as_ref().ok());
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
    fn outcome(&self, trial: Result<Measurement, Failure>) -> Option<Outcome> {
        match trial {
            Ok(measured) => Some(Outcome::Measured(Box::new(measured))),
            Err(failure) if failure.error.kind() == ErrorKind::Interrupted => None,
            Err(_) if self.conditions.cancel.load(Ordering::Relaxed) => None,
            Err(failure) => Some(Outcome::Failed {
                kind: failure.error.kind(),
                reason: failure.error.on_one_line(),
                mismatches: failure.mismatches,
            }),
        }
    }

    /// Ends the run if the data of a cell was not loaded because of what the user wrote, such as a query with an error: no later
    /// trial would do better.
    fn check_wrong_input(&self, cell: &RunCell, trial: &Result<Measurement, Failure>) -> Result<()> {
        match trial {
            Err(Failure { error, .. })
                if error.kind() == ErrorKind::Usage && error.to_string().starts_with(LOADING) =>
            {
                Err(error.clone().context(&self.targets[cell.record.target].name))
            }
            _ => Ok(()),
        }
    }

    /// Ends the run if a trial failed because the server refused to write in a session that the cell wants to be
    /// read-only: nothing was changed, and no later trial would do better.
    fn check_refused_write(&self, cell: &RunCell, outcome: &Outcome) -> Result<()> {
        let reads = cell.available().is_some_and(PlannedCell::only_reads);
        match outcome {
            Outcome::Failed { kind: ErrorKind::ReadOnly, reason, .. } if reads => {
                let target = &self.targets[cell.record.target].name;
                let what = format!("{target}: this statement may change data: {reason}");
                let is_job = cell.available().is_some_and(PlannedCell::is_job);
                // A replay, or an estimate, which has no such option.
                let hint = if is_job {
                    "a replay on a throwaway server, or with --write, may change data"
                } else {
                    "allow this with --write, or 'write = true' in the file of the workload"
                };
                Err(Error::usage(what).hint(hint))
            }
            _ => Ok(()),
        }
    }
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

/// Says how long Kurabe itself stood still, as a clause.
pub(crate) fn standstill(time: Duration) -> String {
    format!("kurabe itself stood still for {}", units::time(time))
}

/// The processors that a trial's server is restricted to.
pub(crate) struct Restricted<'a> {
    restrict: &'a Restrict,
    pub(crate) partition: CpuPartition,
    pinned: bool,
}

impl<'a> Restricted<'a> {
    /// The processors of a cell's server; `None` if they are not restricted.
    pub(crate) fn new(target: &'a Target, run_cell: &RunCell, cell: &PlannedCell) -> Result<Option<Self>> {
        let Some(allotment) = cell.cpus() else { return Ok(None) };
        let restrict = target.restrict_of(&run_cell.record).ok_or_else(unavailable)?;
        let partition = CpuPartition::allot(allotment.count, allotment.placement == Placement::Shared)?;
        Ok(Some(Self { restrict, partition, pinned: allotment.placement == Placement::Pinned }))
    }

    /// Restricts the server before clients connect: what it starts for them inherits that.
    pub(crate) fn begin(&self) -> Result<()> {
        (self.restrict)(&self.partition.servers, false)
    }

    /// Restricts or pins what the server has started for the clients.
    pub(crate) fn connected(&self) -> Result<()> {
        (self.restrict)(&self.partition.servers, self.pinned)
    }
}

/// Restarts all throwaway servers of a run at the same time, including second instances.
pub(crate) fn restart_all(targets: &[Target]) -> Result<()> {
    let restarts = targets.iter().flat_map(|target| {
        let second = target.second.as_ref().and_then(|second| second.restart.as_ref());
        [target.restart.as_ref(), second].into_iter().flatten().map(move |restart| (target, restart))
    });
    thread::scope(|scope| {
        let begin = |(target, restart)| {
            let restart: &Restart = restart;
            (target, thread::Builder::new().name("restart".to_owned()).spawn_scoped(scope, restart))
        };
        let threads: Vec<(&Target, _)> = restarts.map(begin).collect();
        threads.into_iter().try_for_each(|(target, thread)| {
            let thread = thread.map_err(|why| Error::no_thread("a server's restart", why))?;
            let restarted = thread.join().unwrap_or_else(|panic| Err(panicked("a restart", &*panic)));
            restarted.map_err(|error| error.context("restarting the server").context(&target.name))
        })
    })
}
