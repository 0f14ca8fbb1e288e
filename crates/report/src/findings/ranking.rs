//! Rankings: the target that is significantly better than each other target.

use super::Context;
use crate::comparison::TARGET;
use crate::finding::{Finding, Ranking, Span};
use crate::group::grouped;
use crate::summary::{MetricInfo, Status, Verdict, VerdictResult};
use kurabe_core::axis::AxisValue;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::metric::{Better, Source};
use std::collections::BTreeMap;

/// An operation and the metric that ranks its targets.
type What<'a> = (&'a str, &'a MetricInfo);

/// The ranking at one value of the chart axis.
#[derive(PartialEq)]
struct Order {
    /// Targets that no other target is better than.
    unbeaten: Vec<usize>,
    /// The other targets.
    beaten: Vec<usize>,
    /// Whether each unbeaten one is significantly better than each other target.
    clear: bool,
}

/// Findings for each operation: among all targets, and among those of each durability class if classes differ.
pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let all: Vec<usize> = (0..context.labels.names.len()).collect();
    let names: Vec<&String> = context.labels.names.iter().collect();
    let judged = |metric: &&MetricInfo| metric.primary && metric.better != Better::Neither;
    for operation in &context.labels.operations {
        for metric in context.labels.metrics.iter().filter(judged) {
            findings.extend(among(context, (&operation.name, metric), &all, None));
        }
        if context.promises(&operation.name, &names).is_empty() {
            continue;
        }
        let mut classes: BTreeMap<DurabilityClass, Vec<usize>> = BTreeMap::new();
        for target in &all {
            if let Some(class) = context.targets[*target].durability {
                classes.entry(class).or_default().push(*target);
            }
        }
        let several = classes.iter().rev().filter(|(_, targets)| targets.len() > 1);
        for (class, targets) in several {
            for metric in context.labels.metrics.iter().filter(judged).filter(|metric| metric.is_speed()) {
                findings.extend(among(context, (&operation.name, metric), targets, Some(*class)));
            }
        }
    }
    findings
}

/// Values of the chart axis with the same ranking become one finding.
fn among(
    context: &Context<'_>,
    what: What<'_>,
    targets: &[usize],
    class: Option<DurabilityClass>,
) -> Vec<Finding> {
    let xs = if what.1.source == Source::Trial { context.labels.xs() } else { vec![None] };
    let orders = xs.into_iter().filter_map(|x| Some((order(context, what, targets, x.as_ref())?, x)));
    grouped(orders).into_iter().filter_map(|(order, xs)| finding(context, what, class, &order, xs)).collect()
}

fn finding(
    context: &Context<'_>,
    what: What<'_>,
    among: Option<DurabilityClass>,
    order: &Order,
    xs: Vec<Option<AxisValue>>,
) -> Option<Finding> {
    let name = |target: &usize| context.labels.names[*target].clone();
    let verdicts: Vec<&Verdict> = xs
        .iter()
        .flat_map(|x| {
            let pairs = order.unbeaten.iter().flat_map(|a| order.beaten.iter().map(move |b| (*a, *b)));
            pairs.filter_map(|(a, b)| verdict(context, what, a, b, x.as_ref()))
        })
        .collect();
    let (operation, metric) = (what.0, what.1.name.clone());
    let first = *order.unbeaten.first()?;
    let mut scope = context.scope(operation, first, xs.into_iter().flatten().collect());
    scope.targets = order.unbeaten.iter().map(name).collect();
    let than: Vec<String> = order.beaten.iter().map(name).collect();
    let all: Vec<&String> = scope.targets.iter().chain(&than).collect();
    let durability = context.promises(operation, &all);
    let found = match (order.clear, order.unbeaten.len()) {
        (true, 1) => Ranking::Best {
            metric,
            than,
            ratio: Span::around(
                verdicts.iter().filter_map(|verdict| verdict.result.gain(verdict.low, verdict.high)),
            )?,
            lower_bound: verdicts.iter().any(|verdict| verdict.lower_bound),
            among,
            durability,
            scope,
        },
        (true, _) => Ranking::Ahead { metric, than, among, durability, scope },
        (false, _) => Ranking::NoBest { metric, among, scope },
    };
    Some(found.into())
}

/// The ranking at a value; `None` if fewer than two targets have rankable results, or there are no intervals.
fn order(context: &Context<'_>, what: What<'_>, targets: &[usize], x: Option<&AxisValue>) -> Option<Order> {
    let ranked: Vec<usize> = targets
        .iter()
        .copied()
        .filter(|target| {
            let cell = match x {
                None if what.1.source != Source::Trial => context.cells.iter().find(|cell| {
                    cell.target_index == *target
                        && cell.operation == what.0
                        && cell.metric(&what.1.name).is_some()
                }),
                x => context.baseline(*target, what.0, x).filter(|cell| cell.status == Status::Ok),
            };
            cell.is_some_and(|cell| {
                !cell.is_overloaded() && !cell.is_generator_late() && cell.metric(&what.1.name).is_some()
            })
        })
        .collect();
    let has_interval =
        |a: usize, b: usize| verdict(context, what, a, b, x).is_some_and(|verdict| verdict.low.is_some());
    let pairs = ranked.iter().flat_map(|a| ranked.iter().map(move |b| (*a, *b)));
    if ranked.len() < 2 || !pairs.clone().any(|(a, b)| has_interval(a, b)) {
        return None;
    }
    let beats = |a: usize, b: usize| beats(context, what, a, b, x);
    let (beaten, unbeaten): (Vec<usize>, Vec<usize>) =
        ranked.iter().partition(|b| ranked.iter().any(|a| beats(*a, **b)));
    let clear = !beaten.is_empty() && unbeaten.iter().all(|a| beaten.iter().all(|b| beats(*a, *b)));
    Some(Order { unbeaten, beaten, clear })
}

/// Whether `a` is significantly better than `b`.
fn beats(context: &Context<'_>, what: What<'_>, a: usize, b: usize, x: Option<&AxisValue>) -> bool {
    let wins = if a < b { VerdictResult::Better } else { VerdictResult::Worse };
    a != b && verdict(context, what, a, b, x).is_some_and(|verdict| verdict.result == wins)
}

fn verdict<'a>(
    context: &Context<'a>,
    what: What<'_>,
    a: usize,
    b: usize,
    x: Option<&AxisValue>,
) -> Option<&'a Verdict> {
    let (a, b) = (&context.labels.names[a.min(b)], &context.labels.names[a.max(b)]);
    context.verdicts.iter().find(|verdict| {
        verdict.pair.axis == TARGET
            && verdict.operation == what.0
            && verdict.pair.metric == what.1.name
            && verdict.pair.a == *a
            && verdict.pair.b == *b
            && verdict.x.as_ref() == x
    })
}
