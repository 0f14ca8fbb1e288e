//! Wording that the sentences of several findings share.

use super::{Interval, Promise, Scope, Span};
use crate::format::{figure, percent_number};
use crate::labels::Labels;
use crate::metrics::is_speed;
use crate::summary::Summary;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::metric::{Better, HIGHEST_RATE, RESPONSE_P99};
use kurabe_core::units;

/// From this ratio on, a factor is easier to read than a percentage.
const FACTOR_FROM: f64 = 1.5;

/// Formats a range of ratios above 1: `5.1 to 5.6 times as fast` or `12 to 18 % faster`.
pub(super) fn faster(ratio: Span, lower_bound: bool) -> String {
    let word = if is_factor(ratio) { "as fast" } else { "faster" };
    format!("{} {word}", amount(ratio, lower_bound))
}

/// The same with the word before the slower side.
fn faster_than(ratio: Span, lower_bound: bool) -> String {
    format!("{} {}", faster(ratio, lower_bound), if is_factor(ratio) { "as" } else { "than" })
}

/// Whether a range of ratios is easier to read as a factor.
fn is_factor(ratio: Span) -> bool {
    (ratio.low * ratio.high).sqrt() >= FACTOR_FROM
}

/// `5.1 to 5.6 times`, `at least 5.1 times`.
pub(super) fn times(ratio: Span, lower_bound: bool) -> String {
    let factor = |value: f64| match value {
        value if value < 1.1 => format!("{value:.2}"),
        value if value < 10.0 => format!("{value:.1}"),
        value => figure(value.round()),
    };
    format!("{} times", between(&factor(ratio.low), &factor(ratio.high), lower_bound))
}

/// `12 to 18 %`, from ratios. The difference is real even if it is rounded to 0.
fn percents(ratio: Span, lower_bound: bool) -> String {
    let (low, high) = (percent_number(ratio.low - 1.0), percent_number(ratio.high - 1.0));
    match (low.as_str(), high.as_str()) {
        ("0", _) if lower_bound => "more than 0 %".to_owned(),
        ("0", "0") => "less than 0.1 %".to_owned(),
        ("0", high) => format!("up to {high} %"),
        (low, high) => format!("{} %", between(low, high, lower_bound)),
    }
}

fn between(low: &str, high: &str, lower_bound: bool) -> String {
    match (lower_bound, low == high) {
        (true, _) => format!("at least {low}"),
        (false, true) => low.to_owned(),
        (false, false) => format!("{low} to {high}"),
    }
}

/// Formats the improvement of another metric: `12 to 18 % higher`, `lower by a factor of 5.1 to 5.6`. Ratios are
/// above 1; if lower is better, `ratio` is the worse value ÷ the better one.
fn improved(ratio: Span, lower_bound: bool, better: Better) -> String {
    let word = if better == Better::Lower { "lower" } else { "higher" };
    if is_factor(ratio) {
        let times = times(ratio, lower_bound);
        return format!("{word} by a factor of {}", times.trim_end_matches(" times"));
    }
    let less = |factor: f64| 2.0 - 1.0 / factor;
    let ratio = match better {
        Better::Lower => Span { low: less(ratio.low), high: less(ratio.high) },
        Better::Higher | Better::Neither => ratio,
    };
    format!("{} {word}", percents(ratio, lower_bound))
}

/// Formats an improvement without the other side.
pub(crate) fn gained(metric: &str, ratio: Span, lower_bound: bool, labels: &Labels) -> String {
    let better = labels.metric(metric).map_or(Better::Higher, |metric| metric.better);
    if is_speed(metric) { faster(ratio, lower_bound) } else { improved(ratio, lower_bound, better) }
}

/// The same with the word before the other side.
pub(super) fn gained_over(metric: &str, ratio: Span, lower_bound: bool, labels: &Labels) -> String {
    if is_speed(metric) {
        faster_than(ratio, lower_bound)
    } else {
        format!("{} than", gained(metric, ratio, lower_bound, labels))
    }
}

/// Formats only the amount: `12 to 18 %`, `5.1 to 5.6 times`; for tables.
pub(crate) fn amount(ratio: Span, lower_bound: bool) -> String {
    if is_factor(ratio) { times(ratio, lower_bound) } else { percents(ratio, lower_bound) }
}

