//! The metrics of a run, and their values in each cell.

use crate::cell::{CellResult, MetricInfo, MetricResult};
use crate::labels::Labels;
use kurabe_core::axis::AxisValue;
use kurabe_core::cpus::CPUS;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::load::Load;
use kurabe_core::metric::{
    Better, COMMON, HIGHEST_RATE, Metric, MetricValue, RESPONSE_P99, SERVICE_P99, Scaling, Source,
    THROUGHPUT, Unit, speed,
};
use kurabe_core::run::{Measurement, Run, RunSpec, Sampled};
use kurabe_core::sort;
use kurabe_stats::nested::means_of_blocks;
use kurabe_stats::{
    Estimate, Interval, IntervalSettings, Mean, PairedRatio, Usl, interval_of_mean, log_ratios, mean,
};
use std::collections::BTreeMap;

/// The metrics of speed, by which loops are compared.
const SPEED: [&str; 3] = [THROUGHPUT.name, RESPONSE_P99.name, HIGHEST_RATE.name];

/// Values by round.
pub(crate) type Rounds = BTreeMap<u32, f64>;

impl MetricInfo {
    fn of(metric: &Metric) -> Self {
        Self {
            name: metric.name.to_owned(),
            unit: metric.unit,
            better: metric.better,
            primary: metric.primary,
            about: metric.about.to_owned(),
            source: metric.source,
        }
    }

    /// A metric unknown to this version.
    fn unknown(value: &MetricValue) -> Self {
        Self {
            name: value.name.clone(),
            unit: value.unit,
            better: Better::Neither,
            primary: false,
            about: String::new(),
            source: Source::Trial,
        }
    }

    /// Whether it is a metric of speed.
    pub(crate) fn is_speed(&self) -> bool {
        is_speed(&self.name)
    }

    /// Whether the main tables show it.
    pub(crate) fn is_usual(&self) -> bool {
        self.is_speed() || self.name == SERVICE_P99.name
    }

    /// The value with a sign so that higher is better.
    pub(crate) fn higher_is_better(&self, value: f64) -> f64 {
        if self.better == Better::Lower { 1.0 / value } else { value }
    }
}

pub(crate) fn is_speed(name: &str) -> bool {
    SPEED.contains(&name)
}

/// The metrics of a run: speed, the experiment's own, common ones, and unknown ones.
pub(crate) fn of_run(run: &Run, info: Option<&ExperimentInfo>) -> Vec<MetricInfo> {
    let own = info.map_or(&[][..], |info| info.metrics);
    let mut metrics: Vec<MetricInfo> = Vec::new();
    for common in COMMON.iter().filter(|metric| is_speed(metric.name)) {
        let declared = own.iter().find(|metric| metric.name == common.name);
        metrics.push(MetricInfo::of(declared.unwrap_or(common)));
    }
    let measured = run.measured().map(|(_, measured)| &measured.metrics);
    let declared = own.iter().chain(COMMON).map(MetricInfo::of);
    for metric in declared.chain(measured.flatten().map(MetricInfo::unknown)) {
        if !metrics.iter().any(|known| known.name == metric.name) {
            metrics.push(metric);
        }
    }
    metrics
}

/// The mean of values with this unit.
pub(crate) fn mean_of(unit: Unit) -> Mean {
    if unit == Unit::PerSecond { Mean::Arithmetic } else { Mean::Geometric }
}

/// The samples for means, ratios and intervals: one per round, or, if verdicts are of any start, the mean of each block of
/// rounds.
pub(crate) fn samples(
    by_round: impl IntoIterator<Item = (u32, f64)>,
    unit: Unit,
    spec: &RunSpec,
) -> Vec<f64> {
    if spec.sampled() == Sampled::TheseServers {
        return by_round.into_iter().map(|(_, value)| value).collect();
    }
    means_of_blocks(by_round, mean_of(unit), |round| spec.block(round))
}

/// A metric of two cells in the rounds in which both were measured; higher is better.
pub(crate) struct Paired {
    /// The samples of each, in the order of the rounds.
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    mean: Mean,
    /// The number of rounds that they are made of: one or several per sample.
    pub rounds: usize,
}

