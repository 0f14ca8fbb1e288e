//! Wording that the sentences of several findings share, in both languages.

use crate::attribution::{Bottleneck, Confidence};
use crate::catalogue;
use crate::format::{figure, list, percent_number};
use crate::labels::Labels;
use crate::messages::Language;
use crate::metrics::is_speed;
use crate::target::TargetId;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::metric::{Better, HIGHEST_RATE, RESPONSE_P99, THROUGHPUT};
use kurabe_core::units;
use kurabe_stats::Estimate;
use std::time::Duration;

/// Formats the text of a language; both texts may name the same variables.
macro_rules! say {
    ($language:expr, $english:literal, $japanese:literal $(,)?) => {
        match $language {
            $crate::messages::Language::English => format!($english),
            $crate::messages::Language::Japanese => format!($japanese),
        }
    };
}
pub(crate) use say;

/// From this ratio on, a factor is easier to read than a percentage.
const FACTOR_FROM: f64 = 1.5;

/// Formats how much faster a side is, from a ratio above 1: `5.2 times as fast (5.1 to 5.3)`, `14 % faster (11 to 17 %)`.
pub(crate) fn faster(ratio: Estimate, lower_bound: bool) -> String {
    improved(ratio, lower_bound, "faster", Some("as fast"))
}

