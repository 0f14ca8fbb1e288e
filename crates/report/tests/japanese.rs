//! Answers in Japanese: no Latin word stands in them that is not a name, an option or a unit.

use crate::common::{INFO, Scenario, bottlenecks, of_any_start, open_loop, troubled};
use kurabe_core::run::Run;
use kurabe_core::stats_probe::Counter;
use kurabe_report::{Language, analyse, html, terminal};
use std::collections::BTreeSet;
use std::path::Path;

/// Words of all languages: units, and what the field has no Japanese word for.
const WORDS: [&str; 37] = [
    "A/A", "API", "CPU", "CPU/op", "CPUs", "Ctrl-C", "HTML", "Kurabe", "Linux", "MB", "PHP", "SQL", "TLS",
    "URL", "UTC", "binlog", "buffer", "bytes/record", "files", "gate", "hits", "kB", "kurabe", "log", "main",
    "max", "min", "ms", "ns", "null", "p50", "p95", "p99", "pgbench", "report", "s", "sqlite:FILE",
];

/// The words of Latin letters in a text.
fn latin(text: &str) -> impl Iterator<Item = &str> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    let words =
        text.split(move |c: char| !is_of_word(c)).map(|word| word.trim_matches(['-', '_', '.', '/', ':']));
    words.filter(|word| word.chars().any(|c| c.is_ascii_alphabetic()))
}

/// The names that a run has: of its targets, axes, values, metrics, settings, and what its servers and command line say.
fn names(run: &Run) -> BTreeSet<String> {
    let record = serde_json::to_string(&run.header).unwrap();
    let metrics = run.trials.iter().map(|trial| serde_json::to_string(&trial.outcome).unwrap());
    let info = INFO.axes.iter().map(|axis| axis.name.to_owned());
    let said = [record].into_iter().chain(metrics).chain(info).collect::<Vec<_>>().join(" ");
    let counters = Counter::ALL.map(Counter::word).join(" ");
    latin(&format!("{said} {counters}"))
        .flat_map(|word| word.split(['.', ':', '/']).chain([word]).map(str::to_lowercase).collect::<Vec<_>>())
        .collect()
}

/// The conclusion, headings, heads of columns and terms of a page.
fn frame(page: &str) -> String {
    let body = page.split_once("<body").unwrap().1;
    let tags = ["h2", "h3", "summary", "dt", "th", "li", "label", "legend"];
    let starts = body.split('<').skip(1).filter_map(|part| {
        let (tag, text) = part.split_once('>')?;
        tags.contains(&tag.split(' ').next()?).then_some(text)
    });
    let text = starts.collect::<Vec<_>>().join(" ");
    ["&amp;", "&lt;", "&gt;", "&quot;"].iter().fold(text, |text, sign| text.replace(sign, " "))
}

#[test]
fn answers_and_pages_in_japanese_have_no_english_word() {
    let two = || Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() };
    let mut found = BTreeSet::new();
    for run in [two().run(), troubled(), bottlenecks(), open_loop(), of_any_start(two().run())] {
        let summary = analyse(&run, Some(&INFO)).in_language(Language::Japanese);
        let names = names(&run);
        let options = terminal::Options { width: 200, ..terminal::Options::default() };
        let page = html::render(&summary, &html::Options::default());
        for text in [terminal::render(&summary, &options), frame(&page)] {
            let words = latin(&text).filter(|word| {
                let is_named = names.contains(&word.to_lowercase()) || text.contains(&format!("--{word}"));
                // A counter for each operation, call or row.
                let of_counter = word.contains('/');
                !WORDS.contains(word) && !is_named && !of_counter
            });
            let beside = |word: &str| {
                let at = text.find(word).unwrap();
                let from = text[..at].char_indices().rev().nth(30).map_or(0, |(at, _)| at);
                text[from..].chars().take(70).collect::<String>()
            };
            found.extend(words.map(|word| format!("{word}: {}", beside(word))));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// The sentences of all findings and messages, as their sources have them: the second text of `say!`, and of a message.
fn sentences() -> Vec<String> {
    fn files(folder: &Path, all: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                files(&entry.path(), all);
            } else if entry.path().extension().is_some_and(|ending| ending == "rs") {
                all.push(std::fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    let own = all.iter().map(|text| text.split("#[cfg(test)]").next().unwrap());
    let literals = own.flat_map(|text| text.split('"'));
    let is_japanese = |text: &&str| text.chars().any(|c| ('\u{3040}'..'\u{a000}').contains(&c));
    literals.filter(is_japanese).map(str::to_owned).collect()
}

/// Whether a word is the value of an option: `2s`.
fn is_value(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

#[test]
fn sentences_in_japanese_have_no_english_word_beside_their_values() {
    let mut found = BTreeSet::new();
    let all = sentences();
    assert!(all.len() > 200, "{}", all.len());
    for text in &all {
        let own: String = text
            .split('{')
            .enumerate()
            .map(|(n, part)| if n == 0 { part } else { part.split_once('}').map_or("", |(_, rest)| rest) })
            .collect();
        let quoted: String = own.split('\'').step_by(2).collect();
        let words = latin(&quoted).filter(|word| {
            !WORDS.contains(word) && !quoted.contains(&format!("--{word}")) && !is_value(word)
        });
        found.extend(words.map(|word| format!("{word}: {text}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}
