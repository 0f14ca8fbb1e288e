//! Text from servers and files is data: it never controls a terminal or forges a line.

use crate::support::{Answer, Place};
use kurabe_core::ErrorKind;
use kurabe_core::run::{Outcome, RunEnd, RunHeader, TrialRecord};
use kurabe_core::text::is_unprintable;
use kurabe_record::{RunPath, Store};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Text that would move the cursor, colour the screen, reverse the direction of text, or imitate a line of the
/// program.
const HOSTILE: &str =
    "x\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\r\nkurabe: all is well\u{85}\u{2028}y\u{7f}";

/// Checks that the output contains only plain lines, and none is forged.
fn assert_clean(what: &str, text: &str) {
    let bad = text.chars().find(|c| is_unprintable(*c) && *c != '\n');
    assert!(bad.is_none(), "{what}: {bad:?} in {text:?}");
    let forged = text.lines().any(|line| line.starts_with("kurabe: all is well"));
    assert!(!forged, "{what}: {text:?}");
}

fn assert_clean_answer(what: &str, answer: &Answer) {
    assert_clean(what, &answer.out);
    assert_clean(what, &answer.err);
}

/// A server that greets every client with one text, and answers every request with another.
struct Liar {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Liar {
    fn start(greeting: Vec<u8>, reply: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let mut stream = stream.unwrap();
                let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(5)));
                let mut heard = vec![0; 65_536];
                if stream.write_all(&greeting).is_err() {
                    continue;
                }
                while let Ok(length @ 1..) = stream.read(&mut heard) {
                    let answer = reply(&heard[..length]);
                    if stream.write_all(&answer).is_err() || answer.is_empty() {
                        break;
                    }
                }
            }
        });
        Self { port, stop, thread: Some(thread) }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A packet of MySQL's protocol.
fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_le_bytes();
    [&length[..3], &[number], body].concat()
}

/// Servers of each protocol, with the URL of a target there.
fn liars() -> Vec<(Liar, String)> {
    let text = HOSTILE.as_bytes();
    // An error at once, as for a blocked host.
    let mysql = packet(0, &[&[0xff, 0x6a, 0x04][..], text].concat());
    let handshake =
        [&[10][..], text, &[0], &[1, 0, 0, 0], b"12345678\0", &[0xff, 0xff, 45, 2, 0, 0xff, 0xff, 21]]
            .concat();
    let handshake =
        packet(0, &[&handshake[..], &[0; 10], b"123456789012\0", b"mysql_native_password\0"].concat());
    let refusal = packet(2, &[&[0xff, 0x15, 0x04, b'#'][..], b"28000", text].concat());
    let postgres = [&b"SFATAL\0VFATAL\0C28000\0M"[..], text, b"\0D", text, b"\0H", text, b"\0\0"].concat();
    let length = (postgres.len() as u32 + 4).to_be_bytes();
    let postgres = [&b"E"[..], &length, &postgres].concat();
    let one_line = HOSTILE.replace(['\r', '\n'], "\u{1b}");
    let version = format!("VERSION 1.6{one_line}\r\n").into_bytes();
    let broken = format!("SERVER_ERROR {one_line}\r\n").into_bytes();
    let error = format!("-ERR {one_line}\r\n").into_bytes();
    let page =
        format!("HTTP/1.1 500 {one_line}\r\ncontent-length: {}\r\n\r\n{HOSTILE}", HOSTILE.len()).into_bytes();
    let no_greeting = Vec::new;
    let of = |liar: Liar, scheme: &str, rest: &str| {
        let url = format!("{scheme}{}{rest}", liar.port);
        (liar, url)
    };
    vec![
        of(Liar::start(mysql.clone(), |_| Vec::new()), "mysql://root@127.0.0.1:", "/x"),
        of(
            Liar::start(handshake.clone(), move |_| refusal.clone()),
            "mysql://root:x@127.0.0.1:",
            "/x?tls=off",
        ),
        of(Liar::start(mysql, |_| Vec::new()), "mariadb://root@127.0.0.1:", "/x"),
        of(Liar::start(no_greeting(), move |_| postgres.clone()), "postgres://me@127.0.0.1:", "/x?tls=off"),
        of(Liar::start(no_greeting(), move |_| version.clone()), "memcached://127.0.0.1:", ""),
        of(Liar::start(no_greeting(), move |_| broken.clone()), "memcached://127.0.0.1:", ""),
        of(Liar::start(no_greeting(), move |_| error.clone()), "redis://127.0.0.1:", ""),
        of(
            Liar::start(no_greeting(), {
                let page = page.clone();
                move |_| page.clone()
            }),
            "http://127.0.0.1:",
            "",
        ),
        of(Liar::start(no_greeting(), move |_| page.clone()), "couchdb://127.0.0.1:", "/x"),
    ]
}

