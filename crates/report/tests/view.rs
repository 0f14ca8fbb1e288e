//! Publishing restrictions are in every format; an anonymous report names no engine; a target that is left out leaves
//! no trace.

use crate::common::{INFO, Scenario, troubled};
use kurabe_core::error::ErrorKind;
use kurabe_core::facts::Setting;
use kurabe_core::run::{Outcome, PublishingClause, Run};
use kurabe_report::finding::Section;
use kurabe_report::{Summary, View, analyse, compare, csv, hgrm, html, json, markdown, terminal};
use serde_json::Value;

fn clause() -> PublishingClause {
    PublishingClause {
        name: "Example Licence, section 7".into(),
        says: "results may not be disclosed without the owner's prior consent".into(),
        source: "https://licence.example/7".into(),
    }
}

/// Three targets with problems, one of them with a restricting licence; every text of an engine contains its name.
fn telling() -> Run {
    let mut run = troubled();
    run.header.command = ["kurabe", "run", "session", "sqlite:", "-t", "postgres://bob@db.example/shop"]
        .map(str::to_owned)
        .into();
    run.header.command.push("memcached:".into());
    run.header.spec.targets[1] = "postgres://bob@db.example/shop".into();
    run.header.targets[1].publishing = Some(clause());
    run.header.targets[1].url = "postgres://bob@db.example/shop".into();
    for target in &mut run.header.targets {
        let engine = target.facts.engine.clone();
        // A version that no number can contain by chance.
        target.facts.version.push_str("-distro1");
        target.facts.client = format!("lean client of {engine}");
        target.facts.notes.push(format!("{engine} has a note."));
        target.facts.settings.push(Setting::new("shared_buffers", format!("{engine} 128MB")));
    }
    run.header.cells.iter_mut().filter_map(|cell| cell.unavailable.as_mut()).for_each(|reason| {
        *reason = "memcached finds a value by its whole key only (-I)".into();
    });
    run
}

const TELLING: &[&str] = &[
    "sqlite", "postgres", "memcached", "mysql", "mariadb", "oracle", "3.50.4", "17.6-distro1", "1.6.38",
    "lean client", "db.example", "bob", "in process", "shared_buffers", "128MB", "synchronous_commit",
    "journal_mode", "page_size", "whole key", "came back as", "closed the connection", "has a note",
    "Example Licence", "licence.example",
];

/// Every rendering, with its name.
fn renderings(summary: &Summary) -> Vec<(&'static str, String)> {
    let compared = compare::compare(summary, summary, &[]);
    let options = terminal::Options { details: true, ..terminal::Options::default() };
    vec![
        ("terminal", terminal::render(summary, &options)),
        ("html", html::render(summary, &html::Options::default())),
        ("markdown", markdown::render(summary)),
        ("csv", csv::render(summary)),
        ("hgrm", hgrm::render(summary)),
        ("json", json::render(summary)),
        ("compare terminal", compare::terminal(&compared, &options)),
        ("compare markdown", compare::pull_request(&compared)),
        ("compare json", compare::json(&compared)),
    ]
}

