//! A group of trials, from its data to its records. A trial alone is a group of one whose slice does not end: only how clients
//! are scheduled differs.

use crate::clients::cancellable::cancellable;
use crate::clients::cpu_partition::PinGuard;
use crate::clients::slices::{Lane, SliceScheduler};
use crate::conditions::Conditions;
use crate::fleet::{CellOrder, FleetClients};
use crate::plan::TrialId;
use crate::plan::cell::{RunCell, unavailable};
use crate::plan::draw_seed::DrawSeed;
use crate::prepare::fixture::Fixture;
use crate::prepare::target::Target;
use crate::run::listener::Event;
use crate::run::log::RunLog;
use crate::run::runner::{Fixtures, Progress, Runner, TrialResult};
use crate::run::settle::Rerun;
use crate::run::throwaway::Restricted;
use crate::trial::judge::Interleaved;
use crate::trial::rate_search::RateSearch;
use crate::trial::recorded::Executed;
use crate::trial::standstill::Sleeps;
use crate::trial::{Clients, Failure, LoadModel, Trial, caught, panicked};
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::experiment::{Before, DatasetState, OperationInfo, Stop};
use kurabe_core::load::{DEFAULT_SLO_NS, Load};
use kurabe_core::observation::{Endpoint, Member, MonitorGuard, Observation};
use kurabe_core::planned::{Need, PlannedCell, TrialWork};
use kurabe_core::run::{Measurement, Outcome, TrialRecord};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::mix;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// The default time of the search for the highest rate.
const HIGHEST_TIME: Duration = Duration::from_secs(10);

/// What precedes the error of a cell whose data cannot be loaded.
pub(super) const LOADING: &str = "loading data";

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
