//! What a run will do: its cells on each target, and which of them a target cannot do, with the reason.

use crate::{client, schedule};
use kurabe_core::axis::{AxisInfo, AxisValue, Cell, product};
use kurabe_core::driver::{Driver, Support};
use kurabe_core::experiment::{Capacity, Dataset, Demand, Experiment, OperationInfo, Stop, Workload};
use kurabe_core::facts::{Limit, ServerFacts};
use kurabe_core::load::{Load, RATE};
use kurabe_core::run::{CellRecord, LEAST_TRIAL, RunSpec};
use kurabe_core::{Error, ErrorKind, Result, units};
use std::time::Duration;

/// A target as the engine needs it.
pub struct Target {
    /// Its name in the run.
    pub name: String,
    /// Its driver.
    pub driver: Box<dyn Driver>,
    /// What the server says of itself.
    pub facts: ServerFacts,
    /// Whether it claims its namespace: of several targets with one URL only the first does.
    pub claims: bool,
    /// Why nothing is measured on it at all, such as a durability class that it cannot have.
    pub refused: Option<String>,
    /// Starts its server anew, on the same data and address, and returns when it answers; `None` where it is not ours.
    pub renew: Option<Renew>,
}

impl Target {
    /// One that claims its namespace, can be measured, and whose server is not ours to start anew.
    pub fn new(name: impl Into<String>, driver: Box<dyn Driver>, facts: ServerFacts) -> Self {
        Self { name: name.into(), driver, facts, claims: true, refused: None, renew: None }
    }
}

/// What [`Target::renew`] is.
pub type Renew = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// The spec's axis values beside what the experiment says of each axis, in the experiment's order.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) where the spec lacks an axis or has one that the experiment does not know.
pub fn axes(experiment: &dyn Experiment, spec: &RunSpec) -> Result<Vec<(AxisInfo, Vec<AxisValue>)>> {
    let open = spec.axes.contains_key(RATE.name);
    let known: Vec<AxisInfo> = experiment.info().axes.iter().copied().chain(open.then_some(RATE)).collect();
    if let Some(name) = spec.axes.keys().find(|name| !known.iter().any(|axis| axis.name == name.as_str())) {
        return Err(Error::usage(format!("{} has no axis '{name}'", spec.experiment)));
    }
    known
        .into_iter()
        .map(|axis| match spec.axes.get(axis.name) {
            Some(values) if !values.is_empty() => Ok((axis, values.clone())),
            _ => Err(Error::usage(format!("axis '{}' has no value", axis.name))),
        })
        .collect()
}

/// Every cell of every target, unavailable ones with their reason, and the baseline's repeat at the end.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) where axis values make no sense together.
pub fn cells(experiment: &dyn Experiment, spec: &RunSpec, targets: &[Target]) -> Result<Vec<CellRecord>> {
    let product = product(&axes(experiment, spec)?);
    let mut cells = Vec::with_capacity(product.len() * targets.len() + 1);
    for (index, target) in targets.iter().enumerate() {
        for axes in &product {
            cells.push(cell(experiment, spec, index, target, axes.clone())?);
        }
    }
    let baseline = cells.iter().find(|cell| cell.unavailable.is_none()).cloned();
    cells.extend(baseline.map(|cell| CellRecord { repeat: true, ..cell }));
    Ok(cells)
}

