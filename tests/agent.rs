//! A server on another host, observed by `kurabe observe` there: two network namespaces represent two hosts.

use crate::servers::common::{skip, tell};
use crate::support::{Answer, Place, eventually, piped, signal};
use kurabe_testbed::testing;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Addresses that are reserved for benchmarks (RFC 2544).
const NEAR: &str = "198.18.77.1/30";
const SERVER: &str = "redis://198.18.77.2:7001";
const OBSERVER: &str = "198.18.77.2:7118";

/// The other host: it gets its end of the virtual cable, then runs a server and an agent.
const FAR: &str = "read go && ip link set dev lo up && ip addr add 198.18.77.2/30 dev far && ip link set dev far up || exit 9
redis-server --bind 198.18.77.2 --port 7001 --protected-mode no --save '' --appendonly no >/dev/null & echo $!
exec \"$0\" observe --listen 198.18.77.2:7118";

struct Host {
    observer: Child,
    redis: String,
}

impl Host {
    fn start(place: &Place) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", FAR, crate::support::KURABE]);
        place.configure(&mut command);
        command.env("KURABE_OBSERVE_TOKEN", TOKEN).stdin(Stdio::piped());
        let mut observer = piped(&mut command);
        // The cable can be connected once that process has its own network namespace.
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let theirs = format!("/proc/{}/ns/net", observer.id());
        let apart = || std::fs::read_link(&theirs).is_ok_and(|network| network != own).then_some(());
        eventually(60, apart).expect("no separate network namespace");
        ip(&[
            "link",
            "add",
            "near",
            "type",
            "veth",
            "peer",
            "name",
            "far",
            "netns",
            &observer.id().to_string(),
        ]);
        ip(&["addr", "add", NEAR, "dev", "near"]);
        ip(&["link", "set", "dev", "near", "up"]);
        observer.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut lines = BufReader::new(observer.stdout.take().unwrap()).lines();
        let redis = lines.next().unwrap().unwrap();
        let host = Self { observer, redis };
        assert_eq!(lines.next().unwrap().unwrap(), OBSERVER);
        let address = SERVER.trim_start_matches("redis://");
        eventually(60, || TcpStream::connect(address).ok()).expect("the server does not listen");
        host
    }

    fn stop_observing(&mut self) {
        if self.observer.try_wait().unwrap().is_none() {
            signal(&self.observer, "-TERM");
        }
        self.observer.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(&self.redis).status();
        let _ = self.observer.kill();
        let _ = self.observer.wait();
    }
}

fn ip(args: &[&str]) {
    let output = Command::new("ip").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {:?}", Answer::of(&output));
}

/// The servers as the trials of the newest run observed them.
fn seen(place: &Place) -> Vec<Value> {
    let report = place.report();
    let cells = report["cells"].as_array().unwrap().iter();
    cells.flat_map(|cell| cell["observed"].as_array().cloned().unwrap_or_default()).collect()
}

