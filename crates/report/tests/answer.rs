//! The answer: what was asked is compared, and shown in 20 lines of 80 columns.

use crate::common::{
    At, INFO, Scenario, bottlenecks, interleaved, measurements, open_loop, plausible, troubled,
};
use kurabe_core::question::Question;
use kurabe_core::run::{Outcome, Run};
use kurabe_report::finding::Section;
use kurabe_report::summary::Verdict;
use kurabe_report::{Summary, analyse, terminal};
use kurabe_stats::Histogram;
use unicode_width::UnicodeWidthStr;

fn question(compare: &[&str], within: &[&str]) -> Question {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Question { compare: owned(compare), within: owned(within) }
}

fn three_targets() -> Run {
    let targets = vec!["sqlite", "postgres", "memcached"];
    Scenario { targets, compress: vec!["none"], ..Scenario::default() }.run()
}

fn asked(run: &Run, question: Question) -> Summary {
    let mut run = run.clone();
    run.header.spec.question = Some(question);
    analyse(&run, Some(&INFO))
}

fn lines(summary: &Summary) -> Vec<String> {
    let text = terminal::render(summary, &terminal::Options { width: 80, ..terminal::Options::default() });
    text.lines().map(str::to_owned).collect()
}

#[test]
fn targets_are_compared_at_every_value_of_the_axes_that_were_named_and_nothing_else_is() {
    let run = three_targets();
    let all = asked(&run, question(&["targets"], &["payload", "layout"]));
    let of = |layout: &str, payload: u64| {
        let here = |verdict: &&Verdict| {
            verdict.at.word("layout").unwrap() == layout && verdict.at.number("payload").unwrap() == payload
        };
        all.verdicts.iter().filter(here).filter(|verdict| verdict.primary).count()
    };
    for payload in [1_000, 10_000, 100_000] {
        // Three pairs, two operations.
        assert_eq!((of("blob", payload), of("rows", payload)), (6, 6));
    }
    assert!(all.verdicts.iter().all(|verdict| verdict.pair.axis == "target"));
    let first = asked(&run, question(&["targets"], &["payload"]));
    assert_eq!((all.comparisons, first.comparisons), (36, 18));
    // Fewer comparisons, narrower intervals.
    let width = |summary: &Summary| {
        let verdict = &summary.verdicts[0];
        let (low, high) = verdict.ratio.unwrap().ends().unwrap();
        high / low
    };
    assert!(width(&first) < width(&all), "{} {}", width(&first), width(&all));
    let layout = asked(&run, question(&["layout"], &["payload"]));
    assert!(layout.verdicts.iter().all(|verdict| verdict.pair.axis == "layout" && verdict.target.is_some()));
    assert_eq!(layout.comparisons, 18);
}

#[test]
fn values_are_compared_where_they_exist() {
    // As a pool's size, which only matters with a pool: compressing matters for layout rows only.
    let mut run = Scenario { payloads: vec![1_000], ..Scenario::default() }.run();
    let cells = run.header.cells.clone();
    let exists = |at: usize| {
        let word = |axis: &str| cells[at].axes.word(axis).unwrap();
        word("compress") == "none" || word("layout") == "rows"
    };
    let kept: Vec<usize> = (0..cells.len()).filter(|at| exists(*at)).collect();
    run.trials.retain(|trial| kept.contains(&trial.cell));
    for trial in &mut run.trials {
        trial.cell = kept.iter().position(|at| *at == trial.cell).unwrap();
    }
    run.header.cells = kept.into_iter().map(|at| cells[at].clone()).collect();
    let summary = asked(&run, question(&["layout", "compress"], &["payload"]));
    let compress: Vec<&Verdict> = summary
        .verdicts
        .iter()
        .filter(|verdict| verdict.primary && verdict.pair.axis == "compress")
        .collect();
    assert_eq!(compress.len(), 2);
    assert!(compress.iter().all(|one| one.at.word("layout").unwrap() == "rows" && one.ratio.is_some()));
}

