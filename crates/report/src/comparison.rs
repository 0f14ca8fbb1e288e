//! Which cells are compared, and the result of each comparison.
//!
//! Comparing all pairs of the product of all axes would widen every interval. What is compared is the run's
//! [`Question`](kurabe_core::question::Question): for each operation and each combination of the values of the axes within
//! which it asks,
//!
//! - each target with each other target, if it compares targets;
//! - each value of each compared axis with the first one, on each target.
//!
//! All other axes have their first value.

use crate::cell::{CellResult, MetricInfo, Status};
use crate::labels::{Axis, Labels};
use crate::metrics::{Paired, paired};
use crate::noise::Noise;
use crate::rule::Rule;
use crate::verdict::{Limit, Side, Verdict, Why};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::load::Load;
use kurabe_core::metric::{Better, Source, Unit, speed};
use kurabe_core::run::{RunSpec, Sampled};
use kurabe_core::sort;
use kurabe_stats::interim::further_rounds;
use kurabe_stats::{
    Decision, Estimate, IntervalSettings, PairedRatio, SharedVariance, judge, minimum_detectable_ratio,
    noise_floor,
};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the difference between two targets.
pub(crate) const TARGET: &str = "target";

/// Both cells of a comparison; otherwise it has why they are not compared: one has no results, or no exact ones.
/// Values of an axis are compared as an application sees them, including its client. Targets are compared as servers,
/// for which a saturated client only gives a lower bound.
pub(crate) fn comparable<'a>(
    verdict: &mut Verdict,
    cells: [Option<&'a CellResult>; 2],
) -> Option<[&'a CellResult; 2]> {
    let [Some(a), Some(b)] = cells.map(ok) else {
        let why = verdict.sides().into_iter().zip(cells).find_map(|(side, cell)| why_no_results(side, cell));
        verdict.why = why;
        return None;
    };
    let overloaded =
        verdict.sides_where([a, b], CellResult::is_overloaded).map(|sides| Why::Overloaded { sides });
    let late = || {
        let sides = verdict.sides_where([a, b], CellResult::is_generator_late);
        sides.map(|sides| Why::GeneratorLate { sides })
    };
    let why = overloaded.or_else(late);
    verdict.why = why;
    verdict.why.is_none().then_some([a, b])
}

/// Restricts a result if a client was saturated: a side with a lower bound may win, and by at least the ratio; it
/// cannot lose or be equal.
pub(crate) fn bound(verdict: &mut Verdict, cells: [&CellResult; 2]) {
    // Metrics other than rates and times do not depend on the client's saturation.
    if !matches!(verdict.unit, Unit::PerSecond | Unit::Nanoseconds) {
        return;
    }
    let full = cells.map(CellResult::is_lower_bound);
    let (holds, least) = match verdict.result {
        Decision::Above => (!full[1], full[0]),
        Decision::Below => (!full[0], full[1]),
        _ => (!full[0] && !full[1], false),
    };
    verdict.lower_bound = holds && least;
    if !holds {
        let sides = verdict.sides_where(cells, CellResult::is_lower_bound).unwrap_or_default();
        (verdict.result, verdict.why) = (Decision::NotTestable, Some(Why::ClientBound { sides }));
    }
}

/// Whether the interval allows a side with a lower bound to win against one without, a result that [`bound`] would
/// not restrict.
fn may_win(ratio: Estimate, cells: [&CellResult; 2]) -> bool {
    match cells.map(CellResult::is_lower_bound) {
        [true, false] => ratio.high.is_none_or(|high| high > 1.0),
        [false, true] => ratio.low.is_none_or(|low| low < 1.0),
        _ => false,
    }
}

