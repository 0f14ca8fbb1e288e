//! Verdicts are sentences, hold only for what was tested, and never rank what must not be ranked.

use crate::common::{
    At, INFO, Scenario, bottlenecks, measurements, of_any_start, open_loop, plausible, troubled,
};
use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use kurabe_core::error::ErrorKind;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::run::{Outcome, Run};
use kurabe_report::finding::{Finding, Note, Section, Side, Statement, Trials, Why};
use kurabe_report::summary::{Decision, Status, Summary, Verdict};
use kurabe_report::{Language, analyse, compare, terminal};

pub(crate) fn summary(run: &Run) -> Summary {
    analyse(run, Some(&INFO))
}

pub(crate) fn sentences(summary: &Summary) -> Vec<String> {
    summary.sentences(Section::Verdict)
}

pub(crate) fn small() -> Scenario {
    Scenario { payloads: vec![1_000], layouts: vec!["blob"], compress: vec!["none"], ..Scenario::default() }
}

pub(crate) fn verdict<'a>(summary: &'a Summary, operation: &str, axis: &str, payload: u64) -> &'a Verdict {
    let at = |verdict: &&Verdict| {
        verdict.operation == operation
            && verdict.pair.axis == axis
            && verdict.at.number("payload").unwrap() == payload
    };
    summary.verdicts.iter().find(at).unwrap()
}

#[test]
fn levels_of_one_target_are_compared_with_their_baseline_wherever_they_were_called() {
    let summary = summary(&Scenario::default().run());
    assert_eq!(
        sentences(&summary),
        [
            "Writes with layout blob are at least 5 % faster than with layout rows from 10 kB on (compress none): 6 % (5 to \
             7 %) at 10 kB, 16 % (15 to 17 %) at 100 kB.",
            "Reads with layout blob are at least 36 % faster than with layout rows from 10 kB on (compress none): 37 % (36 \
             to 38 %) at 10 kB, 1.8 times at 100 kB.",
            "Writes and reads with layout rows and with layout blob are equal to within 5 % at 1 kB (compress none): 0.986 to \
             1.016 times.",
            "Writes with compress none are 10 % faster (8 to 11 %) than with compress zstd at 1 kB (layout blob).",
            "Reads with compress none are 10 % faster (9 to 11 %) than with compress zstd at 1 kB (layout blob).",
            "Writes with compress zstd are at least 7 % faster than with compress none from 10 kB on (layout blob): 8 % (7 \
             to 10 %) at 10 kB, 49 % (47 to 50 %) at 100 kB.",
            "Reads with compress zstd are 16 % faster (15 to 18 %) than with compress none at 100 kB (layout blob).",
            "Reads with compress zstd and with compress none are equal to within 5 % at 10 kB (layout blob): 1.014 to 1.038 \
             times.",
        ]
    );
}

#[test]
fn faster_of_two_targets_is_reported() {
    let run = Scenario { targets: vec!["sqlite", "postgres"], operations: vec!["read"], ..small() }.run();
    let summary = summary(&run);
    assert_eq!(
        sentences(&summary),
        ["Reads on SQLite are 5.3 times as fast (5.2 to 5.3) as on PostgreSQL at 1 kB."]
    );
    let verdict = &summary.verdicts[0];
    let pair = &verdict.pair;
    assert_eq!((&pair.a, &pair.b, pair.axis.as_str()), (&Side::Target(0), &Side::Target(1), "target"));
    assert_eq!((verdict.result, verdict.rounds), (Decision::Above, 7));
}

#[test]
fn ranking_of_writes_states_durability() {
    let run = Scenario { targets: vec!["memcached", "postgres"], ..small() }.run();
    let summary = summary(&run);
    let all = sentences(&summary);
    let writes = all.iter().find(|sentence| sentence.starts_with("Writes on memcached")).unwrap();
    assert!(
        writes.ends_with(
            ". Durability differs: on memcached an acknowledged write may be lost when the server stops; on PostgreSQL \
             an acknowledged write survives power failure."
        ),
        "{writes}"
    );
    let reads = all.iter().find(|sentence| sentence.starts_with("Reads on memcached")).unwrap();
    assert!(!reads.contains("acknowledged"), "reads promise nothing: {reads}");
}

