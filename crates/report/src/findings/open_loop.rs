//! Findings of an open loop: response times by rate, overload, and a late load generator.

use super::Context;
use crate::finding::{Finding, RatePoint, Rates, Scope};
use crate::group::grouped;
use crate::summary::{CellResult, reported};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::load::RATE;
use kurabe_core::metric::HIGHEST_RATE;
use kurabe_core::sort;

/// The factor by which the p99 must exceed that of the lowest rate to be a bend.
const BEND: f64 = 2.0;

/// The cells of one operation and target that differ in their rate only, in ascending order.
struct Line<'a> {
    scope: Scope,
    cells: Vec<(u64, &'a CellResult)>,
}

/// Response times, overload and lateness of the lines at the baselines of all other axes; and of the other lines.
pub(super) fn findings(context: &Context<'_>) -> (Vec<Finding>, Vec<Finding>) {
    let lines = lines(context);
    let of = |baseline: bool| -> Vec<Finding> {
        let axes = context.labels.axes.iter().filter(|axis| axis.varies() && axis.name != RATE.name);
        let held = Cell::new(axes.filter_map(|axis| Some((axis.name.clone(), axis.baseline()?.clone()))));
        let lines = || lines.iter().filter(|line| (line.scope.axes == held) == baseline);
        let outcomes = lines().flat_map(|line| overloaded(line).into_iter().chain(late(line)));
        lines().filter_map(response_times).chain(outcomes).map(Finding::from).collect()
    };
    let missed = context.cells.iter().filter(|cell| missed_objective(cell));
    let (mut verdict, details) = (of(true), of(false));
    verdict.extend(missed.filter_map(|cell| not_kept(context, cell)).map(Finding::from));
    (verdict, details)
}

fn lines<'a>(context: &Context<'a>) -> Vec<Line<'a>> {
    let mut points = Vec::new();
    for operation in &context.labels.operations {
        for cell in reported(context.cells, &operation.name).filter(|cell| cell.open_loop.is_some()) {
            if let Some(AxisValue::Number(rate)) = cell.axes.get(RATE.name) {
                points.push((context.labels.scope_of(cell, RATE.name), (*rate, cell)));
            }
        }
    }
    let line = |(scope, mut cells): (Scope, Vec<(u64, &'a CellResult)>)| {
        sort::by_key(&mut cells, |(rate, _)| *rate);
        Line { scope, cells }
    };
    grouped(points).into_iter().map(line).collect()
}

impl Line<'_> {
    /// The scope at the rates of these cells.
    fn at(&self, cells: &[&(u64, &CellResult)]) -> Scope {
        let at = cells.iter().map(|(rate, _)| AxisValue::Number(*rate)).collect();
        Scope { at, ..self.scope.clone() }
    }
}

fn response_times(line: &Line<'_>) -> Option<Rates> {
    let valid = |cell: &CellResult| !cell.is_overloaded() && !cell.is_generator_late();
    let cells: Vec<&(u64, &CellResult)> = line.cells.iter().filter(|(_, cell)| valid(cell)).collect();
    let (_, lowest) = cells.first()?;
    let point = |(rate, cell): &&(u64, &CellResult)| {
        Some(RatePoint { rate: *rate, p99_us: cell.open_loop?.response_us.p99 })
    };
    let by_round = |cell: &CellResult| cell.metric(cell.metric).map(|metric| metric.by_round.clone());
    let first = by_round(lowest).unwrap_or_default();
    let bends = |(_, cell): &&&(u64, &CellResult)| {
        let doubled = |(round, p99): (&u32, &f64)| first.get(round).is_some_and(|first| p99 / first >= BEND);
        by_round(cell).is_some_and(|rounds| rounds.iter().all(doubled))
    };
    Some(Rates::ResponseTimes {
        scope: line.at(&cells),
        points: cells.iter().filter_map(point).collect(),
        bend: cells.iter().skip(1).find(bends).map(|(rate, _)| *rate),
    })
}

fn overloaded(line: &Line<'_>) -> Option<Rates> {
    let cells: Vec<&(u64, &CellResult)> =
        line.cells.iter().filter(|(_, cell)| cell.is_overloaded()).collect();
    let (lowest, first) = cells.first()?;
    Some(Rates::Overloaded {
        scope: line.at(&cells),
        served_per_second: first.ops_per_second?.mean,
        dropped: cells.iter().filter_map(|(_, cell)| Some(cell.open_loop?.dropped)).sum(),
        from: line.cells.iter().filter(|(rate, _)| rate >= lowest).all(|(_, cell)| cell.is_overloaded()),
    })
}

fn late(line: &Line<'_>) -> Option<Rates> {
    let late: Vec<&(u64, &CellResult)> =
        line.cells.iter().filter(|(_, cell)| cell.is_generator_late() && !cell.is_overloaded()).collect();
    let most = late.iter().filter_map(|(_, cell)| cell.open_loop).max_by(|a, b| {
        a.dispatch_lag_p99_us.unwrap_or(0.0).total_cmp(&b.dispatch_lag_p99_us.unwrap_or(0.0))
    })?;
    Some(Rates::GeneratorLate {
        scope: line.at(&late),
        lag_us: most.dispatch_lag_p99_us?,
        p99_us: most.response_us.p99,
    })
}

/// Whether the found rate was not served, or the generator was late, in the confirming trial.
fn missed_objective(cell: &CellResult) -> bool {
    let kept = cell.open_loop.is_none_or(|open| open.kept_up) && !cell.is_generator_late();
    cell.metric == HIGHEST_RATE.name && cell.is_reported() && !kept
}

fn not_kept(context: &Context<'_>, cell: &CellResult) -> Option<Rates> {
    let at = cell.axes.get(RATE.name).cloned().into_iter().collect();
    let (scope, open) = (Scope { at, ..context.labels.scope_of(cell, RATE.name) }, cell.open_loop?);
    Some(if open.kept_up {
        Rates::GeneratorLate { scope, lag_us: open.dispatch_lag_p99_us?, p99_us: open.response_us.p99 }
    } else {
        let served_per_second = cell.ops_per_second?.mean;
        Rates::Overloaded { scope, served_per_second, dropped: open.dropped, from: false }
    })
}