/// All comparisons of a run, those of primary metrics first; and how many of these and of the others have results.
pub(crate) fn compare(
    labels: &Labels,
    cells: &[CellResult],
    noise: &Noise,
    rule: &Rule,
    spec: &RunSpec,
) -> (Vec<Verdict>, [u32; 2]) {
    let originals = cells.iter().filter(|cell| !cell.aa_control);
    let index: BTreeMap<(usize, &Cell, &str), &CellResult> = sort::btree_map(
        originals.map(|cell| ((cell.target.at(), &cell.axes, cell.operation.as_str()), cell)),
    );
    let find =
        |(target, axes): &(usize, Cell), operation: &str| index.get(&(*target, axes, operation)).copied();
    let known: BTreeSet<(usize, &Cell)> = index.keys().map(|(target, axes, _)| (*target, *axes)).collect();
    let pairs = plan(labels, &|(target, axes)| known.contains(&(*target, axes)));
    let mut found: Vec<_> = Vec::new();
    for pair in &pairs {
        for metric in &labels.metrics {
            // If the baseline lacks a metric, the first value with it replaces the baseline.
            let has = |level: &AxisValue| {
                let reference = pair.against(labels, level)?;
                let cell = ok(find(&reference.b, &pair.operation))?;
                cell.metric(&metric.name).map(|_| reference)
            };
            let levels = pair.axis.map_or(&[][..], |axis| &labels.axes[axis].values);
            let instead = levels.iter().filter(|_| !metric.is_speed()).find_map(has);
            let pair = instead.unwrap_or_else(|| pair.clone());
            let sides = [find(&pair.a, &pair.operation), find(&pair.b, &pair.operation)];
            if pair.a != pair.b && is_compared(metric, &pair, sides) {
                found.push((metric, pair, sides));
            }
        }
    }
    sort::by_key(&mut found, |(metric, ..)| !metric.primary);
    // The intervals of primary metrics hold together, and so do those of the others: many additional metrics do not
    // widen the primary intervals.
    let families = [true, false].map(|primary| {
        let these = found.iter().filter(|(metric, ..)| metric.primary == primary);
        Family::of(these.map(|(metric, _, sides)| (*metric, *sides)), spec)
    });
    let judged = found.into_iter().filter_map(|(metric, pair, sides)| {
        let family = &families[usize::from(!metric.primary)];
        judge_pair(labels, (metric, pair), sides, (noise, rule, spec), family)
    });
    (judged.collect(), families.map(|family| family.comparisons))
}

/// Comparisons whose intervals hold together.
struct Family {
    comparisons: u32,
    /// What they know of each other's noise.
    shared: Option<SharedVariance>,
}

impl Family {
    fn of<'a>(
        pairs: impl Iterator<Item = (&'a MetricInfo, [Option<&'a CellResult>; 2])>,
        spec: &RunSpec,
    ) -> Self {
        let comparable: Vec<Paired> = pairs
            .filter_map(|(metric, sides)| match sides.map(ok) {
                [Some(a), Some(b)] => Some(paired(a, b, metric, spec)),
                _ => None,
            })
            .filter(|pair| pair.rounds > 0)
            .collect();
        let ratios: Vec<Vec<f64>> = comparable.iter().filter_map(Paired::log_ratios).collect();
        Self { comparisons: comparable.len() as u32, shared: SharedVariance::from_family(&ratios) }
    }

    /// The settings of the intervals at a single analysis.
    fn settings(&self) -> IntervalSettings {
        IntervalSettings::default().for_comparisons(self.comparisons.max(1))
    }
}

/// Whether a pair is compared by a metric: always by speed; by others if both sides have them.
fn is_compared(metric: &MetricInfo, pair: &Planned, sides: [Option<&CellResult>; 2]) -> bool {
    if metric.is_speed() {
        return metric.name == speed(Load::of(&pair.a.1)).name;
    }
    let once = metric.source == Source::Trial || pair.is_first;
    let has = |side: Option<&CellResult>| ok(side).is_some_and(|cell| cell.metric(&metric.name).is_some());
    metric.better != Better::Neither && once && sides.into_iter().all(has)
}

#[derive(Clone)]
struct Planned {
    axis: Option<usize>,
    operation: String,
    x: Option<AxisValue>,
    /// Whether it is the first value of the chart axis.
    is_first: bool,
    a: (usize, Cell),
    b: (usize, Cell),
}

