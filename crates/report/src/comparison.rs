//! Which cells are compared with which, and what the rounds say of each pair.
//!
//! The product of all axes has too many pairs to compare them all: each further comparison widens every interval.
//! Compared are, for each operation and each value of the horizontal axis,
//!
//! - each level of each other axis with the axis's baseline, the remaining axes at their baselines;
//! - each target with each other, all axes at their baselines.

use crate::attribution::{Bound, Confidence};
use crate::noise::Noise;
use crate::settling::Rule;
use crate::summary::{CellFigures, Status, VerdictResult};
use crate::words::Words;
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_stats::settle::{further_rounds, is_settled, is_within};
use kurabe_stats::{Direction, IntervalSettings, PairedRatio, Verdict, judge, minimum_detectable_ratio, mix};
use std::collections::BTreeMap;

/// What the two sides of a comparison differ in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sides {
    /// Two levels of an axis (by position in [`Words::axes`]) on one target.
    Levels { target: usize, axis: usize, a: AxisValue, b: AxisValue },
    /// Two targets.
    Targets { a: usize, b: usize },
}

/// One pair of cells, judged.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub sides: Sides,
    pub operation: String,
    /// The value of the horizontal axis, where there is one.
    pub x: Option<AxisValue>,
    /// The values that both share.
    pub at: Cell,
    pub result: VerdictResult,
    /// Subject ÷ other.
    pub ratio: Option<PairedRatio>,
    pub noise_floor: Option<f64>,
    /// The least factor that would have been seen.
    pub detectable: Option<f64>,
    /// Whether further rounds could tell nothing that matters.
    pub settled: bool,
    /// Whether the whole interval lies within the margin of the run's rule, where it has one.
    pub within: Option<f64>,
    /// About how many more rounds would settle it.
    pub further: Option<u32>,
    /// Why there is no ratio.
    pub why_not: Option<String>,
    pub rounds: u32,
    /// What bound the two sides, where that was looked at.
    pub bounds: [Option<SideBound>; 2],
}

/// What bound one side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SideBound {
    pub bound: Bound,
    pub confidence: Confidence,
    /// The client's CPU as a share of what it may use.
    pub client_busy: f64,
}

impl SideBound {
    fn of(cell: &CellFigures) -> Option<Self> {
        let attribution = cell.attribution.as_ref()?;
        Some(Self {
            bound: attribution.bound_by,
            confidence: attribution.confidence,
            client_busy: attribution.client_busy,
        })
    }
}

/// The rates of two cells in the rounds in which both were measured, in the order of the rounds.
pub(crate) fn paired(a: &CellFigures, b: &CellFigures) -> (Vec<f64>, Vec<f64>) {
    a.by_round.iter().filter_map(|(round, rate)| Some((*rate, *b.by_round.get(round)?))).unzip()
}

/// All comparisons of a run, and how many of them have figures.
pub(crate) fn compare(
    words: &Words,
    cells: &[CellFigures],
    noise: &Noise,
    rule: &Rule,
    seed: u64,
) -> (Vec<Comparison>, u32) {
    let index = Index::of(cells);
    let planned = plan(words);
    let found: Vec<(Planned, Option<&CellFigures>, Option<&CellFigures>)> = planned
        .into_iter()
        .map(|pair| {
            let (a, b) = (
                index.get(pair.a.0, &pair.a.1, &pair.operation),
                index.get(pair.b.0, &pair.b.1, &pair.operation),
            );
            (pair, a, b)
        })
        .collect();
    let measured = |cell: &CellFigures| cell.status == Status::Ok;
    let comparable =
        |a: &CellFigures, b: &CellFigures| measured(a) && measured(b) && !paired(a, b).0.is_empty();
    let both = found.iter().filter_map(|(_, a, b)| a.zip(*b));
    let count = both.filter(|(a, b)| comparable(a, b)).count() as u32;
    let settings = IntervalSettings::new(seed).for_comparisons(count.max(1));
    let judged = found
        .into_iter()
        .enumerate()
        .map(|(n, (pair, a, b))| {
            let settings = IntervalSettings { seed: mix(seed, n as u64), ..settings };
            judge_pair(words, pair, a, b, (noise, rule), &settings)
        })
        .collect();
    (judged, count)
}

struct Planned {
    sides: Sides,
    operation: String,
    x: Option<AxisValue>,
    a: (usize, Cell),
    b: (usize, Cell),
}

fn plan(words: &Words) -> Vec<Planned> {
    let baseline: BTreeMap<String, AxisValue> =
        words.axes.iter().filter_map(|axis| Some((axis.name.clone(), axis.baseline()?.clone()))).collect();
    let xs: Vec<Option<AxisValue>> = match words.chart_axis() {
        Some(axis) => axis.sorted().into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut planned = Vec::new();
    for operation in &words.operations {
        for x in &xs {
            let mut common = baseline.clone();
            if let (Some(axis), Some(x)) = (words.chart_axis(), x) {
                common.insert(axis.name.clone(), x.clone());
            }
            let mut push = |sides, a, b| {
                planned.push(Planned { sides, operation: operation.name.clone(), x: x.clone(), a, b });
            };
            for target in 0..words.targets.len() {
                for (position, axis) in words.axes.iter().enumerate() {
                    let Some(base) = axis.baseline().filter(|_| Some(position) != words.chart) else {
                        continue;
                    };
                    for level in axis.values.iter().skip(1) {
                        let sides =
                            Sides::Levels { target, axis: position, a: level.clone(), b: base.clone() };
                        let mut other = common.clone();
                        other.insert(axis.name.clone(), level.clone());
                        push(sides, (target, Cell::new(other)), (target, Cell::new(common.clone())));
                    }
                }
            }
            for a in 0..words.targets.len() {
                for b in a + 1..words.targets.len() {
                    let cell = Cell::new(common.clone());
                    push(Sides::Targets { a, b }, (a, cell.clone()), (b, cell));
                }
            }
        }
    }
    planned
}

/// Cells by target, axis values and operation; repeats left out.
struct Index<'a>(BTreeMap<(usize, &'a Cell, &'a str), &'a CellFigures>);

