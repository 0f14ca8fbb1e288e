//! One comparison of a server with itself: its parameters, and what it adds to the counts.

use super::doubling::{self, Added};
use crate::Engine;
use kurabe_core::axis::AxisValue;
use kurabe_core::driver::Driver;
use kurabe_core::experiment::Experiment;
use kurabe_core::run::{CellRecord, Outcome, Run, RunSpec, TrialRecord};
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_engine::plan::Plan as RunPlan;
use kurabe_engine::plan::budget::{Fit, Free};
use kurabe_engine::prepare::target::{SecondInstance, Target};
use kurabe_engine::{Conditions, Event, Listener, NewRun, Provenance, Start};
use kurabe_experiments::registry;
use kurabe_observe::{Monitor, machine_facts};
use kurabe_report::analyse;
use kurabe_report::finding::Why;
use kurabe_report::summary::Decision;
use kurabe_targets::{OpenOptions, Reporter, open, open_one};
use kurabe_testbed::Server;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Records in the store: few, so that loading and checking are fast.
const RECORDS: u64 = 500;

/// The parameters.
pub struct Plan {
    /// Whether writes are compared instead of reads.
    pub writes: bool,
    /// The numbers of clients.
    pub clients: Vec<u64>,
    /// Whether two servers are started for each comparison, and restarted as in a run with default options.
    pub separate: bool,
    /// The time budget of each comparison of two servers.
    pub budget: Duration,
    /// The number of comparisons without a difference, and of those with one.
    pub comparisons: u64,
    /// The difference: 0.05 makes one side 5 % slower.
    pub effect: f64,
    /// Rounds of each comparison.
    pub rounds: u32,
    /// The number of records in each store, if the user chose it.
    pub records: Option<u64>,
    /// Each trial's measured phase.
    pub time: Duration,
    /// The length of a slice.
    pub slice: Duration,
    /// Separate processors for clients and servers.
    pub cpu_partition: Option<CpuPartition>,
}

/// The results of comparisons on one engine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Comparisons.
    pub(super) all: u64,
    /// Called different, correctly or not.
    pub(super) called: u64,
    /// Called in the wrong direction.
    pub(super) reversed: u64,
    /// Without a verdict, because the client was saturated.
    pub(super) client_full: u64,
    /// Comparisons whose true value is known. Between two servers that are not restarted it is not: each start is faster or slower
    /// for its whole life, and the verdict is of these starts.
    pub(super) known: u64,
    /// Intervals that contain the true value.
    pub(super) covered: u64,
    /// Comparisons that other processes disturbed.
    pub(super) disturbed: u64,
    /// Undisturbed ones whose true value is known, and those of them whose interval contains the true value.
    pub(super) quiet: u64,
    pub(super) covered_quiet: u64,
    /// The sums of the smallest detectable differences, of the true ones, and of what the measured ones exceed these by,
    /// as logarithms.
    pub(super) detectable: f64,
    pub(super) truth: f64,
    pub(super) deviation: f64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.called += other.called;
        self.reversed += other.reversed;
        self.client_full += other.client_full;
        self.known += other.known;
        self.covered += other.covered;
        self.disturbed += other.disturbed;
        self.quiet += other.quiet;
        self.covered_quiet += other.covered_quiet;
        self.detectable += other.detectable;
        self.truth += other.truth;
        self.deviation += other.deviation;
    }

    /// Comparisons that may have a verdict. If the client was saturated there is none, as in any run.
    pub(super) fn judged(&self) -> u64 {
        self.all - self.client_full
    }
}

/// The context of comparisons.
pub(super) struct Ground<'a> {
    pub(super) engine: &'a Engine,
    pub(super) plan: &'a Plan,
    pub(super) cancel: &'a AtomicBool,
}

