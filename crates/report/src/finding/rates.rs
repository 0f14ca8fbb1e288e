//! Given rates: response times by rate, overload, and a late load generator.

use crate::cell::{CellResult, reported};
use crate::finding::Context;
use crate::format::{figure, micros};
use crate::group::grouped;
use crate::labels::{Axis, Labels, Scope};
use crate::wording::say;
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::load::RATE;
use kurabe_core::metric::HIGHEST_RATE;
use kurabe_core::{sort, units};
use serde::Serialize;

/// A response time at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatePoint {
    /// Transactions due per second.
    pub rate: u64,
    /// The 99th percentile of response times, in microseconds.
    pub p99_us: f64,
}

/// What transactions at given rates show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Rates {
    /// Response times by rate, if the rate was served and the generator was on time. `bend`: the lowest rate whose
    /// p99 is at least twice that of the lowest rate, in every round.
    ResponseTimes { scope: Scope, points: Vec<RatePoint>, bend: Option<u64> },
    /// The scope's rates were not served: the throughput at the lowest of them, and the number of dropped
    /// transactions over all. `from`: whether every higher tested rate is among them.
    Overloaded { scope: Scope, served_per_second: f64, dropped: u64, from: bool },
    /// The load generator started transactions late (p99), so that response times (p99) at the scope's rates are
    /// invalid.
    GeneratorLate { scope: Scope, lag_us: f64, p99_us: f64 },
}

impl Rates {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let language = labels.language;
        // Rates are values of the chart axis only if they vary; values of another one are none.
        let is_of_rates = labels.chart_axis().is_some_and(|axis| axis.name == RATE.name);
        let placed = |scope: &Scope| {
            let at = if is_of_rates { scope.at.clone() } else { Vec::new() };
            Scope { at, ..scope.clone() }
        };
        match self {
            Self::ResponseTimes { scope, points, bend } => {
                let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
                let at = |point: &RatePoint| {
                    let (p99, rate) = (micros(point.p99_us), units::count(point.rate));
                    say!(language, "{p99} at {rate}/s", "毎秒 {rate} 回で {p99}")
                };
                let (first, last) = (at(first), at(last));
                let several = points.len() > 1;
                let rest = if several { say!(language, " and {last}", "、{last}") } else { String::new() };
                let bend = bend.map(units::count).map_or_else(String::new, |rate| {
                    say!(
                        language,
                        "; it is at least twice the first from {rate}/s on",
                        "毎秒 {rate} 回からは最初の 2 倍以上です。",
                    )
                });
                let what = labels.results_of(&Scope { at: Vec::new(), ..scope.clone() });
                say!(
                    language,
                    "response p99 of {what} is {first}{rest}{bend}.",
                    "{what} の応答時間の p99 は、{first}{rest} です。{bend}",
                )
            }
            Self::Overloaded { scope, served_per_second, dropped, from } => {
                let what = labels.operations_of(&scope.operations);
                let place = if let (true, Some(AxisValue::Number(rate))) = (*from, scope.at.iter().min()) {
                    let targets = labels.targets_of(&scope.targets);
                    format!(" on {targets} are overloaded from {}/s", units::count(*rate))
                } else {
                    let rates = Scope { axes: Cell::default(), ..placed(scope) };
                    format!(" are overloaded{}", labels.place(&rates))
                };
                let count = units::count(*dropped);
                let dropped = match dropped {
                    0 => String::new(),
                    _ => say!(language, ", {count} were never started", "{count} 件は始められませんでした。"),
                };
                let (results, held) = (labels.results_of(&placed(scope)), labels.held(scope));
                let served = figure(*served_per_second);
                say!(
                    language,
                    "{what}{place}{held}: {served}/s were served{dropped}.",
                    "{results} は過負荷で、毎秒 {served} 回を処理しました。{dropped}",
                )
            }
            Self::GeneratorLate { scope, lag_us, p99_us } => {
                let (what, lag, p99) = (labels.results_of(&placed(scope)), micros(*lag_us), micros(*p99_us));
                say!(
                    language,
                    "response times of {what} are invalid: the load generator was {lag} late (p99), of {p99}.",
                    "{what} の応答時間は無効です。p99 の {p99} に対し、負荷の発生が {lag}(p99)遅れました。",
                )
            }
        }
    }
}

/// The factor by which the p99 must exceed that of the lowest rate to be a bend.
const BEND: f64 = 2.0;

/// The cells of one operation and target that differ in their rate only, in ascending order.
struct Line<'a> {
    scope: Scope,
    cells: Vec<(u64, &'a CellResult)>,
}

/// Response times, overload and lateness of the lines at the baselines of all other axes; and of the other lines.
pub(super) fn findings(context: &Context<'_>) -> (Vec<Rates>, Vec<Rates>) {
    let lines = lines(context);
    let of = |baseline: bool| -> Vec<Rates> {
        let axes = context.labels.axes.iter().filter(|axis| axis.varies() && axis.name != RATE.name);
        let held = Axis::baselines(axes);
        let lines = || lines.iter().filter(|line| (line.scope.axes == held) == baseline);
        let outcomes = lines().flat_map(|line| overloaded(line).into_iter().chain(late(line)));
        lines().filter_map(response_times).chain(outcomes).collect()
    };
    let missed = context.cells.iter().filter(|cell| missed_objective(cell));
    let (mut verdict, details) = (of(true), of(false));
    verdict.extend(missed.filter_map(|cell| not_kept(context, cell)));
    (verdict, details)
}

fn lines<'a>(context: &Context<'a>) -> Vec<Line<'a>> {
    let mut points = Vec::new();
    for operation in &context.labels.operations {
        for cell in reported(context.cells, &operation.name).filter(|cell| cell.open_loop.is_some()) {
            if let Some(AxisValue::Number(rate)) = cell.axes.get(RATE.name) {
                points.push((Scope::of_cell(context.labels, cell, RATE.name), (*rate, cell)));
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
        served_per_second: first.ops_per_second?.value,
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
    let (scope, open) = (Scope { at, ..Scope::of_cell(context.labels, cell, RATE.name) }, cell.open_loop?);
    Some(if open.kept_up {
        Rates::GeneratorLate { scope, lag_us: open.dispatch_lag_p99_us?, p99_us: open.response_us.p99 }
    } else {
        let served_per_second = cell.ops_per_second?.value;
        Rates::Overloaded { scope, served_per_second, dropped: open.dropped, from: false }
    })
}
