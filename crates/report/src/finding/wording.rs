//! Wording that the sentences of several findings share.

use super::{Interval, Measured, Promise, Scope};
use crate::format::{figure, percent_number};
use crate::labels::Labels;
use crate::messages::Message;
use crate::metrics::is_speed;
use crate::summary::Summary;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::metric::{Better, HIGHEST_RATE, RESPONSE_P99};
use kurabe_core::units;

/// From this ratio on, a factor is easier to read than a percentage.
const FACTOR_FROM: f64 = 1.5;

/// Formats how much faster a side is, from a ratio above 1: `5.2 times as fast (5.1 to 5.3)`, `14 % faster (11 to 17 %)`.
pub(super) fn faster(ratio: Interval, lower_bound: bool) -> String {
    improved(ratio, lower_bound, "faster", Some("as fast"))
}

/// Formats an improvement from a ratio above 1. `factor` follows a number of times; without it, a factor follows `word`:
/// `lower by a factor of 5.2 (5.1 to 5.3)`.
fn improved(ratio: Interval, lower_bound: bool, word: &str, factor: Option<&str>) -> String {
    let ends = ends(ratio).filter(|_| !lower_bound);
    let ends = ends.map_or_else(String::new, |ends| format!(" ({ends})"));
    let amount = number(ratio, lower_bound);
    match factor {
        _ if !is_factor(ratio.value) => format!("{amount} {word}{ends}"),
        Some(factor) => format!("{amount} {factor}{ends}"),
        None => format!("{word} by a factor of {}{ends}", amount.trim_end_matches(" times")),
    }
}

/// Whether a ratio is easier to read as a factor.
fn is_factor(ratio: f64) -> bool {
    ratio >= FACTOR_FROM
}

/// A factor: `0.97`, `5.1`, `120`.
fn factor(value: f64) -> String {
    match value {
        value if value < 0.01 => "less than 0.01".to_owned(),
        value if value < 0.1 => format!("{value:.3}"),
        value if value < 1.1 => format!("{value:.2}"),
        value if value < 10.0 => format!("{value:.1}"),
        value if value < 1_000.0 => figure(value.round()),
        _ => "more than 1,000".to_owned(),
    }
}

/// The amount of a ratio above 1: `5.2 times`, `14 %`; the lower end of its interval if it is a lower bound: `at least 5.1
/// times`. The difference is real even if it is rounded to 0.
fn number(ratio: Interval, lower_bound: bool) -> String {
    let value = ratio.low.filter(|_| lower_bound).unwrap_or(ratio.value);
    let least = if lower_bound { "at least " } else { "" };
    if is_factor(ratio.value) {
        return format!("{least}{} times", factor(value));
    }
    match percent_number(value - 1.0).as_str() {
        "0" if lower_bound => "more than 0 %".to_owned(),
        "0" => "less than 0.1 %".to_owned(),
        number => format!("{least}{number} %"),
    }
}

/// The ends of the interval of a ratio above 1: `5.1 to 5.3`, `11 to 17 %`; `None` if they read like the ratio.
fn ends(ratio: Interval) -> Option<String> {
    let (low, high) = ratio.low.zip(ratio.high)?;
    if is_factor(ratio.value) {
        let (value, low, high) = (factor(ratio.value), factor(low), factor(high));
        return (low != value || high != value).then(|| format!("{low} to {high}"));
    }
    let [value, low, high] = [ratio.value, low, high].map(|value| percent_number(value - 1.0));
    (low != value || high != value).then(|| match low.as_str() {
        "0" => format!("up to {high} %"),
        low => format!("{low} to {high} %"),
    })
}

/// Formats an improvement without the other side. If lower is better, `ratio` is the worse value ÷ the better one.
pub(crate) fn gained(metric: &str, ratio: Interval, lower_bound: bool, labels: &Labels) -> String {
    if is_speed(metric) {
        return faster(ratio, lower_bound);
    }
    if labels.metric(metric).is_none_or(|metric| metric.better != Better::Lower) {
        return improved(ratio, lower_bound, "higher", None);
    }
    let less = |factor: f64| 2.0 - 1.0 / factor;
    let ratio = if is_factor(ratio.value) { ratio } else { ratio.map(less) };
    improved(ratio, lower_bound, "lower", None)
}

