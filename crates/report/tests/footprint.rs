//! Runs of `footprint`: what each connection costs, in a sentence and in a chart of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops")]

mod common;

use common::others::{FOOTPRINT as INFO, footprint as run};
use kurabe_core::run::Outcome;
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
