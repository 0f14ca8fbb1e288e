//! `suites/mission.toml` names every experiment, and its runs are measured on the embedded database, smaller still.

use crate::support::Place;
use kurabe_experiments::registry::EXPERIMENTS;

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
