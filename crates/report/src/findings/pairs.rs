//! Results of comparisons: those of one pair with one outcome become one finding.

use super::Context;
use crate::comparison::TARGET;
use crate::finding::{Finding, Limit, Pair, Promise, Scope, Span, Why};
use crate::metrics::is_speed;
use crate::summary::{Verdict, VerdictResult};
use kurabe_core::axis::AxisValue;

/// Comparisons of one pair with one outcome; the faster side is `a`.
struct Group<'a> {
    pair: Pair,
    result: VerdictResult,
    why: Option<Why>,
    /// Whether there are intervals.
    interval: bool,
    durability: Vec<Promise>,
    members: Vec<&'a Verdict>,
}

/// The findings of these verdicts, in order; each holds at every point of its scope.
pub(super) fn findings(context: &Context<'_>, verdicts: &[&Verdict]) -> Vec<Finding> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for verdict in verdicts {
        let mut pair = verdict.pair.clone();
        let result = match verdict.result {
            VerdictResult::Worse => {
                std::mem::swap(&mut pair.a, &mut pair.b);
                VerdictResult::Better
            }
            other => other,
        };
        let called = result == VerdictResult::Better && pair.axis == TARGET && is_speed(&pair.metric);
        let durability =
            if called { context.promises(&verdict.operation, &[&pair.a, &pair.b]) } else { Vec::new() };
        let (why, interval) = (verdict.why.clone(), verdict.low.is_some());
        let same = |group: &&mut Group<'_>| {
            group.pair == pair
                && group.result == result
                && group.why == why
                && group.interval == interval
                && group.durability == durability
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.members.push(verdict),
            None => groups.push(Group { pair, result, why, interval, durability, members: vec![verdict] }),
        }
    }
    // The findings of a pair are adjacent, wins first.
    let mut order: Vec<(String, String, String)> = Vec::new();
    let mut place = |pair: &Pair| {
        let sides = if pair.a < pair.b { (&pair.a, &pair.b) } else { (&pair.b, &pair.a) };
        let key = (pair.metric.clone(), pair.axis.clone(), format!("{} {}", sides.0, sides.1));
        order.iter().position(|known| *known == key).unwrap_or_else(|| {
            order.push(key);
            order.len() - 1
        })
    };
    let mut placed: Vec<(usize, Group<'_>)> =
        groups.into_iter().map(|group| (place(&group.pair), group)).collect();
    placed.sort_by_key(|(place, group)| {
        (*place, group.result != VerdictResult::Better, group.result == VerdictResult::NotComparable)
    });
    placed.iter().flat_map(|(_, group)| split(context, group)).collect()
}

/// One finding for each product of operations, targets and values in the group.
fn split(context: &Context<'_>, group: &Group<'_>) -> Vec<Finding> {
    let products = products(&group.members);
    let finding = |(operations, targets, xs): Product| {
        let members: Vec<&Verdict> = group
            .members
            .iter()
            .copied()
            .filter(|verdict| operations.contains(&verdict.operation) && targets.contains(&verdict.target))
            .collect();
        let scope = Scope {
            operations,
            targets: targets.into_iter().flatten().collect(),
            at: xs.into_iter().flatten().collect(),
            axes: context.held(&group.pair.axis),
        };
        let (pair, comparisons) = (group.pair.clone(), members.len() as u32);
        match group.result {
            VerdictResult::Better | VerdictResult::Worse => Some(Finding::Better {
                scope,
                pair,
                ratio: Span::around(members.iter().filter_map(|verdict| gain(verdict)))?,
                comparisons,
                lower_bound: members.iter().any(|verdict| verdict.lower_bound),
                limit: limit(&members),
                durability: group.durability.clone(),
            }),
            VerdictResult::NoDifference => {
                Some(Finding::NoDifference { scope, pair, comparisons, margin: context.rule.margin })
            }
            VerdictResult::Inconclusive => {
                let least = members.iter().filter_map(|verdict| verdict.smallest_detectable);
                let smallest_detectable = Span::around(least.map(|value| Span { low: value, high: value }));
                Some(Finding::Inconclusive { scope, pair, comparisons, smallest_detectable })
            }
            VerdictResult::NotComparable => {
                Some(Finding::NotComparable { scope, pair, comparisons, why: group.why.clone()? })
            }
        }
    };
    products.into_iter().filter_map(finding).collect()
}

/// The interval of a significant difference as ratios above 1, whichever side is faster.
pub(crate) fn gain(verdict: &Verdict) -> Option<Span> {
    let (low, high) = (verdict.low?, verdict.high?);
    match verdict.result {
        VerdictResult::Better => Some(Span { low, high }),
        VerdictResult::Worse => Some(Span { low: 1.0 / high, high: 1.0 / low }),
        _ => None,
    }
}

/// The bottleneck of the slower side, if targets are compared and it is the same in all comparisons.
fn limit(members: &[&Verdict]) -> Option<Limit> {
    let slower = |verdict: &Verdict| verdict.limits[usize::from(verdict.result == VerdictResult::Better)];
    let first = members.first().filter(|verdict| verdict.target.is_none()).and_then(|v| slower(v))?;
    let same = members.iter().all(|v| slower(v).is_some_and(|one| one.bottleneck == first.bottleneck));
    let least = members.iter().filter_map(|v| slower(v)).find(|one| one.confidence != first.confidence);
    let low = |limit: Limit| Limit { confidence: crate::attribution::Confidence::Low, ..limit };
    same.then_some(least.map_or(first, low))
}

/// A product of operations, targets and values of the chart axis.
type Product = (Vec<String>, Vec<Option<String>>, Vec<Option<AxisValue>>);

/// The smallest number of products: joins operations with the same values, then targets with the same operations and
/// values.
fn products(members: &[&Verdict]) -> Vec<Product> {
    let mut lines: Vec<Product> = Vec::new();
    for verdict in members {
        let same = |line: &&mut Product| {
            line.0[..] == [verdict.operation.clone()] && line.1[..] == [verdict.target.clone()]
        };
        match lines.iter_mut().find(same) {
            Some(line) => line.2.push(verdict.x.clone()),
            None => lines.push((
                vec![verdict.operation.clone()],
                vec![verdict.target.clone()],
                vec![verdict.x.clone()],
            )),
        }
    }
    let mut joined: Vec<Product> = Vec::new();
    for (operations, targets, xs) in lines {
        match joined.iter_mut().find(|other| other.1 == targets && other.2 == xs) {
            Some(other) => other.0.extend(operations),
            None => joined.push((operations, targets, xs)),
        }
    }
    let mut all: Vec<Product> = Vec::new();
    for (operations, targets, xs) in joined {
        match all.iter_mut().find(|other| other.0 == operations && other.2 == xs) {
            Some(other) => other.1.extend(targets),
            None => all.push((operations, targets, xs)),
        }
    }
    all
}