impl Planned {
    /// The same side `a` against another value of the axis.
    fn against(&self, labels: &Labels, level: &AxisValue) -> Option<Self> {
        let axes = with(&self.b.1, &labels.axes[self.axis?].name, level);
        Some(Self { b: (self.b.0, axes), ..self.clone() })
    }
}

fn plan(labels: &Labels, exists: &dyn Fn(&(usize, Cell)) -> bool) -> Vec<Planned> {
    let question = &labels.question;
    let mut planned = Vec::new();
    for operation in &labels.operations {
        for (common, x, is_first) in places(labels) {
            let mut push = |axis, a, b| {
                let operation = operation.name.clone();
                planned.push(Planned { axis, operation, x: x.clone(), is_first, a, b });
            };
            for target in 0..labels.targets.len() {
                for (position, axis) in labels.axes.iter().enumerate() {
                    for level in axis.values.iter().skip(1).filter(|_| question.compares(&axis.name)) {
                        let sides = |common: &Cell| {
                            let first = axis.baseline().unwrap_or(level);
                            [level, first].map(|value| (target, with(common, &axis.name, value)))
                        };
                        let [a, b] =
                            where_it_matters(labels, &common, &|common| sides(common).iter().all(exists))
                                .map_or_else(|| sides(&common), |common| sides(&common));
                        push(Some(position), a, b);
                    }
                }
            }
            let count = if question.compares_targets() { labels.targets.len() } else { 0 };
            for (a, b) in (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))) {
                push(None, (a, common.clone()), (b, common.clone()));
            }
        }
    }
    planned
}

/// Where the comparisons are made: the values of all axes, the value of the chart axis if it is no compared one, and whether
/// that is the first of them.
pub(crate) fn places(labels: &Labels) -> Vec<(Cell, Option<AxisValue>, bool)> {
    let question = &labels.question;
    let mut places = vec![Axis::baselines(&labels.axes)];
    let is_chart = |axis: &Axis| labels.chart_axis().is_some_and(|chart| chart.name == axis.name);
    for axis in labels.axes.iter().filter(|axis| question.is_within(&axis.name) && !is_chart(axis)) {
        let each =
            |place: &Cell| axis.sorted().into_iter().map(|value| with(place, &axis.name, &value)).collect();
        places = places.iter().flat_map(|place| -> Vec<Cell> { each(place) }).collect();
    }
    let Some(chart) = labels.chart_axis() else {
        return places.into_iter().map(|place| (place, None, true)).collect();
    };
    let xs = if question.compares(&chart.name) {
        vec![None]
    } else if question.is_within(&chart.name) {
        chart.sorted().into_iter().map(Some).collect()
    } else {
        vec![chart.baseline().cloned()]
    };
    let at = |place: &Cell, x: &Option<AxisValue>| {
        x.as_ref().map_or_else(|| place.clone(), |x| with(place, &chart.name, x))
    };
    let each = |place: &Cell| xs.iter().enumerate().map(|(n, x)| (at(place, x), x.clone(), n == 0)).collect();
    places.iter().flat_map(|place| -> Vec<_> { each(place) }).collect()
}

/// The place nearest to this one at which both sides of a comparison exist: another compared axis has another value there,
/// with which the axis of the comparison matters.
fn where_it_matters(labels: &Labels, place: &Cell, exist: &dyn Fn(&Cell) -> bool) -> Option<Cell> {
    let held = labels.axes.iter().filter(|axis| !labels.question.is_within(&axis.name));
    let others = held.flat_map(|axis| axis.values.iter().map(|value| with(place, &axis.name, value)));
    std::iter::once(place.clone()).chain(others).find(|place| exist(place))
}

/// The same values, but this one of an axis.
fn with(cell: &Cell, axis: &str, value: &AxisValue) -> Cell {
    let mut values = cell.values().clone();
    values.insert(axis.to_owned(), value.clone());
    Cell::new(values)
}

