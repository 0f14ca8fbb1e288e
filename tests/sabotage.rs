//! The faults of the original experiments, injected: each must fail its trials, without results.
//!
//! An interceptor between the engine and `null:` misbehaves as the scripts and servers of the published experiments
//! did. The same run without it must pass: otherwise the tests would prove nothing.

mod saboteur;

use kurabe_core::ErrorKind;
use kurabe_core::axis::AxisValue;
use kurabe_core::interceptor::DriverLayer;
use kurabe_core::run::{Outcome, RunSpec, TrialRecord};
use kurabe_core::target::TargetUrl;
use kurabe_core::verification::{Proof, Verification};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, NewRun};
use kurabe_experiments::registry;
use saboteur::{Lie, Saboteur};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A small run of the session experiment through the interceptor.
fn run(lie: Lie, layout: &str, operations: &[&str]) -> Vec<TrialRecord> {
    let experiment = registry::find("session").unwrap();
    let axes: BTreeMap<String, Vec<AxisValue>> = experiment
        .info
        .axes
        .iter()
        .map(|axis| {
            let texts = match axis.name {
                "payload" => vec!["1k", "10k"],
                "layout" => vec![if layout == "expiring" { "blob" } else { layout }],
                "clients" => vec!["2"],
                "expiry" if layout == "expiring" => vec!["database"],
                _ => vec![axis.default[0]],
            };
            (axis.name.to_owned(), texts.into_iter().map(|text| axis.parse(text).unwrap()).collect())
        })
        .collect();
    let spec = RunSpec {
        axes,
        operations: operations.iter().map(|name| (*name).to_owned()).collect(),
        requests: operations.iter().map(|name| ((*name).to_owned(), 200)).collect(),
        // A session that expires is waited for.
        rounds: if layout == "expiring" { 1 } else { 2 },
        seed: 11,
        records: Some(50),
        ..RunSpec::new("session", ["null:"])
    };
    let inner = kurabe_drivers::registry::open(&TargetUrl::parse("null:").unwrap()).unwrap();
    let facts = inner.describe().unwrap();
    let first_table = Arc::default();
    let driver = Box::new(DriverLayer::new(inner, move || Saboteur::new(lie, &first_table)));
    let mut targets = [Target::new("null", driver, facts)];
    let plan = Plan::new(experiment, &spec, &targets).unwrap();
    let run = kurabe_engine::run(NewRun::new(plan), &mut targets, &Conditions::default(), &mut ());
    run.unwrap().unwrap().trials
}

/// Every trial of the run must have failed by a mismatch, with a reason that contains `part`.
fn caught(lie: Lie, layout: &str, operations: &[&str], part: &str) {
    for trial in run(lie, layout, operations) {
        let Outcome::Failed { kind, reason, .. } = &trial.outcome else {
            panic!("{lie:?} was not detected: {trial:?}");
        };
        assert_eq!(*kind, ErrorKind::Mismatch, "{lie:?}: {reason}");
        assert!(reason.contains(part), "{lie:?}: {reason}");
    }
}

#[test]
fn without_fault_every_trial_has_results() {
    for layout in ["blob", "rows"] {
        let trials = run(Lie::Truth, layout, &["write", "read", "request"]);
        // Two payloads and the A/A control, three operations, two rounds.
        assert_eq!(trials.len(), 18);
        for trial in trials {
            let Outcome::Measured(figures) = &trial.outcome else { panic!("{trial:?}") };
            assert_eq!((figures.offered, figures.completed, figures.failed), (200, 200, 0));
            let warmup = 10;
            assert_eq!(figures.warmup, warmup);
            let verified = figures.verified.unwrap();
            if trial.operation == "read" {
                assert_eq!(verified, Verification { answers: 200 + warmup, ..Verification::default() });
            } else if trial.operation == "request" {
                assert_eq!(verified.how(), Proof::ReadBackLast, "{verified:?}");
                assert_eq!(verified.writes, 200 + warmup);
            } else {
                assert_eq!(verified.how(), Proof::ReadBackAll, "{verified:?}");
                assert_eq!((verified.writes, verified.counted), (200 + warmup, 200 + warmup));
            }
        }
    }
}

#[test]
fn dropped_last_piece_is_detected() {
    caught(Lie::DropsLastPiece, "rows", &["write"], "rows of written sessions, expected");
}

#[test]
fn bytes_of_other_session_are_detected() {
    for layout in ["blob", "rows"] {
        caught(Lie::AnotherSession, layout, &["read"], "wrong content");
    }
}

#[test]
fn truncated_value_is_detected() {
    caught(Lie::Truncates, "blob", &["read"], "bytes instead of");
    caught(Lie::Truncates, "rows", &["read"], "bytes instead of");
}

#[test]
fn evicted_session_is_detected() {
    caught(Lie::Evicts, "blob", &["write"], "rows of written sessions, expected");
}

#[test]
fn expired_session_that_comes_back_and_lost_change_are_detected() {
    for layout in ["blob", "rows", "expiring"] {
        caught(Lie::KeepsExpired, layout, &["request"], "had expired, and is served");
    }
    assert!(
        run(Lie::Truth, "expiring", &["request"])
            .iter()
            .all(|trial| matches!(trial.outcome, Outcome::Measured(_)))
    );
    caught(Lie::KeepsOld, "blob", &["request"], "wrong content");
}

#[test]
fn operation_that_is_never_sent_is_detected() {
    caught(Lie::NeverWrites, "blob", &["write"], "rows of written sessions, expected");
    caught(Lie::NeverReads, "blob", &["read"], "is missing");
    caught(Lie::NeverReads, "rows", &["read"], "is missing");
}

#[test]
fn writes_reordered_after_reads_are_detected() {
    caught(Lie::WritesLater, "blob", &["read"], "the server counts");
}

#[test]
fn one_table_for_every_payload_is_detected() {
    let trials = run(Lie::OneTableForAll, "blob", &["read"]);
    let failed = trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Failed { .. })).count();
    assert!(failed > 0, "reads of two payloads from one table were not detected");
}

#[test]
fn panic_fails_only_its_trial() {
    // In a client's thread for reads; in the check after the trial for writes, which are read back.
    for trial in run(Lie::Panics, "blob", &["read", "write"]) {
        let Outcome::Failed { kind, reason, .. } = &trial.outcome else { panic!("{trial:?}") };
        assert_eq!(*kind, ErrorKind::Internal);
        assert!(reason.contains("planted"), "{reason}");
    }
}
