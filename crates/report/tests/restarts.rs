//! Runs with restarts between blocks of rounds: intervals include differences between starts.

use crate::common::{INFO, Scenario};
use kurabe_core::run::{Outcome, Run};
use kurabe_report::finding::Section;
use kurabe_report::summary::{Verdict, VerdictResult};
use kurabe_report::{Summary, analyse, compare};

/// Two equal targets with differences between starts: in the first three rounds the second one is a fifth slower, in
/// the last three a fifth faster.
fn run(restarts: u32) -> Run {
    let mut run = Scenario { targets: vec!["sqlite", "postgres"], rounds: 6, ..Scenario::default() }.run();
    run.header.spec.restarts = restarts;
    let of_first: Vec<_> = run.trials.clone();
    for trial in &mut run.trials {
        let cells = &run.header.cells;
        let cell = &cells[trial.cell];
        let is_same = |at: usize| {
            cells[at].target == 0 && cells[at].aa_control == cell.aa_control && cells[at].axes == cell.axes
        };
        let first = of_first.iter().find(|other| {
            is_same(other.cell) && other.round == trial.round && other.operation == trial.operation
        });
        let Some(Outcome::Measured(first)) = first.map(|first| &first.outcome) else { continue };
        if let (Outcome::Measured(measured), 1) = (&mut trial.outcome, cell.target) {
            let factor = if trial.round < 3 { 120 } else { 80 };
            measured.completed = first.completed;
            // The rounds of one start hardly differ.
            measured.elapsed_ns = first.elapsed_ns / 100_000 * (factor * 1_000 + u64::from(trial.round));
        }
    }
    run
}

fn of_targets(summary: &Summary) -> Vec<&Verdict> {
    let verdicts = summary.verdicts.iter().filter(|verdict| verdict.primary && verdict.target.is_none());
    verdicts.collect()
}

fn width(verdict: &Verdict) -> f64 {
    verdict.high.unwrap().ln() - verdict.low.unwrap().ln()
}

#[test]
fn intervals_of_nested_rounds_use_one_sample_per_instance() {
    let (flat, nested) = (analyse(&run(0), Some(&INFO)), analyse(&run(1), Some(&INFO)));
    assert!(!of_targets(&flat).is_empty());
    for (flat, nested) in of_targets(&flat).into_iter().zip(of_targets(&nested)) {
        assert_eq!((flat.rounds, nested.rounds), (6, 6));
        // Blocks have equal length, so that the mean of means is the mean.
        assert!((flat.ratio.unwrap() / nested.ratio.unwrap()).ln().abs() < 1e-9, "{flat:?} {nested:?}");
        // Student's quantile is 12.7 and more with one degree of freedom, 2.6 and more with five.
        assert!(width(nested) > 4.0 * width(flat), "{flat:?} {nested:?}");
        assert_eq!(nested.result, VerdictResult::Inconclusive);
        if let Some(further) = nested.further_rounds {
            assert_eq!(further % 3, 0, "whole blocks of three rounds: {further}");
        }
    }
    for (flat, nested) in flat.cells.iter().zip(&nested.cells).filter(|(cell, _)| cell.target == "postgres") {
        let width = |summary: &kurabe_report::summary::CellResult| {
            let rate = summary.ops_per_second.unwrap();
            rate.high.unwrap() / rate.low.unwrap()
        };
        assert!(width(nested) > width(flat), "{:?} {:?}", flat.ops_per_second, nested.ops_per_second);
    }
}

#[test]
fn report_says_that_servers_were_restarted() {
    let basis = |restarts: u32| analyse(&run(restarts), Some(&INFO)).sentences(Section::Basis).join(" ");
    assert!(basis(1).contains("in 2 blocks with restarts of throwaway servers in between"), "{}", basis(1));
    assert!(!basis(0).contains("restarts"), "{}", basis(0));
}

#[test]
fn two_runs_are_compared_by_the_means_of_their_blocks() {
    let of = |restarts: u32| {
        let run = analyse(&run(restarts), Some(&INFO));
        let text = compare::json(&compare::compare(&run, &run));
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rows = rows["rows"].as_array().unwrap().clone();
        let row = rows.iter().find(|row| row["target"] == "postgres" && row["low"].is_number()).unwrap();
        row["high"].as_f64().unwrap() / row["low"].as_f64().unwrap()
    };
    assert!(of(1) > of(0), "{} {}", of(1), of(0));
}
