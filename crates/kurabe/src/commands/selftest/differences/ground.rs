//! One comparison of a server with itself; repeated requests may make one side slower.

use super::{Plan, Tally};
use crate::machine;
use crate::targets::open_one;
use kurabe_core::axis::AxisValue;
use kurabe_core::driver::{Driver, Prepared, Session};
use kurabe_core::experiment::Experiment;
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::run::{Outcome, Run, RunEnd, RunHeader, RunSpec, TargetRecord, TrialRecord};
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::event::Event;
use kurabe_engine::fixture::Fixture;
use kurabe_engine::plan::Plan as RunPlan;
use kurabe_engine::runner::Runner;
use kurabe_engine::target::Target;
use kurabe_experiments::registry;
use kurabe_observe::Monitor;
use kurabe_report::analyse;
use kurabe_report::finding::Why;
use kurabe_report::summary::VerdictResult;
use kurabe_testbed::Server;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Records in the store: few, so that loading and checking are fast.
const RECORDS: u64 = 500;
/// The maximum number of characters of a row.
const LONGEST: usize = 1_000;

/// The context of comparisons.
pub(super) struct Ground<'a> {
    pub(super) engine: &'static str,
    plan: &'a Plan,
    cancel: &'a AtomicBool,
}

/// The time added to the requests of one target, and their number.
#[derive(Debug, Default)]
struct Added {
    nanos: AtomicU64,
    requests: AtomicU64,
}

/// Repeats a share of the requests. An added request is like any other, and finds client and server as they are
/// between requests. A client that waited instead would change how deeply its server sleeps.
struct Doubling {
    writes: bool,
    /// Added requests per request.
    share: f64,
    /// The number of added requests that are due.
    due: f64,
    /// The session's prepared reads or writes.
    known: Vec<usize>,
    added: Arc<Added>,
}

/// The parameters with other texts of the same length: some engines skip a write that changes nothing.
fn altered<'a>(parameters: &[Value<'a>], other: &'a str) -> Vec<Value<'a>> {
    let alter = |value: &Value<'a>| match value {
        Value::Text(text) => other.get(..text.len()).map_or(*value, Value::Text),
        _ => *value,
    };
    parameters.iter().map(alter).collect()
}

impl Interceptor for Doubling {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        let prepared = inner.prepare(operation)?;
        // Reading back after writes is not one of the measured requests.
        let known = match operation {
            Operation::Get { .. } => !self.writes,
            Operation::Update { .. } => self.writes,
            _ => false,
        };
        if known {
            self.known.push(prepared.0);
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
        if self.known.contains(&prepared.0) {
            self.added.requests.fetch_add(1, Ordering::Relaxed);
            self.due += self.share;
            if self.due >= 1.0 {
                self.due -= 1.0;
                let began = Instant::now();
                // The row has an unexpected content until the request itself overwrites it.
                let other = "x".repeat(LONGEST);
                let altered = altered(parameters, &other);
                inner.execute(prepared, &altered, out)?;
                self.added.nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
        }
        inner.execute(prepared, parameters, out)
    }
}

impl<'a> Ground<'a> {
    pub(super) fn new(engine: &'static str, plan: &'a Plan, cancel: &'a AtomicBool) -> Self {
        Self { engine, plan, cancel }
    }