impl Ground<'_> {
    /// Compares a server with itself, with each number of clients. The second target is slower by `effect`.
    pub(super) fn compare(
        &self,
        server: Option<&Server>,
        effect: f64,
        number: u64,
    ) -> Result<Vec<(u64, Tally)>> {
        let folder = tempfile::tempdir().map_err(|e| {
            Error::new(ErrorKind::Environment, format!("no temporary folder could be made: {e}"))
        })?;
        let url = match server {
            Some(server) => TargetUrl::parse(server.url())?,
            None => TargetUrl::parse(&format!(
                "{}:{}",
                self.engine.name,
                folder.path().join("selftest.db").display()
            ))?,
        };
        let experiment = self.experiment()?;
        let spec = RunSpec {
            duration_ns: Some(self.plan.time.as_nanos() as u64),
            records: Some(self.plan.records.unwrap_or(RECORDS)),
            ..self.spec(experiment, self.engine.name, mix(number, effect))?
        };
        let added = Arc::default();
        // The first target too, without additions, which are counted apart: what the interceptor itself takes is no part of the
        // difference.
        let target = |at: usize, effect: f64, added: &Arc<Added>| -> Result<Target> {
            let (driver, facts, skip_reason) = open_one(&url, None)?;
            let driver = self.slowed(driver, effect, added);
            let name = format!("{}#{}", self.engine.name, at + 1);
            Ok(Target { claims: at == 0, skip_reason, ..Target::new(name, driver, facts) })
        };
        let mut both = [target(0, 0.0, &Arc::default())?, target(1, effect, &added)?];
        let plan = RunPlan::draft(experiment, spec, &[false; 2])?;
        self.judge(NewRun::new(plan), &mut both, &added, effect)
    }

    /// Compares two servers that are started for it, as a run of two `up:` targets with this budget does.
    pub(super) fn compare_separate(
        &self,
        effect: f64,
        number: u64,
        reporter: &dyn Reporter,
    ) -> Result<Vec<(u64, Tally)>> {
        let experiment = self.experiment()?;
        let url = self.engine.url();
        let spec = RunSpec {
            records: self.plan.records,
            budget_ns: Some(self.plan.budget.as_nanos() as u64),
            ..self.spec(experiment, &url, mix(number, effect))?
        };
        let plan = RunPlan::draft(experiment, spec, &[false; 2])?;
        let mut opened = open(&[url.clone(), url], &OpenOptions::of(&plan, None, None), reporter)?;
        let added: Arc<Added> = Arc::default();
        // The first target too, with additions counted apart, as where both targets are one server.
        opened.targets = opened
            .targets
            .into_iter()
            .zip([(0.0, &Arc::default()), (effect, &added)])
            .map(|(target, (effect, added))| Target {
                driver: self.slowed(target.driver, effect, added),
                second: target.second.map(|second| SecondInstance {
                    driver: self.slowed(second.driver, effect, &Arc::default()),
                    ..second
                }),
                ..target
            })
            .collect();
        let free = Free { rounds: true, restarts: true, ..Free::default() };
        let new = NewRun { free, ..NewRun::new(plan) };
        let judged = self.judge(new, &mut opened.targets, &added, effect);
        opened.close(reporter);
        judged
    }

    fn experiment(&self) -> Result<&'static Experiment> {
        registry::find(if self.plan.writes { "point-write" } else { "point-read" })
    }

    /// The driver, slower by `effect`.
    fn slowed(&self, driver: Box<dyn Driver>, effect: f64, added: &Arc<Added>) -> Box<dyn Driver> {
        doubling::slowed(driver, self.plan.writes, effect, added)
    }

    /// Makes the run, and compares its verdicts with what was added to the second target.
    fn judge(
        &self,
        new: NewRun<'_>,
        targets: &mut [Target],
        added: &Added,
        effect: f64,
    ) -> Result<Vec<(u64, Tally)>> {
        let info = new.plan.experiment.info;
        let mut truths: BTreeMap<u64, BTreeMap<u32, f64>> = BTreeMap::new();
        let run = self.run(new, targets, &mut |trial, cell| {
            if (cell.target, cell.aa_control) != (1, false) {
                return Ok(());
            }
            // The mean addition to a request, during warm-up too, is that of the measured requests.
            let total = added.nanos.swap(0, Ordering::Relaxed);
            let requests = added.requests.swap(0, Ordering::Relaxed).max(1);
            let Outcome::Measured(measured) = &trial.outcome else { return Ok(()) };
            let clients = cell.axes.number("clients")?;
            // The time of all clients.
            let time = measured.elapsed_ns.max(1) * clients;
            let share = total as f64 / requests as f64 * measured.completed as f64 / time as f64;
            if measured.slices > 0 {
                truths.entry(clients).or_default().insert(trial.round, (1.0 - share.min(0.99)).ln());
            }
            Ok(())
        })?;
        let is_known = !self.plan.separate || run.header.spec.restarts > 0;
        let is_disturbed = disturbed(&run);
        let is_quiet = is_known && !is_disturbed;
        let summary = analyse(&run, Some(info));
        let speed = summary.verdicts.iter().filter(|verdict| verdict.primary);
        let judged: Vec<(u64, Tally)> = speed
            .map(|verdict| {
                let clients = verdict.at.number("clients")?;
                let truths = truths.get(&clients).map(BTreeMap::values);
                let truths: Vec<f64> = truths.into_iter().flatten().copied().collect();
                let truth = truths.iter().sum::<f64>() / truths.len().max(1) as f64;
                // The first target against the second: faster by what slowed the second down.
                let Some((low, high)) = verdict.ratio.and_then(kurabe_report::finding::Estimate::ends) else {
                    return Err(Error::new(ErrorKind::Internal, format!("no interval: {:?}", verdict.why)));
                };
                let covered = u64::from(is_known && low.ln() <= -truth && -truth <= high.ln());
                let called = matches!(verdict.result, Decision::Above | Decision::Below);
                let tally = Tally {
                    all: 1,
                    called: u64::from(called),
                    client_full: u64::from(matches!(verdict.why, Some(Why::ClientBound { .. }))),
                    reversed: u64::from(effect > 0.0 && verdict.result == Decision::Below),
                    known: u64::from(is_known),
                    covered,
                    disturbed: u64::from(is_disturbed),
                    quiet: u64::from(is_quiet),
                    covered_quiet: covered * u64::from(is_quiet),
                    detectable: verdict.smallest_detectable.unwrap_or(0.0).ln_1p(),
                    truth: -truth,
                    deviation: verdict.ratio.map_or(1.0, |ratio| ratio.value).ln() + truth,
                };
                Ok((clients, tally))
            })
            .collect::<Result<_>>()?;
        if judged.is_empty() {
            return Err(Error::new(ErrorKind::Internal, "two targets were measured and not compared"));
        }
        Ok(judged)
    }

    fn spec(&self, experiment: &Experiment, target: &str, seed: u64) -> Result<RunSpec> {
        let info = experiment.info;
        let mut axes = info.baseline(&[])?.alone();
        let clients = self.plan.clients.iter().map(|clients| AxisValue::Number(*clients));
        axes.insert("clients".to_owned(), clients.collect());
        Ok(RunSpec {
            axes,
            operations: info.operation_names(),
            rounds: self.plan.rounds,
            seed,
            slice_ns: Some(self.plan.slice.as_nanos() as u64),
            ..RunSpec::new(info.name, [target; 2])
        })
    }

    /// Makes a run as any other. `each` gets each trial at its end, with its cell.
    fn run(
        &self,
        new: NewRun<'_>,
        targets: &mut [Target],
        each: &mut dyn FnMut(&TrialRecord, &CellRecord) -> Result<()>,
    ) -> Result<Run> {
        let monitor = Monitor::new();
        // No interference check and no reruns: the test is about the verdict on any measurement.
        let conditions = Conditions {
            cancel: self.cancel,
            observer: Some(&monitor),
            cpu_partition: self.plan.cpu_partition.as_ref(),
            ..Conditions::default()
        };
        let mut comparison = Comparison { separate: self.plan.separate, cells: Vec::new(), each };
        let provenance = Provenance { machine: machine_facts(), ..Provenance::default() };
        let new = NewRun { provenance, ..new };
        let run = kurabe_engine::run(new, targets, &conditions, &mut comparison)?;
        run.filter(Run::is_complete).ok_or_else(|| Error::new(ErrorKind::Interrupted, "stopped by the user"))
    }
}

