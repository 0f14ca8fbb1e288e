//! What a run has made, what has failed, and how long things take.

use crate::event::Event;
use crate::runner::Place;
use kurabe_core::experiment::OperationInfo;
use kurabe_core::run::{CellRecord, Outcome, TrialRecord};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// How far a run is when a trial begins.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    pub(crate) ended: usize,
    pub(crate) planned: usize,
    pub(crate) left: Option<Duration>,
}

impl Told {
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

/// A trial that was made, and how long it took with all that belongs to it.
pub(crate) struct Attempt {
    pub(crate) record: TrialRecord,
    pub(crate) took: Duration,
}

impl Attempt {
    pub(crate) fn failed(&self) -> bool {
        matches!(self.record.outcome, Outcome::Failed { .. })
    }
}

/// What has been made, what has failed, and how long things take.
pub(crate) struct Book {
    pub(crate) made: HashSet<(u32, Place)>,
    /// How many rounds each place has been made in.
    pub(crate) rounds_made: HashMap<Place, u32>,
    pub(crate) failed: HashSet<Place>,
    pub(crate) ended: usize,
    pub(crate) took: HashMap<Place, Duration>,
    pub(crate) total: Duration,
    pub(crate) timed: u32,
    /// What trials that were made again took.
    pub(crate) again: Duration,
}

impl Book {
    pub(crate) fn new(earlier: &[TrialRecord], places: &[Place], operations: &[&OperationInfo]) -> Self {
        let mut book = Self {
            made: HashSet::new(),
            rounds_made: HashMap::new(),
            failed: HashSet::new(),
            ended: 0,
            took: HashMap::new(),
            total: Duration::ZERO,
            timed: 0,
            again: Duration::ZERO,
        };
        for trial in earlier {
            let operation = operations.iter().position(|operation| operation.name == trial.operation);
            let Some(place) = operation.map(|operation| (trial.cell, operation)) else { continue };
            if places.contains(&place) && book.made.insert((trial.round, place)) {
                *book.rounds_made.entry(place).or_default() += 1;
                book.ended += 1;
            }
            if matches!(trial.outcome, Outcome::Failed { .. }) {
                book.failed.insert(place);
            }
        }
        book
    }

    pub(crate) fn note(&mut self, round: u32, place: Place, attempt: &Attempt) {
        let took = attempt.took;
        if attempt.failed() {
            self.failed.insert(place);
        }
        self.made.insert((round, place));
        *self.rounds_made.entry(place).or_default() += 1;
        self.ended += 1;
        self.took.insert(place, took);
        self.total += took;
        self.timed += 1;
    }

    /// Each trial still to come takes what it took last; one never made takes the mean of the others.
    pub(crate) fn left(&self, places: &[Place], rounds: u32) -> Option<Duration> {
        let mean = self.total.checked_div(self.timed)?;
        let mut left = Duration::ZERO;
        for place in places.iter().filter(|place| !self.failed.contains(place)) {
            let made = self.rounds_made.get(place).copied().unwrap_or(0);
            left += self.took.get(place).copied().unwrap_or(mean) * rounds.saturating_sub(made);
        }
        Some(left)
    }
}