/// The same with the word before the other side; of several ratios the least that holds for all.
pub(super) fn gained_over(metric: &str, measured: &[Measured], lower_bound: bool, labels: &Labels) -> String {
    let least = measured.iter().min_by(|a, b| a.low.unwrap_or(a.ratio).total_cmp(&b.low.unwrap_or(b.ratio)));
    let Some(ratio) = least.map(Measured::interval) else { return String::new() };
    let least = lower_bound || measured.len() > 1;
    let word = if is_speed(metric) && is_factor(ratio.value) { "as" } else { "than" };
    format!("{} {word}", gained(metric, ratio, least, labels))
}

/// Formats only the amount, with its interval: `14 % (11 to 17 %)`, `5.2 times (5.1 to 5.3)`; for tables and lists.
pub(crate) fn amount(ratio: Interval, lower_bound: bool) -> String {
    let ends = ends(ratio).filter(|_| !lower_bound).map(|ends| format!(" ({ends})"));
    number(ratio, lower_bound) + &ends.unwrap_or_default()
}

/// A ratio that decides nothing, with its interval: `0.97 times (0.90 to 1.06)`.
pub(crate) fn ratio(ratio: Interval) -> String {
    let value = factor(ratio.value);
    let ends = ratio.low.zip(ratio.high).map(|(low, high)| (factor(low), factor(high)));
    let ends = ends.filter(|(low, high)| *low != value || *high != value);
    let ends = ends.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
    format!("{value} times{ends}")
}

/// The same for a table: `0.97× (0.90–1.06)`.
pub(crate) fn ratio_in_table(ratio: Interval) -> String {
    let short = |value: f64| match value {
        value if value < 0.01 => "<0.01".to_owned(),
        value if value >= 1_000.0 => ">1,000".to_owned(),
        value => factor(value),
    };
    let ends = ratio.low.zip(ratio.high).map(|(low, high)| format!(" ({}–{})", short(low), short(high)));
    format!("{}×{}", short(ratio.value), ends.unwrap_or_default())
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
    let language = summary.labels.language;
    let one = if summary.rounds == 1 { Message::OneRound } else { Message::Rounds };
    let all = one.with(language, &[("count", &summary.rounds.to_string())]);
    let most = summary.cells.iter().filter_map(|cell| Some((cell.interleaved?, cell.rounds))).max();
    most.map_or(all.clone(), |(interleaved, continuous)| {
        let (continuous, interleaved) = (continuous.to_string(), interleaved.to_string());
        Message::RoundsOf
            .with(language, &[("all", &all), ("continuous", &continuous), ("interleaved", &interleaved)])
    })
}

/// `1 cell`, `3 cells`.
pub(super) fn many(count: u64, one: &str, several: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {several}", units::count(count)) }
}

/// ` in 2 of 3 cells`; empty if there is only one.
pub(super) fn of_cells(these: u32, all: u32) -> String {
    if all == 1 { String::new() } else { format!(" in {these} of {all} results") }
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
        .map(|one| {
            let because = with_settings(&one.settings);
            format!("on {} {}{because}", labels.targets_of(&one.targets), promise(one.class))
        })
        .collect();
    format!(". Durability differs: {}", differences.join("; "))
}

/// The settings behind what they decide: ` (synchronous_commit off)`.
pub(crate) fn with_settings(settings: &[String]) -> String {
    if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) }
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
        let of = |value, low, high| Interval { value, low: Some(low), high: Some(high) };
        let lower = |ratio: Interval| improved(ratio, false, "lower", None);
        assert_eq!(faster(of(1.15, 1.12, 1.18), false), "15 % faster (12 to 18 %)");
        assert_eq!(faster(of(1.02, 1.000_2, 1.05), false), "2 % faster (up to 5 %)");
        assert_eq!(faster(of(1.000_2, 1.000_1, 1.000_3), false), "less than 0.1 % faster");
        assert_eq!(faster(of(1.1, 1.000_1, 1.2), true), "more than 0 % faster");
        assert_eq!(faster(of(5.03, 2.04, 12.4), false), "5.0 times as fast (2.0 to 12)");
        assert_eq!(faster(of(2.75, 2.7, 2.8), true), "at least 2.7 times as fast");
        assert_eq!(lower(of(1.25, 1.2, 1.31)), "25 % lower (20 to 31 %)");
        assert_eq!(lower(of(3.0, 2.0, 4.0)), "lower by a factor of 3.0 (2.0 to 4.0)");
        assert_eq!(amount(of(5.2, 5.1, 5.3), false), "5.2 times (5.1 to 5.3)");
        assert_eq!(ratio(of(0.97, 0.004, 2_000.0)), "0.97 times (less than 0.01 to more than 1,000)");
        assert_eq!(ratio(Interval { value: 1.3, low: None, high: None }), "1.3 times");
    }
}
