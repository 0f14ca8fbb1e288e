//! The cells of a plan: what each does on its target, before targets are open.

use crate::clients::{client, schedule};
use crate::plan::Plan;
use kurabe_core::axis::{AxisInfo, AxisValue, Cell};
use kurabe_core::compression::{COMPRESSION, Compression};
use kurabe_core::cpus::{CPU_PLACEMENT, CPUS, CpuAllotment};
use kurabe_core::experiment::{Dataset, Experiment, OperationInfo};
use kurabe_core::load::{Load, RATE};
use kurabe_core::planned::{Need, PlannedCell};
use kurabe_core::run::{CellRecord, RunSpec};
use kurabe_core::{Error, ErrorKind, Result, units};

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

/// A cell on a database, or on an application.
pub fn plan_cell(
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
pub(super) fn does_not_fit(planned: &PlannedCell, load: Load) -> Option<&'static str> {
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
pub(super) fn axes(experiment: &Experiment, spec: &RunSpec) -> Result<Vec<(AxisInfo, Vec<AxisValue>)>> {
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

/// Records of one operation.
pub(crate) struct Needed {
    /// Records that a trial changes, including warm-up.
    pub(crate) records: u64,
    /// Records in the store.
    pub(crate) capacity: u64,
}

/// For each operation with a known number of requests: the records that a trial needs, and the existing ones.
pub(crate) fn needed(plan: &Plan, cell: &RunCell) -> Vec<Needed> {
    let Some(policy) = cell.available().map(|planned| planned.policy) else { return Vec::new() };
    let Some(capacity) = policy.capacity else { return Vec::new() };
    let clients = policy.clients.max(1);
    let of_operation = |stop: kurabe_core::experiment::Stop| {
        let each = match Load::of(&cell.record.axes) {
            // A default number of requests does not exclude a cell.
            Load::Closed if stop.min.is_some() => None,
            Load::Closed => {
                stop.requests.map(|requests| client::requests_of_client(requests, clients, policy.pipeline))
            }
            Load::Open(rate) => {
                let due = stop.duration.map(|time| (rate as f64 * time.as_secs_f64()).ceil() as u64);
                let due = due.into_iter().chain(stop.requests).min();
                due.map(|due| schedule::requests(due, clients).div_ceil(clients as u64))
            }
            Load::Highest => None,
        };
        // Each client has its own records.
        let records = each?.div_ceil(capacity.requests_per_record) * clients as u64;
        Some(Needed { records, capacity: capacity.records })
    };
    let writes = plan.operations.iter().filter(|operation| operation.writes);
    writes.filter_map(|operation| of_operation(plan.stop(operation))).collect()
}

/// Why a trial could not change each record at most once.
pub(crate) fn too_few(plan: &Plan, cell: &RunCell) -> Option<String> {
    let lacking = needed(plan, cell).into_iter().find(|needed| needed.records > needed.capacity)?;
    let Needed { records, capacity } = lacking;
    Some(format!(
        "a trial changes each record once at most, so that every change can be read back: the requests need \
         {} records, and there are {}; give --records {records}, or fewer --requests",
        units::count(records),
        units::count(capacity)
    ))
}
