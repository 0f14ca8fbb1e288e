//! Reports conform to the published schema.

// As siblings: the full tier has this file and a complete validator beside each other too.
use super::common::others::{CACHE_ASIDE, FOOTPRINT, WEBAPP, cache_aside, footprint, webapp};
use super::common::{
    At, INFO, Pattern, Scenario, bottlenecks, by_cpus, interleaved, measurements, observed, open_loop,
    troubled,
};
use super::json_schema::Validator;
use kurabe_core::custom::{CustomFile, CustomWorkload, Language};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::facts::{LOGIN, Setting};
use kurabe_core::fleet::{AgentRecord, AgentUse, FleetUse};
use kurabe_core::metric::{Better, CONNECT, Metric, MetricValue, Points, Unit};
use kurabe_core::query_plan::QueryPlan;
use kurabe_core::run::{Outcome, PublishingClause, Resumption, Run, Until};
use kurabe_report::{View, analyse, json};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const SCHEMA: &str = include_str!("../../../docs/schema/report.schema.json");

fn validator() -> Validator {
    Validator::new(SCHEMA)
}

/// A run with disturbed, repeated, unsteady and late trials, and such as filled their server, on targets with the same name.
fn disturbed() -> Run {
    let targets = vec!["sqlite", "postgres", "memcached"];
    let rate = |at: At<'_>| if at.target == "memcached" { 9_500.0 } else { 10_000.0 };
    let mut run = Scenario { targets, rate, noise: 0.08, ..Scenario::default() }.run();
    for (trial, measured) in measurements(&mut run) {
        let falls = trial.operation == "write";
        let early = |n: u64| if n < 6 { 500 } else { 1_000 + n % 2 };
        measured.windows = (0..20).map(|n| if falls { 2_000 - 60 * n } else { early(n) }).collect();
        let mut seen = observed(Pattern::RoundTrip, measured);
        seen.host.cpus[0].steal_ns = 300_000_000;
        measured.observed = Some(Box::new(seen));
        (measured.exhausted, measured.memory_full) = (falls.then_some(100), falls);
    }
    run.trials[0].rerun_reason = Some("other processes used 40 %".to_owned());
    // A server that stands still for a while.
    let (_, measured) = measurements(&mut run).next().unwrap();
    measured.elapsed_ns *= 10;
    run
}

/// A run resumed by another version, with a trial that used all its records.
fn resumed() -> Run {
    let mut run = Scenario::default().run();
    let (machine, targets) = (run.header.machine.clone(), run.header.targets.clone());
    let kurabe = "0.3.0".to_owned();
    run.resumptions =
        vec![Resumption { began: 9, trials_before: 4, max_rounds: None, kurabe, machine, targets }];
    if let Outcome::Measured(measured) = &mut run.trials[0].outcome {
        measured.exhausted = Some(100);
    }
    run
}

