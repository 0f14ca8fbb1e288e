//! Runs that only read need nothing on the server but its tables: no lease, no table of Kurabe's.

use super::common::{by, sql, tables};
use super::standby::Standby;
use crate::support::{Answer, Place};
use kurabe_testbed::testing;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Command;

const THEIRS: &str =
    "CREATE TABLE theirs (id int PRIMARY KEY, n int); INSERT INTO theirs VALUES (1, 5), (2, 6);";
const READS: &str = "\\set id random(1, 2)\nSELECT n FROM theirs WHERE id = :id;\n";

/// Runs a script of a user on tables that are there.
fn script(place: &Place, text: &str, url: &str, more: &[&str]) -> Answer {
    let file = place.file("script.sql", text);
    let args = ["run", "pgbench", "-f", &file, url, "--requests", "40", "--rounds", "1"];
    place.run(&[&args[..], &["--clients", "2"], more].concat())
}

/// Checks that a script that reads is measured without a lease.
fn check_reads(place: &Place, what: &str, url: &str) {
    let answer = script(place, READS, url, &[]);
    assert_eq!(answer.code, Some(0), "{what}: {answer:?}");
    assert!(answer.err.contains("creates nothing and holds no lease"), "{what}: {answer:?}");
    let report = place.report();
    let cells = super::common::cells(&report);
    assert!(!cells.is_empty() && cells.iter().all(|cell| cell["status"] == "ok"), "{what}: {report:#}");
}

/// Checks what `doctor` says of a target, and that what needs tables is refused for the same reason.
fn check_refusal(place: &Place, what: &str, url: &str, why: &str) {
    place.run(&["doctor", url]).success().out_has(why).out_has("can be run: pgbench");
    let answer = place.run(&["run", "kv", url, "--requests", "40", "--rounds", "1", "--records", "20"]);
    assert!(answer.code != Some(0) && answer.err.contains(why), "{what}: {answer:?}");
}

#[test]
fn standby_is_read_without_a_table_or_a_lease() {
    let Some(standby) = Standby::start() else { return };
    let place = Place::new();
    let Some(_) = sql(&standby.primary, "", THEIRS) else { return };
    standby.catch_up();
    check_reads(&place, "standby", &standby.url());
    check_refusal(&place, "standby", &standby.url(), "it is a standby (in recovery)");
    let answer = script(&place, "UPDATE theirs SET n = 1;\n", &standby.url(), &["--write"]);
    assert!(answer.code != Some(0) && answer.err.contains("standby"), "{answer:?}");
    assert_eq!(tables(&standby.primary).unwrap().trim(), "theirs");
}

#[test]
fn user_who_may_only_select_reads_without_a_table_or_a_lease() {
    let place = Place::new();
    for engine in ["postgres", "mysql", "mariadb"] {
        let Some(server) = testing::own_server(engine) else { continue };
        let Some(_) = sql(&server, "", THEIRS) else { continue };
        let why = if engine == "postgres" {
            sql(&server, "", "CREATE ROLE reader LOGIN PASSWORD 'a'; GRANT SELECT ON theirs TO reader;");
            sql(
                &server,
                "",
                "CREATE ROLE writer LOGIN PASSWORD 'a'; GRANT SELECT, UPDATE ON theirs TO writer;",
            );
            "may not create tables in schema public"
        } else {
            for (user, what) in [("reader", "SELECT"), ("writer", "SELECT, UPDATE")] {
                let at = format!("{user}@'127.0.0.1'");
                sql(
                    &server,
                    "",
                    &format!("CREATE USER {at} IDENTIFIED BY 'a'; GRANT {what} ON kurabe.* TO {at};"),
                );
            }
            "the user has no privileges CREATE, DROP, INDEX, INSERT, UPDATE, DELETE on database kurabe"
        };
        let url = by(&server, "reader:a", "kurabe");
        check_reads(&place, engine, &url);
        check_refusal(&place, engine, &url, why);
        // Who may change tables that are there needs none of Kurabe's for that.
        let writer = by(&server, "writer:a", "kurabe");
        let update = "UPDATE theirs SET n = n WHERE id = 1;\n";
        let answer = script(&place, update, &writer, &["--write"]);
        assert_eq!(answer.code, Some(0), "{engine}: {answer:?}");
        assert_eq!(tables(&server).unwrap().trim(), "theirs", "{engine}");
    }
}

