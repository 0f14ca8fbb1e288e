//! Experiment net, on a listener here and in another network namespace.

use crate::network::{LOOPBACK, ip, run_alone, wait_until_apart};
use crate::servers::common::{cells, tell};
use crate::support::{Answer, KURABE, Place, eventually, metric, no_device, own_hosts, piped, signal};
use kurabe_testbed::testing;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

/// Addresses for benchmarks, which belong to nobody (RFC 2544).
const NEAR: &str = "198.18.78.1/30";
const FAR: &str = "198.18.78.2";

/// A run of few short trials.
const BRIEF: [&str; 6] = ["--requests", "60", "--rounds", "2", "--no-html", "--interleave=off"];

fn net<'a>(target: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["run", "net", target], rest].concat()
}

#[test]
fn streams_and_round_trips_are_verified_with_buffers_as_the_kernel_reports_them() {
    let place = Place::new();
    let axes = ["--buffer", "auto,64KiB", "--write-size", "2000,8KiB", "--clients", "1,3"];
    place.run(&net("up:tcp", &[&axes[..], &BRIEF].concat())).success();
    let report = place.report();
    // Both operations, and as many of the A/A control.
    assert_eq!(cells(&report).len(), 16 + 2, "{report:#}");
    for cell in cells(&report) {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["verified"]["how"], "compared", "{cell:#}");
        assert!(cell["verified"]["answers"].as_u64().unwrap() >= 120, "{cell:#}");
        if cell["operation"] == "round-trip" {
            assert_eq!(metric(cell, "data per second"), None, "{cell:#}");
            continue;
        }
        assert!(metric(cell, "data per second").unwrap() > 1e5, "{cell:#}");
        assert!(metric(cell, "sender CPU per GB").unwrap() > 1e6, "{cell:#}");
        assert!(metric(cell, "receiver CPU per GB").unwrap() > 1e6, "{cell:#}");
        assert!(metric(cell, "MSS").unwrap() > 500.0, "{cell:#}");
        let buffers = ["send buffer", "receive buffer"].map(|name| metric(cell, name).unwrap());
        if cell["axes"]["buffer"] == 65_536 {
            // Linux doubles what is asked for.
            assert!(buffers.iter().all(|bytes| (bytes - 131_072.0).abs() < 1.0), "{cell:#}");
        }
    }
    let settings = &report["targets"][0]["settings"];
    for name in ["MSS", "congestion control", "net.ipv4.tcp_rmem", "listener's congestion control"] {
        assert!(settings[name].as_str().is_some_and(|value| !value.is_empty()), "{name}: {settings:#}");
    }
}

#[test]
fn published_figures_are_shown_beside_ours_with_their_fault() {
    let place = Place::new();
    let axes = ["--operation", "stream", "--buffer", "64KiB,128KiB", "--write-size", "8KiB"];
    place.run(&net("up:tcp", &[&axes[..], &BRIEF].concat())).success();
    let html = place.run(&["report", "--format", "html", "--published", "-o", "-"]).out;
    assert!(html.contains("iperf3 128 linux loopback") && html.contains("threefold to sixfold"));
}

#[test]
fn listener_behind_a_link_has_segments_of_its_mtu_and_leaves_no_device() {
    let _alone = own_hosts();
    let place = Place::new();
    for wrong in ["mtu=100", "mtu=x", "size=3"] {
        place.run(&net(&format!("up:tcp?{wrong}"), &BRIEF)).exit_code(2);
    }
    let axes = ["--operation", "stream", "--buffer", "64KiB", "--write-size", "8KiB"];
    let answer = place.run(&net("up:tcp?mtu=1500", &[&["up:tcp?mtu=9000"], &axes[..], &BRIEF].concat()));
    if answer.err.contains("takes root") || answer.err.contains("unshare") {
        tell("a network namespace cannot be made here: that takes root, unshare, nsenter and ip");
        return;
    }
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let report = place.report();
    for cell in cells(&report) {
        let expected = if cell["target"].as_str().unwrap().contains("1500") {
            1_400.0..1_461.0
        } else {
            8_900.0..8_961.0
        };
        let segment = metric(cell, "MSS").unwrap();
        assert!(expected.contains(&segment), "{segment}: {cell:#}");
    }
    assert!(eventually(30, || no_device().then_some(())).is_some(), "a device was left");
}

#[test]
fn only_net_runs_on_a_listener() {
    let place = Place::new();
    let Some(server) = testing::server("tcp") else { return };
    let answer = place.run(&["run", "kv", server.url(), "--rounds", "1", "--no-html"]).exit_code(3);
    assert!(answer.err.contains("a listener is no database"), "{answer:?}");
}

#[test]
fn buffer_that_the_kernel_does_not_allow_is_not_available_with_the_remedy() {
    let limit: u64 = fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap().trim().parse().unwrap();
    if limit >= 1 << 30 {
        tell("the kernel allows socket buffers of any size");
        return;
    }
    let place = Place::new();
    let answer = place
        .run(&net("up:tcp", &[&["--buffer", "64KiB,1GiB", "--write-size", "8KiB"], &BRIEF[..]].concat()));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let report = place.report();
    let unavailable: Vec<&Value> =
        cells(&report).iter().filter(|cell| cell["status"] == "unavailable").collect();
    assert!(!unavailable.is_empty());
    for cell in unavailable {
        let reason = cell["reason"].as_str().unwrap();
        assert!(reason.contains("sysctl -w net.core.wmem_max=1073741824"), "{reason}");
    }
}

