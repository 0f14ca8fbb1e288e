//! Formatting and parsing of sizes, counts and times.
//!
//! `k`, `m`, `g` are powers of 1,000, as in published payload sizes; `KiB`, `MiB`, `GiB` (or `Ki`, `Mi`, `Gi`) are
//! powers of 1,024.

use crate::error::{Error, Result};
use std::time::Duration;

/// Parses a size in bytes: `100`, `4k`, `1.5 MB`, `64KiB`.
///
/// # Errors
/// [`Usage`](crate::ErrorKind::Usage) with the text and an example.
pub fn parse_size(text: &str) -> Result<u64> {
    let bad = || Error::usage(format!("'{text}' is not a size")).hint("write 1000, 4k, 1.5m or 64KiB");
    let (number, unit) = split_unit(text);
    let unit = unit.to_ascii_lowercase();
    let factor: u64 = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        _ => return Err(bad()),
    };
    scaled(number, factor).ok_or_else(bad)
}

/// Parses a count: `100`, `10k`, `1,000`, `1_000`.
///
/// # Errors
/// [`Usage`](crate::ErrorKind::Usage) with the text and an example.
pub fn parse_count(text: &str) -> Result<u64> {
    let bad = || Error::usage(format!("'{text}' is not a count")).hint("write 1000, 1_000 or 10k");
    // A comma separates groups of three digits: `1,5` is a list, or one and a half, and never 15.
    let digits = |group: &str| group.chars().take_while(char::is_ascii_digit).count();
    if text.starts_with(',') || text.split(',').skip(1).any(|group| digits(group) != 3) {
        return Err(bad());
    }
    let plain: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let (number, unit) = split_unit(&plain);
    let decimals = match unit {
        "" => 0,
        "k" | "K" => 3,
        "m" | "M" => 6,
        _ => return Err(bad()),
    };
    // No count has a part: `1.5k` is one, `1.5` and `0.0001k` are none.
    let given = number.split_once('.').map_or(0, |(_, part)| part.trim_end_matches('0').len());
    if given > decimals as usize {
        return Err(bad());
    }
    scaled(number, 10_u64.pow(decimals)).ok_or_else(bad)
}

/// Parses a time: `500ms`, `2s`, `1.5 min`, `1h`, `90` (seconds).
///
/// # Errors
/// [`Usage`](crate::ErrorKind::Usage) with the text and an example.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let bad = || Error::usage(format!("'{text}' is not a time")).hint("write 500ms, 10s, 2min or 1h");
    let (number, unit) = split_unit(text);
    let nanos: u64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "" | "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(bad()),
    };
    scaled(number, nanos).map(Duration::from_nanos).ok_or_else(bad)
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// The number in the smallest unit, which has no fractions: `1.5` is nothing there. What is smaller is rounded.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = number.parse::<f64>().ok()? * factor as f64;
    let is_part = factor == 1 && value.fract() != 0.0;
    (value.is_finite() && value < 1e18 && !is_part).then_some(value.round() as u64)
}

/// Formats a size in powers of 1,000: `999 B`, `4 kB`, `1.5 MB`.
pub fn size(bytes: u64) -> String {
    let (value, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..999_500 => (bytes as f64 / 1e3, "kB"),
        999_500..999_500_000 => (bytes as f64 / 1e6, "MB"),
        _ => (bytes as f64 / 1e9, "GB"),
    };
    format!("{} {unit}", short(value))
}

/// Formats a time: `850 ns`, `12.3 µs`, `4.5 ms`, `2.1 s`, `3 min 20 s`, `2 h 5 min`.
pub fn time(duration: Duration) -> String {
    let nanos = duration.as_nanos() as f64;
    match nanos {
        n if n < 999.5 => format!("{n:.0} ns"),
        n if n < 999.5e3 => format!("{} µs", short(n / 1e3)),
        n if n < 999.5e6 => format!("{} ms", short(n / 1e6)),
        n if n < 60e9 => format!("{} s", short(n / 1e9)),
        _ => {
            let seconds = duration.as_secs();
            let (high, low, names) = if seconds < 3_600 {
                (seconds / 60, seconds % 60, ("min", "s"))
            } else {
                (seconds / 3_600, seconds % 3_600 / 60, ("h", "min"))
            };
            if low == 0 {
                format!("{high} {}", names.0)
            } else {
                format!("{high} {} {low} {}", names.0, names.1)
            }
        }
    }
}

