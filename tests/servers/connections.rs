//! Connections and parameters: `connect` and `bind` on every engine.

use super::common::{SQL, assert_all_verified, assert_verified, by, cells, sql};
use crate::support::{Place, metric, with};
use kurabe_testbed::testing::{self};
use serde_json::Value;

/// Options for the shortest run.
const BRIEF: [&str; 6] = ["--requests", "60", "--records", "500", "--rounds", "1"];

/// The parts of a connection's time.
const PARTS: [&str; 7] = ["connect", "reach", "TLS", "auth", "set-up", "close", "wait"];

/// The parts of a cell's connections, in microseconds.
fn figures(cell: &Value) -> Vec<(String, f64)> {
    let figures = cell["metrics"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |figure: &Value| {
        (figure["name"].as_str().unwrap().to_owned(), figure["value"].as_f64().unwrap() / 1e3)
    };
    figures.iter().map(one).filter(|(name, _)| PARTS.contains(&name.as_str())).collect()
}

fn names(cell: &Value) -> Vec<String> {
    figures(cell).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn connection_time_has_parts_that_do_not_exceed_it() {
    for engine in SQL {
        let Some(server) = testing::server_with(engine, kurabe_testbed::StartOptions::with_tls) else {
            continue;
        };
        // A user that must authenticate.
        let made = if engine == "postgres" {
            Some(String::new())
        } else {
            sql(&server, "", "CREATE USER 'jo'@'%' IDENTIFIED BY 'secret'; GRANT ALL ON kurabe.* TO 'jo'@'%'")
        };
        let url = match (&made, engine) {
            (Some(_), "mysql" | "mariadb") => by(&server, "jo:secret", "kurabe"),
            _ => by(&server, testing::login(&server), "kurabe"),
        };
        let tls = with(&url, "tls=require");
        let socket = with(&url, &format!("socket={}", server.socket().unwrap().display()));
        let charset = with(&url, "charset=statement");
        let targets = [url.as_str(), &tls, &socket, &charset];
        let place = Place::new();
        let rest = ["--clients", "3", "--pool", "2"];
        let answer = place.run(&[&["run", "connect"], &targets[..], &rest, &BRIEF].concat());
        let report = assert_all_verified(&place, &answer);
        // A statement that sets the character set is one round trip more.
        let trips = |with_statement: bool| {
            let same = |cell: &&Value| {
                let target = cell["target"].as_str().unwrap();
                cell["axes"]["connection"] == "per-request"
                    && target.contains("charset=") == with_statement
                    && !["tls=", "socket="].iter().any(|option| target.contains(option))
            };
            let cell = cells(&report).iter().find(same).unwrap();
            metric(cell, "connect round trips").unwrap()
        };
        assert!((trips(true) - trips(false) - 1.0).abs() < 1e-9 && trips(false) >= 1.0, "{engine}");
        for cell in cells(&report).iter().filter(|cell| cell["aa_control"] == false) {
            let expected: &[&str] =
                match (cell["axes"]["connection"].as_str().unwrap(), cell["target"].as_str().unwrap()) {
                    ("kept", _) => &[],
                    ("pool", _) => &["wait"],
                    (_, target) if target.contains("tls=require") => {
                        &["connect", "reach", "TLS", "auth", "set-up", "close"]
                    }
                    _ => &["connect", "reach", "auth", "set-up", "close"],
                };
            assert_eq!(names(cell), expected, "{cell:#}");
            let all = figures(cell);
            let of =
                |name: &str| all.iter().find(|(known, _)| known == name).map_or(0.0, |(_, value)| *value);
            let parts = of("reach") + of("TLS") + of("auth") + of("set-up");
            assert!(parts <= of("connect"), "{cell:#}");
            // The whole service time includes them.
            assert!(of("connect") <= cell["latency_us"]["max"].as_f64().unwrap(), "{cell:#}");
            if expected.len() > 4 {
                // The time between the parts is the tool's, and short.
                assert!(parts >= 0.5 * of("connect"), "{cell:#}");
                // But on its Unix socket, PostgreSQL asks for the password.
                let on_socket = cell["target"].as_str().unwrap().contains("socket=");
                let is_trusted = engine == "postgres" && on_socket;
                assert_eq!(of("auth") > 0.0, !is_trusted, "{cell:#}");
            }
        }
    }
}

#[test]
fn values_are_bound_or_literal_on_engines_with_statements() {
    for engine in SQL {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let answer = place.run(&[&["run", "bind", server.url(), "sqlite:"], &BRIEF[..]].concat());
        let report = assert_all_verified(&place, &answer);
        // Three ways, two kinds of connections, two targets; and each target's A/A control.
        assert_eq!(cells(&report).len(), 14);
        // The server's cost is reported too; SQLite is in the client.
        for cell in cells(&report) {
            let cpu = cell.get("server_cpu_us_per_op");
            if cell["engine"] == "SQLite" {
                assert_eq!(cpu, None, "{cell:#}");
            } else {
                assert!(cpu.and_then(Value::as_f64).is_some_and(|cpu| cpu > 0.0), "{cell:#}");
            }
        }
        let text = place.run(&["report", "--format", "md"]).out;
        assert!(text.contains("| CPU/op | server CPU/op |"), "{text}");
    }
    if let Some(server) = testing::server("memcached") {
        let place = Place::new();
        place.run(&[&["run", "bind", server.url(), "sqlite:"], &BRIEF[..]].concat()).exit_code(4);
        let report = place.report();
        for cell in cells(&report) {
            if cell["target"] == "memcached" {
                assert_eq!(cell["status"], "unavailable", "{cell:#}");
                assert_eq!(cell["reason"], "memcached has no statements to prepare");
            } else {
                assert_verified(cell);
            }
        }
    }
}

/// The waits in a line of `doctor --messages`.
fn waits_of(line: &str) -> u64 {
    line.split(", ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn doctor_wire_counts_messages_and_shows_statements_while_connecting() {
    for engine in SQL {
        let Some(server) = testing::server_with(engine, kurabe_testbed::StartOptions::with_tls) else {
            continue;
        };
        let place = Place::new();
        let lean = server.url().to_owned();
        let doctor = |url: &str| {
            let answer = place.run(&["doctor", "--messages", url]).success();
            let line = |name: &str| {
                let line = answer.out.lines().find(|line| line.trim_start().starts_with(name));
                line.unwrap_or_else(|| panic!("{name}: {answer:?}")).trim().to_owned()
            };
            [line("connecting"), line("first request"), line("its statements")]
        };
        let [connecting, request, statements] = doctor(&lean);
        // PostgreSQL answers once, MySQL greets and answers, MySQL's newer method may need more messages.
        assert!(connecting.contains("1 connection, ") && connecting.contains("bytes sent"), "{connecting}");
        let waits = waits_of(&connecting);
        assert!((if engine == "postgres" { 3..=3 } else { 2..=3 }).contains(&waits), "{connecting}");
        assert!(request.contains("1 wait for the server") && !request.contains("connection,"), "{request}");
        assert!(statements.ends_with("none while connecting"), "{statements}");
        // Repeated measurements are equal: nothing of one connection counts for another.
        assert_eq!(doctor(&lean)[..2], [connecting.clone(), request.clone()]);
        // A character set that is set by a statement costs one round trip of connecting, not of the request.
        let [named, after, statements] = doctor(&with(&lean, "charset=statement"));
        assert!(statements.contains("SET "), "{statements}");
        assert_eq!((waits_of(&named), after), (waits + 1, request), "{named}");
        let [_, _, statements] = doctor(&with(&lean, "tls=require"));
        assert!(statements.ends_with("encrypted"), "{statements}");
        let socket = with(&lean, &format!("socket={}", server.socket().unwrap().display()));
        let answer = place.run(&["doctor", "--messages", &socket]);
        assert!(answer.out.contains("supports only TCP connections"), "{answer:?}");
    }
    let place = Place::new();
    let answer = place.run(&["doctor", "--messages", "sqlite:"]);
    assert!(answer.out.contains("runs in this process"), "{answer:?}");
    let open = |options: kurabe_testbed::StartOptions| options.set("login", "none");
    if let Some(server) = testing::server_with("memcached", open) {
        let answer = place.run(&["doctor", "--messages", server.url()]);
        let expected = "connecting      1 connection, 0 waits for the server, 0 bytes sent, 0 received";
        assert!(answer.out.contains(expected), "{answer:?}");
    }
}
