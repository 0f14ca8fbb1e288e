//! The results of equal runs over time, and the runs at which they changed.
//!
//! A run is compared with the last one before it that was like the others, by what the runs since the last change differ by, as
//! [`compare`](crate::compare::compare) does. A result has changed at a run if that calls it better or worse, and the next run
//! says the same. So one run that is faster or slower as a whole is no change. The newest run has no next one: its change is
//! unconfirmed.

use crate::compare::{Between, Compared, FIRST, SECOND, compare_by};
use crate::group::{distinct, grouped};
use crate::summary::Summary;
use crate::target::TargetId;
use crate::verdict::Verdict;
use kurabe_core::axis::Cell;
use kurabe_core::metric::Unit;
use kurabe_core::target::{TargetUrl, names};
use kurabe_stats::{Decision, Estimate, Interval};
use std::collections::BTreeMap;

/// A primary metric of one cell and operation over the runs.
#[derive(Clone, Debug)]
pub struct Series {
    /// The display name of the target.
    pub target: String,
    /// The target, by position in each of the runs, which have the same ones.
    at: Option<usize>,
    /// The values of the axes.
    pub axes: Cell,
    pub operation: String,
    pub metric: String,
    pub unit: Unit,
    /// Its values, in the order of the runs. Runs without a value are left out.
    pub points: Vec<Point>,
}

/// A value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The run, by position.
    pub run: usize,
    pub value: Estimate,
    /// Whether the result changed at this run.
    pub change: Option<Change>,
}

/// A change of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Whether the new result is better.
    pub better: bool,
    /// New ÷ old.
    pub ratio: Interval,
    /// Whether the next run confirms it. The newest run has no next one.
    pub confirmed: bool,
}

impl Series {
    /// Whether it has a change.
    pub fn has_changed(&self) -> bool {
        self.points.iter().any(|point| point.change.is_some())
    }

    fn is(&self, row: &Verdict) -> bool {
        (self.at, &self.axes, &self.operation, &self.metric)
            == (row.target.as_ref().map(TargetId::at), &row.at, &row.operation, &row.pair.metric)
    }
}

/// The primary metrics of runs over time. `runs` are complete runs of the same suite, the oldest first. Runs on other
/// databases are other series.
pub fn history(runs: &[&Summary]) -> Vec<Series> {
    let urls = |run: &Summary| run.targets.iter().map(|target| target.url.clone()).collect::<Vec<_>>();
    let groups = grouped(runs.iter().enumerate().map(|(at, run)| (urls(run), at)));
    let distinct = distinct(groups.iter().flat_map(|(urls, _)| urls.clone()));
    let parsed: Vec<TargetUrl> = distinct.iter().filter_map(|url| TargetUrl::parse(url).ok()).collect();
    let names = if groups.len() > 1 && parsed.len() == distinct.len() { names(&parsed) } else { Vec::new() };
    let own_name = |run: &Summary, at: Option<usize>| {
        let url = &run.targets.get(at?)?.url;
        let is_alone = run.targets.iter().filter(|target| target.url == *url).count() == 1;
        names.get(distinct.iter().position(|known| known == url)?).filter(|_| is_alone).cloned()
    };
    let mut all = Vec::new();
    for (_, places) in groups {
        let own: Vec<&Summary> = places.iter().map(|at| runs[*at]).collect();
        for mut series in of_equal(&own) {
            series.target = own_name(own[0], series.at).unwrap_or(series.target);
            series.points.iter_mut().for_each(|point| point.run = places[point.run]);
            all.push(series);
        }
    }
    all
}

/// The primary metrics of runs on the same targets.
fn of_equal(runs: &[&Summary]) -> Vec<Series> {
    let mut pairs = Pairs { runs, compared: BTreeMap::new() };
    let Some(first) = runs.first() else { return Vec::new() };
    let rows = compare_by(first, runs.get(1).unwrap_or(first), &[], Between::of(first, first, &[])).rows;
    let mut all: Vec<Series> = rows
        .into_iter()
        .filter(|row| row.primary)
        .map(|row| Series {
            points: row.values[FIRST]
                .map(|value| Point { run: 0, value, change: None })
                .into_iter()
                .collect(),
            at: row.target.as_ref().map(TargetId::at),
            target: row.target.map_or_else(String::new, |target| target.to_string()),
            axes: row.at,
            operation: row.operation,
            metric: row.pair.metric,
            unit: row.unit,
        })
        .collect();
    for series in &mut all {
        // The first run of the present level, and the last one that was like the others.
        let (mut base, mut last) = (0, 0);
        for run in 1..runs.len() {
            let Some(row) = pairs.row(series, [base, last, run], run) else { continue };
            let Some(value) = row.values[SECOND] else { continue };
            let next =
                (run + 1 < runs.len()).then(|| pairs.row(series, [base, last, run], run + 1)).flatten();
            let change = change(&row, next.as_ref());
            if change.is_some() {
                base = run;
            }
            if change.is_some() || !row.result.is_outside() {
                last = run;
            }
            series.points.push(Point { run, value, change });
        }
    }
    all
}

/// The change that a comparison with the base shows, if the next run's comparison does not contradict it.
fn change(row: &Verdict, next: Option<&Verdict>) -> Option<Change> {
    let confirmed = next.map(|next| next.result == row.result);
    if !row.result.is_outside() || confirmed == Some(false) {
        return None;
    }
    let (low, high) = row.of_values()?.ends()?;
    Some(Change {
        better: row.result == Decision::Above,
        ratio: Interval { low, high },
        confirmed: confirmed.unwrap_or(false),
    })
}

/// Comparisons of two runs, each made once.
struct Pairs<'a> {
    runs: &'a [&'a Summary],
    compared: BTreeMap<([usize; 3], usize), Compared>,
}

impl Pairs<'_> {
    /// The comparison of run `judged` with run `last`, by what decides one of `run` with it: the runs from `base` on that
    /// were before it.
    fn row(&mut self, series: &Series, [base, last, run]: [usize; 3], judged: usize) -> Option<Verdict> {
        let (first, second) = (self.runs.get(last)?, self.runs.get(judged)?);
        let runs = self.runs;
        let compared = self.compared.entry(([base, last, run], judged)).or_insert_with(|| {
            let earlier: Vec<&Summary> =
                (base..run).rev().filter(|one| *one != last).map(|one| runs[one]).collect();
            compare_by(first, second, &earlier, Between::of(first, runs[run], &earlier))
        });
        compared.rows.iter().find(|row| row.primary && series.is(row)).cloned()
    }
}
