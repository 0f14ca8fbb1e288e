//! The comparison of two runs, and of two targets of one run.
//!
//! Runs made at different times are not interleaved, and the comparison is not paired by round. What is decided depends on
//! what sampled the differences between two runs ([`Between`]): starts of the servers in both, or earlier runs of the same
//! suite. The spread of rounds on servers as they ran says nothing of them, and decides nothing: of 15 pairs of equal runs,
//! 5 "differed". Every report says that this is weaker evidence than a single run with both.

mod between;
mod differences;
pub mod gate;
mod junit;
mod page;
mod render;

use crate::cell::{CellResult, MetricInfo, MetricResult, Status};
use crate::comparison::{bounded, not_comparable, paired, result_of, why_no_results};
use crate::finding::{Comparison, Finding, Runs, Section, Statement};
use crate::interval::Interval;
use crate::labels::Axis;
use crate::messages::{Language, Message};
use crate::rule::Rule;
use crate::scope::Scope;
use crate::summary::Summary;
use crate::target::TargetSummary;
use crate::verdict::{Pair, VerdictResult, Why};
use kurabe_core::axis::Cell;
use kurabe_core::metric::{Better, Source, Unit};
use kurabe_core::run::{DEFAULT_MARGIN, Run};
use kurabe_core::sort;
use kurabe_stats::{IntervalSettings, PairedRatio};
use serde::Serialize;

pub use crate::finding::{Between, Criteria, Decision, Gated};
pub use differences::Difference;
pub use gate::{Gate, Judgement};
pub use junit::junit;
pub use kurabe_stats::separate::MAX_RUNS;
pub use page::fragment;
pub use render::{json, markdown, pull_request, terminal};

/// The names of the two sides in findings.
const SIDES: [&str; 2] =
    [Message::SecondRun.text(Language::English), Message::FirstRun.text(Language::English)];

/// The comparison of two runs.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The first run's name.
    pub first: String,
    /// The second run's name.
    pub second: String,
    /// What decides; `None`, and not written, if two targets of one run are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<Between>,
    /// The findings, in the order of their sections.
    pub findings: Vec<Statement>,
    /// Differences besides results.
    pub differences: Vec<Difference>,
    /// The results that both runs have.
    pub rows: Vec<Row>,
    /// The gate's result; `None`, and not written, without a gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// The language of sentences and tables on a terminal.
    #[serde(skip)]
    pub language: Language,
}

impl Compared {
    /// The comparison in another language; `first` is the summary of the first run.
    #[must_use]
    pub fn in_language(mut self, first: &Summary, language: Language) -> Self {
        let mut labels = first.labels.clone();
        labels.speak(language);
        let restate = |one: Statement| one.finding.state(one.section, &labels);
        self.findings = self.findings.into_iter().map(restate).collect();
        Self { language, ..self }
    }

    pub fn sentences(&self, section: Section) -> Vec<&str> {
        let of = self.findings.iter().filter(|statement| statement.section == section);
        of.map(|statement| statement.sentence.as_str()).collect()
    }
}

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
    pub first: Option<Interval>,
    /// The value in the second run.
    pub second: Option<Interval>,
    /// The result: second run against first.
    pub result: VerdictResult,
    /// Why they are not compared.
    pub why: Option<Why>,
    /// Second ÷ first of the geometric means, above 1 if the second is better.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Whether the better run's client was saturated, so that the ratio is a lower bound.
    pub lower_bound: bool,
    /// What the gate says; `None`, and not written, without a gate, for what it does not judge, and if the first run has
    /// no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Judgement>,
    /// Whether it is the time of a kind of transaction, or a 99th percentile: what a gate judges besides primary metrics.
    #[serde(skip)]
    pub(crate) of_kind: bool,
    /// The sides during which other processes used the CPU.
    #[serde(skip)]
    pub(crate) disturbed: Vec<String>,
    /// The axes in order, with formatted values.
    #[serde(skip)]
    pub(crate) shown: Vec<(String, String)>,
}

impl Row {
    /// The ratio with its interval.
    pub(crate) fn interval(&self) -> Option<Interval> {
        Some(Interval { value: self.ratio?, low: self.low, high: self.high })
    }
}

/// Compares the second run with the first: cells with the same axis values and operation, on targets of the same
/// engine, matched in order. `earlier` are runs before the later of the two, of the same suite under the same conditions.
pub fn compare(first: &Summary, second: &Summary, earlier: &[Summary]) -> Compared {
    let earlier: Vec<&Summary> = earlier.iter().collect();
    compare_by(first, second, &earlier, Between::of(first, second, &earlier))
}