/// Formats an improvement from a ratio above 1. `factor` follows a number of times; without it, a factor follows `word`:
/// `lower by a factor of 5.2 (5.1 to 5.3)`.
fn improved(ratio: Estimate, lower_bound: bool, word: &str, factor: Option<&str>) -> String {
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
pub(crate) fn is_factor(ratio: f64) -> bool {
    ratio >= FACTOR_FROM
}

/// A factor: `0.97`, `5.1`, `120`.
fn factor(value: f64, language: Language) -> String {
    match value {
        value if value < 0.01 => say!(language, "less than 0.01", "0.01 未満"),
        value if value < 0.1 => format!("{value:.3}"),
        value if value < 1.1 => format!("{value:.2}"),
        value if value < 10.0 => format!("{value:.1}"),
        value if value < 1_000.0 => figure(value.round()),
        _ => say!(language, "more than 1,000", "1,000 超"),
    }
}

/// The amount of a ratio above 1: `5.2 times`, `14 %`; the lower end of its interval if it is a lower bound: `at least 5.1
/// times`. The difference is real even if it is rounded to 0.
fn number(ratio: Estimate, lower_bound: bool) -> String {
    let value = ratio.low.filter(|_| lower_bound).unwrap_or(ratio.value);
    let least = if lower_bound { "at least " } else { "" };
    if is_factor(ratio.value) {
        return format!("{least}{} times", factor(value, Language::English));
    }
    match percent_number(value - 1.0).as_str() {
        "0" if lower_bound => "more than 0 %".to_owned(),
        "0" => "less than 0.1 %".to_owned(),
        number => format!("{least}{number} %"),
    }
}

/// The ends of the interval of a ratio above 1: `5.1 to 5.3`, `11 to 17 %`; `None` if they read like the ratio.
fn ends(ratio: Estimate) -> Option<String> {
    let (low, high) = ratio.ends()?;
    let [value, low, high] = [ratio.value, low, high].map(|value| {
        if is_factor(ratio.value) { factor(value, Language::English) } else { percent_number(value - 1.0) }
    });
    let unit = if is_factor(ratio.value) { "" } else { " %" };
    (low != value || high != value).then(|| match low.as_str() {
        "0" => format!("up to {high}{unit}"),
        low => format!("{low} to {high}{unit}"),
    })
}

/// Formats an improvement without the other side. If lower is better, `ratio` is the worse value ÷ the better one.
pub(crate) fn gained(metric: &str, of: Estimate, lower_bound: bool, labels: &Labels) -> String {
    if labels.language == Language::Japanese {
        return amount(of, lower_bound, Language::Japanese);
    }
    if is_speed(metric) {
        return faster(of, lower_bound);
    }
    if labels.metric(metric).is_none_or(|metric| metric.better != Better::Lower) {
        return improved(of, lower_bound, "higher", None);
    }
    let less = |factor: f64| 2.0 - 1.0 / factor;
    let of = if is_factor(of.value) { of } else { of.map(less) };
    improved(of, lower_bound, "lower", None)
}

/// Formats only the amount, with its interval: `14 % (11 to 17 %)`, `5.2 times (5.1 to 5.3)`; for tables and lists.
pub(crate) fn amount(of: Estimate, lower_bound: bool, language: Language) -> String {
    if language == Language::Japanese {
        let least = of.low.filter(|_| lower_bound).map(|low| factor(low, language));
        return least.map_or_else(|| ratio(of, language), |low| format!("少なくとも {low} 倍"));
    }
    let ends = ends(of).filter(|_| !lower_bound).map(|ends| format!(" ({ends})"));
    number(of, lower_bound) + &ends.unwrap_or_default()
}

/// A ratio that decides nothing, with its interval: `0.97 times (0.90 to 1.06)`.
pub(crate) fn ratio(ratio: Estimate, language: Language) -> String {
    let value = factor(ratio.value, language);
    let ends = ratio.ends().map(|(low, high)| (factor(low, language), factor(high, language)));
    let ends = ends.filter(|ends| says_more(&value, ends, language));
    let ends = ends.map(|(low, high)| say!(language, " ({low} to {high})", "(区間 {low}~{high})"));
    let ends = ends.unwrap_or_default();
    say!(language, "{value} times{ends}", "{value} 倍{ends}")
}

/// Whether an interval is written. In English, one whose ends read like the value is not: a sentence says where there is none.
fn says_more(value: &str, (low, high): &(String, String), language: Language) -> bool {
    language != Language::English || low != value || high != value
}

/// The same for a table: `0.97× (0.90–1.06)`.
pub(crate) fn ratio_in_table(ratio: Estimate) -> String {
    let short = |value: f64| match value {
        value if value < 0.01 => "<0.01".to_owned(),
        value if value >= 1_000.0 => ">1,000".to_owned(),
        value => factor(value, Language::English),
    };
    let ends = ratio.ends().map(|(low, high)| format!(" ({}–{})", short(low), short(high)));
    format!("{}×{}", short(ratio.value), ends.unwrap_or_default())
}

/// `1.2 ms (1.1 to 1.3 ms)`; only the value without an interval, or if its ends read like the value.
pub(crate) fn with_interval(figure: Estimate, show: &dyn Fn(f64) -> String, language: Language) -> String {
    let value = show(figure.value);
    let ends = figure.ends().map(|(low, high)| (show(low), show(high)));
    let ends = ends.filter(|ends| says_more(&value, ends, language));
    ends.map_or_else(
        || value.clone(),
        |(low, high)| say!(language, "{value} ({low} to {high})", "{value}({low}~{high})"),
    )
}

pub(crate) fn rounds(count: u32) -> String {
    many(count.into(), "round", "rounds")
}

/// `1 cell`, `3 cells`.
pub(crate) fn many(count: u64, one: &str, several: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {several}", units::count(count)) }
}

/// ` in 2 of 3 results`; empty if there is only one.
pub(crate) fn of_cells(these: u32, all: u32, language: Language) -> String {
    if all == 1 {
        String::new()
    } else {
        say!(language, " in {these} of {all} results", "の {all} 件中 {these} 件")
    }
}

/// Things in a sentence: `a, b and c`.
pub(crate) fn listed(all: &[String], language: Language) -> String {
    if language == Language::Japanese { all.join("、") } else { list(all) }
}

/// Parts of a sentence: in English with this separator.
pub(crate) fn joined(all: &[String], separator: &str, language: Language) -> String {
    all.join(if language == Language::Japanese { "、" } else { separator })
}

/// A time in seconds in brackets.
pub(crate) fn taking(seconds: Option<u64>, language: Language) -> String {
    let time = seconds.map(|seconds| units::time(Duration::from_secs(seconds)));
    time.map_or_else(String::new, |time| say!(language, " ({time})", "({time})"))
}

/// The class as a word.
pub(crate) fn class_name(class: Option<DurabilityClass>) -> &'static str {
    class.map_or("unknown", DurabilityClass::name)
}

/// What an acknowledged write survives, as a clause.
pub(crate) fn promise(class: Option<DurabilityClass>, language: Language) -> &'static str {
    if language == Language::English {
        return class.map_or("what an acknowledged write survives is unknown", DurabilityClass::promise);
    }
    match class {
        None => "応答済みの書き込みが何に耐えるかわからず",
        Some(DurabilityClass::Memory) => "応答済みの書き込みもサーバーの停止で失われることがあり",
        Some(DurabilityClass::OsCache) => "応答済みの書き込みも停電で失われることがあり",
        Some(DurabilityClass::PeriodicSync) => {
            "応答済みの書き込みも障害や停電で最後の約 1 秒分が失われることがあり"
        }
        Some(DurabilityClass::Synced) => "応答済みの書き込みは停電に耐え",
        Some(DurabilityClass::Replicated) => "応答済みの書き込みはマシンの喪失に耐え",
    }
}

