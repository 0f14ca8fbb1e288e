//! Warnings about targets and storage, printed before a run.

use kurabe_core::durability::DurabilityClass;
use kurabe_core::observation::Endpoint;
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::fixture::Ownership;
use kurabe_engine::prepare::target::Target;

/// Servers that are not pinned to the servers' processors although trials are interleaved.
pub(super) fn scattered(cpu_partition: &CpuPartition, targets: &[Target]) -> Vec<String> {
    let ours = |target: &Target| target.restart.is_some() || target.driver.endpoint() == Endpoint::InProcess;
    let cpus: Vec<String> = cpu_partition.servers.iter().map(u32::to_string).collect();
    let cpus = cpus.join(",");
    let others = targets.iter().filter(|target| !ours(target) && target.driver.endpoint().is_here());
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
pub(super) fn warnings(plan: &Plan, targets: &[Target]) -> Vec<String> {
    let mut all = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        // With a cache, a store that does not fit is what is measured.
        let largest = if plan.experiment.takes_cache { 0 } else { largest(plan, index) };
        let warnings = kurabe_drivers::caution::cautions(&target.facts, largest);
        all.extend(warnings.into_iter().map(|warning| format!("{}: {warning}", target.name)));
    }
    // Throwaway servers and files keep their data in the folder of temporary files.
    let writes = plan.operations.iter().any(|operation| operation.writes);
    let synced = |target: &Target| target.facts.durability >= Some(DurabilityClass::Synced);
    let here = |target: &Target| target.driver.endpoint().is_here();
    if writes && targets.iter().any(|target| synced(target) && here(target)) {
        all.extend(kurabe_observe::dishonest_sync(&std::env::temp_dir()));
    }
    all
}
