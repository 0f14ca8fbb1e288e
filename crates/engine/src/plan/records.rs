//! How many records the trials of a cell change, if the number of requests is known. Each trial changes a record at
//! most once, so that every change can be read back.

use crate::clients::{limits, schedule};
use crate::plan::Plan;
use crate::plan::cell::RunCell;
use kurabe_core::load::Load;
use kurabe_core::units;

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
                stop.requests.map(|requests| limits::requests(requests, clients, policy.pipeline))
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
