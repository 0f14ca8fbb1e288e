//! The published schema holds for what is really reported.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;

use common::{INFO, Scenario, bound, open_loop, troubled};
use kurabe_core::figure::{Figure, HIT_RATIO, Unit};
use kurabe_core::run::{Outcome, PublishingClause};
use kurabe_report::{analyse, json};
use serde_json::Value;

fn validator() -> jsonschema::Validator {
    let schema: Value =
        serde_json::from_str(include_str!("../../../docs/schema/report.schema.json")).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn reports() -> Vec<Value> {
    let empty = {
        let mut run = Scenario::default().run();
        run.trials.clear();
        run.end = None;
        run
    };
    let restricted = {
        let mut run = Scenario::default().run();
        let text = |text: &str| text.to_owned();
        run.header.targets[0].publishing =
            Some(PublishingClause { name: text("a"), says: text("b"), source: text("c") });
        run
    };
    let cached = {
        let mut run = Scenario::default().run();
        run.header.spec.cache = Some("memcached://cache.example".to_owned());
        for trial in &mut run.trials {
            if let Outcome::Measured(measured) = &mut trial.outcome {
                measured.figures.push(Figure::new(HIT_RATIO, Unit::Share, 0.9));
            }
        }
        run
    };
    let runs = [
        restricted,
        cached,
        Scenario::default().run(),
        Scenario { rounds: 1, ..Scenario::default() }.run(),
        troubled(),
        open_loop(),
        bound(),
        empty,
    ];
    runs.iter()
        .flat_map(|run| [analyse(run, Some(&INFO)), analyse(run, None)])
        .map(|summary| serde_json::from_str(&json::render(&summary)).unwrap())
        .collect()
}

#[test]
fn every_report_follows_the_published_schema() {
    let validator = validator();
    for report in reports() {
        let errors: Vec<String> = validator
            .iter_errors(&report)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
    }
}

#[test]
fn the_schema_names_every_member_that_is_reported() {
    // Each member is required and no other allowed, so that a change of the types changes the schema too.
    let validator = validator();
    let report = reports().remove(0);
    let bound = serde_json::from_str(&json::render(&analyse(&bound(), Some(&INFO)))).unwrap();
    hold(
        &validator,
        &bound,
        &["/cells/0/attribution", "/cells/0/attribution/split", "/cells/0/observed/0/host/cpus/0"],
    );
    let pointers = [
        "",
        "/machine",
        "/spec",
        "/targets/0",
        "/targets/0/publishing",
        "/cells/0",
        "/cells/0/ops_per_second",
        "/cells/0/latency_us",
        "/cells/0/verified",
        "/verdicts/0",
    ];
    hold(&validator, &report, &pointers);
}

/// Each member of the objects at these places is required, and no other is allowed.
fn hold(validator: &jsonschema::Validator, report: &Value, pointers: &[&str]) {
    for pointer in pointers {
        let members: Vec<String> =
            report.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for member in members {
            let mut less = report.clone();
            less.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(&member);
            assert!(!validator.is_valid(&less), "without {pointer}/{member} it is still valid");
        }
        let mut more = report.clone();
        more.pointer_mut(pointer).unwrap()["surplus"] = Value::from(1);
        assert!(!validator.is_valid(&more), "with {pointer}/surplus it is still valid");
    }
}
