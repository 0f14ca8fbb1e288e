//! `suites/mission.toml` names every experiment. Its runs are measured on every engine, smaller still: the conformance of
//! experiments.

use crate::servers::common::{cells, skip};
use crate::support::{Answer, Place};
use kurabe_experiments::registry::EXPERIMENTS;
use kurabe_testbed::testing;
use serde_json::Value;
use std::collections::BTreeMap;

const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/mission.toml");

#[test]
fn suite_of_all_experiments_has_each_of_them() {
    let text = std::fs::read_to_string(SUITE).unwrap();
    for experiment in EXPERIMENTS {
        let line = format!("experiment = \"{}\"", experiment.info.name);
        assert!(text.lines().any(|known| known == line), "{line} is not in {SUITE}");
    }
}

#[test]
fn runs_of_the_suite_are_measured_on_sqlite() {
    let place = Place::new();
    let runs = "session,kv,connect,bind,bulk,webapp,link,waits,footprint,point-read";
    let small = ["--only", runs, "--duration", "20ms", "--rows", "100", "--no-html", "--export-json", "-"];
    let answer = place.run(&[&["run", "-f", SUITE, "sqlite:"], &small[..]].concat()).success();
    let table = answer.json();
    let made = table["runs"].as_array().unwrap();
    let names: Vec<&str> = made.iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), runs);
    for run in made {
        let cells = run["cells"].as_array().unwrap();
        // It has no round trips of so many rows, and no links but ATTACH.
        let partly = ["bulk", "link"].contains(&run["name"].as_str().unwrap());
        assert_eq!(
            (cells.len(), &cells[0]["state"]),
            (1, &if partly { "partly" } else { "measured" }.into()),
            "{run:#}"
        );
    }
}

/// A run on SQLite, PostgreSQL, MariaDB, MySQL, Redis, memcached, MongoDB, CouchDB and a listener: measured,
/// partly, not available, or not a target of this run.
const STATES: [(&str, &str); 17] = [
    ("session", "mmmmppppn"),
    ("kv", "mmmmmmmmn"),
    ("connect", "mmmmmmmmn"),
    ("bind", "mmmmnnnnn"),
    ("bulk", "pmmmppmpn"),
    ("webapp", "mmmmnnmmn"),
    ("link", "ppppnnppn"),
    ("net", "nnnnnnnnm"),
    ("waits", "mmmmmmmmn"),
    ("estimate", "nmmmnnnnn"),
    ("cpus", "nmmmmmmmn"),
    ("reload", "mmmmnnpnn"),
    ("copy", "mmmmnnnnn"),
    ("cache-aside", "mmmmmmmmn"),
    ("footprint", "mmmmmmmmn"),
    ("point-read", "mmmmmmmmn"),
    ("sysbench-read-only", "mmmm-----"),
];

/// The suite is measured in parts, by tests that may run at the same time: in [`STATES`], the ends of the parts.
const PARTS: [usize; 3] = [6, 12, STATES.len()];

/// Some of the suite's runs, on every engine that can be started here.
struct Recorded {
    answer: Answer,
    /// Reports by the names of the suite's runs.
    reports: BTreeMap<String, Value>,
}

/// The runs of a part of the suite.
fn runs_of(part: usize) -> &'static [(&'static str, &'static str)] {
    &STATES[part.checked_sub(1).map_or(0, |before| PARTS[before])..PARTS[part]]
}

/// Measures a part of the suite.
fn record(part: usize) -> Recorded {
    let place = Place::new();
    let only = runs_of(part).iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
    let small = ["--requests", "100", "--clients", "2", "--no-html", "--export-json", "-"];
    let small = [&["run", "-f", SUITE, "--only", &only], &small[..]].concat();
    // One value of what says nothing about engines, where a run of the part has it.
    let one = [
        "--payload 1k",
        "--data uniform --order key",
        "--payload 1k --connections 20 --table plain --cache-size 50",
    ][part];
    let answer = place.run(&[&small[..], &one.split(' ').collect::<Vec<_>>()].concat());
    let table: Value = serde_json::from_str(&answer.out).unwrap_or_default();
    let runs = table["runs"].as_array().cloned().unwrap_or_default();
    let report = |run: &Value| {
        let report = place.run(&["report", run["run"].as_str()?, "--format", "json"]);
        Some((run["name"].as_str()?.to_owned(), serde_json::from_str(&report.out).ok()?))
    };
    let reports = runs.iter().filter_map(report).collect();
    Recorded { answer, reports }
}

