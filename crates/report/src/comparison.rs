//! Which cells are compared with which, and what the rounds say of each pair.
//!
//! The product of all axes has too many pairs to compare them all: each further comparison widens every interval.
//! Compared are, for each operation and each value of the chart axis,
//!
//! - each level of each other axis with the axis's baseline, the remaining axes at their baselines;
//! - each target with each other, all axes at their baselines.

use crate::finding::{Limit, Pair, Why};
use crate::labels::Labels;
use crate::noise::Noise;
use crate::rule::Rule;
use crate::summary::{CellFigures, Status, Verdict, VerdictResult};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_stats::settle::{further_rounds, is_within};
use kurabe_stats::{Direction, IntervalSettings, PairedRatio, judge, minimum_detectable_ratio, mix};
use std::collections::BTreeMap;

/// The name of what two targets differ in.
pub(crate) const TARGET: &str = "target";

/// The rates of two cells in the rounds in which both were measured, in the order of the rounds.
pub(crate) fn paired(a: &CellFigures, b: &CellFigures) -> (Vec<f64>, Vec<f64>) {
    a.by_round.iter().filter_map(|(round, rate)| Some((*rate, *b.by_round.get(round)?))).unzip()
}

/// Which sides of two servers' figures are not exact: why the pair may not be compared, whatever the rounds show.
/// `sides` are as the comparison names them. A value of an axis is compared as an application meets it, whose client is a
/// part of what was measured; two servers are compared as servers, of which a full client says only the least.
pub(crate) fn not_comparable(cells: [&CellFigures; 2], sides: [&str; 2]) -> Option<Why> {
    let these = |holds: fn(&CellFigures) -> bool| -> Option<Vec<String>> {
        let found = cells.iter().zip(sides).filter(|(cell, _)| holds(cell));
        let found: Vec<String> = found.map(|(_, side)| side.to_owned()).collect();
        (!found.is_empty()).then_some(found)
    };
    these(CellFigures::is_overloaded)
        .map(|sides| Why::Overloaded { sides })
        .or_else(|| these(CellFigures::is_generator_late).map(|sides| Why::GeneratorLate { sides }))
}

/// What remains of a result where a client was full: a side whose figure is a lower bound may win, and by at least the
/// ratio; it cannot lose, nor be equal. Gives the result, why it is no other, and whether the winner's figure is the least.
pub(crate) fn bounded(
    result: VerdictResult,
    cells: [&CellFigures; 2],
    sides: [&str; 2],
) -> (VerdictResult, Option<Why>, bool) {
    let full = cells.map(CellFigures::is_lower_bound);
    let (holds, least) = match result {
        VerdictResult::Faster => (!full[1], full[0]),
        VerdictResult::Slower => (!full[0], full[1]),
        _ => (!full[0] && !full[1], false),
    };
    if holds {
        return (result, None, least);
    }
    let sides = full.iter().zip(sides).filter(|(full, _)| **full).map(|(_, side)| side.to_owned()).collect();
    (VerdictResult::NotComparable, Some(Why::ClientBound { sides }), false)
}

/// What a ratio shows, held against the noise floor and the margin.
pub(crate) fn result_of(ratio: &PairedRatio, floor: f64, margin: f64) -> VerdictResult {
    match judge(ratio, floor, Direction::HigherIsBetter) {
        kurabe_stats::Verdict::Faster => VerdictResult::Faster,
        kurabe_stats::Verdict::Slower => VerdictResult::Slower,
        _ if is_within(ratio, margin) => VerdictResult::NoDifference,
        _ => VerdictResult::Inconclusive,
    }
}

/// All comparisons of a run, and how many of them have figures.
pub(crate) fn compare(
    labels: &Labels,
    cells: &[CellFigures],
    noise: &Noise,
    rule: &Rule,
    seed: u64,
) -> (Vec<Verdict>, u32) {
    let originals = cells.iter().filter(|cell| !cell.baseline_repeat);
    let index: BTreeMap<(usize, &Cell, &str), &CellFigures> =
        originals.map(|cell| ((cell.target_index, &cell.axes, cell.operation.as_str()), cell)).collect();
    let find =
        |(target, axes): &(usize, Cell), operation: &str| index.get(&(*target, axes, operation)).copied();
    let found: Vec<_> = plan(labels)
        .into_iter()
        .map(|pair| {
            let sides = [find(&pair.a, &pair.operation), find(&pair.b, &pair.operation)];
            (pair, sides)
        })
        .collect();
    let comparable = |sides: &[Option<&CellFigures>; 2]| match sides.map(ok) {
        [Some(a), Some(b)] => !paired(a, b).0.is_empty(),
        _ => false,
    };
    let count = found.iter().filter(|(_, sides)| comparable(sides)).count() as u32;
    let settings = IntervalSettings::new(seed).for_comparisons(count.max(1));
    let judged = found.into_iter().enumerate().map(|(n, (pair, sides))| {
        let settings = IntervalSettings { seed: mix(seed, n as u64), ..settings };
        judge_pair(labels, pair, sides, (noise, rule), &settings)
    });
    (judged.collect(), count)
}

struct Planned {
    axis: Option<usize>,
    operation: String,
    x: Option<AxisValue>,
    a: (usize, Cell),
    b: (usize, Cell),
}

