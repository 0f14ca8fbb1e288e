//! A minimal job, as an example of the interface: it adds rows over one session, counts them over another, and times
//! its spans. This file contains everything that such an experiment needs.

use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::experiment::{
    Before, Checked, Dataset, DatasetState, Experiment, ExperimentInfo, OperationInfo,
};
use kurabe_core::job::{Ended, Job, JobContext};
use kurabe_core::load::RATE;
use kurabe_core::metric::{Better, Metric, Unit};
use kurabe_core::operation::Operation;
use kurabe_core::planned::{Demand, PlannedCell};
use kurabe_core::run::{Measurement, Outcome, RunSpec};
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, NewRun};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static NOOP_JOB: Experiment = Experiment::new(&INFO, &plan_cell);

static INFO: ExperimentInfo = ExperimentInfo {
    name: "noop-job",
    question: "What does the engine add to a job?",
    about: "Adds rows over one session and counts them over another.",
    axes: &[AxisInfo::new("rows", "rows that are added", AxisKind::count(1, 1_000_000), &["1000"])],
    operations: &[OperationInfo { name: "add", about: "add all rows", requests: 1, writes: true }],
    metrics: &[
        Metric::new("write", Unit::Nanoseconds, Better::Lower, "to add all rows"),
        Metric::new("count", Unit::Nanoseconds, Better::Lower, "to count them"),
    ],
    chart_axis: "rows",
    ..ExperimentInfo::BASE
};

fn plan_cell(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let id = Field { name: "id", kind: FieldType::Int };
    let name = format!("kurabe_{}_noop", dataset.slot);
    let collection = Arc::new(Collection::new(name.clone(), vec![id], vec![0]));
    let job = Adding { collection, rows: cell.number("rows")? };
    Ok(PlannedCell::job(name, Demand { operations: vec![job.insert()], ..Demand::default() }, 2, job))
}

struct Adding {
    collection: Arc<Collection>,
    rows: u64,
}

impl Adding {
    fn insert(&self) -> Operation {
        Operation::Insert { collection: Arc::clone(&self.collection) }
    }

    fn count(&self, session: &mut dyn Session) -> Result<u64> {
        let count = session.prepare(&Operation::Count { collection: Arc::clone(&self.collection) })?;
        let mut reply = Reply::new();
        session.execute(&count, &[], &mut reply)?;
        session.release(count)?;
        Ok(reply.field_int(0, 0).unwrap_or_default() as u64)
    }
}

impl Job for Adding {
    fn before(&self, Before { namespace, .. }: Before<'_>) -> Result<()> {
        namespace.create(&self.collection)
    }

    fn run(&self, _operation: &str, _state: &DatasetState, context: &mut JobContext<'_>) -> Result<()> {
        context.span("write", |context| {
            let insert = context.session("writer")?.prepare(&self.insert())?;
            let mut reply = Reply::new();
            for row in 0..self.rows {
                context.session("writer")?.execute(&insert, &[Value::Int(row as i64)], &mut reply)?;
                context.work(1, 8)?;
            }
            context.session("writer")?.release(insert)
        })?;
        let counted = context.span("count", |context| self.count(context.session("reader")?))?;
        context.sample("counted", Unit::Count, counted as f64);
        Ok(())
    }

    fn verify(&self, Ended { session, .. }: Ended<'_>) -> Result<Checked> {
        let (rows, counted) = (self.rows, self.count(session)?);
        if counted != rows {
            return Err(Error::mismatch(format!("{rows} rows were added and the server counts {counted}")));
        }
        let verification = Verification { writes: rows, records: rows, counted, ..Verification::default() };
        Ok(verification.into())
    }
}

fn plan(targets: &[Target], rate: Option<u64>) -> Plan {
    let mut axes = INFO.baseline(&[]).unwrap().alone();
    axes.extend(rate.map(|rate| (RATE.name.to_owned(), vec![AxisValue::Number(rate)])));
    let spec =
        RunSpec { axes, operations: INFO.operation_names(), rounds: 2, ..RunSpec::new(INFO.name, ["null:"]) };
    Plan::new(&NOOP_JOB, &spec, targets).unwrap()
}

fn targets() -> [Target; 1] {
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse("null:").unwrap()).unwrap();
    let facts = driver.describe().unwrap();
    [Target::new("null", driver, facts)]
}

#[test]
fn job_reports_spans_and_work_and_is_verified() {
    let mut targets = targets();
    let plan = plan(&targets, None);
    let trials = crate::common::trials(plan, &mut targets);
    // The baseline and its A/A control, twice.
    assert_eq!(trials.len(), 4);
    for trial in trials {
        let Outcome::Measured(measured) = trial.outcome else { panic!("{:?}", trial.outcome) };
        let Measurement { completed, offered, failed, metrics, verified, .. } = *measured;
        assert_eq!((completed, offered, failed), (1_000, 1_000, 0));
        let verified = verified.unwrap();
        assert_eq!((verified.writes, verified.counted), (1_000, 1_000));
        let value = |name: &str| metrics.iter().find(|figure| figure.name == name).unwrap().value;
        assert_eq!((value("counted"), value("bytes")), (1_000.0, 8_000.0));
        assert!(value("write") > 0.0 && value("count") > 0.0);
        // Spans are part of the whole.
        assert!(value("write") + value("count") <= measured.elapsed_ns as f64);
    }
}

#[test]
fn job_has_no_rate() {
    let targets = targets();
    let reason = plan(&targets, Some(100)).cells[0].record.unavailable.clone().unwrap();
    assert!(reason.contains("no rate"), "{reason}");
}

#[test]
fn job_that_the_user_stops_ends_at_its_next_work() {
    let mut targets = targets();
    let plan = plan(&targets, None);
    let driver = &*targets[0].driver;
    let (cancel, progress, options) = (AtomicBool::new(false), AtomicU64::new(0), ConnectOptions::default());
    let mut context = JobContext::new(driver, &options, &cancel, &progress);
    context.work(5, 0).unwrap();
    cancel.store(true, Ordering::Relaxed);
    assert_eq!(context.work(1, 0).unwrap_err().kind(), ErrorKind::Interrupted);
    assert_eq!(context.span("later", |_| Ok(())).unwrap_err().kind(), ErrorKind::Interrupted);
    assert_eq!(progress.load(Ordering::Relaxed), 6);
    let conditions = Conditions { cancel: &cancel, ..Conditions::default() };
    let run = kurabe_engine::run(NewRun::new(plan), &mut targets, &conditions, &mut ());
    assert_eq!(run.unwrap_err().error.kind(), ErrorKind::Interrupted);
}
