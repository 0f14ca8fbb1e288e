//! Planted lies: a relay before an application tells the truth but once. No run accepts one.

use crate::servers::common::cells;
use crate::support::Place;
use kurabe_relay::{Hook, LOOPBACK, Relay, Socket};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A response: status and body.
#[derive(Clone)]
struct Response {
    status: u16,
    body: Vec<u8>,
}

impl Response {
    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    fn with(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }
}

/// What the relay sends in place of the truth. `None`: this request is none to lie about.
type Tell = fn(&mut Server<'_>, &str) -> Option<Sent>;

enum Sent {
    Whole(Response),
    /// So many bytes of it, and the end of the connection.
    Part(Response, usize),
}

/// The application behind the relay.
struct Server<'a> {
    stream: &'a mut Socket,
    /// The header field with which the client logs in, with the end of its line; empty if it does not.
    authorization: String,
    /// The last answer to a page with this path before its parameters.
    earlier: Option<Response>,
}

impl Server<'_> {
    /// Requests a page by the method of its kind.
    fn ask(&mut self, page: &str) -> Response {
        let posts = ["/kv/write", "/webapp/request"].iter().any(|path| page.starts_with(path));
        let method = if posts { "POST" } else { "GET" };
        let head = format!("{method} {page} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n");
        let head = format!("{head}{}\r\n", self.authorization);
        self.stream.write_all(head.as_bytes()).unwrap();
        let head = head_of(self.stream).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.to_ascii_lowercase();
        let length = length.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.trim().parse().unwrap()];
        self.stream.read_exact(&mut body).unwrap();
        Response { status, body }
    }
}

/// The head of a message; `None` at the end of the connection.
fn head_of(stream: &mut Socket) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// A relay that lies once: about the first fitting request after this many of this path.
struct Liar {
    path: &'static str,
    truths: u64,
    tell: Tell,
    told: AtomicU64,
    seen: AtomicU64,
    earlier: Mutex<Option<Response>>,
}

fn relay(to: SocketAddr, path: &'static str, truths: u64, tell: Tell) -> (Relay, Arc<Liar>) {
    let (told, seen, earlier) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(None));
    let liar = Arc::new(Liar { path, truths, tell, told, seen, earlier });
    let hook = Arc::clone(&liar);
    (Relay::start(LOOPBACK, to.into(), move |_| Arc::clone(&hook) as _).unwrap(), liar)
}

