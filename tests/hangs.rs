//! Servers that hang: the program keeps its time limit, and ends soon after Ctrl-C.

use crate::servers::common::sql;
use crate::support::{Answer, Place, beside_each_other, eventually, signal};
use kurabe_testbed::testing;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A server that accepts, sends a byte of `again` from time to time, and never answers; it counts its clients.
fn hanging(first: &'static [u8], again: &'static [u8]) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let met = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&met);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                let mut sent = stream.write_all(first);
                while sent.is_ok() {
                    thread::sleep(Duration::from_millis(30));
                    sent = stream.write_all(again);
                }
            });
        }
    });
    (port, met)
}

/// Additional time for a busy machine.
const SLACK: Duration = Duration::from_secs(15);

/// Each engine.
const URLS: &[&str] = &[
    "mysql://u:p@127.0.0.1:PORT/d",
    "postgres://u:p@127.0.0.1:PORT/d",
    "redis://127.0.0.1:PORT",
    "memcached://127.0.0.1:PORT",
    "couchdb://127.0.0.1:PORT",
    "mongodb://127.0.0.1:PORT/d",
    #[cfg(feature = "full")]
    "oracle://u:p@127.0.0.1:PORT/d",
    "http://127.0.0.1:PORT",
];

#[test]
fn doctor_keeps_timeout_with_hanging_server() {
    let place = Place::new();
    // Silence; a slow message; a complete message followed by nothing.
    let messages = [(&b""[..], &b""[..]), (b"\x4a\0\0\0\x0a", b"8")];
    beside_each_other(
        messages.into_iter().flat_map(|message| URLS.iter().map(move |url| (message, *url))),
        |((first, again), url)| {
            let (port, _) = hanging(first, again);
            let url = url.replace("PORT", &port.to_string());
            let began = Instant::now();
            let answer = place.run(&["doctor", "--timeout", "1s", &url]);
            let took = began.elapsed();
            // One second each for connecting and for the first requests to each server.
            assert!(took < Duration::from_secs(4) + SLACK, "{url}: {took:?}: {answer:?}");
            assert_eq!(answer.code, Some(3), "{url}: {answer:?}");
            assert!(answer.err.contains("127.0.0.1"), "{url}: {answer:?}");
        },
    );
}

#[test]
fn first_ctrl_c_reports_wait_and_ends_program() {
    let commands = [&["run", "point-read"][..], &["up", "app", "--listen", "127.0.0.1:0"]];
    let all = URLS.iter().flat_map(|url| commands.map(|command| (*url, command)));
    // An application is no database of an application.
    let all = all.filter(|(url, command)| !command.contains(&"app") || !url.starts_with("http"));
    beside_each_other(all, |(url, command)| {
        let place = Place::new();
        let (port, met) = hanging(b"", b"");
        let url = url.replace("PORT", &port.to_string());
        let mut child = place.spawn(&[command, &["--timeout", "10m", &url]].concat());
        eventually(60, || (met.load(Ordering::SeqCst) > 0).then_some(())).expect("no connection");
        let asked = Instant::now();
        signal(&child, "-INT");
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("stopping: waiting for") {
            line.clear();
            assert!(err.read_line(&mut line).unwrap() > 0, "{url}: it ended without a message");
        }
        assert!(line.contains("127.0.0.1") && line.contains("again to exit now"), "{url}: {line}");
        let answered = asked.elapsed();
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        let code = child.wait().unwrap().code();
        let took = asked.elapsed();
        assert_eq!(code, Some(130), "{url}: {line}{rest}");
        assert!(answered < Duration::from_secs(3), "{url}: {answered:?}");
        assert!(took < Duration::from_secs(5) + SLACK, "{url}: {took:?}: {line}{rest}");
    });
}

#[test]
fn ctrl_c_ends_doctor_at_once() {
    let place = Place::new();
    let (port, met) = hanging(b"", b"");
    let child = place.spawn(&["doctor", &format!("redis://127.0.0.1:{port}")]);
    eventually(60, || (met.load(Ordering::SeqCst) > 0).then_some(())).expect("no connection");
    let asked = Instant::now();
    signal(&child, "-INT");
    let answer = Answer::at_end_of(child).exit_code(130);
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    assert!(answer.err.contains("stopped by the user"), "{answer:?}");
}

/// The list of the server's own sessions, read by its own client, is asked for what still runs.
#[test]
fn no_statement_runs_on_after_ctrl_c_a_time_out_or_a_failed_trial() {
    beside_each_other(["postgres", "mysql", "mariadb"], |engine| {
        let Some(server) = testing::server(engine) else { return };
        let (sleep, list) = match engine {
            "postgres" => (
                "pg_sleep",
                "pg_stat_activity WHERE query LIKE '%pg_sleep%' AND state = 'active' AND pid <> pg_backend_pid()",
            ),
            _ => (
                "SLEEP",
                "information_schema.processlist WHERE info LIKE '%SLEEP(%' AND id <> CONNECTION_ID()",
            ),
        };
        let running = || sql(&server, "", &format!("SELECT count(*) FROM {list}")).unwrap().trim().to_owned();
        let place = Place::new();
        let script = place.at("long.sql");
        let start = |text: &str, limit: &str| {
            std::fs::write(&script, text).unwrap();
            let rest =
                ["--clients", "2", "--requests", "2", "--rounds", "1", "--timeout", limit, "--no-html"];
            place.spawn(&[&["run", "pgbench", "-f", &script, server.url()][..], &rest].concat())
        };
        let all = format!("SELECT {sleep}(600);");
        let child = start(&all, "10m");
        eventually(60, || (running() == "2").then_some(())).expect("no statement runs");
        signal(&child, "-INT");
        let answer = Answer::at_end_of(child);
        assert_eq!((answer.code, &*running()), (Some(130), "0"), "{engine}: {answer:?}");
        let answer = Answer::of(&start(&all, "3s").wait_with_output().unwrap());
        assert!(answer.out.contains("within the time allowed"), "{engine}: {answer:?}");
        assert_eq!((answer.code, &*running()), (Some(4), "0"), "{engine}: {answer:?}");
        // One client fails, and the other would go on for ten minutes.
        let began = Instant::now();
        let failing =
            format!("SELECT {sleep}(CASE WHEN :client_id = 1 THEN 600 ELSE (SELECT 1 UNION SELECT 2) END);");
        let answer = Answer::of(&start(&failing, "10m").wait_with_output().unwrap());
        assert!(answer.out.contains("more than") && answer.out.contains("row"), "{engine}: {answer:?}");
        assert!(began.elapsed() < Duration::from_secs(300), "{engine}: {answer:?}");
        assert_eq!((answer.code, &*running()), (Some(4), "0"), "{engine}: {answer:?}");
    });
}
