//! A NATS broker for tests, and clients of it that speak its protocol themselves.

use crate::support::eventually;
use kurabe_relay::{LOOPBACK, Late, Relay};
use kurabe_testbed::testing;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A running `nats-server`. It ends with the test.
pub(crate) struct Broker {
    child: Child,
    address: String,
    url: String,
    /// Options with which clients have to log in.
    login: Vec<String>,
}

impl Broker {
    /// Starts one; `None`, with a visible skip, if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::at("127.0.0.1")
    }

    /// As [`Broker::start`], for clients that log in as these options say.
    pub(crate) fn with_login(login: &[&str]) -> Option<Self> {
        Self::start_with("127.0.0.1", login)
    }

    /// As [`Broker::start`], at this address of the host.
    pub(crate) fn at(host: &str) -> Option<Self> {
        Self::start_with(host, &[])
    }

    fn start_with(host: &str, login: &[&str]) -> Option<Self> {
        if !Command::new("nats-server").arg("--version").output().is_ok_and(|output| output.status.success())
        {
            assert!(!testing::required(), "nats-server is not installed");
            testing::skipped("nats-server is not installed");
            return None;
        }
        let free = TcpListener::bind((host, 0)).unwrap().local_addr().unwrap().port();
        let address = format!("{host}:{free}");
        let login: Vec<String> = login.iter().map(|&word| word.to_owned()).collect();
        let child = spawn(&address, &login);
        Some(Self { child, url: format!("nats://{address}"), address, login })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A relay before it that delays each direction, and holds back all bytes while `held` is set; and its URL.
    pub(crate) fn far(&self, delay: Duration, held: &Arc<AtomicBool>) -> (Relay, String) {
        let (to, held) = (self.address.parse::<SocketAddr>().unwrap(), Arc::clone(held));
        let late = move |_| Arc::new(Late::new(delay, delay, &held)) as _;
        let relay = Relay::start(LOOPBACK, to.into(), late).unwrap();
        let url = format!("nats://{}", relay.address());
        (relay, url)
    }

    /// Kills it and starts it again at the same address.
    pub(crate) fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.address, &self.login);
    }

    /// Publishes a message. It has arrived when this returns.
    pub(crate) fn publish(&self, subject: &str, reply: Option<&str>, payload: &[u8]) {
        let (mut stream, mut lines) = self.client("nothing");
        write!(stream, "PUB {subject} {} {}\r\n", reply.unwrap_or_default(), payload.len()).unwrap();
        stream.write_all(payload).unwrap();
        stream.write_all(b"\r\nPING\r\n").unwrap();
        let mut line = String::new();
        while !line.starts_with("PONG") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "{subject}: {line}");
            assert!(!line.starts_with("-ERR"), "{subject}: {line}");
        }
    }

    /// The first answer to a request; `None` if nobody answers at once.
    fn request(&self, subject: &str, payload: &str) -> Option<serde_json::Value> {
        let (mut stream, mut lines) = self.client("_INBOX.test");
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        write!(stream, "PUB {subject} _INBOX.test {}\r\n{payload}\r\n", payload.len()).unwrap();
        let mut line = String::new();
        while !line.starts_with("MSG ") {
            line.clear();
            lines.read_line(&mut line).ok().filter(|read| *read > 0)?;
        }
        line.clear();
        lines.read_line(&mut line).ok()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// The subject of the agent that answers a call; the only one.
    pub(crate) fn agent(&self, name: &str) -> String {
        let call = || self.request("kurabe.fleet.call", r#"{"kurabe_fleet":3}"#);
        let here = eventually(60, call).expect("no agent answers");
        let about = &here["message"]["here"];
        assert_eq!(about["agent"]["name"], name, "{here}");
        format!("kurabe.fleet.agent.{}", about["id"].as_str().unwrap())
    }

    /// A client that has subscribed to this.
    fn client(&self, subject: &str) -> (TcpStream, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut info = String::new();
        lines.read_line(&mut info).unwrap();
        assert!(info.starts_with("INFO "), "{info}");
        write!(stream, "CONNECT {{\"verbose\":false}}\r\nSUB {subject} 1\r\nPING\r\n").unwrap();
        let mut pong = String::new();
        while !pong.starts_with("PONG") {
            pong.clear();
            lines.read_line(&mut pong).unwrap();
        }
        (stream, lines)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(address: &str, login: &[String]) -> Child {
    let (host, port) = address.rsplit_once(':').unwrap();
    let mut command = Command::new("nats-server");
    command
        .args(["-a", host, "-p", port])
        .args(login)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    eventually(60, || TcpStream::connect(address).ok()).expect("nats-server does not listen");
    child
}

/// Everything that was published on a broker.
pub(crate) struct Tap {
    seen: Arc<Mutex<Vec<u8>>>,
    address: String,
}

impl Tap {
    pub(crate) fn on(broker: &Broker) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut stream, mut lines) = broker.client(">");
        let own = Arc::clone(&seen);
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(read @ 1..) = lines.read(&mut bytes) {
                let part = &bytes[..read];
                own.lock().unwrap().extend_from_slice(part);
                if part.windows(6).any(|window| window == b"PING\r\n") {
                    let _ = stream.write_all(b"PONG\r\n");
                }
            }
        });
        Self { seen, address: broker.address.clone() }
    }

    /// What was published before this call.
    pub(crate) fn read(&self) -> String {
        // The broker passes on this message after those that it received before.
        const LAST: &str = "the last message";
        let text = || String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned();
        let before = text().matches(LAST).count();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let connect = "CONNECT {\"verbose\":false}";
        write!(stream, "{connect}\r\nPUB kurabe.tap {}\r\n{LAST}\r\nPING\r\n", LAST.len()).unwrap();
        eventually(60, || Some(text()).filter(|text| text.matches(LAST).count() > before))
            .expect("the broker passes nothing on")
    }
}

/// Answers calls as an agent with this name and version of Kurabe would.
pub(crate) fn pretender(broker: &Broker, name: &str, version: &str, build: &str) {
    let (mut stream, mut lines) = broker.client("kurabe.fleet.call");
    let about = format!(
        r#"{{"id":"x","agent":{{"name":"{name}","host":"h","cpus":1,"system":"s"}},"kurabe":"{version}","build":{build},"protocol":3,"boot":"b","network":"n","pid":1,"busy":null}}"#
    );
    let answer = format!(r#"{{"number":0,"seen":0,"message":{{"here":{about}}}}}"#);
    thread::spawn(move || {
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
            // MSG subject number reply length
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["MSG", _, _, reply, _] = words[..] {
                let _ = write!(stream, "PUB {reply} {}\r\n{answer}\r\n", answer.len());
            } else if words == ["PING"] {
                let _ = stream.write_all(b"PONG\r\n");
            }
            line.clear();
        }
    });
}
