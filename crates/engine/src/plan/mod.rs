//! The plan of a run: cells with their work on each target, operations, groups of trials, and when trials end. The
//! preflight checks, the printed plan and the run itself all use this one value.
//!
//! Planning has steps, since targets are opened for what the cells need, and cells are then checked against open
//! targets. [`Plan::draft`] plans the cells, [`Plan::compare`] removes those that a target does not support, and
//! [`Plan::complete`] adds the A/A controls and groups the trials. [`Plan::new`] does all of it.

pub mod budget;
pub(crate) mod cell;
pub(crate) mod draw_seed;
pub(crate) mod groups;

use crate::fleet::{refusal, unreachable};
use crate::plan::cell::{AaControl, axes, does_not_fit, operations};
use crate::plan::groups::groups;
use crate::prepare::fixture::Ownership;
use crate::prepare::target::Target;
use kurabe_core::axis::{AxisInfo, Cell, product};
use kurabe_core::experiment::{Dataset, Experiment, OperationInfo, Stop};
use kurabe_core::load::Load;
use kurabe_core::planned::{CacheNeed, Capacity, PlannedCell};
use kurabe_core::remote::RemoteServer;
use kurabe_core::run::{CellRecord, MIN_TRIAL, RunSpec};
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use cell::{RunCell, plan_cell};

/// Bytes of a row besides its largest value.
const ROW: u64 = 32;

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
    /// The trials of a round, grouped for interleaving.
    pub(crate) groups: Vec<Vec<TrialId>>,
    /// For each target, whether it is an application.
    applications: Vec<bool>,
    /// For each target, the connections that clients may have at a time.
    pub(crate) free_connections: Vec<u64>,
    /// The memory that clients may hold at a time, in bytes.
    pub(crate) max_held: u64,
    /// Whether it has its A/A controls and the groups of its trials.
    is_complete: bool,
    /// Whether the user set the number of records; otherwise it may be reduced and increased.
    records_are_given: bool,
}

/// Identifies a trial of a round: the positions of its cell and its operation.
pub(crate) type TrialId = (usize, usize);

/// Whether two cells differ in these axes only.
fn differ_in(free: &[String], a: &Cell, b: &Cell) -> bool {
    let mut values = a.values().iter().filter(|(name, value)| b.values().get(*name) != Some(value));
    values.all(|(name, _)| free.contains(name))
}

impl Plan {
    /// Plans a run on open targets. The spec is not changed.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if axis values are incompatible, or there is no such axis or operation.
    pub fn new(experiment: &'static Experiment, spec: &RunSpec, targets: &[Target]) -> Result<Self> {
        let applications: Vec<bool> =
            targets.iter().map(|target| target.driver.capabilities().is_application).collect();
        let mut plan = Self::draft(experiment, spec.clone(), &applications)?;
        plan.compare(targets);
        plan.complete(targets)?;
        Ok(plan)
    }

    /// Plans the cells before targets are open; `applications` says which targets are applications.
    pub fn draft(experiment: &'static Experiment, spec: RunSpec, applications: &[bool]) -> Result<Self> {
        let mut plan = Self {
            experiment,
            axes: Vec::new(),
            operations: operations(experiment, &spec)?,
            cells: Vec::new(),
            trials: Vec::new(),
            groups: Vec::new(),
            applications: applications.to_vec(),
            free_connections: vec![u64::MAX; applications.len()],
            max_held: u64::MAX,
            is_complete: false,
            records_are_given: spec.records.is_some(),
            spec,
        };
        plan.plan_cells()?;
        Ok(plan)
    }

    /// Plans the rest of a recorded run: the same cells, available where they were.
    pub fn of_recorded(
        experiment: &'static Experiment,
        spec: &RunSpec,
        cells: &[CellRecord],
        applications: &[bool],
    ) -> Result<Self> {
        let mut plan = Self::draft(experiment, spec.clone(), applications)?;
        // With the number of records that it was started with.
        let mut drafted = std::mem::take(&mut plan.cells);
        for record in cells {
            let is_same =
                |cell: &RunCell| cell.record.target == record.target && cell.record.axes == record.axes;
            let known = drafted.iter().position(is_same).filter(|_| !record.aa_control);
            let mut cell = if let Some(at) = known {
                drafted.swap_remove(at)
            } else {
                let aa_control =
                    record.aa_control.then_some(AaControl { second_instance: record.second_instance });
                plan.plan_cell(record.target, record.axes.clone(), aa_control)?
            };
            if record.unavailable.is_none() && cell.available().is_none() {
                let why = cell.record.unavailable.unwrap_or_default();
                return Err(Error::unsupported(why).context("a cell of this run cannot be measured any more"));
            }
            cell.record = record.clone();
            plan.cells.push(cell);
        }
        plan.group();
        Ok(plan)
    }