impl Paired {
    /// The logarithms of their ratios; `None` without a round, or with a value that has none.
    pub(crate) fn log_ratios(&self) -> Option<Vec<f64>> {
        log_ratios(&self.a, &self.b, self.mean)
    }

    /// Their ratio, by what they say alone.
    pub(crate) fn ratio(&self, settings: &IntervalSettings) -> Option<PairedRatio> {
        PairedRatio::from_logarithms(&self.log_ratios()?, None, settings)
    }
}

/// Pairs a metric of two cells of a run.
pub(crate) fn paired(a: &CellResult, b: &CellResult, metric: &MetricInfo, spec: &RunSpec) -> Paired {
    let rounds = |cell: &CellResult| cell.metric(&metric.name).map(|found| found.by_round.clone());
    let (a, b): (Rounds, Rounds) = (rounds(a).unwrap_or_default(), rounds(b).unwrap_or_default());
    let good = |(round, value): (&u32, &f64)| (*round, metric.higher_is_better(*value));
    let of = |one: &Rounds, other: &Rounds| {
        samples(one.iter().filter(|(round, _)| other.contains_key(round)).map(good), metric.unit, spec)
    };
    let rounds = a.keys().filter(|round| b.contains_key(round)).count();
    Paired { a: of(&a, &b), b: of(&b, &a), mean: mean_of(metric.unit), rounds }
}

/// The value of a metric in one trial.
fn value(metric: &MetricInfo, load: Load, measured: &Measurement) -> Option<f64> {
    let p99 = |times: &kurabe_stats::Histogram| times.quantile(0.99).map(|ns| ns as f64);
    match metric.name.as_str() {
        name if metric.is_speed() && name != speed(load).name => None,
        name if name == RESPONSE_P99.name => p99(&measured.open.as_ref()?.response),
        _ if metric.is_speed() => Some(measured.ops_per_second()),
        name if name == SERVICE_P99.name => p99(&measured.service),
        name => measured.metrics.iter().find(|value| value.name == name).map(|value| value.value),
    }
}

/// The metrics of a cell: of the trials that are compared, or, where only observed ones have a metric, of these.
pub(crate) fn of_cell(
    metrics: &[MetricInfo],
    load: Load,
    [compared, observed]: [&BTreeMap<u32, &Measurement>; 2],
    spec: &RunSpec,
) -> Vec<MetricResult> {
    let figures = |metric: &MetricInfo| {
        let of = |trials: &BTreeMap<u32, &Measurement>| -> Rounds {
            sort::btree_map(
                trials.iter().filter_map(|(round, trial)| Some((*round, value(metric, load, trial)?))),
            )
        };
        let by_round = Some(of(compared)).filter(|rounds| !rounds.is_empty()).unwrap_or_else(|| of(observed));
        MetricResult::of(metric, by_round, spec)
    };
    metrics.iter().filter(|metric| metric.source == Source::Trial).filter_map(figures).collect()
}

impl MetricResult {
    /// The mean over the rounds with its interval; `None` without any.
    fn of(metric: &MetricInfo, by_round: Rounds, spec: &RunSpec) -> Option<Self> {
        let values = samples(by_round.iter().map(|(round, value)| (*round, *value)), metric.unit, spec);
        let mut figure = interval(&values, metric.unit, &IntervalSettings::default())?;
        // A share needs no rounds to be a share of the whole.
        let within = |end: f64| if metric.unit == Unit::Share { end.clamp(0.0, 1.0) } else { end };
        (figure.low, figure.high) = (figure.low.map(within), figure.high.map(within));
        Some(Self { name: metric.name.clone(), unit: metric.unit, figure, by_round })
    }
}

