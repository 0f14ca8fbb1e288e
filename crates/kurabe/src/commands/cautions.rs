//! What of the targets and their place a user must know before a run, or before its figures are read.

use crate::targets::Opened;
use anyhow::Result;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::Experiment;
use kurabe_core::observation::{Endpoint, Observer as _};
use kurabe_core::run::{CellRecord, RunSpec};
use kurabe_engine::plan::{self, Target};
use kurabe_observe::Watcher;

/// Which servers do not keep to the side that they should, where trials are interleaved.
pub(super) fn scattered(opened: &Opened) -> Vec<String> {
    let Some(sides) = &opened.sides else { return Vec::new() };
    let ours = |target: &Target| target.renew.is_some() || target.driver.endpoint() == Endpoint::InProcess;
    let cpus: Vec<String> = sides.servers.iter().map(u32::to_string).collect();
    let cpus = cpus.join(",");
    let others = opened.targets.iter().filter(|target| !ours(target) && target.driver.endpoint().is_here());
    others
        .map(|target| {
            format!(
                "{}: its server runs where the scheduler puts it; interleaved trials differ less where it keeps to processor {cpus}, as with \
                 'taskset -a -cp {cpus} PID'",
                target.name
            )
        })
        .collect()
}

/// What of the targets would make figures those of something else: their builds and settings, and where local ones write.
pub(super) fn cautions(
    experiment: &dyn Experiment,
    spec: &RunSpec,
    opened: &Opened,
    cells: &[CellRecord],
) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for (index, target) in opened.targets.iter().enumerate() {
        let mut largest = 0;
        for cell in cells.iter().filter(|cell| cell.target == index && cell.unavailable.is_none()) {
            let demand = plan::workload(experiment, spec, index, target, &cell.axes)?.demand();
            largest = largest.max(demand.loaded_bytes);
        }
        let told = kurabe_drivers::caution::cautions(&target.facts, largest);
        all.extend(told.into_iter().map(|caution| format!("{}: {caution}", target.name)));
    }
    // Throwaway servers and files keep their data where temporary files go.
    let writes = plan::operations(experiment, spec)?.iter().any(|operation| operation.writes);
    let synced = |target: &Target| target.facts.durability >= Some(DurabilityClass::Synced);
    let here = |target: &Target| target.driver.endpoint().is_here();
    if writes && opened.targets.iter().any(|target| synced(target) && here(target)) {
        all.extend(kurabe_observe::dishonest_sync(&std::env::temp_dir()));
    }
    Ok(all)
}

/// Refuses, where a run asks what connections cost the server, each target whose server cannot be seen from here; and
/// says of one that is not ours what its figures are.
pub(super) fn refuse_unseen(experiment: &dyn Experiment, spec: &RunSpec, opened: &mut Opened) -> Result<()> {
    if !plan::asks_footprint(experiment, spec)? {
        return Ok(());
    }
    let observer = Watcher::new();
    for (target, record) in opened.targets.iter_mut().zip(&mut opened.records) {
        let endpoint = target.driver.endpoint();
        if let Err(why) = observer.holding(&endpoint) {
            let why = format!("what the server holds is not to be seen: {why}");
            target.refused = target.refused.take().or(Some(why));
        } else if target.renew.is_none() && endpoint != Endpoint::InProcess {
            record.facts.notes.push(
                "the server is not ours to start anew for each trial: what it kept from earlier connections is used \
                 again, so that memory for each connection is a lower bound"
                    .to_owned(),
            );
        }
    }
    Ok(())
}
