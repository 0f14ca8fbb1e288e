//! A fleet on several hosts: network namespaces on one bridge, which end with the test.
//!
//! The delay of real networks is made by a relay (`delay.rs`), because not every kernel has `netem`.

use super::common::broker::Broker;
use super::common::{check_sums, children};
use crate::network::{LOOPBACK, ip, run_alone, wait_until_apart};
use crate::support::{Answer, KURABE, Place, eventually, piped, recorded_trials};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// Addresses for benchmarks, which belong to nobody (RFC 2544).
const NET: &str = "198.18.79";

#[test]
fn agents_of_other_hosts_share_a_trial_and_a_partitioned_one_fails_it() {
    if Broker::start().is_none() {
        return;
    }
    let test = "fleet::hosts::agents_of_other_hosts_share_a_trial_and_a_partitioned_one_fails_it";
    run_alone(test, LOOPBACK, between_hosts);
}

/// A program on a host of its own. Both end with the test.
struct Host {
    child: Child,
    cable: String,
}

impl Host {
    /// Starts `script` with these arguments on the host with this number. The first is the program.
    fn start(place: &Place, number: u8, script: &str, args: &[&str]) -> Self {
        let script = format!(
            "read go && ip link set dev lo up && ip addr add {NET}.{number}/24 dev far && ip link set dev far up || exit 9
             {script}"
        );
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", &script]).args(args);
        place.configure(&mut command);
        let mut child = piped(command.stdin(Stdio::piped()));
        wait_until_apart(&child);
        let cable = format!("near{number}");
        ip(&["link", "add", &cable, "type", "veth", "peer", "name", "far", "netns", &child.id().to_string()]);
        ip(&["link", "set", "dev", &cable, "master", "hub", "up"]);
        child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        Self { child, cable }
    }

    fn agent(place: &Place, broker: &Broker, number: u8, name: &str, role: &str) -> Self {
        let args = [
            KURABE,
            "agent",
            "--broker",
            broker.url(),
            "--name",
            name,
            "--role",
            role,
            "--allow",
            &format!("{NET}.9"),
        ];
        Self::start(place, number, "exec \"$0\" \"$@\"", &args)
    }

    /// Waits until its agent answers calls: a run waits for the agents that it needs, and not for an observer.
    fn wait_until_it_waits_for_runs(&mut self) {
        let mut lines = BufReader::new(self.child.stderr.take().unwrap()).lines();
        let waits =
            |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| line.contains("waits for runs"));
        assert!(lines.any(|line| waits(&line)), "the agent does not wait for runs");
        thread::spawn(move || lines.for_each(drop));
    }

    /// Pulls the cable, or plugs it in again.
    fn connect(&self, state: &str) {
        ip(&["link", "set", "dev", &self.cable, state]);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn between_hosts() {
    ip(&["link", "add", "hub", "type", "bridge"]);
    ip(&["addr", "add", &format!("{NET}.1/24"), "dev", "hub"]);
    ip(&["link", "set", "dev", "hub", "up"]);
    let broker = Broker::at(&format!("{NET}.1")).unwrap();
    let place = Place::new();
    // The agent of the servers' host is the parent of the servers, so that all end together.
    let servers = format!(
        "redis-server --bind {NET}.9 --port 7003 --protected-mode no --save '' --appendonly no >/dev/null & r=$!
         memcached -l {NET}.9 -p 7004 -u nobody & m=$!
         \"$0\" \"$@\" & a=$!
         trap 'kill $r $m $a' TERM; wait $a"
    );
    let args = [KURABE, "agent", "--broker", broker.url(), "--name", "watch", "--role", "observe"];
    let mut servers = Host::start(&place, 9, &servers, &args);
    servers.wait_until_it_waits_for_runs();
    let servers = ServersHost(servers);
    let agents = [(2, "a"), (3, "b"), (4, "c"), (5, "d")]
        .map(|(number, name)| Host::agent(&place, &broker, number, name, "load"));
    for port in [7003, 7004] {
        let address = format!("{NET}.9:{port}");
        eventually(60, || TcpStream::connect(&address).ok()).expect("a server does not listen");
    }
    let run = |place: &Place, experiment: &str, target: &str, rest: &[&str]| {
        let target = format!("{target}://{NET}.9:{}", if target == "redis" { 7003 } else { 7004 });
        let args = ["run", experiment, &target, "--fleet", broker.url(), "--agents", "4", "--clients", "6"];
        place.command(&[&args[..], &["--records", "300", "--no-html"], rest].concat())
    };
    let short = ["--requests", "600", "--rounds", "2"];
    let is_agent =
        |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == Path::new(KURABE));
    let watch = children(servers.0.child.id()).into_iter().find(is_agent).unwrap();
    for target in ["redis", "memcached"] {
        let place = Place::new();
        // An observer that still belongs to the last run is not waited for.
        eventually(60, || children(watch).is_empty().then_some(())).expect("the observer stays with a run");
        let answer = Answer::of(&run(&place, "kv", target, &short).output().unwrap()).success();
        assert!(answer.err.contains("4 agents joined: a, b, c, d"), "{answer:?}");
        assert!(answer.err.contains("observed by agent watch"), "{answer:?}");
        // The cell and its control, two operations, two rounds.
        assert!(check_sums(&place.run_file(), 4) >= 8);
        for trial in recorded_trials(&place.run_file()) {
            let measured = &trial["outcome"]["measured"];
            let server = &measured["observed"]["server"]["seen"];
            assert!(server["cpu_ns"].as_u64().is_some(), "{}", measured["observed"]["server"]);
            for agent in measured["fleet"]["agents"].as_array().unwrap() {
                assert!(agent["client"]["cpu_ns"].as_u64().unwrap() > 0, "{agent}");
            }
        }
    }

    let long = ["--duration", "300ms", "--rounds", "60"];
    let going_on = piped(&mut run(&place, "point-read", "redis", &long));
    place.wait_for_trials(2);
    let (b, workers) = (&agents[1], children(agents[1].child.id()));
    assert_eq!(workers.len(), 1, "{workers:?}");
    b.connect("down");
    Answer::at_end_of(going_on).exit_code(4);
    let outcomes = recorded_trials(&place.run_file());
    let reasons: Vec<&str> =
        outcomes.iter().filter_map(|trial| trial["outcome"]["failed"]["reason"].as_str()).collect();
    assert!(!reasons.is_empty() && reasons.iter().all(|why| why.starts_with("agent b: ")), "{reasons:?}");
    // The separated agent ends its load by itself.
    let gone = || (!Path::new(&format!("/proc/{}", workers[0])).exists()).then_some(());
    eventually(30, gone).expect("the worker of a separated agent goes on");
    b.connect("up");
    let place = Place::new();
    let again = || {
        let answer = Answer::of(&run(&place, "point-read", "redis", &short).output().unwrap());
        (answer.code == Some(0)).then_some(())
    };
    eventually(60, again).expect("the agent does not come back");
    drop(servers);
}

/// The host of the servers: the shell ends them when it is asked to end.
struct ServersHost(Host);

impl Drop for ServersHost {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.child.id().to_string()).status();
        eventually(10, || self.0.child.try_wait().ok().flatten());
    }
}
