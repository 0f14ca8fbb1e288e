//! `kurabe run kv --via`: load through an application, with every answer verified.

use super::common::App;
use crate::servers::common::{cells, sql};
use crate::support::{Place, recorded_trials};
use kurabe_relay::{Ends, LOOPBACK, Relay, Way, on_piece};
use kurabe_testbed::testing;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

/// A very short run.
const BRIEF: [&str; 8] = ["--requests", "200", "--rounds", "1", "--clients", "4", "--no-html", "--quiet"];

/// `kurabe run kv --via URL …`
fn via<'a>(url: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["run", "kv", "--via", url], &BRIEF[..], rest].concat()
}

fn assert_measured(report: &Value, wanted: usize) {
    assert_eq!(cells(report).len(), wanted, "{report:#}");
    for cell in cells(report) {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        let verified = &cell["verified"];
        let counted = if cell["operation"] == "write" { &verified["writes"] } else { &verified["answers"] };
        assert!(counted.as_u64().unwrap() >= 200 && verified["mismatches"] == 0, "{cell:#}");
    }
}

#[test]
fn application_is_measured_and_verified_beside_its_database() {
    for engine in ["postgres", "memcached"] {
        let Some(server) = testing::server(engine) else { continue };
        let app = App::start("sqlite:", &[]);
        let place = Place::new();
        let url = app.url("");
        place.run(&via(&url, &["--connection", "kept,per-request", server.url()])).success();
        let report = place.report();
        // Two targets, two kinds of connection, two operations; and each target's A/A control.
        assert_measured(&report, 12);
        let engines: Vec<&str> = cells(&report).iter().map(|cell| cell["engine"].as_str().unwrap()).collect();
        assert!(engines.contains(&"SQLite over HTTP"), "{engines:?}");
        let measured = |trial: &Value| trial["outcome"]["measured"]["completed"].clone();
        let completed: Vec<Value> = recorded_trials(&place.run_file()).iter().map(measured).collect();
        assert_eq!(completed, [200; 12]);
        // The durability class is that of the database behind the application.
        let told = cells(&report).iter().filter(|cell| cell["engine"] == "SQLite over HTTP");
        assert!(told.into_iter().all(|cell| cell["durability"] == "synced"), "{report:#}");
    }
}

#[test]
fn application_without_count_is_verified_by_reading_back() {
    let Some(server) = testing::server("memcached") else { return };
    let app = App::start(server.url(), &[]);
    assert_eq!(app.get("/kv/count").status, 501);
    let place = Place::new();
    place.run(&via(&app.url(""), &["--operation", "write"])).success();
    let report = place.report();
    for cell in cells(&report) {
        let verified = &cell["verified"];
        assert_eq!(
            (&verified["how"], &verified["counted"]),
            (&"read-back-all".into(), &0.into()),
            "{cell:#}"
        );
    }
}

/// A relay between a client and an application that applies `spoil` to the answers.
fn relay(to: SocketAddr, spoil: fn(&mut [u8])) -> Relay {
    let spoiled = move |way, bytes: &mut [u8], ends: &mut Ends| {
        if way == Way::ToClient {
            spoil(bytes);
        }
        ends.to.write_all(bytes)
    };
    Relay::start(LOOPBACK, to.into(), move |_| on_piece(spoiled)).unwrap()
}

#[test]
fn wrong_byte_key_or_count_fails_trial() {
    let app = App::start("null:", &[]);
    // Records have 117 bytes, and only the lengths of the heads matter here.
    let a_byte = |bytes: &mut [u8]| {
        if let Some(last) = bytes.last_mut().filter(|last| last.is_ascii_hexdigit()) {
            *last = if *last == b'0' { b'1' } else { b'0' };
        }
    };
    let a_key = |bytes: &mut [u8]| {
        if bytes.last().is_some_and(u8::is_ascii_hexdigit) {
            let at = bytes.len() - 98;
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        }
    };
    // A count has twenty digits and a line feed; before the first record it is zero.
    let a_count = |bytes: &mut [u8]| {
        let Some((b'\n', rest)) = bytes.split_last_mut().map(|(last, rest)| (*last, rest)) else { return };
        let digits = rest.len().saturating_sub(20);
        if rest[digits..].iter().all(u8::is_ascii_digit) && rest[digits..].iter().any(|digit| *digit != b'0')
        {
            let last = rest.len() - 1;
            rest[last] = if rest[last] == b'0' { b'1' } else { b'0' };
        }
    };
    for (spoil, operation, reason) in [
        (a_byte as fn(&mut [u8]), "read", "wrong content from byte 95 on"),
        (a_byte, "write", "wrong content from byte 95 on"),
        (a_key, "read", "requested record"),
        (a_count, "write", "the application counted"),
    ] {
        let relay = relay(app.address, spoil);
        let url = format!("http://{}", relay.address());
        let place = Place::new();
        place.run(&via(&url, &["--operation", operation])).exit_code(4);
        let report = place.report();
        let cell = &cells(&report)[0];
        assert_eq!(cell["status"], "failed", "{cell:#}");
        assert!(cell["reason"].as_str().unwrap().contains(reason), "{cell:#}");
        assert!(cell["ops_per_second"].is_null(), "{cell:#}");
    }
}

/// `kurabe run connect --via URL …`
fn connect(url: &str) -> (crate::support::Answer, Place) {
    let place = Place::new();
    let brief =
        ["--clients", "2", "--pool", "2", "--requests", "100", "--rounds", "1", "--no-html", "--quiet"];
    (place.run(&[&["run", "connect", "--via", url], &brief[..]].concat()), place)
}

