//! Two runs side by side.
//!
//! Runs made at different times are not interleaved: what changed on the machine between them looks like a
//! difference between them. So the comparison is not paired by round, its interval (Welch's) sees the spread within
//! each run only, and every rendering says that this is weaker evidence than one run of both.

mod differences;
mod render;

use crate::format::{capital, percent};
use crate::phrase::HowMuch;
use crate::summary::{CellFigures, Rate, Status, Summary, TargetSummary, VerdictResult};
use kurabe_core::axis::Cell;
use kurabe_stats::distribution::student_t_quantile;
use kurabe_stats::{Direction, Interval, PairedRatio, Verdict, judge};
use serde::Serialize;

pub use differences::Difference;
pub use render::{json, markdown, terminal};

/// The probability with which all intervals hold together.
const CONFIDENCE: f64 = 0.95;

/// Two runs, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The first run's name.
    pub first: String,
    /// The second run's name.
    pub second: String,
    /// Which targets' licences restrict publishing these figures, a sentence each.
    pub publishing: Vec<String>,
    /// What the comparison says, in a few sentences.
    pub summary: Vec<String>,
    /// What differs between the runs beside their figures.
    pub differences: Vec<Difference>,
    /// The figures that both have.
    pub rows: Vec<Row>,
    /// What only one of them has, a sentence each.
    pub unmatched: Vec<String>,
}

/// A cell and operation that both runs have.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The target, as the first run calls it.
    pub target: String,
    /// The value of each axis.
    pub axes: Cell,
    /// The operation.
    pub operation: String,
    /// Transactions per second in the first run.
    pub first: Option<Rate>,
    /// In the second run.
    pub second: Option<Rate>,
    /// The second run against the first.
    pub result: VerdictResult,
    /// Second ÷ first, of the geometric means.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The same in words.
    pub sentence: String,
    /// The axes in their order, with their values as people write them.
    #[serde(skip)]
    pub(crate) shown: Vec<(String, String)>,
}

/// Compares the second run with the first: cells with the same axis values and operation, on targets of the same
/// engine (the first of an engine with the first, and so on).
pub fn compare(first: &Summary, second: &Summary) -> Compared {
    let mut unmatched = Vec::new();
    let targets = matched_targets(first, second, &mut unmatched);
    let mut pairs = Vec::new();
    let mut lacking = 0_u32;
    for cell in first.cells.iter().filter(|cell| !cell.baseline_repeat) {
        let Some((_, other)) = targets.iter().find(|(a, _)| *a == cell.target_index) else { continue };
        let same = |candidate: &&CellFigures| {
            candidate.target_index == *other
                && candidate.operation == cell.operation
                && candidate.axes == cell.axes
                && !candidate.baseline_repeat
        };
        match second.cells.iter().find(same) {
            Some(found) => pairs.push((cell, found)),
            None => lacking += 1,
        }
    }
    let matched =
        |cell: &&CellFigures| targets.iter().any(|(_, b)| *b == cell.target_index) && !cell.baseline_repeat;
    let surplus = second.cells.iter().filter(matched).count().saturating_sub(pairs.len());
    for (count, run) in [(lacking as usize, &first.run), (surplus, &second.run)] {
        if count > 0 {
            unmatched.push(format!(
                "{count} figures of {run} have no counterpart, since their axis values differ."
            ));
        }
    }
    let comparable =
        pairs.iter().filter(|(a, b)| a.status == Status::Ok && b.status == Status::Ok).count().max(1);
    let rows: Vec<Row> = pairs.iter().map(|(a, b)| row(first, second, a, b, comparable)).collect();
    Compared {
        first: first.run.clone(),
        second: second.run.clone(),
        publishing: publishing(first, second),
        summary: summary(&rows, first, second),
        differences: differences::differences(first, second, &targets),
        rows,
        unmatched,
    }
}

/// What holds for either run, once.
fn publishing(first: &Summary, second: &Summary) -> Vec<String> {
    let mut all = first.publishing.clone();
    all.extend(second.publishing.iter().filter(|sentence| !first.publishing.contains(sentence)).cloned());
    all
}

