//! What would stop a run in its middle, found before it starts: connections, open files, memory,
//! tables in the way.

use crate::fixture::Fixture;
use crate::plan::Plan;
use crate::target::Target;
use kurabe_core::collection::{Collection, NAMESPACE_PREFIX};
use kurabe_core::operation::Operation;
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
pub fn check(plan: &Plan, targets: &[Target], memory_bytes: u64) -> Result<()> {
    for (record, cell) in plan.available() {
        let (target, demand, clients) = (&targets[record.target], &cell.demand, cell.connections());
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
        // A second start has a store of its own.
        let loaded = demand.loaded_bytes.saturating_mul(1 + u64::from(target.second.is_some()));
        if loaded > memory_bytes.saturating_mul(10).max(1 << 40) {
            return Err(Error::new(
                ErrorKind::Limit,
                format!("the stores of one cell would hold {}", units::size(loaded)),
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
pub fn clear(plan: &Plan, targets: &[Target], fixtures: &mut [Option<Fixture>]) -> Result<()> {
    for (record, cell) in plan.available().filter(|(record, _)| !record.aa_control) {
        let Some(fixture) = &mut fixtures[record.target] else { continue };
        let ours = |collection: &&Arc<Collection>| Collection::name_is_ours(&collection.name);
        for collection in cell.demand.operations.iter().filter_map(Operation::collection).filter(ours) {
            fixture
                .namespace
                .remove(&collection.name)
                .map_err(|error| error.context(&targets[record.target].name))?;
        }
    }
    Ok(())
}

/// What the planners of the targets do not know of tables that are there already, which the cells are going to ask: a
/// sentence each. What Kurabe loads itself is analysed once it is loaded. A server that cannot be asked says nothing.
pub fn unanalysed(plan: &Plan, targets: &[Target], fixtures: &mut [Option<Fixture>]) -> Vec<String> {
    let (mut asked, mut unknown) = (HashSet::new(), Vec::new());
    for (record, cell) in plan.available().filter(|(record, _)| !record.aa_control) {
        let Some(fixture) = &mut fixtures[record.target] else { continue };
        for operation in &cell.demand.operations {
            let named = match operation {
                Operation::Raw { statement } => statement.tables(),
                other => other.collection().map(|collection| collection.name.as_str()).into_iter().collect(),
            };
            for table in named.into_iter().filter(|name| !name.starts_with(NAMESPACE_PREFIX)) {
                if asked.insert((record.target, table.to_owned()))
                    && let Ok(Some(why)) = fixture.namespace.unanalysed(table)
                {
                    unknown.push(format!("{}: {why}", targets[record.target].name));
                }
            }
        }
    }
    unknown
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