#[test]
fn connections_behind_application_are_compared() {
    let Some(server) = testing::server("mariadb") else { return };
    let opened = || -> u64 {
        let told = sql(&server, "", "SHOW GLOBAL STATUS LIKE 'Connections'").unwrap_or_default();
        told.split_whitespace().last().map_or(0, |count| count.parse().unwrap())
    };
    for (options, held, other) in [
        (&["--connection", "kept"][..], "kept", "pool"),
        (&["--connection", "pool", "--pool", "2"][..], "pool", "kept"),
    ] {
        let only = ["--experiment", "connect", "--records", "300", "--workers", "4"];
        let app = App::start_with(server.url(), &[&only, options].concat());
        let (answer, place) = connect(&app.url(""));
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let report = place.report();
        // A kept connection, one opened for the page, and one that the application does not offer; and the A/A
        // control of the first.
        assert_eq!(cells(&report).len(), 4, "{report:#}");
        for cell in cells(&report) {
            if cell["axes"]["connection"] == other {
                assert_eq!(cell["status"], "unavailable", "{cell:#}");
                let reason = cell["reason"].as_str().unwrap();
                assert!(reason.contains(&format!("start it with --connection {other}")), "{reason}");
            } else {
                let verified = &cell["verified"];
                assert!(verified["answers"].as_u64() >= Some(100) && verified["mismatches"] == 0, "{cell:#}");
                assert!(cell["axes"]["connection"] == held || cell["axes"]["connection"] == "per-request");
            }
        }
        // The server's own count includes our connection. Each worker may still open the one that it keeps.
        let begun = opened();
        let pages: Vec<String> = (0..20).map(|_| app.get("/connect/read?key=7").body).collect();
        assert!(opened() <= begun + 5, "kept connections were open already");
        let begun = opened();
        for page in &pages {
            assert_eq!(app.get("/connect/new?key=7").body, *page);
        }
        assert_eq!(opened(), begun + 21);
        for (page, status) in [("read?key=301", 404), ("new?key=0", 404), ("new?key=x", 400), ("other", 404)]
        {
            assert_eq!(app.get(&format!("/connect/{page}")).status, status, "{page}");
        }
    }
}

#[test]
fn experiment_not_served_by_application_is_unavailable_with_reason() {
    let app = App::start_with("null:", &["--experiment", "kv", "--records", "300"]);
    let answer =
        Place::new().run(&["run", "connect", "--via", &app.url(""), "--requests", "10", "--no-html"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let reason = "reports /connect 'not served'; if it is kurabe up app, start it with --experiment connect";
    assert!(answer.err.contains(reason), "{answer:?}");
}

#[test]
fn wrong_letter_of_row_fails_its_trial() {
    let app = App::start_with("null:", &["--experiment", "connect", "--records", "300"]);
    let a_letter = |bytes: &mut [u8]| {
        if let Some(last) = bytes.last_mut().filter(|last| last.is_ascii_lowercase()) {
            *last = if *last == b'q' { b'z' } else { b'q' };
        }
    };
    let relay = relay(app.address, a_letter);
    let (answer, place) = connect(&format!("http://{}", relay.address()));
    assert_eq!(answer.code, Some(4), "{answer:?}");
    let report = place.report();
    let failed = cells(&report).iter().filter(|cell| cell["status"] == "failed");
    let reasons: Vec<&str> = failed.map(|cell| cell["reason"].as_str().unwrap()).collect();
    assert!(reasons.len() >= 2 && reasons[0].contains("wrong content from byte"), "{reasons:?}");
}

#[test]
fn foreign_http_server_is_rejected() {
    let place = Place::new();
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let not_http = format!("http://{}", stranger.local_addr().unwrap());
    thread::spawn(move || {
        while let Ok((mut client, _)) = stranger.accept() {
            let _ = client.write_all(b"220 mail.example ESMTP\r\n\r\n");
            let _ = client.read(&mut [0; 4096]);
        }
    });
    let app = App::start("null:", &[]);
    let elsewhere = app.url("/elsewhere");
    for (url, code, part) in [
        ("http://127.0.0.1:1", 3, "nothing listens at 127.0.0.1:1"),
        (not_http.as_str(), 3, "is not HTTP"),
        (elsewhere.as_str(), 3, "the application answered 404"),
        ("http://bob:hunter2@127.0.0.1:1", 3, "nothing listens at 127.0.0.1:1"),
        ("http://bob@127.0.0.1:1", 2, "a user without a password"),
    ] {
        let answer = place.run(&via(url, &[]));
        assert_eq!(answer.code, Some(code), "{url}: {answer:?}");
        assert!(answer.err.contains(part) && !answer.err.contains("hunter2"), "{url}: {answer:?}");
    }
    let answer = place.run(&["run", "session", "--via", &app.url("")]).exit_code(3);
    assert!(answer.err.contains("session cannot run through an application"), "{answer:?}");
}

#[test]
fn lost_database_fails_trials_with_applications_reason() {
    let Some(server) = testing::server("mariadb") else { return };
    let app = App::start(server.url(), &[]);
    let place = Place::new();
    let url = app.url("");
    let args =
        ["run", "kv", "--via", &url, "--requests", "200", "--rounds", "3", "--clients", "4", "--no-html"];
    let (child, _) = place.spawn_to_trial(&args, 3);
    server.kill_hard().unwrap();
    place.go_on(3);
    crate::support::Answer::at_end_of(child).exit_code(4);
    let report = place.report();
    let reason = cells(&report)[0]["reason"].as_str().unwrap();
    assert!(reason.contains("the application answered 503") && reason.contains("mariadb"), "{reason}");
}