/// Formats a count with thousands separators: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 connection`, `1,234 connections`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Formats a number with three significant digits, without trailing zeros: `1.5`, `12.3`, `123`.
fn short(value: f64) -> String {
    let text = match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A hint for a misspelt word: the most similar of `known`, or all of them after `all`.
pub fn suggestion(word: &str, known: &[&str], all: &str) -> String {
    nearest(word, known)
        .map_or_else(|| format!("{all}: {}", known.join(", ")), |near| format!("did you mean '{near}'?"))
}

/// The most similar of `known` to a misspelt word, if one is similar enough: by edit distance, in which a
/// transposition of neighbouring letters is one error.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let most = (word.chars().count() / 3).max(1);
    known
        .iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_thing_has_no_plural() {
        for (n, expected) in [(0, "0 connections"), (1, "1 connection"), (1_234, "1,234 connections")] {
            assert_eq!(counted(n, "connection"), expected);
        }
    }

    #[test]
    fn common_spellings_of_sizes_are_parsed() {
        for (text, bytes) in [
            ("100", 100),
            ("1k", 1_000),
            ("4 kB", 4_000),
            ("1.5m", 1_500_000),
            ("64KiB", 65_536),
            ("1g", 1_000_000_000),
        ] {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "1x", "k", "-1", "1..2k", "99999999999999999999"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn part_of_one_is_no_count_and_comma_separates_three_digits() {
        for (text, count) in [
            ("1.5k", 1_500),
            ("2.0", 2),
            ("1.1k", 1_100),
            ("1.000001m", 1_000_001),
            ("1,234,567", 1_234_567),
            ("1,000k", 1_000_000),
        ] {
            assert_eq!(parse_count(text).unwrap(), count, "{text}");
        }
        for text in ["1.5", "0.3", "1,5", "1,5000", "1,", ",", ",000", "1,00k", "0.0001k", "1.0005k"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
        assert!(parse_size("0.5").is_err() && parse_size("0.5k").is_ok());
        assert!(parse_duration("0.5ns").is_err() && parse_duration("0.5").is_ok());
    }

    #[test]
    fn value_that_rounds_to_1000_uses_next_unit() {
        assert_eq!((size(999_700), size(999_700_000)), ("1 MB".to_owned(), "1 GB".to_owned()));
        assert_eq!(time(Duration::from_nanos(999_700)), "1 ms");
        assert_eq!(time(Duration::from_micros(999_700)), "1 s");
    }

    #[test]
    fn common_spellings_of_counts_and_times_are_parsed() {
        assert_eq!(parse_count("10k").unwrap(), 10_000);
        assert_eq!(parse_count("1,000").unwrap(), 1_000);
        assert!(parse_count("ten").is_err());
        assert_eq!(parse_duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_duration("1.5 min").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_duration("2").unwrap(), Duration::from_secs(2));
        assert!(parse_duration("2 fortnights").is_err());
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        assert_eq!(size(1_000), "1 kB");
        assert_eq!(size(1_333_336), "1.33 MB");
        assert_eq!(time(Duration::from_nanos(12_345)), "12.3 µs");
        assert_eq!(time(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(time(Duration::from_secs(7_500)), "2 h 5 min");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
    }

    #[test]
    fn misspelt_word_finds_nearest_word() {
        assert_eq!(nearest("paylod", &["payload", "layout"]), Some("payload"));
        assert_eq!(nearest("raed", &["write", "read"]), Some("read"));
        assert_eq!(nearest("zebra", &["payload", "layout"]), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_size_or_an_error(text in ".{0,20}") {
            let _ = (parse_size(&text), parse_count(&text), parse_duration(&text));
        }

        #[test]
        fn whole_sizes_survive(bytes in 0u64..10_000_000_000) {
            prop_assert_eq!(parse_size(&bytes.to_string()).unwrap(), bytes);
        }
    }
}
