//! The results of each cell and operation, computed from its trials.

use crate::cell::{
    CellResult, CounterResult, Latency, MetricInfo, OpenLoopResult, SessionShare, Status, Steady, Totals,
    Verified,
};
use crate::group::grouped;
use crate::target::TargetId;
use crate::{attribution, detail, metrics, proof};
use kurabe_core::axis::Cell;
use kurabe_core::error::ErrorKind;
use kurabe_core::load::Load;
use kurabe_core::metric::{Unit, speed};
use kurabe_core::observation::Observation;
use kurabe_core::run::{CellRecord, Measurement, Outcome, OverheadRecord, Run, RunSpec, TrialRecord};
use kurabe_core::sort;
use kurabe_core::stats_probe::{Counter, MAX, WaitGroup};
use kurabe_core::verification::Verification;
use kurabe_stats::steady::{Steadiness, steadiness};
use kurabe_stats::{Histogram, IntervalSettings, median};
use std::collections::BTreeMap;
use std::num::NonZero;

/// All cells × operations of a run, in the order of the header and the spec.
pub(crate) fn figures(run: &Run, metrics: &[MetricInfo]) -> Vec<CellResult> {
    let operations = &run.header.spec.operations;
    let trials = latest(run);
    let none = BTreeMap::new();
    let mut all = Vec::with_capacity(run.header.cells.len() * operations.len());
    for (index, cell) in run.header.cells.iter().enumerate() {
        for operation in operations {
            let rounds = trials.get(&(index, operation.as_str())).unwrap_or(&none);
            let figures = of_cell(run, metrics, (cell, operation), rounds);
            all.push(CellResult { index: all.len(), record: index, ..figures });
        }
    }
    all
}

fn of_cell(
    run: &Run,
    metrics: &[MetricInfo],
    (cell, operation): (&CellRecord, &str),
    rounds: &BTreeMap<u32, &TrialRecord>,
) -> CellResult {
    let target = run.header.targets.get(cell.target);
    let facts = target.map(|target| &target.facts);
    let mut figures = CellResult {
        target: TargetId::new(cell.target, target.map_or("", |target| &target.name)),
        engine: facts.map_or_else(String::new, |facts| facts.engine.clone()),
        version: facts.map_or_else(String::new, |facts| facts.version.clone()),
        axes: cell.axes.clone(),
        operation: operation.to_owned(),
        overhead_ns_per_op: overhead_of(&run.header.overhead, &cell.axes, operation),
        verified: Verified { proven: Some(Verification::default()), mismatches: 0 },
        durability: facts.and_then(|facts| facts.durability),
        stored_bytes: cell.stored_bytes,
        aa_control: cell.aa_control,
        second_instance: cell.second_instance,
        metric: speed(Load::of(&cell.axes)).name,
        ..CellResult::default()
    };
    if let Some(reason) = cell.refusal(operation) {
        figures.reason = Some(reason.to_owned());
        return figures;
    }
    let measured: BTreeMap<u32, &Measurement> =
        rounds.iter().filter_map(|(round, trial)| Some((*round, trial.measured()?))).collect();
    figures.verified.proven = proof::sum(measured.values().map(|measurement| &measurement.verified));
    if let Some(reason) = failure(rounds, &measured, &mut figures.verified.mismatches) {
        figures.status = Status::Failed;
        figures.reason = Some(reason);
    } else if measured.is_empty() {
        figures.reason = Some("not measured: the run ended before it was reached".to_owned());
    } else {
        figures.status = Status::Ok;
        figures.interleaved = NonZero::new(measured.values().filter(|m| m.slices > 0).count() as u32);
        let [measured, compared] = [false, true].map(|interleaved| trials_of(&measured, interleaved));
        figures.metrics =
            metrics::of_cell(metrics, Load::of(&cell.axes), [&compared, &measured], &run.header.spec);
        fill(&mut figures, &compared, &run.header.spec);
        let alone: Vec<f64> =
            measured.values().filter(|m| m.slices == 0).map(|m| m.ops_per_second()).collect();
        let alone = metrics::interval(&alone, Unit::PerSecond, &IntervalSettings::default());
        figures.alone_per_second = alone.filter(|_| figures.interleaved.is_some()).map(|alone| alone.value);
        figures.detail = Some(Box::new(detail::of_cell(&measured, &compared)));
        figures.server_cpu_us_per_op = server_cpu(&measured);
        figures.points = measured.values().next_back().map(|last| last.points.clone()).unwrap_or_default();
        let plans = |trials: &BTreeMap<u32, &Measurement>| {
            trials.values().rev().map(|trial| trial.plans.clone()).find(|plans| !plans.is_empty())
        };
        figures.plans = plans(&measured).or_else(|| plans(&compared)).unwrap_or_default();
        figures.counters = counters(&measured);
        figures.sessions = sessions(&measured);
        figures.attribution = attribution::of_trials(measured.values().copied(), figures.overhead_ns_per_op);
        let disturbed = figures.attribution.as_ref().and_then(|found| found.disturbed.clone());
        figures.disturbed = disturbed.or_else(|| {
            // The interference during most of the trials.
            let mut found: Vec<String> =
                compared.values().filter_map(|m| attribution::disturbed(m)).collect();
            (found.len() * 2 > compared.len()).then(|| found.swap_remove(0))
        });
        figures.steady = of_trials(measured.values().copied());
        figures.observed =
            measured.values().filter_map(|measured| measured.observed.as_deref()).map(bare).collect();
    }
    figures
}

