//! What is read of a server before a run, and concluded from: refusals, values that are left out, settings of sessions.

use super::common::{by, cells, sql, tables};
use crate::support::{Place, beside_each_other};
use kurabe_relay::{LOOPBACK, Late, Relay, Server as Listening};
use kurabe_testbed::testing;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn sessions_commit_although_the_server_does_not() {
    let place = Place::new();
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::own_server(engine) else { continue };
        let Some(_) = sql(&server, "", "SET GLOBAL autocommit = 0") else { continue };
        let brief = ["--requests", "40", "--records", "50", "--rounds", "1", "--clients", "2"];
        let answer = place.run(&[&["run", "point-write", server.url()][..], &brief].concat());
        super::common::assert_all_verified(&place, &answer);
        let doctor = place.run(&["doctor", server.url()]);
        assert!(doctor.out.contains("autocommit = 0"), "{engine}: {doctor:?}");
    }
}

#[test]
fn sessions_have_whole_answers_and_short_transactions_although_the_server_says_otherwise() {
    let place = Place::new();
    for (engine, mode) in [("mysql", "TRADITIONAL,ANSI_QUOTES,NO_BACKSLASH_ESCAPES"), ("mariadb", "ORACLE")] {
        let Some(server) = testing::own_server(engine) else { continue };
        let set = format!(
            "SET GLOBAL sql_select_limit = 1; SET GLOBAL completion_type = CHAIN; SET GLOBAL autocommit = 0; \
             SET GLOBAL sql_mode = '{mode}'"
        );
        let Some(_) = sql(&server, "", &set) else { continue };
        let brief = ["--requests", "40", "--rounds", "1", "--clients", "2"];
        let session = ["run", "session", server.url(), "--payload", "1k", "--records", "50"];
        let answer = place.run(&[&session[..], &brief].concat());
        super::common::assert_all_verified(&place, &answer);
        place.run(&[&["run", "pgbench", "--init", server.url()][..], &brief].concat()).success();
        // The server's own programs read all rows too, or are refused.
        let reload =
            ["run", "reload", server.url(), "--rows", "300", "--order", "key", "--tool", "engine,kurabe"];
        place.run(&[&reload[..], &["--rounds", "1"]].concat()).success();
        let report = place.report();
        for cell in cells(&report) {
            let is_refused =
                cell["axes"]["tool"] == "engine" && cell["reason"].to_string().contains("sql_select_limit");
            assert!(is_refused || cell["verified"]["how"] == "read-back-all", "{cell:#}");
        }
        let doctor = place.run(&["doctor", server.url()]);
        assert!(
            doctor.out.contains("autocommit = 0, completion_type = CHAIN, sql_select_limit = 1"),
            "{engine}: {doctor:?}"
        );
    }
}

#[test]
fn table_without_a_key_is_refused_before_anything_is_made() {
    let place = Place::new();
    for (engine, setting) in [("mysql", "sql_require_primary_key"), ("mariadb", "innodb_force_primary_key")] {
        let Some(server) = testing::own_server(engine) else { continue };
        let Some(_) = sql(&server, "", &format!("SET GLOBAL {setting} = ON")) else { continue };
        let answer =
            place.run(&["run", "pgbench", "--init", server.url(), "--requests", "20", "--rounds", "1"]);
        assert!(answer.code != Some(0) && answer.err.contains(setting), "{engine}: {answer:?}");
        assert!(answer.err.contains("pgbench_history") || answer.err.contains("_history"), "{answer:?}");
        let file = place.home().join("source.db");
        let made = "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE keyless (n INTEGER);";
        let made = std::process::Command::new("sqlite3").arg(&file).arg(made).status();
        if made.is_ok_and(|made| made.success()) {
            let source = format!("sqlite:{}", file.display());
            let answer = place.run(&["copy", &source, server.url(), "--dry-run"]);
            assert!(answer.code != Some(0) && answer.err.contains(setting), "{engine}: {answer:?}");
            assert!(answer.err.contains("keyless"), "{engine}: {answer:?}");
            std::fs::remove_file(&file).unwrap();
        }
        assert_eq!(tables(&server).unwrap().trim(), "", "{engine}");
    }
}

