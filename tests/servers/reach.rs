//! Ways to reach a server, and the output of `doctor`.

use super::common::{BRIEF, SERVERS, SQL, assert_all_verified, by, left, session, sql, with};
use super::refusals::assert_refused;
use crate::support::{Answer, Place};
use kurabe_testbed::{StartOptions, testing};
use serde_json::Value;
use std::process::Command;

fn transport(report: &Value) -> &str {
    report["targets"][0]["transport"].as_str().unwrap()
}

#[test]
fn run_over_tls_reports_tls() {
    for engine in SQL {
        let Some(server) = testing::server_with(engine, StartOptions::with_tls) else { continue };
        let ca = server.ca().unwrap().display();
        for option in ["tls=require".to_owned(), format!("tls=verify&ca={ca}")] {
            let url = with(server.url(), &option);
            let place = Place::new();
            let report = assert_all_verified(&place, &place.run(&session(&[&url], &BRIEF)));
            assert!(transport(&report).starts_with("TCP with TLS"), "{url}: {}", transport(&report));
            place.run(&["doctor", &url]).success().out_has("by TCP with TLS");
        }
        // The throwaway certificate authority is not a trusted one.
        let place = Place::new();
        let answer = place.run(&session(&[&with(server.url(), "tls=verify")], &BRIEF)).exit_code(3);
        assert!(answer.err.contains("certificate") && answer.err.contains("ca=FILE"), "{answer:?}");
        assert_advises_no_less(&answer);
    }
}

/// What went wrong with TLS may be an attack: nobody is told to do without it, or without checks.
fn assert_advises_no_less(answer: &Answer) {
    let error = answer.err.lines().filter(|line| !line.contains("://")).collect::<Vec<_>>().join("\n");
    for advice in
        ["tls=off", "tls=require", "sslmode=disable", "remove tls", "leave tls", "without tls", "plain"]
    {
        assert!(!error.contains(advice), "{advice}: {answer:?}");
    }
}

#[test]
fn no_engine_advises_less_tls_where_the_server_offers_none() {
    for engine in SERVERS {
        let Some(server) = testing::server(engine) else { continue };
        let option =
            if engine == "mongodb" { "tls=true&tlsAllowInvalidCertificates=true" } else { "tls=require" };
        let url = with(server.url(), option);
        let url = if engine == "couchdb" { url.replace("couchdb:", "couchdbs:") } else { url };
        // Redis and MongoDB do not answer a greeting of TLS.
        let answer = Place::new().run(&session(&[&url], &[&BRIEF[..], &["--timeout", "2s"]].concat()));
        // MySQL makes a certificate by itself.
        assert!(answer.code != Some(0) || engine == "mysql", "{answer:?}");
        assert_advises_no_less(&answer);
    }
}

#[test]
fn failed_tls_is_an_error_and_never_falls_back_to_plain() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    for (option, code, part) in [
        ("tls=require", 3, "does not support TLS"),
        ("tls=verify&ca=/no/such/file.pem", 2, "/no/such/file.pem"),
        ("tls=yes", 2, "tls=yes is unknown"),
    ] {
        let answer = place.run(&session(&[&with(server.url(), option)], &BRIEF));
        assert!(answer.err.contains(part), "{answer:?}");
        assert_eq!(answer.code, Some(code), "{answer:?}");
    }
}

#[test]
fn run_over_unix_socket_reports_it() {
    for engine in SERVERS {
        let socket_only = |options: StartOptions| {
            if engine == "memcached" { options.on_socket_only() } else { options }
        };
        let Some(server) = testing::server_with(engine, socket_only) else { continue };
        let url = match server.socket() {
            _ if engine == "memcached" => server.url().to_owned(),
            Some(socket) => with(server.url(), &format!("socket={}", socket.display())),
            // HTTP.
            None => continue,
        };
        let place = Place::new();
        let report = assert_all_verified(&place, &place.run(&session(&[&url], &BRIEF)));
        assert_eq!(transport(&report), "Unix socket", "{url}");
        place.run(&["doctor", &url]).out_has("by Unix socket").success();
    }
}

#[test]
fn one_run_reaches_a_database_by_two_targets() {
    let place = Place::new();
    let file = format!("sqlite:{}", place.at("shared.db"));
    let two = |url: &str, other: String| {
        let answer = place.run(&session(&[url, &other], &[&BRIEF[..], &["--operation", "write"]].concat()));
        let report = assert_all_verified(&place, &answer);
        assert_eq!(report["targets"].as_array().unwrap().len(), 2, "{answer:?}");
    };
    two(&file, with(&file, "synchronous=off"));
    for engine in SERVERS {
        let Some(server) = testing::server(engine) else { continue };
        // Two names of one database are refused; two ways to use it are compared.
        two(server.url(), with(server.url(), if engine == "mongodb" { "w=1" } else { "tls=off" }));
        assert_eq!(left(engine, &server), "", "{engine}");
    }
}

