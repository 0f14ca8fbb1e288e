//! A database that stops, returns, is full, or stalls.

use super::common::{App, Said, wait_for_answers};
use crate::servers::common::sql;
use crate::support::eventually;
use kurabe_testbed::testing;
use std::io::Write;

#[test]
fn lost_database_is_503_with_reason_until_it_returns() {
    for engine in ["postgres", "mariadb", "redis"] {
        let Some(server) = testing::server(engine) else { continue };
        for connection in ["kept", "per-request"] {
            let app = App::start(server.url(), &["--workers", "2", "--connection", connection]);
            assert_eq!(app.get("/kv/read").status, 200);
            server.kill_hard().unwrap();
            for (page, said) in [
                ("/kv/read", app.get("/kv/read")),
                ("/kv/write", app.post("/kv/write")),
                ("/health", app.get("/health")),
            ] {
                assert_eq!(said.status, 503, "{engine} {connection} {page}: {said:?}");
                assert!(said.field("retry-after").is_some(), "{said:?}");
                assert!(said.body.starts_with(engine), "the reason does not name the database: {said:?}");
            }
            // Requests that need no database are served as before.
            assert_eq!(app.get("/kv").status, 200);
            server.restart().unwrap();
            let back = eventually(60, || (app.get("/health").status == 200).then_some(()));
            assert!(back.is_some(), "{engine} {connection}: {:?}", app.get("/health"));
            // No other worker uses an earlier connection.
            for _ in 0..8 {
                assert_eq!(app.get("/health").status, 200, "{engine} {connection}");
            }
            if engine != "redis" {
                assert_eq!(app.post("/kv/write").status, 200, "{engine} {connection}");
                assert_eq!(app.get("/kv/read").status, 200, "{engine} {connection}");
            }
            app.stop().success();
        }
    }
}

#[test]
fn full_database_is_503_and_open_connections_are_served() {
    let Some(server) = testing::server_with("mariadb", |options| options.set("max_connections", "10")) else {
        return;
    };
    let app = App::start(server.url(), &["--workers", "32", "--connection", "per-request"]);
    let (mut good, mut full) = (0, 0);
    for _ in 0..5 {
        let mut streams: Vec<_> = (0..64).map(|_| app.connect()).collect();
        for stream in &mut streams {
            stream.write_all(b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        }
        for stream in &mut streams {
            let said = Said::read(stream);
            match said.status {
                200 => good += 1,
                503 => {
                    assert!(said.body.to_lowercase().contains("too many connections"), "{said:?}");
                    full += 1;
                }
                _ => panic!("{said:?}"),
            }
        }
    }
    assert!(good > 0 && full > 0, "{good} served, {full} refused");
    // The server detects the closed connections one after another.
    let good = eventually(60, || (app.get("/kv/read").status == 200).then_some(()));
    assert!(good.is_some(), "{:?}", app.get("/kv/read"));
}

#[test]
fn session_with_server_error_is_closed_and_request_counts_as_failed() {
    let Some(server) = testing::server("postgres") else { return };
    let app = App::start(server.url(), &["--workers", "1"]);
    assert_eq!(app.get("/kv/read").status, 200);
    let rename = |from: &str, to: &str| {
        sql(&server, "", &format!("ALTER TABLE {from} RENAME TO {to}")).unwrap();
    };
    let backends = || {
        let query = "SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity \
                     WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let pids = sql(&server, "", query).unwrap();
        pids.split_whitespace().map(str::to_owned).collect::<Vec<String>>()
    };
    let before = backends();
    rename("kurabe_0_kv_r", "kurabe_0_kv_x");
    let said = app.get("/kv/read");
    rename("kurabe_0_kv_x", "kurabe_0_kv_r");
    assert!(said.status == 503 && said.body.contains("kurabe_0_kv_r"), "{said:?}");
    assert_eq!(app.get("/kv/read").status, 200);
    // Its connection is another; those of the fixture are as before.
    let after = eventually(60, || Some(backends()).filter(|after| after.len() == before.len())).unwrap();
    let kept = after.iter().filter(|pid| before.contains(pid)).count();
    assert_eq!(kept + 1, before.len(), "{before:?} {after:?}");
    let answer = app.stop();
    assert!(answer.err.contains("3 requests answered, 1 failed"), "{answer:?}");
}

/// Whether a connection of this server has unread bytes, from the kernel's table.
fn unread_bytes(url: &str) -> bool {
    let port = url.rsplit_once(':').unwrap().1.split(['/', '?']).next().unwrap().parse::<u16>().unwrap();
    let port = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().any(|line| {
        let parts: Vec<&str> = line.split_whitespace().collect();
        // Local address, …, state (01 is ESTABLISHED), bytes to send and bytes to receive.
        parts.len() > 4 && parts[1].ends_with(&port) && parts[3] == "01" && !parts[4].ends_with(":00000000")
    })
}

#[test]
fn full_queue_is_503_with_reason_and_recovers() {
    let Some(server) = testing::server("memcached") else { return };
    let app = App::start(server.url(), &["--workers", "1", "--queue", "2"]);
    assert_eq!(app.get("/kv/read").status, 200);
    server.pause().unwrap();
    let mut waiting: Vec<_> = (0..8).map(|_| app.connect()).collect();
    for (number, stream) in waiting.iter_mut().enumerate() {
        stream.write_all(b"GET /kv/read HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        if number == 0 {
            // The worker has accepted it once its request is unread at the database.
            let taken = eventually(60, || unread_bytes(server.url()).then_some(()));
            assert!(taken.is_some(), "the worker did not ask the database");
        }
    }
    wait_for_answers(&waiting, 5);
    let refused = app.get("/kv/read");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("2 requests are waiting already"), "{refused:?}");
    assert!(refused.field("retry-after").is_some(), "{refused:?}");
    assert_eq!(app.get("/kv").status, 200, "a page without database waits for a worker");
    server.resume().unwrap();
    let mut answers: Vec<u16> = waiting.iter_mut().map(|stream| Said::read(stream).status).collect();
    answers.sort_unstable();
    // One at the worker, two in the queue.
    assert_eq!(answers, [200, 200, 200, 503, 503, 503, 503, 503]);
    assert_eq!(app.get("/kv/read").status, 200);
    // Neither a refused request, nor a page that is unknown or not supported, is a failure of the database.
    assert_eq!((app.get("/kv/count").status, app.get("/kv/nothing").status), (501, 404));
    let answer = app.stop();
    assert!(answer.err.contains("requests answered, 6 refused because"), "{answer:?}");
    assert!(answer.err.contains("; they waited ") && !answer.err.contains(" failed"), "{answer:?}");
}