fn plan(labels: &Labels) -> Vec<Planned> {
    let baseline: BTreeMap<String, AxisValue> =
        labels.axes.iter().filter_map(|axis| Some((axis.name.clone(), axis.baseline()?.clone()))).collect();
    let xs: Vec<Option<AxisValue>> = match labels.chart_axis() {
        Some(axis) => axis.sorted().into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut planned = Vec::new();
    for operation in &labels.operations {
        for x in &xs {
            let mut common = baseline.clone();
            if let (Some(axis), Some(x)) = (labels.chart_axis(), x) {
                common.insert(axis.name.clone(), x.clone());
            }
            let mut push = |axis, a, b| {
                planned.push(Planned { axis, operation: operation.name.clone(), x: x.clone(), a, b });
            };
            for target in 0..labels.targets.len() {
                for (position, axis) in labels.axes.iter().enumerate() {
                    if Some(position) == labels.chart {
                        continue;
                    }
                    for level in axis.values.iter().skip(1) {
                        let mut other = common.clone();
                        other.insert(axis.name.clone(), level.clone());
                        let (a, b) = (Cell::new(other), Cell::new(common.clone()));
                        push(Some(position), (target, a), (target, b));
                    }
                }
            }
            for a in 0..labels.targets.len() {
                for b in a + 1..labels.targets.len() {
                    let cell = Cell::new(common.clone());
                    push(None, (a, cell.clone()), (b, cell));
                }
            }
        }
    }
    planned
}

fn judge_pair(
    labels: &Labels,
    planned: Planned,
    cells: [Option<&CellFigures>; 2],
    (noise, rule): (&Noise, &Rule),
    once: &IntervalSettings,
) -> Verdict {
    let targets = [planned.a.0, planned.b.0];
    let name = |target: usize| labels.names[target].clone();
    let mut at = planned.b.1.values().clone();
    let [a, b] = match planned.axis.map(|axis| &labels.axes[axis]) {
        Some(axis) => {
            at.remove(&axis.name);
            [&planned.a, &planned.b].map(|(_, cell)| axis.show_of(cell))
        }
        None => targets.map(name),
    };
    let noise_floor = noise.floor(&targets, &planned.operation);
    let metric = crate::figures::metric_of(&planned.a.1);
    let axis = planned.axis.map_or(TARGET, |axis| &labels.axes[axis].name).to_owned();
    let limit = |cell: &CellFigures| {
        let found = cell.attribution.as_ref()?;
        Some(Limit { bottleneck: found.bottleneck, confidence: found.confidence })
    };
    let mut verdict = Verdict {
        operation: planned.operation,
        pair: Pair { metric, axis, a, b },
        target: planned.axis.map(|_| name(targets[0])),
        at: Cell::new(at),
        result: VerdictResult::NotComparable,
        why: None,
        ratio: None,
        low: None,
        high: None,
        rounds: 0,
        noise_floor,
        smallest_detectable: None,
        corrected_for: 0,
        conclusive: true,
        further_rounds: None,
        lower_bound: false,
        x: planned.x,
        limits: cells.map(|cell| cell.and_then(limit)),
    };
    let sides = [verdict.pair.a.clone(), verdict.pair.b.clone()];
    let sides = [sides[0].as_str(), sides[1].as_str()];
    let [Some(a), Some(b)] = cells.map(ok) else {
        verdict.why = sides.iter().zip(cells).find_map(|(side, cell)| why_no_figures(side, cell));
        return verdict;
    };
    let (subject, other) = paired(a, b);
    verdict.rounds = subject.len() as u32;
    if let Some(why) = not_comparable([a, b], sides) {
        verdict.why = Some(why);
        return verdict;
    }
    let Ok(ratio) = PairedRatio::of(&subject, &other, &rule.settings(*once)) else {
        verdict.why = Some(Why::NoCommonRound);
        return verdict;
    };
    let floor = noise_floor.unwrap_or(0.0);
    verdict.result = result_of(&ratio, floor, rule.margin);
    if verdict.target.is_none() {
        (verdict.result, verdict.why, verdict.lower_bound) = bounded(verdict.result, [a, b], sides);
    }
    verdict.conclusive = verdict.result != VerdictResult::Inconclusive;
    if !verdict.conclusive {
        let further = further_rounds(&ratio, floor, rule.margin, rule.analyses(), once);
        verdict.further_rounds = further.map(|rounds| rounds as u32);
    }
    verdict.smallest_detectable = minimum_detectable_ratio(&ratio, floor).map(|factor| factor - 1.0);
    verdict.ratio = Some(ratio.ratio);
    (verdict.low, verdict.high) = (ratio.low(), ratio.high());
    verdict.corrected_for = ratio.comparisons;
    verdict
}

fn ok(cell: Option<&CellFigures>) -> Option<&CellFigures> {
    cell.filter(|cell| cell.status == Status::Ok)
}

/// Why a side has no figures; `None` where it has.
pub(crate) fn why_no_figures(side: &str, cell: Option<&CellFigures>) -> Option<Why> {
    let side = side.to_owned();
    let Some(cell) = cell else { return Some(Why::NotMeasured { side }) };
    let reason = cell.reason.clone().unwrap_or_default();
    match cell.status {
        Status::Ok => None,
        Status::Failed => Some(Why::Failed { side, reason }),
        Status::Unavailable => Some(Why::Unavailable { side, reason }),
    }
}
