//! The comparison of two runs, and of two targets of one run.
//!
//! Runs made at different times are not interleaved, and the comparison is not paired by round. What is decided depends on
//! what sampled the differences between two runs ([`Between`]): starts of the servers in both, or earlier runs of the same
//! suite. The spread of rounds on servers as they ran says nothing of them, and decides nothing: of 15 pairs of equal runs,
//! 5 "differed". Every report says that this is weaker evidence than a single run with both.

mod between;
mod cause;
mod differences;
pub mod gate;
mod junit;
mod page;
mod render;
mod rows;

use crate::cell::CellResult;
use crate::finding::{Comparison, Finding, Runs, Section, Statement};
use crate::labels::{Axis, Labels};
use crate::messages::Language;
use crate::rule::Rule;
use crate::scope::Scope;
use crate::side::Side;
use crate::summary::Summary;
use crate::target::TargetSummary;
use crate::verdict::Pair;
use kurabe_core::run::Run;
use kurabe_stats::VerdictResult;
use rows::{By, Pairing, rows};
use serde::Serialize;

pub use crate::claim::Answer;
pub use crate::finding::{Between, Criteria, Gated};
pub use differences::Difference;
pub use gate::Gate;
pub use junit::junit;
pub use kurabe_stats::separate::MAX_RUNS;
pub use page::{fragment, page};
pub use render::{json, markdown, pull_request, terminal};
pub use rows::Row;

/// What the sides of a comparison of two runs differ in.
const RUN: &str = "run";

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
    /// The results that both runs have.
    pub rows: Vec<Row>,
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
        let Some((_, other)) = targets.iter().find(|(a, _)| *a == cell.target_index) else { continue };
        let same = |candidate: &&CellResult| candidate.target_index == *other && candidate.is_like(cell);
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
    let rows = rows(&Pairing { first, second, sides: [Side::SecondRun, Side::FirstRun], by }, &pairs);
    let publishing =
        |summary: &Summary| -> Vec<Statement> { summary.statements(Section::Publishing).cloned().collect() };
    let mut findings = publishing(first);
    findings.extend(publishing(second).into_iter().filter(|one| !publishing(first).contains(one)));
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
    let name = |at: usize| summary.labels.names.get(at).cloned().unwrap_or_default();
    let names = [name(0), name(1)];
    let of = |target: usize| {
        summary.cells.iter().filter(move |cell| !cell.aa_control && cell.target_index == target)
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
    if let Some(ratio) = row.result.gain(row.gain()) {
        let better = row.result == VerdictResult::Better;
        return Some(Runs::Changed { scope, metric, better, ratio, lower_bound }.into());
    }
    let pair = Pair { metric, axis: RUN.to_owned(), a: Side::SecondRun, b: Side::FirstRun };
    Some(Comparison::NotComparable { scope, pair, comparisons: 1, why: row.why.clone()? }.into())
}
