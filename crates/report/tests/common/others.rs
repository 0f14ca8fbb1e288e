//! Synthetic runs of the experiments whose figures have names: a web application with a tier before its database, what
//! connections cost, a cache in front of the store.

#![allow(dead_code, clippy::panic, reason = "each test file uses a part of it; what cannot go on stops")]

use super::{At, Pattern, Scenario, observed};
use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Answer, ExperimentInfo, OperationInfo};
use kurabe_core::figure::{self, Figure, Unit};
use kurabe_core::observation::{ServerUse, TierUse};
use kurabe_core::run::{Measurement, Outcome, Run};
use std::collections::BTreeMap;

const CLIENTS: AxisInfo = AxisInfo {
    name: "clients",
    help: "clients at once",
    kind: AxisKind::Count { least: 1, most: 1_000 },
    default: &["1"],
};

pub static FOOTPRINT: ExperimentInfo = ExperimentInfo {
    name: "footprint",
    question: "What do connections cost?",
    about: "Opens connections.",
    axes: &[
        AxisInfo { name: "connections", help: "how many", ..CLIENTS },
        AxisInfo {
            name: "state",
            help: "what they do",
            kind: AxisKind::Choice(&[("idle", "nothing"), ("active", "work")]),
            default: &["idle"],
        },
    ],
    operations: &[OperationInfo { name: "read", about: "reads a row", requests: 100, writes: false }],
    chart_axis: "connections",
    answer: Answer::Slope,
    published: None,
};

pub static WEBAPP: ExperimentInfo = ExperimentInfo {
    name: "webapp",
    question: "How many requests a second does a small web application serve?",
    about: "Logs users in.",
    axes: &[
        CLIENTS,
        AxisInfo {
            name: "connection",
            help: "how long a connection lives",
            kind: AxisKind::Choice(&[("kept", "kept"), ("per-request", "new")]),
            default: &["kept"],
        },
    ],
    operations: &[OperationInfo { name: "request", about: "logs in", requests: 100, writes: true }],
    chart_axis: "clients",
    answer: Answer::Throughput,
    published: Some("webapp"),
};

pub static CACHE_ASIDE: ExperimentInfo = ExperimentInfo {
    name: "cache-aside",
    question: "Does a cache in front of the store pay?",
    about: "Reads records through a cache.",
    axes: &[
        AxisInfo {
            name: "room",
            help: "records that the cache has room for, in per cent of all",
            kind: AxisKind::CountOr { least: 1, most: 1_000, words: &[("none", "no cache")] },
            default: &["none"],
        },
        AxisInfo {
            name: "after-write",
            help: "what a write does to the copy",
            kind: AxisKind::Choice(&[("invalidate", "removes it"), ("replace", "puts the new one there")]),
            default: &["invalidate"],
        },
        CLIENTS,
    ],
    operations: &[OperationInfo {
        name: "request",
        about: "reads, or changes, a record",
        requests: 100,
        writes: true,
    }],
    chart_axis: "clients",
    answer: Answer::Cost("room"),
    published: None,
};

/// The run of a scenario as one of another experiment, whose cells `cell` makes of its own.
fn recast(scenario: &Scenario, name: &str, cell: impl Fn(&Cell) -> Vec<(&'static str, AxisValue)>) -> Run {
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

/// Each trial with the target and the axes of its cell.
fn each_trial(run: &mut Run, mut change: impl FnMut(usize, &Cell, u32, &mut Measurement)) {
    for trial in &mut run.trials {
        let record = &run.header.cells[trial.cell];
        let Outcome::Measured(measured) = &mut trial.outcome else { panic!("{trial:?}") };
        change(record.target, &record.axes, trial.round, measured);
    }
}

/// A run on a server that forks for each connection, where idle connections take 1 MB and those at work 2 MB, and 5 MB came
/// once; each round a little more.
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
    each_trial(&mut run, |_, axes, round, measured| {
        let count = axes.number("connections").unwrap() as f64;
        let each = if axes.word("state").unwrap() == "idle" { 1e6 } else { 2e6 };
        let added = (5e6 + each * count) * (1.0 + f64::from(round) / 1e3);
        measured.figures = vec![
            Figure::new(figure::MEMORY, Unit::Bytes, 4e7 + added),
            Figure::new(figure::MEMORY_ADDED, Unit::Bytes, added),
            Figure::new(figure::PROCESSES_ADDED, Unit::Count, count),
            Figure::new(figure::THREADS_ADDED, Unit::Count, count),
        ];
    });
    run
}

/// The web application on a database, and through an application before it that is full.
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
    each_trial(&mut run, |target, axes, _, measured| {
        measured.clients = u32::try_from(axes.number("clients").unwrap()).unwrap().into();
        let mean_ns = measured.elapsed_ns as f64 / measured.completed as f64;
        if target == 0 {
            let part = |name, share: f64| Figure::new(name, Unit::Nanoseconds, mean_ns * share);
            measured.figures = vec![
                part(figure::LOG_IN, 0.4),
                part(figure::LOG, 0.45),
                part(figure::UPDATE, 0.02),
                part(figure::SEARCH, 0.05),
            ];
            return;
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
        measured.figures = figure::of_tiers(&seen, measured.completed);
        measured.observed = Some(Box::new(seen));
    });
    run
}

/// A store alone, and behind caches with room for a tenth of its records, half and all.
pub fn cache_aside() -> Run {
    fn rate(at: At<'_>) -> f64 {
        match at.payload {
            1 => 6_000.0,
            room => 8_000.0 + 200.0 * room as f64,
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
        let room = match cell.number("payload").unwrap() {
            1 => word("none"),
            room => AxisValue::Number(room),
        };
        let after = if cell.word("layout").unwrap() == "blob" { "invalidate" } else { "replace" };
        vec![("room", room), ("after-write", word(after)), ("clients", AxisValue::Number(4))]
    });
    each_trial(&mut run, |_, axes, round, measured| {
        measured.clients = 4;
        let change = Figure::new(figure::CHANGE, Unit::Nanoseconds, 210_000.0);
        measured.figures = match axes.get("room") {
            Some(AxisValue::Number(room)) => {
                let hits = 0.6 + *room as f64 * 0.003_8;
                vec![
                    Figure::new(figure::HIT_RATIO, Unit::Share, hits),
                    Figure::new(figure::HITS_TOLD, Unit::Share, hits),
                    Figure::new(figure::HIT, Unit::Nanoseconds, 41_000.0 + f64::from(round)),
                    Figure::new(figure::MISS, Unit::Nanoseconds, 230_000.0),
                    change,
                    Figure::new(figure::AFTER_CHANGE, Unit::Nanoseconds, 39_000.0),
                    Figure::new(figure::STALE, Unit::Count, f64::from(20 + round)),
                    Figure::new(figure::STALE_SHARE, Unit::Share, 0.001),
                    Figure::new(figure::EVICTIONS, Unit::Count, 1_000.0 - 10.0 * *room as f64),
                    Figure::new(figure::CACHED, Unit::Count, 10.0 * *room as f64),
                ]
            }
            _ => vec![change, Figure::new(figure::STALE, Unit::Count, 0.0)],
        };
    });
    run
}