#[test]
fn killed_listener_fails_its_trials_with_reason() {
    for operation in ["stream", "round-trip"] {
        let Some(server) = testing::server("tcp") else { return };
        let place = Place::new();
        let long = ["--operation", operation, "--buffer", "64KiB", "--write-size", "8KiB", "--rounds", "50"];
        let args = net(server.url(), &[&long[..], &["--duration", "200ms", "--no-html"]].concat());
        let (child, _) = place.spawn_to_trial(&args, 3);
        place.go_on(3);
        server.kill_hard().unwrap();
        let answer = Answer::at_end_of(child);
        assert_eq!(answer.code, Some(4), "{operation}: {answer:?}");
        let report = place.report();
        for cell in cells(&report) {
            assert_eq!(cell["status"], "failed", "{cell:#}");
            let reason = cell["reason"].as_str().unwrap();
            let known = ["closed the connection", "no listener answers", "no connection", "connection"];
            assert!(known.iter().any(|part| reason.contains(part)), "{operation}: {reason}");
        }
    }
}

/// A peer that accepts connections, and answers the first bytes of each with these.
fn peer(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(answer);
        }
    });
    port
}

#[test]
fn port_of_another_server_is_refused_with_what_to_do() {
    let place = Place::new();
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b""] {
        let target = format!("tcp://127.0.0.1:{}", peer(answer));
        let answer = place.run(&net(&target, &BRIEF)).exit_code(3);
        assert!(answer.err.contains("no listener of Kurabe"), "{answer:?}");
        assert!(answer.err.contains("kurabe up tcp"), "{answer:?}");
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    place.run(&net(&format!("tcp://127.0.0.1:{free}"), &BRIEF)).exit_code(3).err_has("no listener answers");
}

/// `kurabe up tcp`, until it is dropped.
struct Listening {
    child: Child,
    url: String,
}

impl Listening {
    fn start(mut child: Child) -> Self {
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn listen_prints_its_url_serves_runs_and_ends_by_ctrl_c() {
    let place = Place::new();
    let mut listening = Listening::start(place.spawn(&["up", "tcp", "127.0.0.1:0"]));
    assert!(listening.url.starts_with("tcp://127.0.0.1:"), "{}", listening.url);
    let cell = ["--buffer", "64KiB", "--write-size", "8KiB"];
    place.run(&net(&listening.url, &[&cell[..], &BRIEF].concat())).success();
    let taken = place.run(&["up", "tcp", listening.url.trim_start_matches("tcp://")]).exit_code(5);
    assert!(taken.err.contains("cannot listen at"), "{taken:?}");
    signal(&listening.child, "-INT");
    assert_eq!(listening.child.wait().unwrap().code(), Some(0));
}

#[test]
fn listener_in_another_network_namespace_is_measured_over_its_link() {
    let test = "net::listener_in_another_network_namespace_is_measured_over_its_link";
    run_alone(test, LOOPBACK, between_two_networks);
}

fn between_two_networks() {
    let place = Place::new();
    let script = format!(
        "read go && ip link set dev lo up && ip addr add {FAR}/30 dev far && ip link set dev far up || exit 9
         exec \"$0\" up tcp {FAR}:7007 --allow-remote"
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &script]).arg(KURABE);
    place.configure(&mut command);
    let mut child = piped(command.stdin(Stdio::piped()));
    wait_until_apart(&child);
    let far = child.id().to_string();
    ip(&[
        "link", "add", "near", "mtu", "1500", "type", "veth", "peer", "name", "far", "mtu", "1500", "netns",
        &far,
    ]);
    ip(&["addr", "add", NEAR, "dev", "near"]);
    ip(&["link", "set", "dev", "near", "up"]);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let listening = Listening::start(child);
    assert_eq!(listening.url, format!("tcp://{FAR}:7007"));
    // Without the headers of IP and TCP, the latter with timestamps; loopback's segments have 65,483 bytes.
    for (mtu, expected) in [("1500", 1_400.0..1_461.0), ("9000", 8_900.0..8_961.0)] {
        ip(&["link", "set", "dev", "near", "mtu", mtu]);
        let mut inside = Command::new("nsenter");
        inside.args(["-t", &far, "-n", "ip", "link", "set", "dev", "far", "mtu", mtu]);
        assert!(inside.status().unwrap().success());
        let cell = ["--buffer", "64KiB", "--write-size", "8KiB"];
        place.run(&net(&listening.url, &[&cell[..], &BRIEF].concat())).success();
        let report = place.report();
        let stream = cells(&report).iter().find(|cell| cell["operation"] == "stream").unwrap();
        let segment = metric(stream, "MSS").unwrap();
        assert!(expected.contains(&segment), "MTU {mtu}: {segment}");
    }
}