fn judge_pair(
    labels: &Labels,
    (metric, planned): (&MetricInfo, Planned),
    cells: [Option<&CellResult>; 2],
    (noise, rule, spec): (&Noise, &Rule, &RunSpec),
    family: &Family,
) -> Option<Verdict> {
    let targets = [planned.a.0, planned.b.0];
    let mut at = planned.b.1.values().clone();
    // A metric derived from all values of the chart axis belongs to none of them.
    let chart = labels.chart_axis().filter(|_| metric.source != Source::Trial);
    if let Some(axis) = chart {
        at.remove(&axis.name);
    }
    let sides = match planned.axis.map(|axis| &labels.axes[axis].name) {
        Some(axis) => {
            at.remove(axis);
            let value = |(_, cell): &(usize, Cell)| cell.get(axis).cloned().map(Side::Value);
            [value(&planned.a)?, value(&planned.b)?]
        }
        None => targets.map(Side::Target),
    };
    let variance = noise.variance(&targets, &planned.operation, metric);
    let axis = planned.axis.map_or(TARGET, |axis| &labels.axes[axis].name);
    let limit = |cell: &CellResult| {
        let found = cell.attribution.as_ref()?;
        Some(Limit { bottleneck: found.bottleneck, confidence: found.confidence })
    };
    let operation = planned.operation.as_str();
    let mut verdict = Verdict {
        target: planned.axis.map(|_| labels.ids[targets[0]].clone()),
        at: Cell::new(at),
        x: planned.x.clone().filter(|_| chart.is_none()),
        limits: cells.map(|cell| cell.filter(|_| metric.is_speed()).and_then(limit)),
        margin: rule.margin,
        ..Verdict::new(metric, (operation, axis), sides, cells)
    };
    let pair = match cells.map(ok) {
        [Some(a), Some(b)] => Some(paired(a, b, metric, spec)),
        _ => None,
    };
    let rounds = pair.as_ref().map_or(0, |pair| pair.rounds);
    verdict.rounds = rounds as u32;
    let Some(both) = comparable(&mut verdict, cells) else { return Some(verdict) };
    let once = family.settings();
    let ratio = pair.and_then(|pair| pair.log_ratios()).and_then(|ratios| {
        PairedRatio::from_logarithms(&ratios, family.shared.as_ref(), &rule.settings(once))
    });
    let Some(ratio) = ratio else {
        verdict.why = Some(if rounds == 0 { Why::NoCommonRound } else { Why::NotPositive });
        return Some(verdict);
    };
    verdict.noise_floor = variance.map(|variance| noise_floor(variance, ratio.quantile));
    verdict.result = judge(ratio.estimate, rule.margin);
    verdict.conclusive = verdict.result != Decision::Undecided;
    if verdict.target.is_none() {
        bound(&mut verdict, both);
        // More rounds may still show that a saturated side wins, if only one side is saturated.
        verdict.conclusive |= verdict.result == Decision::NotTestable && !may_win(ratio.estimate, both);
    }
    if !verdict.conclusive {
        let further = further_rounds(&ratio, rule.margin, rule.analyses(), &once);
        // A sample is a round, or a whole block of them.
        let any_start = spec.sampled() == Sampled::AnyStart;
        let each = if any_start { spec.block_length() as usize } else { 1 };
        verdict.further_rounds = further.map(|samples| (samples * each) as u32);
    }
    verdict.smallest_detectable = minimum_detectable_ratio(ratio.estimate).map(|factor| factor - 1.0);
    verdict.ratio = Some(ratio.estimate);
    verdict.corrected_for = ratio.comparisons;
    Some(verdict)
}

fn ok(cell: Option<&CellResult>) -> Option<&CellResult> {
    cell.filter(|cell| cell.status == Status::Ok)
}

/// Why a side has no results; `None` if it has.
fn why_no_results(side: &Side, cell: Option<&CellResult>) -> Option<Why> {
    let side = side.clone();
    let Some(cell) = cell else { return Some(Why::NotMeasured { side }) };
    let reason = cell.reason.clone().unwrap_or_default();
    match cell.status {
        Status::Ok => None,
        Status::Failed => Some(Why::Failed { side, reason }),
        Status::Unavailable => Some(Why::Unavailable { side, reason }),
    }
}
