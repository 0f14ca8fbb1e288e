//! How the run's ratios compare with published ones: whether they agree, and if not, in which application they would.

use super::Context;
use crate::finding::Metric;
use crate::finding::{Finding, PublishedHere, Span};
use crate::published::{Shape, load};
use crate::summary::{Verdict, VerdictResult};

/// One finding for each ratio that the published figures of the experiment have.
pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let sets = context.labels.published.map(load).unwrap_or_default();
    sets.into_iter().filter_map(|set| finding(context, set.about.shape?)).collect()
}

fn finding(context: &Context<'_>, shape: Shape) -> Option<Finding> {
    let mut here: Vec<PublishedHere> = Vec::new();
    for verdict in context.verdicts {
        let called = matches!(verdict.result, VerdictResult::Faster | VerdictResult::Slower);
        let pair = (&verdict.pair.a, &verdict.pair.b);
        let forward = pair == (&shape.faster, &shape.slower);
        let asked = verdict.pair.axis == shape.axis && (forward || pair == (&shape.slower, &shape.faster));
        let Some(target) = verdict.target.clone().filter(|_| asked && called) else { continue };
        let (Some(low), Some(high)) = (verdict.low, verdict.high) else { continue };
        let ratio = if forward { Span { low, high } } else { Span { low: 1.0 / high, high: 1.0 / low } };
        // The least value of the chart axis stands for the others: with one client nothing waits for another.
        if !here.iter().any(|known| known.target == target) {
            let other_work_us = other_work(context, verdict, &shape);
            here.push(PublishedHere { target, ratio, other_work_us });
        }
    }
    // Two intervals agree where they overlap.
    let agrees = |one: &PublishedHere| one.ratio.low <= shape.high && one.ratio.high >= shape.low;
    (!here.is_empty()).then(|| Finding::Published {
        reproduced: here.iter().all(agrees),
        here,
        ratio: Span { low: shape.low, high: shape.high },
        claim: shape.said,
        otherwise: shape.otherwise,
    })
}

/// With how much other work in each request, in microseconds, the ratio would be the published one; `None` where it would
/// not with any.
fn other_work(context: &Context<'_>, verdict: &Verdict, shape: &Shape) -> Option<Span> {
    let time = |value: &String| {
        let axis = context.labels.axis(&shape.axis)?;
        let value = axis.values.iter().find(|known| axis.show(known) == *value)?;
        let cell = context.cells.iter().find(|cell| {
            Some(&cell.target) == verdict.target.as_ref()
                && cell.operation == verdict.operation
                && cell.metric == Metric::Throughput
                && !cell.baseline_repeat
                && cell.axes.get(&shape.axis) == Some(value)
                && verdict.at.values().iter().all(|(axis, at)| cell.axes.get(axis) == Some(at))
        })?;
        Some(1e6 * cell.totals.as_ref()?.clients as f64 / cell.ops_per_second?.median)
    };
    let (fast, slow) = (time(&shape.faster)?, time(&shape.slower)?);
    let other = |factor: f64| (slow - factor * fast) / (factor - 1.0);
    Some(Span { low: other(shape.high), high: other(shape.low) }).filter(|work| work.low > 0.0)
}
