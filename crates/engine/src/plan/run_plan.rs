//! The plan of a run, and what it says of its cells and trials.

use crate::plan::cell::RunCell;
use crate::plan::order;
use kurabe_core::axis::AxisInfo;
use kurabe_core::experiment::{Experiment, OperationInfo, Stop};
use kurabe_core::planned::{Capacity, PlannedCell};
use kurabe_core::run::{CellRecord, MIN_TRIAL, RunSpec};
use std::time::Duration;

/// The plan of a run.
pub struct Plan {
    pub experiment: &'static Experiment,
    /// The spec, without the values and rounds that [`fit`](crate::plan::budget::fit) dropped.
    pub spec: RunSpec,
    /// The axes, in the experiment's order; with the rate if one was requested.
    pub axes: Vec<AxisInfo>,
    /// The operations, in the experiment's order.
    pub operations: Vec<&'static OperationInfo>,
    /// Every cell of every target, unavailable ones with their reason, followed by the A/A control of each target's
    /// first available cell.
    pub cells: Vec<RunCell>,
    /// The trials of a round.
    pub(crate) trials: Vec<TrialId>,
    /// The same trials, grouped for interleaving.
    pub(crate) groups: Vec<Vec<TrialId>>,
    /// For each target, whether it is an application.
    pub(super) applications: Vec<bool>,
    /// For each target, the connections that clients may have at a time.
    pub(crate) free_connections: Vec<u64>,
    /// The memory that clients may hold at a time, in bytes.
    pub(crate) max_held: u64,
    /// Whether it has its A/A controls and the groups of its trials.
    pub(super) is_complete: bool,
    /// Whether the user set the number of records; otherwise it may be reduced and increased.
    pub(super) records_are_given: bool,
}

/// Identifies a trial of a round: the positions of its cell and its operation.
pub(crate) type TrialId = (usize, usize);

impl Plan {
    /// The maximum number of connections that clients have at the same time, of all trials of a group together.
    pub(crate) fn connections_at_once(&self) -> u64 {
        let of = |id: &TrialId| self.cells[id.0].available().map_or(0, PlannedCell::connections);
        self.groups.iter().map(|group| group.iter().map(of).sum()).max().unwrap_or(0)
    }

    /// Whether a target's A/A control should run on a second instance of its server, if possible: in a new run
    /// always, in a recorded one as before.
    pub fn wants_second_instance(&self, target: usize) -> bool {
        let aa_control = self
            .cells
            .iter()
            .map(|cell| &cell.record)
            .find(|record| record.aa_control && record.target == target);
        aa_control.map_or_else(
            || !self.cells.iter().any(|cell| cell.record.aa_control),
            |record| record.second_instance,
        )
    }

    /// Whether a trial is interleaved with others, except in continuous rounds.
    pub(crate) fn is_interleaved(&self, trial: TrialId) -> bool {
        self.groups.iter().any(|group| group.len() > 1 && group.contains(&trial))
    }

    /// Allows trials to change a record more than once. They never run out of records then, and only the last version
    /// of each record is read back.
    pub fn allow_rewrites(&mut self) {
        for planned in self.cells.iter_mut().filter_map(|cell| cell.planned.as_mut()) {
            planned.policy.capacity = None;
        }
    }

    /// Limits the transactions of writing operations in cells without a limit, to the number that `most` returns.
    pub(crate) fn limit_writes(&mut self, most: impl Fn(&CellRecord, &PlannedCell) -> Option<u64>) {
        for cell in &mut self.cells {
            let Some(planned) = &mut cell.planned else { continue };
            if let Some(records) = most(&cell.record, planned).filter(|_| planned.policy.capacity.is_none()) {
                planned.policy.capacity = Some(Capacity { records, requests_per_record: 1 });
            }
        }
    }

    /// The cells' records for the run file.
    pub fn records(&self) -> Vec<CellRecord> {
        self.cells.iter().map(|cell| cell.record.clone()).collect()
    }

    /// The cells that can be measured.
    pub fn available(&self) -> impl Iterator<Item = (&CellRecord, &PlannedCell)> {
        self.cells.iter().filter_map(|cell| Some((&cell.record, cell.available()?)))
    }

    /// Whether it has its A/A controls and the groups of its trials.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The number of trials of one round.
    pub fn trials(&self) -> usize {
        self.trials.len()
    }

    /// The trials of a round by the rounds of `spec`, grouped for interleaving, in execution order.
    pub(crate) fn round(&self, spec: &RunSpec, round: u32) -> Vec<Vec<TrialId>> {
        let alone = || self.trials.iter().map(|trial| vec![*trial]).collect();
        let mut groups = if spec.is_continuous(round) { alone() } else { self.groups.clone() };
        // Trials of a group connect and warm up one after the other. The last was measured to be 2 % faster.
        order::shuffle(self.spec.seed, round, &mut groups);
        groups
    }

    /// When a trial of this operation ends.
    pub fn stop(&self, operation: &OperationInfo) -> Stop {
        Stop {
            requests: self.spec.requests.get(operation.name).copied(),
            duration: self.spec.duration_ns.map(Duration::from_nanos),
            // A number of requests that the user set is always made.
            min: self.spec.budget_ns.map(|_| MIN_TRIAL),
        }
    }
}
