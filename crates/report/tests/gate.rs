//! The gate of two runs: what it calls slower, and in which forms it says so.

use crate::common::{At, INFO, Scenario, interleaved, measurements, of_any_start};
use kurabe_core::custom::{CustomFile, CustomWorkload, Language};
use kurabe_core::facts::{ServerFacts, Setting};
use kurabe_core::observation::{CpuUse, HostUse, Observation, ServerUse};
use kurabe_core::query_plan::QueryPlan;
use kurabe_core::run::{Outcome, Run};
use kurabe_report::compare::{self, Between, Compared, Criteria, gate};
use kurabe_report::finding::{Finding, Gates};
use kurabe_report::summary::Decision;
use kurabe_report::{Summary, analyse, terminal};

fn summary(run: &Run) -> Summary {
    analyse(run, Some(&INFO))
}

/// A run whose reads of 10 kB have this rate.
fn run(rate: fn(At<'_>) -> f64, noise: f64) -> Run {
    let compress = vec!["none"];
    of_any_start(Scenario { rate, noise, rounds: 8, compress, ..Scenario::default() }.run())
}

fn usual(at: At<'_>) -> f64 {
    if at.operation == "read" { 20_000.0 } else { 5_000.0 }
}

fn slow_reads(at: At<'_>) -> f64 {
    usual(at) * if at.operation == "read" { 0.8 } else { 1.0 }
}

fn judged(first: &Run, second: &Run, margin: f64) -> Compared {
    let (first, second) = (summary(first), summary(second));
    let mut compared = compare::compare(&first, &second, &[]);
    let criteria = Criteria { slower: Some(margin), p99: None };
    gate::judge(&mut compared, &first, &second, criteria);
    compared
}

#[test]
fn slowdown_beyond_margin_fails_gate_and_one_within_does_not() {
    let (base, slower) = (run(usual, 0.01), run(slow_reads, 0.01));
    let compared = judged(&base, &slower, 0.05);
    let found = compared.gate.clone().unwrap().decided;
    assert_eq!(found.decision, Decision::Below, "{found:?}");
    for row in compared.rows.iter().filter(|row| row.primary) {
        let wanted = if row.operation == "read" { Decision::Below } else { Decision::Within };
        assert_eq!(row.gate, Some(wanted), "{row:?}");
    }
    // What tables say and what is counted above them is the same.
    let text =
        compare::terminal(&compared, &terminal::Options { details: true, ..terminal::Options::default() });
    let worse = compared.rows.iter().filter(|row| row.result == Decision::Below).count();
    assert!(worse > 0 && text.contains(&format!("0 are better in the second and {worse} worse")), "{text}");
    assert!(found.slower > 0 && found.passed > 0 && found.undecided == found.tails, "{found:?}");
    let failed = compared.rows.iter().filter(|row| row.gate == Some(Decision::Below));
    let slowest = failed.min_by(|a, b| a.ratio.unwrap().value.total_cmp(&b.ratio.unwrap().value)).unwrap();
    let told = compared.findings.iter().find_map(|one| match &one.finding {
        Finding::Gates(Gates::Worst { ratio, disturbed, .. }) => Some((*ratio, *disturbed)),
        _ => None,
    });
    assert_eq!(told, Some((slowest.ratio.unwrap().inverse(), false)));
    // A margin of 30 % allows 20 % less throughput.
    assert_eq!(judged(&base, &slower, 0.3).gate.unwrap().decided.decision, Decision::Within);
    // What is faster passes.
    assert_eq!(judged(&slower, &base, 0.05).gate.unwrap().decided.decision, Decision::Within);
}

#[test]
fn runs_that_did_not_sample_starts_decide_nothing() {
    let these = |rate: fn(At<'_>) -> f64| {
        let mut run = run(rate, 0.01);
        run.header.spec.restarts = 2;
        run
    };
    for (first, second) in [(these(usual), these(slow_reads)), (run(usual, 0.01), these(slow_reads))] {
        let compared = judged(&first, &second, 0.05);
        let found = compared.gate.clone().unwrap().decided;
        assert_eq!((found.decision, found.slower, found.passed), (Decision::Undecided, 0, 0), "{found:?}");
        let text = compare::terminal(&compared, &terminal::Options::default());
        assert!(text.contains("Nothing is decided"), "{text}");
        assert!(
            compared.rows.iter().all(|row| row.ratio.is_some_and(|ratio| ratio.low.is_none())),
            "no interval"
        );
    }
}

/// Runs that did not sample starts, a day apart and the newest last, with rates that differ from run to run by 1 %.
fn daily(runs: usize, newest: fn(At<'_>) -> f64) -> Vec<Summary> {
    let of = |day: usize| {
        let mut run = run(if day + 1 == runs { newest } else { usual }, 0.01);
        (run.header.spec.restarts, run.header.began) = (2, 1_000_000 + 86_400 * day as u64);
        for (_, measured) in measurements(&mut run) {
            measured.elapsed_ns = measured.elapsed_ns / 100 * [100, 102, 99, 101][day % 4];
        }
        summary(&run)
    };
    (0..runs).map(of).collect()
}

#[test]
fn enough_earlier_runs_decide_and_fewer_or_too_recent_ones_do_not() {
    let compared = |runs: &[Summary]| {
        let [earlier @ .., first, second] = runs else { panic!("two runs are compared") };
        compare::compare(first, second, earlier)
    };
    let found = compared(&daily(8, slow_reads));
    assert_eq!(found.between, Some(Between::Runs { runs: 6 }));
    for row in found.rows.iter().filter(|row| row.primary) {
        let wanted = if row.operation == "read" { Decision::Below } else { Decision::Undecided };
        let equal = row.result == Decision::Within && row.operation != "read";
        assert!(row.result == wanted || equal, "{row:?}");
        // The runs differ by several per cent, their rounds by less: the interval is of the runs.
        let (low, high) = row.ratio.unwrap().ends().unwrap();
        assert!(high / low > 1.05, "{row:?}");
    }
    let text = compare::terminal(&found, &terminal::Options::default());
    assert!(
        text.contains("6 earlier runs of this suite") && compare::json(&found).contains("\"by\": \"runs\""),
        "{text}"
    );
    let few = compared(&daily(7, slow_reads));
    assert_eq!(
        few.between,
        Some(Between::Nothing { runs: 5, needed: 6, covered: 4 * 86_400, needed_time: 4 * 86_400 })
    );
    let text = compare::terminal(&few, &terminal::Options::default());
    assert!(text.contains("5 of 6 earlier runs"), "{text}");
    let mut late = daily(8, slow_reads);
    late[7].began += 7 * 86_400;
    let late = compared(&late);
    assert!(matches!(late.between, Some(Between::Nothing { runs: 6, .. })), "{:?}", late.between);
    let text = compare::terminal(&late, &terminal::Options::default());
    assert!(text.contains("that are needed"), "{text}");
    assert!(late.rows.iter().all(|row| row.ratio.is_none_or(|ratio| ratio.low.is_none())));
}

#[test]
fn noise_wider_than_margin_is_undecided() {
    let (base, noisy) = (run(usual, 0.2), run(|at| usual(at) * 0.97, 0.2));
    let found = judged(&base, &noisy, 0.01).gate.unwrap().decided;
    assert_eq!(found.decision, Decision::Undecided, "{found:?}");
    assert!(found.undecided > 0 && found.slower == 0, "{found:?}");
    let text = compare::terminal(&judged(&base, &noisy, 0.01), &terminal::Options::default());
    assert!(
        text.contains("rounds would decide it, in place of 8") || text.contains("its margin of"),
        "{text}"
    );
}

#[test]
fn other_load_hides_no_slowdown_that_slices_show_and_lets_nothing_else_be_decided() {
    let (base, mut slower) = (run(usual, 0.01), run(slow_reads, 0.01));
    let cpus = vec![CpuUse { cpu: 0, busy_ns: 900_000_000, steal_ns: 0 }];
    let observed = Observation {
        wall_ns: 1_000_000_000,
        server: ServerUse::InClient,
        host: HostUse { cpus, ..HostUse::default() },
        ..Observation::default()
    };
    for (_, measured) in measurements(&mut slower) {
        measured.observed = Some(Box::new(observed.clone()));
    }
    let compared = judged(&base, &slower, 0.05);
    let found = &compared.gate.as_ref().unwrap().decided;
    assert_eq!((found.decision, found.slower), (Decision::Undecided, 0), "{found:?}");
    let text = compare::terminal(&compared, &terminal::Options::default());
    assert!(text.contains("programs used the CPU during") && text.contains("--wait-quiet"), "{text}");
    let same = judged(&slower, &slower, 0.05).gate.unwrap().decided;
    assert_eq!((same.decision, same.passed), (Decision::Undecided, 0), "{same:?}");
    // Two targets of one run share the load.
    let paired = |slower| {
        let mut run = interleaved(slower);
        for (_, measured) in measurements(&mut run) {
            measured.observed = Some(Box::new(observed.clone()));
        }
        let summary = summary(&run);
        let mut compared = compare::peers(&run, &summary);
        gate::judge(&mut compared, &summary, &summary, Criteria { slower: Some(0.05), p99: None });
        compared.gate.unwrap().decided
    };
    let slower = paired(200);
    assert_eq!((slower.decision, slower.passed), (Decision::Below, 0), "{slower:?}");
    let equal = paired(100);
    assert_eq!((equal.decision, equal.slower, equal.passed), (Decision::Undecided, 0, 0), "{equal:?}");
}

/// A workload of this script.
fn scripts(name: &str, text: &str, weight: u64) -> CustomWorkload {
    let files = vec![CustomFile { name: name.to_owned(), text: text.to_owned(), weight }];
    CustomWorkload::new(Language::Pgbench, files, std::collections::BTreeMap::new(), false)
}

#[test]
fn runs_of_other_scripts_or_databases_are_not_judged_and_what_differs_is_named() {
    let made = |custom: CustomWorkload, url: &str| {
        let mut run = run(slow_reads, 0.01);
        run.header.spec.custom = Some(custom);
        run.header.targets[0].url = url.to_owned();
        run
    };
    let base = made(scripts("a.sql", "SELECT 1", 1), "postgres://h:5432/shop");
    for (custom, url, wanted) in [
        (scripts("a.sql", "SELECT 1", 1), "postgres://other:9/shop", None),
        (scripts("a.sql", "SELECT 2", 1), "postgres://h/shop", Some("text of scripts differs")),
        (scripts("a.sql", "SELECT 1", 3), "postgres://h/shop", Some("scripts differs: a.sql in the first")),
        (scripts("b.sql", "SELECT 1", 1), "postgres://h/shop", Some("b.sql in the second")),
        (scripts("a.sql", "SELECT 1", 1), "postgres://h/shop_new", Some("shop in the first run, shop_new")),
        (scripts("a.sql", "SELECT 1", 1), "postgres://h/shop?work_mem=1MB", Some("work_mem=1MB")),
    ] {
        let compared = judged(&base, &made(custom, url), 0.05);
        let found = compared.gate.clone().unwrap();
        let text = compare::terminal(&compared, &terminal::Options::default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match wanted {
            None => {
                assert!(found.obstacles.is_empty() && found.decided.decision == Decision::Within, "{text}");
            }
            Some(part) => {
                assert_eq!(
                    (found.decided.decision, found.decided.passed),
                    (Decision::Undecided, 0),
                    "{text}"
                );
                assert!(text.contains("No result is judged") && text.contains(part), "{part}: {text}");
            }
        }
    }
}

#[test]
fn failed_gate_names_the_plan_that_changed_once() {
    let mut run = interleaved(200);
    let plan = |step: &str| QueryPlan {
        statement: "browse".to_owned(),
        text: "SELECT id FROM orders WHERE customer = 7".to_owned(),
        lines: vec![format!("-> {step}  (cost=1..2 rows=3)")],
    };
    for (trial, measured) in measurements(&mut run) {
        let step =
            if trial.record.target == 1 { "Seq Scan on orders" } else { "Index Scan using k on orders" };
        measured.plans = vec![plan(step)];
    }
    let summary = summary(&run);
    let of = |margin: f64| {
        let mut compared = compare::peers(&run, &summary);
        gate::judge(&mut compared, &summary, &summary, Criteria { slower: Some(margin), p99: None });
        compare::pull_request(&compared)
    };
    let wanted = "The plan of “browse” changed: Index Scan using k on orders → Seq Scan on orders (SELECT id FROM orders WHERE \
                  customer = 7)";
    assert_eq!(of(0.05).matches(wanted).count(), 1, "{}", of(0.05));
    // Of a gate that passed nothing is explained.
    assert!(!of(5.0).contains("The plan of"), "{}", of(5.0));
}

#[test]
fn another_machine_is_not_judged() {
    let base = run(usual, 0.01);
    let mut other = run(slow_reads, 0.01);
    other.header.machine.cpu = "Another CPU".to_owned();
    let compared = judged(&base, &other, 0.05);
    let found = &compared.gate.as_ref().unwrap().decided;
    assert_eq!((found.decision, found.slower, found.passed), (Decision::Undecided, 0, 0), "{found:?}");
    let text = compare::terminal(&compared, &terminal::Options::default());
    assert!(text.contains("processor differs") && text.contains("Another CPU"), "{text}");
}

#[test]
fn results_that_only_the_base_has_are_not_judged() {
    let base = run(usual, 0.01);
    let mut other = run(usual, 0.01);
    let cell = other.header.cells.iter().position(|cell| !cell.aa_control).unwrap();
    let reason = "no".to_owned();
    for trial in other.trials.iter_mut().filter(|trial| trial.cell == cell) {
        let kind = kurabe_core::ErrorKind::Server;
        trial.outcome = Outcome::Failed { kind, reason: reason.clone(), mismatches: 0 };
    }
    let found = judged(&base, &other, 0.05).gate.unwrap().decided;
    assert_eq!(found.decision, Decision::Undecided, "{found:?}");
    assert_eq!(found.not_judged, 2, "reads and writes of the cell: {found:?}");
    // What the base could not measure either says nothing of the second run.
    assert_eq!(judged(&other, &base, 0.05).gate.unwrap().decided.decision, Decision::Within);
    let fewer = Scenario {
        rounds: 8,
        noise: 0.01,
        rate: usual,
        compress: vec!["none"],
        layouts: vec!["blob"],
        ..Scenario::default()
    };
    let found = judged(&base, &of_any_start(fewer.run()), 0.05).gate.unwrap().decided;
    assert!(found.not_judged > 0 && found.decision == Decision::Undecided, "{found:?}");
}

#[test]
fn incomplete_run_is_not_judged() {
    let base = run(usual, 0.01);
    let mut stopped = run(slow_reads, 0.01);
    stopped.end = None;
    let found = judged(&base, &stopped, 0.05).gate.unwrap().decided;
    assert_eq!((found.decision, found.slower), (Decision::Undecided, 0), "{found:?}");
}

#[test]
fn junit_has_a_case_for_each_primary_result() {
    let compared = judged(&run(usual, 0.01), &run(slow_reads, 0.01), 0.05);
    let xml = compare::junit(&compared, "session");
    let gate = compared.gate.unwrap().decided;
    let all = gate.passed + gate.slower + gate.undecided + gate.not_judged;
    assert_eq!(xml.matches("<testcase ").count() as u32, all, "{xml}");
    assert_eq!(xml.matches("<failure ").count() as u32, gate.slower, "{xml}");
    assert!(
        xml.contains(&format!("failures=\"{}\"", gate.slower)) && xml.contains("kurabe.session"),
        "{xml}"
    );
}

#[test]
fn text_from_a_server_is_escaped_in_junit_and_markdown() {
    let mut base = run(usual, 0.01);
    base.header.targets[0].facts.engine = "a<b>&\"|`\u{1b}[31m".to_owned();
    let mut other = run(slow_reads, 0.01);
    other.header.targets[0].facts.engine.clone_from(&base.header.targets[0].facts.engine);
    let compared = judged(&base, &other, 0.05);
    for text in [compare::junit(&compared, "s"), compare::pull_request(&compared)] {
        assert!(!text.contains("a<b>") && !text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn comment_of_a_pull_request_names_decision_first() {
    let compared = judged(&run(usual, 0.01), &run(slow_reads, 0.01), 0.05);
    let text = compare::pull_request(&compared);
    let first = text.lines().find(|line| line.starts_with("- ")).unwrap();
    assert!(first.contains("gate failed"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows[2].ends_with("slower |") && rows.last().unwrap().ends_with("passed |"), "{text}");
    assert!(rows[2].contains("0.80×") && !text.contains("better in the second"), "{text}");
    let text = compare::terminal(&compared, &terminal::Options { width: 80, ..terminal::Options::default() });
    assert!(text.starts_with("• The gate failed") && text.lines().count() <= 20, "{text}");
    assert!(text.lines().any(|line| line.contains("0.80× (0.7") && line.ends_with("slower")), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn criteria_are_read_with_or_without_margins() {
    let parse = |text: &str| {
        Criteria::parse(text, 0.05, |share| {
            let number = share.trim_end_matches('%').parse::<f64>();
            number.map(|n| n / 100.0).map_err(|_| kurabe_core::Error::usage("no"))
        })
        .map(|criteria| (criteria.slower, criteria.p99))
    };
    for (text, wanted) in [
        ("slower", (Some(0.05), None)),
        ("slower:10%", (Some(0.1), None)),
        ("p99:20%", (None, Some(0.2))),
        ("slower:10%,p99", (Some(0.1), Some(0.05))),
    ] {
        assert_eq!(parse(text), Ok(wanted), "{text}");
    }
    for text in ["", "slower:", "faster", "slower:x", "slower 5%", "p99,p99:3%", "slower,"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn tail_latency_fails_a_gate_though_rates_are_equal() {
    let base = run(usual, 0.01);
    let mut slower = run(usual, 0.01);
    let mut times = kurabe_stats::Histogram::new();
    times.record_many(50_000, 900);
    times.record_many(9_000_000, 100);
    for trial in &mut slower.trials {
        if let (Outcome::Measured(measured), "read") = (&mut trial.outcome, trial.operation.as_str()) {
            measured.service = times.clone();
        }
    }
    let judged = |criteria: Criteria| {
        let (first, second) = (summary(&base), summary(&slower));
        let mut compared = compare::compare(&first, &second, &[]);
        gate::judge(&mut compared, &first, &second, criteria);
        compared
    };
    for (slower, p99) in [(None, Some(0.1)), (Some(0.05), Some(0.1)), (Some(0.05), None)] {
        let compared = judged(Criteria { slower, p99 });
        assert_eq!(compared.gate.as_ref().unwrap().decided.decision, Decision::Below);
        for row in compared.rows.iter().filter(|row| row.gate == Some(Decision::Below)) {
            assert_eq!((row.operation.as_str(), row.pair.metric.as_str()), ("read", "service p99"));
        }
        let rates = compared.rows.iter().filter(|row| row.primary && row.gate.is_some()).count();
        assert_eq!(rates > 0, slower.is_some(), "only what is named is judged");
        let text = compare::pull_request(&compared);
        assert!(text.contains("p99") && text.contains("slower |"), "{text}");
        // Second ÷ first of the times themselves, in every form.
        let slow = compared.rows.iter().find(|row| row.gate == Some(Decision::Below)).unwrap();
        let ratio = slow.of_values().unwrap();
        assert!(ratio.value > 1.0 && ratio.low.unwrap() > 1.0, "{slow:?}");
        let times = format!("second ÷ first is {:.3}", ratio.value);
        let xml = compare::junit(&compared, "session");
        assert!(xml.contains(&times) && xml.contains("), worse"), "{xml}");
        let row = text.lines().find(|line| line.contains("p99") && line.ends_with("slower |")).unwrap();
        assert!(row.contains("× (") && row.contains("| worse |"), "{row}");
        let advised =
            compared.findings.iter().any(|one| compared.sentence(one).contains("would let it pass"));
        assert!(!advised, "a gate that failed needs no other margin");
    }
}

#[test]
fn settings_that_differ_stand_on_top_and_with_durability_in_the_verdict() {
    let mut run = Scenario {
        rate: |at| usual(at) * if at.target == "sqlite" { 2.0 } else { 1.0 },
        targets: vec!["postgres", "sqlite"],
        rounds: 8,
        ..Scenario::default()
    }
    .run();
    let [fast, safe] = [1, 0].map(|at| run.header.targets[at].facts.clone());
    run.header.targets[1].facts = ServerFacts {
        durability: fast.durability,
        durability_settings: vec![Setting::new("synchronous_commit", "off"), Setting::new("fsync", "on")],
        settings: vec![Setting::new("page_size", "4096"), Setting::new("work_mem", "64MB")],
        ..safe
    };
    let summary = summary(&run);
    let options = terminal::Options { width: 80, ..terminal::Options::default() };
    let text = terminal::render(&summary, &options);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with("• Settings of"), "{text}");
    assert!(
        text.contains("synchronous_commit on against off, work_mem not reported against 64MB."),
        "{text}"
    );
    assert!(!text.contains("fsync on against"), "only what differs: {text}");
    let sentences = summary.findings.iter().map(|one| summary.sentence(one));
    let writes: Vec<String> = sentences.filter(|sentence| sentence.contains("Durability differs")).collect();
    assert!(!writes.is_empty());
    for sentence in writes {
        let both = ["(synchronous_commit off)", "(synchronous_commit on)"];
        assert!(both.iter().all(|one| sentence.contains(one)), "{sentence}");
    }
}