#[test]
fn unknown_durability_equals_no_other() {
    let mut run = Scenario { targets: vec!["sqlite", "postgres", "memcached"], ..small() }.run();
    run.header.targets[0].facts.durability = None;
    run.header.targets[2].facts.durability = None;
    let summary = summary(&run);
    assert_eq!(summary.targets[0].durability_promise, "what an acknowledged write survives is unknown");
    let all = sentences(&summary);
    for end in [
        "Durability differs: on SQLite what an acknowledged write survives is unknown; on PostgreSQL an acknowledged write \
         survives power failure.",
        "Durability differs: on memcached and SQLite what an acknowledged write survives is unknown.",
    ] {
        assert!(all.iter().any(|sentence| sentence.ends_with(end)), "{all:?}");
    }
    let wide = terminal::Options { width: 500, color: false, details: true };
    let text = terminal::render(&summary, &wide);
    assert!(text.contains("unknown: what an acknowledged write survives is unknown"), "{text}");
}

#[test]
fn equal_cells_are_undecided_or_within_margin() {
    fn same(_: At<'_>) -> f64 {
        10_000.0
    }
    for (noise, result, text) in [
        (0.06, Decision::Undecided, "undecided at 1 kB: measured "),
        (0.01, Decision::Within, "are equal to within 5 % at 1 kB: 0.9"),
    ] {
        let run = Scenario { targets: vec!["sqlite", "sqlite"], rate: same, noise, ..small() }.run();
        let summary = summary(&run);
        assert_eq!(verdict(&summary, "read", "target", 1_000).result, result);
        let all = sentences(&summary);
        assert!(all.iter().any(|sentence| sentence.contains(text)), "{all:?}");
    }
}

#[test]
fn equal_cells_are_rarely_called_faster_in_fifty_comparisons() {
    fn same(_: At<'_>) -> f64 {
        10_000.0
    }
    let payloads: Vec<u64> = (1..=25).map(|n| n * 1_000).collect();
    let run =
        Scenario { targets: vec!["sqlite", "sqlite"], rate: same, noise: 0.1, payloads, ..small() }.run();
    let summary = summary(&run);
    assert_eq!(summary.comparisons, 50);
    let wrong =
        summary.verdicts.iter().filter(|v| matches!(v.result, Decision::Above | Decision::Below)).count();
    assert_eq!(wrong, 0);
}

#[test]
fn a_rate_that_was_not_kept_up_is_an_outcome_and_never_ranked() {
    let summary = summary(&open_loop());
    let all = sentences(&summary);
    assert!(
        all.iter().any(|sentence| sentence.starts_with("By response p99, reads on SQLite are")),
        "{all:?}"
    );
    let between = || summary.verdicts.iter().filter(|verdict| verdict.pair.axis == "target");
    let at = |rate| between().find(|verdict| verdict.at.number("rate").unwrap() == rate).unwrap();
    assert_eq!(at(5_000).why, Some(Why::Overloaded { sides: vec![Side::Target(1)] }));
    assert_eq!((at(5_000).result, at(5_000).ratio), (Decision::NotTestable, None));
    assert!(at(1_000).ratio.unwrap().value > 1.1);
    let overloaded = "Reads on PostgreSQL are overloaded from 5,000/s (layout blob, compress none): 1,670/s \
                      were served, 500 were never started.";
    assert!(all.iter().any(|one| one == overloaded), "{all:?}");
    let page = terminal::render(&summary, &terminal::Options { width: 160, details: true, color: false });
    assert!(page.contains("  overloaded  "), "{page}");
}

