//! Clients that share threads, on real servers: answers are verified, and faults fail a trial as they do on threads of
//! their own.

mod shared;

use crate::servers::common::sql;
use crate::support::{Answer, Place, eventually, metric, signal};
use crate::webapp::held::connections_to;
use kurabe_os::process::Stat;
use kurabe_testbed::{Server, testing};
use serde_json::Value;
use shared::{NATIVE, every_answer_is_verified, measured, point};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

#[test]
fn many_clients_on_few_threads_have_every_answer_verified() {
    for engine in NATIVE {
        let Some(server) = testing::server(engine) else { continue };
        let few = &["--requests", "600", "--rounds", "1"][..];
        every_answer_is_verified("point-read", server.url(), 64, few);
        every_answer_is_verified("point-write", server.url(), 64, few);
    }
}

#[test]
fn open_loop_on_few_threads_has_every_answer_verified() {
    let Some(server) = testing::server("postgres") else { return };
    let open = ["--rate", "2000", "--duration", "400ms", "--rounds", "1"];
    every_answer_is_verified("point-read", server.url(), 64, &open);
}

#[test]
fn pools_connections_per_request_and_slices_work_on_shared_threads() {
    // The substitute for CouchDB takes milliseconds for a request.
    for engine in NATIVE.into_iter().chain(["couchdb"]) {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let args = ["run", "connect", server.url(), "--clients", "24", "--pool", "5", "--requests", "240"];
        let rest = ["--records", "200", "--rounds", "3", "--threads", "2", "--no-html"];
        place.run(&[&args[..], &rest].concat()).success();
        let trials = measured(&place);
        assert!(trials.iter().all(|trial| trial["threads"] == 2), "{engine}");
        assert!(trials.iter().any(|trial| trial["slices"].as_u64() > Some(0)), "{engine}: none in slices");
        assert!(trials.iter().any(|trial| metric(trial, "wait").is_some()), "{engine}: no pool");
        assert!(trials.iter().any(|trial| metric(trial, "connect").is_some()), "{engine}: none per request");
    }
}

#[test]
fn threads_are_shared_by_default_where_sessions_can() {
    let Some(server) = testing::server("redis") else { return };
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    let threads = |url: &str, clients: u64, rest: &[&str]| {
        let place = Place::new();
        let clients = clients.to_string();
        let fixed = ["--requests", "200", "--rounds", "1"];
        place.run(&point("point-read", url, &clients, &[&fixed[..], rest].concat())).success();
        measured(&place)[0]["threads"].as_u64().unwrap_or(0)
    };
    assert_eq!(threads(server.url(), cpus, &[]), 0);
    assert_eq!(threads(server.url(), 4 * cpus, &[]), cpus);
    assert_eq!(threads(server.url(), 4 * cpus, &["--threads", "per-client"]), 0);
    assert_eq!(threads(server.url(), 1, &["--threads", "1"]), 1);
    assert_eq!(threads("sqlite:", 4 * cpus, &[]), 0);
}

#[test]
fn killed_server_fails_trial_of_shared_threads_with_its_reason() {
    for engine in NATIVE {
        let Some(server) = testing::own_server(engine) else { continue };
        let place = Place::new();
        let rest = ["--duration", "60s", "--rounds", "1", "--threads", "1"];
        let child = place.spawn(&point("point-read", server.url(), "32", &rest));
        under_load(&child, &server, 32);
        server.kill_hard().unwrap();
        let killed = Instant::now();
        let answer = Answer::at_end_of(child);
        assert!(killed.elapsed() < Duration::from_secs(50), "{engine}: it took {:?}", killed.elapsed());
        assert_eq!(answer.code, Some(4), "{engine}: {answer:?}");
        let report = place.report();
        let reason = |cell: &Value| cell["reason"].as_str().unwrap_or_default().to_owned();
        let reasons: Vec<String> = report["cells"].as_array().unwrap().iter().map(reason).collect();
        // The trial that was running lost its connections; a later one finds no server.
        assert!(reasons.iter().all(|reason| !reason.is_empty()), "{engine}: {reasons:?}");
        assert!(reasons.iter().any(|reason| reason.contains("connection")), "{engine}: {reasons:?}");
    }
}

/// Waits until all clients of a run are connected.
fn under_load(child: &Child, server: &Server, clients: usize) {
    let connected = || (connections_to(child.id(), server) >= clients).then_some(());
    eventually(120, connected).expect("the clients did not connect");
}

/// Waits until a process has used this much more processor time, in hundredths of a second.
fn works(child: &Child, more: u64) {
    let ticks = || Stat::of(child.id()).map_or(0, |stat| stat.ticks);
    let before = ticks();
    eventually(120, || (ticks() >= before + more).then_some(())).expect("the clients did not work");
}

#[test]
fn ctrl_c_ends_a_trial_of_shared_threads() {
    for engine in ["postgres", "memcached"] {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let rest = ["--duration", "120s", "--rounds", "1", "--threads", "2"];
        let child = place.spawn(&point("point-read", server.url(), "32", &rest));
        under_load(&child, &server, 32);
        let asked = Instant::now();
        signal(&child, "-INT");
        let answer = Answer::at_end_of(child);
        assert_eq!(answer.code, Some(130), "{engine}: {answer:?}");
        assert!(asked.elapsed() < Duration::from_secs(30), "{engine}: {:?}", asked.elapsed());
    }
}

#[test]
fn stopped_backend_stalls_only_its_client() {
    let Some(server) = testing::own_server("postgres") else { return };
    // A backend that is stopped while it holds a lock of the server stalls the other backends too, for one.
    let seen: Vec<String> = (0..3).map_while(|_| stopped_backend(&server).err()).collect();
    assert!(seen.len() < 3, "{seen:#?}");
}

/// Stops a backend for a second during a trial. Returns what was wrong if its client was not the only one that stalled.
fn stopped_backend(server: &Server) -> Result<(), String> {
    let place = Place::new();
    let rest = ["--duration", "5s", "--rounds", "1", "--threads", "1"];
    let child = place.spawn(&point("point-read", server.url(), "16", &rest));
    under_load(&child, server, 16);
    // Longer than the warm-up.
    works(&child, 60);
    let find = "SELECT max(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
                AND query_start > now() - interval '200 milliseconds' AND query LIKE '%kurabe%' AND query NOT LIKE '%pg_%'";
    let found = || sql(server, "", find).filter(|pid| !pid.trim().is_empty());
    let pid = eventually(60, found).expect("no session reads");
    let kill = |signal: &str| Command::new("kill").args([signal, pid.trim()]).status().unwrap().success();
    let stopped = kill("-STOP");
    // How long it is stopped, which no event ends.
    std::thread::sleep(Duration::from_secs(1));
    let continued = kill("-CONT");
    let answer = Answer::at_end_of(child);
    if !(stopped && continued) {
        return Err("the trial ended before its backend was stopped".to_owned());
    }
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let trial = measured(&place).remove(0);
    // The stop was longer than several of the 20 windows of the trial.
    let windows: Vec<u64> =
        trial["windows"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert!(!windows.is_empty());
    if windows.contains(&0) {
        return Err(format!("all clients were stalled: {windows:?}"));
    }
    let longest = trial["service"]["max"].as_u64();
    if longest > Some(900_000_000) { Ok(()) } else { Err(format!("no client was stalled: {longest:?} ns")) }
}
