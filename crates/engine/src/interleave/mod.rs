//! Executes a group of interleaved trials.

pub(crate) mod slices;

use crate::clients::cancellable::cancellable;
use crate::conditions::Conditions;
use crate::interleave::slices::{Lane, SliceScheduler, SliceStats};
use crate::plan::TrialId;
use crate::plan::cell::unavailable;
use crate::plan::draw_seed::DrawSeed;
use crate::prepare::fixture::Fixture;
use crate::run::log::RunLog;
use crate::run::runner::{Fixtures, Progress, Runner};
use crate::trial::judge::Interleaved;
use crate::trial::recorded::Executed;
use crate::trial::standstill::Sleeps;
use crate::trial::{Failure, Trial, caught, panicked};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::experiment::Workload;
use kurabe_core::observation::{Endpoint, Member, MonitorGuard, Observation};
use kurabe_core::run::Measurement;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::mix;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

/// A prepared trial: its work, and its number among the trials on its data.
type Ready = Result<(Arc<dyn Workload>, u64), Failure>;

/// Leaves a trial's lane in all cases.
struct LeaveOnDrop<'a>(Lane<'a>);

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Runner<'_> {
    /// Executes trials interleaved.
    pub(crate) fn interleave(
        &self,
        round: u32,
        group: &[TrialId],
        is_rerun: bool,
        fixtures: &mut Fixtures,
        progress: Progress,
        log: &mut RunLog<'_>,
    ) -> Result<Vec<Result<Measurement, Failure>>> {
        let mut ready: Vec<Ready> = Vec::with_capacity(group.len());
        for &(cell, operation) in group {
            let (run_cell, operation) = (&self.plan.cells[cell], self.plan.operations[operation]);
            log.emit(progress.begins(round, &run_cell.record, operation))?;
            let fixture = &mut fixtures[run_cell.slot];
            let made = caught("the trial", || {
                let cell = run_cell.available().ok_or_else(unavailable)?;
                let workload = cell.workload()?;
                let fixture = self.prepare(run_cell, cell, &|n, s| workload.load(n, s), fixture, log)?;
                fixture
                    .before(cell, operation.name, self.conditions.cancel, |trial| workload.before(trial))?;
                Ok((workload, fixture.next_trial()))
            });
            ready.push(made);
        }
        let options_of = |id: &TrialId| {
            let run_cell = &self.plan.cells[id.0];
            let driver = self.targets[run_cell.record.target].driver_of(&run_cell.record);
            run_cell.available().map_or_else(ConnectOptions::default, |cell| cell.connect_options(driver))
        };
        let options: Vec<ConnectOptions> = group.iter().map(options_of).collect();
        let trials: Vec<_> = group
            .iter()
            .zip(&ready)
            .zip(&options)
            .map(|((id, ready), options)| self.member(round, *id, ready, options, is_rerun))
            .collect();
        let time = self.plan.stop(self.plan.operations[group[0].1]).duration;
        let executed =
            self.execute(&trials, group, fixtures, time, mix(self.plan.spec.seed, u64::from(round)));
        let judged = trials.iter().zip(executed).zip(group).map(|((trial, executed), id)| {
            let fixture = &mut fixtures[self.plan.cells[id.0].slot];
            let (executed, slices) = executed?;
            judge(trial, executed, slices, fixture, self.conditions.cancel)
        });
        Ok(judged.collect())
    }

    /// One of the trials that are interleaved.
    fn member<'a>(
        &'a self,
        round: u32,
        (cell, operation): TrialId,
        ready: &'a Ready,
        options: &'a ConnectOptions,
        rerun: bool,
    ) -> Result<Trial<'a>, Failure> {
        let (run_cell, operation) = (&self.plan.cells[cell], self.plan.operations[operation]);
        let (workload, number) = ready.as_ref().map_err(Failure::clone)?;
        let seed = DrawSeed::new(self.plan.spec.seed, round, &run_cell.record, operation.name, rerun);
        let driver = self.targets[run_cell.record.target].driver_of(&run_cell.record);
        let cell = run_cell.available().ok_or_else(unavailable)?;
        // Without an observer: its effect on counters could not be separated from that of the others, so that the group is
        // observed.
        Ok(Trial {
            number: *number,
            stop: self.plan.stop(operation),
            seed: seed.of_probe(0),
            conditions: Conditions { observer: None, ..self.conditions },
            threads: self.plan.spec.threads,
            ..Trial::new(driver, options, cell, &**workload, operation)
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

    /// Runs the clients of all trials that could be prepared, interleaved.
    fn execute(
        &self,
        trials: &[Result<Trial<'_>, Failure>],
        group: &[TrialId],
        fixtures: &Fixtures,
        time: Option<Duration>,
        seed: u64,
    ) -> Vec<Result<(Executed, Interleaved), Failure>> {
        let scheduler = SliceScheduler::new(
            trials.len(),
            Duration::from_nanos(self.plan.spec.slice_ns.unwrap_or_default()),
        );
        let state_of = |trial: &Result<Trial<'_>, Failure>, id: &TrialId| {
            let trial = trial.as_ref().map_err(Failure::clone)?;
            let fixture = fixtures[self.plan.cells[id.0].slot].as_ref().ok_or_else(no_fixture)?;
            Ok::<_, Failure>(fixture.state(trial.cell)?)
        };
        let datasets: Vec<_> = trials.iter().zip(group).map(|(trial, id)| state_of(trial, id)).collect();
        thread::scope(|scope| {
            let mut playing = Vec::with_capacity(trials.len());
            for (number, (trial, state)) in trials.iter().zip(&datasets).enumerate() {
                let lane = scheduler.lane(number);
                let execute = move || {
                    let _leave = LeaveOnDrop(lane);
                    let state = state.as_ref().map_err(Failure::clone)?;
                    trial.as_ref().map_err(Failure::clone)?.execute(state, Some(lane))
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
            let stats = scheduler.run(time, seed, self.conditions.cancel, &mut || sleeps.stood_still());
            let observed = guard.and_then(ended);
            let result =
                |(thread, slices): (std::io::Result<thread::ScopedJoinHandle<'_, _>>, SliceStats)| {
                    let thread = thread.map_err(|why| Error::no_thread("a trial", why))?;
                    let executed: Result<Executed, Failure> =
                        thread.join().unwrap_or_else(|panic| Err(panicked("the trial", &*panic).into()));
                    let stood_still = slices.stood_still;
                    let executed = executed.map_err(|failure| Failure {
                        stood_still: failure.stood_still.map(|_| stood_still),
                        ..failure
                    })?;
                    Ok((executed, Interleaved { slices, observed: observed.clone() }))
                };
            playing.into_iter().zip(stats).map(result).collect()
        })
    }
}

/// What was observed, without its time series: slices of all trials alternate in it.
fn ended(guard: Box<dyn MonitorGuard>) -> Option<Observation> {
    let observed = catch_unwind(AssertUnwindSafe(|| guard.end())).ok()?;
    Some(Observation { samples: Vec::new(), ..observed })
}

/// Adds up and verifies the results of a trial's clients.
fn judge(
    trial: &Result<Trial<'_>, Failure>,
    executed: Executed,
    interleaved: Interleaved,
    fixture: &mut Option<Fixture>,
    cancel: &AtomicBool,
) -> Result<Measurement, Failure> {
    let trial = trial.as_ref().map_err(Failure::clone)?;
    let (state, session) = fixture.as_mut().ok_or_else(no_fixture)?.lend(trial.cell)?;
    caught("the trial", || trial.judge(executed, Some(interleaved), state, &mut cancellable(session, cancel)))
}

fn no_fixture() -> Error {
    Error::new(ErrorKind::Internal, "no fixture for the target")
}
