//! Runs of `footprint`: what each connection costs, in a sentence and in a chart of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops")]

mod common;

use common::Scenario;
use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use kurabe_core::experiment::{ExperimentInfo, OperationInfo};
use kurabe_core::figure::{Figure, MEMORY, MEMORY_ADDED, PROCESSES_ADDED, THREADS_ADDED, Unit};
use kurabe_core::run::{Outcome, Run};
use kurabe_report::{analyse, html, markdown};

static INFO: ExperimentInfo = ExperimentInfo {
    name: "footprint",
    question: "What do connections cost?",
    about: "Opens connections.",
    axes: &[
        AxisInfo {
            name: "connections",
            help: "how many",
            kind: AxisKind::Count { least: 1, most: 1_000 },
            default: &["1"],
        },
        AxisInfo {
            name: "state",
            help: "what they do",
            kind: AxisKind::Choice(&[("idle", "nothing"), ("active", "work")]),
            default: &["idle"],
        },
    ],
    operations: &[OperationInfo { name: "read", about: "reads a row", requests: 100, writes: false }],
    chart_axis: "connections",
    published: None,
};

/// A run on a server that forks for each connection, where idle connections take 1 MB and those at work 2 MB, and 5 MB came
/// once; each round a little more.
fn run() -> Run {
    let scenario = Scenario {
        targets: vec!["postgres"],
        payloads: vec![1, 10, 100],
        layouts: vec!["blob", "rows"],
        compress: vec!["none"],
        operations: vec!["read"],
        ..Scenario::default()
    };
    let mut run = scenario.run();
    "footprint".clone_into(&mut run.header.spec.experiment);
    let state = |layout: &str| AxisValue::Word(if layout == "blob" { "idle" } else { "active" }.to_owned());
    run.header.spec.axes = [
        ("connections".to_owned(), [1, 10, 100].map(AxisValue::Number).to_vec()),
        ("state".to_owned(), vec![state("blob"), state("rows")]),
    ]
    .into();
    for cell in &mut run.header.cells {
        let connections = AxisValue::Number(cell.axes.number("payload").unwrap());
        let state = state(cell.axes.word("layout").unwrap());
        cell.axes = Cell::new([("connections".to_owned(), connections), ("state".to_owned(), state)]);
    }
    run.header.overhead.clear();
    for trial in &mut run.trials {
        let axes = &run.header.cells[trial.cell].axes;
        let count = axes.number("connections").unwrap() as f64;
        let each = if axes.word("state").unwrap() == "idle" { 1e6 } else { 2e6 };
        let added = (5e6 + each * count) * (1.0 + f64::from(trial.round) / 1e3);
        let Outcome::Measured(measured) = &mut trial.outcome else { panic!("{trial:?}") };
        measured.figures = vec![
            Figure::new(MEMORY, Unit::Bytes, 4e7 + added),
            Figure::new(MEMORY_ADDED, Unit::Bytes, added),
            Figure::new(PROCESSES_ADDED, Unit::Count, count),
            Figure::new(THREADS_ADDED, Unit::Count, count),
        ];
    }
    run
}

#[test]
fn a_connection_costs_the_slope_and_not_what_came_once() {
    let summary = analyse(&run(), Some(&INFO)).summary;
    let told = &summary[..2];
    assert!(
        told[0].starts_with("PostgreSQL: each idle connection costs the server 1 MB of memory ("),
        "{told:?}"
    );
    assert!(told[1].starts_with("PostgreSQL: each active connection costs the server 2"), "{told:?}");
    for sentence in told {
        assert!(sentence.ends_with(", 1 process and 1 thread."), "{told:?}");
    }
}

#[test]
fn memory_has_a_table_and_a_chart_and_other_runs_have_neither() {
    let summary = analyse(&run(), Some(&INFO));
    let text = markdown::render(&summary);
    assert!(text.contains("## Reads, more closely\n") && text.contains("| memory | added |"), "{text}");
    assert!(html::render(&summary, &html::Options::default()).contains("<h2>Memory by connections</h2>"));
    let mut plain = run();
    for trial in &mut plain.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else { panic!("{trial:?}") };
        measured.figures.clear();
    }
    let summary = analyse(&plain, Some(&INFO));
    assert!(!summary.summary.iter().any(|sentence| sentence.contains("costs")), "{:?}", summary.summary);
    assert!(!html::render(&summary, &html::Options::default()).contains("Memory by"));
}
