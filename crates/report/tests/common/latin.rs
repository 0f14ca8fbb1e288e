//! Words of Latin letters in a text in Japanese that are no name, no option and no unit.

use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::metric::COMMON;
use kurabe_core::run::Run;
use kurabe_core::stats_probe::Counter;
use serde_json::Value;
use std::collections::BTreeSet;

/// Words of all languages: units, and what the field has no Japanese word for.
pub const WORDS: [&str; 40] = [
    "A/A", "API", "B", "CPU", "CPU/op", "Ctrl-C", "HTML", "Kurabe", "Linux", "MB", "Oracle", "PHP", "SQL",
    "TLS", "URL", "UTC", "Unix", "binlog", "buffer", "bytes/record", "files", "gate", "h", "hits", "kB",
    "kurabe", "log", "main", "max", "min", "ms", "ns", "null", "p50", "p95", "p99", "pgbench", "report", "s",
    "sqlite:FILE",
];

/// The members of records that are sentences.
pub const SENTENCES: [&str; 8] = [
    "unavailable_operations", "notes", "warnings", "why", "not_sampled", "unavailable", "rerun_reason",
    "not-observed",
];

/// The words of Latin letters in a text.
pub fn latin(text: &str) -> impl Iterator<Item = &str> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    let words =
        text.split(move |c: char| !is_of_word(c)).map(|word| word.trim_matches(['-', '_', '.', '/', ':']));
    words.filter(|word| word.chars().any(|c| c.is_ascii_alphabetic()))
}

/// The texts of a record without these members, and the names of axes.
fn texts(value: &Value, without: &[&str], all: &mut String) {
    match value {
        Value::String(text) => all.extend([" ", text]),
        Value::Array(values) => values.iter().for_each(|value| texts(value, without, all)),
        Value::Object(members) => {
            for (name, value) in members {
                if name == "axes" {
                    all.extend([" ", &value.to_string()]);
                }
                if !without.contains(&name.as_str()) {
                    texts(value, without, all);
                }
            }
        }
        _ => {}
    }
}

/// Whether a word of a sentence is a name: `fsync` is none, `no-appendfsync-on-rewrite`, `SCAN` and `full_page_writes` are.
fn is_name(word: &str) -> bool {
    let of_code = |c: char| c.is_ascii_digit() || "_=".contains(c);
    word.contains(of_code)
        || word.chars().skip(1).any(|c| c.is_ascii_uppercase())
        || word.matches('-').count() > 2
}

/// The names of a run: of its targets, axes, values, metrics, settings, and what its servers and command line say, without these
/// members of its records.
pub fn names(run: &Run, info: &ExperimentInfo, without: &[&str]) -> BTreeSet<String> {
    let axes =
        info.axes.iter().flat_map(|axis| axis.kind.words.iter().map(|(word, _)| *word).chain([axis.name]));
    let metrics = info.metrics.iter().chain(COMMON).map(|metric| metric.name);
    let counters = Counter::ALL.map(Counter::word);
    let mut said = axes.chain(metrics).chain(counters).collect::<Vec<_>>().join(" ");
    texts(&serde_json::to_value(&run.header).unwrap(), without, &mut said);
    for trial in &run.trials {
        texts(&serde_json::to_value(&trial.outcome).unwrap(), without, &mut said);
    }
    latin(&said)
        .flat_map(|word| word.split(['.', ':', '/']).chain([word]).map(str::to_lowercase).collect::<Vec<_>>())
        .collect()
}

/// The words of a text that are none of these names, each with what stands before it.
pub fn foreign(text: &str, names: &BTreeSet<String>) -> BTreeSet<String> {
    let position = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
    let words = latin(text).filter(|word| {
        let is_named = names.contains(&word.to_lowercase()) || text.contains(&format!("--{word}"));
        // A counter for each operation, call or row.
        let of_counter = word.contains('/');
        let before = &text[..position(word)];
        let of_path = before.ends_with('/');
        // The end of a statement that is too long for its cell.
        let after = &text[position(word) + word.len()..];
        let is_end = ["\n", "  "].iter().any(|space| after.starts_with(space));
        let is_cut = is_end && names.iter().any(|name| name.starts_with(&word.to_lowercase()));
        let of_option = before.split_whitespace().next_back().is_some_and(|word| word.contains("--"));
        !(WORDS.contains(word) || is_named || of_counter || of_path || of_option || is_cut || is_name(word))
    });
    let before = |word: &str| {
        let at = position(word);
        let from = text[..at].char_indices().rev().nth(40).map_or(0, |(at, _)| at);
        &text[from..at]
    };
    words.map(|word| format!("{word}: {}", before(word))).collect()
}

/// The text of a page's body.
pub fn visible(page: &str) -> String {
    let body = page.split_once("<body").unwrap().1;
    let body = body.split_once("<script").map_or(body, |(body, _)| body);
    let text: Vec<&str> = body.split('<').filter_map(|part| Some(part.split_once('>')?.1)).collect();
    plain(&text.join(" "))
}

/// A text without what escapes characters in HTML.
pub fn plain(text: &str) -> String {
    ["&amp;", "&lt;", "&gt;", "&quot;"].iter().fold(text.to_owned(), |text, sign| text.replace(sign, " "))
}
