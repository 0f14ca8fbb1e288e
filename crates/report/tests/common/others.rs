//! Synthetic runs of experiments with their own metrics: a web application with a tier before its database, the cost
//! of connections, a cache in front of the store.

#![allow(dead_code, clippy::panic, reason = "each test file uses a part of it; what cannot go on stops")]

use super::{At, Pattern, Scenario, measurements, observed};
use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Answer, ExperimentInfo, OperationInfo};
use kurabe_core::metric::{
    self, Better, MEMORY, MEMORY_ADDED, Metric, MetricValue, PROCESSES_ADDED, Source, THREADS_ADDED,
    THROUGHPUT, Unit,
};
use kurabe_core::observation::{ServerUse, TierUse};
use kurabe_core::run::{Measurement, Outcome, Run};
use std::collections::BTreeMap;

const CLIENTS: AxisInfo = AxisInfo::new("clients", "clients at once", AxisKind::count(1, 1_000), &["1"]);

pub static FOOTPRINT: ExperimentInfo = ExperimentInfo {
    name: "footprint",
    question: "What do connections cost?",
    about: "Opens connections.",
    axes: &[
        AxisInfo { name: "connections", help: "how many", ..CLIENTS },
        AxisInfo::new(
            "state",
            "what they do",
            AxisKind::choice(&[("idle", "nothing"), ("active", "work")]),
            &["idle"],
        ),
    ],
    operations: &[OperationInfo { name: "read", about: "reads a row", requests: 100, writes: false }],
    metrics: &[
        Metric::new("memory per connection", Unit::Bytes, Better::Lower, "what each adds")
            .primary()
            .from(Source::Slope(MEMORY_ADDED.name)),
        Metric::new("processes per connection", Unit::Count, Better::Neither, "what each adds")
            .primary()
            .from(Source::Slope(PROCESSES_ADDED.name)),
        MEMORY,
        MEMORY_ADDED,
        PROCESSES_ADDED,
        THREADS_ADDED,
        THROUGHPUT.secondary(),
    ],
    chart_axis: "connections",
    answer: Answer::Metrics,
    published: None,
};

pub static WEBAPP: ExperimentInfo = ExperimentInfo {
    name: "webapp",
    question: "How many requests a second does a small web application serve?",
    about: "Logs users in.",
    axes: &[
        CLIENTS,
        AxisInfo::new(
            "connection",
            "how long a connection lives",
            AxisKind::choice(&[("kept", "kept"), ("per-request", "new")]),
            &["kept"],
        ),
    ],
    operations: &[OperationInfo { name: "request", about: "logs in", requests: 100, writes: true }],
    metrics: &[
        Metric::new("log in", Unit::Nanoseconds, Better::Lower, "to find the user"),
        Metric::new("search", Unit::Nanoseconds, Better::Lower, "to search"),
    ],
    published: Some("webapp"),
    ..ExperimentInfo::BASE
};

pub static CACHE_ASIDE: ExperimentInfo = ExperimentInfo {
    name: "cache-aside",
    question: "Does a cache in front of the store pay?",
    about: "Reads records through a cache.",
    axes: &[
        AxisInfo::new(
            "cache-size",
            "records that the cache can hold, in per cent of all",
            AxisKind::percent(1, 1_000).or(&[("none", "no cache")]),
            &["none"],
        ),
        AxisInfo::new(
            "after-write",
            "what a write does to the copy",
            AxisKind::choice(&[("invalidate", "removes it"), ("replace", "puts the new one there")]),
            &["invalidate"],
        ),
        CLIENTS,
    ],
    operations: &[OperationInfo {
        name: "request",
        about: "reads, or changes, a record",
        requests: 100,
        writes: true,
    }],
    metrics: &[
        Metric::cost("cache-size", "time beyond that without a cache"),
        Metric::new("hit ratio", Unit::Share, Better::Higher, "the share of reads that the cache answered")
            .primary(),
        Metric::new("stale share", Unit::Share, Better::Lower, "stale reads as a share of all").primary(),
        Metric::new("evictions", Unit::Count, Better::Neither, "values that were thrown out"),
    ],
    answer: Answer::Metrics,
    ..ExperimentInfo::BASE
};

