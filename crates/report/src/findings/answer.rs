//! The answer to the experiment's question.

use super::{Context, pairs};
use crate::finding::{Finding, Interval, MetricPoint, Pair, Scope, SettingValues, TargetRate, Values};
use crate::group::{distinct, grouped};
use crate::metrics::{interval, samples};
use crate::summary::{CellResult, MetricInfo, Status, TargetSummary, Verdict};
use kurabe_core::axis::Cell;
use kurabe_core::experiment::Answer;
use kurabe_core::metric::{RESPONSE_P99, Source, THROUGHPUT};
use kurabe_core::sort;
use kurabe_stats::IntervalSettings;

/// Whether the answer includes the result of a comparison.
type Answered = Box<dyn Fn(&Verdict) -> bool>;

/// The answer, and which comparisons it includes.
pub(super) fn findings(context: &Context<'_>, answer: Answer) -> (Vec<Finding>, Answered) {
    let cost = |metric: &MetricInfo| match metric.source {
        Source::Cost(axis) => Some((metric.name.clone(), axis)),
        Source::Trial | Source::Slope(_) | Source::Scatter(_) | Source::Scaling(_) => None,
    };
    let own = context.info.map_or(&[][..], |info| info.metrics);
    match (answer, own.iter().find_map(|metric| cost(context.labels.metric(metric.name)?))) {
        (Answer::Comparison, _) => (Vec::new(), Box::new(|_| false)),
        (Answer::Throughput, _) => (throughput(context), Box::new(|_| false)),
        (Answer::Metrics, None) => (values(context), Box::new(|_| false)),
        (Answer::Metrics, Some((metric, axis))) => {
            let answered = move |verdict: &Verdict| {
                verdict.pair.axis == axis && crate::metrics::is_speed(&verdict.pair.metric)
            };
            let mut findings = Vec::new();
            let mut left: Vec<&Verdict> = Vec::new();
            for verdict in context.verdicts.iter().filter(|verdict| answered(verdict)) {
                match self::cost(context, verdict, &metric).filter(|cost| is_first(cost, &findings)) {
                    Some(cost) => findings.push(cost.into()),
                    None => left.push(verdict),
                }
            }
            findings.extend(pairs::findings(context, &left));
            findings.extend(values(context));
            (findings, Box::new(answered))
        }
    }
}

/// Whether there is no finding yet for the cost of this value on this target. The cost at the smallest significant
/// value of the chart axis stands for the others, since fewer clients wait less for each other.
fn is_first(cost: &Values, known: &[Finding]) -> bool {
    let key = |values: &Values| match values {
        Values::Cost { scope, pair, .. } => {
            Some((scope.operations.clone(), scope.targets.clone(), pair.a.clone()))
        }
        _ => None,
    };
    !known.iter().any(|other| matches!(other, Finding::Values(other) if key(other) == key(cost)))
}

/// The throughput of each target in a closed loop, or at the highest rate: at the smallest and the largest value of
/// the chart axis.
pub(super) fn throughput(context: &Context<'_>) -> Vec<Finding> {
    let xs = context.labels.xs();
    let ends = if xs.len() > 1 { vec![xs.first(), xs.last()] } else { vec![xs.first()] };
    let mut findings = Vec::new();
    for operation in &context.labels.operations {
        for x in ends.iter().copied().flatten() {
            let cells = (0..context.labels.names.len())
                .filter_map(|target| context.baseline(target, &operation.name, x.as_ref()))
                .filter(|cell| cell.status == Status::Ok && cell.metric != RESPONSE_P99.name);
            let rates: Vec<TargetRate> = cells.filter_map(rate).collect();
            if rates.is_empty() {
                continue;
            }
            let mut scope = context.scope(&operation.name, 0, x.iter().cloned().collect());
            scope.targets = rates.iter().map(|rate| rate.target.clone()).collect();
            findings.push(Values::Throughput { scope, rates }.into());
        }
    }
    findings
}

fn rate(cell: &CellResult) -> Option<TargetRate> {
    let rate = cell.ops_per_second?;
    Some(TargetRate {
        target: cell.target.clone(),
        per_second: rate.interval(),
        lower_bound: cell.is_lower_bound(),
    })
}

