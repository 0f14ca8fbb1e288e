//! The answers to claims about fixed runs, and their table, page and JSON. `KURABE_BLESS=1` accepts changes of the golden
//! files.

use crate::common::{INFO, Pattern, Scenario, measurements, observed};
use crate::golden::golden;
use kurabe_core::axis::AxisValue;
use kurabe_core::error::ErrorKind;
use kurabe_core::metric::Unit;
use kurabe_core::observation::{CpuUse, HostUse, Observation, ServerUse};
use kurabe_core::run::{MachineFacts, Outcome, Run, Until};
use kurabe_report::claim::{
    About, Card, Held, Judgement, Part, Range, Reason, Report, Side, Test, json, judge, metrics, page,
    terminal, together,
};
use kurabe_report::terminal::Options;
use kurabe_report::{Language, analyse};
use kurabe_stats::{Decision, Interval};
use proptest::prelude::*;

fn side(target: Option<usize>, axes: &[(&str, &str)]) -> Side {
    let axes = axes.iter().map(|(name, value)| ((*name).to_owned(), AxisValue::Word((*value).to_owned())));
    Side { target, axes: axes.collect() }
}

fn test(subject: Side, baseline: Option<Side>, at_least: Option<f64>, at_most: Option<f64>) -> Test {
    Test {
        operation: Some("write".to_owned()),
        metric: "throughput".to_owned(),
        unit: Unit::PerSecond,
        subject,
        baseline,
        claimed: Range { at_least, at_most, tolerance: 0.0 },
    }
}

/// SQLite ÷ PostgreSQL of the scenario is 4 at 1 kB.
fn targets(at_least: Option<f64>, at_most: Option<f64>) -> Test {
    test(side(Some(0), &[]), Some(side(Some(1), &[])), at_least, at_most)
}

fn two() -> Scenario {
    Scenario {
        targets: vec!["sqlite", "postgres"],
        payloads: vec![1_000],
        layouts: vec!["blob", "rows"],
        compress: vec!["none"],
        ..Scenario::default()
    }
}

fn answers(run: &Run, tests: &[Test]) -> Vec<Part> {
    judge(run, &analyse(run, Some(&INFO)), tests)
}

#[test]
fn server_that_stands_in_for_another_decides_nothing_of_it() {
    let mut run = two().run();
    run.header.spec.targets = ["up:mongodb", "stack:php/curl?db=up:couchdb"].map(str::to_owned).into();
    let of = |engines: [&str; 2]| {
        let mut run = run.clone();
        for (target, engine) in run.header.targets.iter_mut().zip(engines) {
            target.facts.engine = engine.to_owned();
        }
        answers(&run, &[targets(Some(2.0), None)]).remove(0)
    };
    assert_eq!(of(["MongoDB", "CouchDB over HTTP"]).answer, Decision::Within);
    for engines in [["FerretDB", "CouchDB over HTTP"], ["MongoDB", "PouchDB Server over HTTP"]] {
        let part = of(engines);
        assert_eq!(part.answer, Decision::NotTestable, "{part:?}");
        assert!(part.why.unwrap().to_string().contains("was started in the place of"));
    }
    // A user's own claim about it is answered.
    run.header.spec.targets[0] = "mongodb://127.0.0.1:27017".to_owned();
    run.header.targets[0].facts.engine = "FerretDB".to_owned();
    assert_eq!(answers(&run, &[targets(Some(2.0), None)])[0].answer, Decision::Within);
}

#[test]
fn ratio_of_two_targets_is_answered_for_each_value_of_other_axes() {
    let run = two().run();
    let parts = answers(&run, &[targets(Some(2.0), None), targets(Some(8.0), None)]);
    // Two layouts for each test.
    let found: Vec<Decision> = parts.iter().map(|part| part.answer).collect();
    assert_eq!(found, [Decision::Within, Decision::Within, Decision::Below, Decision::Below]);
    for part in &parts {
        let value = part.found.unwrap();
        assert!((3.0..5.0).contains(&value.value), "{part:?}");
        assert!(value.low.unwrap() < value.value && value.value < value.high.unwrap());
        // Writes of different durability are compared, and the report says so.
        assert!(part.notes.iter().any(|note| note.to_string().contains("durability differs")), "{part:?}");
    }
    assert!(parts[0].what.contains("layout blob") && parts[1].what.contains("layout rows"), "{parts:?}");
}

