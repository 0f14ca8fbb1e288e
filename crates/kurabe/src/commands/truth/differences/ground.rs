//! One comparison of a server with itself, one side of which may be slower by what is added to each request.

use super::{ROUNDS, Tally};
use crate::machine;
use crate::targets::open_one;
use kurabe_core::around::{Around, Hook};
use kurabe_core::axis::AxisValue;
use kurabe_core::driver::{Driver, Prepared, Session};
use kurabe_core::experiment::Experiment;
use kurabe_core::run::{Outcome, Run, RunEnd, RunHeader, RunSpec, TargetRecord, TrialRecord};
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::event::Event;
use kurabe_engine::house::House;
use kurabe_engine::plan::{self, Target};
use kurabe_engine::runner::Runner;
use kurabe_experiments::registry;
use kurabe_observe::Watcher;
use kurabe_report::analyse;
use kurabe_report::summary::VerdictResult;
use kurabe_testbed::Server;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Records in the store: read in no time, loaded in less.
const RECORDS: u64 = 500;

/// Where comparisons are made.
pub(super) struct Ground<'a> {
    pub(super) engine: &'static str,
    time: Duration,
    cancel: &'a AtomicBool,
    /// What a request took in the last comparison: an addition is a part of it.
    per_request: Duration,
}

/// What was added to the requests of one target, and to how many.
#[derive(Debug, Default)]
struct Added {
    nanos: AtomicU64,
    requests: AtomicU64,
}

/// Adds to each request, after its answer came.
struct Adding {
    each: Duration,
    added: Arc<Added>,
}

impl Hook for Adding {
    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let answer = inner.execute(prepared, parameters, out);
        // The side without an addition reads the clock as often, so that the two differ by the addition alone.
        let began = Instant::now();
        let mut spent = began.elapsed();
        while spent < self.each {
            std::hint::spin_loop();
            spent = began.elapsed();
        }
        if !self.each.is_zero() {
            self.added.nanos.fetch_add(spent.as_nanos() as u64, Ordering::Relaxed);
        }
        self.added.requests.fetch_add(1, Ordering::Relaxed);
        answer
    }
}

impl<'a> Ground<'a> {
    pub(super) fn new(engine: &'static str, time: Duration, cancel: &'a AtomicBool) -> Self {
        Self { engine, time, cancel, per_request: Duration::ZERO }
    }

