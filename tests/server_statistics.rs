//! Server-reported statistics of a trial: counters, compared with direct readings around the same clients; and
//! session samples, compared with injected waits.

mod sessions;

use crate::servers::common::sql;
use crate::support::{Answer, Place, beside_each_other, with};
use kurabe_core::axis::Cell;
use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::experiment::Dataset;
use kurabe_core::observation::{Endpoint, MonitorGuard, Observation, Observer};
use kurabe_core::operation::Operation;
use kurabe_core::run::{Measurement, Outcome, RunSpec};
use kurabe_core::stats_probe::{Counter, CounterScope, WaitState};
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, NewRun};
use kurabe_experiments::registry;
use kurabe_observe::Monitor;
use kurabe_report::attribution::Bottleneck;
use kurabe_testbed::testing::{self, Lease};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Actions when all clients wait at the gate, and when they have ended.
type Hand = dyn Fn() -> u64 + Send + Sync;

/// Reads a counter directly, within the interval in which the tool reads it itself.
struct ByHand {
    monitor: Monitor,
    hand: Arc<Hand>,
    read: Arc<Mutex<Vec<u64>>>,
}

struct Reading {
    guard: Box<dyn MonitorGuard>,
    hand: Arc<Hand>,
    read: Arc<Mutex<Vec<u64>>>,
}

impl Observer for ByHand {
    fn begin(&self, endpoint: &Endpoint, probe_port: Option<u16>) -> Box<dyn MonitorGuard> {
        self.read.lock().unwrap().push((self.hand)());
        let guard = self.monitor.begin(endpoint, probe_port);
        Box::new(Reading { guard, hand: Arc::clone(&self.hand), read: Arc::clone(&self.read) })
    }
}

impl MonitorGuard for Reading {
    fn end(self: Box<Self>) -> Observation {
        let seen = self.guard.end();
        self.read.lock().unwrap().push((self.hand)());
        seen
    }
}

fn spec(experiment: &str, clients: u64, requests: Option<u64>) -> RunSpec {
    let info = registry::find(experiment).unwrap().info;
    let clients = clients.to_string();
    let operation = info.operations[0].name.to_owned();
    RunSpec {
        axes: info.baseline(&[("clients", &clients)]).unwrap().alone(),
        requests: requests.map(|n| (operation.clone(), n)).into_iter().collect::<BTreeMap<_, _>>(),
        operations: vec![operation],
        duration_ns: requests.is_none().then_some(1_200_000_000),
        seed: 5,
        // Each record is changed at most once in a trial, warm-up included.
        records: Some(requests.map_or(8, |requests| 2 * requests)),
        ..RunSpec::new(experiment, ["target"])
    }
}

/// Makes one trial, with direct readings around its measured phase.
fn trial(url: &str, spec: &RunSpec, hand: Arc<Hand>) -> (Measurement, u64) {
    let experiment = registry::find(&spec.experiment).unwrap();
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap();
    let facts = driver.describe().unwrap();
    let mut targets = [Target::new("target", driver, facts)];
    let mut plan = Plan::new(experiment, spec, &targets).unwrap();
    plan.allow_rewrites();
    plan.retain(|cell| !cell.aa_control);
    let read = Arc::new(Mutex::new(Vec::new()));
    let observer = ByHand { monitor: Monitor::new(), hand, read: Arc::clone(&read) };
    let conditions = Conditions { observer: Some(&observer), ..Conditions::default() };
    let run = kurabe_engine::run(NewRun::new(plan), &mut targets, &conditions, &mut ()).unwrap();
    let outcome = run.unwrap().trials.pop().map(|trial| trial.outcome);
    let Some(Outcome::Measured(measured)) = outcome else { panic!("{outcome:?}") };
    let read = read.lock().unwrap();
    (*measured, read[1] - read[0])
}

fn counted(measured: &Measurement, what: Counter) -> u64 {
    let engine = measured.observed.as_ref().unwrap().engine.as_ref().unwrap();
    engine.of(what).unwrap_or_else(|| panic!("{what:?} is not reported: {engine:?}")).value
}