#[test]
fn response_times_bend_where_they_double_in_every_round_and_a_late_generator_has_none() {
    let mut run = open_loop();
    let rates: Vec<u64> = run.header.cells.iter().map(|cell| cell.axes.number("rate").unwrap()).collect();
    for (trial, measured) in measurements(&mut run) {
        measured.dropped = 0;
        let open = measured.open.as_mut().unwrap();
        measured.elapsed_ns = open.due_ns;
        open.response = kurabe_stats::Histogram::new();
        let slow = if rates[trial.cell] == 5_000 { 38 } else { 1 };
        (0..500).for_each(|_| open.response.record(slow * 1_000_000));
    }
    let first = sentences(&summary(&run))[0].clone();
    let bent = "Response p99 of reads on SQLite (layout blob, compress none) is 1 ms at 1,000/s and 38 ms at 5,000/s; it is \
                at least twice the first from 5,000/s on.";
    assert_eq!(first, bent);
    for (trial, measured) in measurements(&mut run) {
        let lag = &mut measured.open.as_mut().unwrap().lag;
        (0..9_000).for_each(|_| lag.record(if rates[trial.cell] == 5_000 { 22_000_000 } else { 50_000 }));
    }
    let summary = summary(&run);
    let all = sentences(&summary);
    assert!(all[0].ends_with("is 1 ms at 1,000/s."), "{all:?}");
    let late =
        |s: &&String| s.contains("on SQLite at 5,000/s") && s.contains("invalid: the load generator was 22");
    assert!(all.iter().find(late).is_some(), "{all:?}");
    let invalid = |verdict: &&Verdict| matches!(verdict.why, Some(Why::GeneratorLate { .. }));
    assert!(
        summary.verdicts.iter().filter(invalid).all(|verdict| verdict.at.number("rate").unwrap() == 5_000)
    );
    assert!(summary.verdicts.iter().any(|verdict| invalid(&verdict)));
}

#[test]
fn failed_cell_has_no_results_and_no_comparisons() {
    let mut run = Scenario { targets: vec!["sqlite", "postgres"], ..small() }.run();
    let trial =
        run.trials.iter_mut().find(|trial| trial.cell == 0 && trial.operation == "read" && trial.round == 3);
    trial.unwrap().outcome =
        Outcome::Failed { kind: ErrorKind::Mismatch, reason: "record 7 is another's".into(), mismatches: 2 };
    let summary = summary(&run);
    let cell = summary.cells.iter().find(|cell| cell.operation == "read").unwrap();
    assert_eq!((cell.status, cell.ops_per_second, cell.verified.mismatches), (Status::Failed, None, 2));
    assert_eq!(cell.reason.as_deref(), Some("record 7 is another's (in 1 of 7 rounds)"));
    let verdict = verdict(&summary, "read", "target", 1_000);
    assert_eq!((verdict.result, verdict.ratio), (Decision::NotTestable, None));
    let all = sentences(&summary);
    let why = "Reads on SQLite and on PostgreSQL are not compared at 1 kB: SQLite failed: record 7 is another's (in 1 of 7 \
               rounds).";
    assert!(all.iter().any(|one| one == why), "{all:?}");
}

#[test]
fn rounds_in_which_a_target_stalled_are_those_below_the_widest_gap() {
    let told = |slower: [u64; 7]| {
        let mut run =
            Scenario { targets: vec!["sqlite", "postgres"], operations: vec!["read"], ..small() }.run();
        for (trial, measured) in measurements(&mut run).filter(|(trial, _)| trial.record.target == 1) {
            measured.elapsed_ns *= slower[trial.round as usize];
        }
        let told = |one: &Statement| matches!(one.finding, Finding::Trials(Trials::Uneven { .. }));
        let summary = summary(&run);
        summary.findings.iter().filter(|one| told(one)).map(|one| summary.sentence(one)).collect::<Vec<_>>()
    };
    let stalled = told([1, 40, 1, 1, 10, 1, 10]);
    assert_eq!(stalled.len(), 1, "{stalled:?}");
    assert!(stalled[0].starts_with("Reads on PostgreSQL stalled in 3 of 7 rounds: "), "{stalled:?}");
    // Nothing stalled that was as often slow as fast, or hardly slower.
    for even in [[10, 10, 10, 10, 1, 1, 1], [2, 1, 2, 1, 1, 1, 1]] {
        assert_eq!(told(even), [""; 0]);
    }
}