/// The same, decided by this.
pub(crate) fn compare_by(
    first: &Summary,
    second: &Summary,
    earlier: &[&Summary],
    between: Between,
) -> Compared {
    let mut unmatched: Vec<Runs> = Vec::new();
    let targets = matched_targets(first, second, &mut unmatched);
    let mut pairs = Vec::new();
    let mut lacking = 0_u32;
    for cell in first.cells.iter().filter(|cell| !cell.aa_control) {
        let Some((_, other)) = targets.iter().find(|(a, _)| *a == cell.target_index) else { continue };
        let same = |candidate: &&CellResult| {
            candidate.target_index == *other
                && candidate.operation == cell.operation
                && candidate.axes == cell.axes
                && !candidate.aa_control
        };
        match second.cells.iter().find(same) {
            Some(found) => pairs.push((cell, found)),
            None => lacking += 1,
        }
    }
    let matched =
        |cell: &&CellResult| targets.iter().any(|(_, b)| *b == cell.target_index) && !cell.aa_control;
    let surplus = second.cells.iter().filter(matched).count().saturating_sub(pairs.len());
    for (count, run) in [(lacking as usize, &first.run), (surplus, &second.run)] {
        if count > 0 {
            unmatched.push(Runs::Unmatched { run: run.clone(), results: count as u32 });
        }
    }
    let by = By::Between(between, earlier);
    let rows = rows(&Sides { first, second, names: SIDES, by }, &pairs);
    let publishing =
        |summary: &Summary| -> Vec<Statement> { summary.statements(Section::Publishing).cloned().collect() };
    let mut findings = publishing(first);
    findings.extend(publishing(second).into_iter().filter(|one| !publishing(first).contains(one)));
    let verdict = verdict(&rows, first, second, between);
    findings.extend(verdict.into_iter().map(|finding| finding.state(Section::Verdict, &first.labels)));
    findings
        .extend(unmatched.into_iter().map(|one| Finding::from(one).state(Section::Warning, &first.labels)));
    Compared {
        first: first.run.clone(),
        second: second.run.clone(),
        between: Some(between),
        findings,
        differences: differences::differences(first, second, &targets),
        rows,
        gate: None,
        language: Language::English,
    }
}

/// Compares the second target of a run with its first, cell by cell. Their trials are of the same rounds, so that the ratio is
/// that of pairs: nothing that changes between two runs is in it.
pub fn peers(run: &Run, summary: &Summary) -> Compared {
    let name = |at: usize| summary.labels.names.get(at).cloned().unwrap_or_default();
    let names = [name(0), name(1)];
    let of = |target: usize| {
        summary.cells.iter().filter(move |cell| !cell.aa_control && cell.target_index == target)
    };
    let same = |a: &CellResult, b: &CellResult| a.operation == b.operation && a.axes == b.axes;
    let pairs: Vec<(&CellResult, &CellResult)> =
        of(0).filter_map(|a| Some((a, of(1).find(|b| same(a, b))?))).collect();
    let rule = Rule::of(run);
    let sides =
        Sides { first: summary, second: summary, names: [&names[1], &names[0]], by: By::Pairs(&rule) };
    let targets = if summary.targets.len() > 1 { &[(0, 1)][..] } else { &[] };
    let told = [Section::Publishing, Section::Verdict, Section::Warning];
    Compared {
        findings: summary.findings.iter().filter(|one| told.contains(&one.section)).cloned().collect(),
        differences: differences::differences(summary, summary, targets),
        rows: rows(&sides, &pairs),
        first: names[0].clone(),
        second: names[1].clone(),
        between: None,
        gate: None,
        language: Language::English,
    }
}

/// What is compared: two runs, or two targets of one.
struct Sides<'a> {
    first: &'a Summary,
    second: &'a Summary,
    /// The names of the second and of the first side in findings.
    names: [&'a str; 2],
    by: By<'a>,
}

/// What a ratio is of.
#[derive(Clone, Copy)]
enum By<'a> {
    /// Pairs of rounds of two targets, in a run with this analysis plan.
    Pairs(&'a Rule),
    /// The samples of two runs, and earlier ones.
    Between(Between, &'a [&'a Summary]),
}

/// Targets of both runs with the same engine, by position.
fn matched_targets(first: &Summary, second: &Summary, unmatched: &mut Vec<Runs>) -> Vec<(usize, usize)> {
    let nth = |targets: &[TargetSummary], at: usize| {
        let engine = targets[at].engine.clone();
        let before = targets[..at].iter().filter(|target| target.engine == engine).count();
        (engine, before)
    };
    let mut pairs = Vec::new();
    for a in 0..first.targets.len() {
        let key = nth(&first.targets, a);
        match (0..second.targets.len()).find(|b| nth(&second.targets, *b) == key) {
            Some(b) => pairs.push((a, b)),
            None => unmatched.push(only_in(first, a)),
        }
    }
    for b in (0..second.targets.len()).filter(|b| !pairs.iter().any(|(_, matched)| matched == b)) {
        unmatched.push(only_in(second, b));
    }
    pairs
}

