//! The comparison of two runs, and of two targets of one run.
//!
//! Runs made at different times are not interleaved, and the comparison is not paired by round. What is decided depends on
//! what sampled the differences between two runs ([`Between`]): starts of the servers in both, or earlier runs of the same
//! suite. The spread of rounds on servers as they ran says nothing of them, and decides nothing: of 15 pairs of equal runs,
//! 5 "differed". Every report says that this is weaker evidence than a single run with both.

mod differences;
pub mod gate;
mod render;

use crate::cell::{CellResult, MetricInfo, Status, TOO_FEW_OPERATIONS};
use crate::comparison::{TARGET, bound, comparable};
use crate::finding::{Comparison, Finding, Note, Runs, Section, Statement};
use crate::labels::{Labels, Scope};
use crate::messages::Language;
use crate::metrics::{mean_of, paired, samples};
use crate::rule::Rule;
use crate::summary::Summary;
use crate::target::TargetSummary;
use crate::verdict::{Side, Verdict, Why};
use kurabe_core::metric::{Better, Source};
use kurabe_core::run::{Run, Sampled};
use kurabe_core::sort;
use kurabe_stats::separate::{MIN_RUNS, is_enough};
use kurabe_stats::{Decision, Estimate, IntervalSettings, PairedRatio, judge};
use serde::Serialize;

pub use crate::finding::{Between, Criteria, Gated};
pub use differences::Difference;
pub use gate::Gate;
pub use kurabe_stats::separate::MAX_RUNS;
pub use render::{fragment, json, junit, page, pull_request, terminal};

/// What the sides of a comparison of two runs differ in.
const RUN: &str = "run";

/// The places of the two runs among the sides of a row.
pub(crate) const SECOND: usize = 0;
pub(crate) const FIRST: usize = 1;

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
    #[serde(skip)]
    pub findings: Vec<Statement>,
    /// Differences besides results.
    pub differences: Vec<Difference>,
    /// The results that both runs have: the second one against the first. Each has the target and the axes of the first.
    #[serde(serialize_with = "render::written")]
    pub rows: Vec<Verdict>,
    /// The gate's result; `None`, and not written, without a gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// Display names, those of the first run.
    #[serde(skip)]
    pub(crate) labels: Labels,
}

impl Compared {
    /// The comparison with labels, and so with sentences, in another language.
    #[must_use]
    pub fn in_language(mut self, language: Language) -> Self {
        self.labels.speak(language);
        self
    }

    /// A finding of this comparison as a sentence.
    pub fn sentence(&self, statement: &Statement) -> String {
        statement.finding.sentence(&self.labels)
    }

    pub fn sentences(&self, section: Section) -> Vec<String> {
        let of = self.findings.iter().filter(|one| one.section == section);
        of.map(|one| self.sentence(one)).collect()
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
        let Some((_, other)) = targets.iter().find(|(a, _)| *a == cell.target.at()) else { continue };
        let same = |candidate: &&CellResult| candidate.target.at() == *other && candidate.is_like(cell);
        match second.cells.iter().find(same) {
            Some(found) => pairs.push((cell, found)),
            None => lacking += 1,
        }
    }
    let matched =
        |cell: &&CellResult| targets.iter().any(|(_, b)| *b == cell.target.at()) && !cell.aa_control;
    let surplus = second.cells.iter().filter(matched).count().saturating_sub(pairs.len());
    for (count, run) in [(lacking as usize, &first.run), (surplus, &second.run)] {
        if count > 0 {
            unmatched.push(Runs::Unmatched { run: run.clone(), results: count as u32 });
        }
    }
    let by = By::Between(between, earlier);
    let rows = rows(&Pairing { first, second, sides: [Side::SecondRun, Side::FirstRun], by }, &pairs);
    let mut findings: Vec<Statement> = first.statements(Section::Publishing).cloned().collect();
    for mut one in second.statements(Section::Publishing).cloned() {
        if let Finding::Note(Note::PublishingRestricted { target, .. }) = &mut one.finding {
            // Its counterpart in the first run, or a further one.
            let counterpart = targets.iter().find(|(_, b)| *b == target.at()).map(|(a, _)| *a);
            *target = counterpart
                .and_then(|at| first.labels.ids.get(at).cloned())
                .unwrap_or_else(|| target.after(first.targets.len()));
        }
        if !findings.contains(&one) {
            findings.push(one);
        }
    }
    let verdict = verdict(&rows, first, second, between);
    findings.extend(verdict.into_iter().map(|finding| Statement { section: Section::Verdict, finding }));
    findings.extend(
        unmatched.into_iter().map(|one| Statement { section: Section::Warning, finding: one.into() }),
    );
    Compared {
        first: first.run.clone(),
        second: second.run.clone(),
        between: Some(between),
        findings,
        differences: differences::differences(first, second, &targets),
        rows,
        gate: None,
        labels: first.labels.clone(),
    }
}

