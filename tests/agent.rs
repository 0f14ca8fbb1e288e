//! A server on another host, observed by an agent that is started with ssh: two network namespaces stand for two hosts.

use crate::network::{LOOPBACK, ip, run_alone, wait_until_apart};
use crate::servers::common::{has, skip};
use crate::support::{Answer, KURABE, Place, eventually, piped};
use kurabe_testbed::testing;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Addresses for benchmarks, which belong to nobody (RFC 2544). Those of a throwaway server's own host follow each other.
const NEAR: &str = "198.18.77.1/29";
const SERVER: &str = "redis://198.18.77.5:7001";
const SSHD: &str = "/usr/sbin/sshd";
const SSH_PORT: u16 = 7022;

/// The other host: it gets its end of the virtual cable, then runs a database server and an SSH server.
const FAR: &str = "read go && ip link set dev lo up && ip addr add 198.18.77.5/29 dev far && ip link set dev far up || exit 9
redis-server --bind 198.18.77.5 --port 7001 --protected-mode no --save '' --appendonly no >/dev/null & echo $!
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f \"$0\"";

/// The keys and settings of the SSH server and of its client.
struct Ssh {
    sshd: PathBuf,
    client: PathBuf,
}

impl Ssh {
    fn new(place: &Path) -> Self {
        let key = |name: &str| {
            let path = place.join(name);
            let mut command = Command::new("ssh-keygen");
            let output = command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path).output().unwrap();
            assert!(output.status.success(), "{:?}", Answer::of(&output));
            path.to_str().unwrap().to_owned()
        };
        let (host, user, other) = (key("host"), key("user"), key("other"));
        let folder = Path::new(KURABE).parent().unwrap().display();
        let mut sshd = format!("Port {SSH_PORT}\nListenAddress 198.18.77.5\nHostKey {host}\n");
        let _ = writeln!(sshd, "AuthorizedKeysFile {user}.pub\nStrictModes no\nUsePAM no\nPidFile none");
        let _ = writeln!(sshd, "PermitRootLogin prohibit-password\nSetEnv PATH={folder}:/usr/bin:/bin");
        let public = fs::read_to_string(format!("{host}.pub")).unwrap();
        let known = place.join("known");
        fs::write(&known, format!("[198.18.77.5]:{SSH_PORT} {public}")).unwrap();
        let mut client = String::new();
        for (name, identity) in [("far", &user), ("stranger", &other)] {
            let _ = writeln!(client, "Host {name}\nIdentityFile {identity}");
        }
        let _ = writeln!(client, "Host *\nHostName 198.18.77.5\nPort {SSH_PORT}\nUser root\nBatchMode yes");
        let _ = writeln!(
            client,
            "IdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {}",
            known.display()
        );
        let write = |name: &str, text: String| {
            let path = place.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        Self { sshd: write("sshd_config", sshd), client: write("ssh_config", client) }
    }
}

struct Host {
    sshd: Child,
    redis: String,
}

impl Host {
    fn start(place: &Place, ssh: &Ssh) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", FAR]).arg(&ssh.sshd);
        place.configure(&mut command);
        command.stdin(Stdio::piped());
        let mut sshd = piped(&mut command);
        wait_until_apart(&sshd);
        let far = sshd.id().to_string();
        ip(&["link", "add", "near", "type", "veth", "peer", "name", "far", "netns", &far]);
        ip(&["addr", "add", NEAR, "dev", "near"]);
        ip(&["link", "set", "dev", "near", "up"]);
        sshd.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut lines = BufReader::new(sshd.stdout.take().unwrap()).lines();
        let redis = lines.next().unwrap().unwrap();
        for address in [SERVER.trim_start_matches("redis://"), &format!("198.18.77.5:{SSH_PORT}")] {
            eventually(60, || TcpStream::connect(address).ok()).expect("a server does not listen");
        }
        Self { sshd, redis }
    }

    /// The agents that the SSH server started.
    fn agents(&self) -> Vec<u32> {
        let mut found = vec![self.sshd.id()];
        let mut at = 0;
        while let Some(parent) = found.get(at) {
            let children =
                Command::new("ps").args(["-o", "pid=", "--ppid", &parent.to_string()]).output().unwrap();
            let children = String::from_utf8_lossy(&children.stdout).into_owned();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            at += 1;
        }
        found.retain(|pid| {
            fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == Path::new(KURABE))
        });
        found
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(&self.redis).status();
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// The servers as the trials of the newest run observed them.
fn seen(place: &Place) -> Vec<Value> {
    let report = place.report();
    let cells = report["cells"].as_array().unwrap().iter();
    cells.flat_map(|cell| cell["observed"].as_array().cloned().unwrap_or_default()).collect()
}

#[test]
fn server_on_other_host_is_observed_by_agent() {
    if !has("redis") {
        return;
    }
    if !Path::new(SSHD).exists() {
        skip("the SSH server is not installed");
        return;
    }
    run_alone("agent::server_on_other_host_is_observed_by_agent", LOOPBACK, between_two_networks);
}