#[test]
fn an_interrupted_trial_fails_no_cell() {
    let mut run = small().run();
    let last = run.trials.last_mut().unwrap();
    last.outcome = Outcome::Failed { kind: ErrorKind::Interrupted, reason: "stopped".into(), mismatches: 0 };
    assert!(summary(&run).cells.iter().all(|cell| cell.status == Status::Ok));
}

#[test]
fn one_round_decides_nothing() {
    let summary = summary(&Scenario { rounds: 1, ..Scenario::default() }.run());
    assert!(summary.verdicts.iter().all(|verdict| verdict.result == Decision::Undecided));
    assert_eq!(summary.noise_floor, None);
    assert_eq!(
        sentences(&summary),
        ["One round has no interval, so no verdict is possible; use more rounds."]
    );
    assert!(summary.cells.iter().filter_map(|cell| cell.ops_per_second).all(|rate| rate.low.is_none()));
}

#[test]
fn run_of_unknown_experiment_is_reported() {
    let run = Scenario::default().run();
    let known = analyse(&run, Some(&INFO));
    let unknown = analyse(&run, None);
    assert_eq!(unknown.cells.len(), known.cells.len());
    assert_eq!(unknown.comparisons, known.comparisons);
    assert!(sentences(&unknown)[0].contains("layout blob"), "{:?}", sentences(&unknown));
}

#[test]
fn inconsistent_headers_do_not_panic() {
    let mut run = troubled();
    run.header.spec.operations.clear();
    let _ = summary(&run);
    let mut run = troubled();
    run.header.spec.axes.clear();
    let _ = summary(&run);
    let mut run = troubled();
    run.header.targets.clear();
    run.header.cells.clear();
    run.trials.clear();
    let summary = summary(&run);
    let _ = (
        kurabe_report::terminal::render(&summary, &kurabe_report::terminal::Options::default()),
        kurabe_report::html::render(&summary, &kurabe_report::html::Options { published: true }),
        kurabe_report::markdown::render(&summary),
        kurabe_report::csv::render(&summary),
    );
}

#[test]
fn comparison_of_runs_states_weaker_evidence() {
    fn slower(at: At<'_>) -> f64 {
        plausible(at) * if at.operation == "read" { 0.8 } else { 1.0 }
    }
    let first = of_any_start(small().run());
    let mut second = of_any_start(Scenario { rate: slower, ..small() }.run());
    second.header.run = "2026-03-02-0900-session".into();
    second.header.targets[0].facts.version = "3.51.0".into();
    let compared = compare::compare(&summary(&first), &summary(&second), &[]);
    let result =
        |operation: &str| compared.rows.iter().find(|row| row.operation == operation).unwrap().result;
    assert_eq!((result("read"), result("write")), (Decision::Below, Decision::Within));
    let all = compared.sentences(Section::Verdict);
    assert!(all[1].contains("weaker evidence than a single run with both"), "{all:?}");
    assert!(
        all[2].starts_with("Reads at 1 kB were 2") && all[2].ends_with(" %) in the first run."),
        "{all:?}"
    );
    let what: Vec<&str> = compared.differences.iter().map(|difference| difference.what.as_str()).collect();
    assert_eq!(what, ["version of SQLite"]);
}

#[test]
fn shares_are_named_as_shares() {
    let mut run = small().run();
    run.header.spec.axes.insert("write-share".into(), vec![AxisValue::Number(5), AxisValue::Number(20)]);
    for cell in &mut run.header.cells {
        let axes = cell.axes.values().clone().into_iter();
        cell.axes = Cell::new(axes.chain([("write-share".to_owned(), AxisValue::Number(5))]));
    }
    let axes: Vec<AxisInfo> = INFO
        .axes
        .iter()
        .copied()
        .chain([AxisInfo { name: "write-share", kind: AxisKind::percent(0, 100), ..INFO.axes[0] }])
        .collect();
    let info = ExperimentInfo { axes: axes.leak(), ..INFO };
    let summary = analyse(&run, Some(&info));
    let basis = summary.sentences(Section::Basis);
    assert!(basis[0].contains("write-share 5 % and 20 %"), "{basis:?}");
}

