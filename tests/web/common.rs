//! An application for these tests, and a client that sends given bytes.

use crate::servers::common::skip;
use crate::support::{Answer, Place, eventually, piped, signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::time::Duration;

/// The timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `kurabe up app`.
pub(crate) struct App {
    child: Option<Child>,
    pub(crate) address: SocketAddr,
    _place: Place,
}

impl App {
    /// Starts it in front of a target with only `kv`, at a free port.
    pub(crate) fn start(target: &str, rest: &[&str]) -> Self {
        Self::start_with(target, &[&["--experiment", "kv", "--records", "500"], rest].concat())
    }

    /// Starts it in front of a target, at a free port.
    pub(crate) fn start_with(target: &str, rest: &[&str]) -> Self {
        let place = Place::new();
        let args = ["up", "app", target, "--listen", "127.0.0.1:0"];
        let mut child = piped(&mut place.command(&[&args, rest].concat()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("http://").and_then(|text| text.parse().ok()) else {
            panic!("no address: {line:?} {:?}", Answer::at_end_of(child));
        };
        Self { child: Some(child), address, _place: place }
    }

    pub(crate) fn url(&self, page: &str) -> String {
        format!("http://{}{page}", self.address)
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.as_ref().unwrap(), name);
    }

    /// Stops it, and returns how it ended.
    pub(crate) fn stop(self) -> Answer {
        self.signal("-TERM");
        self.ended()
    }

    /// How it ended.
    pub(crate) fn ended(mut self) -> Answer {
        Answer::of(&self.child.take().unwrap().wait_with_output().unwrap())
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A page, requested on a new connection.
    pub(crate) fn get(&self, page: &str) -> Said {
        self.send(format!("GET {page} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())
    }

    /// A page that changes the database, requested on a new connection.
    pub(crate) fn post(&self, page: &str) -> Said {
        self.send(format!("POST {page} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())
    }

    /// The answer to these bytes.
    pub(crate) fn send(&self, bytes: &[u8]) -> Said {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        Said::read(&mut stream)
    }
}

/// Waits until this many of these connections have been answered.
pub(crate) fn wait_for_answers(streams: &[TcpStream], wanted: usize) {
    let answered = |stream: &&TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let there = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).unwrap();
        there
    };
    let all = || (streams.iter().filter(answered).count() >= wanted).then_some(());
    assert!(eventually(60, all).is_some(), "fewer than {wanted} answers came");
}

/// The output of a program; `None`, with a message, if it is not installed.
pub(crate) fn tool(name: &str, args: &[&str]) -> Option<String> {
    let Ok(output) = Command::new(name).args(args).output() else {
        skip(&format!("{name} is not installed"));
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name}: {text} {}", String::from_utf8_lossy(&output.stderr));
    Some(text)
}

/// Checks that an application serves others while this many clients keep a connection open without a request, serves each
/// hundredth of them afterwards, and stops.
pub(crate) fn serve_beside_idle_connections(count: usize) {
    let app = App::start("null:", &["--idle-time", "1h"]);
    let mut idle: Vec<TcpStream> = (0..count).map(|_| app.connect()).collect();
    for _ in 0..100 {
        assert_eq!(app.get("/kv/read").status, 200);
    }
    for stream in idle.iter_mut().step_by(100) {
        stream.write_all(b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert_eq!(Said::read(stream).status, 200);
    }
    // They do not prevent stopping either.
    assert_eq!(app.stop().code, Some(0));
}

impl Drop for App {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It removes its tables when it is stopped, not when it is killed.
            signal(&child, "-TERM");
            let _ = child.wait();
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Said {
    /// Reads one answer, whose head contains the length.
    pub(crate) fn read(stream: &mut TcpStream) -> Self {
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
                let length = field(&head, "content-length").unwrap().parse::<usize>().unwrap();
                if bytes.len() >= at + 4 + length {
                    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                    let body = String::from_utf8(bytes[at + 4..at + 4 + length].to_vec()).unwrap();
                    return Self { status, head, body };
                }
            }
            match stream.read(&mut piece) {
                Ok(0) => panic!("the connection ended after {:?}", String::from_utf8_lossy(&bytes)),
                Ok(n) => bytes.extend_from_slice(&piece[..n]),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&bytes)),
            }
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<String> {
        field(&self.head, name)
    }
}

fn field(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}
