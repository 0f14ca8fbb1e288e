//! A run: rounds over all trials, each target's house kept in order, every outcome told before the next begins.

use crate::book::{Attempt, Book, Disturbance, Repeat, Told, standstill};
use crate::cancellable::cancellable;
use crate::draw_seed::DrawSeed;
use crate::event::Event;
use crate::house::House;
use crate::order;
use crate::plan::{self, Target};
use crate::rate_search::RateSearch;
use crate::sides::Sides;
use crate::trial::{Failure, Pace, Trial, panicked};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::experiment::{Experiment, OperationInfo, Stop, Workload};
use kurabe_core::load::{DEFAULT_SLO_NS, Load};
use kurabe_core::observation::Observer;
use kurabe_core::run::{CellRecord, Measurement, Outcome, RunSpec, TrialRecord};
use kurabe_core::text::printable;
use kurabe_core::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Says of a trial that should not be relied on why that is.
pub type Suspect = fn(&Measurement) -> Option<String>;

/// Runs the trials of a run that have not been made yet.
pub struct Runner<'a> {
    /// The experiment.
    pub experiment: &'a dyn Experiment,
    /// What was asked for.
    pub spec: &'a RunSpec,
    /// The run's name, under which namespaces are claimed.
    pub run: &'a str,
    /// The targets.
    pub targets: &'a [Target],
    /// The cells, as recorded.
    pub cells: &'a [CellRecord],
    /// When the run began.
    pub began: Instant,
    /// Set by the user's Ctrl-C.
    pub cancel: &'a AtomicBool,
    /// Transactions completed in the current trial.
    pub progress: &'a AtomicU64,
    /// Who looks what machine, client and server do during each trial.
    pub observer: Option<&'a dyn Observer>,
    /// Who says of a trial whether the machine worked for others meanwhile, and what it did, as a clause. Such a trial is
    /// made again at the end of its round, once, and then counts whatever it shows. `None`: none is. One in which Kurabe
    /// itself stood still is made again in any case.
    pub suspect: Option<Suspect>,
    /// Processors of their own for clients and servers; `None`: each runs where the scheduler puts it.
    pub sides: Option<&'a Sides>,
    /// Whether a trial may change a record again. It then ends for no lack of records, and only the last version of each
    /// record is read back.
    pub rewrites: bool,
}

/// What nobody sets, where nobody stops a run.
static NEVER: AtomicBool = AtomicBool::new(false);

/// What nobody reads, where nobody watches a run's progress.
static UNWATCHED: AtomicU64 = AtomicU64::new(0);

impl<'a> Runner<'a> {
    /// One that begins now, and whom nobody stops or watches; no trial is looked at or made again. A struct update names
    /// those who do.
    pub fn new(
        experiment: &'a dyn Experiment,
        spec: &'a RunSpec,
        run: &'a str,
        targets: &'a [Target],
        cells: &'a [CellRecord],
    ) -> Self {
        Self {
            experiment,
            spec,
            run,
            targets,
            cells,
            began: Instant::now(),
            cancel: &NEVER,
            progress: &UNWATCHED,
            observer: None,
            suspect: None,
            sides: None,
            rewrites: false,
        }
    }

    /// All trials of a run that is not recorded, in the order in which they were made: fewer where it was stopped.
    ///
    /// # Errors
    /// A house that cannot be opened, or a defect of the experiment's declaration.
    pub fn trials(&self) -> Result<Vec<TrialRecord>> {
        let mut trials = Vec::new();
        self.run(House::open_all(self.targets, self.run)?, &[], &mut |event| {
            if let Event::TrialEnds { record } = event {
                trials.push(record.clone());
            }
            Ok(())
        })?;
        Ok(trials)
    }
}

/// How long the highest rate is searched for where no time is given.
const HIGHEST_TIME: Duration = Duration::from_secs(10);

/// Trials that are made again may take this part of the time of all others.
const AGAIN_PART: f64 = 0.2;
/// So many trials are made in the place of one in which Kurabe itself stood still.
const REPEATS: u32 = 2;

/// A trial's place in a run: a cell and an operation.
pub(crate) type Place = (usize, usize);