/// The cost of a value of an axis compared with its baseline, if the difference is significant.
fn cost(context: &Context<'_>, verdict: &Verdict, metric: &str) -> Option<Values> {
    if !verdict.result.is_called() || verdict.pair.metric != THROUGHPUT.name {
        return None;
    }
    let [a, b] = context.sides(verdict)?;
    let clients = |cell: &CellResult| cell.totals.as_ref().map(|totals| totals.clients as f64);
    let (clients_a, clients_b) = (clients(a)?, clients(b)?);
    let rounds = samples(a.metric(metric)?.continuous.clone(), &context.run.header.spec);
    // If some round had the opposite sign, the cost's interval is unusable; the ratio has one.
    if rounds.iter().any(|cost| cost.signum() * rounds[0].signum() < 0.0) {
        return None;
    }
    let settings = IntervalSettings::default().for_comparisons(context.comparisons[0].max(1));
    let us = |ns: f64| ns / 1e3;
    let cost = interval(&rounds, &context.rule.settings(settings))?;
    Some(Values::Cost {
        scope: Scope {
            operations: vec![verdict.operation.clone()],
            targets: verdict.target.clone().into_iter().collect(),
            at: verdict.x.iter().cloned().collect(),
            axes: context.others(verdict),
        },
        pair: Pair { metric: metric.to_owned(), ..verdict.pair.clone() },
        cost_us: Interval { value: us(cost.value), low: cost.low.map(us), high: cost.high.map(us) },
        // Time is the reciprocal of throughput if both have the same number of clients.
        factor: Interval { value: verdict.ratio?, low: verdict.low, high: verdict.high }
            .inverse()
            .map(|ratio| clients_a / clients_b * ratio),
    })
}

/// The settings in which targets of one engine differ.
pub(super) fn settings(context: &Context<'_>) -> Vec<Finding> {
    let engines = grouped(context.targets.iter().map(|target| (target.engine.clone(), target)));
    let of = |(_, targets): (String, Vec<&TargetSummary>)| {
        let all = targets.iter().flat_map(|target| target.durability_settings.iter().chain(&target.settings));
        let names: Vec<&String> = sort::distinct(all.map(|(name, _)| name));
        let values = |name: &String| SettingValues {
            name: name.clone(),
            values: targets.iter().map(|target| target.setting(name).cloned()).collect(),
        };
        let differ: Vec<SettingValues> = names
            .into_iter()
            .map(values)
            .filter(|one| one.values.iter().any(|value| *value != one.values[0]))
            .collect();
        let targets = targets.iter().map(|target| target.name.clone()).collect();
        (!differ.is_empty()).then(|| Values::Settings { targets, differ }.into())
    };
    engines.into_iter().filter_map(of).collect()
}

/// The values of primary metrics other than speed and costs, for each combination of varying axes.
pub(super) fn values(context: &Context<'_>) -> Vec<Finding> {
    let shown = |metric: &&MetricInfo| {
        metric.primary && !metric.is_speed() && !matches!(metric.source, Source::Cost(_))
    };
    let mut findings = Vec::new();
    for metric in context.labels.metrics.iter().filter(shown) {
        let chart = context.labels.chart_axis().filter(|_| !metric.source.is_per_cell());
        let is_told = |name: &str| chart.is_none_or(|chart| chart.name != name);
        let value = |cell: &CellResult| {
            let figure = cell.metric(&metric.name)?.interval();
            let varying = context.labels.axes.iter().filter(|axis| axis.varies() && is_told(&axis.name));
            let axes =
                varying.filter_map(|axis| Some((axis.name.clone(), cell.axes.get(&axis.name)?.clone())));
            let key = (vec![cell.operation.clone()], vec![cell.target.clone()]);
            Some((key, MetricPoint { axes: Cell::new(axes), figure }))
        };
        let cells = context.cells.iter().filter(|cell| cell.is_reported());
        for ((operations, targets), points) in grouped(cells.filter_map(value)) {
            let scope = Scope { operations, targets, ..Scope::default() };
            let (name, unit, points) = (metric.name.clone(), metric.unit, distinct(points));
            findings.push(Values::MetricValues { scope, name, unit, points }.into());
        }
    }
    findings
}
