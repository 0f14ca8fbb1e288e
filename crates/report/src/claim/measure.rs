//! The metrics that claims are about: those of reports, and some that follow from what was recorded beside them.

use crate::cell::CellResult;
use crate::metrics::Rounds;
use crate::trials::latest;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::metric::{COMMON, Source, Unit};
use kurabe_core::run::{Measurement, Outcome, Run};
use kurabe_core::sort;
use kurabe_core::stats_probe::{Counter, WaitState};

/// The share of the server's CPU time that samples of its sessions show.
pub(super) const SAMPLED_CPU: &str = "sampled CPU share";
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
    let same = |record: &kurabe_core::run::CellRecord| {
        record.target == cell.target_index && record.axes == cell.axes && !record.aa_control
    };
    let Some(index) = run.header.cells.iter().position(same) else { return Rounds::new() };
    let trials = latest(run);
    let trials = trials.get(&(index, cell.operation.as_str())).into_iter().flatten();
    let value = |(round, trial): (&u32, &&kurabe_core::run::TrialRecord)| match &trial.outcome {
        Outcome::Measured(measured) => Some((*round, derive(measured, cell)?)),
        Outcome::Failed { .. } => None,
    };
    sort::btree_map(trials.filter_map(value))
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