    /// Compares a server with itself, the second target slower by `effect`, and returns the verdict.
    pub(super) fn compare(&self, server: Option<&Server>, effect: f64, number: u64) -> Result<Tally> {
        let folder = tempfile::tempdir().map_err(|e| {
            Error::new(ErrorKind::Environment, format!("no temporary folder could be made: {e}"))
        })?;
        let url = match server {
            Some(server) => TargetUrl::parse(server.url())?,
            None => {
                TargetUrl::parse(&format!("{}:{}", self.engine, folder.path().join("selftest.db").display()))?
            }
        };
        let experiment = registry::find(if self.plan.writes { "point-write" } else { "point-read" })?;
        let spec = self.spec(experiment, mix(number, effect));
        let writes = self.plan.writes;
        // 5 % slower is 1 ÷ 0.95 times as long.
        let share = 1.0 / (1.0 - effect) - 1.0;
        let additions: [Arc<Added>; 2] = Default::default();
        let target = |at: usize, share: f64| -> Result<Target> {
            let (driver, facts, skip_reason) = open_one(&url, None)?;
            let added = Arc::clone(&additions[at]);
            let double =
                move || Doubling { writes, share, due: 0.0, known: Vec::new(), added: Arc::clone(&added) };
            let driver: Box<dyn Driver> = Box::new(DriverLayer::new(driver, double));
            Ok(Target {
                name: format!("{}#{}", self.engine, at + 1),
                driver,
                facts,
                claims: at == 0,
                skip_reason,
                restart: None,
                second: None,
            })
        };
        let both = [target(0, 0.0)?, target(1, share)?];
        let mut truths: BTreeMap<u32, f64> = BTreeMap::new();
        let mut before = 0;
        let run = self.run(experiment, &spec, &both, |trial, cell| {
            let (Outcome::Measured(measured), 1) = (&trial.outcome, cell) else { return };
            // The mean time added to a request, warm-up included, is that of the measured requests.
            let total = additions[1].nanos.load(Ordering::Relaxed);
            let requests = additions[1].requests.swap(0, Ordering::Relaxed).max(1);
            let mean = total.saturating_sub(std::mem::replace(&mut before, total)) as f64 / requests as f64;
            // All clients' time together.
            let time = measured.elapsed_ns.max(1) * self.plan.clients;
            let added = mean * measured.completed as f64 / time as f64;
            if self.plan.slice.is_none() || measured.slices > 0 {
                truths.insert(trial.round, (1.0 - added.min(0.99)).ln());
            }
        })?;
        let truth = truths.values().sum::<f64>() / truths.len().max(1) as f64;
        let summary = analyse(&run, Some(experiment.info()));
        let verdict = summary
            .verdicts
            .first()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "two targets were measured and not compared"))?;
        // The first target against the second: faster by the time added to the second.
        let (Some(low), Some(high)) = (verdict.low, verdict.high) else {
            return Err(Error::new(ErrorKind::Internal, format!("no interval: {:?}", verdict.why)));
        };
        let disturbed = disturbed(&run);
        let covered = u64::from(low.ln() <= -truth && -truth <= high.ln());
        let called = matches!(verdict.result, VerdictResult::Better | VerdictResult::Worse);
        Ok(Tally {
            all: 1,
            called: u64::from(called),
            client_full: u64::from(matches!(verdict.why, Some(Why::ClientBound { .. }))),
            reversed: u64::from(effect > 0.0 && verdict.result == VerdictResult::Worse),
            covered,
            quiet: u64::from(!disturbed),
            covered_quiet: covered * u64::from(!disturbed),
            detectable: verdict.smallest_detectable.unwrap_or(0.0).ln_1p(),
            truth: -truth,
        })
    }

    fn spec(&self, experiment: &dyn Experiment, seed: u64) -> RunSpec {
        let info = experiment.info();
        let axes = info
            .axes
            .iter()
            .filter_map(|axis| Some((axis.name.to_owned(), vec![axis.parse(axis.default.first()?).ok()?])));
        let mut axes: BTreeMap<String, Vec<AxisValue>> = axes.collect();
        axes.insert("clients".to_owned(), vec![AxisValue::Number(self.plan.clients)]);
        RunSpec {
            axes,
            operations: info.operations.iter().map(|operation| operation.name.to_owned()).collect(),
            duration_ns: Some(self.plan.time.as_nanos() as u64),
            rounds: self.plan.rounds,
            seed,
            records: Some(RECORDS),
            slice_ns: self.plan.slice.map(|slice| slice.as_nanos() as u64),
            ..RunSpec::new(info.name, [self.engine; 2])
        }
    }

    /// Executes a run like any other; `each` is called with each trial and its target.
    fn run(
        &self,
        experiment: &'static dyn Experiment,
        spec: &RunSpec,
        targets: &[Target],
        mut each: impl FnMut(&TrialRecord, usize),
    ) -> Result<Run> {
        let mut plan = RunPlan::new(experiment, spec, targets)?;
        plan.allow_rewrites();
        // The additions to the second target's control could not be distinguished from those to the cell itself.
        plan.retain(|cell| !cell.aa_control || cell.target == 0);
        let header = RunHeader {
            run: format!("selftest-{}", std::process::id()),
            began: 0,
            kurabe: env!("CARGO_PKG_VERSION").to_owned(),
            command: Vec::new(),
            spec: spec.clone(),
            machine: machine::facts(),
            targets: targets.iter().map(record).collect(),
            cells: plan.records(),
            overhead: Vec::new(),
            warnings: Vec::new(),
        };
        let monitor = Monitor::new();
        let runner = Runner {
            plan: &plan,
            run: &header.run,
            targets,
            began: Instant::now(),
            cancel: self.cancel,
            progress: &AtomicU64::new(0),
            observer: Some(&monitor),
            // No reruns: the test is about the verdict on any measurement.
            interference_check: None,
            cpu_partition: self.plan.cpu_partition.as_ref(),
        };
        let mut trials = Vec::new();
        let fixtures = Fixture::open_all(targets, &header.run)?;
        let complete = runner.run(fixtures, &[], &mut |event| {
            if let Event::TrialEnds { record } = event {
                each(record, header.cells[record.cell].target);
                trials.push(record.clone());
            }
            Ok(())
        })?;
        if !complete {
            return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        }
        Ok(Run { trials, end: Some(RunEnd { at_ms: 0, complete: true }), ..Run::new(header) })
    }
}

/// A separate seed for each comparison.
fn mix(number: u64, effect: f64) -> u64 {
    kurabe_stats::mix(number, effect.to_bits()) % 1_000_000_000
}

fn record(target: &Target) -> TargetRecord {
    TargetRecord {
        name: target.name.clone(),
        url: String::new(),
        scheme: String::new(),
        facts: target.facts.clone(),
        publishing: None,
    }
}

/// Whether other processes disturbed a comparison: they used a tenth of the processors' time, or the hypervisor stole a
/// twentieth, over all trials. A single trial is too short for counters with a resolution of a hundredth of a second.
fn disturbed(run: &Run) -> bool {
    let seen = run.trials.iter().filter_map(|trial| match &trial.outcome {
        Outcome::Measured(measured) => measured.observed.as_deref(),
        Outcome::Failed { .. } => None,
    });
    let (mut others, mut steal, mut time) = (0.0, 0.0, 0.0);
    for observed in seen {
        let here = observed.wall_ns as f64 * observed.host.cpus.len() as f64;
        others += observed.others_cpu_ns() as f64;
        steal += observed.steal() * here;
        time += here;
    }
    others >= 0.1 * time || steal >= 0.05 * time
}
