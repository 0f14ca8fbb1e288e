//! What would stop a run in its middle, found before it starts: connections, open files, memory,
//! tables in the way.

use crate::house::House;
use crate::plan::{Target, workload};
use kurabe_core::collection::{Collection, NAMESPACE_PREFIX};
use kurabe_core::experiment::Experiment;
use kurabe_core::operation::Operation;
use kurabe_core::run::{CellRecord, RunSpec};
use kurabe_core::{Error, ErrorKind, Result, units};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashSet;
use std::sync::Arc;

/// Files that the program itself has open beside its connections.
const OWN_FILES: u64 = 64;

/// Checks the cells against the servers' limits and this machine's, and raises this process's limit of open files as
/// far as it may.
///
/// # Errors
/// [`Limit`](ErrorKind::Limit), saying what is short, of what, and which setting to change.
pub fn check(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    targets: &[Target],
    cells: &[CellRecord],
    memory_bytes: u64,
) -> Result<()> {
    for cell in cells.iter().filter(|cell| cell.unavailable.is_none()) {
        let target = &targets[cell.target];
        let demand = workload(experiment, spec, cell.target, target, &cell.axes)?.demand();
        let clients = demand.connections;
        if let Some(limit) = &target.facts.limits.connections {
            let free = limit.most.saturating_sub(target.facts.limits.connections_in_use.unwrap_or(0));
            // One more asks the engine what it did.
            if clients + 1 > free {
                return Err(Error::new(
                    ErrorKind::Limit,
                    format!(
                        "{}: {} connections are needed at once and the server has {} free of {} ({})",
                        target.name,
                        units::count(clients + 1),
                        units::count(free),
                        units::count(limit.most),
                        limit.set_by
                    ),
                )
                .hint("raise the server's limit or ask for fewer --clients"));
            }
        }
        open_files(clients + OWN_FILES)?;
        let held = demand.client_bytes.saturating_mul(clients);
        if memory_bytes > 0 && held > memory_bytes / 2 {
            return Err(Error::new(
                ErrorKind::Limit,
                format!(
                    "{clients} clients would hold {} of payloads, and this machine has {} of memory",
                    units::size(held),
                    units::size(memory_bytes)
                ),
            )
            .hint("ask for fewer --clients or a smaller --payload"));
        }
        if demand.loaded_bytes > memory_bytes.saturating_mul(10).max(1 << 40) {
            return Err(Error::new(
                ErrorKind::Limit,
                format!("the store of one cell would hold {}", units::size(demand.loaded_bytes)),
            )
            .hint("ask for fewer --records or a smaller --payload"));
        }
    }
    Ok(())
}

/// Checks that what the cells are going to make stands in nobody's way, and removes what earlier runs left of it.
///
/// # Errors
/// [`NotOurs`](ErrorKind::NotOurs), naming the collection that someone else made; or the server's error.
pub fn room(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    targets: &[Target],
    cells: &[CellRecord],
    houses: &mut [Option<House>],
) -> Result<()> {
    for cell in cells.iter().filter(|cell| cell.unavailable.is_none() && !cell.repeat) {
        let Some(house) = &mut houses[cell.target] else { continue };
        let demand = workload(experiment, spec, cell.target, &targets[cell.target], &cell.axes)?.demand();
        let ours = |collection: &&Arc<Collection>| Collection::name_is_ours(&collection.name);
        for collection in demand.operations.iter().filter_map(Operation::collection).filter(ours) {
            house
                .namespace
                .remove(&collection.name)
                .map_err(|error| error.context(&targets[cell.target].name))?;
        }
    }
    Ok(())
}

/// What the planners of the targets do not know of tables that are there already, which the cells are going to ask: a
/// sentence each. What Kurabe loads itself is analysed once it is loaded.
///
/// # Errors
/// As for [`check`]. A server that does not let itself be asked says nothing.
pub fn unanalysed(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    targets: &[Target],
    cells: &[CellRecord],
    houses: &mut [Option<House>],
) -> Result<Vec<String>> {
    let (mut asked, mut told) = (HashSet::new(), Vec::new());
    for cell in cells.iter().filter(|cell| cell.unavailable.is_none() && !cell.repeat) {
        let Some(house) = &mut houses[cell.target] else { continue };
        let demand = workload(experiment, spec, cell.target, &targets[cell.target], &cell.axes)?.demand();
        for operation in &demand.operations {
            let named = match operation {
                Operation::Raw { statement } => statement.tables(),
                other => other.collection().map(|collection| collection.name.as_str()).into_iter().collect(),
            };
            for table in named.into_iter().filter(|name| !name.starts_with(NAMESPACE_PREFIX)) {
                if asked.insert((cell.target, table.to_owned()))
                    && let Ok(Some(unknown)) = house.namespace.unanalysed(table)
                {
                    told.push(format!("{}: {unknown}", targets[cell.target].name));
                }
            }
        }
    }
    Ok(told)
}

fn open_files(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current.unwrap_or(u64::MAX);
    if needed <= soft {
        return Ok(());
    }
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let short = |most: u64| {
        Error::new(
            ErrorKind::Limit,
            format!(
                "{} files are needed open at once and this process may open {}",
                units::count(needed),
                units::count(most)
            ),
        )
        .hint("raise the limit (ulimit -n) or ask for fewer --clients")
    };
    if needed > hard {
        return Err(short(hard));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|_| short(soft))
}