#[allow(clippy::too_many_lines, reason = "a list of reports")]
fn reports() -> Vec<Value> {
    let empty = {
        let mut run = Scenario::default().run();
        run.trials.clear();
        run.end = None;
        run
    };
    let restricted = {
        let mut run = Scenario::default().run();
        let text = |text: &str| text.to_owned();
        run.header.warnings = vec![text("the machine was busy")];
        run.header.targets[0].publishing =
            Some(PublishingClause { name: text("a"), says: text("b"), source: text("c") });
        run.header.targets[0].facts.settings.push(Setting::new(LOGIN, "scram-sha-256"));
        for (_, measured) in measurements(&mut run) {
            measured.metrics.push(MetricValue::new(CONNECT.name, Unit::Nanoseconds, 1e5));
        }
        run
    };
    let cached_info = ExperimentInfo {
        metrics: vec![Metric::new("hit ratio", Unit::Share, Better::Higher, "answered").primary()].leak(),
        ..INFO
    };
    let cached = {
        let mut run = Scenario::default().run();
        run.header.spec.cache = Some("memcached://cache.example".to_owned());
        for (_, measured) in measurements(&mut run) {
            measured.metrics.push(MetricValue::new("hit ratio", Unit::Share, 0.9));
            measured.points = vec![Points { metric: "estimated".to_owned(), points: vec![(1.0, 2.0)] }];
        }
        run
    };
    let without_baseline = {
        let mut run = Scenario {
            payloads: vec![1_000],
            layouts: vec!["blob"],
            compress: vec!["none"],
            ..Scenario::default()
        }
        .run();
        run.header.cells[1].aa_control = false;
        run.header.cells[1].axes = kurabe_core::axis::Cell::default();
        run.trials.retain(|trial| trial.cell == 1);
        run
    };
    let equal = {
        let mut run = Scenario { payloads: vec![1_000], layouts: vec!["blob"], ..Scenario::default() }.run();
        run.header.spec.until = Some(Until { margin: 0.9, max_rounds: 9, budget_ns: None });
        run
    };
    let tuned = {
        let mut run = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
        for target in &mut run.header.targets {
            "PostgreSQL".clone_into(&mut target.facts.engine);
        }
        run
    };
    let uneven = {
        let targets = vec!["sqlite", "postgres", "memcached"];
        let rate = |at: At<'_>| if at.target == "memcached" { 1_000.0 } else { 10_000.0 };
        Scenario { targets, rate, ..Scenario::default() }.run()
    };
    let late = {
        let mut run = open_loop();
        for (_, measured) in measurements(&mut run) {
            let open = measured.open.as_mut().unwrap();
            (0..900).for_each(|_| open.lag.record(90_000_000));
        }
        run
    };
    let scaled = {
        let payloads = vec![1, 2];
        let mut run = by_cpus(
            Scenario { payloads, layouts: vec!["blob"], compress: vec!["none"], ..Scenario::default() }.run(),
        );
        for (_, measured) in measurements(&mut run) {
            measured.observed = Some(Box::new(observed(Pattern::ClientFull, measured)));
        }
        run
    };
    let unfinished = {
        let mut run = Scenario::default().run();
        run.end = None;
        run
    };
    let fewer_agents = {
        let mut run = Scenario::default().run();
        let [first, second] = ["one", "two"].map(str::to_owned);
        run.header.agents = [&first, &second]
            .map(|name| AgentRecord {
                name: name.clone(),
                host: name.clone(),
                cpus: 2,
                system: "Linux".to_owned(),
                labels: BTreeMap::new(),
            })
            .to_vec();
        for (_, measured) in measurements(&mut run) {
            measured.clients = 2;
            let agents = vec![AgentUse { name: first.clone(), clients: 2, ..AgentUse::default() }];
            measured.fleet = Some(Box::new(FleetUse { agents, ..FleetUse::default() }));
        }
        run
    };
    let queries = {
        let mut run = Scenario::default().run();
        let files = vec![CustomFile { name: "a.sql".to_owned(), text: "SELECT 1".to_owned(), weight: 1 }];
        run.header.spec.custom = Some(CustomWorkload::new(Language::Query, files, BTreeMap::new(), false));
        for (_, measured) in measurements(&mut run) {
            measured.metrics.push(MetricValue::new("rows", Unit::Count, 3.0));
            measured.plans = vec![QueryPlan {
                statement: "a.sql".to_owned(),
                text: "SELECT 1".to_owned(),
                lines: vec!["-> Result  (rows=1)".to_owned(), "  Buffers: shared hit=3 read=1".to_owned()],
            }];
        }
        run
    };
    let runs = vec![
        restricted,
        resumed(),
        unfinished,
        Scenario::default().run(),
        Scenario { rounds: 1, ..Scenario::default() }.run(),
        troubled(),
        open_loop(),
        bottlenecks(),
        interleaved(120),
        empty,
        disturbed(),
        equal,
        uneven,
        late,
        scaled,
        without_baseline,
        fewer_agents,
        queries,
    ];
    let left_out = View { leave_out: vec!["sqlite".to_owned()], ..View::default() };
    let others = [
        left_out.analyse(&troubled(), Some(&INFO)).unwrap(),
        analyse(&webapp(), Some(&WEBAPP)),
        analyse(&footprint(), Some(&FOOTPRINT)),
        analyse(&cache_aside(), Some(&CACHE_ASIDE)),
        analyse(&cached, Some(&cached_info)),
        analyse(&tuned, Some(&INFO)),
    ];
    runs.iter()
        .flat_map(|run| [analyse(run, Some(&INFO)), analyse(run, None)])
        .chain(others)
        .map(|summary| serde_json::from_str(&json::render(&summary)).unwrap())
        .collect()
}

