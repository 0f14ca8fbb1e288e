//! Preflight checks: problems that would stop a run halfway, such as connections, open files, memory and existing
//! tables.

use crate::plan::Plan;
use crate::prepare::fixture::Fixture;
use crate::prepare::target::Target;
use kurabe_core::collection::{Collection, NAMESPACE_PREFIX};
use kurabe_core::observation::{Endpoint, Observer};
use kurabe_core::operation::Operation;
use kurabe_core::planned::Need;
use kurabe_core::{Error, ErrorKind, Result, units};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Files that the program itself has open, besides its connections.
const OWN_FILES: u64 = 64;

/// Marks targets as unusable whose server's memory is to be read and cannot be. Notes which servers cannot be restarted.
pub(crate) fn refuse_unobserved(plan: &Plan, targets: &mut [Target], observer: Option<&dyn Observer>) {
    let reads_memory = plan.available().any(|(_, cell)| cell.needs.contains(&Need::ServerMemory));
    let Some(observer) = observer.filter(|_| reads_memory) else { return };
    for target in targets.iter_mut().filter(|target| target.is_described()) {
        let endpoint = target.driver.endpoint();
        if let Err(why) = observer.memory_usage(&endpoint) {
            let why = format!("the memory of the server cannot be read: {why}");
            target.skip_reason = target.skip_reason.take().or(Some(why));
        } else if target.restart.is_none() && endpoint != Endpoint::InProcess {
            target.facts.notes.push(
                "the server cannot be restarted before each trial: it reuses memory of earlier connections, \
                 so that memory per connection is a lower bound"
                    .to_owned(),
            );
        }
    }
}

/// Checks the cells against the limits of servers and machine, has no more of them interleaved than the machine has memory
/// for, and raises this process's limit of open files as needed.
///
/// # Errors
/// [`Limit`](ErrorKind::Limit) with what is short and which setting to change.
pub fn check(plan: &mut Plan, targets: &[Target], memory_bytes: u64) -> Result<()> {
    for (record, cell) in plan.available() {
        let (target, clients) = (&targets[record.target], cell.policy.clients);
        if let Some(why) = target.lacks_connections(cell) {
            return Err(Error::new(ErrorKind::Limit, format!("{}: {why}", target.name))
                .hint("increase the server's limit, or use fewer --clients"));
        }
        let longest = plan.operations.iter().filter_map(|operation| plan.stop(operation).duration).max();
        if let (Some(limit), Some(longest)) = (&target.facts.limits.idle_seconds, longest)
            && longest >= Duration::from_secs(limit.most)
        {
            let why = format!(
                "{}: the server closes connections that are idle for {} s ({}), and a trial takes about {}: those that load \
                 and check would be lost",
                target.name,
                limit.most,
                limit.set_by,
                units::time(longest)
            );
            return Err(Error::new(ErrorKind::Limit, why)
                .hint("use a shorter --duration, or have the limit increased"));
        }
        let held = cell.held_bytes();
        if memory_bytes > 0 && held > memory_bytes / 2 {
            let [held, memory] = [held, memory_bytes].map(units::size);
            let (many, need) = if clients == 1 { ("", "needs") } else { ("s", "need") };
            let why = format!(
                "{clients} client{many} {need} {held} of memory for payloads, and this machine has {memory}"
            );
            let error = Error::new(ErrorKind::Limit, why);
            return Err(error.hint("use fewer --clients or a smaller --payload"));
        }
        // A second instance has its own store.
        let loaded = plan.loaded_bytes(cell).saturating_mul(1 + u64::from(target.second.is_some()));
        if loaded > memory_bytes.saturating_mul(10).max(1 << 40) {
            let why = format!("the stores of one cell need {}", units::size(loaded));
            let error = Error::new(ErrorKind::Limit, why);
            return Err(error.hint("use fewer --records or a smaller --payload"));
        }
    }
    if memory_bytes > 0 {
        plan.limit_memory(memory_bytes / 2);
    }
    open_files(plan.connections_at_once() + OWN_FILES)
}

/// Checks that no foreign collection has a name that the cells need, and removes those of earlier runs.
///
/// # Errors
/// [`NotOurs`](ErrorKind::NotOurs) with the name of the foreign collection; or the server's error.
pub fn clear(plan: &Plan, targets: &[Target], fixtures: &mut [Option<Fixture>]) -> Result<()> {
    let mut removed = HashSet::new();
    for (record, cell) in plan.available().filter(|(record, _)| !record.aa_control) {
        let Some(fixture) = &mut fixtures[record.target] else { continue };
        let ours = |collection: &&Arc<Collection>| Collection::name_is_ours(&collection.name);
        for collection in cell.demand.operations.iter().filter_map(Operation::collection).filter(ours) {
            // Many cells use the same collections, and some servers have to be searched for each.
            if !removed.insert((record.target, &collection.name)) {
                continue;
            }
            fixture
                .namespace
                .remove(&collection.name)
                .map_err(|error| error.context(&targets[record.target].name))?;
        }
    }
    Ok(())
}

/// Missing planner statistics of existing tables that the cells are going to query, a sentence each. Kurabe analyses
/// what it loads itself. A server that does not answer is skipped.
pub fn unanalysed(plan: &Plan, targets: &[Target], fixtures: &mut [Option<Fixture>]) -> Vec<String> {
    let (mut asked, mut unknown) = (HashSet::new(), Vec::new());
    for (record, cell) in plan.available().filter(|(record, _)| !record.aa_control) {
        let Some(fixture) = &mut fixtures[record.target] else { continue };
        for operation in &cell.demand.operations {
            let named = match operation {
                Operation::Raw { statement } if statement.collection.is_none() => statement.tables(),
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
        let [needed, most] = [needed, most].map(units::count);
        let why = format!("the run needs {needed} open files, and this process may open {most}");
        Error::new(ErrorKind::Limit, why).hint("increase the limit (ulimit -n), or use fewer --clients")
    };
    if needed > hard {
        return Err(short(hard));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|_| short(soft))
}