/// The settings behind what they decide: ` (synchronous_commit off)`.
pub(crate) fn with_settings(settings: &[String]) -> String {
    if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) }
}

/// A target with its version, if known: `PostgreSQL 15.18`.
pub(crate) fn with_version(target: &TargetId, version: &str, labels: &Labels) -> String {
    let target = labels.target(target);
    if version.is_empty() { target } else { format!("{target} {version}") }
}

/// The operations with the metric by which they are compared: `by response p99, reads`.
pub(crate) fn subject(metric: &str, operations: &[String], labels: &Labels) -> String {
    let operations = labels.operations_of(operations);
    if metric == THROUGHPUT.name {
        return operations;
    }
    let objective = &labels.objective;
    match labels.language {
        Language::Japanese if is_speed(metric) => operations,
        Language::Japanese => metric_of(metric, &operations, Language::Japanese),
        Language::English if metric == RESPONSE_P99.name => format!("by response p99, {operations}"),
        Language::English if metric == HIGHEST_RATE.name => {
            format!("by highest rate with p99 under {objective}, {operations}")
        }
        Language::English => metric_of(metric, &operations, Language::English),
    }
}

/// A metric of operations.
pub(crate) fn metric_of(metric: &str, operations: &str, language: Language) -> String {
    let metric = catalogue::translated(metric, language);
    say!(language, "{metric} of {operations}", "{operations} の {metric}")
}

/// A word before the name of a bottleneck that is only the most likely one.
pub(crate) fn likely(confidence: Confidence, language: Language) -> &'static str {
    match (confidence, language) {
        (Confidence::High, _) => "",
        (Confidence::Low, Language::English) => "most likely ",
        (Confidence::Low, Language::Japanese) => "おそらく",
    }
}

/// The name of a bottleneck in sentences.
pub(crate) fn noun(bottleneck: Bottleneck, language: Language) -> &'static str {
    match (bottleneck, language) {
        (Bottleneck::ProcessCpu, Language::Japanese) => "プロセスの CPU",
        (_, Language::Japanese) => bottleneck.message().text(language),
        (Bottleneck::ClientCpu, _) => "the client's CPU",
        (Bottleneck::ServerCpu, _) => "the server's CPU",
        (Bottleneck::ProcessCpu, _) => "the CPU of the process with client and database",
        (Bottleneck::Disk, _) => "storage",
        (Bottleneck::Network, _) => "the network",
        (Bottleneck::Locks, _) => "locks",
        (Bottleneck::Latency, _) => "round-trip time",
        (Bottleneck::Load, _) => "the given rate",
        (Bottleneck::Unknown, _) => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_percentages_or_factors() {
        let of = |value, low, high| Estimate { value, low: Some(low), high: Some(high) };
        let lower = |ratio: Estimate| improved(ratio, false, "lower", None);
        let ratio = |of: Estimate| ratio(of, Language::English);
        assert_eq!(faster(of(1.15, 1.12, 1.18), false), "15 % faster (12 to 18 %)");
        assert_eq!(faster(of(1.02, 1.000_2, 1.05), false), "2 % faster (up to 5 %)");
        assert_eq!(faster(of(1.000_2, 1.000_1, 1.000_3), false), "less than 0.1 % faster");
        assert_eq!(faster(of(1.1, 1.000_1, 1.2), true), "more than 0 % faster");
        assert_eq!(faster(of(5.03, 2.04, 12.4), false), "5.0 times as fast (2.0 to 12)");
        assert_eq!(faster(of(2.75, 2.7, 2.8), true), "at least 2.7 times as fast");
        assert_eq!(lower(of(1.25, 1.2, 1.31)), "25 % lower (20 to 31 %)");
        assert_eq!(lower(of(3.0, 2.0, 4.0)), "lower by a factor of 3.0 (2.0 to 4.0)");
        assert_eq!(amount(of(5.2, 5.1, 5.3), false, Language::English), "5.2 times (5.1 to 5.3)");
        assert_eq!(ratio(of(0.97, 0.004, 2_000.0)), "0.97 times (less than 0.01 to more than 1,000)");
        assert_eq!(ratio(Estimate { value: 1.3, low: None, high: None }), "1.3 times");
    }
}