/// The log volume that a server's background tasks may write between our reading and the direct one, which is within
/// ours: a few records. All writes of the clients lie within both.
const BACKGROUND: u64 = 8 * 1024;

/// The bytes of log that the tool recorded, compared with direct readings around the same writes.
fn log_agrees(server: Lease, statement: &'static str) {
    let url = server.url().to_owned();
    let server = Arc::new(Mutex::new(server));
    let asked = Arc::clone(&server);
    if sql(&server.lock().unwrap(), "", statement).is_none() {
        return;
    }
    let hand = move || {
        let told = sql(&asked.lock().unwrap(), "", statement).unwrap();
        told.split_whitespace().last().unwrap().parse().unwrap()
    };
    let hand: Arc<Hand> = Arc::new(hand);
    let spec = RunSpec { records: Some(400), ..spec("point-write", 2, Some(300)) };
    let mut all = Vec::new();
    // Background tasks, such as a purge after an earlier test, may write more now and then: not in three trials.
    for _ in 0..3 {
        let (measured, by_hand) = trial(&url, &spec, Arc::clone(&hand));
        let told = counted(&measured, Counter::LogBytes);
        assert!(by_hand > 300 * 20, "300 updates wrote {by_hand} bytes of log");
        assert!(told >= by_hand, "reported {told}, read directly {by_hand}");
        if told - by_hand <= BACKGROUND {
            return;
        }
        all.push((told, by_hand));
    }
    panic!("reported and read directly: {all:?}");
}

#[test]
fn write_volume_equals_server_counter_on_mysql() {
    let Some(server) = testing::server("mysql") else { return };
    log_agrees(server, "SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'");
}

#[test]
fn write_volume_equals_server_counter_on_mariadb() {
    let Some(server) = testing::server("mariadb") else { return };
    log_agrees(server, "SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'");
}

