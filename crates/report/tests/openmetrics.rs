//! Runs as gauges for Prometheus.

use crate::common::{Scenario, measurements};
use kurabe_core::run::Run;
use kurabe_report::{View, openmetrics};
use std::collections::BTreeSet;

/// The samples of a text: the name, the labels and the value of each. The text is checked as the specification has it: each
/// family is one block with its type first, no sample comes twice, and the last line ends it.
fn samples(text: &str) -> Vec<(String, String, f64)> {
    let mut families: BTreeSet<&str> = BTreeSet::new();
    let mut family = "";
    let mut samples = Vec::new();
    let lines = text.strip_suffix("# EOF\n").unwrap().lines();
    for line in lines {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.strip_suffix(" gauge").unwrap();
            assert!(families.insert(family), "{family} comes twice");
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(name == family && name.ends_with(&format!("_{unit}")), "{line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with(family), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = name.split_once('{').unwrap_or((name, ""));
            assert_eq!(name, family);
            samples.push((name.to_owned(), labels.trim_end_matches('}').to_owned(), value.parse().unwrap()));
        }
    }
    let distinct: BTreeSet<(&str, &str)> =
        samples.iter().map(|(name, labels, _)| (&**name, &**labels)).collect();
    assert_eq!(distinct.len(), samples.len(), "{text}");
    samples
}

fn run() -> Run {
    Scenario { noise: 0.0, rate: |at| at.payload as f64, ..Scenario::default() }.run()
}

#[test]
fn each_cell_has_the_rate_and_the_times_of_its_trials() {
    let run = run();
    let samples = samples(&openmetrics::render(&[(&run, false)]));
    let rates = samples.iter().filter(|(name, ..)| name == "kurabe_operations_per_second");
    let mut count = 0;
    for (_, labels, rate) in rates {
        let payload = labels.split("axis_payload=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!((rate / payload.parse::<f64>().unwrap() - 1.0).abs() < 1e-6, "{labels} {rate}");
        assert!(labels.contains("target=\"sqlite\",engine=\"SQLite\""), "{labels}");
        count += 1;
    }
    let cells = run.header.cells.iter().filter(|cell| !cell.aa_control).count();
    assert_eq!(count, cells * run.header.spec.operations.len());
    let times = samples.iter().filter(|(name, ..)| name == "kurabe_operation_duration_seconds").count();
    assert_eq!(times, count * 4);
    let running = |text: &str| samples_of(text, "kurabe_running_runs");
    assert_eq!(running(&openmetrics::render(&[(&run, true), (&run_named("other"), false)])), [1.0]);
    assert_eq!(running(&openmetrics::render(&[])), [0.0]);
}

fn run_named(name: &str) -> Run {
    let mut run = run();
    name.clone_into(&mut run.header.run);
    run
}

fn samples_of(text: &str, wanted: &str) -> Vec<f64> {
    samples(text).into_iter().filter(|(name, ..)| name == wanted).map(|(.., value)| value).collect()
}

#[test]
fn quotes_backslashes_and_line_breaks_stay_inside_a_label() {
    let text = openmetrics::render(&[(&run_named("a\"b\\c\nd"), false)]);
    assert!(text.contains(r#"run="a\"b\\c\nd","#), "{text}");
    assert!(!samples(&text).is_empty());
}

#[test]
fn anonymous_gauges_name_no_engine_and_a_run_without_trials_has_no_cells() {
    let view = View { anonymise: true, ..View::default() };
    let run = run();
    let text = openmetrics::render(&[(&*view.run(&run).unwrap(), false)]);
    assert!(text.contains("database A") && !text.to_lowercase().contains("sqlite"), "{text}");
    let mut empty = run;
    measurements(&mut empty).for_each(drop);
    empty.trials.clear();
    assert!(samples_of(&openmetrics::render(&[(&empty, true)]), "kurabe_operations_per_second").is_empty());
}
