//! Comparison of the run's ratios with published ones: whether they agree, and otherwise with how much additional
//! work per request they would.

use super::Context;
use crate::finding::{Finding, Interval, PublishedHere, Span, Values};
use crate::metrics::is_speed;
use crate::published::{Shape, load};
use crate::summary::{CellResult, Verdict};
use kurabe_core::metric::THROUGHPUT;

/// One finding for each published ratio of the experiment.
pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let sets = context.labels.published.map(load).unwrap_or_default();
    sets.into_iter().filter_map(|set| finding(context, set.about.shape?)).collect()
}

fn finding(context: &Context<'_>, shape: Shape) -> Option<Finding> {
    let mut here: Vec<PublishedHere> = Vec::new();
    for verdict in context.verdicts {
        let pair = (&verdict.pair.a, &verdict.pair.b);
        let forward = pair == (&shape.faster, &shape.slower);
        let asked = is_speed(&verdict.pair.metric)
            && verdict.pair.axis == shape.axis
            && (forward || pair == (&shape.slower, &shape.faster));
        let Some(target) = verdict.target.clone().filter(|_| asked && verdict.result.is_called()) else {
            continue;
        };
        let Some(value) = verdict.ratio else { continue };
        let ratio = Interval { value, low: verdict.low, high: verdict.high };
        let ratio = if forward { ratio } else { ratio.inverse() };
        // The smallest value of the chart axis stands for the others: with one client there is no waiting for others.
        if !here.iter().any(|known| known.target == target) {
            let other_work_us = other_work(context, verdict, &shape);
            here.push(PublishedHere { target, ratio, other_work_us });
        }
    }
    // Two intervals agree if they overlap.
    let agrees = |one: &PublishedHere| {
        one.ratio.low.is_some_and(|low| low <= shape.high)
            && one.ratio.high.is_some_and(|high| high >= shape.low)
    };
    let reproduced = here.iter().all(agrees);
    let ratio = Span { low: shape.low, high: shape.high };
    let (claim, otherwise) = (shape.said, shape.otherwise);
    (!here.is_empty()).then(|| Values::Published { claim, here, ratio, reproduced, otherwise }.into())
}

/// The additional work per request, in microseconds, for which the published ratio would hold; `None` if there is
/// none.
fn other_work(context: &Context<'_>, verdict: &Verdict, shape: &Shape) -> Option<Span> {
    let time = |cell: &CellResult| {
        let rate = cell.metric(THROUGHPUT.name)?.value;
        Some(1e6 * cell.totals.as_ref()?.clients as f64 / rate)
    };
    let [a, b] = context.sides(verdict)?;
    let (a, b) = (time(a)?, time(b)?);
    let (fast, slow) = if verdict.pair.a == shape.faster { (a, b) } else { (b, a) };
    let other = |factor: f64| (slow - factor * fast) / (factor - 1.0);
    Some(Span { low: other(shape.high), high: other(shape.low) }).filter(|work| work.low > 0.0)
}
