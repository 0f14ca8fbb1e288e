//! Runs of `connect`: metrics that not every trial has, and the comparison with published results.

use crate::common::others::recast;
use crate::common::{At, Scenario};
use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue};
use kurabe_core::experiment::{Answer, ExperimentInfo, OperationInfo};
use kurabe_core::metric::{CLOSE, CONNECT, Metric, MetricValue, Unit};
use kurabe_core::run::{Outcome, Run};
use kurabe_report::finding::{Finding, Section, Values};
use kurabe_report::{analyse, csv, json, markdown, terminal};

static INFO: ExperimentInfo = ExperimentInfo {
    name: "connect",
    question: "What does a new connection cost?",
    about: "Gets a connection, reads, and gives it back.",
    axes: &[
        AxisInfo::new(
            "connection",
            "where a request has its connection from",
            AxisKind::choice(&[("kept", "kept"), ("per-request", "new")]),
            &["kept"],
        ),
        AxisInfo::new("clients", "clients at once", AxisKind::count(1, 1_000), &["1"]),
    ],
    operations: &[OperationInfo { name: "read", about: "reads a row", requests: 10_000, writes: false }],
    metrics: &[Metric::cost("connection", "time beyond that on a kept connection")],
    chart_axis: "clients",
    answer: Answer::Metrics,
    published: Some("connection_cost"),
};

/// A run of one client at these rates.
fn run(rate: fn(At<'_>) -> f64) -> Run {
    let scenario = Scenario {
        targets: vec!["sqlite", "postgres"],
        payloads: vec![1_000],
        layouts: vec!["blob", "rows"],
        compress: vec!["none"],
        operations: vec!["read"],
        noise: 0.000_1,
        rate,
        ..Scenario::default()
    };
    recast(&scenario, "connect", |cell| {
        let kept = if cell.word("layout").unwrap() == "blob" { "kept" } else { "per-request" };
        vec![("connection", AxisValue::Word(kept.to_owned())), ("clients", AxisValue::Number(1))]
    })
}

fn twelve_times(at: At<'_>) -> f64 {
    match (at.layout, at.target) {
        ("blob", _) => 12_000.0,
        (_, "sqlite") => 1_000.0,
        _ => 4_800.0,
    }
}

fn as_published(at: At<'_>) -> f64 {
    if at.layout == "blob" { 10_000.0 } else { 4_000.0 }
}

#[test]
fn the_first_finding_says_what_a_new_connection_costs() {
    let summary = analyse(&run(twelve_times), Some(&INFO));
    let sentences = summary.sentences(Section::Verdict);
    assert!(sentences[0].starts_with("Connection per-request costs 917 µs per read"), "{sentences:?}");
    assert!(
        sentences[0].ends_with("per read on SQLite, compared with connection kept: 12 times the time."),
        "{sentences:?}"
    );
    let Finding::Values(Values::Cost { cost_us, factor, .. }) =
        &summary.statements(Section::Verdict).next().unwrap().finding
    else {
        panic!("{sentences:?}")
    };
    // 1 ms minus a twelfth.
    let (low, high) = (cost_us.low.unwrap(), cost_us.high.unwrap());
    assert!(low < 916.67 && 916.67 < high && high - low < 5.0, "{cost_us:?}");
    assert!(factor.low.unwrap() < 12.0 && 12.0 < factor.high.unwrap(), "{factor:?}");
}

#[test]
fn a_cost_that_was_not_called_is_no_cost() {
    fn same(_: At<'_>) -> f64 {
        5_000.0
    }
    let sentences = analyse(&run(same), Some(&INFO));
    let sentences = sentences.sentences(Section::Verdict);
    assert!(!sentences.iter().any(|sentence| sentence.contains("costs")), "{sentences:?}");
    assert!(sentences.iter().any(|sentence| sentence.contains("are equal to within")), "{sentences:?}");
}

#[test]
fn different_published_factor_is_reported_with_matching_application() {
    let summary = analyse(&run(twelve_times), Some(&INFO));
    let sentences = summary.sentences(Section::Verdict).pop().unwrap();
    assert!(
        sentences.starts_with("Published: a connection that is kept made a web page 1.9 times as fast"),
        "{sentences}"
    );
    assert!(
        sentences.contains("Here: 12 times as fast on SQLite and 2.5 times as fast on PostgreSQL."),
        "{sentences}"
    );
    // 83 µs and 1 ms: with 935 µs more each, the ratio is 1.9; with 353 µs, 3.1. On PostgreSQL, only negative work
    // would give 3.1.
    assert!(
        sentences.ends_with(
            "It would be 3.1 to 1.9 times with this much other work per request: 353 µs to 935 µs on SQLite."
        ),
        "{sentences}"
    );
}

#[test]
fn the_published_factor_is_recognised() {
    let summary = analyse(&run(as_published), Some(&INFO));
    let sentences = summary.sentences(Section::Verdict).pop().unwrap();
    assert!(sentences.ends_with("2.5 times as fast on PostgreSQL, which agrees."), "{sentences}");
}

#[test]
fn partial_metrics_have_their_own_table() {
    let mut run = run(twelve_times);
    let plain = analyse(&run, Some(&INFO));
    assert!(!terminal::render(&plain, &terminal::Options::default()).contains("connect:"));
    for (n, trial) in run.trials.iter_mut().enumerate() {
        let cell = &run.header.cells[trial.cell];
        let Outcome::Measured(figures) = &mut trial.outcome else { panic!("{trial:?}") };
        if cell.axes.word("connection").unwrap() == "per-request" {
            // The mean of the rounds is shown, including rounds without a value.
            let off = if n == 0 { 100.0 } else { 1.0 };
            figures.metrics = vec![
                CLOSE.value(2_000.0 * off),
                CONNECT.value(150_000.0 * off),
                MetricValue::new("a metric of tomorrow", Unit::Bytes, 64_000.0),
            ];
        }
    }
    let summary = analyse(&run, Some(&INFO));
    let text = terminal::render(&summary, &terminal::Options { details: true, ..Default::default() });
    let (_, table) = text.split_once("Reads, more metrics: means per request").unwrap();
    let legend = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        legend.contains("connect: time until a new connection was ready; close: time to close a connection."),
        "{table}"
    );
    let lines: Vec<&str> = table.lines().filter(|line| line.contains("per-request  ")).take(2).collect();
    for line in lines {
        let shown: Vec<&str> = line.split("  ").map(str::trim).filter(|part| !part.is_empty()).collect();
        assert_eq!(shown[2], "per-request", "{line}");
        assert_eq!(shown[5..], ["150 µs", "2 µs", "64 kB"], "{line}");
    }
    assert!(markdown::render(&summary).contains("## Reads, more metrics"));
    assert!(json::render(&summary).contains("a metric of tomorrow"));
    let heads = [&summary, &plain].map(|summary| csv::render(summary).lines().next().unwrap().to_owned());
    let of = |name: &str, unit: &str| format!("{name} ({unit}),{name} low ({unit}),{name} high ({unit})");
    let further = [of("connect", "ns"), of("close", "ns"), of("a metric of tomorrow", "bytes")].join(",");
    let costs = [of("cost", "ns"), of("service p99", "ns")].join(",");
    assert!(heads[1].ends_with(&costs), "{}", heads[1]);
    assert_eq!(heads[0], format!("{},{further}", heads[1]));
}