#[test]
fn value_of_one_cell_is_claimed_in_its_unit() {
    let run = two().run();
    let rate = 1e6 / 32.0;
    let within = test(side(Some(0), &[("layout", "blob")]), None, Some(rate * 0.9), Some(rate * 1.1));
    let below = test(side(Some(0), &[("layout", "blob")]), None, None, Some(rate * 0.5));
    let parts = answers(&run, &[within, below]);
    assert_eq!(parts.iter().map(|part| part.answer).collect::<Vec<_>>(), [Decision::Within, Decision::Above]);
    assert_eq!(parts[0].unit, Unit::PerSecond);
}

#[test]
fn beside_other_load_a_rate_is_a_lower_bound_and_a_ratio_says_so() {
    let mut run = two().run();
    let cpus = vec![CpuUse { cpu: 0, busy_ns: 900_000_000, steal_ns: 0 }];
    let host = HostUse { cpus, ..HostUse::default() };
    let server = ServerUse::InClient;
    let busy = Observation { wall_ns: 1_000_000_000, server, host, ..Observation::default() };
    for (_, measured) in measurements(&mut run) {
        measured.observed = Some(Box::new(busy.clone()));
    }
    let ratio = answers(&run, &[targets(Some(2.0), None)]).remove(0);
    assert!(ratio.answer == Decision::Within && ratio.notes.contains(&Reason::Disturbed), "{ratio:?}");
    let rate = |least, most| answers(&run, &[test(side(Some(0), &[]), None, least, most)]).remove(0);
    let more = rate(None, Some(1e9));
    assert_eq!((more.answer, more.why), (Decision::Undecided, Some(Reason::Disturbed)));
    assert_eq!(rate(Some(1.0), None).answer, Decision::Within);
    assert_eq!(rate(None, Some(1.0)).answer, Decision::Above);
}

#[test]
fn one_round_decides_nothing_and_more_could() {
    let run = Scenario { rounds: 1, ..two() }.run();
    for part in answers(&run, &[targets(Some(2.0), None)]) {
        assert_eq!((part.answer, part.open), (Decision::Undecided, true), "{part:?}");
        assert!(part.why.unwrap().to_string().contains("one round"));
    }
}

#[test]
fn run_that_is_not_complete_is_not_judged() {
    let mut run = two().run();
    run.end = None;
    for part in answers(&run, &[targets(Some(2.0), None)]) {
        assert_eq!((part.answer, part.found), (Decision::Undecided, None), "{part:?}");
        assert!(part.why.unwrap().to_string().contains("not complete"));
    }
    // It may have been stopped before its first trial.
    run.trials.clear();
    for part in answers(&run, &[targets(Some(2.0), None)]) {
        assert_eq!((part.answer, part.failed), (Decision::Undecided, false), "{part:?}");
    }
}

#[test]
fn interval_is_wider_at_a_later_analysis_and_for_more_tests() {
    let width = |run: &Run, tests: &[Test]| {
        let found = answers(run, tests)[0].found.unwrap();
        found.high.unwrap() / found.low.unwrap()
    };
    let one = [test(
        side(Some(0), &[("layout", "blob")]),
        Some(side(Some(0), &[("layout", "rows")])),
        Some(1.0),
        None,
    )];
    let run = two().run();
    let mut later = run.clone();
    // Its seven rounds are the third analysis.
    later.header.spec.rounds = 3;
    later.header.spec.until = Some(Until { margin: 0.05, max_rounds: 100, budget_ns: None });
    assert!(width(&later, &one) > width(&run, &one));
    let several: Vec<Test> = std::iter::repeat_n(one[0].clone(), 20).collect();
    assert!(width(&run, &several) > width(&run, &one));
}

#[test]
fn failed_trial_is_undecided_and_unavailable_cell_is_not_testable() {
    let mut run = two().run();
    let reason = "row 7 differs".to_owned();
    run.trials[0].outcome = Outcome::Failed { kind: ErrorKind::Mismatch, reason, mismatches: 1 };
    let failed = test(side(Some(0), &[("layout", "blob")]), None, Some(1.0), None);
    let parts = answers(&run, &[failed]);
    assert!(parts[0].failed && parts[0].answer == Decision::Undecided && !parts[0].open, "{parts:?}");
    assert!(parts[0].why.as_ref().unwrap().to_string().contains("row 7 differs"));

    let mut run = two().run();
    let lacking = run.header.cells.iter().position(|cell| cell.target == 1).unwrap();
    run.header.cells[lacking].unavailable = Some("it has no such layout".to_owned());
    run.trials.retain(|trial| trial.cell != lacking);
    let parts = answers(&run, &[targets(Some(2.0), None)]);
    let found: Vec<Decision> = parts.iter().map(|part| part.answer).collect();
    assert_eq!(found, [Decision::NotTestable, Decision::Within]);
    assert!(parts[0].why.as_ref().unwrap().to_string().contains("no such layout"), "{parts:?}");
    assert_eq!(
        Judgement::of(&run, &analyse(&run, Some(&INFO)), &[targets(Some(2.0), None)], Vec::new()).answer,
        Decision::NotTestable,
        "half a claim is another one"
    );
}