#[test]
fn rerun_replaces_first_trial_unconditionally() {
    let run = small().run();
    let whole = summary(&run);
    for factor in [2, 1] {
        let mut again = run.clone();
        let mut second = again.trials[0].clone();
        second.rerun_reason = Some("other processes used 40 % of the machine's CPU".to_owned());
        let Outcome::Measured(first) = &mut again.trials[0].outcome else { panic!("it was measured") };
        // The first one, an outlier in either direction, must not count.
        first.elapsed_ns = if factor == 2 { first.elapsed_ns * 50 } else { first.elapsed_ns / 50 };
        again.trials.push(second);
        let again = summary(&again);
        let rates = |summary: &Summary| -> Vec<f64> {
            summary.cells.iter().filter_map(|cell| Some(cell.ops_per_second?.value)).collect()
        };
        assert_eq!(rates(&again), rates(&whole));
        let warnings = again.sentences(Section::Warning);
        assert!(
            warnings.iter().any(|text| text.starts_with("1 trial was disturbed and repeated")),
            "{warnings:?}"
        );
    }
}

#[test]
fn unsteady_cells_are_marked_and_reported() {
    let mut run = small().run();
    for (trial, measured) in measurements(&mut run) {
        let falls = trial.operation == "write";
        measured.windows = (0..20).map(|n| if falls { 2_000 - 60 * n } else { 1_000 + n % 2 }).collect();
    }
    let summary = summary(&run);
    let warnings = summary.sentences(Section::Warning);
    let steady = warnings.iter().find(|text| text.contains("marked ~")).unwrap();
    assert!(steady.starts_with("Writes marked ~ fell by up to"), "{steady}");
    let page = terminal::render(&summary, &terminal::Options::default());
    assert_eq!(page.replace("marked ~ ", "").matches("~ ").count(), 1, "{page}");
}

#[test]
fn baseline_and_aa_control_count_as_one_disturbed_cell() {
    let mut run = bottlenecks();
    for (_, measured) in measurements(&mut run) {
        if let Some(seen) = &mut measured.observed {
            seen.host.cpus[0].steal_ns = 300_000_000;
        }
    }
    let summary = summary(&run);
    let (repeated, own): (Vec<_>, Vec<_>) =
        summary.cells.iter().filter(|cell| cell.attribution.is_some()).partition(|cell| cell.aa_control);
    assert!(!repeated.is_empty(), "{:?}", summary.cells);
    let disturbed = summary.statements(Section::Warning).find_map(|statement| match &statement.finding {
        Finding::Trials(Trials::Disturbed { cells, of, .. }) => Some((*cells as usize, *of as usize)),
        _ => None,
    });
    assert_eq!(disturbed, Some((own.len(), own.len())));
}

/// What servers and the kernel's counters say stands as they say it.
#[test]
fn findings_of_each_family_are_sentences_in_japanese() {
    let two = || Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() };
    let runs = [two().run(), troubled(), bottlenecks(), open_loop(), of_any_start(two().run())];
    let mut told = 0;
    let mut check = |statement: &Statement, japanese: &str| {
        let as_said = matches!(&statement.finding, Finding::Note(Note::Preflight { .. }));
        let is_japanese = japanese.chars().any(|c| ('\u{3040}'..'\u{a000}').contains(&c));
        assert!(as_said || is_japanese, "{japanese}");
        told += usize::from(is_japanese);
    };
    for run in &runs {
        let english = summary(run);
        let japanese = english.clone().in_language(Language::Japanese);
        japanese.findings.iter().for_each(|one| check(one, &japanese.sentence(one)));
        let mut other = summary(&two().run());
        "another".clone_into(&mut other.run);
        let mut compared = compare::compare(&english, &other, &[]);
        compare::gate::judge(&mut compared, &english, &other, compare::Criteria::default());
        let shown = compared.clone().in_language(Language::Japanese);
        shown.findings.iter().for_each(|one| check(one, &shown.sentence(one)));
        let text = compare::terminal(&shown, &terminal::Options::default());
        assert!(text.contains("判定") && !text.contains("undecided"), "{text}");
    }
    assert!(told > 80, "{told}");
}
