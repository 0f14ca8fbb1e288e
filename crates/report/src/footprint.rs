//! What each connection costs the server: the slope of what was added over the number of connections, round by round.
//!
//! One difference between a server with a thousand connections and without any holds whatever else it did meanwhile. The
//! slope over several numbers of connections, each paired with the same server just before, does not hold what came
//! once, whether with the first connection or with none.

use crate::figures::latest;
use crate::words::{Axis, Words};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::error::ErrorKind;
use kurabe_core::figure::{MEMORY_ADDED, PROCESSES_ADDED, THREADS_ADDED};
use kurabe_core::observation::ServerUse;
use kurabe_core::run::{CellRecord, Measurement, Outcome, Run};
use kurabe_core::units;
use kurabe_stats::{IntervalSettings, interval_of_median};
use std::collections::BTreeMap;

/// A sentence for each target and combination of the other axes; none where no footprint was measured.
pub(crate) fn sentences(run: &Run, words: &Words) -> Vec<String> {
    let Some(chart) = words.chart_axis() else { return Vec::new() };
    let mut lines: Vec<(usize, Cell)> = Vec::new();
    let mut rounds: Vec<Rounds> = Vec::new();
    // One failed trial, and the cell has no figures.
    let counted = latest(run).into_values().filter(|rounds| {
        rounds.values().all(|trial| match trial.outcome {
            Outcome::Failed { kind, .. } => kind == ErrorKind::Interrupted,
            Outcome::Measured(_) => true,
        })
    });
    for trial in counted.flat_map(BTreeMap::into_values) {
        let Some(cell) = run.header.cells.get(trial.cell).filter(|cell| !cell.repeat) else { continue };
        let (Outcome::Measured(measured), Some(AxisValue::Number(n))) =
            (&trial.outcome, cell.axes.get(&chart.name))
        else {
            continue;
        };
        let Some(added) = Added::of(measured) else { continue };
        let rest = cell.axes.values().iter().filter(|(axis, _)| **axis != chart.name);
        let line = (cell.target, Cell::new(rest.map(|(axis, value)| (axis.clone(), value.clone()))));
        let at = lines.iter().position(|known| *known == line).unwrap_or_else(|| {
            lines.push(line);
            rounds.push(Rounds::new());
            lines.len() - 1
        });
        rounds[at].entry(trial.round).or_default().push((*n as f64, added));
    }
    let mut told: Vec<_> = lines.into_iter().zip(rounds).collect();
    // As the cells stand in the header, whatever their order in the rounds.
    let place = |line: &(usize, Cell)| {
        let of = |cell: &CellRecord| {
            let rest = |(axis, value): (&String, &AxisValue)| cell.axes.get(axis) == Some(value);
            cell.target == line.0 && line.1.values().iter().all(rest)
        };
        run.header.cells.iter().position(of)
    };
    told.sort_by_key(|(line, _)| place(line));
    told.into_iter()
        .filter_map(|((target, cell), rounds)| {
            sentence(words, chart, target, &cell, &rounds, run.header.spec.seed)
        })
        .collect()
}

/// By round: numbers of connections, and what they added.
type Rounds = BTreeMap<u32, Vec<(f64, Added)>>;

#[derive(Clone, Copy)]
struct Added {
    memory: f64,
    processes: f64,
    threads: f64,
    /// Whether the database is in the client.
    embedded: bool,
}

impl Added {
    fn of(measured: &Measurement) -> Option<Self> {
        let of = |name| measured.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
        Some(Self {
            memory: of(MEMORY_ADDED)?,
            processes: of(PROCESSES_ADDED)?,
            threads: of(THREADS_ADDED)?,
            embedded: measured.observed.as_ref().is_some_and(|seen| seen.server == ServerUse::InClient),
        })
    }
}

/// The slope of a least-squares line; with one number of connections, what was added divided by it.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (mx, my) =
        (points.iter().map(|p| p.0).sum::<f64>() / count, points.iter().map(|p| p.1).sum::<f64>() / count);
    let across: f64 = points.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    let along: f64 = points.iter().map(|(x, _)| (x - mx).powi(2)).sum();
    if along > 0.0 { across / along } else { my / mx.max(1.0) }
}