#[test]
fn read_only_server_is_read_without_a_table_or_a_lease() {
    let place = Place::new();
    for (engine, setting) in [("mysql", "super_read_only"), ("mariadb", "read_only")] {
        let Some(server) = testing::own_server(engine) else { continue };
        let Some(_) = sql(&server, "", THEIRS) else { continue };
        let user = "owner@'127.0.0.1'";
        sql(&server, "", &format!("CREATE USER {user} IDENTIFIED BY 'a'; GRANT ALL ON kurabe.* TO {user};"));
        sql(&server, "", &format!("SET GLOBAL {setting} = ON"));
        let url = by(&server, "owner:a", "kurabe");
        check_reads(&place, engine, &url);
        check_refusal(&place, engine, &url, &format!("{setting} = ON"));
    }
}

/// A file with a table of its owner, made by SQLite's own program; `None`, with a message, if it is missing.
fn sqlite_file(place: &Place) -> Option<PathBuf> {
    let file = place.home().join("theirs.db");
    let Ok(status) = Command::new("sqlite3").arg(&file).arg(THEIRS).status() else {
        super::common::skip("there is no program sqlite3");
        return None;
    };
    assert!(status.success());
    Some(file)
}

#[test]
fn sqlite_file_that_may_only_be_read_is_left_as_it_is() {
    let place = Place::new();
    let Some(file) = sqlite_file(&place) else { return };
    let before = std::fs::read(&file).unwrap();
    let url = format!("sqlite:{}?access=read", file.display());
    check_reads(&place, "access=read", &url);
    check_refusal(&place, "access=read", &url, "it is opened with access=read");
    let url = format!("sqlite:{}", file.display());
    // Root may write whatever the mode says.
    let root = rustix::process::geteuid().is_root();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
    if !root {
        check_reads(&place, "read-only file", &url);
        check_refusal(&place, "read-only file", &url, "the file is read-only");
    }
    assert!(std::fs::read(&file).unwrap() == before, "the file was changed");
    let beside = std::fs::read_dir(place.home()).unwrap().flatten();
    let beside: Vec<_> = beside.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(!beside.iter().any(|name| name.contains("lock") || name.contains("-wal")), "{beside:?}");
}

#[test]
fn doctor_and_run_ask_for_the_same_rights() {
    let place = Place::new();
    let refused = |url: &str, part: &str| {
        let doctor = place.run(&["doctor", url]);
        assert!(doctor.out.contains(part) && !doctor.out.contains("  available "), "{part}: {doctor:?}");
        let run = place.run(&["run", "session", url, "--requests", "20", "--rounds", "1"]);
        assert!(run.code != Some(0) && run.err.contains(part), "{part}: {run:?}");
    };
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::own_server(engine) else { continue };
        let user = "maker@'127.0.0.1'";
        let made =
            format!("CREATE USER {user} IDENTIFIED BY 'a'; GRANT SELECT, CREATE ON kurabe.* TO {user};");
        let Some(_) = sql(&server, "", &made) else { continue };
        let url = by(&server, "maker:a", "kurabe");
        refused(&url, "no privileges DROP, INDEX, INSERT, UPDATE, DELETE on database kurabe");
        let grants = format!("GRANT DROP, INDEX, INSERT, UPDATE, DELETE ON kurabe.* TO {user};");
        sql(&server, "", &grants).unwrap();
        let brief = ["--requests", "20", "--rounds", "1", "--payload", "1k", "--records", "20"];
        place.run(&[&["run", "session", &url][..], &brief].concat()).success();
    }
    for engine in ["redis", "valkey"] {
        let Some(server) = testing::own_server(engine) else { continue };
        let (mut stream, mut reader) = {
            let stream = testing::connected(&server).unwrap();
            (stream.try_clone().unwrap(), BufReader::new(stream))
        };
        for (user, rights) in [
            ("reader", "~* +@read +@connection +@transaction +info"),
            ("keyed", "~app:* +@all"),
            ("plain", "~* +@all -eval"),
            ("whole", "~* +@all"),
        ] {
            stream.write_all(format!("ACL SETUSER {user} on >pw {rights}\r\n").as_bytes()).unwrap();
            let mut answer = String::new();
            reader.read_line(&mut answer).unwrap();
            assert_eq!(answer, "+OK\r\n", "{user}");
            let url = format!("{engine}://{user}:pw@127.0.0.1:{}", server.port());
            if user == "whole" {
                let brief = ["--requests", "20", "--rounds", "1", "--payload", "1k", "--records", "20"];
                place.run(&[&["run", "session", &url][..], &brief].concat()).success();
            } else {
                refused(&url, "the user may not write there");
            }
        }
    }
}