#[test]
fn saturated_client_never_decides_what_its_server_could_still_change() {
    let full = |target: usize| {
        let mut run = two().run();
        for (trial, measured) in measurements(&mut run) {
            let own = trial.record.target == target;
            let pattern = if own { Pattern::ClientFull } else { Pattern::ServerThreadFull };
            measured.observed = Some(Box::new(observed(pattern, measured)));
        }
        run
    };
    // The faster side is a lower bound: the ratio of 4 is at least as large.
    for (range, answer) in [
        ((Some(2.0), None), Decision::Within),
        ((None, Some(2.0)), Decision::Above),
        ((Some(8.0), None), Decision::Undecided),
        ((None, Some(8.0)), Decision::Undecided),
    ] {
        let parts = answers(&full(0), &[targets(range.0, range.1)]);
        assert_eq!(parts[0].answer, answer, "{range:?}: {parts:?}");
        assert!(
            parts[0].notes.iter().any(|note| note.to_string().contains("client was saturated")),
            "{parts:?}"
        );
        // No number of rounds would change that.
        assert!(!parts[0].open, "{parts:?}");
    }
    // The slower side is one: the ratio is at most as large.
    for (range, answer) in [
        ((Some(8.0), None), Decision::Below),
        ((None, Some(8.0)), Decision::Within),
        ((Some(2.0), None), Decision::Undecided),
    ] {
        assert_eq!(answers(&full(1), &[targets(range.0, range.1)])[0].answer, answer, "{range:?}");
    }
}

#[test]
fn counters_are_metrics_per_operation_and_per_byte_stored() {
    let mut run = crate::common::bottlenecks();
    for cell in &mut run.header.cells {
        cell.stored_bytes = Some(500);
    }
    let names: Vec<String> = metrics(&INFO).into_iter().map(|(name, _)| name).collect();
    let of = |metric: &str| {
        assert!(names.iter().any(|name| name == metric), "{metric}");
        let each = Test {
            metric: metric.to_owned(),
            unit: Unit::Ratio,
            ..test(side(None, &[]), None, Some(1e-9), None)
        };
        let parts = answers(&run, &[each]);
        parts.into_iter().filter_map(|part| part.found).map(|found| found.value).collect::<Vec<f64>>()
    };
    let (each, stored) = (of("log bytes per operation"), of("log bytes per byte stored"));
    assert!(!each.is_empty() && each.len() == stored.len(), "{each:?} {stored:?}");
    for (each, stored) in each.iter().zip(stored) {
        assert!((each / 500.0 - stored).abs() <= stored * 1e-6, "{each} {stored}");
    }
}

/// A report with each kind of answer.
fn report() -> Report {
    let run = two().run();
    let about =
        |id: &str, claim: &str| About { id: id.to_owned(), claim: claim.to_owned(), ..About::default() };
    let of = |tests: &[Test]| Judgement::of(&run, &analyse(&run, Some(&INFO)), tests, Vec::new());
    let published = About {
        year: Some(2007),
        source: Some("a driver of 2007".to_owned()),
        published: Some("136 : 796 s".to_owned()),
        fault: Some("durability <differs>".to_owned()),
        ..about("s1", "SQLite writes sessions 2 to 6 times as fast")
    };
    let mut six = targets(Some(2.0), Some(6.0));
    six.claimed.tolerance = 0.25;
    let lacking = Part::not_testable("oracle:", &six, "it needs an Oracle Database");
    let open = test(
        side(Some(0), &[("layout", "rows")]),
        Some(side(Some(0), &[("layout", "blob")])),
        Some(1.0),
        None,
    );
    let equal = Judgement {
        answer: Decision::Undecided,
        ..of(&[Test { operation: Some("read".to_owned()), ..open }])
    };
    let cards = vec![
        Card::new(
            published,
            None,
            Judgement { tests: [of(&[six]).tests, vec![lacking]].concat(), ..of(&[]) },
            None,
        ),
        Card::new(
            about("s2", "SQLite writes ten times as fast"),
            Some(Held { run: Some("20260101-000000-session".to_owned()) }),
            of(&[targets(Some(10.0), None)]),
            Some(Judgement::without_run(
                Decision::NotTestable,
                "Kurabe has no throwaway server 'mysql@5.5' here",
            )),
        ),
        Card::new(about("s3", "Rows are read faster"), None, equal, None),
        Card::new(
            about("w1", "Through PHP it is slow"),
            None,
            Judgement::without_run(Decision::NotTestable, "it needs PHP applications"),
            None,
        ),
    ];
    let machine = MachineFacts {
        cpu: "A CPU".to_owned(),
        cpus: 4,
        memory_bytes: 8 << 30,
        system: "Linux 6.1".to_owned(),
    };
    let mut report = Report::new("0.1.0", 1_772_374_000, machine, true, cards);
    // The first card is put together from two judgements.
    report.claims[0].answer = together(report.claims[0].now.tests.iter().map(|part| part.answer));
    report.claims[0].now.answer = report.claims[0].answer;
    report
}