fn cell(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    index: usize,
    target: &Target,
    axes: Cell,
) -> Result<CellRecord> {
    let made = workload(experiment, spec, index, target, &axes);
    let (unavailable, stored_bytes) = match made {
        Ok(workload) if workload.pipeline() > 1 && Load::of(&axes) != Load::Closed => {
            let reason = "in an open loop each arrival is one request, so that none are sent together";
            (Some(reason.to_owned()), workload.stored_bytes())
        }
        Ok(workload) if workload.footprint().is_some() && Load::of(&axes) == Load::Highest => {
            // Those after the first would find what the first one's connections had needed.
            let reason = "the highest rate takes several trials, and what connections cost is asked of one";
            (Some(reason.to_owned()), workload.stored_bytes())
        }
        Ok(workload) => {
            let reason = match unavailable(&workload.demand(), target) {
                None => too_few_records(experiment, spec, &axes, &*workload)?,
                reason => reason,
            };
            (reason, workload.stored_bytes())
        }
        Err(error) if error.kind() == ErrorKind::Unsupported => (Some(error.to_string()), None),
        Err(error) => return Err(error),
    };
    Ok(CellRecord { target: index, axes, repeat: false, unavailable, stored_bytes })
}

/// The records that stores need so that each trial can change each of them once, where the number of requests is known and the
/// experiment's own rule gives fewer; `None` where it gives enough.
///
/// # Errors
/// As for [`cells`].
pub fn enough_records(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    targets: &[Target],
) -> Result<Option<u64>> {
    let mut most = None;
    for axes in product(&axes(experiment, spec)?) {
        for (index, target) in targets.iter().enumerate() {
            let Ok(workload) = workload(experiment, spec, index, target, &axes) else { continue };
            for (needed, capacity) in needed_records(experiment, spec, &axes, &*workload)? {
                most = most.max(Some(needed).filter(|needed| *needed > capacity.records));
            }
        }
    }
    Ok(most)
}

/// Why a trial could not change each record once at most, where the number of requests is known.
fn too_few_records(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    axes: &Cell,
    workload: &dyn Workload,
) -> Result<Option<String>> {
    let all = needed_records(experiment, spec, axes, workload)?;
    let lacking = all.into_iter().find(|(needed, capacity)| *needed > capacity.records);
    Ok(lacking.map(|(needed, capacity)| {
        format!(
            "a trial changes each record once at most, so that every change can be read back: so many requests need {} \
             records, and there are {}; give --records {needed}, or fewer --requests",
            units::count(needed),
            units::count(capacity.records)
        )
    }))
}

/// For each operation whose number of requests is known: the records that a trial changes, warm-up included, and those that
/// there are.
fn needed_records(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    axes: &Cell,
    workload: &dyn Workload,
) -> Result<Vec<(u64, Capacity)>> {
    let mut all = Vec::new();
    for operation in operations(experiment, spec)? {
        let Some(capacity) = workload.capacity(operation.name) else { continue };
        let stop = stop(spec, operation);
        let clients = workload.clients().max(1);
        let each = match Load::of(axes) {
            // Requests that nobody asked for are no reason to leave a cell out.
            Load::Closed if stop.least.is_some() => None,
            Load::Closed => {
                stop.requests.map(|requests| client::requests(requests, clients, workload.pipeline()))
            }
            Load::Open(rate) => {
                let due = stop.duration.map(|time| (rate as f64 * time.as_secs_f64()).ceil() as u64);
                let due = due.into_iter().chain(stop.requests).min();
                due.map(|due| schedule::requests(due, clients).div_ceil(clients as u64))
            }
            Load::Highest => None,
        };
        // Each client has records of its own.
        let needed = each.map(|each| each.div_ceil(capacity.requests_per_record) * clients as u64);
        all.extend(needed.map(|needed| (needed, capacity)));
    }
    Ok(all)
}

/// What the cells of a target share.
pub fn dataset(spec: &RunSpec, target: usize) -> Dataset {
    Dataset { seed: spec.seed, records: spec.records, slot: target }
}

/// The work of a cell on a target.
///
/// # Errors
/// As for [`Experiment::workload`] and, where the target is an application, [`Experiment::workload_via`].
pub fn workload(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    index: usize,
    target: &Target,
    axes: &Cell,
) -> Result<Box<dyn Workload>> {
    let dataset = dataset(spec, index);
    if target.driver.capabilities().is_application {
        experiment.workload_via(axes, &dataset)
    } else {
        experiment.workload(axes, &dataset)
    }
}