/// Compares the second target of a run with its first, cell by cell. Their trials are of the same rounds, so that the ratio is
/// that of pairs: nothing that changes between two runs is in it.
pub fn peers(run: &Run, summary: &Summary) -> Compared {
    let names = [0, 1].map(|at| summary.labels.ids.get(at).map(ToString::to_string).unwrap_or_default());
    let of = |target: usize| {
        summary.cells.iter().filter(move |cell| !cell.aa_control && cell.target.at() == target)
    };
    let pairs: Vec<(&CellResult, &CellResult)> =
        of(0).filter_map(|a| Some((a, of(1).find(|b| a.is_like(b))?))).collect();
    let rule = Rule::of(run);
    let sides =
        Pairing { first: summary, second: summary, sides: [1, 0].map(Side::Target), by: By::Pairs(&rule) };
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
        labels: summary.labels.clone(),
    }
}

/// Targets of both runs with the same engine, by position.
fn matched_targets(first: &Summary, second: &Summary, unmatched: &mut Vec<Runs>) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for a in 0..first.targets.len() {
        let place = TargetSummary::nth_of_engine(&first.targets, a);
        let is_same = |b: &usize| TargetSummary::nth_of_engine(&second.targets, *b) == place;
        match (0..second.targets.len()).find(is_same) {
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

fn verdict(rows: &[Verdict], first: &Summary, second: &Summary, between: Between) -> Vec<Finding> {
    if let Some(run) = [first, second].into_iter().find(|summary| !summary.complete) {
        return vec![Runs::NotCompared { run: run.run.clone() }.into()];
    }
    let primary = || rows.iter().filter(|row| row.primary);
    let count = |result: Decision| rows.iter().filter(|row| row.result == result).count() as u32;
    let changes = Runs::Changes {
        better: count(Decision::Above),
        worse: count(Decision::Below),
        no_difference: count(Decision::Within),
        undecided: count(Decision::Undecided),
        not_comparable: count(Decision::NotTestable),
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
fn changed(row: &Verdict, first: &Summary) -> Option<Finding> {
    let labels = &first.labels;
    let chart = labels.chart_axis().map(|axis| axis.name.as_str());
    let scope = Scope {
        operations: vec![row.operation.clone()],
        targets: row.target.iter().cloned().collect(),
        at: chart.and_then(|chart| row.at.get(chart)).cloned().into_iter().collect(),
        axes: row.others(labels),
    };
    if let Some(ratio) = row.result.gain(row.ratio) {
        let (metric, lower_bound) = (row.pair.metric.clone(), row.lower_bound);
        let better = row.result == Decision::Above;
        return Some(Runs::Changed { scope, metric, better, ratio, lower_bound }.into());
    }
    let pair = row.pair.clone();
    Some(Comparison::NotComparable { scope, pair, comparisons: 1, why: row.why.clone()? }.into())
}

impl Between {
    /// What decides a comparison of these runs, with these earlier ones.
    pub(crate) fn of(first: &Summary, second: &Summary, earlier: &[&Summary]) -> Self {
        let any_start = |summary: &Summary| summary.spec.sampled() == Sampled::AnyStart;
        if any_start(first) && any_start(second) {
            return Self::Starts;
        }
        let earlier = &earlier[..earlier.len().min(MAX_RUNS)];
        let began = earlier.iter().map(|run| run.began);
        let covered = began.clone().max().unwrap_or(0) - began.min().unwrap_or(0);
        let (runs, apart) = (earlier.len() as u32, second.began.abs_diff(first.began));
        if is_enough(earlier.len(), covered as f64, apart as f64) {
            return Self::Runs { runs };
        }
        let needed_time = (apart as f64 / kurabe_stats::separate::REACH).ceil() as u64;
        Self::Nothing { runs, needed: MIN_RUNS as u32, covered, needed_time }
    }

    /// The ratio of a metric of the first of these cells to the second, with its interval if something decides.
    fn ratio(
        self,
        metric: &MetricInfo,
        [b, a]: [(&Summary, &CellResult); 2],
        earlier: &[&Summary],
        settings: &IntervalSettings,
    ) -> Option<Estimate> {
        let figures = |(summary, cell): (&Summary, &CellResult)| {
            let rounds = cell.metric(&metric.name).map(|found| &found.by_round);
            let good = |(round, value): (&u32, &f64)| (*round, metric.higher_is_better(*value));
            samples(rounds.into_iter().flatten().map(good), metric.unit, &summary.spec)
        };
        let kind = mean_of(metric.unit);
        let separate = PairedRatio::from_separate(&figures(b), &figures(a), kind, settings)?;
        match self {
            Self::Starts => Some(separate.estimate),
            Self::Nothing { .. } => Some(Estimate::new(separate.estimate.value, None)),
            Self::Runs { .. } => {
                let mean = |of| Some(kurabe_stats::interval_of_mean(&figures(of), kind, settings)?.value);
                let same = |cell: &&CellResult| {
                    cell.target.at() == a.1.target.at() && cell.is_like(a.1) && cell.status == Status::Ok
                };
                let earlier = earlier.iter().take(MAX_RUNS);
                let there = earlier.filter_map(|run| Some((*run, run.cells.iter().find(same)?)));
                let earlier: Vec<f64> = there.map(mean).collect::<Option<_>>()?;
                let ratio = PairedRatio::from_runs(mean(b)?, mean(a)?, &earlier, settings)?;
                let is_enough = earlier.len() >= MIN_RUNS;
                Some(if is_enough { ratio.estimate } else { Estimate::new(ratio.estimate.value, None) })
            }
        }
    }
}

/// What is compared: two runs, or two targets of one.
struct Pairing<'a> {
    pub first: &'a Summary,
    pub second: &'a Summary,
    /// The second and the first side.
    pub sides: [Side; 2],
    pub by: By<'a>,
}

/// What a ratio is of.
#[derive(Clone, Copy)]
enum By<'a> {
    /// Pairs of rounds of two targets, in a run with this analysis plan.
    Pairs(&'a Rule),
    /// The samples of two runs, and earlier ones.
    Between(Between, &'a [&'a Summary]),
}

/// A row for each pair and metric: the loops' speed, and other metrics that both have. Primary metrics come first.
fn rows(sides: &Pairing<'_>, pairs: &[(&CellResult, &CellResult)]) -> Vec<Verdict> {
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
        Verdict { of_kind: of_kind(metric), ..row(sides, metric, (a, b), these.count().max(1)) }
    };
    found.iter().map(of).collect()
}

/// Whether a metric is a 99th percentile.
fn is_tail(metric: &str) -> bool {
    metric.ends_with(" p99")
}

fn row(
    sides: &Pairing<'_>,
    metric: &MetricInfo,
    (a, b): (&CellResult, &CellResult),
    comparisons: usize,
) -> Verdict {
    let Pairing { first, second, ref sides, by } = *sides;
    let are_peers = matches!(by, By::Pairs(_));
    let cells = [Some(b), Some(a)];
    let axis = if are_peers { TARGET } else { RUN };
    let mut row = Verdict {
        target: Some(if are_peers { b } else { a }.target.clone()),
        at: a.axes.clone(),
        ..Verdict::new(metric, (&a.operation, axis), sides.clone(), cells)
    };
    // Comparing an incomplete run would be an unplanned analysis.
    let mut unfinished = [second, first].into_iter().zip(sides).filter(|(summary, _)| !summary.complete);
    if let Some((_, side)) = unfinished.next() {
        row.why = Some(Why::Unfinished { side: if are_peers { Side::Run } else { side.clone() } });
        return row;
    }
    let Some(cells) = comparable(&mut row, cells) else { return row };
    if is_tail(&metric.name) && cells.iter().any(|cell| cell.timed() < TOO_FEW_OPERATIONS) {
        (row.values, row.why) = ([None; 2], Some(Why::FewOperations));
        return row;
    }
    let once = IntervalSettings::default().for_comparisons(comparisons as u32);
    row.ratio = match by {
        By::Pairs(rule) => {
            let pair = paired(b, a, metric, &first.spec);
            pair.ratio(&rule.settings(once)).map(|ratio| ratio.estimate)
        }
        By::Between(between, earlier) => between.ratio(metric, [(second, b), (first, a)], earlier, &once),
    };
    match row.ratio {
        Some(ratio) => {
            row.result = judge(ratio, row.margin);
            bound(&mut row, cells);
        }
        None => row.why = Some(Why::NotPositive),
    }
    row
}
