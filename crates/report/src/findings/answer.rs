//! What answers the experiment's question, before all else.

use super::{Context, pairs, slope};
use crate::comparison::paired;
use crate::finding::Metric;
use crate::finding::{Finding, Interval, MetricPoint, Scope, Span, TargetRate};
use crate::summary::{CellFigures, Status, Verdict, VerdictResult};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::experiment::Answer;
use kurabe_core::figure::SUMMARISED;
use kurabe_stats::{IntervalSettings, interval_of_mean, mix};

/// Whether the answer says what a comparison shows.
type Answered = Box<dyn Fn(&Verdict) -> bool>;

/// The answer, and which comparisons are told with it.
pub(super) fn findings(context: &Context<'_>, answer: Answer) -> (Vec<Finding>, Answered) {
    match answer {
        Answer::Comparison => (Vec::new(), Box::new(|_| false)),
        Answer::Throughput => (throughput(context), Box::new(|_| false)),
        Answer::Slope => (slope::findings(context), Box::new(|_| false)),
        Answer::Cost(axis) => {
            let verdicts: Vec<&Verdict> =
                context.verdicts.iter().filter(|verdict| verdict.pair.axis == axis).collect();
            let mut findings = Vec::new();
            let mut left: Vec<&Verdict> = Vec::new();
            for verdict in verdicts {
                match cost(context, verdict, axis).filter(|cost| is_first(cost, &findings)) {
                    Some(cost) => findings.push(cost),
                    None => left.push(verdict),
                }
            }
            findings.extend(pairs::findings(context, &left));
            (findings, Box::new(move |verdict| verdict.pair.axis == axis))
        }
    }
}

/// Whether no cost of the same value on the same target is known yet: the least value of the chart axis at which it was
/// called stands for the others, since with fewer clients less waits for another.
fn is_first(cost: &Finding, known: &[Finding]) -> bool {
    let key = |finding: &Finding| match finding {
        Finding::Cost { scope, pair, .. } => {
            Some((scope.operations.clone(), scope.targets.clone(), pair.a.clone()))
        }
        _ => None,
    };
    !known.iter().any(|other| key(other) == key(cost))
}

/// Transactions per second of each target in a closed loop, or at the highest rate: at the least value of the chart axis
/// and at the greatest.
pub(super) fn throughput(context: &Context<'_>) -> Vec<Finding> {
    let xs = context.xs();
    let ends = if xs.len() > 1 { vec![xs.first(), xs.last()] } else { vec![xs.first()] };
    let mut findings = Vec::new();
    for operation in &context.labels.operations {
        for x in ends.iter().copied().flatten() {
            let cells = (0..context.labels.names.len())
                .filter_map(|target| context.baseline(target, &operation.name, x.as_ref()))
                .filter(|cell| cell.status == Status::Ok && cell.metric != Metric::ResponseP99);
            let rates: Vec<TargetRate> = cells.filter_map(rate).collect();
            if rates.is_empty() {
                continue;
            }
            let mut scope = context.scope(&operation.name, 0, x.iter().cloned().collect());
            scope.targets = rates.iter().map(|rate| rate.target.clone()).collect();
            findings.push(Finding::Throughput { scope, rates });
        }
    }
    findings
}

fn rate(cell: &CellFigures) -> Option<TargetRate> {
    let rate = cell.ops_per_second?;
    Some(TargetRate {
        target: cell.target.clone(),
        per_second: Interval { value: rate.median, low: rate.low, high: rate.high },
        lower_bound: cell.is_lower_bound(),
    })
}

/// What a value of an axis costs, compared with its baseline, where the comparison was called.
fn cost(context: &Context<'_>, verdict: &Verdict, axis: &str) -> Option<Finding> {
    if !matches!(verdict.result, VerdictResult::Faster | VerdictResult::Slower)
        || verdict.pair.metric != Metric::Throughput
    {
        return None;
    }
    let values = context.labels.axis(axis)?;
    let name = verdict.target.as_ref()?;
    let cell = |side: &str| {
        let value = values.values.iter().find(|value| values.show(value) == side)?;
        context.cells.iter().find(|cell| {
            let shared = verdict.at.values().iter().all(|(axis, at)| cell.axes.get(axis) == Some(at));
            cell.target == *name
                && cell.operation == verdict.operation
                && !cell.baseline_repeat
                && shared
                && cell.axes.get(axis) == Some(value)
        })
    };
    let (a, b) = (cell(&verdict.pair.a)?, cell(&verdict.pair.b)?);
    let clients = |cell: &CellFigures| cell.totals.as_ref().map(|totals| totals.clients as f64);
    let (clients_a, clients_b) = (clients(a)?, clients(b)?);
    let (rates_a, rates_b) = paired(a, b);
    let costs: Vec<f64> =
        rates_a.iter().zip(&rates_b).map(|(a, b)| 1e6 * (clients_a / a - clients_b / b)).collect();
    let sign = if costs.first()? < &0.0 { -1.0 } else { 1.0 };
    let sizes: Vec<f64> = costs.iter().map(|cost| cost * sign).collect();
    // A round in which it was the other way round leaves no interval that says how much: the ratio has one.
    let settings = IntervalSettings::new(mix(context.run.header.spec.seed, 0xC0))
        .for_comparisons(context.comparisons.max(1));
    let estimate = interval_of_mean(&sizes, &context.rule.settings(settings)).ok()?;
    let ends = [estimate.low * sign, estimate.high * sign];
    let operation = verdict.operation.clone();
    Some(Finding::Cost {
        scope: Scope {
            operations: vec![operation],
            targets: vec![name.clone()],
            at: verdict.x.iter().cloned().collect(),
            axes: context.held(axis),
        },
        pair: verdict.pair.clone(),
        cost_us: Interval {
            value: estimate.value * sign,
            low: Some(ends[0].min(ends[1])),
            high: Some(ends[0].max(ends[1])),
        },
        // Time is the reciprocal of throughput where both have as many clients.
        factor: Span {
            low: clients_a / clients_b / verdict.high?,
            high: clients_a / clients_b / verdict.low?,
        },
    })
}

/// The metrics that an experiment's question asks for beside throughput: the median of the rounds at each combination of
/// the axes that vary.
pub(super) fn metrics(context: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for name in SUMMARISED {
        for cell in context.cells.iter().filter(|cell| cell.status == Status::Ok && !cell.baseline_repeat) {
            let Some(figure) = cell.figures.iter().find(|figure| figure.name == name) else { continue };
            let varying = context.labels.axes.iter().filter(|axis| axis.varies());
            let axes = Cell::new(
                varying.filter_map(|axis| Some((axis.name.clone(), cell.axes.get(&axis.name)?.clone()))),
            );
            let point = MetricPoint { axes, value: figure.value };
            let operation = vec![cell.operation.clone()];
            let same = |finding: &&mut Finding| {
                matches!(finding, Finding::MetricValues { scope, name: known, .. }
                    if known == name && scope.operations == operation && scope.targets[..] == [cell.target.clone()])
            };
            if let Some(Finding::MetricValues { points, .. }) = findings.iter_mut().find(same) {
                points.push(point);
                continue;
            }
            let targets = vec![cell.target.clone()];
            let scope =
                Scope { operations: operation, targets, at: Vec::<AxisValue>::new(), axes: Cell::default() };
            let (name, unit) = (name.to_owned(), figure.unit);
            findings.push(Finding::MetricValues { scope, name, unit, points: vec![point] });
        }
    }
    findings
}
