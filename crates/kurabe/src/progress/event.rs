//! Events of a run as JSON objects, for `--log-format json`. `docs/command-line.md` describes their members.

use kurabe_core::axis::AxisInfo;
use kurabe_core::observation::Sample;
use kurabe_core::run::{CellRecord, Outcome};
use kurabe_engine::Event;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The object of an event of the rounds; `None` for others.
pub(super) fn json(
    event: &Event<'_>,
    axes: &[AxisInfo],
    targets: &[String],
    cells: &[CellRecord],
) -> Option<Value> {
    let of_cell = |kind: &str, cell: &CellRecord| {
        let values = axes.iter().filter_map(|axis| Some((axis.name.to_owned(), cell.axes.get(axis.name)?)));
        let values: BTreeMap<_, _> = values.collect();
        let target = targets.get(cell.target);
        json!({ "event": kind, "target": target, "axes": values, "aa_control": cell.aa_control })
    };
    Some(match event {
        Event::Loading { cell } => of_cell("loading", cell),
        Event::Restarting => json!({ "event": "restarting" }),
        Event::TrialBegins { round, cell, operation, ended, planned, left } => {
            let mut object = of_cell("trial-begins", cell);
            object["operation"] = json!(operation);
            object["round"] = json!(round + 1);
            object["ended"] = json!(ended);
            object["planned"] = json!(planned);
            object["left_ms"] = json!(left.map(|left| left.as_millis() as u64));
            object
        }
        Event::TrialEnds { record } => {
            let mut object = of_cell("trial-ends", cells.get(record.cell)?);
            object["operation"] = json!(record.operation);
            object["round"] = json!(record.round + 1);
            object["rerun_reason"] = json!(record.rerun_reason);
            match &record.outcome {
                Outcome::Measured(measured) => {
                    object["outcome"] = json!("measured");
                    object["completed"] = json!(measured.completed);
                    object["elapsed_ns"] = json!(measured.elapsed_ns);
                    object["ops_per_second"] = json!(measured.ops_per_second());
                }
                Outcome::Failed { reason, .. } => {
                    object["outcome"] = json!("failed");
                    object["reason"] = json!(reason);
                }
            }
            object
        }
        Event::AgentLost { why } => json!({ "event": "agent-lost", "why": why }),
        Event::Replanned { plan, .. } => {
            json!({ "event": "replanned", "rounds": plan.rounds, "restarts": plan.restarts })
        }
        _ => return None,
    })
}

/// The object of a sample of what client, servers and machine use.
pub(super) fn resources(sample: &Sample) -> Value {
    json!({
        "event": "resources",
        "client_cpu": sample.client_cpu,
        "server_cpu": sample.server_cpu,
        "host_cpu": sample.host_cpu,
        "disk_busy": sample.disk_busy,
        "disk_waits": sample.disk_waits,
        "network": sample.network,
    })
}
