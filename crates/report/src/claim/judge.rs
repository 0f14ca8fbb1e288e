//! The answers to the tests of a claim, from a run.

use crate::cell::{CellResult, Status};
use crate::claim::{Part, Reason, Side, Test};
use crate::metrics::{Rounds, interval, mean_of, samples};
use crate::results::latest;
use crate::rule::Rule;
use crate::summary::Summary;
use kurabe_core::axis::AxisValue;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::metric::{COMMON, DATA_RATE, Source, Unit};
use kurabe_core::run::{Measurement, Run};
use kurabe_core::sort;
use kurabe_core::stats_probe::{Counter, WaitState};
use kurabe_core::target::{TargetUrl, UP};
use kurabe_stats::{Decision, Interval, IntervalSettings, PairedRatio};
use std::collections::BTreeMap;

/// Throwaway servers in whose place others are started where they are not installed: as a target names them, the other one,
/// and their own name.
const STAND_INS: [(&str, &str, &str); 2] =
    [("mongodb", "FerretDB", "MongoDB"), ("couchdb", "PouchDB Server", "CouchDB")];

/// The answer to each test, for each pair of cells that it compares. The intervals hold together with 95 % confidence,
/// also over all planned analyses of the run. They are of what the run sampled: its servers as they ran, or any start. A run
/// that is not complete is judged after its next planned analysis only.
pub fn judge(run: &Run, summary: &Summary, tests: &[Test]) -> Vec<Part> {
    let judge = Judge { run, rule: Rule::of(run), summary };
    let compared: Vec<(&Test, Vec<Cells<'_>>)> =
        tests.iter().map(|test| (test, cells(summary, test))).collect();
    let has_results = |cells: &&Cells<'_>| cells.all().all(|cell| cell.status == Status::Ok);
    let count = compared.iter().flat_map(|(_, cells)| cells).filter(has_results).count() as u32;
    let settings = judge.rule.settings(IntervalSettings::default().for_comparisons(count.max(1)));
    let mut parts = Vec::new();
    for (test, cells) in &compared {
        if cells.is_empty() {
            parts.push(Part::not_testable("", test, Reason::NoCell));
        }
        parts.extend(cells.iter().map(|cells| judge.part(test, cells, &settings)));
    }
    parts
}

/// The cells of one comparison.
struct Cells<'a> {
    subject: &'a CellResult,
    /// `None` if the run has no such cell.
    baseline: Option<&'a CellResult>,
}

impl<'a> Cells<'a> {
    fn all(&self) -> impl Iterator<Item = &'a CellResult> {
        [self.subject].into_iter().chain(self.baseline)
    }
}

/// The cells that a test compares.
fn cells<'a>(summary: &'a Summary, test: &Test) -> Vec<Cells<'a>> {
    let candidates = || summary.cells.iter().filter(|cell| !cell.aa_control);
    let matches = |cell: &CellResult, side: &Side| {
        side.target.is_none_or(|target| target == cell.target.at())
            && side.axes.iter().all(|(axis, value)| cell.axes.get(axis) == Some(value))
    };
    let others = |cell: &CellResult| -> BTreeMap<String, AxisValue> {
        let values = cell.axes.values().clone().into_iter();
        values.filter(|(axis, _)| !test.subject.axes.contains_key(axis)).collect()
    };
    let operation = |cell: &&CellResult| test.operation.as_ref().is_none_or(|name| *name == cell.operation);
    let subjects = candidates().filter(operation).filter(|cell| matches(cell, &test.subject));
    let pair = |subject: &'a CellResult| {
        let baseline = test.baseline.as_ref().and_then(|side| {
            let target = side.target.unwrap_or(subject.target.at());
            candidates().find(|cell| {
                cell.target.at() == target
                    && cell.operation == subject.operation
                    && matches(cell, side)
                    && others(cell) == others(subject)
            })
        });
        Cells { subject, baseline }
    };
    subjects.map(pair).collect()
}

struct Judge<'a> {
    run: &'a Run,
    summary: &'a Summary,
    rule: Rule,
}