/// `1.2 ms (1.1 to 1.3 ms)`; only the value without an interval.
pub(crate) fn with_interval(figure: Interval, show: &dyn Fn(f64) -> String) -> String {
    let value = show(figure.value);
    // Ends that are formatted like the value itself are omitted.
    let ends = figure.low.zip(figure.high).map(|(low, high)| (show(low), show(high)));
    let ends = ends.filter(|(low, high)| *low != value || *high != value);
    ends.map_or_else(|| value.clone(), |(low, high)| format!("{value} ({low} to {high})"))
}

pub(crate) fn rounds(count: u32) -> String {
    if count == 1 { "1 round".to_owned() } else { format!("{count} rounds") }
}

/// The rounds of a run; if trials are interleaved, of which the figures are, and of which the ratios.
pub(crate) fn rounds_of(summary: &Summary) -> String {
    let all = rounds(summary.rounds);
    match summary.cells.iter().max_by_key(|cell| cell.interleaved) {
        Some(cell) if cell.interleaved > 0 => {
            format!("{all} (figures: {} continuous; ratios: {} interleaved)", cell.rounds, cell.interleaved)
        }
        _ => all,
    }
}

/// `1 cell`, `3 cells`.
pub(super) fn many(count: u64, one: &str, several: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {several}", units::count(count)) }
}

/// ` in 2 of 3 cells`; empty if there is only one.
pub(super) fn of_cells(these: u32, all: u32) -> String {
    if all == 1 { String::new() } else { format!(" in {these} of {all} cells") }
}

/// The class as a word.
pub(crate) fn class_name(class: Option<DurabilityClass>) -> &'static str {
    class.map_or("unknown", DurabilityClass::name)
}

/// What an acknowledged write survives, as a clause.
pub(crate) fn promise(class: Option<DurabilityClass>) -> &'static str {
    class.map_or("what an acknowledged write survives is unknown", DurabilityClass::promise)
}

/// The clause on durability for a verdict on writes with different classes.
pub(super) fn durability(promises: &[Promise], labels: &Labels) -> String {
    if promises.is_empty() {
        return String::new();
    }
    let differences: Vec<String> = promises
        .iter()
        .map(|one| format!("on {} {}", labels.targets_of(&one.targets), promise(one.class)))
        .collect();
    format!(". Durability differs: {}", differences.join("; "))
}

/// A target with its version, if known: `PostgreSQL 15.18`.
pub(super) fn with_version(target: &str, version: &str, labels: &Labels) -> String {
    let target = labels.target(target);
    if version.is_empty() { target } else { format!("{target} {version}") }
}

/// The operations, after the metric by which they are compared: `by response p99, reads`.
pub(super) fn subject(metric: &str, scope: &Scope, labels: &Labels) -> String {
    by(metric, labels) + &labels.operations_of(&scope.operations)
}

pub(super) fn by(metric: &str, labels: &Labels) -> String {
    match metric {
        name if name == RESPONSE_P99.name => "by response p99, ".to_owned(),
        name if name == HIGHEST_RATE.name => format!("by highest rate with p99 under {}, ", labels.objective),
        name if is_speed(name) => String::new(),
        name => format!("{name} of "),
    }
}

/// The verb for the subject: operations, or one metric of them.
pub(super) fn verb(metric: &str) -> &'static str {
    if is_speed(metric) { "are" } else { "is" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_percentages_or_factors() {
        let span = |low, high| Span { low, high };
        assert_eq!(faster_than(span(1.12, 1.18), false), "12 to 18 % faster than");
        assert_eq!(faster_than(span(1.000_2, 1.05), false), "up to 5 % faster than");
        assert_eq!(faster_than(span(1.000_1, 1.000_3), false), "less than 0.1 % faster than");
        assert_eq!(faster_than(span(1.000_1, 1.2), true), "more than 0 % faster than");
        assert_eq!(improved(span(1.000_1, 1.000_3), false, Better::Lower), "less than 0.1 % lower");
        assert_eq!(faster_than(span(2.04, 12.4), false), "2.0 to 12 times as fast as");
        assert_eq!(faster_than(span(2.7, 2.8), true), "at least 2.7 times as fast as");
        assert_eq!(improved(span(1.25, 1.4), false, Better::Lower), "20 to 29 % lower");
        assert_eq!(improved(span(1.25, 1.4), false, Better::Higher), "25 to 40 % higher");
        assert_eq!(improved(span(2.0, 4.0), false, Better::Lower), "lower by a factor of 2.0 to 4.0");
    }
}