fn sentence(
    words: &Words,
    chart: &Axis,
    target: usize,
    cell: &Cell,
    rounds: &Rounds,
    seed: u64,
) -> Option<String> {
    let slopes = |of: fn(&Added) -> f64| -> Vec<f64> {
        let points = rounds.values();
        points
            .map(|points| slope(&points.iter().map(|(n, added)| (*n, of(added))).collect::<Vec<_>>()))
            .collect()
    };
    let name = words.targets.get(target)?;
    let state = words
        .axes
        .iter()
        .filter(|axis| axis.name != chart.name)
        .filter_map(|axis| cell.get(&axis.name).filter(|_| axis.varies()).map(|value| axis.show(value)));
    let state: Vec<String> = state.collect();
    let state = if state.is_empty() { String::new() } else { format!("{} ", state.join(", ")) };
    let memory = memory(&slopes(|added| added.memory), seed)?;
    let processes = whole("process", "processes", &slopes(|added| added.processes));
    let threads = whole("thread", "threads", &slopes(|added| added.threads));
    let embedded = rounds.values().flatten().any(|(_, added)| added.embedded);
    let whom = if embedded { "this process, which the database is in," } else { "the server" };
    Some(format!("{name}: each {state}connection costs {whom} {memory}, {processes} and {threads}."))
}

/// An interval that goes beyond its centre by this factor says nothing.
const RAGGED: f64 = 20.0;

/// `2.1 MB of memory (2 to 2.2 MB)`.
fn memory(slopes: &[f64], seed: u64) -> Option<String> {
    let least = slopes.iter().copied().min_by(f64::total_cmp)?;
    let most = slopes.iter().copied().max_by(f64::total_cmp)?;
    let estimate = interval_of_median(slopes, &IntervalSettings::new(seed)).ok();
    // Less than a byte is what rounding leaves; and rounds that differ by factors show nothing.
    let told = estimate.filter(|estimate| least >= 1.0 && estimate.high <= RAGGED * estimate.value);
    let Some(estimate) = told else {
        let size = |value: f64| match units::size(value.abs().round() as u64) {
            size if value <= -1.0 => format!("−{size}"),
            size => size,
        };
        if least >= 1.0 {
            let why = "rounds are too few, or too unlike, for an interval";
            return Some(format!("{} to {} of memory ({why})", size(least), size(most)));
        }
        let range = format!("between {} and {} in a round", size(least), size(most));
        return Some(format!("no memory that could be told from noise ({range})"));
    };
    let size = |value: f64| units::size(value.round() as u64);
    let interval = if slopes.len() > 1 {
        format!("({} to {})", size(estimate.low), size(estimate.high))
    } else {
        "(one round shows no interval)".to_owned()
    };
    Some(format!("{} of memory {interval}", size(estimate.value)))
}

/// `1 process`, `no thread`: the median slope, where it is a whole number but for helpers that come and go.
fn whole(one: &str, many: &str, slopes: &[f64]) -> String {
    let mut sorted = slopes.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    match (median * 100.0).round() / 100.0 {
        value if value.abs() < 0.02 => format!("no {one}"),
        value if (value - 1.0).abs() < 0.02 => format!("1 {one}"),
        value => format!("{value} {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_does_not_hold_what_came_once() {
        let points = [1.0, 10.0, 100.0, 1_000.0].map(|n| (n, 5e6 + 2e4 * n));
        assert!((slope(&points) - 2e4).abs() < 1e-3);
        assert!((slope(&[(10.0, 50.0)]) - 5.0).abs() < 1e-9);
        assert!((slope(&[(10.0, 50.0), (10.0, 70.0)]) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn memory_is_told_with_its_interval_or_as_noise() {
        let told = memory(&[2e6, 2.1e6, 2.2e6, 2.1e6, 2.1e6], 1).unwrap();
        assert!(told.starts_with("2.1 MB of memory (1.9"), "{told}");
        assert!(memory(&[3e3], 1).unwrap().contains("no interval"));
        let told = memory(&[-300.0, 200.0], 1).unwrap();
        assert!(told.contains("told from noise") && told.contains('−'), "{told}");
        let told = memory(&[3_000.0, 24_000.0], 1).unwrap();
        assert!(told.starts_with("3 kB to 24 kB of memory (rounds are too few"), "{told}");
        assert_eq!(memory(&[], 1), None);
    }

    #[test]
    fn processes_and_threads_are_told_as_numbers() {
        assert_eq!(whole("process", "processes", &[1.0, 1.001, 0.99]), "1 process");
        assert_eq!(whole("thread", "threads", &[0.0, 0.001, -0.01]), "no thread");
        assert_eq!(whole("thread", "threads", &[2.0]), "2 threads");
    }
}
