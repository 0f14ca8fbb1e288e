//! `point-read` and `point-write` through the engine, on `null:` and `sqlite:`; and a server that loses acknowledged
//! writes.

use kurabe_core::driver::{Prepared, Session};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::run::{Outcome, RunSpec, TrialRecord};
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::verification::Verification;
use kurabe_core::{ErrorKind, Result};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::run::runner::Runner;
use std::collections::BTreeMap;

/// Acknowledges changes without making them.
#[derive(Default)]
struct Forgetful {
    updates: Vec<usize>,
}

impl Interceptor for Forgetful {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        let prepared = inner.prepare(operation)?;
        if matches!(operation, Operation::Update { .. }) {
            self.updates.push(prepared.0);
        }
        Ok(prepared)
    }

    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        if self.updates.contains(&prepared.0) {
            out.clear();
            out.set_affected(1);
            return Ok(());
        }
        inner.execute(prepared, parameters, out)
    }

    fn pipeline(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut [Reply],
    ) -> Result<()> {
        let each = parameters.len() / out.len();
        let mut all = parameters.chunks(each).zip(out);
        all.try_for_each(|(parameters, out)| self.execute(inner, prepared, parameters, out))
    }
}

/// Two rounds of three clients, prepared once and per request, with the A/A control, on a table of that many rows.
fn run(experiment: &str, url: &str, forgetful: bool) -> Vec<TrialRecord> {
    let experiment = kurabe_experiments::registry::find(experiment).unwrap();
    let info = experiment.info();
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
    let mut driver = kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap();
    if forgetful {
        driver = Box::new(DriverLayer::new(driver, Forgetful::default));
    }
    let facts = driver.describe().unwrap();
    let targets = [Target::new(url, driver, facts)];
    let plan = Plan::new(experiment, &spec, &targets).unwrap();
    Runner::new(&plan, "point", &targets).trials().unwrap()
}

#[test]
fn every_trial_has_results_and_every_reply_is_verified() {
    for url in ["null:", "sqlite:"] {
        for experiment in ["point-read", "point-write"] {
            let trials = run(experiment, url, false);
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

#[test]
fn acknowledged_changes_that_are_not_made_fail_the_trial() {
    let trials = run("point-write", "null:", true);
    assert!(!trials.is_empty());
    for trial in trials {
        let Outcome::Failed { kind, reason, .. } = &trial.outcome else { panic!("not detected: {trial:?}") };
        assert_eq!(*kind, ErrorKind::Mismatch, "{reason}");
        assert!(reason.contains("read back"), "{reason}");
    }
}
