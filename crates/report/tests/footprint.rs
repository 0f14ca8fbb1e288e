//! Runs of `footprint`: what each connection costs, in a sentence and in a chart of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops")]

mod common;

use common::others::{FOOTPRINT as INFO, footprint as run};
use kurabe_core::error::ErrorKind;
use kurabe_core::run::{Outcome, Run};
use kurabe_report::finding::Section;
use kurabe_report::{analyse, html, markdown};

#[test]
fn a_connection_costs_the_slope_and_not_what_came_once() {
    let summary = analyse(&run(), Some(&INFO));
    let told = summary.sentences(Section::Verdict);
    assert_eq!(told.len(), 2, "throughput answers nothing here: {told:?}");
    assert!(
        told[0].starts_with(
            "Each of the connections (state idle) on PostgreSQL costs the server 1 MB of memory ("
        ),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("Each of the connections (state active) on PostgreSQL costs the server 2"),
        "{told:?}"
    );
    for sentence in &told {
        assert!(sentence.ends_with(", 1 process and 1 thread."), "{told:?}");
    }
}

#[test]
fn trials_that_were_made_again_or_failed_are_in_no_slope() {
    let slope = |run: &Run| {
        let summary = analyse(run, Some(&INFO));
        summary.sentences(Section::Verdict).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = slope(&run());
    let mut again = run();
    let mut second = again.trials[0].clone();
    second.again = Some("other processes used 40 % of the machine's CPU".to_owned());
    let Outcome::Measured(first) = &mut again.trials[0].outcome else { panic!("it was measured") };
    first.figures.iter_mut().for_each(|figure| figure.value *= 1e3);
    again.trials.push(second);
    assert_eq!(slope(&again), whole);
    // The smallest cell of the idle connections fails in one round: the other two have the same slope.
    let mut failed = run();
    let outcome = Outcome::Failed { kind: ErrorKind::Timeout, reason: "no answer".into(), mismatches: 0 };
    for trial in failed.trials.iter_mut().filter(|trial| trial.cell == 0) {
        if trial.round == 0 {
            trial.outcome = outcome.clone();
        } else if let Outcome::Measured(measured) = &mut trial.outcome {
            measured.figures.iter_mut().for_each(|figure| figure.value *= 1e3);
        }
    }
    assert!(slope(&failed).contains(&whole[0]), "{:?}", slope(&failed));
}

#[test]
fn memory_has_a_table_and_a_chart_and_other_runs_have_neither() {
    let summary = analyse(&run(), Some(&INFO));
    let text = markdown::render(&summary);
    assert!(text.contains("## Reads, more closely\n") && text.contains("| memory | added |"), "{text}");
    assert!(html::render(&summary, &html::Options::default()).contains("<h2>Memory by connections</h2>"));
    let mut plain = run();
    for trial in &mut plain.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else { panic!("{trial:?}") };
        measured.figures.clear();
    }
    let summary = analyse(&plain, Some(&INFO));
    let told = summary.sentences(Section::Verdict);
    assert!(!told.iter().any(|sentence| sentence.contains("costs")), "{told:?}");
    assert!(!html::render(&summary, &html::Options::default()).contains("Memory by"));
}