/// The mean and its interval: on logarithms if all values have the same sign and are no shares, otherwise as they are.
pub(crate) fn interval(values: &[f64], unit: Unit, settings: &IntervalSettings) -> Option<Estimate> {
    // The sum of shares is that of their means.
    if unit == Unit::Share {
        return arithmetic(values, settings);
    }
    let sign = if *values.first()? < 0.0 { -1.0 } else { 1.0 };
    let sizes: Vec<f64> = values.iter().map(|value| value * sign).collect();
    let Some(found) = interval_of_mean(&sizes, mean_of(unit), settings) else {
        return arithmetic(values, settings);
    };
    let Estimate { value, low, high } = found.map(|value| value * sign);
    Some(if sign < 0.0 { Estimate { value, low: high, high: low } } else { found })
}

/// The arithmetic mean and its interval.
fn arithmetic(values: &[f64], settings: &IntervalSettings) -> Option<Estimate> {
    let (mean, count) = (mean(values)?, values.len() as f64);
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let reach = || settings.student(count - 1.0) * (squares / (count - 1.0) / count).sqrt();
    let reach = (values.len() > 1).then(reach);
    Some(Estimate::new(mean, reach.map(|reach| Interval { low: mean - reach, high: mean + reach })))
}

/// Adds the metrics that are derived from several cells.
pub(crate) fn derive(metrics: &[MetricInfo], labels: &Labels, cells: &mut [CellResult], spec: &RunSpec) {
    for (n, metric) in metrics.iter().enumerate() {
        if matches!(metric.source, Source::Trial | Source::Scatter(_)) {
            continue;
        }
        let found = match metric.source {
            Source::Trial | Source::Scatter(_) => Vec::new(),
            Source::Slope(of) => slopes(labels, cells, of),
            Source::Cost(axis) => costs(labels, cells, axis),
            Source::Scaling(part) => scaling(cells, part),
        };
        for (line, by_round) in found {
            let Some(figures) = MetricResult::of(metric, by_round, spec) else { continue };
            for at in line {
                let before = |metric: &&MetricInfo| cells[at].metric(&metric.name).is_some();
                let place = metrics[..n].iter().filter(before).count();
                cells[at].metrics.insert(place, figures.clone());
            }
        }
    }
}

/// Cells with results, in lines that differ in one axis only.
fn lines(cells: &[CellResult], axis: &str) -> Vec<Vec<usize>> {
    let mut lines: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.is_reported()) {
        let mut others = cell.axes.values().clone();
        others.remove(axis);
        lines.entry((cell.target.at(), &cell.operation, others)).or_default().push(at);
    }
    lines.into_values().collect()
}

/// The slope of a metric over the chart axis, for each line, in each round in which all of its cells have it.
fn slopes(labels: &Labels, cells: &[CellResult], of: &str) -> Vec<(Vec<usize>, Rounds)> {
    let Some(chart) = labels.chart_axis() else { return Vec::new() };
    let mut found = Vec::new();
    for line in lines(cells, &chart.name) {
        let points: Vec<(f64, &Rounds)> = line
            .iter()
            .filter_map(|at| match cells[*at].axes.get(&chart.name)? {
                AxisValue::Number(n) => Some((*n as f64, &cells[*at].metric(of)?.by_round)),
                AxisValue::Word(_) => None,
            })
            .collect();
        let Some((_, first)) = points.first() else { continue };
        let of_round = |round: &u32| {
            let here: Option<Vec<(f64, f64)>> =
                points.iter().map(|(x, rounds)| Some((*x, *rounds.get(round)?))).collect();
            Some((*round, slope(&here?)))
        };
        found.push((line, sort::btree_map(first.keys().filter_map(of_round))));
    }
    found
}

/// The slope of a least-squares line; with one point, its value divided by its position.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (mx, my) =
        (points.iter().map(|p| p.0).sum::<f64>() / count, points.iter().map(|p| p.1).sum::<f64>() / count);
    let across: f64 = points.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    let along: f64 = points.iter().map(|(x, _)| (x - mx).powi(2)).sum();
    if along > 0.0 { across / along } else { my / mx.max(1.0) }
}

