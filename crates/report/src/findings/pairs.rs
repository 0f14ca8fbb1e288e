//! Results of comparisons: those of one pair with one outcome become one finding.

use super::Context;
use crate::attribution::Confidence;
use crate::comparison::TARGET;
use crate::finding::{Comparison, Finding, Interval, Limit, Measured, Pair, Promise, Scope, Why};
use crate::group::grouped;
use crate::metrics::is_speed;
use crate::summary::{Verdict, VerdictResult};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::sort;

/// A pair with an outcome; the faster side is `a`.
#[derive(PartialEq)]
struct Outcome {
    pair: Pair,
    result: VerdictResult,
    why: Option<Why>,
    /// Whether there are intervals.
    interval: bool,
    durability: Vec<Promise>,
}

impl Outcome {
    fn of(context: &Context<'_>, verdict: &Verdict) -> Self {
        let (mut pair, mut result) = (verdict.pair.clone(), verdict.result);
        if result == VerdictResult::Worse {
            std::mem::swap(&mut pair.a, &mut pair.b);
            result = VerdictResult::Better;
        }
        let called = result == VerdictResult::Better && pair.axis == TARGET && is_speed(&pair.metric);
        let durability =
            if called { context.promises(&verdict.operation, &[&pair.a, &pair.b]) } else { Vec::new() };
        Self { pair, result, why: verdict.why.clone(), interval: verdict.low.is_some(), durability }
    }
}

/// The findings of these verdicts, in order; each holds at every point of its scope.
pub(super) fn findings(context: &Context<'_>, verdicts: &[&Verdict]) -> Vec<Finding> {
    let outcomes = grouped(verdicts.iter().map(|verdict| (Outcome::of(context, verdict), *verdict)));
    // The findings of a pair are adjacent, wins first.
    let pairs = grouped(outcomes.into_iter().map(|group| {
        let Pair { metric, axis, a, b } = group.0.pair.clone();
        let sides = if a < b { (a, b) } else { (b, a) };
        ((metric, axis, sides), group)
    }));
    let mut findings = Vec::new();
    for (_, mut groups) in pairs {
        sort::by_key(&mut groups, |(outcome, _)| {
            (outcome.result != VerdictResult::Better, outcome.result == VerdictResult::NotComparable)
        });
        for (outcome, members) in &groups {
            findings.extend(split(context, outcome, members));
        }
    }
    findings
}

/// The findings of an outcome: one for each operation, target and combination of the other axes if they have ratios,
/// otherwise one for each product of operations, targets and values.
fn split(context: &Context<'_>, outcome: &Outcome, members: &[&Verdict]) -> Vec<Finding> {
    let has_ratios = !matches!(outcome.result, VerdictResult::NoDifference | VerdictResult::NotComparable);
    let groups = grouped(members.iter().map(|verdict| {
        let line = has_ratios.then(|| (verdict.operation.clone(), verdict.target.clone()));
        ((context.others(verdict), line), *verdict)
    }));
    let findings = |((axes, _), members): ((Cell, _), Vec<&Verdict>)| -> Vec<Finding> {
        let of = |product: Product| finding(context, outcome, &axes, &members, product);
        products(&members).into_iter().filter_map(of).collect()
    };
    groups.into_iter().flat_map(findings).collect()
}

fn finding(
    context: &Context<'_>,
    outcome: &Outcome,
    axes: &Cell,
    members: &[&Verdict],
    (operations, targets, xs): Product,
) -> Option<Finding> {
    let here =
        |verdict: &&Verdict| operations.contains(&verdict.operation) && targets.contains(&verdict.target);
    let members: Vec<&Verdict> = members.iter().copied().filter(here).collect();
    let scope = Scope {
        operations,
        targets: targets.into_iter().flatten().collect(),
        at: xs.into_iter().flatten().collect(),
        axes: axes.clone(),
    };
    let (pair, comparisons) = (outcome.pair.clone(), members.len() as u32);
    let measured = |verdict: &&Verdict| {
        let ratio = Interval { value: verdict.ratio?, low: verdict.low, high: verdict.high };
        let forward = verdict.pair.a == pair.a;
        let Interval { value: ratio, low, high } = if forward { ratio } else { ratio.inverse() };
        Some(Measured { at: verdict.x.clone(), ratio, low, high })
    };
    let measured = members.iter().map(measured).collect::<Option<Vec<_>>>();
    let found = match outcome.result {
        VerdictResult::Better | VerdictResult::Worse => Comparison::Better {
            scope,
            pair,
            measured: measured?,
            lower_bound: members.iter().any(|verdict| verdict.lower_bound),
            limit: limit(&members),
            durability: outcome.durability.clone(),
        },
        VerdictResult::NoDifference => {
            Comparison::NoDifference { scope, pair, comparisons, margin: context.rule.margin }
        }
        VerdictResult::Undecided => {
            let more: Option<Vec<u32>> = members.iter().map(|verdict| verdict.further_rounds).collect();
            let further_rounds = more.and_then(|more| more.into_iter().max());
            let noise = members.iter().filter_map(|verdict| verdict.noise_floor).max_by(f64::total_cmp);
            Comparison::Undecided {
                scope,
                pair,
                measured: measured?,
                noise_floor: noise.filter(|floor| *floor > context.rule.margin),
                further_rounds,
                further_seconds: further_rounds.and_then(|rounds| context.rule.seconds(rounds)),
            }
        }
        VerdictResult::NotComparable => {
            Comparison::NotComparable { scope, pair, comparisons, why: outcome.why.clone()? }
        }
    };
    Some(found.into())
}

/// The bottleneck of the slower side, if targets are compared and it is the same in all comparisons.
fn limit(members: &[&Verdict]) -> Option<Limit> {
    let slower = |verdict: &Verdict| verdict.limits[usize::from(verdict.result == VerdictResult::Better)];
    let first = members.first().filter(|verdict| verdict.target.is_none()).and_then(|v| slower(v))?;
    let same = members.iter().all(|v| slower(v).is_some_and(|one| one.bottleneck == first.bottleneck));
    let least = members.iter().filter_map(|v| slower(v)).find(|one| one.confidence != first.confidence);
    let low = |limit: Limit| Limit { confidence: Confidence::Low, ..limit };
    same.then_some(least.map_or(first, low))
}

/// A product of operations, targets and values of the chart axis.
type Product = (Vec<String>, Vec<Option<String>>, Vec<Option<AxisValue>>);

/// The smallest number of products: joins operations with the same values, then targets with the same operations and
/// values.
fn products(members: &[&Verdict]) -> Vec<Product> {
    let point = |verdict: &&Verdict| ((verdict.operation.clone(), verdict.target.clone()), verdict.x.clone());
    let lines = grouped(members.iter().map(point));
    let joined = grouped(lines.into_iter().map(|((operation, target), xs)| ((target, xs), operation)));
    let all = grouped(joined.into_iter().map(|((target, xs), operations)| ((operations, xs), target)));
    all.into_iter().map(|((operations, xs), targets)| (operations, targets, xs)).collect()
}
