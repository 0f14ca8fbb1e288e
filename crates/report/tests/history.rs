//! Equal runs over time: which runs changed a result.

use crate::common::{At, INFO, Scenario};
use kurabe_report::history::{Change, Series, history};
use kurabe_report::{Summary, analyse};

fn usual(at: At<'_>) -> f64 {
    if at.operation == "read" { 20_000.0 } else { 5_000.0 }
}

fn slow_reads(at: At<'_>) -> f64 {
    usual(at) * if at.operation == "read" { 0.8 } else { 1.0 }
}

/// The history of a run a day with these rates.
fn of(rates: &[fn(At<'_>) -> f64]) -> Vec<Series> {
    let run = |(day, rate): (usize, &fn(At<'_>) -> f64)| {
        let small = Scenario { compress: vec!["none"], payloads: vec![1_000], ..Scenario::default() };
        let mut summary = analyse(&Scenario { rate: *rate, rounds: 8, ..small }.run(), Some(&INFO));
        summary.began = day as u64 * 86_400;
        summary
    };
    let runs: Vec<Summary> = rates.iter().enumerate().map(run).collect();
    history(&runs.iter().collect::<Vec<_>>())
}

/// So many runs whose rates differ from one to the next by a few per cent, as a whole.
fn some(count: usize) -> Vec<fn(At<'_>) -> f64> {
    let all: [fn(At<'_>) -> f64; 4] =
        [usual, |at| usual(at) * 1.03, |at| usual(at) * 0.98, |at| usual(at) * 1.01];
    all.into_iter().cycle().take(count).collect()
}

/// The changes of the reads, each with its run; writes must have none.
fn changes_of_reads(rates: &[fn(At<'_>) -> f64]) -> Vec<(usize, Change)> {
    let all = of(rates);
    assert!(all.iter().any(|series| series.operation == "read"));
    assert!(all.iter().all(|series| series.points.len() == rates.len()), "{all:?}");
    assert!(all.iter().all(|series| series.operation == "read" || !series.has_changed()), "{all:?}");
    let reads = all.iter().find(|series| series.operation == "read").unwrap();
    reads.points.iter().filter_map(|point| Some((point.run, point.change?))).collect()
}

#[test]
fn step_is_found_at_its_run_and_again_when_it_is_taken_back() {
    let slow: [fn(At<'_>) -> f64; 2] = [slow_reads, |at| slow_reads(at) * 1.03];
    let slow: Vec<_> = slow.into_iter().cycle().take(8).collect();
    let changes = changes_of_reads(&[some(8), slow, some(2)].concat());
    let [(8, slower), (16, faster)] = changes[..] else { panic!("{changes:?}") };
    assert!(!slower.better && slower.confirmed && slower.ratio.contains(0.8), "{slower:?}");
    assert!(faster.better && faster.confirmed && faster.ratio.contains(1.25), "{faster:?}");
}

/// By the rounds of each run alone, which are much more alike, each of them would be a change.
#[test]
fn what_runs_differ_by_anyway_is_no_change() {
    assert_eq!(changes_of_reads(&some(20)), []);
}

#[test]
fn single_slow_run_is_no_change() {
    assert_eq!(changes_of_reads(&[some(8), vec![slow_reads], some(4)].concat()), []);
}

#[test]
fn change_at_the_newest_run_is_not_confirmed() {
    let changes = changes_of_reads(&[some(8), vec![slow_reads]].concat());
    assert!(matches!(changes[..], [(8, Change { better: false, confirmed: false, .. })]), "{changes:?}");
}

#[test]
fn few_runs_have_no_change_and_no_run_has_no_history() {
    assert_eq!(changes_of_reads(&[some(4), vec![slow_reads, slow_reads]].concat()), []);
    assert!(history(&[]).is_empty());
}

#[test]
fn runs_on_other_databases_are_series_of_their_own() {
    let small = || Scenario {
        payloads: vec![1_000],
        layouts: vec!["blob"],
        compress: vec!["none"],
        ..Scenario::default()
    };
    let on = |database: &str| {
        let mut run = small().run();
        run.header.targets[0].url = format!("postgres://h/{database}");
        analyse(&run, Some(&INFO))
    };
    let runs = [on("shop"), on("shop2"), on("shop")];
    let reads = history(&runs.iter().collect::<Vec<_>>());
    let reads = reads.iter().filter(|series| series.operation == "read");
    let found: Vec<(&str, Vec<usize>)> = reads
        .map(|series| (&*series.target, series.points.iter().map(|point| point.run).collect()))
        .collect();
    assert_eq!(found, [("postgres shop", vec![0, 2]), ("postgres shop2", vec![1])]);
}