#[test]
fn server_on_other_host_is_observed_by_agent() {
    if kurabe_testbed::available().iter().any(|(name, found)| *name == "redis" && found.is_err()) {
        skip("redis is not installed");
        return;
    }
    let within = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set dev lo up && exec \"$0\" \"$@\""]).arg(program);
        command.stdin(Stdio::null());
        command
    };
    if !within(Path::new("true")).output().is_ok_and(|output| output.status.success()) {
        tell("a network namespace cannot be created here: that takes root, unshare and ip");
        return;
    }
    let mut command = within(&std::env::current_exe().unwrap());
    let output = command.args(["--exact", "agent::between_two_networks", "--ignored"]).output().unwrap();
    assert!(output.status.success(), "{:?}", Answer::of(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{:?}", Answer::of(&output));
}

#[test]
#[ignore = "the test above runs it in a network of its own"]
fn between_two_networks() {
    let place = Place::new();
    let mut host = Host::start(&place);
    let run = |target: &str, token: &str, rest: &[&str]| {
        let args = ["run", "point-read", target, "--records", "500", "--requests", "2000", "--no-html"];
        let mut command = place.command(&[&args[..], rest].concat());
        command.env("KURABE_OBSERVE_TOKEN", token);
        command
    };
    let watched = format!("{SERVER}?observe=:7118");
    let once = ["--rounds", "1"];
    let at_once = |target: &str, token: &str| Answer::of(&run(target, token, &once).output().unwrap());

    let answer = at_once(SERVER, TOKEN);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for seen in seen(&place) {
        assert!(seen["server"]["not-observed"].as_str().unwrap().contains("another host"), "{seen}");
    }

    let answer = at_once(&watched, TOKEN);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(!answer.out.contains(TOKEN) && !answer.err.contains(TOKEN));
    for seen in seen(&place) {
        let server = &seen["server"]["seen"];
        assert_eq!(server["name"], "redis-server", "{seen}");
        assert!(server["cpu_ns"].as_u64().unwrap() > 1_000_000, "{seen}");
        // Both network namespaces are on one machine, whose processors count once.
        assert_eq!(seen["server_host"], Value::Null, "{seen}");
        assert!(seen["wire"]["sent_bytes"].as_u64().unwrap() > 2_000, "{seen}");
    }
    let answer =
        Answer::of(&place.command(&["rerun", "last"]).env("KURABE_OBSERVE_TOKEN", TOKEN).output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(seen(&place).iter().all(|seen| seen["server"]["seen"]["name"] == "redis-server"));

    let answer = at_once(&watched, "fedcba9876543210fedcba9876543210");
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.err.contains("not observed: the agent at 198.18.77.2:7118: it has another token"),
        "{answer:?}"
    );
    for seen in seen(&place) {
        assert!(seen["server"]["not-observed"].as_str().unwrap().contains("another token"), "{seen}");
    }

    // The agent is stopped during a run, which then observes less and ends normally.
    let runs = || -> Vec<PathBuf> {
        std::fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.path()).collect()
    };
    let earlier = runs();
    // Interleaved trials are not observed.
    let child = piped(&mut run(&watched, TOKEN, &["--rounds", "40", "--interleave=off"]));
    let begun = || {
        let files = runs().into_iter().filter(|run| !earlier.contains(run)).map(|run| run.join("run.jsonl"));
        files.into_iter().find(|file| crate::support::trials(file) >= 3)
    };
    let file = eventually(60, begun).expect("no run, or no trials");
    host.stop_observing();
    let answer = Answer::of(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let of = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert!(of("\"name\":\"redis-server\"") >= 3, "{}", of("redis-server"));
    assert!(of("nothing listens there") > 0 && of("\"failed\":{") == 0, "{answer:?}");
}

#[test]
fn impossible_options_are_rejected_before_start() {
    let place = Place::new();
    let token = place.home().join("token");
    let refused = |args: &[&str], token: Option<&str>| {
        let mut command = place.command(args);
        command.env_remove("KURABE_OBSERVE_TOKEN_FILE").env_remove("KURABE_OBSERVE_TOKEN");
        command.envs(token.map(|token| ("KURABE_OBSERVE_TOKEN", token)));
        let answer = Answer::of(&command.output().unwrap());
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
        answer.err
    };
    assert!(refused(&["observe"], None).contains("requires a token"));
    assert!(refused(&["observe"], Some("short")).contains("at least 16 characters"));
    assert!(
        refused(&["observe", "--listen", "everywhere"], Some(TOKEN))
            .contains("'everywhere' is not an address")
    );
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    assert!(refused(&["observe", "--token-file", token.to_str().unwrap()], None).contains("other users"));
    assert!(refused(&["run", "point-read", "sqlite:?observe"], Some(TOKEN)).contains("reached by TCP"));
    let Some(server) = testing::server("redis") else { return };
    let target = format!("{}?observe=a b", server.url());
    assert!(refused(&["run", "point-read", &target], Some(TOKEN)).contains("is not an address"));
    let target = format!("{}?observe", server.url());
    assert!(refused(&["run", "point-read", &target], None).contains("requires a token"));
}