fn between_two_networks() {
    // An address that can be bound need not be one of this host.
    fs::write("/proc/sys/net/ipv4/ip_nonlocal_bind", "1").unwrap();
    let place = Place::new();
    let ssh = Ssh::new(place.home());
    let host = Host::start(&place, &ssh);
    let rsh = format!("ssh -F {}", ssh.client.display());
    let run = |target: &str, rest: &[&str]| {
        let args = ["run", "point-read", target, "--records", "500", "--requests", "2000", "--no-html"];
        let mut command = place.command(&[&args[..], rest].concat());
        command.env("KURABE_RSH", &rsh);
        command
    };
    let watched = format!("{SERVER}?observe=far");
    let once = |target: &str| Answer::of(&run(target, &["--rounds", "1"]).output().unwrap());

    once(SERVER).success();
    for seen in seen(&place) {
        assert!(seen["server"]["not-observed"].as_str().unwrap().contains("another host"), "{seen}");
    }

    once(&watched).success();
    for seen in seen(&place) {
        let server = &seen["server"]["seen"];
        assert_eq!(server["name"], "redis-server", "{seen}");
        assert!(server["cpu_ns"].as_u64().unwrap() > 1_000_000, "{seen}");
        // Both network namespaces are on one machine, whose processors count once.
        assert_eq!(seen["server_host"], Value::Null, "{seen}");
        assert!(seen["wire"]["sent_bytes"].as_u64().unwrap() > 2_000, "{seen}");
    }
    eventually(60, || host.agents().is_empty().then_some(())).expect("the agent outlived its run");
    let answer =
        Answer::of(&place.command(&["run", "--again", "last"]).env("KURABE_RSH", &rsh).output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(seen(&place).iter().all(|seen| seen["server"]["seen"]["name"] == "redis-server"));
    let answer = Answer::of(&place.command(&["doctor", &watched]).env("KURABE_RSH", &rsh).output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.out.contains(&format!("by the agent of '{rsh} far'")), "{answer:?}");

    let answer = once(&format!("{SERVER}?observe=stranger")).success();
    let refused = format!("the agent of '{rsh} stranger': it ended: root@198.18.77.5: Permission denied");
    assert!(answer.err.contains(&format!("not observed: {refused}")), "{answer:?}");
    for seen in seen(&place) {
        assert!(seen["server"]["not-observed"].as_str().unwrap().contains("Permission denied"), "{seen}");
    }

    // The agent is killed during a run, which then observes less and ends normally.
    let runs = || -> Vec<PathBuf> {
        fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.path()).collect()
    };
    let earlier = runs();
    // Interleaved trials are not observed.
    let child = piped(&mut run(&watched, &["--rounds", "40", "--interleave=off"]));
    let begun = || {
        let files = runs().into_iter().filter(|run| !earlier.contains(run)).map(|run| run.join("run.jsonl"));
        files.into_iter().find(|file| crate::support::trials(file) >= 3)
    };
    let file = eventually(60, begun).expect("no run, or no trials");
    let agents = host.agents();
    assert_eq!(agents.len(), 1, "{agents:?}");
    assert!(Command::new("kill").arg("-9").arg(agents[0].to_string()).status().unwrap().success());
    let answer = Answer::at_end_of(child).success();
    let text = fs::read_to_string(&file).unwrap();
    let of = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert!(of("\"name\":\"redis-server\"") >= 3, "{}", of("redis-server"));
    assert!(of("it ended") > 0 && of("\"failed\":{") == 0, "{answer:?}");
}

#[test]
fn impossible_options_are_rejected_before_start() {
    let place = Place::new();
    let refused = |args: &[&str]| {
        let answer = place.run(args).exit_code(2);
        answer.err
    };
    let Some(server) = testing::server("redis") else { return };
    for destination in ["a b", "-oProxyCommand=true"] {
        let target = format!("{}?observe={destination}", server.url());
        assert!(refused(&["run", "point-read", &target]).contains("is not a destination"));
    }
}

#[test]
fn agent_answers_requests_until_its_input_ends() {
    let place = Place::new();
    let Some(server) = testing::server("redis") else { return };
    let mut child = piped(place.command(&["agent", "--stdio"]).stdin(Stdio::piped()));
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["kurabe_agent"], 3);
    let port =
        server.url().rsplit_once(':').unwrap().1.trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned();
    for _ in 0..2 {
        writeln!(input, "{{\"begin\":{{\"host\":\"127.0.0.1\",\"port\":{port}}}}}").unwrap();
        assert!(next()["begun"]["boot"].is_string());
        writeln!(input, "\"end\"").unwrap();
        assert_eq!(next()["ended"]["server"]["name"], "redis-server");
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut child = piped(place.command(&["agent", "--stdio"]).stdin(Stdio::piped()));
    child.stdin.take().unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    Answer::at_end_of(child).exit_code(2).err_has("does not follow the protocol");
}