impl Hook for Liar {
    /// Passes the requests of one client.
    fn serve(&self, mut client: Socket, mut stream: Socket) {
        let Self { path, truths, tell, told, seen, earlier } = self;
        while let Some(head) = head_of(&mut client) {
            let page = head.split(' ').nth(1).unwrap().to_owned();
            let login = head.split_inclusive('\n').find(|line| line.starts_with("Authorization:"));
            let authorization = login.unwrap_or_default().to_owned();
            let earlier_one = earlier.lock().unwrap().clone();
            let mut server = Server { stream: &mut stream, authorization, earlier: earlier_one };
            let is_of_path = page.split('?').next() == Some(path);
            let due = is_of_path && seen.fetch_add(1, Ordering::SeqCst) >= *truths;
            // Only one of the clients lies.
            let mine = due && told.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            let lie = if mine { tell(&mut server, &page) } else { None };
            if mine && lie.is_none() {
                told.store(0, Ordering::SeqCst);
            }
            let sent = lie.unwrap_or_else(|| Sent::Whole(server.ask(&page)));
            let (response, most) = match sent {
                Sent::Whole(response) => (response, usize::MAX),
                Sent::Part(response, most) => (response, most),
            };
            if is_of_path && !mine && response.status == 200 {
                *earlier.lock().unwrap() = Some(response.clone());
            }
            let Response { status, body } = response;
            let mut message =
                format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
            let head = message.len();
            message.extend(body);
            message.truncate(head.saturating_add(most));
            if client.write_all(&message).is_err() || most != usize::MAX {
                break;
            }
        }
        client.shutdown(Shutdown::Both);
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a lie is optional")]
fn whole(response: Response) -> Option<Sent> {
    Some(Sent::Whole(response))
}

/// The answer with one of its bytes changed.
fn changed(mut response: Response, at: usize) -> Option<Sent> {
    response.body[at] = if response.body[at] == b'7' { b'8' } else { b'7' };
    whole(response)
}

/// The record after the one that a page names, or before the last one.
fn neighbour(page: &str) -> String {
    let (path, key) = page.split_once("?key=").unwrap();
    let key: u64 = key.parse().unwrap();
    format!("{path}?key={}", if key > 1 { key - 1 } else { 2 })
}

/// The answer with a line replaced, if it has one that begins like this.
fn replaced(response: Response, start: &str, to: impl Fn(&str) -> String) -> Option<Response> {
    let text = response.text();
    let line = text.lines().find(|line| line.starts_with(start))?.to_owned();
    Some(response.with(text.replacen(&format!("{line}\n"), &to(&line), 1)))
}

/// A line with one of its fields, which tabs separate, changed.
fn field(line: &str, at: usize, to: impl Fn(&str) -> String) -> String {
    let fields = line.split('\t').enumerate();
    let fields: Vec<String> =
        fields.map(|(n, field)| if n == at { to(field) } else { field.to_owned() }).collect();
    fields.join("\t") + "\n"
}

/// Each lie: what it is, the experiment, its page, and how it is told.
const LIES: [(&str, &str, &str, Tell); 22] = [
    ("one byte of a record", "kv read", "/kv/read", |server, page| {
        let truth = server.ask(page);
        let last = truth.body.len() - 1;
        changed(truth, last)
    }),
    ("a record without its last byte", "kv read", "/kv/read", |server, page| {
        let mut truth = server.ask(page);
        truth.body.pop();
        whole(truth)
    }),
    ("a record with a byte more", "kv read", "/kv/read", |server, page| {
        let mut truth = server.ask(page);
        truth.body.push(b'0');
        whole(truth)
    }),
    ("another record under its own key", "kv read", "/kv/read", |server, page| {
        whole(server.ask(&neighbour(page)))
    }),
    ("another record under the key", "kv read", "/kv/read", |server, page| {
        let (truth, mut other) = (server.ask(page), server.ask(&neighbour(page)));
        other.body[..20].copy_from_slice(&truth.body[..20]);
        whole(other)
    }),
    ("the answer to an earlier request", "kv read", "/kv/read", |server, page| {
        let (earlier, truth) = (server.earlier.clone()?, server.ask(page));
        if earlier.body == truth.body { None } else { whole(earlier) }
    }),
    ("an empty answer", "kv read", "/kv/read", |server, page| whole(server.ask(page).with(""))),
    ("an error with status 200", "kv read", "/kv/read", |server, page| {
        whole(server.ask(page).with("Warning: the database has gone away\n"))
    }),
    ("an error of the application", "kv read", "/kv/read", |_, _| {
        whole(Response { status: 500, body: b"it failed\n".to_vec() })
    }),
    ("half an answer", "kv read", "/kv/read", |server, page| Some(Sent::Part(server.ask(page), 50))),
    ("a record that was not stored", "kv write", "/kv/write", |server, _| {
        let key = 1_u64 << 62;
        let about = server.ask("/kv").text();
        let seed = about.split("\"seed\":").nth(1).unwrap();
        let seed: String = seed.trim_start().chars().take_while(char::is_ascii_digit).collect();
        let data: String = (1..=3).map(|part| md5(&format!("{seed}:{key}:{part}"))).collect();
        let body = format!("{key:020}\n{data}");
        whole(Response { status: 200, body: body.into_bytes() })
    }),
    ("a record that was acknowledged before", "kv write", "/kv/write", |server, _| {
        whole(server.earlier.clone()?)
    }),
    ("a record that was stored twice", "kv write", "/kv/write", |server, page| {
        server.ask(page);
        whole(server.ask(page))
    }),
    ("a record with other data than was stored", "kv write", "/kv/write", |server, page| {
        changed(server.ask(page), 30)
    }),
    ("a row of another version", "connect read", "/connect/new", |server, page| {
        let truth = server.ask(page);
        let last = truth.body.len() - 1;
        changed(truth, last)
    }),
    ("another row", "connect read", "/connect/new", |server, page| whole(server.ask(&neighbour(page)))),
    ("a user with another address", "webapp request", "/webapp/request", |server, page| {
        let truth = server.ask(page);
        replaced(truth, "user\t", |line| field(line, 6, |_| "東京都1-1".to_owned())).and_then(whole)
    }),
    ("another user", "webapp request", "/webapp/request", |server, page| {
        server.ask(page);
        whole(server.earlier.clone()?)
    }),
    ("a line of the log that was not stored", "webapp request", "/webapp/request", |server, page| {
        let truth = server.ask(page);
        let other = |number: &str| (number.parse::<u64>().unwrap() + 1).to_string();
        replaced(truth, "log\t", |line| field(line, 1, other)).and_then(whole)
    }),
    ("a log of another address", "webapp request", "/webapp/request", |server, page| {
        let page = page.replacen("&ip=10.", "&ip=11.", 1);
        let truth = server.ask(&page);
        replaced(truth, "log\t", |line| field(line, 3, |ip| ip.replacen("11.", "10.", 1))).and_then(whole)
    }),
    ("a change that was not made", "webapp request", "/webapp/request", |server, page| {
        let (start, rest) = page.split_once("&email=")?;
        let version = rest.split("&version=").nth(1)?.split('&').next()?;
        let search = rest.split_once("&prefix=").map(|(_, digits)| format!("&prefix={digits}"));
        let truth = server.ask(&format!("{start}{}", search.unwrap_or_default()));
        replaced(truth, "log\t", |line| format!("{line}\nchanged\t{version}\n")).and_then(whole)
    }),
    ("a search without its last town", "webapp request", "/webapp/request", |server, page| {
        page.contains("&prefix=").then_some(())?;
        let truth = server.ask(page);
        let text = truth.text();
        let (rest, _) = text.trim_end().rsplit_once('\n')?;
        let fewer = |count: &str| (count.parse::<u64>().unwrap() - 1).to_string();
        replaced(truth.with(format!("{rest}\n")), "found\t", |line| field(line, 2, fewer)).and_then(whole)
    }),
];

/// The lower-case hexadecimal digits of a text's MD5.
fn md5(text: &str) -> String {
    let mut child = Command::new("md5sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    said.split_whitespace().next().unwrap().to_owned()
}

/// The lies about inputs that clients choose. `kurabe up app` draws its own.
const ABOUT_INPUTS: [&str; 3] =
    ["a log of another address", "a change that was not made", "a search without its last town"];

/// Checks that no run of this many requests through an application at `address` accepts one of the lies. `login`: user and
/// password as in a URL, or nothing. `inputs`: its clients choose them.
pub(crate) fn no_lie_passes(address: SocketAddr, login: &str, requests: u64, inputs: bool) {
    let number = requests.to_string();
    let mut accepted = Vec::new();
    for (lie, what, path, tell) in LIES.into_iter().filter(|(lie, ..)| inputs || !ABOUT_INPUTS.contains(lie))
    {
        // By then the clients are in the middle of their requests.
        let (relay, liar) = relay(address, path, requests / 10, tell);
        let (experiment, operation) = what.split_once(' ').unwrap();
        let url = format!("http://{login}{}", relay.address());
        let place = Place::new();
        let mut args = vec!["run", experiment, "--via", &url, "--operation", operation];
        args.extend(["--requests", &number, "--rounds", "1", "--clients", "4", "--no-html", "--quiet"]);
        match experiment {
            "kv" => {}
            "connect" => args.extend(["--connection", "per-request"]),
            _ => args.extend(["--connection", "kept"]),
        }
        let answer = place.run(&args);
        assert_eq!(liar.told.load(Ordering::SeqCst), 1, "{lie} was not told: {answer:?}");
        let failed = answer.code == Some(4)
            && cells(&place.report()).iter().any(|cell| {
                cell["status"] == "failed" && cell["reason"].as_str().is_some_and(|why| !why.is_empty())
            });
        if !failed {
            accepted.push((lie, answer));
        }
    }
    assert!(accepted.is_empty(), "{} of {}: {accepted:#?}", accepted.len(), LIES.len());
}

/// Checks that runs of this many requests through an application at `address` and a relay that does not lie are measured:
/// otherwise [`no_lie_passes`] would prove nothing.
pub(crate) fn truth_passes(address: SocketAddr, login: &str, requests: u64) {
    let number = requests.to_string();
    for experiment in ["kv", "connect", "webapp"] {
        let (relay, _) = relay(address, "/none", 0, |_, _| None);
        let url = format!("http://{login}{}", relay.address());
        let place = Place::new();
        let mut args = vec!["run", experiment, "--via", &url, "--requests", &number, "--rounds", "1"];
        args.extend(["--clients", "4", "--no-html", "--quiet"]);
        let answer = place.run(&args);
        let report = place.report();
        let cells = cells(&report);
        assert!(cells.iter().any(|cell| cell["status"] == "ok"), "{answer:?}");
        assert!(cells.iter().all(|cell| cell["status"] != "failed"), "{report:#}");
    }
}
