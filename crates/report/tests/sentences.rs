//! Verdicts read like sentences, hold for what was tested only, and never rank what must not be ranked.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;

use common::{At, INFO, Scenario, bound, open_loop, plausible, troubled};
use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::error::ErrorKind;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::run::{Outcome, Resumption, Run, RunEnd, RunHeader, Until};
use kurabe_report::summary::{Status, Summary, VerdictRecord, VerdictResult};
use kurabe_report::{View, analyse, compare, json, terminal};

fn summary(run: &Run) -> Summary {
    analyse(run, Some(&INFO))
}

fn small() -> Scenario {
    Scenario { payloads: vec![1_000], layouts: vec!["blob"], compress: vec!["none"], ..Scenario::default() }
}

fn verdict<'a>(summary: &'a Summary, operation: &str, axis: &str, payload: u64) -> &'a VerdictRecord {
    let at = |verdict: &&VerdictRecord| {
        verdict.operation == operation
            && verdict.axis == axis
            && verdict.at.number("payload").unwrap() == payload
    };
    summary.verdicts.iter().find(at).unwrap()
}

#[test]
fn one_target_is_told_which_layout_and_which_compression_and_by_how_much() {
    let told = summary(&Scenario::default().run()).summary;
    assert_eq!(
        told,
        [
            "Keep layout blob rather than rows (with compress none): writes are faster from 10 kB on (4 to 8 % at \
             10 kB, 15 to 17 % at 100 kB) and reads are faster from 10 kB on (35 to 39 % at 10 kB, 1.8 times at 100 kB).",
            "Compress zstd against none (with layout blob): writes are faster from 10 kB on (7 to 10 % at 10 kB, 47 to \
             51 % at 100 kB) and reads are faster from 10 kB on (0.6 to 5 % at 10 kB, 14 to 19 % at 100 kB), but writes \
             are 7 to 10 % slower at 1 kB and reads are 8 to 10 % slower at 1 kB.",
        ]
    );
}

#[test]
fn two_targets_are_told_which_is_faster_for_reads() {
    let run = Scenario { targets: vec!["sqlite", "postgres"], operations: vec!["read"], ..small() }.run();
    let summary = summary(&run);
    assert_eq!(summary.summary, ["At 1 kB, reads are 5.2 to 5.3 times as fast on SQLite as on PostgreSQL."]);
    let verdict = &summary.verdicts[0];
    assert_eq!(
        (verdict.a.as_str(), verdict.b.as_str(), verdict.axis.as_str()),
        ("sqlite", "postgres", "target")
    );
    assert_eq!((verdict.result, verdict.rounds), (VerdictResult::Faster, 7));
}

#[test]
fn different_promises_are_never_ranked_in_silence() {
    let run = Scenario { targets: vec!["memcached", "postgres"], ..small() }.run();
    let summary = summary(&run);
    let writes = verdict(&summary, "write", "target", 1_000);
    assert!(
        writes.sentence.ends_with(
            ", but on memcached an acknowledged write may be lost when the server stops, on PostgreSQL an acknowledged \
             write survives power failure."
        ),
        "{}",
        writes.sentence
    );
    assert!(writes.reason.contains("durability differs"));
    let reads = verdict(&summary, "read", "target", 1_000);
    assert!(!reads.sentence.contains("acknowledged"), "reads promise nothing: {}", reads.sentence);
    assert!(summary.summary.contains(&writes.sentence));
}

#[test]
fn a_winner_that_promises_more_has_no_but() {
    let mut run = Scenario { targets: vec!["memcached", "postgres"], ..small() }.run();
    run.header.targets[0].facts.durability = Some(DurabilityClass::Replicated);
    let sentence = verdict(&summary(&run), "write", "target", 1_000).sentence.clone();
    assert!(
        sentence.ends_with(
            ", and on memcached an acknowledged write survives the loss of the machine, on PostgreSQL an \
             acknowledged write survives power failure."
        ),
        "{sentence}"
    );
}

#[test]
fn a_promise_that_nobody_knows_is_unknown_and_like_no_other() {
    let mut run = Scenario { targets: vec!["sqlite", "postgres", "memcached"], ..small() }.run();
    run.header.targets[0].facts.durability = None;
    run.header.targets[2].facts.durability = None;
    let summary = summary(&run);
    assert_eq!(summary.targets[0].durability_promise, "what an acknowledged write survives is unknown");
    let told = &summary.summary;
    assert!(
        told[0].ends_with(
            "; but the targets promise different things: on SQLite and memcached what an acknowledged write survives \
             is unknown; on PostgreSQL an acknowledged write survives power failure."
        ),
        "{}",
        told[0]
    );
    assert!(!told.iter().any(|sentence| sentence.starts_with("Where what")), "{told:?}");
    let both =
        summary.verdicts.iter().find(|v| v.operation == "write" && v.a == "sqlite" && v.b == "memcached");
    assert!(both.unwrap().reason.contains("durability differs"), "{both:?}");
    let wide = terminal::Options { width: 500, color: false, details: true };
    let text = terminal::render(&summary, &wide);
    assert!(text.contains("unknown: what an acknowledged write survives is unknown"), "{text}");
}

