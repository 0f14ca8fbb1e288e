//! Runs whose clients are divided among agents, over a real broker and over pipes.

mod common;
mod hostile;
mod hosts;

use crate::support::{Answer, KURABE, Place, eventually, piped, recorded_trials, signal};
use common::broker::{Broker, Tap, pretender};
use common::{Agent, check_sums, children, connections, measured_sums};
use kurabe_testbed::testing;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn sum_of_agents_is_what_the_server_counted() {
    let Some(broker) = Broker::start() else { return };
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let _agents = [
        Agent::knowing(&server, &place, &broker, "a", &["--agent-label", "rack=x"]),
        Agent::knowing(&server, &place, &broker, "b", &["--agent-label", "rack=x,zone=2"]),
    ];
    let other = Agent::knowing(&server, &place, &broker, "other", &["--agent-label", "rack=y"]);
    let run = |rest: &[&str]| {
        let brokers = ["--fleet", broker.url(), "--agents", "2", "--agent-label", "rack=x", "--no-html"];
        place.run(&[&["run", "kv", server.url()], &brokers[..], rest].concat())
    };
    let answer = run(&["--clients", "1,5", "--requests", "300", "--rounds", "2", "--records", "500"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.err.contains("2 agents joined: a, b"), "{answer:?}");
    let whole = place.run(&["report", "last", "--verbose"]).out.replace('\n', " ");
    assert!(whole.contains("clients on 2 agents (a and b), which started at most"), "{whole}");
    let file = place.run_file();
    // Two numbers of clients and the control, two operations, two rounds.
    assert!(check_sums(&file, 2) >= 12);
    for trial in recorded_trials(&file).iter().filter(|trial| trial["operation"] == "write") {
        let verified = &trial["outcome"]["measured"]["verified"];
        assert_eq!(verified["counted"], verified["writes"], "the server counted: {verified}");
    }
    let header: Value =
        serde_json::from_str(fs::read_to_string(&file).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!(header["spec"]["fleet"]["labels"]["rack"], "x");
    assert_eq!(header["agents"][1]["labels"]["zone"], "2");
    assert!(header["spec"].get("slice_ns").is_none());
    drop(other);

    // An open loop has one schedule, which is shared out: half a second at 400 a second.
    let place = Place::new();
    let _agents = [
        Agent::knowing(&server, &place, &broker, "c", &[]),
        Agent::knowing(&server, &place, &broker, "d", &[]),
    ];
    let args =
        ["run", "kv", server.url(), "--fleet", broker.url(), "--agents", "4", "--no-html", "--rounds", "1"];
    let rest = ["--rate", "400", "--duration", "500ms", "--operation", "read", "--records", "500"];
    place.run(&[&args[..], &rest[..]].concat()).success();
    let file = place.run_file();
    assert!(check_sums(&file, 4) >= 1);
    for trial in recorded_trials(&file) {
        assert_eq!(trial["outcome"]["measured"]["offered"], 200, "{trial}");
    }
}

#[test]
fn agents_that_a_command_starts_need_no_broker() {
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let folder = Path::new(KURABE).parent().unwrap().display();
    let rsh = place.file("rsh", format!("shift\nPATH={folder}:$PATH exec \"$@\"\n"));
    let args = ["run", "point-read", server.url(), "--fleet", "ssh:one,two", "--clients", "4", "--no-html"];
    let rest = ["--requests", "400", "--rounds", "2", "--records", "500"];
    let mut command = place.command(&[&args[..], &rest[..]].concat());
    command.env("KURABE_RSH", format!("sh {rsh}")).env("REDISCLI_AUTH", server.password().unwrap());
    Answer::of(&command.output().unwrap()).success();
    let whole = place.run(&["report", "last", "--verbose"]).out.replace('\n', " ");
    assert!(whole.contains("clients on 2 agents (one and two)"), "{whole}");
    assert!(check_sums(&place.run_file(), 2) >= 4);
}

#[test]
fn killed_agent_fails_its_trial_with_its_name() {
    let Some(broker) = Broker::start() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let _a = Agent::knowing(&server, &place, &broker, "a", &[]);
    let b = Agent::knowing(&server, &place, &broker, "b", &[]);
    let args =
        ["run", "point-read", server.url(), "--fleet", broker.url(), "--agents", "2", "--clients", "4"];
    let rest = ["--duration", "400ms", "--rounds", "50", "--records", "500", "--no-html"];
    let run = place.spawn(&[&args[..], &rest[..]].concat());
    place.wait_for_trials(2);
    let workers = children(b.0.id());
    assert_eq!(workers.len(), 1, "{workers:?}");
    signal(&b.0, "-KILL");
    Answer::at_end_of(run).exit_code(4);
    let failed: Vec<Value> = recorded_trials(&place.run_file())
        .into_iter()
        .filter(|trial| trial["outcome"].get("failed").is_some())
        .collect();
    assert!(!failed.is_empty());
    for trial in &failed {
        let reason = trial["outcome"]["failed"]["reason"].as_str().unwrap();
        assert!(reason.starts_with("agent b: "), "{reason}");
    }
    // Its worker ends with it, and all connections.
    let gone = || (!Path::new(&format!("/proc/{}", workers[0])).exists()).then_some(());
    eventually(30, gone).expect("the worker of a killed agent goes on");
    eventually(30, || (connections(server.url()) == 0).then_some(())).expect("a connection is open");
}

#[test]
fn run_goes_on_without_a_lost_agent_if_asked() {
    let Some(broker) = Broker::start() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let _agents = [
        Agent::knowing(&server, &place, &broker, "a", &[]),
        Agent::knowing(&server, &place, &broker, "c", &[]),
    ];
    let b = Agent::knowing(&server, &place, &broker, "b", &[]);
    let args =
        ["run", "kv", server.url(), "--fleet", broker.url(), "--agents", "3", "--on-lost-agent", "continue"];
    let rest = [
        "--clients", "6", "--duration", "400ms", "--rounds", "4", "--records", "500", "--no-html", "--seed",
        "3",
    ];
    let run = place.spawn(&[&args[..], &rest[..]].concat());
    place.wait_for_trials(2);
    signal(&b.0, "-KILL");
    let answer = Answer::at_end_of(run).success().err_has("the run goes on with a, c");
    assert!(answer.out.contains("The run went on without agent b"), "{answer:?}");
    let trials = recorded_trials(&place.run_file());
    // The failed trial stays in the record, with the agent's name, …
    let failed: Vec<&Value> =
        trials.iter().filter(|trial| trial["outcome"].get("failed").is_some()).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let reason = failed[0]["outcome"]["failed"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("agent b: "), "{reason}");
    // … and all trials of its round that were made before are repeated on the remaining agents.
    let of_round = |trial: &&Value| trial["round"] == failed[0]["round"];
    let key = |trial: &Value| (trial["cell"].as_u64(), trial["operation"].as_str().map(str::to_owned));
    let mut last = std::collections::BTreeMap::new();
    for trial in trials.iter().filter(of_round) {
        let agents = trial["outcome"]["measured"]["fleet"]["agents"].as_array();
        last.insert(key(trial), agents.map(Vec::len));
    }
    assert!(last.values().all(|agents| *agents == Some(2)), "{last:?}");
    // A busy machine may be the reason of other repetitions.
    let is_of_b =
        |trial: &&Value| trial["rerun_reason"].as_str().is_some_and(|reason| reason.starts_with("agent b: "));
    assert!(trials.iter().any(|trial| is_of_b(&trial) && key(trial) == key(failed[0])), "{trials:?}");
    let measured = trials.iter().filter(|trial| trial["outcome"].get("measured").is_some());
    for trial in measured {
        let agents = trial["outcome"]["measured"]["fleet"]["agents"].as_array().unwrap().len();
        measured_sums(trial, agents as u64);
        assert!(agents == 3 || trial["round"].as_u64() >= failed[0]["round"].as_u64(), "{trial}");
    }
    // Every round has all trials.
    let rounds: std::collections::BTreeSet<u64> =
        trials.iter().filter_map(|trial| trial["round"].as_u64()).collect();
    assert_eq!(rounds.len(), 4);
}

#[test]
fn killed_coordinator_leaves_no_load_and_the_agents_serve_the_next_run() {
    let Some(broker) = Broker::start() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let _agents = [
        Agent::knowing(&server, &place, &broker, "a", &[]),
        Agent::knowing(&server, &place, &broker, "b", &[]),
    ];
    let args =
        ["run", "point-read", server.url(), "--fleet", broker.url(), "--agents", "2", "--clients", "4"];
    let rest = ["--duration", "60s", "--rounds", "1", "--records", "500", "--no-html", "--interleave=off"];
    let mut run = place.spawn(&[&args[..], &rest[..]].concat());
    eventually(60, || (connections(server.url()) >= 5).then_some(())).expect("no load began");
    run.kill().unwrap();
    run.wait().unwrap();
    let killed = Instant::now();
    // Five seconds, and time for a busy machine: the load itself would go on for a minute.
    eventually(20, || (connections(server.url()) == 0).then_some(()))
        .expect("load goes on without a coordinator");
    assert!(killed.elapsed() < Duration::from_secs(20));
    // On a server that no killed run claims.
    let next = ["run", "point-read", "up:redis", "--fleet", broker.url(), "--agents", "2", "--clients", "4"];
    let rest = ["--requests", "400", "--rounds", "1", "--records", "500", "--no-html"];
    place.run(&[&next[..], &rest[..]].concat()).success().err_has("2 agents joined: a, b");
}

#[test]
fn restarted_broker_is_waited_for() {
    let Some(mut broker) = Broker::start() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let _agents = [
        Agent::knowing(&server, &place, &broker, "a", &[]),
        Agent::knowing(&server, &place, &broker, "b", &[]),
    ];
    let args =
        ["run", "point-read", server.url(), "--fleet", broker.url(), "--agents", "2", "--clients", "4"];
    let rest = ["--duration", "300ms", "--rounds", "12", "--records", "500", "--no-html"];
    let run = place.spawn(&[&args[..], &rest[..]].concat());
    for trials in [2, 8] {
        place.wait_for_trials(trials);
        broker.restart();
    }
    Answer::at_end_of(run).success();
    assert!(check_sums(&place.run_file(), 2) >= 24);
}

#[test]
fn clock_of_a_far_agent_is_compared_with_an_error_of_half_a_round_trip() {
    let Some(broker) = Broker::start() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let (_relay, far) = broker.far(Duration::from_millis(10), &Arc::default());
    let _agents = [
        Agent::knowing(&server, &place, &broker, "near", &[]),
        Agent(piped(
            place
                .command(&["agent", "--broker", &far, "--name", "far"])
                .env("REDISCLI_AUTH", server.password().unwrap())
                .env("KURABE_AGENT_ALLOW", format!("127.0.0.1:{}", server.port())),
        )),
    ];
    let args =
        ["run", "point-read", server.url(), "--fleet", broker.url(), "--agents", "2", "--clients", "2"];
    let rest = ["--duration", "200ms", "--rounds", "2", "--records", "300", "--no-html"];
    place.run(&[&args[..], &rest[..]].concat()).success();
    let file = place.run_file();
    assert!(check_sums(&file, 2) >= 4);
    let mut spreads = Vec::new();
    for trial in recorded_trials(&file) {
        let fleet = &trial["outcome"]["measured"]["fleet"];
        assert_eq!(fleet["agents"][0]["name"], "far");
        // Its messages take ten milliseconds at least, so that less cannot be known.
        assert!(fleet["agents"][0]["clock_error_ns"].as_u64().unwrap() >= 10_000_000, "{fleet}");
        spreads.push(fleet["start_spread_ns"].as_u64().unwrap());
    }
    assert!(*spreads.iter().min().unwrap() <= 40_000_000, "{spreads:?}");
}

#[test]
fn agent_of_another_version_is_refused() {
    let Some(broker) = Broker::start() else { return };
    let place = Place::new();
    pretender(&broker, "old", "0.0.1", "{}");
    let answer =
        place.run(&["run", "point-read", "up:redis", "--fleet", broker.url(), "--agents", "1", "--no-html"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.err.contains("agent old: it is version 0.0.1 of kurabe"), "{answer:?}");
}

#[test]
fn agent_of_another_commit_of_the_same_version_is_refused() {
    for (build, shown) in [
        (r#"{"commit":"0123456789abcdef"}"#, "commit 0123456789abcdef"),
        (r#"{"commit":"0123456789abcdef-dirty","file":"7-0a"}"#, "commit 0123456789abcdef-dirty, file 7-0a"),
        ("{}", "file unknown"),
    ] {
        let Some(broker) = Broker::start() else { return };
        let place = Place::new();
        pretender(&broker, "other", env!("CARGO_PKG_VERSION"), build);
        let args = ["run", "point-read", "up:redis", "--fleet", broker.url(), "--agents", "1", "--no-html"];
        let answer = place.run(&args).exit_code(3);
        let why = format!(
            "agent other: it is another build of version {} of kurabe ({shown})",
            env!("CARGO_PKG_VERSION")
        );
        assert!(answer.err.contains(&why), "{answer:?}");
    }
}

#[test]
fn passwords_of_targets_are_in_no_message() {
    const PASSWORD: &str = "hunter2-of-this-test";
    let Some(broker) = Broker::start() else { return };
    let Some(server) = testing::server_with("postgres", |options| options.with_password(PASSWORD)) else {
        return;
    };
    let place = Place::new();
    let tap = Tap::on(&broker);
    let knows = |command: &mut Command| {
        command.env("PGPASSWORD", PASSWORD);
    };
    let a = Agent::with(&place, &broker, "a", &["--allow", "127.0.0.1"], knows);
    let url = server.url().replacen('@', &format!(":{PASSWORD}@"), 1);
    let run = || {
        let args = ["run", "point-read", &url, "--fleet", broker.url(), "--agents", "1", "--clients", "2"];
        let rest = ["--requests", "200", "--rounds", "1", "--records", "200", "--no-html"];
        place.run(&[&args[..], &rest[..]].concat())
    };
    run().success();
    drop(a);
    // An agent that lacks it says what to do.
    let _b = Agent::start(&place, &broker, "b", &["--allow", "127.0.0.1"]);
    let answer = run().exit_code(4);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(said.contains("agent b: ") && said.contains("passwords are not sent to agents"), "{answer:?}");
    let seen = tap.read();
    assert!(seen.contains("\"load\":{") && seen.contains("\"done\":{"), "{}", seen.len());
    assert!(!seen.contains(PASSWORD) && !said.contains(PASSWORD));
}

#[test]
fn login_of_the_url_is_used_and_neither_password_nor_token_is_shown() {
    for (login, right, wrong) in [
        (&["--user", "me", "--pass", "hunter2@x"][..], "me:hunter2%40x", "me:hunter2"),
        (&["--auth", "hunter2/x"][..], "hunter2%2Fx", "hunter2"),
    ] {
        let Some(broker) = Broker::with_login(login) else { return };
        let place = Place::new();
        // No agent waits there.
        let said = |who: &str| {
            let url = format!("nats://{who}@{}", broker.address());
            let answer = place.run(&["run", "point-read", "null:", "--fleet", &url, "--no-html"]);
            assert_eq!(answer.code, Some(3), "{answer:?}");
            assert!(!answer.err.contains("hunter2"), "{answer:?}");
            answer.err
        };
        assert!(said(right).contains("0 of 1 agents answered"));
        assert!(said(wrong).contains("authorization"));
    }
}
