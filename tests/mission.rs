//! `suites/mission.toml` names every experiment. Its runs are measured on every engine, smaller still.

use crate::support::Place;
use kurabe_experiments::registry::EXPERIMENTS;
use kurabe_testbed::testing;

const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/mission.toml");

#[test]
fn suite_of_all_experiments_has_each_of_them() {
    let text = std::fs::read_to_string(SUITE).unwrap();
    for experiment in EXPERIMENTS {
        let line = format!("experiment = \"{}\"", experiment.info().name);
        assert!(text.lines().any(|known| known == line), "{line} is not in {SUITE}");
    }
}

#[test]
fn runs_of_the_suite_are_measured_on_sqlite() {
    let place = Place::new();
    let runs = "session,kv,connect,bind,bulk,webapp,link,waits,footprint,point-read";
    let small = ["--only", runs, "--duration", "20ms", "--rows", "100", "--no-html", "--json", "-"];
    let answer = place.run(&[&["run", "-f", SUITE, "sqlite:"], &small[..]].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
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

/// A run on SQLite, PostgreSQL, MariaDB, MySQL, Redis, memcached, MongoDB, CouchDB, Firebird and a listener: measured,
/// partly, not available, or not a target of this run.
const STATES: [(&str, &str); 17] = [
    ("session", "mmmmmpppmn"),
    ("kv", "mmmmmmmmmn"),
    ("connect", "mmmmmmmmmn"),
    ("bind", "mmmmnnnnmn"),
    ("bulk", "pmmmppmppn"),
    ("webapp", "mmmmnnmmmn"),
    ("link", "ppppnnpppn"),
    ("net", "nnnnnnnnnm"),
    ("waits", "mmmmmmmmmn"),
    ("estimate", "nmmmnnnnnn"),
    ("cpus", "nmmmmmmmmn"),
    ("reload", "mmmmnnpnpn"),
    ("copy", "mmmmnnnnmn"),
    ("cache-aside", "mmmmmmmmmn"),
    ("footprint", "mmmmmmmmmn"),
    ("point-read", "mmmmmmmmmn"),
    ("sysbench-read-only", "mmmm------"),
];

#[test]
fn every_run_of_the_suite_is_measured_on_every_engine_that_has_it() {
    let place = Place::new();
    let small = ["--duration", "50ms", "--payload", "1k", "--clients", "2", "--no-html", "--json", "-"];
    let answer = place.run(&[&["run", "-f", SUITE], &small[..]].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let table = answer.json();
    let made = table["runs"].as_array().unwrap();
    assert_eq!(made.len(), STATES.len());
    for (run, (name, expected)) in made.iter().zip(STATES) {
        assert_eq!(run["name"], name);
        let mut states = ["-"; 10];
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
            assert_eq!(states.concat(), expected, "{name}: {run:#}");
        }
    }
}
