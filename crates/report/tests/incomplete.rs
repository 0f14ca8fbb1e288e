//! Runs that go on: before their end, resumed, extended and analysed repeatedly.

use crate::common::{At, INFO, Scenario, plausible};
use crate::sentences::{sentences, small, summary, verdict};
use kurabe_core::run::{Resumption, Run, RunEnd, RunHeader, Until};
use kurabe_report::finding::Section;
use kurabe_report::summary::{Decision, Status, Summary};
use kurabe_report::{View, analyse, compare, json, terminal};

#[test]
fn incomplete_run_is_reported_as_such() {
    let mut run = Scenario::default().run();
    run.trials.truncate(30);
    run.end = None;
    let summary = summary(&run);
    assert!(!summary.complete);
    let warnings = summary.sentences(Section::Warning);
    assert!(warnings[0].starts_with("This run is not complete: 30 of 182 planned trials were made"));
}

#[test]
fn planned_trials_of_controls_are_those_of_their_rounds() {
    let mut run = Scenario { rounds: 7, ..Scenario::default() }.run();
    run.trials.truncate(30);
    run.end = None;
    let controls = run.header.cells.iter().filter(|cell| cell.aa_control).count();
    run.header.spec.slice_ns = Some(1);
    run.header.spec.control_distance = Some(3);
    // Two operations: in each of seven rounds, or in two of six that are compared.
    let planned = 2 * (7 * (run.header.cells.len() - controls) + 2 * controls);
    let warnings = summary(&run).sentences(Section::Warning);
    let said = format!("30 of {planned} planned trials");
    assert!(controls > 0 && warnings[0].contains(&said), "{said}: {}", warnings[0]);
}

#[test]
fn run_without_trials_has_no_findings() {
    let mut run = Scenario::default().run();
    run.trials.clear();
    run.end = None;
    let summary = summary(&run);
    assert_eq!(sentences(&summary), ["There are no results."]);
    assert!(summary.cells.iter().all(|cell| cell.status == Status::Unavailable && cell.reason.is_some()));
}

#[test]
fn running_run_shows_results_without_verdicts() {
    fn slower(at: At<'_>) -> f64 {
        plausible(at) * if at.layout == "rows" { 0.5 } else { 1.0 }
    }
    let whole = Scenario { rate: slower, rounds: 6, ..Scenario::default() }.run();
    assert!(summary(&whole).verdicts.iter().any(|verdict| verdict.result == Decision::Below));
    for end in [None, Some(RunEnd { at_ms: 1, complete: false })] {
        let mut run = whole.clone();
        run.trials.retain(|trial| trial.round < 4);
        run.end = end;
        let summary = summary(&run);
        assert!(
            summary.verdicts.is_empty()
                && summary.sentences(Section::Detail).is_empty()
                && summary.comparisons == 0
        );
        assert_eq!(
            sentences(&summary),
            [
                "No verdicts yet: the next planned analysis is after 6 rounds. 'kurabe run --resume' continues a run \
              that was stopped."
            ]
        );
        assert_eq!(summary.next_analysis, Some(6));
        assert!(summary.cells.iter().any(|cell| cell.ops_per_second.is_some()));
        let page = terminal::render(&summary, &terminal::Options { details: true, ..Default::default() });
        assert!(!page.contains("faster") && !page.contains("slower"), "{page}");
        let compared = compare::compare(&analyse(&whole, Some(&INFO)), &summary, &[]);
        assert!(
            compared.rows.iter().all(|row| row.result == Decision::NotTestable
                && row.ratio.is_none_or(|ratio| ratio.low.is_none()))
        );
        let all = compared.sentences(Section::Verdict);
        assert!(all[0].contains("is not complete"), "{all:?}");
    }
}

#[test]
fn next_analysis_of_a_run_until_conclusive_is_the_next_planned_one() {
    let mut run = Scenario { rounds: 28, ..small() }.run();
    run.header.spec.rounds = 6;
    run.header.spec.until = Some(Until { margin: 0.05, max_rounds: 100, budget_ns: None });
    run.end = None;
    let analyses = [(1, 6), (5, 6), (7, 9), (15, 21), (22, 32), (28, 32)];
    for (made, next) in analyses {
        let mut run = run.clone();
        run.trials.retain(|trial| trial.round < made);
        assert_eq!(summary(&run).next_analysis, Some(next), "{made} rounds");
    }
}

