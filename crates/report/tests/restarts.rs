//! Runs with restarts between blocks of rounds: verdicts of any start include differences between starts.

use crate::common::{INFO, Scenario, of_any_start};
use kurabe_core::run::{Outcome, Run};
use kurabe_report::finding::Section;
use kurabe_report::summary::{Decision, Verdict};
use kurabe_report::{Summary, analyse};

/// Two equal targets with differences between starts: with two rounds a start, the second one is slower or faster by turns.
fn run(restarts: u32) -> Run {
    let mut run = Scenario { targets: vec!["sqlite", "postgres"], rounds: 8, ..Scenario::default() }.run();
    run = of_any_start(run);
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
            let factor = [125, 80, 110, 92][trial.round as usize / 2];
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
    let (low, high) = verdict.ratio.unwrap().ends().unwrap();
    high.ln() - low.ln()
}

#[test]
fn intervals_of_nested_rounds_use_one_sample_per_instance() {
    let (flat, nested) = (analyse(&run(0), Some(&INFO)), analyse(&run(3), Some(&INFO)));
    assert!(!of_targets(&flat).is_empty());
    for (flat, nested) in of_targets(&flat).into_iter().zip(of_targets(&nested)) {
        assert_eq!((flat.rounds, nested.rounds), (8, 8));
        // Blocks have equal length, so that the mean of means is the mean.
        assert!(
            (flat.ratio.unwrap().value / nested.ratio.unwrap().value).ln().abs() < 1e-9,
            "{flat:?} {nested:?}"
        );
        // Student's quantile is 3.2 and more with three degrees of freedom, 2.4 and more with seven.
        assert!(width(nested) > 1.3 * width(flat), "{flat:?} {nested:?}");
        assert_eq!(nested.result, Decision::Undecided);
        if let Some(further) = nested.further_rounds {
            assert_eq!(further % 2, 0, "whole blocks of two rounds: {further}");
        }
    }
    for (flat, nested) in
        flat.cells.iter().zip(&nested.cells).filter(|(cell, _)| cell.target.name() == "postgres")
    {
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
    let any = basis(3);
    assert!(
        any.contains("in 4 blocks with restarts of throwaway servers in between; the samples are the means"),
        "{any}"
    );
    assert!(any.contains("between any two starts of these servers"), "{any}");
    // Three blocks are too few.
    for restarts in [2, 0] {
        let these = basis(restarts);
        assert!(these.contains("between these servers as they ran") && !these.contains("samples"), "{these}");
    }
    assert!(!basis(0).contains("restarts"), "{}", basis(0));
}
