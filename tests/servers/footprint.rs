//! The cost of connections on the server: `footprint` on every engine.

use super::common::{SERVERS, assert_verified, cells, installed, skip};
use crate::support::{Answer, Place};
use kurabe_testbed::testing;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// More connections than helper processes of the server that start or end meanwhile.
const MANY: f64 = 40.0;
/// The maximum number of such helpers.
const HELPERS: f64 = 4.0;
/// A process for each connection, a thread for each, and neither.
const FEW: [&str; 4] = ["postgres", "mysql", "memcached", "redis"];

fn figure(cell: &Value, name: &str) -> f64 {
    let figures = cell["metrics"]
        .as_array()
        .or(cell["figures"].as_array())
        .unwrap_or_else(|| panic!("no metrics: {cell:#}"));
    let found = figures.iter().find(|figure| figure["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {cell:#}"))["value"].as_f64().unwrap()
}

fn run(place: &Place, target: &str, rest: &[&str]) -> Vec<Value> {
    let brief = ["--requests", "400", "--rounds", "1", "--no-html"];
    place.run(&[&["run", "footprint", target], rest, &brief].concat()).success();
    let report = place.report();
    let all = cells(&report).iter().filter(|cell| cell["aa_control"] == false).cloned();
    all.inspect(assert_verified).collect()
}

#[test]
fn connection_has_process_on_postgres_thread_on_mysql_and_neither_on_caches() {
    // One of each way: `mission.rs` has each engine.
    for engine in installed().into_iter().filter(|engine| FEW.contains(engine)) {
        // Only a throwaway server of the run is restarted between trials: MySQL keeps threads for new connections.
        let place = Place::new();
        let found = run(&place, &format!("up:{engine}"), &["--connections", "40"]);
        assert_eq!(found.len(), 2, "idle and active");
        for cell in &found {
            let (processes, threads) = (figure(cell, "processes added"), figure(cell, "threads added"));
            let near = |found: f64, wanted: f64| (found - wanted).abs() <= HELPERS;
            let right = match engine {
                "postgres" => near(processes, MANY) && near(threads, MANY),
                "mysql" => processes == 0.0 && near(threads, MANY),
                _ => processes == 0.0 && near(threads, 0.0),
            };
            assert!(right, "{engine}: {processes} processes, {threads} threads: {cell:#}");
            assert!(figure(cell, "processes") >= 1.0 && figure(cell, "memory") > 1e6, "{cell:#}");
            let (added, each) = (figure(cell, "added"), figure(cell, "each"));
            assert!((added / MANY - each).abs() < 1.0, "{cell:#}");
            if engine == "postgres" {
                // The private memory of a process is within this range; shared buffers do not count.
                assert!((100e3..20e6).contains(&each), "{cell:#}");
            }
        }
        let said = place.run(&["report", "last"]).out;
        assert!(said.contains("Memory per connection of reads: "), "{engine}: {said}");
    }
}

#[test]
fn hundreds_of_connections_need_no_option_and_do_not_affect_later_rounds() {
    for engine in installed().into_iter().filter(|engine| FEW.contains(engine) && *engine != "redis") {
        let place = Place::new();
        // In the second round the server has had them already, unless it was restarted.
        let rest = ["--connections", "1,300", "--state", "idle", "--rounds", "2"];
        let answer = place.run(
            &[&["run", "footprint", &format!("up:{engine}")], &rest[..], &["--requests", "100", "--no-html"]]
                .concat(),
        );
        assert_eq!(answer.code, Some(0), "{engine}: {answer:?}");
        let runs =
            place.path().join(std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().file_name());
        let text = std::fs::read_to_string(runs.join("run.jsonl")).unwrap();
        let added: Vec<f64> = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["trial"]["cell"] == 1)
            .map(|line| figure(&line["trial"]["outcome"]["measured"], "added"))
            .collect();
        assert_eq!(added.len(), 2, "{engine}: {added:?}");
        let (least, most) = (added[0].min(added[1]), added[0].max(added[1]));
        assert!(least > 30e3 && most < 3.0 * least, "{engine}: {added:?}");
    }
}

#[test]
fn embedded_database_is_measured_in_client_process() {
    let place = Place::new();
    let found = run(&place, "sqlite:", &["--connections", "50", "--state", "active"]);
    assert!((figure(&found[0], "threads added") - 50.0).abs() <= HELPERS, "{:#}", found[0]);
    let said = place.run(&["report", "last"]).out;
    assert!(said.contains("Threads per connection of reads: 1"), "{said}");
}

#[test]
fn server_of_other_user_is_unavailable_with_reason() {
    let Some(server) = testing::server(SERVERS[4]) else { return };
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" {
        skip("only root can become another user");
        return;
    }
    let place = Place::new();
    for folder in [place.path(), place.home(), place.path().parent().unwrap()] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    // A copy, because the built program may be in a directory that only root can enter.
    let program = place.home().join("kurabe");
    std::fs::copy(crate::support::KURABE, &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    let brief = ["--connections", "2", "--rounds", "1", "--requests", "10"];
    command.args(["run", "footprint", server.url()]).args(brief);
    place.configure(&mut command);
    let Ok(output) = command.current_dir("/").output() else {
        skip("there is no program setpriv");
        return;
    };
    let answer = Answer::of(&output);
    assert!(answer.err.contains("nothing can be measured"), "{answer:?}");
    assert!(answer.err.contains("\n  redis "), "{answer:?}");
    assert!(answer.err.contains("the memory of the server cannot be read"), "{answer:?}");
    assert!(answer.code != Some(0) && answer.code != Some(1), "{answer:?}");
}
