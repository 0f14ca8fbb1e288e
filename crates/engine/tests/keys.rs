//! The keys of a run's trials: no two trials of one target read the same keys, and all targets read the same.

use crate::common::{self, Each, null, target};
use kurabe_core::Result;
use kurabe_core::axis::AxisValue;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::run::{Measurement, RunSpec};
use kurabe_core::value::{Reply, Value};
use kurabe_engine::plan::Plan;
use kurabe_engine::{Conditions, Event, InterferenceCheck, NewRun};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// The keys read since the trial started.
type Log = Arc<Mutex<Vec<i64>>>;

/// Reads per trial, including warm-up.
const READS: usize = 42;

/// Records the key of each read.
struct Reads {
    log: Log,
    reads: Vec<usize>,
}

impl Interceptor for Reads {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        let prepared = inner.prepare(operation)?;
        if matches!(operation, Operation::Get { .. }) {
            self.reads.push(prepared.0);
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
        if let (true, [Value::Int(key)]) = (self.reads.contains(&prepared.0), parameters) {
            self.log.lock().unwrap().push(*key);
        }
        inner.execute(prepared, parameters, out)
    }
}

/// A trial's keys, with its round, its target, and whether it belongs to an A/A control.
struct Drawn {
    round: u32,
    target: usize,
    statement: String,
    aa_control: bool,
    rerun: bool,
    keys: Vec<i64>,
}

/// Two rounds of point reads, prepared once and per request, on two targets.
fn drawn(interference_check: Option<InterferenceCheck>) -> Vec<Drawn> {
    let experiment = common::experiment("point-read");
    let mut spec = RunSpec {
        targets: vec!["null:".to_owned(); 2],
        rounds: 2,
        records: Some(20_000),
        seed: 5,
        ..common::spec("point-read", &[], "read", 40)
    };
    let statements = ["once", "per-request"].map(|word| AxisValue::Word(word.to_owned()));
    spec.axes.insert("statement".to_owned(), statements.into());
    let log = Log::default();
    let mut targets = ["a", "b"].map(|name| {
        let log = Arc::clone(&log);
        let interceptor = move || Reads { log: Arc::clone(&log), reads: Vec::new() };
        target(name, Box::new(DriverLayer::new(null(), interceptor)))
    });
    let plan = Plan::new(experiment, &spec, &targets).unwrap();
    let conditions = Conditions { interference_check, ..Conditions::default() };
    let (cells, mut trials) = (plan.records(), Vec::new());
    let mut listener = Each(|event: Event<'_>| {
        match event {
            Event::TrialBegins { .. } => log.lock().unwrap().clear(),
            Event::TrialEnds { record } => {
                let cell = &cells[record.cell];
                let mut keys = std::mem::take(&mut *log.lock().unwrap());
                // Reads that verify the load may come before the clients' reads.
                let keys = keys.split_off(keys.len() - READS);
                trials.push(Drawn {
                    round: record.round,
                    target: cell.target,
                    statement: cell.axes.word("statement").unwrap().to_owned(),
                    aa_control: cell.aa_control,
                    rerun: record.rerun_reason.is_some(),
                    keys,
                });
            }
            _ => {}
        }
    });
    let run = kurabe_engine::run(NewRun::new(plan), &mut targets, &conditions, &mut listener);
    assert!(run.unwrap().unwrap().is_complete());
    trials
}

/// The number of keys of one trial that the other reads too.
fn shared(one: &Drawn, other: &Drawn) -> usize {
    let keys: HashSet<i64> = one.keys.iter().copied().collect();
    other.keys.iter().filter(|key| keys.contains(key)).count()
}

#[test]
fn trials_of_one_target_read_different_keys() {
    let trials = drawn(Some(|_: &Measurement| Some("always".to_owned())));
    assert!(trials.iter().any(|trial| trial.rerun), "a trial was repeated");
    assert!(trials.iter().any(|trial| trial.aa_control), "a cell was repeated");
    for (at, one) in trials.iter().enumerate() {
        for other in trials[..at].iter().filter(|other| other.target == one.target) {
            // By chance, one pair of trials in ten shares a key.
            assert!(shared(one, other) <= 3, "{} keys read before", shared(one, other));
        }
    }
}

#[test]
fn all_targets_read_the_same_keys() {
    let trials = drawn(None);
    let first = |trial: &&Drawn| trial.target == 0;
    for one in trials.iter().filter(first) {
        let is_twin = |other: &&Drawn| {
            other.target == 1 && other.aa_control == one.aa_control && other.round == one.round
        };
        let twin = trials.iter().filter(is_twin).find(|other| other.statement == one.statement);
        assert_eq!(one.keys, twin.unwrap().keys);
    }
}