#[test]
fn server_cannot_control_terminal_and_its_error_is_exit_3() {
    let place = Place::new();
    for (liar, url) in liars() {
        for args in [
            &["doctor", &url][..],
            &["run", "point-read", &url, "--records", "10", "--requests", "10", "--rounds", "1"],
        ] {
            let answer = place.run(args);
            assert_clean_answer(&url, &answer);
            assert_eq!(answer.code, Some(3), "{args:?}: {answer:?}");
            assert!(answer.err.contains("kurabe: "), "{answer:?}");
        }
        drop(liar);
    }
}

/// Inserts a text at those places of a run file that come from a server or another machine.
fn poison(value: &mut Value, with: &str) {
    const PLACES: [&str; 13] = [
        "version", "engine", "client", "transport", "cpu", "system", "value", "notes", "reason", "again",
        "set_by", "why", "unavailable",
    ];
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if PLACES.contains(&name.as_str()) => with.clone_into(text),
                    Value::Array(texts) if name == "notes" || name == "command" => texts.push(with.into()),
                    other => poison(other, with),
                }
            }
        }
        Value::Array(fields) => fields.iter_mut().for_each(|field| poison(field, with)),
        _ => {}
    }
}

fn poisoned(mut value: Value, with: &str) -> Value {
    poison(&mut value, with);
    value
}

#[test]
fn no_report_format_shows_control_characters() {
    let place = Place::new();
    let target = format!("sqlite:{}", place.at("a.db"));
    let made =
        place.run(&["run", "point-read", &target, "--records", "10", "--requests", "10", "--rounds", "2"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let file = place.wait_for_trials(2);
    let run = kurabe_record::read(&RunPath::in_folder(file.parent().unwrap())).unwrap().run;
    let mut texts = vec![HOSTILE.to_owned(), format!("=cmd|{HOSTILE}")];
    let letters: Vec<char> =
        ('\0'..='\u{a0}').chain('\u{2020}'..='\u{2070}').chain(['\u{61c}', '\u{feff}', '日']).collect();
    let mut state = 1_u64;
    texts.extend((0..12).map(|_| {
        let mut letter = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            letters[(state >> 33) as usize % letters.len()]
        };
        (0..40).map(|_| letter()).collect::<String>()
    }));
    for text in texts {
        // As another program would have recorded it.
        let header = poisoned(serde_json::to_value(&run.header).unwrap(), &text);
        let mut header: RunHeader = serde_json::from_value(header).unwrap();
        header.run = "20000101-000000-hostile".to_owned();
        let other = Place::new();
        let mut writer = Store::open(other.path()).unwrap().create(&header).unwrap();
        for (n, trial) in run.trials.iter().enumerate() {
            let trial = poisoned(serde_json::to_value(trial).unwrap(), &text);
            let mut trial: TrialRecord = serde_json::from_value(trial).unwrap();
            if n == 0 {
                // It failed, for a reason that the server reported.
                trial.outcome =
                    Outcome::Failed { kind: ErrorKind::Server, reason: text.clone(), mismatches: 0 };
            }
            writer.trial(&trial).unwrap();
        }
        writer.end(&RunEnd { at_ms: 1, complete: true }).unwrap();
        drop(writer);
        for args in [
            &["runs", "ls"][..],
            &["report", "last"],
            &["report", "--format", "md"],
            &["report", "--format", "csv"],
            &["report", "--format", "openmetrics"],
            &["report", "--format", "json"],
            &["report", "--format", "html", "-o", "-"],
            &["compare", "last", "last"],
        ] {
            let answer = other.run(args).success();
            let out = answer.out.replace("\r\n", "\n");
            assert_clean(&format!("{args:?}"), &out);
            assert_clean(&format!("{args:?}"), &answer.err);
            if args.contains(&"json") {
                assert_clean_values(&serde_json::from_str(&out).unwrap());
            }
            if args.contains(&"csv") {
                let formula = out.lines().flat_map(|line| line.split(',')).any(|cell| cell.starts_with('='));
                assert!(!formula, "{out}");
            }
        }
    }
}

/// Checks that no program that prints a report prints a control character.
fn assert_clean_values(value: &Value) {
    match value {
        Value::String(text) => assert!(!text.contains(is_unprintable), "{text:?}"),
        Value::Array(values) => values.iter().for_each(assert_clean_values),
        Value::Object(values) => values.values().for_each(assert_clean_values),
        _ => {}
    }
}