#[test]
fn own_sessions_outlive_a_server_that_closes_idle_ones() {
    let servers = [
        ("mysql", "wait_timeout=1"),
        ("mariadb", "wait_timeout=1"),
        ("postgres", "idle_session_timeout=1s"),
        ("redis", "timeout=1"),
    ];
    beside_each_other(servers, |(engine, setting)| {
        let (place, (name, value)) = (Place::new(), setting.split_once('=').unwrap());
        let Some(server) = testing::own_server_with(engine, |options| options.set(name, value)) else {
            return;
        };
        // A trial takes longer than an idle session lives.
        let brief = ["--duration", "1500ms", "--records", "50", "--rounds", "1", "--clients", "1"];
        let answer = place.run(&[&["run", "point-read", server.url()][..], &brief].concat());
        if engine == "redis" {
            assert!(answer.code != Some(0) && answer.err.contains("idle for 1 s (timeout)"), "{answer:?}");
            return;
        }
        super::common::assert_all_verified(&place, &answer);
        let doctor = place.run(&["doctor", server.url()]);
        assert!(doctor.out.contains("closes idle connections"), "{engine}: {doctor:?}");
    });
}

/// Runs `connect` with the default number of clients, 1 and 8, as a user that may open twelve connections.
fn check_limit(place: &Place, url: &str, set_by: &str) {
    let brief = ["--requests", "20", "--records", "50", "--rounds", "1", "--connection", "kept"];
    let run = |more: &[&str]| place.run(&[&["run", "connect", url][..], &brief, more].concat());
    let answer = run(&[]).success();
    let report = place.report();
    let measured = |clients: u64| {
        cells(&report).iter().any(|cell| cell["status"] == "ok" && cell["axes"]["clients"] == clients)
    };
    assert!(measured(1) && !measured(8), "{url}: {report:#}");
    assert!(answer.err.contains(set_by), "{url}: {answer:?}");
    // What was asked for is not left out.
    let answer = run(&["--clients", "1,8"]);
    assert!(answer.code != Some(0) && answer.err.contains(set_by), "{url}: {answer:?}");
    let doctor = place.run(&["doctor", url, "--clients", "8"]);
    assert!(doctor.out.contains("too few") && doctor.out.contains(set_by), "{url}: {doctor:?}");
}

#[test]
fn default_numbers_of_clients_keep_to_the_limit_of_a_user() {
    let place = Place::new();
    if let Some(server) = testing::own_server("postgres") {
        sql(
            &server,
            "",
            "CREATE ROLE few LOGIN PASSWORD 'a' CONNECTION LIMIT 12; GRANT CREATE ON SCHEMA public TO few;",
        );
        check_limit(&place, &by(&server, "few:a", "kurabe"), "the role's CONNECTION LIMIT");
        sql(&server, "", "ALTER ROLE few CONNECTION LIMIT -1; ALTER DATABASE kurabe CONNECTION LIMIT 12;");
        check_limit(&place, &by(&server, "few:a", "kurabe"), "the database's CONNECTION LIMIT");
    }
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::own_server(engine) else { continue };
        let user = "few@'127.0.0.1'";
        let limit = format!("CREATE USER {user} IDENTIFIED BY 'a' WITH MAX_USER_CONNECTIONS 12");
        let Some(_) = sql(&server, "", &format!("{limit}; GRANT ALL ON kurabe.* TO {user};")) else {
            continue;
        };
        check_limit(&place, &by(&server, "few:a", "kurabe"), "max_user_connections");
    }
}

#[test]
fn prepared_statements_of_all_clients_are_counted_before() {
    let Some(server) = testing::own_server("mysql") else { return };
    let Some(_) = sql(&server, "", "SET GLOBAL max_prepared_stmt_count = 6") else { return };
    let place = Place::new();
    let answer = place.run(&["run", "point-read", server.url(), "--clients", "7", "--requests", "20"]);
    assert!(answer.code != Some(0) && answer.err.contains("max_prepared_stmt_count"), "{answer:?}");
}

#[test]
fn long_way_to_the_server_is_measured_and_said() {
    beside_each_other(["postgres", "mysql"], |engine| {
        let place = Place::new();
        let Some(server) = testing::server(engine) else { return };
        let (delay, port) = (Duration::from_millis(8), server.port());
        let late = move |_| Arc::new(Late::new(delay, delay, &Arc::default())) as _;
        let relay = Relay::start(LOOPBACK, Listening::local(port), late).unwrap();
        let url = server.url().replace(&format!(":{port}"), &format!(":{}", relay.address().port()));
        let doctor = place.run(&["doctor", &url]);
        assert!(doctor.out.contains("round trip"), "{engine}: {doctor:?}");
        let brief = ["--records", "5000", "--requests", "8", "--rounds", "1", "--clients", "1"];
        let answer = place.run(&[&["run", "point-read", &url][..], &brief].concat());
        super::common::assert_all_verified(&place, &answer);
        assert!(answer.err.contains("a round trip takes"), "{engine}: {answer:?}");
    });
}