/// Targets of both runs that have the same engine, by position in each.
fn matched_targets(first: &Summary, second: &Summary, unmatched: &mut Vec<String>) -> Vec<(usize, usize)> {
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
            None => unmatched
                .push(format!("{} has {}, {} has not.", first.run, first.words.targets[a], second.run)),
        }
    }
    for b in (0..second.targets.len()).filter(|b| !pairs.iter().any(|(_, matched)| matched == b)) {
        unmatched.push(format!("{} has {}, {} has not.", second.run, second.words.targets[b], first.run));
    }
    pairs
}

fn row(first: &Summary, second: &Summary, a: &CellFigures, b: &CellFigures, comparisons: usize) -> Row {
    let ratio = if a.status == Status::Ok && b.status == Status::Ok && unfinished(first, second).is_none() {
        let figures = |cell: &CellFigures| cell.by_round.values().copied().collect::<Vec<f64>>();
        welch(&figures(b), &figures(a), comparisons)
    } else {
        None
    };
    let floor = first.noise_floor.unwrap_or(0.0).max(second.noise_floor.unwrap_or(0.0));
    let result = match ratio.map(|ratio| judge(&ratio, floor, Direction::HigherIsBetter)) {
        None => VerdictResult::NotComparable,
        Some(Verdict::Faster) => VerdictResult::Faster,
        Some(Verdict::Slower) => VerdictResult::Slower,
        Some(Verdict::Indistinguishable) => VerdictResult::Indistinguishable,
        Some(Verdict::Open | Verdict::NotComparable { .. }) => VerdictResult::Open,
    };
    let result = if unfinished(first, second).is_some() { VerdictResult::Open } else { result };
    let mut row = Row {
        target: a.target.clone(),
        axes: a.axes.clone(),
        operation: a.operation.clone(),
        first: a.ops_per_second,
        second: b.ops_per_second,
        result,
        ratio: ratio.map(|ratio| ratio.ratio),
        low: ratio.and_then(|ratio| ratio.low()),
        high: ratio.and_then(|ratio| ratio.high()),
        sentence: String::new(),
        shown: first.words.axes.iter().map(|axis| (axis.name.clone(), axis.show_of(&a.axes))).collect(),
    };
    row.sentence = match unfinished(first, second) {
        Some(run) => format!("{}: not compared, since {run} is not complete.", what(first, a)),
        None => sentence(first, a, b, result, ratio),
    };
    row
}

/// A run that has not ended as planned: comparing it would be an analysis that was not planned.
fn unfinished<'a>(first: &'a Summary, second: &'a Summary) -> Option<&'a str> {
    [first, second].into_iter().find(|summary| !summary.complete).map(|summary| summary.run.as_str())
}

/// The ratio of two geometric means with the interval of Welch ("The generalization of 'Student's' problem when
/// several different population variances are involved", Biometrika 34, 1947) on logarithms, widened for
/// `comparisons` (Bonferroni). The interval is `None` with fewer than two rounds on a side.
fn welch(subject: &[f64], other: &[f64], comparisons: usize) -> Option<PairedRatio> {
    let (a, b) = (logs(subject)?, logs(other)?);
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let difference = mean_a - mean_b;
    let interval = (a.len() > 1 && b.len() > 1).then(|| {
        let (va, vb) = (variance(&a, mean_a) / a.len() as f64, variance(&b, mean_b) / b.len() as f64);
        let error = (va + vb).sqrt();
        let freedom = (va + vb).powi(2) / (va * va / (a.len() - 1) as f64 + vb * vb / (b.len() - 1) as f64);
        let tail = 0.5 * (1.0 - CONFIDENCE) / comparisons as f64;
        let reach = if error > 0.0 { -student_t_quantile(tail, freedom) * error } else { 0.0 };
        Interval { low: (difference - reach).exp(), high: (difference + reach).exp() }
    });
    Some(PairedRatio {
        ratio: difference.exp(),
        interval,
        rounds: a.len().min(b.len()),
        confidence: CONFIDENCE,
        comparisons: comparisons as u32,
    })
}

