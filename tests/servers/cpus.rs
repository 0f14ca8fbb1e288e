//! Servers that are given processors: `cpus`, and the axis of this name of every loop.

use super::common::{assert_verified, cells, installed, skip};
use crate::support::{Answer, Place, metric, piped};
use kurabe_testbed::testing;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

const BRIEF: [&str; 9] =
    ["--clients", "4", "--records", "500", "--requests", "2000", "--rounds", "2", "--no-html"];

/// The processors on which a process of a cell's trials could run.
fn processors(cell: &Value, side: &str) -> Vec<u64> {
    let observed = cell["observed"][0].pointer(side).unwrap_or_else(|| panic!("not observed: {cell:#}"));
    observed["cpus"].as_array().unwrap().iter().map(|cpu| cpu.as_u64().unwrap()).collect()
}

/// The engines to test that are installed: threads, processes, a single thread.
fn engines() -> Vec<&'static str> {
    installed().into_iter().filter(|engine| ["mariadb", "postgres", "redis"].contains(engine)).collect()
}

fn several_processors() -> bool {
    available_parallelism().unwrap().get() > 1 || skip("there is one processor")
}

#[test]
fn server_keeps_to_its_processors_and_clients_to_others() {
    if !several_processors() {
        return;
    }
    for engine in engines() {
        let place = Place::new();
        let target = format!("up:{engine}");
        let rest = ["--cpus", "1,4096", "--cpu-placement", "spread,pinned"];
        place.run(&[&["run", "cpus", &target], &rest[..], &BRIEF].concat()).success();
        let report = place.report();
        // Two placements, one of them again as A/A control, and two cells without enough processors.
        assert_eq!(cells(&report).len(), 5);
        for cell in cells(&report) {
            if cell["axes"]["cpus"] == 4_096 {
                assert_eq!(cell["status"], "unavailable", "{cell:#}");
                assert!(cell["reason"].as_str().unwrap().contains("leaves none for the client"), "{cell:#}");
                continue;
            }
            assert_verified(cell);
            let (server, client) = (processors(cell, "/server/seen"), processors(cell, "/client"));
            assert_eq!(server.len(), 1, "{engine}: {cell:#}");
            assert!(!client.contains(&server[0]), "{engine}: {cell:#}");
            let is_least = cell["attribution"]["bottleneck"] == "client-cpu";
            let expected = (!is_least && cell["aa_control"] == false).then_some(1.0);
            assert_eq!(metric(cell, "efficiency"), expected, "{engine}: {cell:#}");
        }
    }
}

#[test]
fn shared_processors_are_those_of_both_sides() {
    let all = available_parallelism().unwrap().get();
    let place = Place::new();
    let Some(engine) = engines().pop() else { return };
    let (target, count) = (format!("up:{engine}"), all.to_string());
    let rest = ["--cpus", &count, "--cpu-placement", "shared"];
    place.run(&[&["run", "cpus", &target], &rest[..], &BRIEF].concat()).success();
    for cell in cells(&place.report()) {
        assert_verified(cell);
        assert_eq!(processors(cell, "/server/seen").len(), all, "{cell:#}");
        // Client threads are observed among those of the program.
        assert_eq!(processors(cell, "/client").len(), all, "{cell:#}");
    }
}

#[test]
fn any_loop_is_scaled_and_server_of_others_is_not() {
    if !several_processors() {
        return;
    }
    let Some(engine) = engines().pop() else { return };
    let place = Place::new();
    let writes = ["run", "point-write", &format!("up:{engine}"), "--cpus", "1"];
    // A trial changes each record at most once.
    let rest = ["--clients", "4", "--records", "1000", "--requests", "500", "--rounds", "2", "--no-html"];
    place.run(&[&writes[..], &rest].concat()).success();
    for cell in cells(&place.report()) {
        assert_verified(cell);
        assert_eq!(processors(cell, "/server/seen").len(), 1, "{cell:#}");
    }
    let Some(server) = testing::server(engine) else { return };
    let answer = place.run(&["run", "point-read", server.url(), "--cpus", "1"]).exit_code(3);
    assert!(answer.err.contains("only throwaway servers"), "{answer:?}");
}

/// The processes that live in a directory.
fn inhabitants(base: &Path) -> Vec<u32> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let inside = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(base));
    fs::read_dir("/proc").unwrap().flatten().filter_map(number).filter(inside).collect()
}

#[test]
fn killed_server_fails_trials_with_reason_and_leaves_nothing() {
    if !several_processors() {
        return;
    }
    let Some(engine) = engines().pop() else { return };
    let place = Place::new();
    let base = tempfile::tempdir().unwrap();
    fs::set_permissions(base.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let base = base.path().canonicalize().unwrap();
    let target = format!("up:{engine}");
    let args = ["run", "cpus", &target, "--cpus", "1", "--duration", "200ms", "--rounds", "40", "--no-html"];
    let child = piped(place.command(&args).env("KURABE_TMP", &base));
    place.wait_for_trials(2);
    for pid in inhabitants(&base) {
        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
    Answer::at_end_of(child).exit_code(4);
    for cell in cells(&place.report()) {
        assert!(cell["status"] == "failed" && !cell["reason"].as_str().unwrap().is_empty(), "{cell:#}");
    }
    assert!(inhabitants(&base).is_empty() && fs::read_dir(&base).unwrap().next().is_none());
}
