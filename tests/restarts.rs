//! Throwaway servers have a second instance for the A/A control; `--restarts` restarts both between blocks of rounds.

use crate::support::{Answer, Place, signal};
use kurabe_os::process::{self, Stat};
use kurabe_testbed::testing;
use std::collections::BTreeSet;
use std::fs;
use std::process::Child;
use std::time::Duration;

/// Short trials, one after the other.
const BRIEF: [&str; 7] = ["--interleave=off", "--requests", "300", "--records", "200", "--rounds", "4"];

/// The servers of this name that descend from a process.
fn servers_below(root: u32, name: &str) -> BTreeSet<u32> {
    // One that only prints its version does not listen.
    let listens = |pid: u32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("127.0.0.1"))
    };
    let is_one = |pid: &u32| Stat::of(*pid).is_some_and(|stat| stat.name == name) && listens(*pid);
    process::descendants(root).into_iter().filter(is_one).collect()
}

/// Monitors a run until its end: the servers that it had, and the maximum at a time.
pub(crate) fn watch(mut child: Child, name: &str) -> (Answer, BTreeSet<u32>, usize) {
    let (mut ever, mut most) = (BTreeSet::new(), 0);
    while child.try_wait().unwrap().is_none() {
        let now = servers_below(child.id(), name);
        most = most.max(now.len());
        ever.extend(now);
        std::thread::sleep(Duration::from_millis(3));
    }
    (Answer::at_end_of(child), ever, most)
}

#[test]
fn throwaway_server_has_two_instances_restarted_between_blocks() {
    let Some(_) = testing::server("memcached") else { return };
    for (restarts, servers) in [("0", 2), ("1", 4)] {
        let place = Place::that_starts_servers();
        let what = ["run", "point-read", "up:memcached", "--restarts", restarts];
        let what = [&what[..], &BRIEF].concat();
        let (answer, ever, most) = watch(place.spawn(&what), "memcached");
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_eq!((ever.len(), most), (servers, 2), "--restarts {restarts}: {ever:?}");
        let report = place.run(&["report", "--format", "json"]).json();
        let cells = report["cells"].as_array().unwrap();
        let second: Vec<bool> = cells.iter().map(|cell| cell["second_instance"] == true).collect();
        assert_eq!(second, [false, true], "{report:#}");
        for cell in cells {
            assert!(cell["status"] == "ok" && cell["rounds"] == 4, "{cell:#}");
            // Two blocks are too few for a verdict of any start.
            assert!(cell["noise_floor"].is_number(), "{cell:#}");
        }
        let recorded = report["spec"].get("restarts").and_then(serde_json::Value::as_u64);
        assert_eq!(recorded.unwrap_or(0).to_string(), restarts);
    }
}

#[test]
fn stopped_run_with_restarts_resumes_in_its_blocks() {
    let Some(_) = testing::server("redis") else { return };
    let place = Place::new();
    let what = ["run", "point-read", "up:redis", "sqlite:", "--restarts", "2", "--duration", "60ms"];
    let (child, _) = place.spawn_to_trial(&[&what[..], &["--records", "200", "--rounds", "12"]].concat(), 6);
    place.go_on(6);
    signal(&child, "-INT");
    Answer::at_end_of(child).exit_code(130);
    let resumed = place.run(&["run", "--resume", "last", "--verbose"]).success();
    let report = place.run(&["report", "--format", "json"]).json();
    assert_eq!((&report["complete"], &report["spec"]["restarts"]), (&true.into(), &2.into()), "{report:#}");
    // Interleaved: the first round of each block is one of continuous trials.
    assert_eq!(report["verdicts"][0]["rounds"], 9, "{report:#}");
    let said = resumed.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("in 3 blocks with restarts of throwaway servers in between"), "{said}");
    // Both have a second instance: a server another process, a temporary database another file.
    assert!(said.contains("Redis on a second instance"), "{said}");
    assert!(said.contains("SQLite on a second instance"), "{said}");
}