/// Takes cells out of the plan of a comparison, and gives its trials to a function.
struct Comparison<'a> {
    separate: bool,
    cells: Vec<CellRecord>,
    each: &'a mut dyn FnMut(&TrialRecord, &CellRecord) -> Result<()>,
}

impl Listener for Comparison<'_> {
    fn event(&mut self, event: Event<'_>) -> Result<()> {
        let Event::TrialEnds { record } = event else { return Ok(()) };
        (self.each)(record, &self.cells[record.cell])
    }

    fn start(&mut self, plan: &mut RunPlan, _: Option<&Fit>, _: &[Target]) -> Result<Start> {
        plan.allow_rewrites();
        if !self.separate {
            // The A/A control of the second target would use the same counter of additions.
            plan.retain(|cell| !cell.aa_control || cell.target == 0);
        }
        self.cells = plan.records();
        Ok(Start::Measure { warnings: Vec::new() })
    }
}

/// A separate seed for each comparison.
fn mix(number: u64, effect: f64) -> u64 {
    kurabe_stats::mix(number, effect.to_bits()) % 1_000_000_000
}

/// Whether other processes disturbed a comparison: they used a tenth of the processors' time, or the hypervisor stole a
/// twentieth, over all trials. A single trial is too short for counters with a resolution of a hundredth of a second.
fn disturbed(run: &Run) -> bool {
    let seen = run.trials.iter().filter_map(|trial| match &trial.outcome {
        Outcome::Measured(measured) => measured.observed.as_deref().or(measured.observed_group.as_deref()),
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