/// A text on one line.
fn flat(text: &str) -> String {
    text.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn anonymous() -> View {
    View { anonymise: true, ..View::default() }
}

fn without(names: &[&str]) -> View {
    View { leave_out: names.iter().map(|name| (*name).to_owned()).collect(), anonymise: false }
}

fn object(summary: &Summary) -> Value {
    serde_json::from_str(&json::render(summary)).unwrap()
}

#[test]
fn a_restricting_clause_stands_on_every_rendering() {
    let summary = analyse(&telling(), Some(&INFO));
    for (name, text) in renderings(&summary) {
        let text = flat(&text);
        for part in ["prior consent", "Example Licence, section 7", "https://licence.example/7"] {
            assert!(text.contains(part), "{name} lacks {part}: {text}");
        }
        if name != "csv" {
            assert!(text.contains("Publishing is restricted for PostgreSQL 17.6"), "{name}: {text}");
        }
    }
    let table = csv::render(&summary);
    // A reason may contain line breaks; rows with results do not.
    for row in table.lines().filter(|row| row.contains(",ok,")) {
        assert_eq!(row.contains("restricted: "), row.contains(",postgres,"), "{row}");
    }
    assert!(table.lines().next().unwrap().split(',').any(|column| column == "publishing"));
}

#[test]
fn report_without_clause_omits_publishing_note() {
    let summary = analyse(&troubled(), Some(&INFO));
    for (name, text) in renderings(&summary) {
        assert!(!text.contains("restricted"), "{name}");
    }
}

#[test]
fn an_anonymous_report_names_no_engine_in_any_rendering() {
    let run = telling();
    for info in [Some(&INFO), None] {
        let whole = renderings(&analyse(&run, info));
        let all = whole.iter().map(|(_, text)| text.to_lowercase()).collect::<String>();
        for (name, text) in renderings(&anonymous().analyse(&run, info).unwrap()) {
            let lower = text.to_lowercase();
            for word in TELLING {
                assert!(!lower.contains(&word.to_lowercase()), "{name} tells {word}");
            }
            for letter in ["database A", "database B", "database C"] {
                assert!(text.contains(letter), "{name} lacks {letter}");
            }
        }
        // The whole report must contain these words, otherwise the test is void; other engines are in neither.
        for word in TELLING.iter().filter(|word| !["mysql", "mariadb", "oracle"].contains(word)) {
            assert!(all.contains(&word.to_lowercase()), "the whole report does not hold {word} either");
        }
    }
}

#[test]
fn anonymous_report_keeps_results_and_verdicts() {
    let run = telling();
    let (whole, hidden) =
        (object(&analyse(&run, Some(&INFO))), object(&anonymous().analyse(&run, Some(&INFO)).unwrap()));
    for member in ["noise_floor", "comparisons", "rounds", "machine", "seed", "experiment", "complete"] {
        assert_eq!(whole[member], hidden[member], "{member}");
    }
    let (cells, hidden_cells) = (whole["cells"].as_array().unwrap(), hidden["cells"].as_array().unwrap());
    assert_eq!(cells.len(), hidden_cells.len());
    for (cell, hidden) in cells.iter().zip(hidden_cells) {
        for member in
            ["axes", "operation", "status", "ops_per_second", "latency_us", "verified", "durability"]
        {
            assert_eq!(cell[member], hidden[member], "{member}");
        }
    }
    let verdicts = whole["verdicts"].as_array().unwrap();
    assert!(!verdicts.is_empty());
    for (verdict, hidden) in verdicts.iter().zip(hidden["verdicts"].as_array().unwrap()) {
        for member in ["result", "ratio", "low", "high", "rounds", "noise_floor", "at"] {
            assert_eq!(verdict[member], hidden[member], "{member}");
        }
    }
}

#[test]
fn each_kind_of_failure_has_neutral_words() {
    let mut run = telling();
    for trial in &mut run.trials {
        let reason = "mysqld got signal 11".to_owned();
        trial.outcome = Outcome::Failed { kind: ErrorKind::Server, reason, mismatches: 0 };
    }
    for (name, text) in renderings(&anonymous().analyse(&run, Some(&INFO)).unwrap()) {
        assert!(!text.contains("mysqld") && !text.contains("signal 11"), "{name}");
    }
}

/// A run on SQLite and PostgreSQL, and the same run with memcached measured between them.
fn with_and_without_a_third() -> (Run, Run) {
    let two = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    let of_three = Scenario { targets: vec!["sqlite", "memcached", "postgres"], ..Scenario::default() }.run();
    let per_target = two.header.cells.len() / 2;
    let mut three = of_three.clone();
    // The third has its own trials, the two others theirs.
    three.trials.retain(|trial| (per_target..2 * per_target).contains(&trial.cell));
    three.trials.extend(two.trials.iter().cloned().map(|mut trial| {
        trial.cell += if trial.cell < per_target { 0 } else { per_target };
        trial
    }));
    three.trials.sort_by_key(|trial| (trial.round, trial.cell));
    three.header.command =
        ["kurabe", "run", "session", "sqlite:", "-t", "memcached:", "postgres:"].map(str::to_owned).into();
    (three, two)
}

#[test]
fn left_out_target_leaves_no_trace() {
    let (three, two) = with_and_without_a_third();
    let mut less = object(&without(&["memcached"]).analyse(&three, Some(&INFO)).unwrap());
    let mut never = object(&analyse(&two, Some(&INFO)));
    let findings = less["findings"].as_array_mut().unwrap();
    let at = findings.iter().position(|finding| finding["section"] == "warning").unwrap();
    let left_out = findings.remove(at);
    assert_eq!(left_out["sentence"], "1 target of this run is left out of this report.");
    assert_eq!(less["command"], serde_json::json!(["kurabe", "run", "session", "sqlite:", "postgres:"]));
    // Only the note differs: with fewer comparisons, intervals are narrower too.
    never["command"] = less["command"].clone();
    assert_eq!(less, never);
    assert!(object(&analyse(&three, Some(&INFO)))["comparisons"].as_u64() > never["comparisons"].as_u64());
    for (name, text) in renderings(&without(&["memcached"]).analyse(&three, Some(&INFO)).unwrap()) {
        assert!(!text.contains("memcached"), "{name}");
    }
}

#[test]
fn noise_floor_lost_with_left_out_target_is_reported() {
    let mut run = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    let repeats: Vec<usize> = (0..run.header.cells.len())
        .filter(|at| run.header.cells[*at].aa_control && run.header.cells[*at].target > 0)
        .collect();
    run.trials.retain(|trial| !repeats.contains(&trial.cell));
    for at in repeats {
        run.header.cells[at].aa_control = false;
    }
    let summary = without(&["SQLite"]).analyse(&run, Some(&INFO)).unwrap();
    assert!(summary.noise_floor.is_none());
    let warnings = summary.sentences(Section::Warning);
    assert!(warnings[0].contains("what equal measurements differ by is not known"), "{warnings:?}");
}

#[test]
fn command_that_names_left_out_target_is_withheld() {
    let (mut three, _) = with_and_without_a_third();
    three.header.command =
        ["kurabe", "run", "-f", "suites/sqlite-against-memcached.toml"].map(str::to_owned).into();
    let summary = without(&["memcached"]).analyse(&three, Some(&INFO)).unwrap();
    assert_eq!(summary.command, ["withheld"]);
}

#[test]
fn an_engines_name_means_all_its_targets_and_a_targets_own_name_that_one() {
    let run = Scenario { targets: vec!["sqlite", "sqlite", "postgres"], ..Scenario::default() }.run();
    let names = |words: &[&str]| -> Vec<String> {
        let summary = without(words).analyse(&run, Some(&INFO)).unwrap();
        summary.targets.iter().map(|target| target.name.clone()).collect()
    };
    assert_eq!(names(&["sqlite#2"]), ["sqlite", "postgres"]);
    assert_eq!(names(&["PostgreSQL"]), ["sqlite", "sqlite#2"]);
    let mut run = run.clone();
    run.header.targets[0].name = "sqlite synchronous=off".into();
    let summary = without(&["SQLite"]).analyse(&run, Some(&INFO)).unwrap();
    assert_eq!(summary.targets.len(), 1);
}

#[test]
fn unknown_target_is_rejected_with_nearest_name() {
    let run = telling();
    let refused = |view: View| view.analyse(&run, Some(&INFO)).unwrap_err();
    let error = refused(without(&["postgers"]));
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("did you mean 'postgres'?"), "{error}");
    assert!(refused(without(&["oracle"])).to_string().contains("there are: memcached, postgres, sqlite"));
    let all = refused(without(&["sqlite", "postgres", "memcached"]));
    assert!(all.to_string().contains("would have no targets left"), "{all}");
}

