//! What each connection costs the server: the slope of what was added over the number of connections, round by round.
//!
//! One difference between a server with a thousand connections and without any holds whatever else it did meanwhile. The
//! slope over several numbers of connections, each paired with the same server just before, does not hold what came
//! once, whether with the first connection or with none.

use super::Context;
use crate::figures::latest;
use crate::finding::{Finding, Interval, Scope, Span};
use crate::summary::Status;
use kurabe_core::axis::AxisValue;
use kurabe_core::figure::{MEMORY_ADDED, PROCESSES_ADDED, THREADS_ADDED};
use kurabe_core::observation::ServerUse;
use kurabe_core::run::{Measurement, Outcome};
use kurabe_stats::{IntervalSettings, interval_of_median};
use std::collections::BTreeMap;

/// By round: numbers of connections, and what they added.
type Rounds = BTreeMap<u32, Vec<(f64, Added)>>;

/// A finding for each target and combination of the other axes, of the trials that count.
pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let Some(chart) = context.labels.chart_axis() else { return Vec::new() };
    let mut lines: Vec<(Scope, Rounds)> = Vec::new();
    let trials = latest(context.run);
    for (cell, index) in context.cells.iter().zip(crate::figures::indices(context.run)) {
        let Some(AxisValue::Number(n)) = cell.axes.get(&chart.name) else { continue };
        if cell.status != Status::Ok || cell.baseline_repeat {
            continue;
        }
        let scope = context.labels.scope_of(cell, &chart.name);
        for (round, trial) in trials.get(&(index, cell.operation.as_str())).into_iter().flatten() {
            let Outcome::Measured(measured) = &trial.outcome else { continue };
            let Some(added) = Added::of(measured) else { continue };
            let at = lines.iter().position(|(known, _)| *known == scope).unwrap_or_else(|| {
                lines.push((scope.clone(), Rounds::new()));
                lines.len() - 1
            });
            lines[at].1.entry(*round).or_default().push((*n as f64, added));
        }
    }
    let seed = context.run.header.spec.seed;
    lines.into_iter().filter_map(|(scope, rounds)| finding(scope, &chart.name, &rounds, seed)).collect()
}

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

/// An interval that goes beyond its centre by this factor says nothing.
const RAGGED: f64 = 20.0;

fn finding(scope: Scope, per: &str, rounds: &Rounds, seed: u64) -> Option<Finding> {
    let slopes = |of: fn(&Added) -> f64| -> Vec<f64> {
        let points = rounds.values();
        points
            .map(|points| slope(&points.iter().map(|(n, added)| (*n, of(added))).collect::<Vec<_>>()))
            .collect()
    };
    let memory = slopes(|added| added.memory);
    Some(Finding::Slope {
        scope,
        per: per.to_owned(),
        memory_bytes: memory_of(&memory, seed),
        rounds: Span::around(memory.iter().map(|slope| Span { low: *slope, high: *slope }))?,
        processes: median(slopes(|added| added.processes)),
        threads: median(slopes(|added| added.threads)),
        in_client: rounds.values().flatten().any(|(_, added)| added.embedded),
    })
}

/// The median slope with its interval; `None` where rounds differ by factors, or some show less than a byte, which is what
/// rounding leaves.
fn memory_of(slopes: &[f64], seed: u64) -> Option<Interval> {
    let least = slopes.iter().copied().min_by(f64::total_cmp)?;
    let estimate = interval_of_median(slopes, &IntervalSettings::new(seed)).ok()?;
    let ends = (slopes.len() > 1).then_some((estimate.low, estimate.high));
    (least >= 1.0 && estimate.high <= RAGGED * estimate.value).then_some(Interval {
        value: estimate.value,
        low: ends.map(|ends| ends.0),
        high: ends.map(|ends| ends.1),
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_excludes_what_came_once() {
        let points = [1.0, 10.0, 100.0, 1_000.0].map(|n| (n, 5e6 + 2e4 * n));
        assert!((slope(&points) - 2e4).abs() < 1e-3);
        assert!((slope(&[(10.0, 50.0)]) - 5.0).abs() < 1e-9);
        assert!((slope(&[(10.0, 50.0), (10.0, 70.0)]) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn memory_has_an_interval_or_is_not_told_from_noise() {
        let memory = memory_of(&[2e6, 2.1e6, 2.2e6, 2.1e6, 2.1e6], 1).unwrap();
        assert!((memory.value - 2.1e6).abs() < 1.0 && memory.low.unwrap() >= 1.9e6, "{memory:?}");
        assert_eq!(memory_of(&[3e3], 1).unwrap().low, None);
        assert_eq!(memory_of(&[-300.0, 200.0], 1), None);
        assert_eq!(memory_of(&[3_000.0, 24_000.0], 1), None);
        assert_eq!(memory_of(&[], 1), None);
    }
}
