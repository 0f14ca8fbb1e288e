//! The A/A control of each target's first cell: on a second instance of its server if there is one.

use crate::common::{self, null};
use kurabe_core::driver::{Driver, Prepared, Session};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::run::{CellRecord, Outcome, RunSpec};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, Result};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::{SecondInstance, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts or refuses the reads of one instance of a server.
struct Start {
    reads: Arc<AtomicUsize>,
    refuses: bool,
}

impl Interceptor for Start {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        if self.refuses && matches!(operation, Operation::Get { .. }) {
            return Err(Error::unsupported("this start is out of order"));
        }
        inner.prepare(operation)
    }

    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        inner.execute(prepared, parameters, out)
    }
}

fn start(reads: &Arc<AtomicUsize>, refuses: bool) -> Box<dyn Driver> {
    let inner = null();
    let reads = Arc::clone(reads);
    Box::new(DriverLayer::new(inner, move || Start { reads: Arc::clone(&reads), refuses }))
}

fn target(name: &str, reads: &Arc<AtomicUsize>) -> Target {
    common::target(name, start(reads, false))
}

fn spec(slice_ns: Option<u64>) -> RunSpec {
    let targets = vec!["null:".to_owned(); 2];
    RunSpec { rounds: 3, slice_ns, targets, ..common::spec("point-read", &[], "read", 40) }
}

/// The A/A controls of a plan: their targets, and whether each uses a second instance.
fn aa_controls(cells: &[CellRecord]) -> Vec<(usize, bool)> {
    cells.iter().filter(|cell| cell.aa_control).map(|cell| (cell.target, cell.second_instance)).collect()
}

#[test]
fn aa_control_runs_on_second_instance_if_there_is_one() {
    let experiment = common::experiment("point-read");
    for slice_ns in [None, Some(1_000_000)] {
        let [one, second, other] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let mut targets = [target("a", &one), target("b", &other)];
        targets[0].second =
            Some(SecondInstance { driver: start(&second, false), restart: None, restrict: None });
        let plan = Plan::new(experiment, &spec(slice_ns), &targets).unwrap();
        assert_eq!(aa_controls(&plan.records()), [(0, true), (1, false)]);
        let trials = common::trials(plan, &mut targets);
        assert_eq!(trials.len(), 4 * 3, "two cells and two repeats, three rounds");
        let all_measured = trials.iter().all(|trial| matches!(trial.outcome, Outcome::Measured(_)));
        assert!(all_measured, "{trials:?}");
        let reads = |start: &Arc<AtomicUsize>| start.load(Ordering::Relaxed);
        // Both instances are loaded, checked and read equally; the other target does the work of both.
        assert!(reads(&second) > 120 && reads(&second).abs_diff(reads(&one)) < 40, "{one:?} {second:?}");
        assert!(reads(&other) > reads(&one) + 100, "{one:?} {other:?}");
    }
}

#[test]
fn controls_of_many_rounds_are_in_some_and_what_is_compared_is_in_all() {
    let reads = Arc::new(AtomicUsize::new(0));
    let mut targets = [target("a", &reads), target("b", &reads)];
    let spec = RunSpec { rounds: 12, control_distance: Some(4), ..spec(Some(1_000_000)) };
    let plan = Plan::new(common::experiment("point-read"), &spec, &targets).unwrap();
    let (cells, planned) = (plan.records(), plan.trials_of(&spec, 12));
    let trials = common::trials(plan, &mut targets);
    assert_eq!((trials.len(), planned), (30, 30), "what is announced is made");
    for (at, cell) in cells.iter().enumerate() {
        let rounds: Vec<u32> =
            trials.iter().filter(|trial| trial.cell == at).map(|trial| trial.round).collect();
        let all = if cell.aa_control { vec![1, 5, 9] } else { (0..12).collect() };
        assert_eq!(rounds, all);
    }
}

#[test]
fn failed_second_instance_fails_only_its_aa_control() {
    let experiment = common::experiment("point-read");
    let reads = Arc::new(AtomicUsize::new(0));
    let mut targets = [target("a", &reads), target("b", &reads)];
    targets[0].second = Some(SecondInstance { driver: start(&reads, true), restart: None, restrict: None });
    let plan = Plan::new(experiment, &spec(None), &targets).unwrap();
    let cells = plan.records();
    for trial in common::trials(plan, &mut targets) {
        assert_eq!(trial.has_failed(), cells[trial.cell].second_instance, "{trial:?}");
    }
}

#[test]
fn resumed_run_keeps_its_aa_control() {
    let experiment = common::experiment("point-read");
    let reads = Arc::new(AtomicUsize::new(0));
    let mut targets = [target("a", &reads), target("b", &reads)];
    targets[1].second = Some(SecondInstance { driver: start(&reads, false), restart: None, restrict: None });
    let spec = spec(Some(1_000_000));
    let plan = Plan::new(experiment, &spec, &targets).unwrap();
    let again = Plan::of_recorded(experiment, &spec, &plan.records(), &[false; 2]).unwrap();
    assert_eq!(aa_controls(&again.records()), [(0, false), (1, true)]);
    assert_eq!([0, 1].map(|target| again.wants_second_instance(target)), [false, true]);
    let new = Plan::draft(experiment, spec, &[false; 2]).unwrap();
    assert_eq!([0, 1].map(|target| new.wants_second_instance(target)), [true, true]);
}
