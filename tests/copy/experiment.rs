//! Experiment copy: between all engines, refusals, and a server that is killed.

use super::side;
use crate::servers::common::{cells, left, skip, sql, tables};
use crate::support::{Answer, Place, eventually, metric, words};
use kurabe_testbed::testing::{self, Lease};
use serde_json::Value;

const SMALL: [&str; 6] = ["--rows", "300", "--rounds", "1", "--no-html", "--interleave=off"];

fn run(place: &Place, targets: &[&str], rest: &[&str]) -> Answer {
    place.run(&[&["run", "copy"], targets, rest, &SMALL].concat())
}

fn assert_measured(cell: &Value) {
    assert_eq!(cell["status"], "ok", "{cell:#}");
    // Rows of all types are compared by the copy, and not read back after it.
    let how = if cell["axes"]["table"] == "types" { "counted" } else { "read-back-all" };
    assert_eq!(cell["verified"]["how"], how, "{cell:#}");
    let rows = cell["axes"]["rows"].as_u64().or_else(|| cell["axes"]["rows"].as_str()?.parse().ok());
    let counted = cell["verified"]["counted"].as_u64().unwrap();
    assert!(counted > 0 && rows.is_none_or(|rows| counted.is_multiple_of(rows)), "{cell:#}");
    for name in ["rows copied per second", "plan", "copy", "compare", "data per second", "client CPU per MB"]
    {
        assert!(metric(cell, name).is_some_and(|value| value > 0.0), "{name}: {cell:#}");
    }
}

#[test]
fn both_tables_are_copied_both_ways_between_engines() {
    // MariaDB's tables are read and written as MySQL's: `mission.rs` copies them, and the tests of the crate compare all.
    let servers: Vec<(&str, Lease)> = ["postgres", "mysql"]
        .into_iter()
        .filter_map(|engine| testing::server(engine).map(|server| (engine, server)))
        .collect();
    let place = Place::new();
    let file = format!("sqlite:{}", place.at("shop.db"));
    let urls: Vec<&str> = servers.iter().map(|(_, server)| server.url()).chain([&file[..]]).collect();
    for (at, remote) in urls.iter().enumerate() {
        let targets = &urls[at + 1..];
        if targets.is_empty() {
            break;
        }
        run(&place, targets, &["--where", "remote", "--remote", remote]).success();
        let report = place.report();
        // Each target has an A/A control.
        assert_eq!(cells(&report).len(), 5 * targets.len(), "{remote}");
        cells(&report).iter().for_each(assert_measured);
    }
    for (engine, server) in &servers {
        assert_eq!(left(engine, server), "", "{engine}");
    }
    let left = side(&file).value("SELECT count(*) FROM sqlite_schema").unwrap();
    assert_eq!(left.as_deref(), Some("0"));
}

#[test]
fn second_instances_are_copied_between_and_other_cells_have_reasons() {
    let place = Place::new();
    run(&place, &["sqlite:"], &["--table", "types"]).success();
    for cell in cells(&place.report()) {
        if cell["axes"]["where"] == "second" {
            assert_measured(cell);
        } else {
            assert_eq!(cell["status"], "unavailable", "{cell:#}");
            assert!(cell["reason"].as_str().unwrap().contains("--remote TARGET"), "{cell:#}");
        }
    }
    run(&place, &["null:"], &["--where", "second"]).exit_code(3).err_has("null: has no SQL");
    // The other end is asked, too.
    let Some(redis) = testing::server("redis") else { return };
    run(&place, &["sqlite:"], &["--where", "remote", "--remote", redis.url()]).exit_code(3).err_has("Redis");
}

/// As the report's durability says, and unlike those of `kurabe copy`.
#[test]
fn pages_of_the_experiment_wait_for_the_disk() {
    let Some(postgres) = testing::server("postgres") else { return };
    testing::make_superuser(&postgres);
    let see = "CREATE SCHEMA seen; CREATE TABLE seen.waits (value text); CREATE FUNCTION seen.see() RETURNS event_trigger \
        LANGUAGE plpgsql AS 'BEGIN INSERT INTO seen.waits VALUES (current_setting(''synchronous_commit'')); END'; \
        CREATE EVENT TRIGGER see ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION seen.see()";
    if sql(&postgres, "", see).is_none() {
        return;
    }
    let place = Place::new();
    let waits = || sql(&postgres, "", "SELECT DISTINCT value FROM seen.waits ORDER BY 1").unwrap();
    let given = ["--where", "remote", "--remote", postgres.url(), "--table", "plain", "--direction", "out"];
    run(&place, &["sqlite:"], &given).success();
    assert_eq!(waits(), "on\n");
    let file = format!("sqlite:{}", place.at("shop.db"));
    side(&file).run("CREATE TABLE t (id INTEGER PRIMARY KEY)").unwrap();
    place.run(&["copy", &file, postgres.url()]).success();
    assert_eq!(waits(), "off\non\n");
}

#[test]
fn table_of_others_is_refused_by_name_and_left() {
    let (Some(postgres), Some(mariadb)) = (testing::server("postgres"), testing::server("mariadb")) else {
        return;
    };
    let name = "kurabe_0_copy_por_300";
    if sql(&mariadb, "", &format!("CREATE TABLE {name} (id int PRIMARY KEY)")).is_none() {
        return;
    }
    let place = Place::new();
    let given = ["--where", "remote", "--remote", mariadb.url(), "--table", "plain", "--direction", "out"];
    let answer = run(&place, &[postgres.url()], &given);
    assert_ne!(answer.code, Some(0), "{answer:?}");
    let told = format!("{} {}", answer.err, answer.out);
    assert!(told.contains(name) && told.contains("was not made by Kurabe"), "{answer:?}");
    assert_eq!(tables(&mariadb).unwrap(), format!("{name}\n"));
    assert_eq!(tables(&postgres).unwrap(), "");
}

#[test]
fn killed_server_fails_the_trial_with_its_reason_and_leaves_nothing() {
    for killed_is_source in [true, false] {
        let (Some(postgres), Some(mariadb)) = (testing::server("postgres"), testing::server("mariadb"))
        else {
            skip("PostgreSQL and MariaDB are needed");
            return;
        };
        let place = Place::new();
        let direction = if killed_is_source { "into" } else { "out" };
        let line = format!(
            "run copy {} --remote {} --where remote --table plain --direction {direction} --rows 60k --rounds 40 \
             --requests 1 --no-html",
            postgres.url(),
            mariadb.url()
        );
        let child = place.spawn(&words(&line));
        // The state of a copy is on its target while it runs.
        let of = if killed_is_source { &postgres } else { &mariadb };
        let copies = || tables(of).is_some_and(|names| names.contains("kurabe_copy\n")).then_some(());
        eventually(120, copies).expect("no copy was begun");
        mariadb.kill_hard().unwrap();
        let answer = Answer::at_end_of(child).exit_code(4);
        let report = place.report();
        let failed: Vec<&str> = cells(&report).iter().filter_map(|cell| cell["reason"].as_str()).collect();
        assert!(!failed.is_empty(), "{report:#}");
        // The trial that was running lost the server; the next one cannot load its data.
        assert!(failed.iter().any(|reason| reason.contains("the remote server")), "{failed:?}");
        for reason in failed {
            let known = ["the remote server", "connection", "nothing listens"];
            assert!(known.iter().any(|part| reason.contains(part)), "{reason}");
        }
        assert_eq!(tables(&postgres).unwrap(), "", "{answer:?}");
    }
}
