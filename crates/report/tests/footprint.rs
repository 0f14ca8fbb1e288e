//! Runs of `footprint`: what each connection costs, in a sentence and in a chart of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops")]

mod common;

use common::others::{FOOTPRINT as INFO, footprint as run};
use kurabe_core::error::ErrorKind;
use kurabe_core::run::{Outcome, Run, TrialRecord};
use kurabe_report::{analyse, html, markdown};

#[test]
fn a_connection_costs_the_slope_and_not_what_came_once() {
    let summary = analyse(&run(), Some(&INFO)).summary;
    let told = &summary[..2];
    assert!(
        told[0].starts_with("PostgreSQL: each idle connection costs the server 1 MB of memory ("),
        "{told:?}"
    );
    assert!(told[1].starts_with("PostgreSQL: each active connection costs the server 2"), "{told:?}");
    for sentence in told {
        assert!(sentence.ends_with(", 1 process and 1 thread."), "{told:?}");
    }
}

#[test]
fn slope_counts_no_superseded_and_no_failed_trial() {
    let told = |run: &Run| analyse(run, Some(&INFO)).summary;
    let whole = run();
    let mut superseded = whole.clone();
    let wild = |trial: &mut TrialRecord| {
        let Outcome::Measured(measured) = &mut trial.outcome else { panic!("{trial:?}") };
        measured.figures.iter_mut().for_each(|figure| figure.value *= 50.0);
    };
    let mut second = superseded.trials[0].clone();
    second.again = Some("other processes used 40 % of the machine's CPU".to_owned());
    wild(&mut superseded.trials[0]);
    superseded.trials.push(second);
    assert_eq!(told(&superseded)[..2], told(&whole)[..2]);

    // A cell of which one trial failed has no figures, so that its other trials count for nothing.
    let mut failed = whole.clone();
    let cell = failed.trials[0].cell;
    failed.trials.iter_mut().filter(|trial| trial.cell == cell).for_each(wild);
    let outcome = Outcome::Failed { kind: ErrorKind::Mismatch, reason: "no".into(), mismatches: 1 };
    failed.trials.iter_mut().rfind(|trial| trial.cell == cell).unwrap().outcome = outcome;
    let told = told(&failed);
    let state =
        if failed.header.cells[cell].axes.word("state").unwrap() == "idle" { "idle" } else { "active" };
    let each = if state == "idle" { "1 MB" } else { "2" };
    let sentence =
        told.iter().find(|sentence| sentence.contains(&format!("each {state} connection"))).unwrap();
    assert!(sentence.contains(&format!("costs the server {each}")), "{told:?}");
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
    assert!(!summary.summary.iter().any(|sentence| sentence.contains("costs")), "{:?}", summary.summary);
    assert!(!html::render(&summary, &html::Options::default()).contains("Memory by"));
}
