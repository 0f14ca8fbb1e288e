//! Events of a run as JSON objects, for `--log-format json`. `docs/command-line.md` describes their members.

use kurabe_core::axis::AxisInfo;
use kurabe_core::observation::Sample;
use kurabe_core::run::{CellRecord, Outcome, TrialRecord};
use kurabe_engine::run::event::Event;
use serde_json::{Map, Value, json};

/// The object of an event; `None` for an event that asks the listener something.
pub(super) fn json(
    event: &Event<'_>,
    axes: &[AxisInfo],
    targets: &[String],
    cells: &[CellRecord],
) -> Option<Value> {
    let of_cell = |kind: &str, cell: &CellRecord, operation: Option<&str>| {
        let values = axes.iter().filter_map(|axis| Some((axis.name.to_owned(), cell.axes.get(axis.name)?)));
        let values: Map<String, Value> = values.map(|(name, value)| (name, json!(value))).collect();
        let mut object = Map::new();
        object.insert("event".to_owned(), json!(kind));
        object.insert("target".to_owned(), json!(targets.get(cell.target)));
        object.insert("axes".to_owned(), Value::Object(values));
        object.insert("aa_control".to_owned(), json!(cell.aa_control));
        if let Some(operation) = operation {
            object.insert("operation".to_owned(), json!(operation));
        }
        object
    };
    Some(match event {
        Event::Loading { cell } => Value::Object(of_cell("loading", cell, None)),
        Event::Restarting => json!({ "event": "restarting" }),
        Event::TrialBegins { round, cell, operation, ended, planned, left } => {
            let mut object = of_cell("trial-begins", cell, Some(operation));
            object.insert("round".to_owned(), json!(round + 1));
            object.insert("ended".to_owned(), json!(ended));
            object.insert("planned".to_owned(), json!(planned));
            object.insert("left_ms".to_owned(), json!(left.map(|left| left.as_millis() as u64)));
            Value::Object(object)
        }
        Event::TrialEnds { record } => {
            let cell = cells.get(record.cell)?;
            let mut object = of_cell("trial-ends", cell, Some(&record.operation));
            object.extend(outcome(record));
            Value::Object(object)
        }
        Event::AgentLost { why } => json!({ "event": "agent-lost", "why": why }),
        Event::Replanned { plan, .. } => {
            json!({ "event": "replanned", "rounds": plan.rounds, "restarts": plan.restarts })
        }
        Event::RoundsEnd { .. } => return None,
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

fn outcome(record: &TrialRecord) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| {
        object.insert(name.to_owned(), value);
    };
    put("round", json!(record.round + 1));
    put("rerun_reason", json!(record.rerun_reason));
    match &record.outcome {
        Outcome::Measured(measured) => {
            put("outcome", json!("measured"));
            put("completed", json!(measured.completed));
            put("elapsed_ns", json!(measured.elapsed_ns));
            put("ops_per_second", json!(measured.ops_per_second()));
        }
        Outcome::Failed { reason, .. } => {
            put("outcome", json!("failed"));
            put("reason", json!(reason));
        }
    }
    object
}
