//! Metrics with many values in one trial: a chart with the diagonal, and the points in JSON.

use crate::common::{INFO, Scenario, measurements};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::metric::{Better, Metric, Points, Source, Unit};
use kurabe_core::run::Run;
use kurabe_report::{analyse, html, json};
use serde_json::Value;

static SCATTER: ExperimentInfo = ExperimentInfo {
    metrics: &[Metric::new("estimated rows", Unit::Count, Better::Neither, "what was estimated")
        .from(Source::Scatter("counted rows"))],
    ..INFO
};

/// Each round has other points.
fn run() -> Run {
    let mut run = Scenario::default().run();
    for (trial, measured) in measurements(&mut run) {
        let points = vec![(0.0, 1.0), (10.0, 10.0), (1_000.0, 10.0 + f64::from(trial.round))];
        measured.points = vec![Points { metric: "estimated rows".to_owned(), points }];
    }
    run
}

#[test]
fn points_are_drawn_over_their_reference_with_the_diagonal() {
    let page = html::render(&analyse(&run(), Some(&SCATTER)), &html::Options::default());
    let (_, section) = page.split_once("<h2>Estimated rows over counted rows</h2>").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let panels = section.matches("<figure>").count();
    assert!(panels > 0 && section.matches("class=\"reference diagonal\"").count() == panels);
    // Equal values are on the diagonal: their distance from the left is that from the base.
    let (_, diagonal) = section.split_once("class=\"reference diagonal\"><polyline points=\"").unwrap();
    let ends: Vec<f64> =
        diagonal.split_once('"').unwrap().0.split([',', ' ']).map(|number| number.parse().unwrap()).collect();
    // The path of a marker begins in its middle.
    let middle = |marker: &str| -> (f64, f64) {
        let (place, _) = marker.split_once('m').unwrap();
        let (x, y) = place.split_once(' ').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    let (_, points) = section.split_once("line points c0").unwrap();
    let markers: Vec<&str> = points.split("<path class=\"m\" d=\"M").skip(1).take(3).collect();
    let off = |marker: &str| (middle(marker).0 - ends[0]) - (ends[1] - middle(marker).1);
    assert!(off(markers[0]).abs() < 0.2 && off(markers[1]).abs() < 0.2, "{markers:?}");
    assert!(off(markers[2]) > 30.0, "an estimate that is too low is below the diagonal: {markers:?}");
}

#[test]
fn json_has_points_of_last_round() {
    let run = run();
    let report: Value = serde_json::from_str(&json::render(&analyse(&run, Some(&SCATTER)))).unwrap();
    let last = run.trials.iter().map(|trial| trial.round).max().unwrap();
    let points = &report["cells"][0]["points"][0]["points"];
    assert_eq!(points[2][1].as_f64(), Some(10.0 + f64::from(last)));
    // It has no single value that could be compared.
    assert!(report["metrics"].as_array().unwrap().iter().all(|metric| metric["name"] != "estimated rows"));
}

#[test]
fn report_without_points_has_no_such_chart() {
    let mut run = run();
    for (_, measured) in measurements(&mut run) {
        measured.points.clear();
    }
    let page = html::render(&analyse(&run, Some(&SCATTER)), &html::Options::default());
    assert!(!page.contains("over counted rows"));
}