    /// Makes one comparison of a server with itself, the second target slower by `effect`, and looks what is said of it.
    pub(super) fn compare(&mut self, server: Option<&Server>, effect: f64, number: u64) -> Result<Tally> {
        let folder = tempfile::tempdir().map_err(|e| {
            Error::new(ErrorKind::Environment, format!("no temporary folder could be made: {e}"))
        })?;
        let url = match server {
            Some(server) => TargetUrl::parse(server.url())?,
            None => {
                TargetUrl::parse(&format!("{}:{}", self.engine, folder.path().join("truth.db").display()))?
            }
        };
        let experiment = registry::find("point-read")?;
        let spec = self.spec(experiment, mix(number, effect));
        if self.per_request.is_zero() {
            self.calibrate(&url, experiment, &spec)?;
        }
        // A part of the slower side's time: 5 % slower is 1 ÷ 0.95 times as long.
        let each = self.per_request.mul_f64(1.0 / (1.0 - effect) - 1.0);
        let additions: [Arc<Added>; 2] = Default::default();
        let target = |at: usize, each: Duration| -> Result<Target> {
            let (driver, facts, refused) = open_one(&url, None)?;
            let added = Arc::clone(&additions[at]);
            let driver: Box<dyn Driver> =
                Box::new(Around::new(driver, move || Adding { each, added: Arc::clone(&added) }));
            Ok(Target {
                name: format!("{}#{}", self.engine, at + 1),
                driver,
                facts,
                claims: at == 0,
                refused,
                renew: None,
            })
        };
        let both = [target(0, Duration::ZERO)?, target(1, each)?];
        let mut truths: BTreeMap<u32, f64> = BTreeMap::new();
        let mut before = 0;
        let run = self.run(experiment, &spec, &both, |trial, cell| {
            let (Outcome::Measured(measured), 1) = (&trial.outcome, cell) else { return };
            // Warming up is as slow: what was added to each request on the average holds for the measured ones.
            let total = additions[1].nanos.load(Ordering::Relaxed);
            let requests = additions[1].requests.swap(0, Ordering::Relaxed).max(1);
            let mean = total.saturating_sub(std::mem::replace(&mut before, total)) as f64 / requests as f64;
            let added = mean * measured.completed as f64 / measured.elapsed_ns.max(1) as f64;
            truths.insert(trial.round, (1.0 - added.min(0.99)).ln());
        })?;
        self.learn(&run);
        let truth = truths.values().sum::<f64>() / truths.len().max(1) as f64;
        let summary = analyse(&run, Some(experiment.info()));
        let verdict = summary
            .verdicts
            .first()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "two targets were measured and not compared"))?;
        // The first target against the second: faster by what the second was held back.
        let (Some(low), Some(high)) = (verdict.low, verdict.high) else {
            return Err(Error::new(ErrorKind::Internal, format!("no interval: {}", verdict.reason)));
        };
        let disturbed = disturbed(&run);
        let covered = u64::from(low.ln() <= -truth && -truth <= high.ln());
        let called = matches!(verdict.result, VerdictResult::Faster | VerdictResult::Slower);
        Ok(Tally {
            all: 1,
            called: u64::from(called),
            reversed: u64::from(effect > 0.0 && verdict.result == VerdictResult::Slower),
            covered,
            quiet: u64::from(!disturbed),
            covered_quiet: covered * u64::from(!disturbed),
            detectable: verdict.detectable.unwrap_or(0.0).ln_1p(),
            truth: -truth,
        })
    }

    /// What a request takes without an addition.
    fn calibrate(
        &mut self,
        url: &TargetUrl,
        experiment: &'static dyn Experiment,
        spec: &RunSpec,
    ) -> Result<()> {
        let (driver, facts, refused) = open_one(url, None)?;
        let target =
            Target { name: self.engine.to_owned(), driver, facts, claims: true, refused, renew: None };
        let spec = RunSpec { targets: vec![self.engine.to_owned()], rounds: 1, ..spec.clone() };
        let run = self.run(experiment, &spec, &[target], |_, _| ())?;
        self.learn(&run);
        Ok(())
    }

    /// The median over the first target's trials of the time of one request.
    fn learn(&mut self, run: &Run) {
        let mut times: Vec<f64> = run
            .trials
            .iter()
            .filter(|trial| run.header.cells[trial.cell].target == 0)
            .filter_map(|trial| match &trial.outcome {
                Outcome::Measured(measured) => Some(1e9 / measured.ops_per_second()),
                Outcome::Failed { .. } => None,
            })
            .collect();
        times.sort_by(f64::total_cmp);
        if let Some(time) = times.get(times.len() / 2) {
            self.per_request = Duration::from_nanos(*time as u64);
        }
    }

    fn spec(&self, experiment: &dyn Experiment, seed: u64) -> RunSpec {
        let info = experiment.info();
        let axes = info
            .axes
            .iter()
            .filter_map(|axis| Some((axis.name.to_owned(), vec![axis.parse(axis.default.first()?).ok()?])));
        RunSpec {
            experiment: info.name.to_owned(),
            targets: vec![self.engine.to_owned(); 2],
            axes: axes.collect::<BTreeMap<String, Vec<AxisValue>>>(),
            operations: info.operations.iter().map(|operation| operation.name.to_owned()).collect(),
            requests: BTreeMap::new(),
            duration_ns: Some(self.time.as_nanos() as u64),
            budget_ns: None,
            rounds: ROUNDS,
            seed,
            records: Some(RECORDS),
            arrivals: None,
            slo_ns: None,
            durability: None,
            cache: None,
            own: None,
            until: None,
        }
    }

    /// Makes a run as any other; `each` sees each trial as it ends, with its target.
    fn run(
        &self,
        experiment: &'static dyn Experiment,
        spec: &RunSpec,
        targets: &[Target],
        mut each: impl FnMut(&TrialRecord, usize),
    ) -> Result<Run> {
        let cells = plan::cells(experiment, spec, targets)?;
        let header = RunHeader {
            run: format!("truth-{}", std::process::id()),
            began: 0,
            kurabe: env!("CARGO_PKG_VERSION").to_owned(),
            command: Vec::new(),
            spec: spec.clone(),
            machine: machine::facts(),
            targets: targets.iter().map(record).collect(),
            cells,
            overhead: Vec::new(),
        };
        let watcher = Watcher::new();
        let runner = Runner {
            experiment,
            spec,
            run: &header.run,
            targets,
            cells: &header.cells,
            began: Instant::now(),
            cancel: self.cancel,
            progress: &AtomicU64::new(0),
            observer: Some(&watcher),
            // Nothing is made again here: what is tested is the verdict on whatever was measured.
            suspect: None,
        };
        let mut trials = Vec::new();
        let houses = House::open_all(targets, &header.run)?;
        let complete = runner.run(houses, &[], &mut |event| {
            if let Event::TrialEnds { record } = event {
                each(record, header.cells[record.cell].target);
                trials.push(record.clone());
            }
            Ok(())
        })?;
        if !complete {
            return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        }
        Ok(Run { header, trials, end: Some(RunEnd { at_ms: 0, complete: true }) })
    }
}

/// A seed of its own for each comparison.
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

/// Whether the machine worked for others while a comparison was made: a tenth of its processors' time, or a twentieth of it
/// given away by the machine below, over all its trials. One of them is too short for counters of a hundredth of a second.
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