#[test]
fn url_without_user_means_the_current_user() {
    let output = Command::new("id").arg("-un").output().unwrap();
    let me = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    for engine in SQL {
        let Some(server) = testing::server(engine) else { continue };
        let make = match engine {
            "postgres" => {
                format!("CREATE ROLE \"{me}\" LOGIN PASSWORD 'a'; GRANT CREATE ON SCHEMA public TO \"{me}\"")
            }
            // The testbed creates root with all privileges, for this machine only.
            _ if me == "root" => "SELECT 1".to_owned(),
            _ => format!("CREATE USER '{me}'@'%' IDENTIFIED BY 'a'; GRANT ALL ON kurabe.* TO '{me}'@'%'"),
        };
        let Some(_) = sql(&server, "", &make) else { continue };
        let url = by(&server, "", "kurabe");
        let place = Place::new();
        let mut command = place.command(&session(&[&url], &BRIEF));
        let own = engine != "postgres" && me == "root";
        let password = if own { server.password().unwrap() } else { "a" };
        command.envs([("PGPASSWORD", password), ("MYSQL_PWD", password)]);
        // Services and containers often have none of these.
        command.env_remove("USER").env_remove("LOGNAME");
        assert_all_verified(&place, &Answer::of(&command.output().unwrap()));
        if engine == "postgres" {
            let mut command = place.command(&["doctor", &url]);
            let answer =
                Answer::of(&command.env("PGUSER", "somebody").env("PGPASSWORD", "a").output().unwrap());
            assert!(answer.err.contains("\"somebody\""), "{answer:?}");
            assert_eq!(answer.code, Some(3), "{answer:?}");
        }
    }
}

#[test]
fn doctor_describes_each_server_and_no_run_has_more_clients_than_it_takes() {
    let place = Place::new();
    for (engine, name, value, shown, version, class, limit) in [
        ("mysql", "max_connections", 30, "max_connections", "MySQL ", "synced", "of 30 (max_connections)"),
        (
            "mariadb", "max_connections", 30, "max_connections", "MariaDB ", "synced",
            "of 30 (max_connections)",
        ),
        (
            "postgres",
            "max_connections",
            33,
            "max_connections",
            "PostgreSQL ",
            "synced",
            "of 30 (max_connections - superuser_reserved_connections)",
        ),
        ("memcached", "c", 60, "maxconns", "memcached ", "memory", "of 39 (-c (maxconns), less 21 reserved)"),
        ("redis", "maxclients", 50, "maxclients", "Redis ", "memory", "of 50 (maxclients)"),
    ] {
        let Some(server) = testing::server_with(engine, |options| options.set(name, value)) else { continue };
        let answer = place.run(&["doctor", server.url(), "--clients", "10"]).success();
        for part in ["yes, by TCP", version, class, limit, "enough for 10 clients", "available"] {
            assert!(answer.out.contains(part), "'{part}' is not in: {answer:?}");
        }
        if engine == "memcached" {
            let reasons = place.run(&["doctor", server.url(), "-v"]).success();
            assert!(reasons.out.contains("not with layout rows"), "{reasons:?}");
        }
        let answer = place.run(&["doctor", server.url(), "--clients", "100"]).exit_code(3);
        assert!(answer.out.contains("too few for 100 clients"), "{answer:?}");
        let run = |clients| session(&[server.url()], &[&BRIEF[..], &["--clients", clients]].concat());
        assert_refused(&place, &place.run(&run("1,50")), &[shown, "55 connections", "--clients"]);
        if SQL.contains(&engine) {
            // As many as the server takes.
            let place = Place::new();
            assert_all_verified(&place, &place.run(&run("25")));
        }
    }
    let answer = place.run(&["doctor", "sqlite:", "null:"]).success();
    for part in ["SQLite 3.", "in process", "synced"] {
        assert!(answer.out.contains(part), "'{part}' is not in: {answer:?}");
    }
}

#[test]
fn doctor_continues_after_unusable_target() {
    let place = Place::new();
    let answer = place.run(&["doctor", "postgres://nobody@127.0.0.1:1/x", "sqlite:"]).exit_code(3);
    assert!(answer.err.contains("nothing listens") && answer.out.contains("SQLite"), "{answer:?}");
}
