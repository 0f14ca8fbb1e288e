//! Agents, and what holds in trials of a fleet.

#[path = "broker.rs"]
pub(crate) mod broker;

use crate::support::{Place, piped, recorded_trials};
use broker::Broker;
use kurabe_testbed::Server;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// An agent on a broker. It ends with the test.
pub(crate) struct Agent(pub(crate) Child);

impl Agent {
    pub(crate) fn start(place: &Place, broker: &Broker, name: &str, more: &[&str]) -> Self {
        Self::with(place, broker, name, more, |_| {})
    }

    /// An agent whose environment has the server's password.
    pub(crate) fn knowing(
        server: &Server,
        place: &Place,
        broker: &Broker,
        name: &str,
        more: &[&str],
    ) -> Self {
        let password = server.password().unwrap();
        Self::with(place, broker, name, more, |command| {
            command.env("PGPASSWORD", password).env("REDISCLI_AUTH", password);
            command.env("KURABE_AGENT_ALLOW", format!("127.0.0.1:{}", server.port()));
        })
    }

    pub(crate) fn with(
        place: &Place,
        broker: &Broker,
        name: &str,
        more: &[&str],
        set: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command =
            place.command(&[&["agent", "--broker", broker.url(), "--name", name], more].concat());
        set(&mut command);
        Self(piped(&mut command))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks what holds in each trial of a fleet, all of which are measured, and returns how many there are.
pub(crate) fn check_sums(file: &Path, agents: u64) -> usize {
    recorded_trials(file).iter().map(|trial| measured_sums(trial, agents)).count()
}

/// Checks what holds in each measured trial of a fleet.
pub(crate) fn measured_sums(trial: &Value, agents: u64) {
    let measured = &trial["outcome"]["measured"];
    assert!(measured.is_object(), "{trial}");
    let of = |name: &str| measured[name].as_u64().unwrap_or(0);
    let parts = measured["fleet"]["agents"].as_array().unwrap();
    let sum = |name: &str| parts.iter().map(|part| part[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(parts.len() as u64, agents.min(of("clients")), "{trial}");
    assert_eq!((sum("clients"), sum("completed")), (of("clients"), of("completed")), "{trial}");
    assert_eq!(of("offered"), of("completed") + of("failed") + of("dropped"), "{trial}");
    // What the server answered and acknowledged is what the agents did, warm-up included.
    let verified = |name: &str| measured["verified"][name].as_u64().unwrap();
    let done = of("completed") + of("warmup");
    if trial["operation"] == "write" {
        assert_eq!(verified("writes"), done, "{trial}");
        // An engine without a count of its own has its records read back.
        assert!(verified("counted") == done || verified("read_back") > 0, "{trial}");
    } else {
        assert_eq!(verified("answers"), done, "{trial}");
    }
}

/// The numbers of the processes that this process started.
pub(crate) fn children(of: u32) -> Vec<u32> {
    let found = Command::new("ps").args(["-o", "pid=", "--ppid", &of.to_string()]).output().unwrap();
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    found.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// The clients of a Redis server, without the one that asks.
pub(crate) fn connections(url: &str) -> usize {
    let after = url.split_once("://").unwrap().1;
    let address = after.split(['/', '?']).next().unwrap().rsplit('@').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let login =
        after.split_once(':').and_then(|(_, rest)| rest.split_once('@')).map_or("", |(login, _)| login);
    stream.write_all(format!("AUTH {login}\r\n").as_bytes()).unwrap();
    stream.write_all(b"CLIENT LIST\r\nQUIT\r\n").unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text.lines().filter(|line| line.contains("addr=")).count() - 1
}