/// The run of a scenario as one of another experiment, with new cells from `cell`.
pub fn recast(
    scenario: &Scenario,
    name: &str,
    cell: impl Fn(&Cell) -> Vec<(&'static str, AxisValue)>,
) -> Run {
    let mut run = scenario.run();
    name.clone_into(&mut run.header.spec.experiment);
    let mut axes: BTreeMap<String, Vec<AxisValue>> = BTreeMap::new();
    for record in &mut run.header.cells {
        record.stored_bytes = Some(100);
        let values = cell(&record.axes);
        for (axis, value) in &values {
            let known = axes.entry((*axis).to_owned()).or_default();
            if !known.contains(value) {
                known.push(value.clone());
            }
        }
        record.axes = Cell::new(values.into_iter().map(|(axis, value)| (axis.to_owned(), value)));
    }
    run.header.spec.axes = axes;
    run.header.spec.requests.clear();
    run.header.overhead.clear();
    run.header.command = ["kurabe", "run", name].map(str::to_owned).to_vec();
    run
}

fn word(text: &str) -> AxisValue {
    AxisValue::Word(text.to_owned())
}

/// A run on a server with a process per connection: idle connections take 1 MB, active ones 2 MB, and there is a
/// fixed cost of 5 MB; slightly more in each round.
pub fn footprint() -> Run {
    let scenario = Scenario {
        targets: vec!["postgres"],
        payloads: vec![1, 10, 100],
        layouts: vec!["blob", "rows"],
        compress: vec!["none"],
        operations: vec!["read"],
        ..Scenario::default()
    };
    let mut run = recast(&scenario, "footprint", |cell| {
        let idle = cell.word("layout").unwrap() == "blob";
        let connections = AxisValue::Number(cell.number("payload").unwrap());
        vec![("connections", connections), ("state", word(if idle { "idle" } else { "active" }))]
    });
    for (trial, measured) in measurements(&mut run) {
        let (axes, round) = (&trial.record.axes, trial.round);
        let count = axes.number("connections").unwrap() as f64;
        let each = if axes.word("state").unwrap() == "idle" { 1e6 } else { 2e6 };
        let added = (5e6 + each * count) * (1.0 + f64::from(round) / 1e3);
        measured.metrics = vec![
            MEMORY.value(4e7 + added),
            MEMORY_ADDED.value(added),
            PROCESSES_ADDED.value(count),
            THREADS_ADDED.value(count),
        ];
    }
    run
}

/// The web application on a database, and through a saturated application in front of it.
pub fn webapp() -> Run {
    fn rate(at: At<'_>) -> f64 {
        let alone = if at.layout == "blob" { 900.0 } else { 400.0 };
        let clients = (at.payload as f64).min(5.0);
        if at.target == "postgres" { alone * clients } else { 0.6 * alone * clients }
    }
    let scenario = Scenario {
        targets: vec!["postgres", "http"],
        payloads: vec![1, 10, 50],
        layouts: vec!["blob", "rows"],
        compress: vec!["none"],
        operations: vec!["request"],
        rounds: 5,
        rate,
        ..Scenario::default()
    };
    let mut run = recast(&scenario, "webapp", |cell| {
        let kept = cell.word("layout").unwrap() == "blob";
        let clients = AxisValue::Number(cell.number("payload").unwrap());
        vec![("clients", clients), ("connection", word(if kept { "kept" } else { "per-request" }))]
    });
    let facts = &mut run.header.targets[1].facts;
    (facts.engine, facts.version) = ("PostgreSQL over HTTP".into(), "17.6".into());
    (facts.durability, facts.durability_settings) = (Some(DurabilityClass::Synced), Vec::new());
    facts.transport = "TCP".into();
    for (trial, measured) in measurements(&mut run) {
        let axes = &trial.record.axes;
        measured.clients = u32::try_from(axes.number("clients").unwrap()).unwrap().into();
        let mean_ns = measured.elapsed_ns as f64 / measured.completed as f64;
        if trial.record.target == 0 {
            let part = |name, share: f64| MetricValue::new(name, Unit::Nanoseconds, mean_ns * share);
            measured.metrics = vec![
                part("log in", 0.4),
                part("write log", 0.45),
                part("update", 0.02),
                part("search", 0.05),
            ];
            continue;
        }
        let mut seen = observed(Pattern::ServerThreadFull, measured);
        let used = seen.server_seen().unwrap().clone();
        let tier = |name: &str, share: f64| {
            let cpu_ns = (used.cpu_ns as f64 * share) as u64;
            let mut used = used.clone();
            used.cpu_ns = cpu_ns;
            TierUse { name: name.to_owned(), used: ServerUse::Seen(Box::new(used)) }
        };
        seen.tiers = vec![tier(TierUse::APPLICATION, 0.75), tier(TierUse::DATABASE, 0.25)];
        measured.metrics = metric::of_tiers(&seen, measured.completed);
        measured.observed = Some(Box::new(seen));
    }
    run
}

/// A store alone, and behind caches for a tenth of its records, half of them, and all.
pub fn cache_aside() -> Run {
    fn rate(at: At<'_>) -> f64 {
        match at.payload {
            1 => 6_000.0,
            size => 8_000.0 + 200.0 * size as f64,
        }
    }
    let scenario = Scenario {
        targets: vec!["postgres"],
        payloads: vec![1, 10, 50, 100],
        layouts: vec!["blob", "rows"],
        compress: vec!["none"],
        operations: vec!["request"],
        rate,
        ..Scenario::default()
    };
    let mut run = recast(&scenario, "cache-aside", |cell| {
        let size = match cell.number("payload").unwrap() {
            1 => word("none"),
            size => AxisValue::Number(size),
        };
        let after = if cell.word("layout").unwrap() == "blob" { "invalidate" } else { "replace" };
        vec![("cache-size", size), ("after-write", word(after)), ("clients", AxisValue::Number(4))]
    });
    for (trial, measured) in measurements(&mut run) {
        let (axes, round) = (&trial.record.axes, trial.round);
        measured.clients = 4;
        let change = MetricValue::new("change", Unit::Nanoseconds, 210_000.0);
        measured.metrics = match axes.get("cache-size") {
            Some(AxisValue::Number(size)) => {
                let hits = 0.6 + *size as f64 * 0.003_8;
                vec![
                    MetricValue::new("hit ratio", Unit::Share, hits),
                    MetricValue::new("server-reported", Unit::Share, hits),
                    MetricValue::new("hit", Unit::Nanoseconds, 41_000.0 + f64::from(round)),
                    MetricValue::new("miss", Unit::Nanoseconds, 230_000.0),
                    change,
                    MetricValue::new("then cache", Unit::Nanoseconds, 39_000.0),
                    MetricValue::new("stale", Unit::Count, f64::from(20 + round)),
                    MetricValue::new("stale share", Unit::Share, 0.001),
                    MetricValue::new("evictions", Unit::Count, 1_000.0 - 10.0 * *size as f64),
                    MetricValue::new("cached", Unit::Count, 10.0 * *size as f64),
                ]
            }
            _ => vec![change, MetricValue::new("stale", Unit::Count, 0.0)],
        };
    }
    run
}
