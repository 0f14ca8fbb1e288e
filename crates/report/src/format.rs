//! Formatting of numbers and lists.

use crate::messages::{Language, Message};
use crate::wording::say;
use jiff::Timestamp;
use kurabe_core::metric::Unit;
use kurabe_core::origin::Origin;
use kurabe_core::run::MachineFacts;
use kurabe_core::units;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A positive number with three significant digits: `0.512`, `45.6`, `12,300`.
pub(crate) fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let digits = value.abs().log10().floor();
    if value.abs() < 1e-9 {
        return "0".to_owned();
    }
    if digits >= 2.0 {
        let unit = 10_f64.powf(digits - 2.0);
        return units::count(((value / unit).round() * unit).round() as u64);
    }
    let decimals = (2.0 - digits).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number for the tick of an axis or a narrow column: `850`, `12.3k`, `1.5M`.
pub(crate) fn short_figure(value: f64) -> String {
    match value {
        v if v >= 999.5e6 => format!("{}G", figure(v / 1e9)),
        v if v >= 999.5e3 => format!("{}M", figure(v / 1e6)),
        v if v >= 9_995.0 => format!("{}k", figure(v / 1e3)),
        v => figure(v),
    }
}

/// Formats microseconds as a time.
pub(crate) fn micros(us: f64) -> String {
    units::time(Duration::from_nanos((us * 1e3).round().max(0.0) as u64))
}

/// Formats nanoseconds as a time.
pub(crate) fn nanos(ns: f64) -> String {
    units::time(Duration::from_nanos(ns.round().max(0.0) as u64))
}

/// Formats a share in per cent: `0.4 %`, `12 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", percent_number(share))
}

/// Formats by how much two values differ: in per cent, or as a factor, which is easier to read if it is large.
pub(crate) fn difference(share: f64, language: Language) -> String {
    let factor = format!("{:.0}", share + 1.0);
    match share {
        share if share >= 99.0 => say!(language, "a factor of more than 100", "100 倍超"),
        share if share >= 9.0 => say!(language, "a factor of {factor}", "{factor} 倍"),
        share => percent(share),
    }
}

/// The number of a percentage: one decimal below 2, none above.
pub(crate) fn percent_number(share: f64) -> String {
    let value = share * 100.0;
    if value < 1.95 {
        let text = format!("{value:.1}");
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    } else {
        format!("{value:.0}")
    }
}

/// A no-break space.
pub(crate) const GLUE: char = '\u{a0}';

/// Replaces spaces between numbers and units by no-break spaces.
pub(crate) fn glued(text: &str) -> String {
    const UNITS: [&str; 10] = ["%", "B", "kB", "MB", "GB", "ns", "µs", "ms", "s", "min"];
    let mut out = String::with_capacity(text.len());
    for (n, word) in text.split(' ').enumerate() {
        let unit = UNITS.contains(&word.trim_end_matches([',', '.', ')', ';', ':']));
        if n > 0 {
            out.push(if unit && out.ends_with(|c: char| c.is_ascii_digit()) { GLUE } else { ' ' });
        }
        out.push_str(word);
    }
    out
}

/// A list in a sentence: `a`, `a and b`, `a, b and c`.
pub(crate) fn list<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// The plural of an operation's name: `reads`, `queries`, `fetches`.
pub(crate) fn plural(word: &str) -> String {
    let before_y = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    if let Some(stem) = before_y {
        return format!("{stem}ies");
    }
    let hissing = ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
    if hissing { format!("{word}es") } else { format!("{word}s") }
}

/// A metric's value with its unit, for display.
pub fn value_of(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanoseconds if value < 0.0 => format!("−{}", nanos(-value)),
        Unit::Nanoseconds => nanos(value),
        Unit::Bytes => {
            let sign = if value <= -1.0 { "−" } else { "" };
            format!("{sign}{}", units::size(value.abs().round() as u64))
        }
        Unit::Count | Unit::PerSecond | Unit::Ratio if value < 0.0 => format!("−{}", short_figure(-value)),
        Unit::Count | Unit::PerSecond | Unit::Ratio => short_figure(value),
        Unit::Share => format!("{} %", figure(value * 100.0)),
    }
}

/// Settings in a list: `fsync = on, synchronous_commit = on`.
pub(crate) fn settings_list(settings: &BTreeMap<String, String>) -> String {
    let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    settings.join(", ")
}

