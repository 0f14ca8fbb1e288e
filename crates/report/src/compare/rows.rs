//! The results of two sides, row by row: two runs, or two targets of one.

use crate::cell::{CellResult, MetricInfo, Status};
use crate::claim::Answer;
use crate::comparison::{bounded, not_comparable, why_no_results};
use crate::estimate::as_ratio;
use crate::finding::Between;
use crate::metrics::paired;
use crate::rule::Rule;
use crate::side::Side;
use crate::summary::Summary;
use crate::verdict::Why;
use kurabe_core::axis::Cell;
use kurabe_core::metric::{Better, Source, Unit};
use kurabe_core::run::DEFAULT_MARGIN;
use kurabe_core::sort;
use kurabe_stats::{Estimate, IntervalSettings, PairedRatio, VerdictResult, judge};
use serde::{Serialize, Serializer};

/// A metric of a cell and operation in both runs.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The target's name in the first run.
    pub target: String,
    /// The value of each axis.
    pub axes: Cell,
    pub operation: String,
    pub metric: String,
    pub unit: Unit,
    /// Whether it answers the experiment's question.
    pub primary: bool,
    /// The value in the first run.
    pub first: Option<Estimate>,
    /// The value in the second run.
    pub second: Option<Estimate>,
    /// The result: second run against first.
    pub result: VerdictResult,
    /// Why they are not compared.
    pub why: Option<Why>,
    /// Which way is better.
    pub better: Better,
    /// Second ÷ first of the geometric means of the figures.
    #[serde(flatten, serialize_with = "as_ratio")]
    pub ratio: Option<Estimate>,
    /// Whether the better run's client was saturated, so that the ratio is a lower bound.
    pub lower_bound: bool,
    /// What the gate says; `None`, and not written, without a gate, for what it does not judge, and if the first run has
    /// no result.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "judged")]
    pub gate: Option<Answer>,
    /// Whether it is the time of a kind of transaction, or a 99th percentile: what a gate judges besides primary metrics.
    #[serde(skip)]
    pub(crate) of_kind: bool,
    /// The sides during which other processes used the CPU.
    #[serde(skip)]
    pub(crate) disturbed: Vec<Side>,
    /// The axes in order, with formatted values.
    #[serde(skip)]
    pub(crate) shown: Vec<(String, String)>,
    /// The positions of the cells of the first and of the second side.
    #[serde(skip)]
    pub(crate) cells: [usize; 2],
}

/// What the gate says of a result, as its JSON names it.
#[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn judged<S: Serializer>(gate: &Option<Answer>, to: S) -> Result<S::Ok, S::Error> {
    gate.map(|answer| match answer {
        Answer::Holds => "passed",
        Answer::DoesNotHold => "slower",
        Answer::Undecided => "undecided",
        Answer::NotTestable => "not-judged",
    })
    .serialize(to)
}

impl Row {
    /// The ratio of the figures, above 1 where the second is better.
    pub(crate) fn gain(&self) -> Option<Estimate> {
        self.ratio.map(|ratio| if self.better == Better::Lower { ratio.inverse() } else { ratio })
    }

    /// What it is called: the kind of transaction, or the operation and the metric.
    pub(crate) fn name(&self) -> String {
        let own = self.of_kind && !self.metric.starts_with("service") && !self.metric.starts_with("response");
        if own { self.metric.clone() } else { format!("{} {}", self.operation, self.metric) }
    }
}

/// What is compared: two runs, or two targets of one.
pub(super) struct Pairing<'a> {
    pub first: &'a Summary,
    pub second: &'a Summary,
    /// The second and the first side.
    pub sides: [Side; 2],
    pub by: By<'a>,
}

/// What a ratio is of.
#[derive(Clone, Copy)]
pub(super) enum By<'a> {
    /// Pairs of rounds of two targets, in a run with this analysis plan.
    Pairs(&'a Rule),
    /// The samples of two runs, and earlier ones.
    Between(Between, &'a [&'a Summary]),
}