/// The time per transaction minus that with the first value of an axis, in closed loops, in each round with both.
fn costs(labels: &Labels, cells: &[CellResult], axis: &str) -> Vec<(Vec<usize>, Rounds)> {
    let baseline = labels.axis(axis).and_then(crate::labels::Axis::baseline);
    let times = |cell: &CellResult| -> Option<Rounds> {
        let clients = cell.totals.as_ref()?.clients as f64;
        let rates = &cell.metric(THROUGHPUT.name)?.by_round;
        Some(sort::btree_map(rates.iter().map(|(round, rate)| (*round, 1e9 * clients / rate))))
    };
    let mut found = Vec::new();
    for line in lines(cells, axis) {
        let base = line.iter().find(|at| cells[**at].axes.get(axis) == baseline);
        let Some(base) = base.and_then(|at| times(&cells[*at])) else { continue };
        for at in line.into_iter().filter(|at| cells[*at].axes.get(axis) != baseline) {
            let cost = |(round, time): (u32, f64)| Some((round, time - base.get(&round)?));
            found.extend(
                times(&cells[at])
                    .map(|times| (vec![at], sort::btree_map(times.into_iter().filter_map(cost)))),
            );
        }
    }
    found
}

/// A result of varying the number of the server's processors. Cells whose client was the bottleneck are left out: their
/// throughput says nothing about the server.
fn scaling(cells: &[CellResult], part: Scaling) -> Vec<(Vec<usize>, Rounds)> {
    let mut found = Vec::new();
    for line in lines(cells, CPUS.name) {
        let points: Vec<(usize, u64, &Rounds)> = line
            .iter()
            .filter(|at| !cells[**at].is_lower_bound())
            .filter_map(|at| match cells[*at].axes.get(CPUS.name)? {
                AxisValue::Number(n) => Some((*at, *n, &cells[*at].metric(THROUGHPUT.name)?.by_round)),
                AxisValue::Word(_) => None,
            })
            .collect();
        let one = points.iter().find(|(_, n, _)| *n == 1).map(|(_, _, rounds)| *rounds);
        if part == Scaling::Efficiency {
            let Some(one) = one else { continue };
            found.extend(points.iter().map(|(at, n, rounds)| {
                let each = rounds
                    .iter()
                    .filter_map(|(round, rate)| Some((*round, rate / *n as f64 / one.get(round)?)));
                (vec![*at], sort::btree_map(each))
            }));
            continue;
        }
        let Some((_, _, first)) = points.first() else { continue };
        let of_round = |round: &u32| {
            let here: Option<Vec<(f64, f64)>> =
                points.iter().map(|(_, n, rounds)| Some((*n as f64, *rounds.get(round)?))).collect();
            let law = Usl::fit(&here?)?;
            Some((*round, if part == Scaling::Contention { law.contention } else { law.coherency }))
        };
        found.push((line, sort::btree_map(first.keys().filter_map(of_round))));
    }
    found
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
    fn interval_holds_its_mean_whatever_the_signs() {
        let of = |values: &[f64]| interval(values, Unit::Nanoseconds, &IntervalSettings::default()).unwrap();
        for values in [&[1.0, 2.0, 3.0][..], &[-1.0, -2.0, -3.0], &[-1.0, 0.0, 5.0], &[0.0, 0.0, 0.0]] {
            let Estimate { value, low, high } = of(values);
            assert!(low.unwrap() <= value && value <= high.unwrap(), "{values:?}: {low:?} {value} {high:?}");
        }
        assert!((of(&[-300.0]).value + 300.0).abs() < 1e-9 && of(&[-300.0]).low.is_none());
        assert!(interval(&[], Unit::PerSecond, &IntervalSettings::default()).is_none());
        // Shares of a whole stay shares of a whole.
        let share =
            |values: &[f64]| interval(values, Unit::Share, &IntervalSettings::default()).unwrap().value;
        assert!((share(&[0.1, 0.5]) + share(&[0.9, 0.5]) - 1.0).abs() < 1e-12);
        // A slope that is never significant spans zero.
        assert!(of(&[-300.0, 200.0]).low.unwrap() < 0.0);
    }
}