#[test]
fn answer_has_at_most_20_lines_of_80_columns() {
    let noisy = |targets, noise| Scenario { targets, noise, ..Scenario::default() }.run();
    let runs = [
        asked(&three_targets(), question(&["targets"], &["payload", "layout"])),
        asked(&three_targets(), question(&["targets"], &[])),
        asked(&noisy(vec!["sqlite"], 0.3), question(&["layout", "compress"], &["payload"])),
        asked(&noisy(vec!["sqlite"], 0.3), question(&[], &["payload"])),
        analyse(&noisy(vec!["sqlite", "postgres", "memcached"], 0.3), Some(&INFO)),
        analyse(&bottlenecks(), Some(&INFO)),
        analyse(&troubled(), Some(&INFO)),
        analyse(&open_loop(), Some(&INFO)),
        analyse(&Scenario { rounds: 1, ..Scenario::default() }.run(), Some(&INFO)),
    ];
    for summary in runs {
        let lines = lines(&summary);
        assert!(lines.len() <= 20 && lines.len() > 4, "{} lines:\n{}", lines.len(), lines.join("\n"));
        let long = lines.iter().find(|line| line.width() > 80);
        assert!(long.is_none(), "{long:?}");
    }
}

#[test]
fn ranking_has_the_best_first_with_what_is_decided() {
    fn rate(at: At<'_>) -> f64 {
        match at.target {
            "memcached" => 10_000.0,
            "sqlite" => 9_900.0,
            _ => plausible(at) / 100.0,
        }
    }
    let targets = vec!["postgres", "sqlite", "memcached"];
    let scenario = Scenario {
        targets,
        rate,
        noise: 0.1,
        operations: vec!["write"],
        payloads: vec![1_000],
        layouts: vec!["blob"],
        compress: vec!["none"],
        ..Scenario::default()
    };
    let lines = lines(&asked(&scenario.run(), question(&["targets"], &["payload"])));
    assert!(lines[1].starts_with("Writes at 1 kB (durability: "), "{lines:#?}");
    let rows: Vec<&String> = lines.iter().filter(|line| line.starts_with("  ")).collect();
    assert!(rows[..2].iter().any(|row| row.contains("undecided") && row.contains("×")), "{rows:#?}");
    assert!(rows[2].starts_with("  PostgreSQL") && !rows[2].contains("undecided"), "{rows:#?}");
}

#[test]
fn rows_of_an_interleaved_run_have_the_quotient_of_their_rates() {
    let with = |slower: u64| asked(&interleaved(slower), question(&["targets"], &[]));
    // The continuous round, in which the two are equal, is in no rate.
    for slower in [100, 120, 200] {
        let summary = with(slower);
        for verdict in summary.verdicts.iter().filter(|verdict| verdict.primary) {
            let [a, b] = verdict.cells.map(|cell| summary.cells[cell.unwrap()].ops_per_second.unwrap().value);
            assert!((a / b / verdict.ratio.unwrap().value - 1.0).abs() < 1e-9, "{a} {b} {verdict:?}");
            let (low, high) = verdict.ratio.unwrap().ends().unwrap();
            assert!(low <= a / b && a / b <= high);
        }
    }
}

#[test]
fn answer_says_what_a_trial_has_that_runs_alone() {
    let with = |slower: u64| asked(&interleaved(slower), question(&["targets"], &[]));
    let said = |summary: &Summary| {
        let all = summary.sentences(Section::Warning);
        all.into_iter().find(|line| line.contains("machine to itself"))
    };
    // The rate of the second target only; the median is of both.
    let line = said(&with(150)).unwrap_or_default();
    assert!(line.contains("1.2 times the rate") || line.contains("1.3 times the rate"), "{line}");
    assert_eq!(said(&with(100)), None);
}