    /// Plans another spec on the same targets, after these have determined a value.
    pub fn rewrite(&mut self, experiment: &'static Experiment, spec: RunSpec) -> Result<()> {
        *self = Self::draft(experiment, spec, &self.applications)?;
        Ok(())
    }

    /// Like [`rewrite`](Self::rewrite) on open targets; `false`, and nothing is changed, if there is no such plan, or no cell in it.
    pub(crate) fn try_rewrite(
        &mut self,
        experiment: &'static Experiment,
        spec: RunSpec,
        targets: &[Target],
    ) -> bool {
        let Ok(mut other) = Self::draft(experiment, spec, &self.applications) else { return false };
        other.compare(targets);
        let measurable = |plan: &Self| plan.available().count();
        if measurable(&other) < measurable(self) {
            return false;
        }
        *self = Self { records_are_given: self.records_are_given, ..other };
        true
    }

    /// Marks the cells that their targets do not support, and single operations of the others. A cell without an
    /// operation that its target supports is unavailable.
    pub fn compare(&mut self, targets: &[Target]) {
        let shares_threads = matches!(self.spec.threads, Some(ClientThreads::Count(_)));
        for cell in &mut self.cells {
            let Some(planned) = cell.available() else { continue };
            let target = &targets[cell.record.target];
            let on_fleet = || self.spec.fleet.as_ref().and_then(|_| unreachable(&target.driver.endpoint()));
            let cpus = || target.cpu_refusal(planned.cpus()?);
            let shares = shares_threads && !planned.is_job();
            let threads = || target.refuses_shared_threads().filter(|_| shares);
            let compression = || target.compression_refusal(planned.policy.compression);
            let refusal = target.refusal(&planned.demand).or_else(|| target.cannot_write_for(planned));
            let refusal = refusal.or_else(cpus).or_else(threads);
            if let Some(refusal) = refusal.or_else(compression).or_else(on_fleet) {
                cell.record.unavailable = Some(refusal);
                continue;
            }
            let asked = planned.operations.iter();
            let asked = asked.filter(|(name, _)| self.operations.iter().any(|known| known.name == *name));
            let refused =
                asked.filter_map(|(name, demand)| Some(((*name).to_owned(), target.refusal(demand)?)));
            let refused: BTreeMap<String, String> = refused.collect();
            if refused.len() == self.operations.len() {
                cell.record.unavailable = refused.values().next().cloned();
            }
            cell.record.unavailable_operations = refused;
        }
    }

    /// Marks the cells that need more connections, or prepared statements, than a server has left, if a default value of an
    /// axis is the reason: a cell with another default value has enough. `free` are the axes with default values.
    pub fn leave_out_unconnectable(&mut self, targets: &[Target], free: &[String]) {
        let short = |cell: &RunCell| targets[cell.record.target].lacks_connections(cell.available()?);
        let why: Vec<Option<String>> = self.cells.iter().map(short).collect();
        let has_smaller = |at: usize| {
            let record = &self.cells[at].record;
            self.cells.iter().zip(&why).any(|(other, why)| {
                let fits =
                    why.is_none() && other.available().is_some() && other.record.target == record.target;
                fits && differ_in(free, &record.axes, &other.record.axes)
            })
        };
        let out: Vec<usize> = (0..why.len()).filter(|at| why[*at].is_some() && has_smaller(*at)).collect();
        for at in out {
            self.cells[at].record.unavailable.clone_from(&why[at]);
        }
    }

    /// Marks the cells of these targets whose values are the largest, by `size`, if another cell differs in axes with default values
    /// only and has smaller ones. Returns whether there are any.
    pub(crate) fn leave_out_largest(
        &mut self,
        targets: &[usize],
        free: &[String],
        size: fn(&PlannedCell) -> u64,
        why: &str,
    ) -> bool {
        let here =
            |cell: &RunCell| cell.available().filter(|_| targets.contains(&cell.record.target)).map(size);
        let sizes: Vec<Option<u64>> = self.cells.iter().map(here).collect();
        let largest = sizes.iter().flatten().max().copied();
        let has_smaller = |at: usize| {
            self.cells.iter().zip(&sizes).any(|(other, size)| {
                size.is_some_and(|size| Some(size) < largest)
                    && other.record.target == self.cells[at].record.target
                    && differ_in(free, &self.cells[at].record.axes, &other.record.axes)
            })
        };
        let out =
            (0..sizes.len()).filter(|at| sizes[*at].is_some() && sizes[*at] == largest && has_smaller(*at));
        let out: Vec<usize> = out.collect();
        for at in &out {
            self.cells[*at].record.unavailable = Some(why.to_owned());
        }
        !out.is_empty()
    }

    /// Interleaves no more clients than the servers have connections, and prepared statements, for.
    pub fn limit_connections(&mut self, targets: &[Target]) {
        self.free_connections = targets.iter().map(Target::room_for_clients).collect();
        self.group();
    }