#[test]
fn among_several_targets_writes_are_ranked_within_each_promise_too() {
    let mut run = Scenario { targets: vec!["sqlite", "postgres", "memcached"], ..small() }.run();
    run.header.targets[0].facts.durability = Some(DurabilityClass::Synced);
    let told = summary(&run).summary;
    assert!(told[0].starts_with("Writes are fastest on memcached at 1 kB"), "{}", told[0]);
    assert!(told[0].contains("the targets promise different things: on memcached"), "{}", told[0]);
    assert!(
        told[1]
            .starts_with("Where an acknowledged write survives power failure, writes are fastest on SQLite"),
        "{}",
        told[1]
    );
}

#[test]
fn what_is_equal_is_indistinguishable_and_the_sentence_says_what_would_have_been_seen() {
    fn same(_: At<'_>) -> f64 {
        10_000.0
    }
    let run = Scenario { targets: vec!["sqlite", "sqlite"], rate: same, noise: 0.03, ..small() }.run();
    let summary = summary(&run);
    let verdict = verdict(&summary, "read", "target", 1_000);
    assert_eq!(verdict.result, VerdictResult::Indistinguishable);
    assert!(
        verdict
            .sentence
            .starts_with("At 1 kB, no difference was seen between reads on sqlite and on sqlite#2; one of"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn of_fifty_comparisons_of_equals_hardly_one_is_called_faster() {
    fn same(_: At<'_>) -> f64 {
        10_000.0
    }
    let payloads: Vec<u64> = (1..=25).map(|n| n * 1_000).collect();
    let run =
        Scenario { targets: vec!["sqlite", "sqlite"], rate: same, noise: 0.1, payloads, ..small() }.run();
    let summary = summary(&run);
    assert_eq!(summary.comparisons, 50);
    let wrong = summary.verdicts.iter().filter(|v| v.result != VerdictResult::Indistinguishable).count();
    assert_eq!(wrong, 0);
}

#[test]
fn an_open_loop_is_judged_by_response_times_and_says_which_load_was_not_served() {
    let summary = summary(&open_loop());
    let text = summary.summary.join(" ");
    assert!(text.contains("y the p99 of response times"), "{text}");
    let between = || summary.verdicts.iter().filter(|verdict| verdict.axis == "target");
    let at = |rate| between().find(|verdict| verdict.at.number("rate").unwrap() == rate).unwrap();
    assert!(at(5_000).ratio.unwrap() > 100.0, "a backlog is slow, however many were served: {:?}", at(5_000));
    assert!(at(1_000).ratio.unwrap() > 1.1);
    let overloaded: Vec<&String> = summary.notes.iter().filter(|note| note.contains("were served")).collect();
    assert_eq!(overloaded.len(), 1, "{overloaded:?}");
    assert!(overloaded[0].contains("500 of 2,500 were never begun"), "{overloaded:?}");
}

#[test]
fn a_failed_cell_has_no_figures_and_is_compared_with_nothing() {
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
    assert_eq!((verdict.result, verdict.ratio), (VerdictResult::NotComparable, None));
    assert_eq!(
        verdict.sentence,
        "At 1 kB, reads on SQLite and on PostgreSQL are not compared: SQLite failed: record 7 is another's (in 1 of 7 \
         rounds)."
    );
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
    assert!(summary.verdicts.iter().all(|verdict| verdict.result == VerdictResult::Open));
    assert_eq!(summary.noise_floor, None);
    assert_eq!(
        summary.summary,
        ["One round shows no interval, so that nothing can be called faster; make more rounds."]
    );
    assert!(summary.cells.iter().filter_map(|cell| cell.ops_per_second).all(|rate| rate.low.is_none()));
}

#[test]
fn a_run_that_was_cut_off_says_so() {
    let mut run = Scenario::default().run();
    run.trials.truncate(30);
    run.end = None;
    let summary = summary(&run);
    assert!(!summary.complete);
    assert!(summary.notes[0].starts_with("This run is not complete: 30 of 182 planned trials were made"));
}

#[test]
fn a_run_without_a_trial_has_nothing_to_say() {
    let mut run = Scenario::default().run();
    run.trials.clear();
    run.end = None;
    let summary = summary(&run);
    assert_eq!(summary.summary, ["No cell has figures, so that there is nothing to say."]);
    assert!(summary.cells.iter().all(|cell| cell.status == Status::Unavailable && cell.reason.is_some()));
}

#[test]
fn a_run_of_an_unknown_experiment_is_still_told() {
    let run = Scenario::default().run();
    let known = analyse(&run, Some(&INFO));
    let unknown = analyse(&run, None);
    assert_eq!(unknown.cells.len(), known.cells.len());
    assert_eq!(unknown.comparisons, known.comparisons);
    assert!(unknown.summary[0].contains("layout blob"), "{}", unknown.summary[0]);
}

#[test]
fn headers_that_make_no_sense_break_nothing() {
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
fn two_runs_are_compared_with_a_word_on_how_weak_that_is() {
    fn slower(at: At<'_>) -> f64 {
        plausible(at) * if at.operation == "read" { 0.8 } else { 1.0 }
    }
    let first = small().run();
    let mut second = Scenario { rate: slower, ..small() }.run();
    second.header.run = "2026-03-02-0900-session".into();
    second.header.targets[0].facts.version = "3.51.0".into();
    let compared = compare::compare(&summary(&first), &summary(&second));
    let result =
        |operation: &str| compared.rows.iter().find(|row| row.operation == operation).unwrap().result;
    assert_eq!((result("read"), result("write")), (VerdictResult::Slower, VerdictResult::Indistinguishable));
    assert!(compared.summary[1].contains("weaker evidence than one run of both"), "{}", compared.summary[1]);
    assert!(compared.summary[2].starts_with("Reads on SQLite (1 kB) were 2"), "{}", compared.summary[2]);
    let what: Vec<&str> = compared.differences.iter().map(|difference| difference.what.as_str()).collect();
    assert_eq!(what, ["version of SQLite"]);
}

#[test]
fn a_run_that_has_not_ended_shows_figures_and_no_verdicts() {
    fn slower(at: At<'_>) -> f64 {
        plausible(at) * if at.layout == "rows" { 0.5 } else { 1.0 }
    }
    let whole = Scenario { rate: slower, rounds: 6, ..Scenario::default() }.run();
    assert!(summary(&whole).verdicts.iter().any(|verdict| verdict.result == VerdictResult::Slower));
    for end in [None, Some(RunEnd { at_ms: 1, complete: false })] {
        let mut run = whole.clone();
        run.trials.retain(|trial| trial.round < 4);
        run.end = end;
        let summary = summary(&run);
        assert!(summary.verdicts.is_empty() && summary.details.is_empty() && summary.comparisons == 0);
        assert_eq!(
            summary.summary,
            ["No verdicts yet: the next planned analysis is after 6 rounds. 'kurabe resume' goes on."]
        );
        assert_eq!(summary.next_analysis, Some(6));
        assert!(summary.cells.iter().any(|cell| cell.ops_per_second.is_some()));
        let page = terminal::render(&summary, &terminal::Options { details: true, ..Default::default() });
        assert!(!page.contains("faster") && !page.contains("slower"), "{page}");
        let compared = compare::compare(&analyse(&whole, Some(&INFO)), &summary);
        assert!(compared.rows.iter().all(|row| row.result == VerdictResult::Open && row.low.is_none()));
        assert!(compared.summary[0].contains("is not complete"), "{:?}", compared.summary);
    }
}

#[test]
fn the_next_analysis_of_a_run_until_settled_is_the_next_planned_one() {
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
fn a_run_that_is_prolonged_spends_a_share_of_its_own_at_each_end() {
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
        verdict.high.unwrap() / verdict.low.unwrap()
    };
    let once = width(&run);
    // The same 32 rounds, after it had ended at 25 of them.
    let mut ended = run.clone();
    ended.header.spec.until = Some(Until { margin: 0.01, max_rounds: 25, budget_ns: None });
    let RunHeader { machine, targets, kurabe, .. } = run.header.clone();
    let resumption =
        Resumption { began: 9, trials_before: 9, max_rounds: Some(32), kurabe, machine, targets };
    ended.resumptions = vec![resumption];
    assert!(width(&ended) > once, "the analysis after 25 rounds was paid for");
}

#[test]
fn what_changed_when_a_run_was_resumed_is_said_and_anonymised() {
    let mut run = small().run();
    let RunHeader { machine, targets, kurabe, .. } = run.header.clone();
    let same = Resumption { began: 9, trials_before: 4, max_rounds: None, kurabe, machine, targets };
    run.resumptions = vec![same.clone()];
    assert!(!summary(&run).notes.iter().any(|note| note.contains("in place of")));
    let mut other = Resumption { trials_before: 11, kurabe: "0.3.0".into(), ..same };
    other.targets[0].facts.version = "3.99".into();
    run.resumptions.push(other);
    let notes = summary(&run).notes.join("\n");
    for part in ["from number 12 on", "Kurabe 0.3.0 in place of", "SQLite 3.99 in place of 3.50.4 on sqlite"]
    {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    let view = View { anonymise: true, ..View::default() };
    let hidden = json::render(&view.analyse(&run, Some(&INFO)).unwrap());
    assert!(hidden.contains("version 2 in place of version 1") && !hidden.contains("3.99"), "{hidden}");
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
        .chain([AxisInfo {
            name: "write-share",
            kind: AxisKind::Percent { least: 0, most: 100 },
            ..INFO.axes[0]
        }])
        .collect();
    let info = ExperimentInfo { axes: axes.leak(), ..INFO };
    let summary = analyse(&run, Some(&info));
    assert!(summary.scope.contains("write-share 5 % and 20 %"), "{}", summary.scope);
}

#[test]
fn a_run_that_was_analysed_several_times_has_wider_intervals_and_says_so() {
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
        verdict.high.unwrap() / verdict.low.unwrap()
    };
    assert!(width(&looked) > width(&fixed), "{} {}", width(&looked), width(&fixed));
    assert!(looked.scope.contains("at analyses after 6, 9 and 14 rounds"), "{}", looked.scope);
    assert!(!fixed.scope.contains("analyses"), "{}", fixed.scope);
    let verdict = verdict(&looked, "read", "target", 1_000);
    assert!(!verdict.settled && verdict.further_rounds.is_some(), "{verdict:?}");
    assert!(verdict.reason.contains("more rounds would settle it"), "{}", verdict.reason);
    let open = looked.notes.iter().any(|note| note.contains("within 1 %") && note.contains("kurabe resume"));
    assert!(open, "{:?}", looked.notes);
}

#[test]
fn a_trial_that_was_made_again_counts_in_place_of_the_first_whatever_it_shows() {
    let run = small().run();
    let whole = summary(&run);
    for factor in [2, 1] {
        let mut again = run.clone();
        let mut second = again.trials[0].clone();
        second.again = Some("other processes used 40 % of the machine's CPU".to_owned());
        let Outcome::Measured(first) = &mut again.trials[0].outcome else { panic!("it was measured") };
        // The first, which is wildly off, either way, must not show.
        first.elapsed_ns = if factor == 2 { first.elapsed_ns * 50 } else { first.elapsed_ns / 50 };
        again.trials.push(second);
        let told = summary(&again);
        let rates = |summary: &Summary| -> Vec<f64> {
            summary.cells.iter().filter_map(|cell| Some(cell.ops_per_second?.median)).collect()
        };
        assert_eq!(rates(&told), rates(&whole));
        assert!(told.notes.iter().any(|note| note.starts_with("1 trial was made again")), "{:?}", told.notes);
    }
}

#[test]
fn cells_that_were_never_steady_are_marked_and_told() {
    let mut run = small().run();
    for trial in &mut run.trials {
        if let Outcome::Measured(measured) = &mut trial.outcome {
            let falls = trial.operation == "write";
            measured.windows = (0..20).map(|n| if falls { 2_000 - 60 * n } else { 1_000 + n % 2 }).collect();
        }
    }
    let told = summary(&run);
    let note = told.notes.iter().find(|note| note.contains("never steady")).unwrap();
    assert!(
        note.starts_with("Writes were never steady (marked ~): throughput fell") && note.contains("fell by"),
        "{note}"
    );
    let page = terminal::render(&told, &terminal::Options::default());
    assert_eq!(page.matches("~ ").count(), 1, "{page}");
}

#[test]
fn the_baseline_and_its_repetition_are_one_of_the_cells_that_others_disturbed() {
    let mut run = bound();
    for trial in &mut run.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        if let Some(seen) = &mut measured.observed {
            seen.host.cpus[0].steal_ns = 300_000_000;
        }
    }
    let told = summary(&run);
    let (repeated, own): (Vec<_>, Vec<_>) =
        told.cells.iter().filter(|cell| cell.attribution.is_some()).partition(|cell| cell.baseline_repeat);
    assert!(!repeated.is_empty(), "{:?}", told.cells);
    let note = told.notes.iter().find(|note| note.contains("not ours alone")).unwrap();
    assert!(note.contains(&format!(" in {0} of {0} cells", own.len())), "{note}");
}