#[test]
fn interval_beyond_a_factor_of_100_is_not_printed() {
    let scenario = Scenario {
        targets: vec!["sqlite", "postgres"],
        rounds: 2,
        operations: vec!["read"],
        payloads: vec![1_000],
        layouts: vec!["blob"],
        compress: vec!["none"],
        ..Scenario::default()
    };
    let mut run = scenario.run();
    for (trial, measured) in measurements(&mut run).filter(|(trial, _)| trial.round == 0) {
        measured.elapsed_ns *= if trial.record.target == 1 { 8 } else { 1 };
    }
    let summary = asked(&run, question(&["targets"], &[]));
    let (low, high) = summary.verdicts[0].ratio.unwrap().ends().unwrap();
    assert!(high / low > 100.0, "{low} {high}");
    let all = lines(&summary);
    assert!(all.iter().any(|line| line.contains("undecided: 2 rounds") && !line.contains('×')), "{all:#?}");
    let said = summary.sentences(Section::Verdict).concat();
    assert!(said.contains("no ratio to within a factor of 100"), "{said}");
}

#[test]
fn answer_names_what_it_has_no_room_for() {
    let shown = |within: &[&str]| lines(&asked(&three_targets(), question(&["targets"], within)));
    let of = |lines: &[String]| lines.iter().find(|line| line.contains("not shown here")).cloned();
    assert_eq!(of(&shown(&["payload"])).unwrap(), "• Measured, and not shown here: 2 more places.");
    assert_eq!(
        of(&shown(&["payload", "layout"])).unwrap(),
        "• Measured, and not shown here: 10 kB; 100 kB; Reads at 1 kB, layout rows."
    );
    assert_eq!(of(&shown(&[])), None);
}

#[test]
fn percentiles_of_few_operations_are_marked_and_those_of_very_few_are_not_shown() {
    let single = || Scenario {
        payloads: vec![1_000],
        layouts: vec!["blob"],
        compress: vec!["none"],
        ..Scenario::default()
    };
    let shown = |operations: u64| {
        let mut run = single().run();
        for trial in &mut run.trials {
            let Outcome::Measured(measured) = &mut trial.outcome else { panic!() };
            measured.service = Histogram::new();
            (0..operations).for_each(|_| measured.service.record(1_000_000));
        }
        let summary = analyse(&run, Some(&INFO));
        let lines = lines(&summary);
        let row = lines.iter().find(|line| line.starts_with("  SQLite")).unwrap();
        let times: Vec<String> =
            row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
        (times[2..5].to_vec(), lines.concat().contains("marked †"))
    };
    // Seven rounds of each.
    assert_eq!(shown(143), (["1 ms"; 3].map(str::to_owned).to_vec(), false));
    assert_eq!(shown(142), (["1 ms", "1 ms†", "1 ms†"].map(str::to_owned).to_vec(), true));
    assert_eq!(shown(15).0[2], "1 ms†");
    assert_eq!(shown(14).0[1..], ["1 ms†", "–"]);
}

#[test]
fn rate_that_is_compared_with_nothing_is_no_verdict() {
    let single = Scenario {
        payloads: vec![1_000],
        layouts: vec!["blob"],
        compress: vec!["none"],
        ..Scenario::default()
    };
    assert_eq!(analyse(&single.run(), Some(&INFO)).verdict().unwrap(), "Nothing was compared.");
    let two = Scenario { targets: vec!["sqlite", "postgres"], ..single };
    let verdict = analyse(&two.run(), Some(&INFO)).verdict().unwrap();
    assert!(verdict.contains("times as fast"), "{verdict}");
}

#[test]
fn word_that_says_nothing_alone_stands_with_its_axis() {
    let run = Scenario { payloads: vec![1_000], compress: vec!["no", "yes"], ..Scenario::default() }.run();
    let rows = lines(&asked(&run, question(&["compress"], &[])));
    let begins = |name: &str| rows.iter().any(|row| row.trim_start().starts_with(name));
    assert!(begins("compress no ") && begins("compress yes "), "{rows:#?}");
    assert!(!begins("no ") && !begins("yes "), "{rows:#?}");
}