    /// Increases the number of records so that each trial can change each record at most once, if the number of
    /// requests is known and the experiment's default is too small. Returns the new number; `None` if the default
    /// suffices, or the user set a number.
    pub fn enlarge_stores(&mut self, targets: &[Target]) -> Result<Option<u64>> {
        if self.records_are_given {
            return Ok(None);
        }
        let needed = self.cells.iter().flat_map(|cell| cell::needed(self, cell));
        let most =
            needed.filter(|needed| needed.records > needed.capacity).map(|needed| needed.records).max();
        if most.is_some() {
            self.spec.records = most;
            // The stores are different now.
            self.plan_cells()?;
            self.compare(targets);
        }
        Ok(most)
    }

    /// Marks the cells with too few records, adds the A/A control of each target's first cell, on a second instance
    /// of its server if there is one, and groups the trials.
    pub fn complete(&mut self, targets: &[Target]) -> Result<()> {
        for at in 0..self.cells.len() {
            let too_few = cell::too_few(self, &self.cells[at]);
            let record = &mut self.cells[at].record;
            record.unavailable = record.unavailable.take().or(too_few);
        }
        let first = |at| {
            let mut cells = self.available().map(|(record, _)| record);
            cells.find(|record| record.target == at).cloned()
        };
        let firsts: Vec<Option<CellRecord>> = (0..targets.len()).map(first).collect();
        for (at, (target, first)) in targets.iter().zip(firsts).enumerate() {
            let Some(first) = first else { continue };
            let aa_control = AaControl { second_instance: target.second.is_some() };
            let mut cell = self.plan_cell(at, first.axes, Some(aa_control))?;
            cell.record.unavailable_operations = first.unavailable_operations;
            self.cells.push(cell);
        }
        self.limit_connections(targets);
        self.is_complete = true;
        Ok(())
    }

    /// Interleaves no more clients than this memory is enough for.
    pub(crate) fn limit_memory(&mut self, bytes: u64) {
        self.max_held = bytes;
        self.group();
    }

    fn plan_cells(&mut self) -> Result<()> {
        let axes = axes(self.experiment, &self.spec)?;
        let product = product(&axes);
        self.axes = axes.into_iter().map(|(axis, _)| axis).collect();
        self.cells = Vec::with_capacity((product.len() + 1) * self.applications.len());
        for target in 0..self.applications.len() {
            for axes in &product {
                let cell = self.plan_cell(target, axes.clone(), None)?;
                let is_same =
                    |axis: &&str| self.spec.axes.get(*axis).and_then(|all| all.first()) == axes.get(axis);
                if cell.planned.as_ref().is_none_or(|planned| planned.ignores.iter().all(is_same)) {
                    self.cells.push(cell);
                }
            }
        }
        Ok(())
    }