/// Whether any cell asks what connections cost the server.
///
/// # Errors
/// As for [`cells`].
pub fn asks_footprint(experiment: &dyn Experiment, spec: &RunSpec) -> Result<bool> {
    any(experiment, spec, |workload| u64::from(workload.footprint().is_some())).map(|asks| asks > 0)
}

/// The most connections that any cell needs at once, as far as no target has a say in it.
///
/// # Errors
/// As for [`cells`].
pub fn connections(experiment: &dyn Experiment, spec: &RunSpec) -> Result<u64> {
    any(experiment, spec, |workload| workload.demand().connections)
}

/// The largest answer that any cell asks for, in bytes.
///
/// # Errors
/// As for [`cells`].
pub fn largest_answer(experiment: &dyn Experiment, spec: &RunSpec) -> Result<u64> {
    any(experiment, spec, |workload| {
        // Answers to requests that are sent together arrive together.
        workload.demand().request_bytes.saturating_mul(workload.pipeline().max(1))
    })
}

/// The most of something over all cells that a target could have.
fn any(experiment: &dyn Experiment, spec: &RunSpec, of: impl Fn(&dyn Workload) -> u64) -> Result<u64> {
    let dataset = dataset(spec, 0);
    let workloads = product(&axes(experiment, spec)?)
        .into_iter()
        .filter_map(|cell| experiment.workload(&cell, &dataset).ok());
    Ok(workloads.map(|workload| of(&*workload)).max().unwrap_or(0))
}

/// Why the target cannot do what a cell demands; `None` where it can.
pub fn unavailable(demand: &Demand, target: &Target) -> Option<String> {
    if target.refused.is_some() {
        return target.refused.clone();
    }
    let capabilities = target.driver.capabilities();
    let missing = demand.capabilities.iter().find_map(|needed| capabilities.get(*needed).refusal());
    if let Some(reason) = missing {
        return Some(reason.to_owned());
    }
    for operation in &demand.operations {
        if let Support::No(reason) = target.driver.supports(operation) {
            return Some(reason);
        }
    }
    for needed in &demand.settings {
        let said = target.facts.settings.iter().find(|setting| setting.name == needed.name);
        if said.is_none_or(|said| said.value != needed.value) {
            let said = said.map_or_else(
                || format!("does not say its {}", needed.name),
                |said| format!("says that its {} is '{}'", needed.name, said.value),
            );
            return Some(format!("{} {said}; {}", target.facts.engine, needed.remedy));
        }
    }
    let limits = &target.facts.limits;
    let over = |what: &str, needs: u64, limit: &Option<Limit>, show: fn(u64) -> String| {
        limit.as_ref().filter(|limit| needs > limit.most).map(|limit| {
            format!(
                "{what} of {} is over the server's limit of {} ({})",
                show(needs),
                show(limit.most),
                limit.set_by
            )
        })
    };
    let exact = |bytes: u64| format!("{} bytes", units::count(bytes));
    over("a value", demand.value_bytes, &limits.value_bytes, exact)
        .or_else(|| over("a request", demand.request_bytes, &limits.request_bytes, exact))
        .or_else(|| over("a number of parameters", demand.parameters, &limits.parameters, units::count))
}

/// The operations that the spec asks for, in the experiment's order.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) for an operation that the experiment does not have.
pub fn operations(experiment: &dyn Experiment, spec: &RunSpec) -> Result<Vec<&'static OperationInfo>> {
    let info = experiment.info();
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

/// When a trial of this operation ends.
pub fn stop(spec: &RunSpec, operation: &OperationInfo) -> Stop {
    Stop {
        requests: spec.requests.get(operation.name).copied(),
        duration: spec.duration_ns.map(Duration::from_nanos),
        // Where the user asked for a number of requests, it is what is made.
        least: spec.budget_ns.map(|_| LEAST_TRIAL),
    }
}
