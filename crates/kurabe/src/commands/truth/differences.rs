//! Differences of a known size, and none: the same server as two targets, one of which may be slower by what is added to
//! each of its requests.
//!
//! The truth is not what was asked for but what was added: each request's addition is measured by the same clock as the
//! trial, so that a round's true ratio is the trial's time without all additions ÷ its time.

use super::start;
use crate::exit::{self, Exit};
use crate::machine;
use crate::output::Output;
use crate::targets::open_one;
use kurabe_core::around::{Around, Hook};
use kurabe_core::axis::AxisValue;
use kurabe_core::driver::{Driver, Prepared, Session};
use kurabe_core::experiment::Experiment;
use kurabe_core::run::{Outcome, Run, RunEnd, RunHeader, RunSpec, TargetRecord, TrialRecord};
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result, units};
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
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rounds of each comparison.
const ROUNDS: u32 = 10;
/// Records in the store: read in no time, loaded in less.
const RECORDS: u64 = 500;
/// At most so many of those without a difference may be called different, …
const WRONG: f64 = 0.05;
/// … at least so many of those with one must be found, where the machine is quiet, …
const FOUND: f64 = 0.9;
/// … and so many intervals must hold the truth. With a few hundred, chance alone takes up to three in a hundred.
const COVERED: f64 = 0.92;

/// What is asked for.
pub(super) struct Plan {
    /// Comparisons without a difference, and as many with one.
    pub(super) comparisons: u64,
    /// The difference: 0.05 makes one side 5 % slower.
    pub(super) effect: f64,
    /// Each trial's measured phase.
    pub(super) time: Duration,
}

/// What came out of comparisons on one engine.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Comparisons.
    all: u64,
    /// Called different, rightly or not.
    called: u64,
    /// Called the wrong way round.
    reversed: u64,
    /// Intervals that hold the truth.
    covered: u64,
    /// Rounds in which the machine worked for others.
    disturbed: u64,
    /// The sums of the least differences that could have been seen, and of true ones, as logarithms.
    detectable: f64,
    truth: f64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.called += other.called;
        self.reversed += other.reversed;
        self.covered += other.covered;
        self.disturbed += other.disturbed;
        self.detectable += other.detectable;
        self.truth += other.truth;
    }
}

