//! `suites/mission.toml`, smaller still: every experiment on every engine that is installed here. It judges what was
//! measured where, and no times.

use crate::servers::common::tell;
use crate::support::{Answer, Place};
use kurabe_experiments::registry::EXPERIMENTS;
use serde_json::Value;
use std::collections::BTreeSet;

const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/mission.toml");

/// Each run with the targets on which all of it is measured, and those on which a part of it is. On all others it is not
/// available.
const MEASURED: [(&str, &[&str], &[&str]); 16] = [
    (
        "session",
        &["sqlite", "postgres", "mariadb", "mysql", "redis", "mongodb", "firebird"],
        &["memcached", "couchdb"],
    ),
    ("kv", &ALL, &[]),
    ("connect", &ALL, &[]),
    ("bind", &["sqlite", "postgres", "mariadb", "mysql", "firebird"], &[]),
    ("bulk", &["postgres", "mariadb", "mysql", "mongodb"], &["sqlite", "redis", "couchdb", "firebird"]),
    ("webapp", &["sqlite", "postgres", "mariadb", "mysql", "mongodb", "couchdb", "firebird"], &[]),
    ("link", &[], &["sqlite", "postgres", "mariadb", "mysql", "mongodb", "couchdb", "firebird"]),
    ("net", &["tcp"], &[]),
    ("waits", &ALL, &[]),
    ("estimate", &["postgres", "mariadb", "mysql"], &[]),
    ("cpus", &["postgres", "mariadb", "mysql", "redis", "memcached", "mongodb", "couchdb", "firebird"], &[]),
    ("reload", &["sqlite", "postgres", "mariadb", "mysql"], &["mongodb", "firebird"]),
    ("cache-aside", &ALL, &[]),
    ("footprint", &ALL, &[]),
    ("point-read", &ALL, &[]),
    ("sysbench-read-only", &["sqlite", "postgres", "mariadb", "mysql", "firebird"], &[]),
];

/// Every database of the suite.
const ALL: [&str; 9] =
    ["sqlite", "postgres", "mariadb", "mysql", "redis", "memcached", "mongodb", "couchdb", "firebird"];

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// The targets of a run with this state.
fn with_state(table: &Value, run: &Value, state: &str) -> BTreeSet<String> {
    let cells = run["cells"].as_array().unwrap().iter().filter(|cell| cell["state"] == state);
    cells
        .map(|cell| table["targets"][cell["target"].as_u64().unwrap() as usize].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_experiment_is_measured_wherever_it_is_available() {
    let installed: BTreeSet<&str> = kurabe_testbed::available()
        .into_iter()
        .filter_map(|(engine, found)| found.is_ok().then_some(engine))
        .chain(["sqlite"])
        .collect();
    let place = Place::new();
    let file = place.home().join("table.json");
    let servers = place.home().join("servers");
    std::fs::create_dir(&servers).unwrap();
    let options = ["--no-html", "--duration", "30ms", "--rows", "100", "--clients", "2", "--payload", "1k"];
    let args = [&["run", "-f", SUITE, "--json", file.to_str().unwrap()], &options[..]].concat();
    let mut command = place.command(&args);
    let answer = Answer::of(&command.env("KURABE_TMP", &servers).output().unwrap());
    let table: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(answer.code, Some(0), "{}\n{}", answer.out, answer.err);
    let runs = table["runs"].as_array().unwrap();
    for experiment in EXPERIMENTS {
        let name = experiment.info().name;
        assert!(runs.iter().any(|run| run["experiment"] == name), "{name} is not in the suite");
    }
    assert_eq!(runs.len(), MEASURED.len());
    for (run, (name, whole, part)) in runs.iter().zip(MEASURED) {
        assert_eq!(run["name"], name);
        let here =
            |names: &[&'static str]| set(names.iter().copied().filter(|name| installed.contains(name)));
        assert_eq!(with_state(&table, run, "measured"), here(whole), "{name}: {run:#}");
        assert_eq!(with_state(&table, run, "partly"), here(part), "{name}: {run:#}");
        let missing = run["cells"].as_array().unwrap().iter().filter(|cell| cell["state"] != "measured");
        for cell in missing {
            assert!(!cell["reasons"].as_array().unwrap().is_empty(), "{name}: {cell:#}");
        }
    }
    for engine in ALL.iter().filter(|engine| !installed.contains(*engine)) {
        tell(&format!("{engine} is not installed"));
    }
    // Servers, their data and their caches are gone.
    assert_eq!(std::fs::read_dir(servers).unwrap().count(), 0);
}
