//! Which trials of a round are interleaved, and making them.

use crate::book::{Attempt, Repeat, Told};
use crate::cancellable::cancellable;
use crate::event::Event;
use crate::house::House;
use crate::plan;
use crate::runner::{Place, Runner};
use crate::slices::{Lane, SliceScheduler, SliceStats};
use crate::standstill::Monitor;
use crate::trial::{Failure, Pace, Played, Trial, panicked};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::experiment::{OperationInfo, Workload};
use kurabe_core::load::Load;
use kurabe_core::run::{Measurement, Outcome, TrialRecord};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::mix;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Clients that stand ready at once, at most: no server's limit of connections lies below.
const CLIENTS: usize = 64;

/// One of the trials that are interleaved.
struct Member {
    place: Place,
    /// Its work, and its number among the trials on its data.
    made: Result<(Box<dyn Workload>, u64), Failure>,
}

/// Leaves a trial's lane, however the trial ends.
struct LeaveOnDrop<'a>(Lane<'a>);

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Runner<'_> {
    /// Groups the places whose trials are interleaved; each is on its own where that was not asked for.
    ///
    /// Together are cells of one operation that verdicts hold against each other: those which differ in their targets or in
    /// a choice, not in an amount. Where they write, one of each house: two would find each other's rows.
    pub(crate) fn groups(
        &self,
        places: &[Place],
        operations: &[&'static OperationInfo],
    ) -> Result<Vec<Vec<Place>>> {
        if self.spec.slice_ns.is_none() {
            return Ok(places.iter().map(|place| vec![*place]).collect());
        }
        let mut groups: Vec<Group> = Vec::new();
        for &(cell, operation) in places {
            let record = &self.cells[cell];
            let target = &self.targets[record.target];
            let slot = self.slot(record);
            let workload = plan::workload(self.experiment, self.spec, slot, target, &record.axes)?;
            let clients = workload.clients();
            let can = workload.can_interleave()
                && workload.footprint().is_none()
                && Load::of(&record.axes) == Load::Closed
                && clients < CLIENTS;
            let writes = operations[operation].writes;
            let alike = can.then(|| (operation, alike(&record.axes, writes)));
            let fits = |group: &&mut Group| {
                alike.is_some()
                    && group.alike == alike
                    && group.clients + clients <= CLIENTS
                    && !(writes && group.slots.contains(&slot))
            };
            if let Some(group) = groups.iter_mut().find(fits) {
                group.places.push((cell, operation));
                group.slots.push(slot);
                group.clients += clients;
            } else {
                groups.push(Group { alike, places: vec![(cell, operation)], slots: vec![slot], clients });
            }
        }
        Ok(groups.into_iter().map(|group| group.places).collect())
    }

    /// Makes trials interleaved and emits their outcomes; `None` where the user stopped them.
    #[allow(clippy::too_many_arguments, reason = "what a run has at hand")]
    pub(crate) fn interleave(
        &self,
        round: u32,
        group: &[Place],
        repeat: Option<&Repeat>,
        operations: &[&'static OperationInfo],
        houses: &mut [Option<House>],
        told: Told,
        tell: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<Option<Vec<Attempt>>> {
        if self.cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.progress.store(0, Ordering::Relaxed);
        let at_ms = self.began.elapsed().as_millis() as u64;
        let started = Instant::now();
        let mut members = Vec::with_capacity(group.len());
        for &place in group {
            let (cell, operation) = (&self.cells[place.0], operations[place.1]);
            tell(told.begins(round, cell, operation))?;
            let house = &mut houses[self.slot(cell)];
            let made = catch_unwind(AssertUnwindSafe(|| {
                let workload = self.prepare(cell, house, tell)?;
                let house = house.as_mut().ok_or_else(homeless)?;
                workload.before(
                    operation.name,
                    &mut *house.namespace,
                    &mut cancellable(&mut *house.session, self.cancel),
                )?;
                house.session.settle()?;
                Ok((workload, house.next_trial()))
            }));
            let made = made.unwrap_or_else(|panic| Err(panicked("the trial", &*panic)));
            members.push(Member { place, made: made.map_err(Failure::from) });
        }
        let options = ConnectOptions::default();
        let trial = |workload, number, (cell, operation): Place| Trial {
            driver: &*self.targets[self.cells[cell].target].driver,
            options: &options,
            workload,
            operation: operations[operation],
            number,
            stop: plan::stop(self.spec, operations[operation]),
            pace: Pace::Closed,
            seed: self
                .draw_seed(round, &self.cells[cell], operations[operation], repeat.is_some())
                .of_probe(0),
            cancel: self.cancel,
            progress: self.progress,
            // What others do meanwhile could not be told from what this one does.
            observer: None,
            sides: self.sides,
            rewrites: self.rewrites,
        };
        let trials: Vec<Result<Trial<'_>, Failure>> = members
            .iter()
            .map(|member| {
                let (workload, number) = member.made.as_ref().map_err(Failure::clone)?;
                Ok(trial(&**workload, *number, member.place))
            })
            .collect();
        let time = plan::stop(self.spec, operations[group[0].1]).duration;
        let played = self.play(&trials, time, mix(self.spec.seed, u64::from(round)));
        let mut outcomes = Vec::with_capacity(group.len());
        for ((trial, played), place) in trials.iter().zip(played).zip(group) {
            let house = &mut houses[self.slot(&self.cells[place.0])];
            let judged = played.and_then(|(played, stats)| judge(trial, played, stats, house, self.cancel));
            let (judged, disturbed) = self.judge_disturbance(judged, repeat);
            let Some(outcome) = self.outcome(judged) else { return Ok(None) };
            outcomes.push((outcome, disturbed));
        }
        let took = started.elapsed() / group.len() as u32;
        let mut attempts = Vec::with_capacity(group.len());
        for (place, (outcome, disturbed)) in group.iter().zip(outcomes) {
            if matches!(outcome, Outcome::Failed { .. }) {
                houses[self.slot(&self.cells[place.0])] = None;
            }
            let operation = operations[place.1].name.to_owned();
            let again = repeat.map(|repeat| repeat.why.clone());
            let mut record = TrialRecord { round, cell: place.0, operation, at_ms, outcome, again };
            if let Outcome::Measured(measured) = &mut record.outcome {
                measured.around_ns = (took.as_nanos() as u64).saturating_sub(measured.elapsed_ns);
            }
            tell(Event::TrialEnds { record: &record })?;
            attempts.push(Attempt { record, took, disturbed });
        }
        Ok(Some(attempts))
    }

    /// Runs the clients of all trials that could be prepared, interleaved.
    fn play(
        &self,
        trials: &[Result<Trial<'_>, Failure>],
        time: Option<Duration>,
        seed: u64,
    ) -> Vec<Result<(Played, SliceStats), Failure>> {
        let scheduler =
            SliceScheduler::new(trials.len(), Duration::from_nanos(self.spec.slice_ns.unwrap_or_default()));
        thread::scope(|scope| {
            let mut playing = Vec::with_capacity(trials.len());
            for (number, trial) in trials.iter().enumerate() {
                let lane = scheduler.lane(number);
                let play = move || {
                    let _leave = LeaveOnDrop(lane);
                    trial.as_ref().map_err(Failure::clone)?.play(Some(lane))
                };
                let thread = thread::Builder::new().name(format!("trial-{number}")).spawn_scoped(scope, play);
                if thread.is_err() {
                    lane.leave();
                }
                // One after the other: each warms up alone.
                scheduler.wait_until_ready(number);
                playing.push(thread);
            }
            let monitor = Monitor::start();
            let mut stats = scheduler.run(time, seed, self.cancel);
            // Whose slice it was is not asked: what was made together is made again together.
            let stood_still = monitor.end();
            for stats in &mut stats {
                stats.stood_still = stood_still;
            }
            let ended = |(thread, stats): (std::io::Result<thread::ScopedJoinHandle<'_, _>>, SliceStats)| {
                let thread = thread
                    .map_err(|e| Error::new(ErrorKind::Limit, format!("a trial got no thread: {e}")))?;
                let played: Result<Played, Failure> =
                    thread.join().unwrap_or_else(|panic| Err(panicked("the trial", &*panic).into()));
                Ok((played?, stats))
            };
            playing.into_iter().zip(stats).map(ended).collect()
        })
    }
}

/// Adds up and checks what the clients of a trial did.
fn judge(
    trial: &Result<Trial<'_>, Failure>,
    played: Played,
    stats: SliceStats,
    house: &mut Option<House>,
    cancel: &AtomicBool,
) -> Result<Measurement, Failure> {
    let trial = trial.as_ref().map_err(Failure::clone)?;
    let house = house.as_mut().ok_or_else(homeless)?;
    let judged = catch_unwind(AssertUnwindSafe(|| {
        trial.judge(played, Some(stats), |done| {
            trial.workload.after(trial.operation.name, &mut cancellable(&mut *house.session, cancel), done)
        })
    }));
    judged.unwrap_or_else(|panic| Err(panicked("the trial", &*panic).into()))
}

/// Places that are made together.
struct Group {
    /// What they have in common; `None` for one that is made alone.
    alike: Option<(usize, Cell)>,
    places: Vec<Place>,
    /// Where their data is.
    slots: Vec<usize>,
    clients: usize,
}

/// What cells that are held against each other have in common.
fn alike(axes: &Cell, writes: bool) -> Cell {
    let kept = axes.values().iter().filter(|(_, value)| writes || matches!(value, AxisValue::Number(_)));
    Cell::new(kept.map(|(name, value)| (name.clone(), value.clone())))
}

fn homeless() -> Error {
    Error::new(ErrorKind::Internal, "a target without a house")
}
