//! Random faults of agents, the broker, the coordinator and the cables between them, at random moments of runs.

use crate::fleet::broker::Broker;
use crate::fleet::{Agent, children, connections, measured_sums};
use crate::support::{Answer, KURABE, Place, eventually, piped, recorded_trials, signal};
use kurabe_os::process::Stat;
use kurabe_stats::rng::Rng;
use kurabe_testbed::testing;
use serde_json::Value;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The variable with the number of faults; more than in CI for a thorough test.
const COUNT: &str = "KURABE_FLEET_FAULTS";
/// The variable with the seed of the moments; by default the clock's. A failed test prints its seed.
const SEED: &str = "KURABE_FLEET_SEED";
const FAULTS: [&str; 7] = [
    "agent killed", "agent stopped", "worker killed", "agent partitioned", "broker restarted",
    "coordinator killed", "run interrupted",
];

#[test]
fn random_faults_end_with_a_clear_outcome_and_leave_nothing_behind() {
    if Broker::start().is_none() || testing::server("redis").is_none() {
        return;
    }
    let count = std::env::var(COUNT).ok().and_then(|count| count.parse().ok()).unwrap_or(FAULTS.len());
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = std::env::var(SEED).ok().map_or_else(clock, |seed| seed.parse().unwrap());
    println!("{SEED}={seed}");
    let mut rng = Rng::new(seed);
    for nth in 0..count {
        let fault = FAULTS[nth % FAULTS.len()];
        let wait = Duration::from_millis(rng.below(900));
        let go_on = rng.below(2) == 0;
        let (names, failed) = one(fault, wait, go_on);
        let then = if go_on { "continue" } else { "fail" };
        println!("fault {nth}: {fault} after {wait:?}, {then}: {failed} trials failed {names:?}");
    }
}

/// The processes of a program that have not ended.
fn alive(pids: &[u32]) -> Vec<u32> {
    let runs = |pid: &&u32| Stat::of(**pid).is_some_and(|stat| stat.lives());
    pids.iter().filter(runs).copied().collect()
}

/// Makes one run with one fault. `go_on`: without a lost agent. Returns the agents that failed trials name, and the number of these trials.
fn one(fault: &str, wait: Duration, go_on: bool) -> (Vec<String>, usize) {
    let (mut broker, server) = (Broker::start().unwrap(), testing::server("redis").unwrap());
    let place = Place::new();
    let cut = Arc::new(AtomicBool::new(false));
    let (_relay, url) = broker.far(Duration::ZERO, &cut);
    let agent_args = ["agent", "--broker", &url, "--name", "b"];
    let agents = [
        Agent::start(&place, &broker, "a", &[]),
        Agent(piped(&mut place.command(&agent_args))),
        Agent::start(&place, &broker, "c", &[]),
    ];
    let args = ["run", "kv", server.url(), "--fleet", broker.url(), "--agents", "3", "--clients", "5"];
    let rest = ["--duration", "150ms", "--rounds", "6", "--records", "300", "--no-html"];
    let lost = ["--on-lost-agent", if go_on { "continue" } else { "fail" }];
    let mut run = place.spawn(&[&args[..], &rest[..], &lost[..]].concat());
    let file = place.wait_for_trials(1);
    std::thread::sleep(wait);
    let b = &agents[1].0;
    let workers: Vec<u32> = agents.iter().flat_map(|agent| children(agent.0.id())).collect();
    let before = recorded_trials(&file).len();
    match fault {
        "agent killed" => signal(b, "-KILL"),
        "agent stopped" => signal(b, "-STOP"),
        "worker killed" => children(b.id()).iter().for_each(|worker| kill(*worker)),
        "agent partitioned" => cut.store(true, Ordering::SeqCst),
        "broker restarted" => broker.restart(),
        "coordinator killed" => run.kill().unwrap(),
        _ => signal(&run, "-INT"),
    }
    let answer = ended(run, fault);
    let outcomes = recorded_trials(&file);
    // Nothing that was measured is lost, and what was measured is whole.
    assert!(outcomes.len() >= before, "{fault}: {answer:?}");
    let measured = outcomes.iter().filter(|trial| trial["outcome"].get("measured").is_some());
    let agents =
        |trial: &Value| trial["outcome"]["measured"]["fleet"]["agents"].as_array().unwrap().len() as u64;
    let count = |trial| if go_on { agents(trial) } else { 3 };
    let measured = measured.map(|trial| measured_sums(trial, count(trial))).count();
    let failed: Vec<String> = outcomes
        .iter()
        .filter_map(|trial| trial["outcome"]["failed"]["reason"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(measured + failed.len(), outcomes.len());
    let is_of_b = ["agent killed", "agent stopped", "worker killed", "agent partitioned"].contains(&fault);
    match answer.code {
        // The run may have ended before its fault.
        Some(0) => assert!(failed.is_empty() || go_on, "{fault}: {failed:?}"),
        Some(4) if is_of_b && !go_on => assert!(!failed.is_empty(), "{fault}: {answer:?}"),
        Some(130) => assert_eq!(fault, "run interrupted", "{answer:?}"),
        None => assert_eq!(fault, "coordinator killed"),
        _ => panic!("{fault}: {answer:?} {failed:?}"),
    }
    let name = |why: &String| why.split_once(": ").unwrap().0.to_owned();
    let mut names: Vec<String> = failed.iter().map(name).collect();
    names.dedup();
    assert!(names.iter().all(|name| name == "agent b"), "{fault}: {failed:?}");
    // All that made load has ended, and a stopped or separated agent ends it by itself.
    if fault != "agent stopped" {
        eventually(30, || alive(&workers).is_empty().then_some(()))
            .unwrap_or_else(|| panic!("{fault}: a worker of {workers:?} goes on"));
        eventually(30, || (connections(server.url()) == 0).then_some(()))
            .unwrap_or_else(|| panic!("{fault}: a connection is open"));
    }
    // Agents that live serve the next run.
    cut.store(false, Ordering::SeqCst);
    if fault == "agent stopped" {
        signal(b, "-CONT");
        eventually(30, || alive(&workers).is_empty().then_some(()))
            .unwrap_or_else(|| panic!("{fault}: a worker of {workers:?} goes on"));
    }
    let wanted = if fault == "agent killed" { "2" } else { "3" };
    let next =
        ["run", "point-read", "up:redis", "--fleet", broker.url(), "--agents", wanted, "--clients", "3"];
    let rest = ["--requests", "150", "--rounds", "1", "--records", "300", "--no-html"];
    let next = [&next[..], &rest[..]].concat();
    // An agent that was separated connects again within a while.
    let again = || {
        let answer = place.run(&next);
        (answer.code == Some(0)).then_some(())
    };
    eventually(60, again).unwrap_or_else(|| panic!("{fault}: the agents do not serve the next run"));
    (names, failed.len())
}

fn kill(process: u32) {
    let _ = std::process::Command::new("kill").args(["-KILL", &process.to_string()]).status();
}

/// Waits for a run's end, which no fault may prevent.
fn ended(mut run: Child, fault: &str) -> Answer {
    // It writes less than a pipe holds.
    if eventually(60, || run.try_wait().unwrap()).is_none() {
        let _ = run.kill();
        panic!("{fault}: the run of {} does not end", Path::new(KURABE).display())
    }
    Answer::at_end_of(run)
}