fn only_in(summary: &Summary, target: usize) -> Runs {
    Runs::OnlyIn { run: summary.run.clone(), target: summary.labels.targets[target].clone() }
}

/// A row for each pair and metric: the loops' speed, and other metrics that both have. Primary metrics come first.
fn rows(sides: &Sides<'_>, pairs: &[(&CellResult, &CellResult)]) -> Vec<Row> {
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
fn is_tail(metric: &str) -> bool {
    metric.ends_with(" p99")
}

fn row(
    sides: &Sides<'_>,
    metric: &MetricInfo,
    (a, b): (&CellResult, &CellResult),
    comparisons: usize,
) -> Row {
    let Sides { first, second, names, by } = *sides;
    let are_peers = matches!(by, By::Pairs(_));
    let value = |cell: &CellResult| {
        let valid = !cell.is_overloaded() && !cell.is_generator_late();
        cell.metric(&metric.name).filter(|_| valid || !metric.is_speed()).map(MetricResult::interval)
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
        result: VerdictResult::NotComparable,
        why: None,
        ratio: None,
        low: None,
        high: None,
        lower_bound: false,
        of_kind: false,
        disturbed: Vec::new(),
        gate: None,
    };
    let cells = [b, a];
    let disturbed = cells.iter().zip(names).filter(|(cell, _)| cell.disturbed.is_some());
    row.disturbed = disturbed.map(|(_, side)| side.to_owned()).collect();
    // Comparing an incomplete run would be an unplanned analysis.
    let runs = [second, first].into_iter().zip(if are_peers { ["the run"; 2] } else { names });
    let mut unfinished = runs.filter(|(summary, _)| !summary.complete);
    let unfinished = unfinished.next().map(|(_, side)| Why::Unfinished { side: side.to_owned() });
    let lacking = cells.iter().zip(names).find_map(|(cell, side)| why_no_results(side, Some(cell)));
    row.why = unfinished.or(lacking).or_else(|| not_comparable(cells, names));
    if row.why.is_some() {
        return row;
    }
    let once = IntervalSettings::default().for_comparisons(comparisons as u32);
    let ratio = match by {
        By::Pairs(rule) => {
            let pair = paired(b, a, metric, &first.spec);
            PairedRatio::of(&pair.a, &pair.b, &rule.settings(once))
        }
        By::Between(between, earlier) => between.ratio(metric, [(second, b), (first, a)], earlier, &once),
    };
    let Some(ratio) = ratio else {
        row.why = Some(Why::NotPositive);
        return row;
    };
    (row.result, row.why, row.lower_bound) = bounded(metric, result_of(&ratio, DEFAULT_MARGIN), cells, names);
    (row.ratio, row.low, row.high) = (Some(ratio.ratio), ratio.low(), ratio.high());
    row
}

fn verdict(rows: &[Row], first: &Summary, second: &Summary, between: Between) -> Vec<Finding> {
    if let Some(run) = [first, second].into_iter().find(|summary| !summary.complete) {
        return vec![Runs::NotCompared { run: run.run.clone() }.into()];
    }
    let primary = || rows.iter().filter(|row| row.primary);
    let count = |result: VerdictResult| rows.iter().filter(|row| row.result == result).count() as u32;
    let changes = Runs::Changes {
        better: count(VerdictResult::Better),
        worse: count(VerdictResult::Worse),
        no_difference: count(VerdictResult::NoDifference),
        undecided: count(VerdictResult::Undecided),
        not_comparable: count(VerdictResult::NotComparable),
    };
    let mut findings = vec![changes.into()];
    if rows.is_empty() {
        return findings;
    }
    findings.push(Runs::NotInterleaved { between }.into());
    findings.extend(primary().filter_map(|row| changed(row, first)));
    findings
}

/// A finding for a changed row, or for one that cannot be compared.
fn changed(row: &Row, first: &Summary) -> Option<Finding> {
    let labels = &first.labels;
    let chart = labels.chart_axis().map(|axis| axis.name.as_str());
    let scope = Scope {
        operations: vec![row.operation.clone()],
        targets: vec![row.target.clone()],
        at: chart.and_then(|chart| row.axes.get(chart)).cloned().into_iter().collect(),
        axes: Axis::values_of(labels.varying(), &row.axes),
    };
    let (metric, lower_bound) = (row.metric.clone(), row.lower_bound);
    if let Some(ratio) = row.result.gain(row.interval()) {
        let better = row.result == VerdictResult::Better;
        return Some(Runs::Changed { scope, metric, better, ratio, lower_bound }.into());
    }
    let [a, b] = SIDES.map(str::to_owned);
    let pair = Pair { metric, axis: "run".to_owned(), a, b };
    Some(Comparison::NotComparable { scope, pair, comparisons: 1, why: row.why.clone()? }.into())
}