#[test]
fn extended_run_spends_separate_share_at_each_end() {
    fn same(_: At<'_>) -> f64 {
        10_000.0
    }
    let targets = vec!["sqlite", "sqlite"];
    let mut run = Scenario { targets, rate: same, noise: 0.05, rounds: 32, ..small() }.run();
    run.header.spec.rounds = 6;
    run.header.spec.until = Some(Until { margin: 0.01, max_rounds: 32, budget_ns: None });
    let width = |run: &Run| {
        let summary = summary(run);
        let verdict = verdict(&summary, "read", "target", 1_000);
        let (low, high) = verdict.ratio.unwrap().ends().unwrap();
        high / low
    };
    let once = width(&run);
    // The same 32 rounds, after an earlier end at 25 rounds.
    let mut ended = run.clone();
    ended.header.spec.until = Some(Until { margin: 0.01, max_rounds: 25, budget_ns: None });
    let RunHeader { machine, targets, kurabe, .. } = run.header.clone();
    let resumption =
        Resumption { began: 9, trials_before: 9, max_rounds: Some(32), kurabe, machine, targets };
    ended.resumptions = vec![resumption];
    assert!(width(&ended) > once, "the analysis after 25 rounds was paid for");
}

#[test]
fn changes_at_resumption_are_reported_and_anonymised() {
    let mut run = small().run();
    let RunHeader { machine, targets, kurabe, .. } = run.header.clone();
    let same = Resumption { began: 9, trials_before: 4, max_rounds: None, kurabe, machine, targets };
    run.resumptions = vec![same.clone()];
    assert!(!summary(&run).sentences(Section::Warning).iter().any(|note| note.contains("in place of")));
    let mut other = Resumption { trials_before: 11, kurabe: "0.3.0".into(), ..same };
    other.targets[0].facts.version = "3.99".into();
    run.resumptions.push(other);
    let notes = summary(&run).sentences(Section::Warning).join("\n");
    for part in ["from number 12 on", "Kurabe 0.3.0 in place of", "SQLite 3.99 in place of 3.50.4 on sqlite"]
    {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    let view = View { anonymise: true, ..View::default() };
    let hidden = json::render(&view.analyse(&run, Some(&INFO)).unwrap());
    assert!(hidden.contains("version 2 in place of version 1") && !hidden.contains("3.99"), "{hidden}");
}

#[test]
fn repeated_analysis_widens_intervals_and_is_reported() {
    fn same(_: At<'_>) -> f64 {
        10_000.0
    }
    let fixed =
        Scenario { targets: vec!["sqlite", "sqlite"], rate: same, noise: 0.05, rounds: 14, ..small() }.run();
    let mut looked = fixed.clone();
    looked.header.spec.rounds = 6;
    looked.header.spec.until = Some(Until { margin: 0.01, max_rounds: 100, budget_ns: None });
    let (fixed, looked) = (summary(&fixed), summary(&looked));
    let width = |summary: &Summary| {
        let verdict = verdict(summary, "read", "target", 1_000);
        let (low, high) = verdict.ratio.unwrap().ends().unwrap();
        high / low
    };
    assert!(width(&looked) > width(&fixed), "{} {}", width(&looked), width(&fixed));
    let basis = |summary: &Summary| summary.sentences(Section::Basis)[0].clone();
    assert!(basis(&looked).contains("at analyses after 6, 9 and 14 rounds"), "{}", basis(&looked));
    assert!(!basis(&fixed).contains("analyses"), "{}", basis(&fixed));
    let verdict = verdict(&looked, "read", "target", 1_000);
    assert!(!verdict.conclusive && verdict.further_rounds.is_some(), "{verdict:?}");
    let warnings = looked.sentences(Section::Warning);
    assert!(
        warnings.iter().any(|text| text.contains("±1 %") && text.contains("kurabe run --resume")),
        "{warnings:?}"
    );
}
