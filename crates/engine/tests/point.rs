//! `point-read` and `point-write` through the engine, on `null:` and `sqlite:`.

use crate::common::{self, open, target};
use kurabe_core::run::{Outcome, RunSpec, TrialRecord};
use kurabe_core::verification::Verification;
use kurabe_engine::plan::Plan;
use std::collections::BTreeMap;

/// Two rounds of three clients, prepared once and per request, with the A/A control, on a table of that many rows.
fn run(experiment: &str, url: &str) -> Vec<TrialRecord> {
    let experiment = common::experiment(experiment);
    let info = experiment.info;
    let axes: BTreeMap<_, _> = info
        .axes
        .iter()
        .map(|axis| {
            let texts: &[&str] = match axis.name {
                "clients" => &["1", "3"],
                "statement" => &["once", "per-request"],
                "pipeline" => &["1", "8"],
                _ => axis.default,
            };
            (axis.name.to_owned(), texts.iter().map(|text| axis.parse(text).unwrap()).collect())
        })
        .collect();
    let operation = info.operations[0].name;
    let spec = RunSpec {
        axes,
        operations: vec![operation.to_owned()],
        rounds: 2,
        requests: BTreeMap::from([(operation.to_owned(), 300)]),
        // Not a multiple of the rows per load request.
        records: Some(1_234),
        seed: 5,
        ..RunSpec::new(info.name, [url])
    };
    let mut targets = [target(url, open(url))];
    let plan = Plan::new(experiment, &spec, &targets).unwrap();
    common::trials(plan, &mut targets)
}

#[test]
fn every_trial_has_results_and_every_reply_is_verified() {
    for url in ["null:", "sqlite:"] {
        for experiment in ["point-read", "point-write"] {
            let trials = run(experiment, url);
            // SQLite has no pipelining, and neither have statements prepared per request.
            let cells = if url == "null:" { 6 } else { 4 };
            assert_eq!(
                trials.len(),
                2 * (cells + 1),
                "{url} {experiment}: the cells and the repeat, two rounds"
            );
            for trial in trials {
                let Outcome::Measured(figures) = &trial.outcome else { panic!("{url} {trial:?}") };
                // Pipelined requests are completed.
                assert!((300..300 + 3 * 8).contains(&figures.offered), "{}", figures.offered);
                assert_eq!((figures.completed, figures.failed), (figures.offered, 0));
                assert_eq!(figures.service.count(), figures.completed);
                let made = figures.completed + figures.warmup;
                let verified = figures.verified.unwrap();
                if experiment == "point-read" {
                    assert_eq!(verified, Verification { answers: made, ..Verification::default() });
                } else {
                    let all = Verification {
                        writes: made,
                        records: made,
                        read_back: made,
                        ..Verification::default()
                    };
                    assert_eq!(verified, all);
                }
            }
        }
    }
}
