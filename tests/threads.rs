//! Clients that share threads, on real servers: answers are verified, and faults fail a trial as they do on threads of
//! their own.

use crate::servers::common::sql;
use crate::support::{Answer, Place, eventually, signal};
use kurabe_testbed::{Server, testing};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// The engines whose sessions can share threads, but CouchDB.
const NATIVE: [&str; 5] = ["postgres", "mariadb", "mysql", "memcached", "redis"];

/// The measured trials of the only run.
fn measured(place: &Place) -> Vec<Value> {
    let file = place.wait_for_trials(0);
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line.pointer("/trial/outcome/measured").cloned()).collect()
}

fn metric(trial: &Value, name: &str) -> Option<f64> {
    let metrics = trial["metrics"].as_array()?;
    metrics.iter().find(|metric| metric["name"] == name)?["value"].as_f64()
}

/// Arguments of a short run with that many clients.
fn point<'a>(experiment: &'a str, url: &'a str, clients: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let fixed =
        ["run", experiment, url, "--clients", clients, "--records", "8000", "--interleave=off", "--no-html"];
    [&fixed[..], rest].concat()
}

#[test]
fn many_clients_on_few_threads_have_every_answer_verified() {
    for engine in NATIVE {
        let connections = |options: kurabe_testbed::StartOptions| match engine {
            "mysql" | "mariadb" | "postgres" => options.set("max_connections", "400"),
            _ => options,
        };
        let Some(server) = testing::server_with(engine, connections) else { continue };
        for experiment in ["point-read", "point-write"] {
            // Closed and open, and with connections that open inside tasks.
            for rest in [
                &["--requests", "5000", "--rounds", "2"][..],
                &["--rate", "2000", "--duration", "1s", "--rounds", "1"],
            ] {
                let place = Place::new();
                let args = point(experiment, server.url(), "256", rest);
                let answer = place.run(&[&args[..], &["--threads", "2"]].concat());
                assert_eq!(answer.code, Some(0), "{engine} {experiment}: {answer:?}");
                let trials = measured(&place);
                assert!(!trials.is_empty());
                for trial in trials {
                    assert_eq!((&trial["threads"], &trial["clients"]), (&2.into(), &256.into()), "{trial}");
                    let count = |name: &str| trial[name].as_u64().unwrap();
                    assert_eq!(count("offered"), count("completed") + count("failed") + count("dropped"));
                    assert!(count("failed") == 0 && count("completed") > 500, "{trial}");
                    let answers = trial["verified"]["answers"].as_u64().unwrap_or_default();
                    let writes = experiment == "point-write";
                    assert!(writes || answers >= count("completed") + count("warmup"), "{trial}");
                    let (queue, p99) = (metric(&trial, "queue"), metric(&trial, "queue p99"));
                    assert!(queue.is_some() && p99 > Some(0.0), "{trial}");
                }
            }
        }
    }
}

#[test]
fn pools_connections_per_request_and_slices_work_on_shared_threads() {
    // The substitute for CouchDB takes milliseconds for a request.
    for engine in NATIVE.into_iter().chain(["couchdb"]) {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let args = ["run", "connect", server.url(), "--clients", "24", "--pool", "5", "--requests", "600"];
        let rest = ["--records", "500", "--rounds", "3", "--threads", "2", "--no-html"];
        let answer = place.run(&[&args[..], &rest].concat());
        assert_eq!(answer.code, Some(0), "{engine}: {answer:?}");
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
        let answer = place.run(&point("point-read", url, &clients, &[&fixed[..], rest].concat()));
        assert_eq!(answer.code, Some(0), "{answer:?}");
        measured(&place)[0]["threads"].as_u64().unwrap_or(0)
    };
    assert_eq!(threads(server.url(), cpus, &[]), 0);
    assert_eq!(threads(server.url(), 4 * cpus, &[]), cpus);
    assert_eq!(threads(server.url(), 4 * cpus, &["--threads", "per-client"]), 0);
    assert_eq!(threads(server.url(), 1, &["--threads", "1"]), 1);
    assert_eq!(threads("sqlite:", 4 * cpus, &[]), 0);
}

#[test]
fn session_that_blocks_its_thread_is_not_measured_on_a_shared_one() {
    let place = Place::new();
    let answer = place.run(&["run", "point-read", "sqlite:", "--threads", "2", "--dry-run"]);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(said.contains("cannot share threads"), "{answer:?}");
}

#[test]
fn killed_server_fails_trial_of_shared_threads_with_its_reason() {
    for engine in NATIVE {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let rest = ["--duration", "60s", "--rounds", "1", "--threads", "1"];
        let child = place.spawn(&point("point-read", server.url(), "32", &rest));
        under_load(&child, &place);
        server.kill_hard().unwrap();
        let killed = Instant::now();
        let answer = Answer::of(&child.wait_with_output().unwrap());
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

/// Waits until the clients of a run have warmed up: until its process has used some processor time since it began to
/// record.
fn under_load(child: &std::process::Child, place: &Place) {
    place.wait_for_trials(0);
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        let fields: Vec<u64> =
            after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse().ok()).collect();
        fields.iter().sum::<u64>()
    };
    let before = ticks();
    // Hundredths of a second; loading and warming up take less.
    eventually(120, || (ticks() > before + 150).then_some(())).expect("the clients did not work");
}

#[test]
fn ctrl_c_ends_a_trial_of_shared_threads() {
    for engine in ["postgres", "memcached"] {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let rest = ["--duration", "120s", "--rounds", "1", "--threads", "2"];
        let child = place.spawn(&point("point-read", server.url(), "32", &rest));
        under_load(&child, &place);
        let asked = Instant::now();
        signal(&child, "-INT");
        let answer = Answer::of(&child.wait_with_output().unwrap());
        assert_eq!(answer.code, Some(130), "{engine}: {answer:?}");
        assert!(asked.elapsed() < Duration::from_secs(30), "{engine}: {:?}", asked.elapsed());
    }
}

#[test]
fn stopped_backend_stalls_only_its_client() {
    let Some(server) = testing::server("postgres") else { return };
    // A backend that is stopped while it holds a lock of the server stalls the other backends too, for one.
    let seen: Vec<String> = (0..3).map_while(|_| stopped_backend(&server).err()).collect();
    assert!(seen.len() < 3, "{seen:#?}");
}

/// Stops a backend for two seconds during a trial. Returns what was wrong if its client was not the only one that stalled.
fn stopped_backend(server: &Server) -> Result<(), String> {
    let place = Place::new();
    let rest = ["--duration", "10s", "--rounds", "1", "--threads", "1"];
    let child = place.spawn(&point("point-read", server.url(), "16", &rest));
    under_load(&child, &place);
    let find = "SELECT max(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
                AND query_start > now() - interval '200 milliseconds' AND query LIKE '%kurabe%' AND query NOT LIKE '%pg_%'";
    let pid = sql(server, "", find).unwrap_or_default();
    let kill =
        |signal: &str| assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
    kill("-STOP");
    std::thread::sleep(Duration::from_secs(2));
    kill("-CONT");
    let answer = Answer::of(&child.wait_with_output().unwrap());
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
    if longest > Some(1_900_000_000) { Ok(()) } else { Err(format!("no client was stalled: {longest:?} ns")) }
}