impl<'a> Index<'a> {
    fn of(cells: &'a [CellFigures]) -> Self {
        let originals = cells.iter().filter(|cell| !cell.baseline_repeat);
        Self(originals.map(|cell| ((cell.target_index, &cell.axes, cell.operation.as_str()), cell)).collect())
    }

    fn get(&self, target: usize, axes: &Cell, operation: &str) -> Option<&'a CellFigures> {
        self.0.get(&(target, axes, operation)).copied()
    }
}

fn judge_pair(
    words: &Words,
    pair: Planned,
    a: Option<&CellFigures>,
    b: Option<&CellFigures>,
    (noise, rule): (&Noise, &Rule),
    once: &IntervalSettings,
) -> Comparison {
    let mut at = pair.b.1.values().clone();
    if let Sides::Levels { axis, .. } = pair.sides {
        at.remove(&words.axes[axis].name);
    }
    let noise_floor = noise.floor(&[pair.a.0, pair.b.0], &pair.operation);
    let mut comparison = Comparison {
        sides: pair.sides,
        operation: pair.operation,
        x: pair.x,
        at: Cell::new(at),
        result: VerdictResult::NotComparable,
        ratio: None,
        noise_floor,
        detectable: None,
        settled: true,
        within: None,
        further: None,
        why_not: None,
        rounds: 0,
        bounds: [a, b].map(|cell| cell.and_then(SideBound::of)),
    };
    let (Some(a), Some(b)) = (ok(a), ok(b)) else {
        comparison.why_not = Some(why_not(&comparison.sides, words, a, b));
        return comparison;
    };
    let (subject, other) = paired(a, b);
    comparison.rounds = subject.len() as u32;
    match PairedRatio::of(&subject, &other, &rule.settings(*once)) {
        Ok(ratio) => {
            let floor = noise_floor.unwrap_or(0.0);
            let verdict = judge(&ratio, floor, Direction::HigherIsBetter);
            comparison.settled = is_settled(&verdict, &ratio, rule.margin);
            comparison.within = is_within(&ratio, rule.margin).then_some(rule.margin);
            if !comparison.settled {
                let further = further_rounds(&ratio, floor, rule.margin, rule.analyses(), once);
                comparison.further = further.map(|rounds| rounds as u32);
            }
            comparison.result = match verdict {
                Verdict::Faster => VerdictResult::Faster,
                Verdict::Slower => VerdictResult::Slower,
                Verdict::Indistinguishable => VerdictResult::Indistinguishable,
                Verdict::NotComparable { .. } => VerdictResult::NotComparable,
                Verdict::Open => VerdictResult::Open,
            };
            comparison.detectable = minimum_detectable_ratio(&ratio, floor);
            comparison.ratio = Some(ratio);
            lower_bound(&mut comparison, words, [a, b]);
        }
        Err(_) => comparison.why_not = Some("they were never measured in the same round".to_owned()),
    }
    comparison
}

/// A target whose client was full could do more than its figure says: that it is slower does not follow.
fn lower_bound(comparison: &mut Comparison, words: &Words, sides: [&CellFigures; 2]) {
    let Sides::Targets { a, b } = comparison.sides else { return };
    let (loser, target) = match comparison.result {
        VerdictResult::Faster => (sides[1], b),
        VerdictResult::Slower => (sides[0], a),
        _ => return,
    };
    if loser.is_lower_bound() {
        comparison.result = VerdictResult::NotComparable;
        let name = &words.targets[target];
        comparison.why_not = Some(format!(
            "on {name} the client was full, so that its figure is a lower bound of what {name} can do"
        ));
    }
}

fn ok(cell: Option<&CellFigures>) -> Option<&CellFigures> {
    cell.filter(|cell| cell.status == Status::Ok)
}

/// Which side has no figures, and why.
fn why_not(sides: &Sides, words: &Words, a: Option<&CellFigures>, b: Option<&CellFigures>) -> String {
    let (a_name, b_name) = crate::phrase::names(sides, words);
    let lacking: Vec<String> = [(a_name, a), (b_name, b)]
        .into_iter()
        .filter(|(_, cell)| ok(*cell).is_none())
        .map(|(name, cell)| {
            let status = match cell.map(|cell| cell.status) {
                Some(Status::Failed) => "failed",
                _ => "is not available",
            };
            match cell.and_then(|cell| cell.reason.as_deref()) {
                Some(reason) => format!("{name} {status}: {reason}"),
                None => format!("{name} was not measured"),
            }
        })
        .collect();
    lacking.join("; ")
}