/// The name in files of a kind without members, as its type's `Serialize` writes it.
pub(crate) fn name_of(kind: &impl Serialize) -> String {
    let name = serde_json::to_value(kind).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A sentence's first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A text in Japanese without spaces between two Japanese characters, which stand where a name of Latin letters was expected.
pub(crate) fn joined_up(text: &str) -> String {
    let is_wide = |c: char| c >= '\u{3000}' || c == ')';
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let before_wide = |next: &char| *next >= '\u{3000}';
        let is_needless = c == ' ' && out.ends_with(is_wide) && rest.peek().is_some_and(before_wide);
        if !is_needless {
            out.push(c);
        }
    }
    out
}

/// Formats seconds since 1970-01-01 as `2026-03-01 14:05 UTC`.
pub fn timestamp(seconds: u64) -> String {
    let time = Timestamp::from_second(i64::try_from(seconds).unwrap_or(i64::MAX)).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// The machine's processor, memory and system.
pub(crate) fn machine(machine: &MachineFacts, language: Language) -> String {
    let memory = (machine.memory_bytes > 0).then(|| units::size(machine.memory_bytes));
    let facts =
        [Some(machine.cpu.clone()), Some(cpus(machine, language)), memory, Some(machine.system.clone())];
    facts.into_iter().flatten().collect::<Vec<_>>().join(Message::Comma.text(language))
}

/// The number of the machine's processors.
pub(crate) fn cpus(machine: &MachineFacts, language: Language) -> String {
    match language {
        Language::English => units::counted(machine.cpus, "CPU"),
        Language::Japanese => format!("CPU {} 個", machine.cpus),
    }
}

/// Where a run comes from, by parts: `suite gate`, `label main`, `commit 0123456789ab (main, with uncommitted changes)`.
pub fn origin(origin: &Origin, language: Language) -> Vec<String> {
    let suite = origin.suite.iter().map(|name| say!(language, "suite {name}", "スイート {name}"));
    let labels = origin.labels.iter().map(|label| say!(language, "label {label}", "ラベル {label}"));
    let git = origin.git.iter().map(|git| {
        let dirty = say!(language, "with uncommitted changes", "未コミットの変更あり");
        let about: Vec<String> = git.branch.iter().cloned().chain(git.dirty.then_some(dirty)).collect();
        let (about, commit) = (about.join(Message::Comma.text(language)), short_commit(&git.commit));
        let about = if about.is_empty() { about } else { say!(language, " ({about})", "({about})") };
        say!(language, "commit {commit}{about}", "コミット {commit}{about}")
    });
    suite.chain(labels).chain(git).collect()
}

/// The first digits of a commit's hash.
pub fn short_commit(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Formats a command line with shell quoting.
pub fn command_line(words: &[String]) -> String {
    let plain = |word: &String| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:=,@+%".contains(&b))
    };
    let quoted: Vec<String> = words
        .iter()
        .map(|word| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) })
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.512_34, "0.512"),
            (4.0, "4"),
            (45.678, "45.7"),
            (999.9, "1,000"),
            (12_345.0, "12,300"),
            (1_999_999.0, "2,000,000"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(short_figure(12_345.0), "12.3k");
        assert_eq!(short_figure(1_500_000.0), "1.5M");
        assert_eq!(short_figure(9_900.0), "9,900");
    }

    #[test]
    fn operations_have_plurals() {
        for (one, many) in
            [("read", "reads"), ("query", "queries"), ("fetch", "fetches"), ("replay", "replays")]
        {
            assert_eq!(plural(one), many);
        }
    }

    #[test]
    fn lists_and_times_read_as_people_write_them() {
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!(timestamp(0), "1970-01-01 00:00 UTC");
        assert_eq!(timestamp(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(timestamp(1_772_374_000), "2026-03-01 14:06 UTC");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.123), "12 %");
        assert_eq!(percent(8.5), "850 %");
        assert_eq!(difference(0.123, Language::English), "12 %");
        assert_eq!(difference(41.2, Language::English), "a factor of 42");
        assert_eq!(difference(41.2, Language::Japanese), "42 倍");
        assert_eq!(difference(1e14, Language::English), "a factor of more than 100");
        assert_eq!(command_line(&["kurabe".into(), "a b".into(), "it's".into()]), "kurabe 'a b' 'it'\\''s'");
    }
}
