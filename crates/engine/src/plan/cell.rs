//! The cells of a plan: what each does on its target, before targets are open.

use crate::fleet::refusal::refusal;
use crate::plan::Plan;
use kurabe_core::axis::{AxisInfo, AxisValue, Cell, product};
use kurabe_core::compression::{COMPRESSION, Compression};
use kurabe_core::cpus::{CPU_PLACEMENT, CPUS, CpuAllotment};
use kurabe_core::experiment::{Dataset, Experiment, OperationInfo};
use kurabe_core::load::{Load, RATE};
use kurabe_core::planned::{Need, PlannedCell};
use kurabe_core::run::{CellRecord, RunSpec};
use kurabe_core::{Error, ErrorKind, Result};

pub(crate) fn unavailable() -> Error {
    Error::new(ErrorKind::Internal, "a trial of a cell that is not available")
}

/// How a target's A/A control is measured.
#[derive(Clone, Copy)]
pub(super) struct AaControl {
    pub(super) second_instance: bool,
}

/// A cell of a run on one target.
pub struct RunCell {
    /// Its record in the run file.
    pub record: CellRecord,
    /// The fixture with its data.
    pub(crate) slot: usize,
    /// `None` if the experiment has no such cell.
    pub(super) planned: Option<PlannedCell>,
}

impl RunCell {
    /// Its plan, if its target supports it.
    pub fn available(&self) -> Option<&PlannedCell> {
        self.planned.as_ref().filter(|_| self.record.unavailable.is_none())
    }
}

impl Plan {
    pub(super) fn plan_cells(&mut self) -> Result<()> {
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

    pub(super) fn plan_cell(
        &self,
        target: usize,
        axes: Cell,
        aa_control: Option<AaControl>,
    ) -> Result<RunCell> {
        // Another instance has its own data. On the same server, an interleaved cell and its A/A control must not see
        // each other's rows. An application manages its own data, and has one fixture.
        let is_application = self.applications[target];
        let apart = self.spec.slice_ns.is_some() && !is_application;
        let own = aa_control.is_some_and(|aa_control| aa_control.second_instance || apart);
        let slot = if own { self.applications.len() + target } else { target };
        let dataset = Dataset { seed: self.spec.seed, records: self.spec.records, slot };
        let planned = planned(self.experiment, &axes, &dataset, is_application);
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
}

/// A cell on a database, or on an application.
pub fn planned(
    experiment: &Experiment,
    axes: &Cell,
    dataset: &Dataset,
    is_application: bool,
) -> Result<PlannedCell> {
    let mut planned = if is_application {
        let name = experiment.info.name;
        let none = || Error::unsupported(format!("{name} cannot run through an application"));
        experiment.plan_via.ok_or_else(none)?(axes)?
    } else {
        (experiment.plan)(axes, dataset)?
    };
    if planned.cpus().is_none() {
        planned.needs.extend(CpuAllotment::of(axes).map(Need::Cpus));
    }
    planned.policy.compression = Compression::of(axes);
    // A server has the same processors throughout a slice of each of its cells.
    planned.policy.interleave &= planned.cpus().is_none();
    Ok(planned)
}

/// Why a cell cannot be measured under this load on any target.
fn does_not_fit(planned: &PlannedCell, load: Load) -> Option<&'static str> {
    if planned.is_job() && load != Load::Closed {
        return Some("a job runs once per trial, so it has no rate");
    }
    if planned.is_job() && planned.cpus().is_some() {
        return Some("processors are given to the server of a loop, not of a job");
    }
    if planned.policy.pipeline > 1 && load != Load::Closed {
        return Some("an open loop has one request per arrival, so requests cannot be pipelined");
    }
    (planned.needs.contains(&Need::Restart) && load == Load::Highest)
        .then_some("a rate search needs several trials, but the server is restarted before each trial")
}

/// The axes with the spec's values, in the experiment's order.
fn axes(experiment: &Experiment, spec: &RunSpec) -> Result<Vec<(AxisInfo, Vec<AxisValue>)>> {
    let open = spec.axes.contains_key(RATE.name);
    let scaled = spec.axes.contains_key(CPUS.name);
    let own = experiment.info.axes;
    let compressed = spec.axes.contains_key(COMPRESSION.name);
    let common =
        [(RATE, open), (CPUS, scaled), (CPU_PLACEMENT, scaled), (COMPRESSION, compressed)].into_iter();
    let common = common.filter(|(axis, given)| *given && !own.iter().any(|known| known.name == axis.name));
    let known: Vec<AxisInfo> = own.iter().copied().chain(common.map(|(axis, _)| axis)).collect();
    if let Some(name) = spec.axes.keys().find(|name| !known.iter().any(|axis| axis.name == name.as_str())) {
        return Err(Error::usage(format!("{} has no axis '{name}'", spec.experiment)));
    }
    known
        .into_iter()
        .map(|axis| match spec.axes.get(axis.name) {
            Some(values) if !values.is_empty() => Ok((axis, values.clone())),
            _ => Err(Error::usage(format!("axis '{}' has no values", axis.name))),
        })
        .collect()
}

/// The operations of the spec, in the experiment's order.
pub(super) fn operations(experiment: &Experiment, spec: &RunSpec) -> Result<Vec<&'static OperationInfo>> {
    let info = experiment.info;
    let names: Vec<&str> = info.operations.iter().map(|operation| operation.name).collect();
    if let Some(name) = spec.operations.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(Error::usage(format!("{} has no operation '{name}'", info.name))
            .hint(format!("there are: {}", names.join(", "))));
    }
    Ok(info
        .operations
        .iter()
        .filter(|operation| spec.operations.iter().any(|name| name == operation.name))
        .collect())
}