impl Judge<'_> {
    fn part(&self, test: &Test, cells: &Cells<'_>, settings: &IntervalSettings) -> Part {
        let mut part = Part::not_testable(self.targets(test, cells), test, "");
        part.what = self.what(test, cells);
        if test.baseline.is_some() && cells.baseline.is_none() {
            part.why = Some(Reason::NoBaseline);
            return part;
        }
        if let Some(why) = cells.all().find_map(|cell| self.stands_in(cell)) {
            part.why = Some(why);
            return part;
        }
        // A run that was stopped may not have reached a cell.
        let stopped = self.summary.next_analysis.is_some();
        let lacks = |cell: &CellResult| match cell.status {
            Status::Ok => false,
            Status::Failed => true,
            Status::Unavailable => !stopped || self.is_refused(cell),
        };
        if let Some(lacking) = cells.all().find(|cell| lacks(cell)) {
            let why = lacking.reason.clone().unwrap_or_default();
            if lacking.status == Status::Failed {
                (part.answer, part.failed) = (Decision::Undecided, true);
                part.why = Some(Reason::TrialFailed { why });
            } else {
                part.why = Some(Reason::Other(why));
            }
            return part;
        }
        (part.answer, part.why) = (Decision::Undecided, None);
        part.notes = self.notes(test, cells);
        if let Some(next) = self.summary.next_analysis {
            part.why = Some(Reason::NotComplete { next });
            return part;
        }
        if cells.all().any(CellResult::is_overloaded) {
            part.why = Some(Reason::RateNotKept);
            return part;
        }
        if cells.all().any(CellResult::is_generator_late) {
            part.why = Some(Reason::GeneratorLate);
            return part;
        }
        match cells.baseline {
            Some(baseline) => self.compare(test, [cells.subject, baseline], settings, &mut part),
            None => self.value(test, cells.subject, settings, &mut part),
        }
        if part.found.is_none() && part.why.is_none() {
            part.answer = Decision::NotTestable;
            part.why = Some(Reason::NotMeasured { metric: test.metric.clone() });
        } else if part.answer == Decision::Undecided && part.why.is_none() {
            part.why = Some(Reason::Straddles);
        }
        part
    }

    /// Why a throwaway server decides nothing of the engine that the claim names: another one was started in its place.
    fn stands_in(&self, cell: &CellResult) -> Option<Reason> {
        let url = self.summary.spec.targets.get(cell.target.at())?;
        let found =
            STAND_INS.iter().find(|(named, other, _)| starts(url, named) && cell.engine.starts_with(other));
        found.map(|(_, other, engine)| Reason::StandIn { other, engine })
    }

    /// Whether the target cannot do what the cell needs.
    fn is_refused(&self, cell: &CellResult) -> bool {
        let record = self.run.header.cells.get(cell.record);
        record.is_some_and(|record| record.refusal(&cell.operation).is_some())
    }

    /// The ratio of two cells, round by round.
    fn compare(&self, test: &Test, cells: [&CellResult; 2], settings: &IntervalSettings, part: &mut Part) {
        let [a, b] = cells.map(|cell| rounds(self.run, cell, &test.metric));
        let common: Vec<u32> = a.keys().filter(|round| b.contains_key(round)).copied().collect();
        if common.is_empty() {
            return;
        }
        let spec = &self.summary.spec;
        let samples =
            |all: &Rounds| samples(common.iter().map(|round| (*round, all[round])), test.unit, spec);
        let [a, b] = [&a, &b].map(samples);
        part.rounds = common.len() as u32;
        let Some(ratio) = PairedRatio::from_rounds(&a, &b, mean_of(test.unit), settings) else {
            part.why = Some(Reason::NotPositive);
            return;
        };
        part.found = Some(ratio.estimate);
        let limits = limits(test, cells);
        answer(part, limits);
    }

    fn value(&self, test: &Test, cell: &CellResult, settings: &IntervalSettings, part: &mut Part) {
        // A value is that of the report.
        let found = cell.metric(&test.metric).map(|found| found.by_round.clone());
        let rounds = found.unwrap_or_else(|| rounds(self.run, cell, &test.metric));
        part.rounds = rounds.len() as u32;
        let values = samples(rounds, test.unit, &self.summary.spec);
        part.found = interval(&values, test.unit, settings);
        // Other load makes nothing faster. Paired trials share it.
        let disturbed = cell.disturbed.is_some() && depends_on_load(test);
        let no_low = disturbed && test.unit != Unit::PerSecond && test.metric != DATA_RATE.name;
        let no_high = disturbed && test.unit != Unit::Nanoseconds;
        answer(part, Limits { no_low, no_high });
        if disturbed && part.answer == Decision::Undecided {
            part.notes.retain(|note| *note != Reason::Disturbed);
            part.why = Some(Reason::Disturbed);
        }
    }

    /// What differs between the sides beside what the test varies.
    fn notes(&self, test: &Test, cells: &Cells<'_>) -> Vec<Reason> {
        let mut notes = Vec::new();
        if depends_on_load(test) && cells.all().any(|cell| cell.disturbed.is_some()) {
            notes.push(Reason::Disturbed);
        }
        let Some(baseline) = cells.baseline else { return notes };
        let sides = [cells.subject, baseline];
        let writes = self.summary.labels.writes(&cells.subject.operation);
        if writes && cells.subject.durability != baseline.durability {
            let class = |cell: &CellResult| crate::wording::class_name(cell.durability);
            notes.push(Reason::DurabilityDiffers { first: class(sides[0]), second: class(sides[1]) });
        }
        let limits = limits(test, sides);
        if limits.no_low || limits.no_high {
            let full = sides.into_iter().filter(|cell| cell.is_lower_bound());
            notes.push(Reason::ClientSaturated {
                targets: full.map(|cell| cell.target.to_string()).collect(),
            });
        }
        notes
    }

    fn targets(&self, test: &Test, cells: &Cells<'_>) -> String {
        let labels = &self.summary.labels;
        let named = |cell: &CellResult| labels.targets[cell.target.at()].clone();
        match (cells.baseline, test.baseline.as_ref().and_then(|side| side.target)) {
            (Some(baseline), _) if baseline.target != cells.subject.target => {
                format!("{} : {}", named(cells.subject), named(baseline))
            }
            // The run may lack the baseline's cell.
            (None, Some(target)) if target != cells.subject.target.at() => {
                let other = labels.targets.get(target).cloned().unwrap_or_default();
                format!("{} : {other}", named(cells.subject))
            }
            _ => named(cells.subject),
        }
    }

    /// What is compared: operation and metric, the values of the axes that the test names, and those that it does not.
    fn what(&self, test: &Test, cells: &Cells<'_>) -> String {
        let labels = &self.summary.labels;
        let value = |axis: &str, side: &Side| {
            let value = side.axes.get(axis)?;
            Some(labels.axis(axis).map_or_else(|| value.to_string(), |axis| axis.show(value)))
        };
        let named = test.subject.axes.keys().filter_map(|axis| {
            let subject = value(axis, &test.subject)?;
            let baseline = test.baseline.as_ref().and_then(|side| value(axis, side));
            let baseline = baseline.filter(|baseline| *baseline != subject);
            let baseline = baseline.map(|baseline| format!(" : {baseline}")).unwrap_or_default();
            Some(format!("{axis} {subject}{baseline}"))
        });
        let others =
            labels.axes.iter().filter(|axis| axis.varies() && !test.subject.axes.contains_key(&axis.name));
        let others = others.filter_map(|axis| Some(axis.name_value(cells.subject.axes.get(&axis.name)?)));
        let parts: Vec<String> = [format!("{} {}", cells.subject.operation, test.metric)]
            .into_iter()
            .chain(named)
            .chain(others)
            .collect();
        parts.join(", ")
    }
}