pub(super) fn differences(
    plan: &Plan,
    engines: &[&'static str],
    cancel: &AtomicBool,
    output: &Output,
) -> Exit {
    let mut tallies: Vec<(&str, Tally, Tally)> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    let mut grounds: Vec<(Ground<'_>, Option<Server>)> = Vec::new();
    for engine in engines {
        match start(engine, output) {
            Ok(server) => {
                grounds
                    .push((Ground { engine, time: plan.time, cancel, per_request: Duration::ZERO }, server));
                tallies.push((engine, Tally::default(), Tally::default()));
            }
            Err(error) => left_out.push(format!("{engine}: {error}")),
        }
    }
    // With and without in turn, engine by engine, so that what the machine does meanwhile meets them all alike.
    'all: for number in 0..plan.comparisons {
        for (at, (ground, server)) in grounds.iter_mut().enumerate() {
            for effect in [0.0, plan.effect] {
                // The comparisons are shared out among the engines.
                if number % engines.len() as u64 != at as u64 {
                    continue;
                }
                match ground.compare(server.as_ref(), effect, number) {
                    Ok(tally) if effect > 0.0 => tallies[at].2.add(&tally),
                    Ok(tally) => tallies[at].1.add(&tally),
                    Err(_) if cancel.load(Ordering::SeqCst) => break 'all,
                    Err(error) => {
                        let why = format!("{}: {error}", ground.engine);
                        if !left_out.contains(&why) {
                            output.warning(&why);
                            left_out.push(why);
                        }
                    }
                }
            }
        }
        if (number + 1) % 10 == 0 {
            output.note(&format!("{} of {} pairs of comparisons", number + 1, plan.comparisons));
        }
    }
    for (_, server) in grounds {
        if let Some(Err(error)) = server.map(Server::stop) {
            output.warning(&error.to_string());
        }
    }
    let (mut none, mut some) = (Tally::default(), Tally::default());
    for (_, without, with) in &tallies {
        none.add(without);
        some.add(with);
    }
    output.result(&table(plan, &tallies, &none, &some, &left_out));
    if cancel.load(Ordering::SeqCst) {
        return exit::INTERRUPTED;
    }
    if holds(&none, &some) { exit::DONE } else { exit::INTERNAL }
}

/// Whether what must hold on any machine does. That all are found needs a quiet one, and is told and not asked for.
fn holds(none: &Tally, some: &Tally) -> bool {
    let covered = (none.covered + some.covered) as f64;
    // With few comparisons one that is wrong is no proof: 5 % and twice what chance may add.
    let all = none.all as f64;
    let chance = 2.0 * (WRONG * (1.0 - WRONG) * all).sqrt();
    none.all > 0
        && some.all > 0
        && none.called as f64 <= WRONG * all + chance
        && some.reversed == 0
        && covered >= COVERED * (none.all + some.all) as f64 - 1.0
}

/// Where comparisons are made.
struct Ground<'a> {
    engine: &'static str,
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

impl Ground<'_> {
    /// Makes one comparison of a server with itself, the second target slower by `effect`, and looks what is said of it.
    fn compare(&mut self, server: Option<&Server>, effect: f64, number: u64) -> Result<Tally> {
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
        let suspects = run.trials.iter().filter(|trial| match &trial.outcome {
            Outcome::Measured(measured) => kurabe_report::attribution::suspect(measured).is_some(),
            Outcome::Failed { .. } => false,
        });
        let disturbed: std::collections::BTreeSet<u32> = suspects.map(|trial| trial.round).collect();
        let called = matches!(verdict.result, VerdictResult::Faster | VerdictResult::Slower);
        Ok(Tally {
            all: 1,
            called: u64::from(called),
            reversed: u64::from(effect > 0.0 && verdict.result == VerdictResult::Slower),
            covered: u64::from(low.ln() <= -truth && -truth <= high.ln()),
            disturbed: disturbed.len() as u64,
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
        let target = Target { name: self.engine.to_owned(), driver, facts, claims: true, refused };
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

/// What was found, as Markdown.
fn table(
    plan: &Plan,
    tallies: &[(&str, Tally, Tally)],
    none: &Tally,
    some: &Tally,
    left_out: &[String],
) -> String {
    let percent =
        |logarithm: f64, all: u64| format!("{:.1} %", (logarithm / all.max(1) as f64).exp_m1() * 100.0);
    let of = |part: u64, all: u64| format!("{part} of {all}");
    let mut text = String::from(
        "| engine | none planted: called different | planted: found | planted, as measured | interval holds the truth | could \
         have been seen | rounds disturbed |\n|---|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut row = |name: &str, without: &Tally, with: &Tally| {
        let all = without.all + with.all;
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} |",
            of(without.called, without.all),
            of(with.called - with.reversed, with.all),
            percent(with.truth, with.all),
            of(without.covered + with.covered, all),
            percent(without.detectable + with.detectable, all),
            of(without.disturbed + with.disturbed, all * u64::from(ROUNDS)),
        );
    };
    for (engine, without, with) in tallies.iter().filter(|(_, without, _)| without.all > 0) {
        row(engine, without, with);
    }
    row("all", none, some);
    for why in left_out {
        let _ = writeln!(text, "- left out: {why}");
    }
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let found = share(some.called - some.reversed, some.all);
    if found < FOUND {
        let _ = writeln!(
            text,
            "- fewer than {:.0} % of the planted differences were found: on this machine, as it was, trials of {} are too noisy",
            FOUND * 100.0,
            units::time(plan.time)
        );
    }
    let _ = writeln!(
        text,
        "\n{} of {} without a difference called different, {} of {} planted differences of {:.1} % found within {ROUNDS} rounds, {} of {} \
         intervals hold the truth; trials of {}",
        none.called,
        none.all,
        some.called - some.reversed,
        some.all,
        plan.effect * 100.0,
        none.covered + some.covered,
        none.all + some.all,
        units::time(plan.time)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_hold_fails_where_it_does_not() {
        let none = Tally { all: 200, called: 8, covered: 195, ..Tally::default() };
        let some = Tally { all: 200, called: 190, covered: 191, ..Tally::default() };
        assert!(holds(&none, &some));
        assert!(!holds(&Tally { called: 25, ..none }, &some));
        assert!(!holds(&none, &Tally { reversed: 1, ..some }));
        assert!(!holds(&none, &Tally { covered: 150, ..some }));
        assert!(!holds(&Tally::default(), &some));
    }
}
