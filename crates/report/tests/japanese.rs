//! Answers in Japanese: no Latin word stands in them that is not a name, an option or a unit.

use crate::common::{INFO, Scenario, bottlenecks, open_loop, of_any_start, troubled};
use kurabe_core::run::Run;
use kurabe_report::{Language, analyse, html, terminal};
use std::collections::BTreeSet;
use std::path::Path;

/// Words of all languages: units, and what the field has no Japanese word for.
const WORDS: [&str; 24] = [
    "A/A", "API", "CPU", "CPUs", "HTML", "Kurabe", "Linux", "MB", "PHP", "SQL", "TLS", "URL", "UTC", "kB", "max", "min", "ms",
    "ns", "p50", "p95", "p99", "s", "kurabe", "null",
];

/// The words of Latin letters in a text.
fn latin(text: &str) -> impl Iterator<Item = &str> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    let words = text.split(move |c: char| !is_of_word(c)).map(|word| word.trim_matches(['-', '_', '.', '/', ':']));
    words.filter(|word| word.chars().any(|c| c.is_ascii_alphabetic()))
}

/// The names that a run has: of its targets, axes, values, metrics, settings, and what its servers and command line say.
fn names(run: &Run) -> BTreeSet<String> {
    let record = serde_json::to_string(&run.header).unwrap();
    let metrics = run.trials.iter().map(|trial| serde_json::to_string(&trial.outcome).unwrap());
    let info = INFO.axes.iter().map(|axis| axis.name.to_owned());
    let said = [record].into_iter().chain(metrics).chain(info).collect::<Vec<_>>().join(" ");
    latin(&said).flat_map(|word| word.split(['.', ':', '/']).chain([word]).map(str::to_lowercase).collect::<Vec<_>>()).collect()
}

/// What a page shows.
fn shown(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let hidden = ["script", "style"].into_iter().find(|name| after.starts_with(name));
        let end = hidden.map_or_else(|| ">".to_owned(), |name| format!("</{name}>"));
        rest = after.split_once(&end).map_or("", |(_, rest)| rest);
    }
    text + rest
}

#[test]
fn answers_and_pages_in_japanese_have_no_english_word() {
    let two = || Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() };
    let mut found = BTreeSet::new();
    for run in [two().run(), troubled(), bottlenecks(), open_loop(), of_any_start(two().run())] {
        let summary = analyse(&run, Some(&INFO)).in_language(Language::Japanese);
        let names = names(&run);
        let options = |details| terminal::Options { width: 200, details, ..terminal::Options::default() };
        let texts = [
            terminal::render(&summary, &options(false)),
            terminal::render(&summary, &options(true)),
            shown(&html::render(&summary, &html::Options::default())),
        ];
        for (n, text) in texts.iter().enumerate() {
            let words = latin(text).filter(|word| {
                !WORDS.contains(word) && !names.contains(&word.to_lowercase()) && !text.contains(&format!("--{word}"))
            });
            found.extend(words.map(|word| (n, word.to_owned())));
        }
    }
    assert!(found.is_empty(), "{found:?}");
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
    let literals = all.iter().flat_map(|text| text.split('"').skip(1).step_by(2));
    let is_japanese = |text: &&str| text.chars().any(|c| ('\u{3040}'..'\u{a000}').contains(&c));
    literals.filter(is_japanese).map(str::to_owned).collect()
}

#[test]
fn sentences_in_japanese_have_no_english_word_beside_their_values() {
    let mut found = BTreeSet::new();
    let all = sentences();
    assert!(all.len() > 300, "{}", all.len());
    for text in &all {
        let own: String = text.split('{').enumerate().map(|(n, part)| if n == 0 { part } else { part.split_once('}').map_or("", |(_, rest)| rest) }).collect();
        let quoted: String = own.split('\'').step_by(2).collect();
        let words = latin(&quoted).filter(|word| !WORDS.contains(word) && !quoted.contains(&format!("--{word}")));
        found.extend(words.map(|word| format!("{word}: {text}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}