/// Whether a target starts a throwaway server of this name, by itself or as the database of its application.
fn starts(url: &str, named: &str) -> bool {
    TargetUrl::parse(url).is_ok_and(|url| {
        let server = url.path.split('@').next();
        url.scheme == UP && server == Some(named) || url.options.values().any(|value| starts(value, named))
    })
}

/// Whether a saturated client, or other load, leaves an end of the true value unknown.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    no_low: bool,
    no_high: bool,
}

impl Limits {
    /// The interval with the ends that are known.
    fn of(self, low: f64, high: f64) -> Interval {
        Interval {
            low: if self.no_low { 0.0 } else { low },
            high: if self.no_high { f64::INFINITY } else { high },
        }
    }
}

/// A metric that other load on the machine changes: times, rates, and what sessions wait for. Counts and bytes are not.
fn depends_on_load(test: &Test) -> bool {
    matches!(test.unit, Unit::Nanoseconds | Unit::PerSecond)
        || [DATA_RATE.name, SAMPLED_CPU].contains(&test.metric.as_str())
}

/// Targets are compared as servers, of which a saturated client shows a lower bound only. Values of an axis are compared
/// as an application sees them, with its client.
fn limits(test: &Test, [subject, baseline]: [&CellResult; 2]) -> Limits {
    let rate = match test.unit {
        Unit::PerSecond => true,
        Unit::Nanoseconds => false,
        _ => return Limits::default(),
    };
    if subject.target == baseline.target {
        return Limits::default();
    }
    let [subject, baseline] = [subject.is_lower_bound(), baseline.is_lower_bound()];
    // A server that can do more has a higher rate and a shorter time.
    let (no_high, no_low) = if rate { (subject, baseline) } else { (baseline, subject) };
    Limits { no_low, no_high }
}