/// The trials that are compared, interleaved ones if there are any, or those that are observed: the continuous ones. All trials
/// if there are none of this kind.
fn trials_of<'a>(
    measured: &BTreeMap<u32, &'a Measurement>,
    interleaved: bool,
) -> BTreeMap<u32, &'a Measurement> {
    let has = |m: &Measurement| (m.slices > 0) == interleaved;
    let any = measured.values().any(|m| has(m));
    sort::btree_map(measured.iter().filter(|(_, m)| !any || has(m)).map(|(round, m)| (*round, *m)))
}

/// An observation without its time series.
fn bare(observed: &Observation) -> Observation {
    Observation { samples: Vec::new(), ..observed.clone() }
}

/// Why a cell has no results although it was tried. One failed trial is enough. An interrupted trial has not failed.
fn failure(
    rounds: &BTreeMap<u32, &TrialRecord>,
    measured: &BTreeMap<u32, &Measurement>,
    mismatches: &mut u64,
) -> Option<String> {
    let failed: Vec<&str> = rounds
        .values()
        .filter_map(|trial| match &trial.outcome {
            Outcome::Failed { kind, reason, mismatches: wrong } if *kind != ErrorKind::Interrupted => {
                *mismatches += wrong;
                Some(reason.as_str())
            }
            _ => None,
        })
        .collect();
    if let Some(first) = failed.first() {
        let tried = failed.len() + measured.len();
        let some = (tried > failed.len()).then(|| format!(" (in {} of {tried} rounds)", failed.len()));
        return Some(format!("{first}{}", some.unwrap_or_default()));
    }
    let empty = measured.iter().find(|(_, measurement)| measurement.ops_per_second() <= 0.0)?;
    Some(format!("no transaction was completed in round {}", empty.0 + 1))
}

fn fill(figures: &mut CellResult, measured: &BTreeMap<u32, &Measurement>, spec: &RunSpec) {
    figures.rounds = measured.len() as u32;
    let by_round = measured.iter().map(|(round, m)| (*round, m.ops_per_second()));
    let rates = metrics::samples(by_round, Unit::PerSecond, spec);
    figures.ops_per_second = metrics::interval(&rates, Unit::PerSecond, &IntervalSettings::default());
    let mut service = Histogram::new();
    for measurement in measured.values() {
        service.merge(&measurement.service);
    }
    let sum = |of: fn(&Measurement) -> u64| measured.values().map(|one| of(one)).sum::<u64>();
    let (completed, failed, elapsed_ns) = (sum(|m| m.completed), sum(|m| m.failed), sum(|m| m.elapsed_ns));
    let verify_ns: f64 = measured.values().map(|m| m.verify_ns_per_op * m.completed as f64).sum();
    (figures.failed_operations, figures.retries) = (failed, sum(|m| m.retries));
    figures.latency_us = latency(&service);
    let clients = measured.values().map(|m| m.clients).max().unwrap_or(1);
    figures.totals = Some(Box::new(Totals { clients, completed, elapsed_ns, service }));
    figures.open_loop = open_loop(measured);
    if completed > 0 {
        let (cpu_ns, completed) = (sum(|m| m.client_cpu_ns) as f64, completed as f64);
        figures.client_cpu_us_per_op = Some(cpu_ns / 1e3 / completed);
        figures.verify_ns_per_op = Some(verify_ns / completed);
        // A job checks its rows while it works, which is not timed apart. A time of checks includes what a busy machine
        // delays it, which is no CPU time.
        figures.verify_share = (cpu_ns > 0.0 && verify_ns > 0.0).then(|| (verify_ns / cpu_ns).min(1.0));
    }
}

/// The server's CPU time per transaction in microseconds, if its processes were observed.
fn server_cpu(measured: &BTreeMap<u32, &Measurement>) -> Option<f64> {
    let seen =
        measured.values().filter_map(|m| Some((m.observed.as_ref()?.server_seen()?.cpu_ns, m.completed)));
    let (cpu_ns, completed) =
        seen.fold((0, 0), |(cpu, all), (cpu_ns, completed)| (cpu + cpu_ns, all + completed));
    (completed > 0).then(|| cpu_ns as f64 / 1e3 / completed as f64)
}

