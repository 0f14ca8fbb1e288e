//! Answers in Japanese: no Latin word stands in them that is not a name, an option or a unit.

use crate::common::latin::{SENTENCES, WORDS, foreign, latin, names, plain, visible};
use crate::common::{At, INFO, Scenario, bottlenecks, of_any_start, open_loop, troubled};
use kurabe_core::axis::AxisValue;
use kurabe_core::origin::{GitCommit, Origin};
use kurabe_core::run::{CellRecord, Run};
use kurabe_report::compare::{self, Criteria, gate};
use kurabe_report::finding::{Finding, Rates};
use kurabe_report::{Language, analyse, html, markdown, terminal};
use std::collections::BTreeSet;
use std::path::Path;

/// A run with notes of drivers, warnings, a limit of times, and an origin.
fn told() -> Run {
    let mut run = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    let header = &mut run.header;
    header.targets[0].facts.notes = vec!["the database file is temporary, in /tmp".to_owned()];
    header.targets[1].facts.notes =
        vec!["fsync is off: a power failure may damage the whole database.".to_owned()];
    header.warnings = vec![
        "other processes use 53 % of this machine's CPU: results will be lower and less certain; measure when it is idle".to_owned(),
        "postgres: the server closes idle connections (idle_session_timeout = 5 s): those of clients that wait longer between \
         requests are lost, as an application's would be"
            .to_owned(),
    ];
    header.spec.slo_ns = Some(50_000);
    run.trials[0].rerun_reason = Some("kurabe itself stood still for 374 ms".to_owned());
    let header = &mut run.header;
    let git =
        GitCommit { commit: "0123456789abcdef".to_owned(), branch: Some("main".to_owned()), dirty: true };
    header.origin =
        Origin { suite: Some("gate".to_owned()), labels: vec!["main".to_owned()], git: Some(git) };
    run
}

#[test]
fn answers_and_pages_in_japanese_have_no_english_word() {
    let two = || Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() };
    let mut found = BTreeSet::new();
    // No driver says what these two runs have of their servers.
    let made_up = [troubled(), bottlenecks()].into_iter().map(|run| (run, &[][..]));
    let runs = [two().run(), told(), open_loop(), of_any_start(two().run())];
    let runs = runs.into_iter().map(|run| (run, &SENTENCES[..])).chain(made_up);
    for (run, sentences) in runs {
        let summary = analyse(&run, Some(&INFO)).in_language(Language::Japanese);
        let names = names(&run, &INFO, sentences);
        let shown = |details| {
            let options = terminal::Options { width: 200, details, ..terminal::Options::default() };
            terminal::render(&summary, &options)
        };
        let page = visible(&html::render(&summary, &html::Options::default()));
        let markdown = markdown::render(&summary).replace('\\', "");
        for text in [shown(false), shown(true), plain(&markdown), page] {
            found.extend(foreign(&text, &names));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A comment without its marks.
fn marked(markdown: &str) -> String {
    ["<details>", "</details>", "<summary>", "</summary>"]
        .iter()
        .fold(plain(markdown), |text, mark| text.replace(mark, " "))
}

#[test]
fn comparisons_and_gates_in_japanese_have_no_english_word() {
    let first = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    let rate = |at: At<'_>| if at.target == "sqlite" { 5_000.0 } else { 10_000.0 };
    let mut second = Scenario { targets: vec!["sqlite", "postgres"], rate, ..Scenario::default() }.run();
    second.header.targets[0].facts.version = "3.51.0".into();
    let mut found = BTreeSet::new();
    for of_any in [false, true] {
        let runs = [&first, &second].map(|run| if of_any { of_any_start(run.clone()) } else { run.clone() });
        let summaries = runs.each_ref().map(|run| analyse(run, Some(&INFO)));
        let mut names: BTreeSet<String> = runs.iter().flat_map(|run| names(run, &INFO, &SENTENCES)).collect();
        names.insert("3.51.0".to_owned());
        let mut compared = compare::compare(&summaries[0], &summaries[1], &[]);
        for is_gate in [false, true] {
            if is_gate {
                let criteria = Criteria { slower: Some(0.05), p99: Some(0.05) };
                gate::judge(&mut compared, &summaries[0], &summaries[1], criteria);
            }
            let told = compared.clone().in_language(Language::Japanese);
            let options = terminal::Options { width: 200, details: true, ..terminal::Options::default() };
            let markdown = compare::pull_request(&told).replace('\\', "");
            for text in
                [compare::terminal(&told, &options), marked(&markdown), visible(&compare::page(&told))]
            {
                found.extend(foreign(&text, &names));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn one_rate_is_no_value_of_another_axis() {
    let mut run = open_loop();
    let five_thousand = AxisValue::Number(5_000);
    let is_kept = |cell: &CellRecord| cell.axes.get("rate") == Some(&five_thousand);
    let kept: Vec<usize> = (0..run.header.cells.len()).filter(|at| is_kept(&run.header.cells[*at])).collect();
    run.header.cells.retain(is_kept);
    run.trials.retain_mut(|trial| {
        let at = kept.iter().position(|cell| *cell == trial.cell);
        trial.cell = at.unwrap_or_default();
        at.is_some()
    });
    run.header.spec.axes.insert("rate".to_owned(), vec![five_thousand.clone()]);
    for language in [Language::English, Language::Japanese] {
        let summary = analyse(&run, Some(&INFO)).in_language(language);
        let of_rates: Vec<String> = summary
            .findings
            .iter()
            .filter(|one| matches!(one.finding, Finding::Rates(Rates::Overloaded { .. })))
            .map(|one| summary.sentence(one))
            .collect();
        let as_size = of_rates.iter().any(|sentence| sentence.contains("5 kB"));
        assert!(!of_rates.is_empty() && !as_size, "{of_rates:#?}");
    }
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

#[test]
fn operations_of_all_experiments_have_names_in_japanese() {
    let names = [
        ("copy", "コピー"),
        ("estimate", "見積もり"),
        ("reload", "ダンプと復元"),
        ("replay", "再生"),
        ("round-trip", "往復"),
        ("stream", "ストリーム"),
    ];
    for (name, japanese) in names {
        let mut run =
            Scenario { payloads: vec![1_000], operations: vec!["read"], ..Scenario::default() }.run();
        run.header.spec.operations = vec![name.to_owned()];
        run.trials.iter_mut().for_each(|trial| name.clone_into(&mut trial.operation));
        let summary = analyse(&run, None).in_language(Language::Japanese);
        let text =
            terminal::render(&summary, &terminal::Options { width: 200, ..terminal::Options::default() });
        assert!(text.contains(japanese) && !text.contains(name), "{text}");
    }
}

#[test]
fn names_of_latin_letters_are_joined_with_spaces() {
    let run = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    let summary = analyse(&run, Some(&INFO)).in_language(Language::Japanese);
    let options = terminal::Options { width: 200, details: true, ..terminal::Options::default() };
    let text = terminal::render(&summary, &options);
    let is_latin = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
    let joined = text.match_indices('と').filter(|(at, _)| {
        let after = text[at + 'と'.len_utf8()..].chars().next();
        is_latin(text[..*at].chars().next_back()) || is_latin(after)
    });
    assert_eq!(joined.count(), 0, "{text}");
}