/// A row for each pair and metric: the loops' speed, and other metrics that both have. Primary metrics come first.
pub(super) fn rows(sides: &Pairing<'_>, pairs: &[(&CellResult, &CellResult)]) -> Vec<Row> {
    let metrics = &sides.first.labels.metrics;
    let compared = |metric: &MetricInfo, (a, b): &(&CellResult, &CellResult)| {
        let has = a.metric(&metric.name).is_some() && b.metric(&metric.name).is_some();
        let failed = a.status != Status::Ok || b.status != Status::Ok;
        match metric.source {
            Source::Trial if a.metric == metric.name => has || failed,
            Source::Trial => has && !metric.is_speed() && metric.better != Better::Neither,
            Source::Slope(_) | Source::Cost(_) | Source::Scatter(_) | Source::Scaling(_) => false,
        }
    };
    let mut found: Vec<_> = pairs
        .iter()
        .flat_map(|pair| {
            let these = metrics.iter().filter(move |metric| compared(metric, pair));
            these.map(move |metric| (metric, pair))
        })
        .collect();
    sort::by_key(&mut found, |(metric, _)| !metric.primary);
    // Three families, each of whose intervals hold together: primary metrics, what a gate judges besides, and the others.
    let of_kind = |metric: &MetricInfo| {
        let is_kind = || metrics.iter().any(|other| other.name == format!("{} p99", metric.name));
        !metric.primary && metric.better == Better::Lower && (is_tail(&metric.name) || is_kind())
    };
    let family = |metric: &MetricInfo| (metric.primary, of_kind(metric));
    let of = |(metric, (a, b)): &(&MetricInfo, &(&CellResult, &CellResult))| {
        let these = found.iter().filter(|(other, _)| family(other) == family(metric));
        let these = these.filter(|(_, (a, b))| a.status == Status::Ok && b.status == Status::Ok);
        Row { of_kind: of_kind(metric), ..row(sides, metric, (a, b), these.count().max(1)) }
    };
    found.iter().map(of).collect()
}

/// Whether a metric is a 99th percentile.
pub(super) fn is_tail(metric: &str) -> bool {
    metric.ends_with(" p99")
}

fn row(
    sides: &Pairing<'_>,
    metric: &MetricInfo,
    (a, b): (&CellResult, &CellResult),
    comparisons: usize,
) -> Row {
    let Pairing { first, second, ref sides, by } = *sides;
    let are_peers = matches!(by, By::Pairs(_));
    let value = |cell: &CellResult| {
        let valid = !cell.is_overloaded() && !cell.is_generator_late();
        cell.metric(&metric.name).filter(|_| valid || !metric.is_speed()).map(|found| found.figure)
    };
    let mut row = Row {
        target: if are_peers { b } else { a }.target.clone(),
        axes: a.axes.clone(),
        operation: a.operation.clone(),
        metric: metric.name.clone(),
        unit: metric.unit,
        primary: metric.primary,
        first: value(a),
        second: value(b),
        shown: first.labels.axes.iter().map(|axis| (axis.name.clone(), axis.show_of(&a.axes))).collect(),
        cells: [a.index, b.index],
        result: VerdictResult::NotComparable,
        why: None,
        better: metric.better,
        ratio: None,
        lower_bound: false,
        of_kind: false,
        disturbed: Vec::new(),
        gate: None,
    };
    let cells = [b, a];
    let disturbed = cells.iter().zip(sides).filter(|(cell, _)| cell.disturbed.is_some());
    row.disturbed = disturbed.map(|(_, side)| side.clone()).collect();
    // Comparing an incomplete run would be an unplanned analysis.
    let mut unfinished = [second, first].into_iter().zip(sides).filter(|(summary, _)| !summary.complete);
    let unfinished = unfinished.next().map(|(_, side)| if are_peers { Side::Run } else { side.clone() });
    let unfinished = unfinished.map(|side| Why::Unfinished { side });
    let lacking = cells.iter().zip(sides).find_map(|(cell, side)| why_no_results(side, Some(cell)));
    row.why = unfinished.or(lacking).or_else(|| not_comparable(cells, sides));
    if row.why.is_some() {
        return row;
    }
    let once = IntervalSettings::default().for_comparisons(comparisons as u32);
    let ratio = match by {
        By::Pairs(rule) => {
            let pair = paired(b, a, metric, &first.spec);
            PairedRatio::from_rounds(&pair.a, &pair.b, &rule.settings(once)).map(|ratio| ratio.estimate)
        }
        By::Between(between, earlier) => between.ratio(metric, [(second, b), (first, a)], earlier, &once),
    };
    let Some(ratio) = ratio else {
        row.why = Some(Why::NotPositive);
        return row;
    };
    (row.result, row.why, row.lower_bound) = bounded(metric, judge(ratio, DEFAULT_MARGIN), cells, sides);
    // What was judged is above 1 where the second is better.
    row.ratio = Some(ratio);
    row.ratio = row.gain();
    row
}