fn open_loop(measured: &BTreeMap<u32, &Measurement>) -> Option<OpenLoopResult> {
    let (mut response, mut lag) = (Histogram::new(), Histogram::new());
    let mut rates = Vec::new();
    let mut figures = OpenLoopResult { kept_up: true, ..OpenLoopResult::default() };
    for measurement in measured.values() {
        let open = measurement.open.as_ref()?;
        response.merge(&open.response);
        lag.merge(&open.lag);
        rates.push(open.rate);
        figures.backlog = figures.backlog.max(open.backlog);
        figures.dropped += measurement.dropped;
        figures.offered += measurement.offered;
        figures.kept_up &= measurement.kept_up();
    }
    sort::by(&mut rates, f64::total_cmp);
    figures.due_per_second = *rates.get(rates.len() / 2)?;
    figures.response_us = latency(&response)?;
    figures.dispatch_lag_p99_us = lag.quantile(0.99).map(|ns| ns as f64 / 1e3);
    Some(figures)
}

fn latency(service: &Histogram) -> Option<Latency> {
    let at = |q: f64| service.quantile(q).map(|ns| ns as f64 / 1e3);
    Some(Latency {
        p50: at(0.5)?,
        p90: at(0.9)?,
        p95: at(0.95)?,
        p99: at(0.99)?,
        p999: at(0.999)?,
        max: service.max()? as f64 / 1e3,
    })
}

/// The tool's own overhead for these axis values: of the most specific record of which all match.
pub(crate) fn overhead_of(overhead: &[OverheadRecord], axes: &Cell, operation: &str) -> Option<f64> {
    overhead
        .iter()
        .filter(|record| record.operation == operation)
        .filter(|record| record.axes.values().iter().all(|(axis, value)| axes.get(axis) == Some(value)))
        .max_by_key(|record| record.axes.values().len())
        .map(|record| record.ns_per_op)
}

/// Trials by cell and operation, and by round: the last record of each, since earlier ones were disturbed.
pub(crate) fn latest(run: &Run) -> BTreeMap<(usize, &str), BTreeMap<u32, &TrialRecord>> {
    let mut trials: BTreeMap<(usize, &str), BTreeMap<u32, &TrialRecord>> = BTreeMap::new();
    for trial in &run.trials {
        trials.entry((trial.cell, &trial.operation)).or_default().insert(trial.round, trial);
    }
    trials
}

/// The server's counters over the rounds, if every round reports them.
pub(crate) fn counters(measured: &BTreeMap<u32, &Measurement>) -> Vec<CounterResult> {
    let result = |what: &Counter| {
        let (mut total, mut operations, mut first) = (0, 0, None);
        for measurement in measured.values() {
            let count = measurement.observed.as_ref()?.engine.as_ref()?.of(*what)?;
            total += count.value;
            operations += measurement.completed + if count.warmup { measurement.warmup } else { 0 };
            first.get_or_insert(count);
        }
        let first = first?;
        let per_operation = total as f64 / (operations as f64).max(1.0);
        let (from, scope) = (first.from.clone(), first.scope);
        Some(CounterResult { what: *what, total, per_operation, from, scope })
    };
    Counter::ALL.iter().filter_map(result).collect()
}

/// The wait states of the clients' sessions, as shares of all samples.
pub(crate) fn sessions(measured: &BTreeMap<u32, &Measurement>) -> Vec<SessionShare> {
    let waits = || measured.values().filter_map(|m| m.observed.as_ref()?.waits.as_ref());
    let samples: u64 = waits().map(|waits| waits.sessions).sum();
    let groups = waits().flat_map(|waits| &waits.groups);
    let groups = grouped(groups.map(|group| (WaitGroup { seen: 0, ..group.clone() }, group.seen)));
    let mut groups: Vec<(WaitGroup, u64)> =
        groups.into_iter().map(|(group, seen)| (group, seen.iter().sum())).collect();
    sort::by_key(&mut groups, |(_, seen)| std::cmp::Reverse(*seen));
    groups.truncate(MAX);
    let share = |(group, seen): (WaitGroup, u64)| SessionShare {
        share: seen as f64 / (samples as f64).max(1.0),
        wait_state: group.wait_state,
        state: group.state,
        event: group.event,
        statement: group.statement,
    };
    groups.into_iter().map(share).collect()
}

/// Whether the windows of a cell's trials were steady; `None` if no trial has any.
pub(crate) fn of_trials<'a>(measured: impl Iterator<Item = &'a Measurement>) -> Option<Steady> {
    let mut changes = Vec::new();
    let mut steady = Steady { trials: 0, never: 0, late: 0, change: None };
    for measurement in measured {
        let windows: Vec<f64> = measurement.windows.iter().map(|n| *n as f64).collect();
        let Some(found) = steadiness(&windows) else { continue };
        steady.trials += 1;
        match found {
            Steadiness::Throughout => {}
            Steadiness::From(_) => steady.late += 1,
            Steadiness::Never(change) => {
                steady.never += 1;
                changes.push(change);
            }
        }
    }
    steady.change = median(&changes).filter(|change| change.is_finite());
    (steady.trials > 0).then_some(steady)
}

impl Steady {
    /// Whether most trials were never steady.
    pub fn is_never(&self) -> bool {
        self.never * 2 > self.trials
    }

    /// Whether most trials became steady after a different beginning.
    pub fn is_late(&self) -> bool {
        !self.is_never() && (self.never + self.late) * 2 > self.trials
    }
}