#[test]
fn write_volume_equals_wal_position_on_postgres() {
    let Some(server) = testing::server("postgres") else { return };
    log_agrees(server, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
}

/// A process's I/O counters include other tests unless it runs alone.
#[test]
fn write_volume_equals_log_growth_on_sqlite() {
    if testing::rerun_input().is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        testing::rerun(&mut alone, "server_statistics::write_volume_equals_log_growth_on_sqlite", "");
        Answer::of(&alone.output().unwrap()).success().out_has("1 passed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("said.db");
    let log = folder.path().join("said.db-wal");
    // Without checkpoints the log only grows, and nothing is written elsewhere.
    let url = format!("sqlite:{}?wal_autocheckpoint=0", file.display());
    let hand = move || std::fs::metadata(&log).unwrap().len();
    let spec = RunSpec { records: Some(400), ..spec("point-write", 1, Some(300)) };
    let (measured, by_hand) = trial(&url, &spec, Arc::new(hand));
    assert!(by_hand >= 300 * 4_096, "{by_hand}");
    assert_eq!(counted(&measured, Counter::FileBytes), by_hand);
}

#[test]
fn rows_examined_include_only_clients() {
    for engine in ["mysql", "mariadb", "postgres"] {
        let Some(server) = testing::server(engine) else { continue };
        // A planner with statistics reads a table of one page completely.
        let spec = RunSpec { records: Some(3_000), ..spec("point-read", 2, Some(400)) };
        let (measured, _) = trial(server.url(), &spec, Arc::new(|| 0));
        let engine_use = measured.observed.as_ref().unwrap().engine.as_ref().unwrap();
        let rows = engine_use.of(Counter::RowsExamined).unwrap();
        // A point read examines one row; counts include the warm-up if sessions report only when they end.
        let operations = measured.completed + if rows.warmup { measured.warmup } else { 0 };
        assert_eq!(rows.value, operations, "{engine}: {engine_use:?}");
        // Its digests, which count per database, lose some executions.
        assert!(engine != "mysql" || rows.scope == CounterScope::Clients, "{rows:?}");
    }
}

#[test]
fn statements_are_reported_per_call_by_pg_stat_statements() {
    let preload =
        |options: kurabe_testbed::StartOptions| options.set("shared_preload_libraries", "pg_stat_statements");
    let Some(plain) = testing::server("postgres") else { return };
    let available = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_stat_statements'";
    if sql(&plain, "", available).is_none_or(|count| count.trim() == "0") {
        testing::skipped("pg_stat_statements is not installed");
        return;
    }
    let (measured, _) = trial(plain.url(), &spec("point-read", 2, Some(300)), Arc::new(|| 0));
    let untold = &measured.observed.as_ref().unwrap().engine.as_ref().unwrap().unavailable;
    assert!(untold.iter().any(|one| one.what == "statements" && one.why.contains("pg_stat_statements")));
    let Some(server) = testing::server_with("postgres", preload) else { return };
    sql(&server, "", "CREATE EXTENSION pg_stat_statements");
    let (measured, _) = trial(server.url(), &spec("point-read", 2, Some(300)), Arc::new(|| 0));
    let engine = measured.observed.as_ref().unwrap().engine.as_ref().unwrap();
    let read = engine.statements.iter().find(|one| one.text.contains("kurabe_0_point_read"));
    let read = read.unwrap_or_else(|| panic!("{engine:?}"));
    assert_eq!((read.calls, read.rows), (300, 300), "{engine:?}");
    assert_eq!(engine.of(Counter::RowsReturned).unwrap().value, 300, "{engine:?}");
}

#[test]
fn statistics_without_permission_are_unavailable_and_run_continues() {
    let Some(server) = testing::server("mysql") else { return };
    let grant = "CREATE USER plain@localhost IDENTIFIED BY 'word'; GRANT ALL ON kurabe.* TO plain@localhost; \
                 CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'word'; GRANT ALL ON kurabe.* TO plain@'127.0.0.1'";
    if sql(&server, "", grant).is_none() {
        return;
    }
    let place = Place::new();
    let socket = server.socket().unwrap().display().to_string();
    let url = with("mysql://plain:word@localhost/kurabe", &format!("socket={socket}"));
    let args =
        ["run", "point-write", &url, "--requests", "200", "--records", "500", "--rounds", "1", "--no-html"];
    let answer = place.run(&args).success();
    let report = place.report();
    let engine = &report["cells"][0]["observed"][0]["engine"];
    let untold = engine["unavailable"].as_array().unwrap();
    let why = |what: &str| {
        let found = untold.iter().find(|one| one["what"] == what);
        found.map_or_else(String::new, |one| one["why"].as_str().unwrap().to_owned())
    };
    assert!(why("binary log bytes").contains("REPLICATION CLIENT"), "{engine}");
    assert!(engine["not_sampled"].as_str().unwrap().contains("PROCESS"), "{engine}");
    // Every user may read the global status.
    assert!(
        engine["counts"].as_array().unwrap().iter().any(|count| count["what"] == "log-bytes"),
        "{engine}"
    );
    assert!(!answer.out.contains("word@") && !report.to_string().contains("plain:word"), "{answer:?}");
}

#[test]
fn every_report_format_contains_server_statistics() {
    let place = Place::new();
    let args = [
        "run", "session", "sqlite:", "--payload", "1k", "--layout", "blob", "--compress", "none",
        "--requests",
    ];
    place
        .run(&[&args[..], &["100", "--records", "20", "--rounds", "2", "-v"]].concat())
        .success()
        .out_has("Reported by the server on writes")
        .out_has("files/op");
    let report = place.report();
    let write = report["cells"].as_array().unwrap().iter().find(|cell| cell["operation"] == "write").unwrap();
    let counter = &write["counters"][0];
    assert_eq!((&counter["what"], &counter["scope"]), (&"file-bytes".into(), &"process".into()), "{write}");
    assert!(counter["per_operation"].as_f64().unwrap() >= 1_000.0, "{counter}");
    for format in ["md", "html"] {
        let file = place.at(format);
        let answer = place.run(&["report", "--format", format, "--output", &file]);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        assert!(text.contains("Reported by the server"), "{format}: {text}");
        assert!(text.contains("it has no server sessions"), "{format}: {text}");
    }
    let csv = place.run(&["report", "--format", "csv"]).out;
    assert!(csv.lines().next().unwrap().contains("log_bytes_per_op"), "{csv}");
}