#[test]
fn two_compared_runs_call_one_database_by_one_name() {
    let first = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    let mut second = Scenario { targets: vec!["postgres", "sqlite"], ..Scenario::default() }.run();
    second.header.targets[1].facts.version = "3.51.0".into();
    let compared = |view: View| {
        let both = view.analyse_all(&[(&first, Some(&INFO)), (&second, Some(&INFO))]).unwrap();
        compare::compare(&both[0], &both[1], &[])
    };
    let (whole, hidden) = (compared(View::default()), compared(anonymous()));
    assert_eq!(whole.rows.len(), hidden.rows.len());
    for (row, hidden) in whole.rows.iter().zip(&hidden.rows) {
        assert_eq!((row.result, row.ratio), (hidden.result, hidden.ratio));
        let letter =
            if row.target.as_ref().unwrap().name() == "sqlite" { "database A" } else { "database B" };
        assert_eq!(hidden.target.as_ref().unwrap().name(), letter);
    }
    let versions =
        hidden.differences.iter().find(|difference| difference.what == "version of database A").unwrap();
    assert_eq!((versions.first.as_str(), versions.second.as_str()), ("version 1", "version 2"));
    for text in [compare::json(&hidden), compare::pull_request(&hidden)] {
        let text = text.to_lowercase();
        assert!(!TELLING.iter().any(|word| text.contains(&word.to_lowercase())), "{text}");
    }
}

#[test]
fn a_run_of_one_may_lack_what_the_other_of_two_compared_leaves_out() {
    let first = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    let second = Scenario::default().run();
    let both = without(&["postgres"]).analyse_all(&[(&first, Some(&INFO)), (&second, Some(&INFO))]).unwrap();
    assert!(both.iter().all(|run| run.targets.len() == 1));
}