/// Sets the answer of a part with a value.
fn answer(part: &mut Part, limits: Limits) {
    let Some(found) = part.found else { return };
    let Some((low, high)) = found.low.zip(found.high) else {
        part.why = Some(Reason::OneRound);
        part.open = true;
        return;
    };
    part.answer = part.claimed.answer(limits.of(low, high));
    // With more rounds the interval approaches the value.
    let at_best = part.claimed.answer(limits.of(found.value, found.value));
    part.open = part.answer == Decision::Undecided && at_best != Decision::Undecided;
}

/// The share of the server's CPU time that samples of its sessions show.
const SAMPLED_CPU: &str = "sampled CPU share";
/// Follows the name of a counter.
const EACH: &str = " per operation";
/// Follows it if the bytes that were stored are known.
const STORED: &str = " per byte stored";

/// The metrics that a claim about this experiment may name, with their units: the experiment's own, those of every
/// experiment, each counter of the server per operation and per byte that was stored, and the share of the server's CPU
/// time that samples of its sessions show.
pub fn metrics(info: &ExperimentInfo) -> Vec<(String, Unit)> {
    let declared = info.metrics.iter().chain(COMMON);
    let declared = declared.filter(|metric| !matches!(metric.source, Source::Scatter(_)));
    let mut all: Vec<(String, Unit)> = Vec::new();
    for metric in declared {
        if !all.iter().any(|(name, _)| name == metric.name) {
            all.push((metric.name.to_owned(), metric.unit));
        }
    }
    let counters = Counter::ALL.into_iter().map(Counter::word);
    all.extend(
        counters.flat_map(|word| {
            [(format!("{word}{EACH}"), Unit::Count), (format!("{word}{STORED}"), Unit::Ratio)]
        }),
    );
    all.push((SAMPLED_CPU.to_owned(), Unit::Share));
    all
}

/// The values of a metric of a cell, by round.
pub(super) fn rounds(run: &Run, cell: &CellResult, metric: &str) -> Rounds {
    if let Some(found) = cell.metric(metric) {
        return found.by_round.clone();
    }
    let Some(derive) = derived(metric) else { return Rounds::new() };
    let trials = latest(run);
    let trials = trials.get(&(cell.record, cell.operation.as_str())).into_iter().flatten();
    sort::btree_map(trials.filter_map(|(round, trial)| Some((*round, derive(trial.measured()?, cell)?))))
}

type Derive = Box<dyn Fn(&Measurement, &CellResult) -> Option<f64>>;

/// How a metric follows from a trial; `None` if it is not one of these.
fn derived(metric: &str) -> Option<Derive> {
    if metric == SAMPLED_CPU {
        return Some(Box::new(|measured, _| sampled_cpu(measured)));
    }
    let (word, per_byte) = match (metric.strip_suffix(EACH), metric.strip_suffix(STORED)) {
        (Some(word), _) => (word, false),
        (_, Some(word)) => (word, true),
        _ => return None,
    };
    let counter = Counter::ALL.into_iter().find(|counter| counter.word() == word)?;
    Some(Box::new(move |measured, cell| {
        let count = measured.observed.as_ref()?.engine.as_ref()?.of(counter)?;
        let operations = measured.completed + if count.warmup { measured.warmup } else { 0 };
        let each = count.value as f64 / (operations as f64).max(1.0);
        let bytes = if per_byte { cell.stored_bytes.filter(|bytes| *bytes > 0)? as f64 } else { 1.0 };
        Some(each / bytes)
    }))
}

/// The sampled number of running sessions times the trial's length, as a share of the CPU time of the server's
/// processes; `None` without samples or CPU time.
fn sampled_cpu(measured: &Measurement) -> Option<f64> {
    let observed = measured.observed.as_ref()?;
    let waits = observed.waits.as_ref().filter(|waits| waits.samples > 0)?;
    let cpu_ns = observed.server_seen().map(|seen| seen.cpu_ns).filter(|cpu_ns| *cpu_ns > 0)?;
    let running = |state: WaitState| matches!(state, WaitState::Running | WaitState::Active);
    let seen: u64 =
        waits.groups.iter().filter(|group| running(group.wait_state)).map(|group| group.seen).sum();
    let sampled_ns = seen as f64 / waits.samples as f64 * observed.wall_ns as f64;
    Some(sampled_ns / cpu_ns as f64)
}