impl Recorded {
    /// The cells of one of the suite's runs, each with each operation.
    fn cells(&self, run: &str) -> &[Value] {
        let report = self.reports.get(run).unwrap_or_else(|| panic!("{run}: {:?}", self.answer));
        cells(report)
    }

    /// The cells of one of the suite's runs on an engine; empty if that cannot be started here.
    fn on(&self, run: &str, engine: &str) -> Vec<&Value> {
        let cells: Vec<&Value> = self.cells(run).iter().filter(|cell| cell["target"] == engine).collect();
        if cells.is_empty()
            || cells.iter().any(|cell| cell["reason"].to_string().contains("is not installed"))
        {
            skip(&format!("{engine} is not installed"));
            return Vec::new();
        }
        cells
    }
}

#[test]
fn first_runs_of_the_suite_are_measured_on_every_engine_that_has_them() {
    let recorded = assert_states(0);
    key_value_pairs_are_read_and_added_on_every_engine(&recorded);
    web_application_is_verified_on_every_engine_or_the_reason_is_reported(&recorded);
}

#[test]
fn next_runs_of_the_suite_are_measured_on_every_engine_that_has_them() {
    let _ = assert_states(1);
}

#[test]
fn last_runs_of_the_suite_are_measured_on_every_engine_that_has_them() {
    let _ = assert_states(2);
}

fn assert_states(part: usize) -> Recorded {
    let recorded = record(part);
    let answer = &recorded.answer;
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let table = answer.json();
    let made = table["runs"].as_array().unwrap();
    assert_eq!(made.len(), runs_of(part).len());
    for (run, (name, expected)) in made.iter().zip(runs_of(part)) {
        assert_eq!(run["name"], *name);
        let mut states = ["-"; 9];
        for cell in run["cells"].as_array().unwrap() {
            states[cell["target"].as_u64().unwrap() as usize] = match cell["state"].as_str().unwrap() {
                "measured" => "m",
                "partly" => "p",
                "not-available" => "n",
                _ => panic!("{name}: {cell:#}"),
            };
        }
        // Without a server, more is not available.
        if testing::required() {
            assert_eq!(states.concat(), *expected, "{name}: {run:#}");
        }
    }
    recorded
}

fn key_value_pairs_are_read_and_added_on_every_engine(recorded: &Recorded) {
    for engine in ["sqlite", "postgres", "mysql", "mariadb", "memcached", "redis", "mongodb", "couchdb"] {
        for cell in recorded.on("kv", engine) {
            assert_eq!(cell["status"], "ok", "{engine}: {cell:#}");
            let verified = &cell["verified"];
            assert_eq!(verified["mismatches"], 0, "{cell:#}");
            let of_all = if cell["operation"] == "write" { "writes" } else { "answers" };
            assert!(verified[of_all].as_u64() > Some(0), "{engine}: {cell:#}");
        }
    }
}

fn web_application_is_verified_on_every_engine_or_the_reason_is_reported(recorded: &Recorded) {
    for engine in ["sqlite", "mysql", "mariadb", "postgres", "mongodb", "couchdb"] {
        for cell in recorded.on("webapp", engine) {
            assert_eq!(cell["status"], "ok", "{engine}: {cell:#}");
            let verified = &cell["verified"];
            // Each request read its user and wrote its line; lines and changed users were read back.
            let of = |what: &str| verified[what].as_u64().unwrap();
            assert!(of("answers") > 0 && of("writes") > 0 && of("mismatches") == 0, "{cell:#}");
            assert!(of("read_back") >= of("writes") && verified["how"] == "read-back-all", "{cell:#}");
        }
    }
    for (engine, why) in
        [("redis", "Redis finds rows by the whole key"), ("memcached", "memcached finds a value")]
    {
        for cell in recorded.on("webapp", engine) {
            assert_eq!(cell["status"], "unavailable", "{engine}: {cell:#}");
            assert!(cell["reason"].as_str().unwrap().contains(why), "{cell:#}");
        }
    }
}