fn logs(figures: &[f64]) -> Option<Vec<f64>> {
    let good = !figures.is_empty() && figures.iter().all(|figure| *figure > 0.0 && figure.is_finite());
    good.then(|| figures.iter().map(|figure| figure.ln()).collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// The figures of a cell: `Reads on SQLite (1 kB)`.
fn what(first: &Summary, cell: &CellFigures) -> String {
    let words = &first.words;
    let place: Vec<String> = words
        .chart_axis()
        .into_iter()
        .chain(words.varying())
        .filter_map(|axis| Some(axis.name_value(cell.axes.get(&axis.name)?)))
        .collect();
    let place = if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
    format!("{} on {}{place}", capital(&words.plural(&cell.operation)), words.targets[cell.target_index])
}

fn sentence(
    first: &Summary,
    a: &CellFigures,
    b: &CellFigures,
    result: VerdictResult,
    ratio: Option<PairedRatio>,
) -> String {
    let what = what(first, a);
    match (result, ratio) {
        (VerdictResult::Faster, Some(ratio)) => format!("{what} are {}.", told(&ratio, "faster", "fast")),
        (VerdictResult::Slower, Some(ratio)) => {
            format!("{what} were {} in the first run.", told(&ratio.inverse(), "faster", "fast"))
        }
        (VerdictResult::Indistinguishable, _) => format!("{what}: no difference was seen."),
        (VerdictResult::Open, _) => format!("{what}: open, since one round shows no interval."),
        _ => {
            let why = a.reason.as_deref().or(b.reason.as_deref()).unwrap_or("there are no figures");
            format!("{what}: not compared: {why}.")
        }
    }
}

fn told(ratio: &PairedRatio, than: &str, as_: &str) -> String {
    let how = HowMuch::of(ratio);
    if how.factor { format!("{} as {as_}", how.amount) } else { format!("{} {than}", how.amount) }
}

fn summary(rows: &[Row], first: &Summary, second: &Summary) -> Vec<String> {
    let count = |result: VerdictResult| rows.iter().filter(|row| row.result == result).count();
    let mut sentences = Vec::new();
    if rows.is_empty() {
        return vec!["The two runs have no figure in common.".to_owned()];
    }
    if let Some(run) = unfinished(first, second) {
        return vec![format!(
            "{run} is not complete: figures are shown, and nothing is compared before it is."
        )];
    }
    let mut parts = vec![
        format!("{} are faster in the second", count(VerdictResult::Faster)),
        format!("{} slower", count(VerdictResult::Slower)),
        format!("{} show no difference", count(VerdictResult::Indistinguishable)),
    ];
    for (result, text) in
        [(VerdictResult::NotComparable, "have no figures"), (VerdictResult::Open, "are open (one round)")]
    {
        if count(result) > 0 {
            parts.push(format!("{} {text}", count(result)));
        }
    }
    sentences.push(format!(
        "Of {} figures that both runs have, {}.",
        rows.len(),
        crate::format::list(&parts)
    ));
    let floor = [first.noise_floor, second.noise_floor].into_iter().flatten().max_by(f64::total_cmp);
    let floor = floor.map_or_else(String::new, |floor| {
        format!(" The larger noise floor, {}, was held against them.", percent(floor))
    });
    sentences.push(format!(
        "The two runs were made at different times and are not interleaved: what changed on the machine between them looks the same as a difference between them, so this is weaker evidence than one run of both.{floor}"
    ));
    let changed = |row: &&Row| matches!(row.result, VerdictResult::Faster | VerdictResult::Slower);
    sentences.extend(rows.iter().filter(changed).map(|row| row.sentence.clone()));
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welch_agrees_with_a_worked_example() {
        // Logarithms 1, 2, 3 against 4, 6, 8: difference −4, error √(1/3 + 4/3), 2.941 degrees of freedom, t = 3.2215.
        let e = |logs: [f64; 3]| logs.map(f64::exp);
        let ratio = welch(&e([1.0, 2.0, 3.0]), &e([4.0, 6.0, 8.0]), 1).unwrap();
        let interval = ratio.interval.unwrap();
        assert!((ratio.ratio.ln() + 4.0).abs() < 1e-12);
        let reach = (interval.high.ln() - interval.low.ln()) / 2.0;
        let error = (5.0_f64 / 3.0).sqrt();
        assert!((reach / error - 3.2215).abs() < 0.01, "{}", reach / error);
        assert!(welch(&[1.0], &[2.0, 3.0], 1).unwrap().interval.is_none());
        assert!(welch(&[], &[1.0], 1).is_none());
    }
}