#[test]
fn table_and_page_match_golden_files() {
    let report = report();
    golden(
        "claims.110.txt",
        &terminal(&report, &Options { width: 110, ..Options::default() }, Language::English),
    );
    let page = page(&report, Language::English);
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    golden("claims.html", &format!("{head}<style></style>{rest}\n").replace("><", ">\n<"));
}

#[test]
fn page_needs_no_network_and_escapes_texts() {
    let page = page(&report(), Language::English);
    assert!(page.contains("durability &lt;differs&gt;") && !page.contains("<differs>"));
    assert!(page.contains("default-src 'none'") && !page.contains("<script"));
    assert!(!page.contains("src=") && !page.contains("http://") && !page.contains("https://"), "{page}");
    assert_eq!(page.matches("<section class=\"card ").count(), 4);
}

#[test]
fn json_has_each_claim_with_its_answer_interval_and_reason() {
    let made: serde_json::Value = serde_json::from_str(&json(&report())).unwrap();
    assert_eq!(made["kurabe-claims"], 1);
    let claims = made["claims"].as_array().unwrap();
    let answers: Vec<&str> = claims.iter().map(|claim| claim["answer"].as_str().unwrap()).collect();
    assert_eq!(answers, ["not-testable", "does-not-hold", "undecided", "not-testable"]);
    assert_eq!((&claims[1]["no_longer_holds"], &claims[0]["no_longer_holds"]), (&true.into(), &false.into()));
    let test = &claims[0]["now"]["tests"][0];
    assert!(test["low"].as_f64().unwrap() < test["value"].as_f64().unwrap(), "{test}");
    assert_eq!(claims[0]["published"], "136 : 796 s");
    assert!(claims[3]["now"]["why"].as_str().unwrap().contains("PHP"));
}

#[test]
fn claim_that_held_and_is_undecided_now_is_no_regression() {
    let judgement = |answer| Judgement::without_run(answer, "");
    let card = |answer, held: bool| {
        Card::new(About::default(), held.then_some(Held { run: None }), judgement(answer), None)
            .no_longer_holds
    };
    assert!(card(Decision::Below, true));
    assert!(!card(Decision::Below, false));
    for answer in [Decision::Within, Decision::Undecided, Decision::NotTestable] {
        assert!(!card(answer, true), "{answer:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the noise, the number of rounds and the range: the answer is the one of the interval that is shown.
    #[test]
    fn answer_of_a_run_never_contradicts_the_interval_it_shows(
        noise in 0.0_f64..0.4, rounds in 1_u32..8, at_least in proptest::option::of(0.2_f64..20.0),
        more in proptest::option::of(1.0_f64..4.0), tolerance in 0.0_f64..0.5, by_target in any::<bool>(),
    ) {
        let at_most = more.map(|more| at_least.unwrap_or(0.5) * more);
        let run = Scenario { rounds, noise, ..two() }.run();
        let mut one = if by_target {
            targets(at_least, at_most)
        } else {
            test(side(None, &[("layout", "rows")]), Some(side(None, &[("layout", "blob")])), at_least, at_most)
        };
        one.claimed.tolerance = tolerance;
        let parts = answers(&run, &[one]);
        prop_assert_eq!(parts.len(), 2);
        for part in parts {
            let found = part.found.unwrap();
            let Some((low, high)) = found.low.zip(found.high) else {
                prop_assert_eq!(part.answer, Decision::Undecided);
                continue;
            };
            prop_assert!(low <= found.value && found.value <= high);
            prop_assert_eq!(part.answer, part.claimed.answer(Interval { low, high }));
            prop_assert_eq!(part.why.is_some(), part.answer == Decision::Undecided);
        }
    }
}
