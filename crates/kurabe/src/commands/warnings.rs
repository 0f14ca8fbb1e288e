//! Warnings about targets and storage, printed before a run.

use kurabe_core::durability::DurabilityClass;
use kurabe_core::observation::{Endpoint, Observer as _};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::fixture::Ownership;
use kurabe_engine::prepare::target::Target;
use kurabe_observe::Monitor;
use kurabe_targets::Opened;

/// Servers that are not pinned to the servers' processors although trials are interleaved.
pub(super) fn scattered(opened: &Opened) -> Vec<String> {
    let Some(cpu_partition) = &opened.cpu_partition else { return Vec::new() };
    let ours = |target: &Target| target.restart.is_some() || target.driver.endpoint() == Endpoint::InProcess;
    let cpus: Vec<String> = cpu_partition.servers.iter().map(u32::to_string).collect();
    let cpus = cpus.join(",");
    let others = opened.targets.iter().filter(|target| !ours(target) && target.driver.endpoint().is_here());
    others
        .map(|target| {
            format!(
                "{}: its server is not pinned to processors; interleaved trials vary less if it is pinned \
                 to {cpus}, as with 'taskset -a -cp {cpus} PID'",
                target.name
            )
        })
        .collect()
}

/// Targets on which the run holds no lease, since it only reads tables that are there.
pub(super) fn unleased(plan: &Plan, targets: &[Target]) -> Vec<String> {
    let reads = |at: &usize| targets[*at].skip_reason.is_none() && plan.need(*at) == Ownership::Nothing;
    (0..targets.len())
        .filter(reads)
        .map(|at| {
            format!(
                "{}: only tables that are there are read: Kurabe creates nothing and holds no lease, so that another run may \
                 use the server at the same time",
                targets[at].name
            )
        })
        .collect()
}

/// The largest data of a cell of a target.
fn largest(plan: &Plan, target: usize) -> u64 {
    let cells = plan.available().filter(|(record, _)| record.target == target);
    cells.map(|(_, cell)| plan.loaded_bytes(cell)).max().unwrap_or(0)
}

/// For an experiment with a cache: how much of the store each server caches itself.
pub(super) fn own_caches(plan: &Plan, targets: &[Target]) -> Vec<String> {
    // What a capture reads is not known.
    let is_known = plan.experiment.takes_cache && plan.spec.custom.is_none();
    let targets = targets.iter().enumerate().filter(|_| is_known);
    let line = |(at, target): (usize, &Target)| {
        let cached = kurabe_drivers::caution::own_cache(&target.facts, largest(plan, at))?;
        Some(format!("{}: {cached}", target.name))
    };
    targets.filter_map(line).collect()
}

/// Warnings about the targets' builds, settings and storage that could distort results.
pub(super) fn warnings(plan: &Plan, opened: &Opened) -> Vec<String> {
    let mut all = Vec::new();
    for (index, target) in opened.targets.iter().enumerate() {
        // With a cache, a store that does not fit is what is measured.
        let largest = if plan.experiment.takes_cache { 0 } else { largest(plan, index) };
        let warnings = kurabe_drivers::caution::cautions(&target.facts, largest);
        all.extend(warnings.into_iter().map(|warning| format!("{}: {warning}", target.name)));
    }
    // Throwaway servers and files keep their data in the folder of temporary files.
    let writes = plan.operations.iter().any(|operation| operation.writes);
    let synced = |target: &Target| target.facts.durability >= Some(DurabilityClass::Synced);
    let here = |target: &Target| target.driver.endpoint().is_here();
    if writes && opened.targets.iter().any(|target| synced(target) && here(target)) {
        all.extend(kurabe_observe::dishonest_sync(&std::env::temp_dir()));
    }
    all
}

/// Marks targets as unusable whose server's memory is to be read and cannot be. Warns about servers that cannot be
/// restarted.
pub(super) fn refuse_unseen(plan: &Plan, opened: &mut Opened) {
    if !plan.available().any(|(_, cell)| cell.needs.contains(&kurabe_core::planned::Need::ServerMemory)) {
        return;
    }
    let observer = Monitor::new();
    let described = |(target, _): &(&mut Target, _)| target.is_described();
    for (target, record) in opened.targets.iter_mut().zip(&mut opened.records).filter(described) {
        let endpoint = target.driver.endpoint();
        if let Err(why) = observer.memory_usage(&endpoint) {
            let why = format!("the memory of the server cannot be read: {why}");
            target.skip_reason = target.skip_reason.take().or(Some(why));
        } else if target.restart.is_none() && endpoint != Endpoint::InProcess {
            record.facts.notes.push(
                "the server cannot be restarted before each trial: it reuses memory of earlier connections, \
                 so that memory per connection is a lower bound"
                    .to_owned(),
            );
        }
    }
}