    fn plan_cell(&self, target: usize, axes: Cell, aa_control: Option<AaControl>) -> Result<RunCell> {
        // Another instance has its own data. On the same server, an interleaved cell and its A/A control must not see
        // each other's rows. An application manages its own data, and has one fixture.
        let is_application = self.applications[target];
        let apart = self.spec.slice_ns.is_some() && !is_application;
        let own = aa_control.is_some_and(|aa_control| aa_control.second_instance || apart);
        let slot = if own { self.applications.len() + target } else { target };
        let dataset = Dataset { seed: self.spec.seed, records: self.spec.records, slot };
        let planned = plan_cell(self.experiment, &axes, &dataset, is_application);
        let (planned, unavailable) = match planned {
            Ok(planned) => {
                let why = does_not_fit(&planned, Load::of(&axes)).map(str::to_owned);
                let on_fleet = || self.spec.fleet.as_ref().and_then(|_| refusal(&planned, is_application));
                let why = why.or_else(on_fleet);
                (Some(planned), why)
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => (None, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        let stored_bytes = planned.as_ref().and_then(|planned| planned.stored_bytes);
        let second_instance = aa_control.is_some_and(|aa_control| aa_control.second_instance);
        let aa_control = aa_control.is_some();
        let record = CellRecord {
            target,
            axes,
            aa_control,
            second_instance,
            unavailable,
            stored_bytes,
            ..CellRecord::default()
        };
        Ok(RunCell { record, slot, planned })
    }

    fn group(&mut self) {
        self.trials = (0..self.cells.len())
            .filter(|cell| self.cells[*cell].available().is_some())
            .flat_map(|cell| (0..self.operations.len()).map(move |operation| (cell, operation)))
            .filter(|(cell, operation)| {
                self.cells[*cell].record.refusal(self.operations[*operation].name).is_none()
            })
            .collect();
        self.groups = groups(self);
    }

    /// Removes a value of an axis, and the cells with it.
    pub(crate) fn drop_value(&mut self, axis: &str, position: usize) {
        let Some(values) = self.spec.axes.get_mut(axis) else { return };
        let value = values.remove(position);
        self.cells.retain(|cell| cell.record.axes.get(axis) != Some(&value));
    }

    /// Removes all cells for which `keep` is false, such as A/A controls.
    pub fn retain(&mut self, keep: impl Fn(&CellRecord) -> bool) {
        self.cells.retain(|cell| keep(&cell.record));
        self.group();
    }

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

    /// Limits the transactions of writing operations in cells without a limit, to the number that `most` returns, for which the
    /// server has memory.
    pub(crate) fn limit_writes(&mut self, most: impl Fn(&CellRecord, &PlannedCell) -> Option<u64>) {
        for cell in &mut self.cells {
            let Some(planned) = &mut cell.planned else { continue };
            if let Some(records) = most(&cell.record, planned).filter(|_| planned.policy.capacity.is_none()) {
                planned.policy.capacity = Some(Capacity { records, requests_per_record: 1, of_memory: true });
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

    /// The number of rounds of the first `rounds` in which a trial is made.
    pub(crate) fn rounds_of(&self, (cell, _): TrialId, spec: &RunSpec, rounds: u32) -> u32 {
        spec.rounds_of(self.cells[cell].record.aa_control, rounds)
    }

    /// The number of trials of the first `rounds` rounds.
    pub fn trials_of(&self, spec: &RunSpec, rounds: u32) -> usize {
        self.trials.iter().map(|trial| self.rounds_of(*trial, spec, rounds) as usize).sum()
    }

    /// Whether a trial is made in a round, by the rounds of `spec`.
    pub(crate) fn has_trial(&self, (cell, _): TrialId, spec: &RunSpec, round: u32) -> bool {
        !self.cells[cell].record.aa_control || spec.has_controls(round)
    }

    /// The trials of a round by the rounds of `spec`, grouped for interleaving, in execution order.
    pub(crate) fn round(&self, spec: &RunSpec, round: u32) -> Vec<Vec<TrialId>> {
        let alone = || self.trials.iter().map(|trial| vec![*trial]).collect();
        let mut groups = if spec.is_continuous(round) { alone() } else { self.groups.clone() };
        for group in &mut groups {
            group.retain(|trial| self.has_trial(*trial, spec, round));
        }
        groups.retain(|group| !group.is_empty());
        // Trials of a group connect and warm up one after the other. The last was measured to be 2 % faster.
        groups::shuffle(self.spec.seed, round, &mut groups);
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

    /// What the cells of a target need there.
    pub fn need(&self, target: usize) -> Ownership {
        let cells = self.available().filter(|(record, _)| record.target == target);
        let need = |(_, cell): (&CellRecord, &PlannedCell)| match (cell.only_reads(), cell.creates_nothing())
        {
            (true, _) => Ownership::Nothing,
            (false, true) => Ownership::Lease,
            (false, false) => Ownership::Tables,
        };
        cells.map(need).max().unwrap_or(Ownership::Tables)
    }

    /// Bytes that are loaded for the measured operations of a cell.
    pub fn loaded_bytes(&self, cell: &PlannedCell) -> u64 {
        cell.loaded_bytes(self.operations.iter().map(|operation| operation.name))
    }

    /// About how many rows these bytes are.
    pub(crate) fn loaded_rows(&self, cell: &PlannedCell) -> f64 {
        self.loaded_bytes(cell) as f64 / (cell.demand.value_bytes + ROW) as f64
    }

    /// The maximum number of connections that any cell needs.
    pub fn connections(&self) -> u64 {
        self.available().map(|(_, cell)| cell.connections()).max().unwrap_or(0)
    }

    /// The caches that cells need in front of their stores: for each name the one with the largest values.
    pub fn caches(&self) -> Vec<CacheNeed> {
        let mut caches: Vec<CacheNeed> = Vec::new();
        for need in self.available().filter_map(|(_, cell)| cell.cache()) {
            match caches.iter_mut().find(|known| known.name == need.name) {
                Some(known) => known.capacity = known.capacity.max(need.capacity),
                None => caches.push(need.clone()),
            }
        }
        caches
    }

    /// The second servers that cells need, without duplicates.
    pub fn remotes(&self) -> Vec<RemoteServer> {
        let needed = self.available().filter_map(|(_, cell)| cell.remote());
        needed.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The largest reply that any cell expects, in bytes.
    pub fn largest_answer(&self) -> u64 {
        // Replies to pipelined requests arrive together.
        let largest =
            |cell: &PlannedCell| cell.demand.request_bytes.saturating_mul(cell.policy.pipeline.max(1));
        self.available().map(|(_, cell)| largest(cell)).max().unwrap_or(0)
    }
}