#[test]
fn every_report_follows_the_published_schema() {
    let validator = validator();
    for report in reports() {
        assert_eq!(validator.error(&report), None);
    }
}

#[test]
fn the_schema_names_every_member_that_is_reported() {
    // Each member is required and no others are allowed, so that a change of the types requires one of the schema.
    let validator = validator();
    let mut report = reports().remove(0);
    let mut bound: Value =
        serde_json::from_str(&json::render(&analyse(&bottlenecks(), Some(&INFO)))).unwrap();
    for report in [&mut report, &mut bound] {
        // The first of each list is looked at.
        for list in ["cells", "verdicts", "findings"] {
            report[list].as_array_mut().unwrap().truncate(1);
        }
        // Runs of earlier versions have none.
        report["spec"].as_object_mut().unwrap().remove("full_blocks");
    }
    hold(
        &validator,
        &bound,
        &[
            "/cells/0/attribution",
            "/cells/0/attribution/split",
            "/cells/0/attribution/ground",
            "/cells/0/observed/0/host/cpus/0",
        ],
    );
    let pointers = [
        "", "/machine", "/spec", "/targets/0", "/targets/0/publishing", "/cells/0",
        "/cells/0/ops_per_second", "/cells/0/latency_us", "/cells/0/verified", "/verdicts/0",
    ];
    hold(&validator, &report, &pointers);
}

#[test]
fn each_kind_of_finding_is_described_with_all_its_members() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let kinds = schema["$defs"]["finding"]["oneOf"].as_array().unwrap();
    let mut described: BTreeSet<&str> =
        kinds.iter().map(|kind| kind["properties"]["kind"]["const"].as_str().unwrap()).collect();
    let validator = validator();
    let mut seen = BTreeSet::new();
    for report in reports() {
        for finding in report["findings"].as_array().unwrap() {
            let kind = finding["kind"].as_str().unwrap().to_owned();
            described.remove(kind.as_str());
            if seen.insert(kind) {
                // With this finding alone, since each member of it takes a look at the whole.
                let mut alone = report.clone();
                alone["findings"] = Value::from(vec![finding.clone()]);
                for others in ["cells", "verdicts"] {
                    alone[others] = Value::from(Vec::<Value>::new());
                }
                hold(&validator, &alone, &["/findings/0"]);
            }
        }
    }
    assert!(described.is_empty(), "no report has {described:?}");
}

/// Asserts that each member of these objects is required, and that no others are allowed.
fn hold(validator: &Validator, report: &Value, pointers: &[&str]) {
    assert_eq!(validator.error(report), None);
    for pointer in pointers {
        let members: Vec<String> =
            report.pointer(pointer).unwrap().as_object().unwrap().keys().cloned().collect();
        for member in members {
            let mut less = report.clone();
            less.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(&member);
            assert!(!validator.is_valid(&less), "without {pointer}/{member} it is still valid");
        }
        let mut more = report.clone();
        more.pointer_mut(pointer).unwrap()["surplus"] = Value::from(1);
        assert!(!validator.is_valid(&more), "with {pointer}/surplus it is still valid");
    }
}
