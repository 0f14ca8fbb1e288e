//! Runs of `footprint`: the cost of each connection, in a sentence and in a chart.

use crate::common::measurements;
use crate::common::others::{FOOTPRINT as INFO, footprint as run};
use kurabe_core::error::ErrorKind;
use kurabe_core::run::{Outcome, Run};
use kurabe_report::finding::Section;
use kurabe_report::{analyse, csv, html, markdown};

#[test]
fn connection_cost_is_slope_without_fixed_cost() {
    let summary = analyse(&run(), Some(&INFO));
    let sentences = summary.sentences(Section::Verdict);
    assert!(sentences[0].starts_with("Memory per connection of reads: 1 MB "), "{sentences:?}");
    assert!(
        sentences[0].contains(" with state idle, 2.01 MB (")
            && sentences[0].ends_with(") with state active."),
        "{sentences:?}"
    );
    assert_eq!(sentences[1], "Processes per connection of reads: 1 with state idle, 1 with state active.");
    assert!(
        sentences[2]
            .starts_with("Memory per connection of reads with state idle is lower by a factor of 2.0 than"),
        "{sentences:?}"
    );
    assert_eq!(sentences.len(), 3, "throughput answers nothing here: {sentences:?}");
}

#[test]
fn rerun_and_failed_trials_are_excluded_from_slope() {
    let slope = |run: &Run| {
        let summary = analyse(run, Some(&INFO));
        summary.sentences(Section::Verdict)
    };
    let whole = slope(&run());
    let mut again = run();
    let mut second = again.trials[0].clone();
    second.rerun_reason = Some("other processes used 40 % of the machine's CPU".to_owned());
    let Outcome::Measured(first) = &mut again.trials[0].outcome else { panic!("it was measured") };
    first.metrics.iter_mut().for_each(|figure| figure.value *= 1e3);
    again.trials.push(second);
    assert_eq!(slope(&again), whole);
    // The smallest cell of the idle connections fails in one round: the other two have the same slope.
    let mut failed = run();
    let outcome = Outcome::Failed { kind: ErrorKind::Timeout, reason: "no answer".into(), mismatches: 0 };
    for trial in failed.trials.iter_mut().filter(|trial| trial.cell == 0) {
        if trial.round == 0 {
            trial.outcome = outcome.clone();
        } else if let Outcome::Measured(measured) = &mut trial.outcome {
            measured.metrics.iter_mut().for_each(|figure| figure.value *= 1e3);
        }
    }
    let of_idle = "1 MB with state idle";
    assert!(
        whole[0].contains(of_idle) && slope(&failed)[0].contains(of_idle),
        "{whole:?} {:?}",
        slope(&failed)
    );
}

#[test]
fn memory_has_a_table_and_a_chart_and_other_runs_have_neither() {
    let summary = analyse(&run(), Some(&INFO));
    let text = markdown::render(&summary);
    let head = "| memory per connection | interval | processes per connection | interval | memory | added |";
    assert!(text.contains("## Reads, more metrics") && text.contains(head), "{text}");
    let page = html::render(&summary, &html::Options::default());
    assert!(
        page.contains("<h2>Added by connections</h2>") && page.contains("<h3>Memory by connections</h3>")
    );
    let csv = csv::render(&summary);
    let column =
        csv.lines().next().unwrap().split(',').position(|head| head == "memory per connection (bytes)");
    let value: f64 = csv.lines().nth(1).unwrap().split(',').nth(column.unwrap()).unwrap().parse().unwrap();
    assert!((value / 1e6 - 1.0).abs() < 0.01, "{value}");
    let mut plain = run();
    for (_, measured) in measurements(&mut plain) {
        measured.metrics.clear();
    }
    let summary = analyse(&plain, Some(&INFO));
    let sentences = summary.sentences(Section::Verdict);
    assert!(!sentences.iter().any(|sentence| sentence.contains("emory")), "{sentences:?}");
    assert!(!html::render(&summary, &html::Options::default()).contains("Memory by"));
}