impl Runner<'_> {
    /// Makes the trials, and removes what the run made on the targets. Trials of `earlier` are not made again; a cell's
    /// operation that failed is not tried in later rounds. Gives whether every planned trial was made or is known to
    /// fail: not where the user stopped it. `houses` are those of [`House::open_all`].
    ///
    /// # Errors
    /// What `tell` returns (a disk that is full), or a defect of the experiment's declaration. Errors of targets are
    /// outcomes, not errors.
    pub fn run(
        &self,
        mut houses: Vec<Option<House>>,
        earlier: &[TrialRecord],
        tell: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<bool> {
        let operations = plan::operations(self.experiment, self.spec)?;
        let places: Vec<Place> = (0..self.cells.len())
            .filter(|cell| self.cells[*cell].unavailable.is_none())
            .flat_map(|cell| (0..operations.len()).map(move |operation| (cell, operation)))
            .collect();
        let mut book = Book::new(earlier, &places, &operations);
        let plan = Plan { groups: self.groups(&places, &operations)?, places, operations };
        // The baseline's repeat may have one of its own, opened when it is needed.
        houses.push(None);
        let result = self.rounds(&plan, &mut houses, &mut book, tell);
        // The repeat's goes before the one that has claimed the namespace for both.
        houses.truncate(self.targets.len());
        for (slot, house) in houses.into_iter().enumerate() {
            // A trial that failed gave its house up, and could not clean it where the connection was lost. A server that
            // died has nothing left to clean.
            if house.is_none() && self.targets[slot].refused.is_none() {
                let _ = self.open(slot, &self.targets[slot]);
            }
        }
        result?;
        Ok(!self.cancel.load(Ordering::Relaxed))
    }

    fn rounds(
        &self,
        plan: &Plan,
        houses: &mut [Option<House>],
        book: &mut Book,
        tell: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut rounds = self.spec.rounds;
        let mut round = 0;
        loop {
            while round < rounds {
                if self.round(round, rounds, plan, houses, book, tell)?.is_break() {
                    return Ok(());
                }
                round += 1;
            }
            let mut further = 0;
            if !self.cancel.load(Ordering::Relaxed) {
                tell(Event::RoundsEnd { rounds, further: &mut further })?;
            }
            if further == 0 {
                return Ok(());
            }
            rounds = rounds.saturating_add(further);
        }
    }

    /// One round: its trials in their order, then those again that were disturbed. Breaks where the user stopped the run.
    fn round(
        &self,
        round: u32,
        rounds: u32,
        plan: &Plan,
        houses: &mut [Option<House>],
        book: &mut Book,
        tell: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<ControlFlow<()>> {
        let mut again: VecDeque<(Vec<Place>, Repeat, bool)> = VecDeque::new();
        // In its first round each trial has the machine to itself and is observed, interleaved or not.
        let alone: Vec<Vec<Place>> = plan.places.iter().map(|place| vec![*place]).collect();
        let groups = if round == 0 { &alone } else { &plan.groups };
        for index in order::of_round(self.spec.seed, round, groups.len()) {
            let mut group = groups[index].clone();
            group.retain(|place| !book.made.contains(&(round, *place)));
            let tried = group.len();
            group.retain(|place| !book.failed.contains(place));
            book.ended += tried - group.len();
            let told = book.told(plan, rounds);
            let repeat = group.iter().find_map(|place| book.unrepeated.get(&(round, *place))).cloned();
            let made = self.make(round, &group, repeat.as_ref(), plan, houses, told, tell)?;
            let Some(made) = made else { return Ok(ControlFlow::Break(())) };
            let mut disturbed = None;
            for (place, attempt) in group.iter().zip(made) {
                book.note(round, *place, &attempt);
                disturbed = disturbed.or(attempt.disturbed);
            }
            if let Some(Disturbance { why, stood_still }) = disturbed {
                let number = repeat.map_or(0, |repeat| repeat.number) + 1;
                again.push_back((group, Repeat { why, number }, stood_still));
            }
        }
        while let Some((mut group, repeat, stood_still)) = again.pop_front() {
            group.retain(|place| !book.failed.contains(place));
            let last: Duration = group.iter().filter_map(|place| book.took.get(place)).sum();
            // Whether it is made again depends on what others did and on the time spent so far, never on its figure.
            if !stood_still && (book.again + last).as_secs_f64() > book.total.as_secs_f64() * AGAIN_PART {
                continue;
            }
            let mut told = book.told(plan, rounds);
            told.ended = told.ended.saturating_sub(group.len());
            let made = self.make(round, &group, Some(&repeat), plan, houses, told, tell)?;
            let Some(made) = made else { return Ok(ControlFlow::Break(())) };
            let mut disturbed = None;
            for (place, attempt) in group.iter().zip(made) {
                if !stood_still {
                    book.again += attempt.took;
                }
                if attempt.stood_still() {
                    disturbed = attempt.disturbed;
                } else if attempt.failed() {
                    book.failed.insert(*place);
                }
            }
            if let Some(Disturbance { why, .. }) = disturbed {
                again.push_back((group, Repeat { why, number: repeat.number + 1 }, true));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Makes the trials of a group, one alone and several in turns; `None` where the user stopped them.
    #[allow(clippy::too_many_arguments, reason = "what a run has at hand")]
    fn make(
        &self,
        round: u32,
        group: &[Place],
        repeat: Option<&Repeat>,
        plan: &Plan,
        houses: &mut [Option<House>],
        told: Told,
        tell: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<Option<Vec<Attempt>>> {
        match *group {
            [] => Ok(Some(Vec::new())),
            [place] => {
                let made = self.attempt(round, place, repeat, &plan.operations, houses, told, tell)?;
                Ok(made.map(|one| vec![one]))
            }
            _ => self.interleave(round, group, repeat, &plan.operations, houses, told, tell),
        }
    }

    /// Makes one trial and tells its outcome; `None` where the user stopped it.
    #[allow(clippy::too_many_arguments, reason = "what a run has at hand")]
    fn attempt(
        &self,
        round: u32,
        place: Place,
        repeat: Option<&Repeat>,
        operations: &[&'static OperationInfo],
        houses: &mut [Option<House>],
        told: Told,
        tell: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<Option<Attempt>> {
        if self.cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let cell = &self.cells[place.0];
        let operation = operations[place.1];
        tell(told.begins(round, cell, operation))?;
        self.progress.store(0, Ordering::Relaxed);
        let at_ms = self.began.elapsed().as_millis() as u64;
        let started = Instant::now();
        let house = &mut houses[self.slot(cell)];
        let rerun = repeat.is_some();
        let trial = catch_unwind(AssertUnwindSafe(|| self.trial(round, cell, operation, rerun, house, tell)));
        let outcome = trial.unwrap_or_else(|panic| Err(panicked("the trial", &*panic).into()));
        let (outcome, disturbed) = self.judge_disturbance(outcome, repeat);
        let Some(outcome) = self.outcome(outcome) else { return Ok(None) };
        if matches!(outcome, Outcome::Failed { .. }) {
            // The next trial on this target begins with a fresh connection and fresh data.
            houses[self.slot(cell)] = None;
        }
        let operation = operation.name.to_owned();
        let again = repeat.map(|repeat| repeat.why.clone());
        let record = TrialRecord { round, cell: place.0, operation, at_ms, outcome, again };
        tell(Event::TrialEnds { record: &record })?;
        Ok(Some(Attempt { record, took: started.elapsed(), disturbed }))
    }

    /// What disturbed a trial, where it was. One in which Kurabe itself stood still has no figures where it is the last that is
    /// made in the place of such a one.
    pub(crate) fn judge_disturbance(
        &self,
        trial: Result<Measurement, Failure>,
        repeat: Option<&Repeat>,
    ) -> (Result<Measurement, Failure>, Option<Disturbance>) {
        let stood_still = match &trial {
            Ok(measured) => Duration::from_nanos(measured.stood_still_ns),
            // What a server does to a client that is silent is not its fault. A wrong answer is.
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
            let suspect = self.suspect.zip(trial.as_ref().ok());
            let why = suspect.and_then(|(suspect, measured)| suspect(measured));
            return (trial, why.map(|why| Disturbance { why, stood_still: false }));
        }
        let why = standstill(stood_still);
        let number = repeat.map_or(0, |repeat| repeat.number);
        if number < REPEATS {
            return (trial, Some(Disturbance { why, stood_still: true }));
        }
        let message = format!("{why} during this trial, and during each of the {number} before it");
        let error = Error::new(ErrorKind::Environment, message)
            .hint("run it where nothing stops, freezes or pauses the process or its machine");
        (Err(error.into()), None)
    }

    /// What came out, as it is recorded; `None` where the user stopped it.
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

    /// The work of a cell, and its target's house with the data in it that the cell needs.
    pub(crate) fn prepare(
        &self,
        cell: &CellRecord,
        house: &mut Option<House>,
        tell: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<Box<dyn Workload>> {
        let target = &self.targets[cell.target];
        let slot = self.slot(cell);
        let workload = plan::workload(self.experiment, self.spec, slot, target, &cell.axes)?;
        if let (Some(_), Some(renew)) = (workload.footprint(), &target.renew) {
            // What was loaded may go with the server's process, and the connections do.
            *house = None;
            renew().map_err(|error| error.context("starting the server anew"))?;
        }
        let house = match house {
            Some(house) => house,
            None => house.insert(self.open(slot, target)?),
        };
        let data = workload.data();
        if !house.loaded.contains(&data) {
            tell(Event::Loading { cell })?;
            workload
                .load(&mut *house.namespace, &mut cancellable(&mut *house.session, self.cancel))
                .map_err(|error| error.context("filling the store"))?;
            house.loaded.insert(data);
        }
        Ok(workload)
    }

    /// Which house a cell's data is in. Where trials are interleaved, the baseline and its repeat must not find each other's rows;
    /// an application keeps its own data, and has one house.
    pub(crate) fn slot(&self, cell: &CellRecord) -> usize {
        let own = cell.repeat && self.spec.slice_ns.is_some();
        if own && !self.targets[cell.target].driver.capabilities().is_application {
            self.targets.len()
        } else {
            cell.target
        }
    }

    fn open(&self, slot: usize, target: &Target) -> Result<House> {
        let targets = self.targets.len();
        if slot < targets {
            // Where the first is opened anew, the second keeps what it has.
            let slots = targets + usize::from(self.spec.slice_ns.is_some());
            House::open(target, slot, slots, self.run)
        } else {
            House::second(target, slot)
        }
    }

    /// The seed of what a trial's clients draw.
    pub(crate) fn draw_seed(
        &self,
        round: u32,
        cell: &CellRecord,
        operation: &OperationInfo,
        rerun: bool,
    ) -> DrawSeed {
        DrawSeed::new(self.spec.seed, round, cell, operation.name, rerun)
    }

    fn trial(
        &self,
        round: u32,
        cell: &CellRecord,
        operation: &'static OperationInfo,
        rerun: bool,
        house: &mut Option<House>,
        tell: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<Measurement, Failure> {
        let around = Instant::now();
        let workload = self.prepare(cell, house, tell)?;
        let house =
            house.as_mut().ok_or_else(|| Error::new(ErrorKind::Internal, "a target without a house"))?;
        let target = &self.targets[cell.target];
        let seed = self.draw_seed(round, cell, operation, rerun);
        let mut probes = 0;
        let stood_still = Cell::new(Duration::ZERO);
        let mut made = |pace: Pace, stop: Stop| {
            let number = house.next_trial();
            workload.before(
                operation.name,
                &mut *house.namespace,
                &mut cancellable(&mut *house.session, self.cancel),
            )?;
            house.session.settle()?;
            let trial = Trial {
                driver: &*target.driver,
                options: &ConnectOptions::default(),
                workload: &*workload,
                operation,
                number,
                stop,
                pace,
                seed: seed.of_probe(probes),
                cancel: self.cancel,
                progress: self.progress,
                observer: self.observer,
                sides: self.sides,
                rewrites: self.rewrites,
            };
            probes += 1;
            let made = trial.run(|done| {
                workload.after(operation.name, &mut cancellable(&mut *house.session, self.cancel), done)
            });
            let meanwhile = match &made {
                Ok(measured) => Duration::from_nanos(measured.stood_still_ns),
                Err(failure) => failure.stood_still,
            };
            stood_still.set(stood_still.get() + meanwhile);
            made
        };
        let stop = plan::stop(self.spec, operation);
        let arrivals = self.spec.arrivals.unwrap_or_default();
        let mut measured = match Load::of(&cell.axes) {
            Load::Closed => made(Pace::Closed, stop)?,
            Load::Open(rate) => made(Pace::Open { rate: rate as f64, arrivals }, stop)?,
            Load::Highest => {
                let slo = Duration::from_nanos(self.spec.slo_ns.unwrap_or(DEFAULT_SLO_NS));
                let time = stop.duration.unwrap_or(HIGHEST_TIME);
                let search = RateSearch { slo, arrivals, time };
                let found =
                    search.find(|pace, time| made(pace, Stop { duration: Some(time), ..Stop::default() }));
                found.map_err(|failure| Failure { stood_still: stood_still.get(), ..failure })?
            }
        };
        // A search for a rate is led astray by any of its trials.
        measured.stood_still_ns = stood_still.get().as_nanos() as u64;
        measured.around_ns = (around.elapsed().as_nanos() as u64).saturating_sub(measured.elapsed_ns);
        Ok(measured)
    }
}

/// What a run makes.
pub(crate) struct Plan {
    pub(crate) places: Vec<Place>,
    /// The same, grouped as they are interleaved.
    groups: Vec<Vec<Place>>,
    operations: Vec<&'static OperationInfo>,
}
