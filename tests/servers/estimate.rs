//! The optimizer's estimates: `estimate` on the engines that give them.

use super::common::{SQL, cells, installed, sql, tables};
use crate::support::{Answer, Place, metric, signal};
use kurabe_testbed::testing;
use serde_json::Value;

/// A small table, and no other repetitions.
const BRIEF: [&str; 5] = ["--records", "3000", "--rounds", "2", "--no-html"];

fn cell<'a>(report: &'a Value, data: &str, state: &str) -> &'a Value {
    let is = |cell: &&Value| cell["axes"]["data"] == data && cell["axes"]["state"] == state;
    cells(report).iter().find(|cell| is(cell) && cell["aa_control"] == false).unwrap()
}

#[test]
fn estimates_of_every_column_and_state_are_compared_with_counted_rows() {
    for engine in installed().into_iter().filter(|engine| SQL.contains(engine)) {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        place.run(&[&["run", "estimate", server.url()], &BRIEF[..]].concat()).success();
        let report = place.report();
        // Four kinds of data in three states, and the A/A control.
        assert_eq!(cells(&report).len(), 13);
        assert_each_round_has_other_rows(&place, engine);
        let mut counted = Vec::new();
        for cell in cells(&report) {
            assert_eq!(cell["status"], "ok", "{engine}: {cell:#}");
            assert_eq!(cell["verified"]["how"], "compared", "{engine}: {cell:#}");
            let [median, p95, worst] =
                ["q-error median", "q-error p95", "q-error worst"].map(|name| metric(cell, name).unwrap());
            assert!(1.0 <= median && median <= p95 && p95 <= worst, "{engine}: {cell:#}");
            assert!(metric(cell, "explain time").unwrap() > 0.0, "{engine}: {cell:#}");
            // Only PostgreSQL reports it.
            assert_eq!(metric(cell, "planning time").is_some(), engine == "postgres", "{engine}: {cell:#}");
            let points = cell["points"][0]["points"].as_array().unwrap();
            assert_eq!((points.len(), &cell["points"][0]["metric"]), (100, &"estimated rows".into()));
            counted.extend(points.iter().map(|point| point[0].as_f64().unwrap()));
        }
        // Of all cells: the ranges of one are drawn at random.
        assert!(counted.contains(&0.0) && counted.iter().any(|rows| *rows > 500.0), "{engine}: {counted:?}");
        // Fresh statistics of an evenly distributed column are what every optimizer handles well.
        let even = metric(cell(&report, "uniform", "fresh"), "q-error median").unwrap();
        assert!(even < 2.0, "{engine}: {even}");
        if engine == "postgres" {
            // It multiplies the shares of both columns, as if they were independent.
            let p95 = |data| metric(cell(&report, data, "fresh"), "q-error p95").unwrap();
            assert!(p95("correlated") > 2.0 * p95("uniform"), "{} {}", p95("correlated"), p95("uniform"));
        }
        // An optimizer takes the rows that join for as frequent as all others: the most popular ones are many more.
        assert!(metric(cell(&report, "join", "fresh"), "q-error worst").unwrap() > 2.0, "{engine}");
        let page = place.run(&["report", "--format", "html", "--output", "-"]);
        assert!(page.out.contains("<h2>Estimated rows over counted rows</h2>"), "{engine}");
        assert!(!page.out.contains("mysql-5.1"), "{engine}");
        let page = place.run(&["report", "--format", "html", "--published", "--output", "-"]);
        for part in ["mysql-5.1", "Known problems of these results", "the estimate for one range"] {
            assert!(page.out.contains(part), "{engine}: {part}");
        }
        assert_eq!(tables(&server).unwrap_or_default().trim(), "", "{engine}");
    }
}

/// Whether the rows that the server counts, cell by cell, differ from round to round.
fn assert_each_round_has_other_rows(place: &Place, engine: &str) {
    let run = std::fs::read_dir(place.path()).unwrap().flatten().next().unwrap().path();
    let text = std::fs::read_to_string(run.join("run.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let trials: Vec<Value> = lines.filter_map(|line| line.get("trial").cloned()).collect();
    let counted = |round: u64, cell: &Value| -> Vec<f64> {
        let trial = trials.iter().rfind(|trial| trial["round"] == round && trial["cell"] == *cell).unwrap();
        let points = trial["outcome"]["measured"]["points"][0]["points"].as_array().unwrap();
        points.iter().map(|point| point[0].as_f64().unwrap()).collect()
    };
    for trial in trials.iter().filter(|trial| trial["round"] == 0) {
        assert_ne!(counted(0, &trial["cell"]), counted(1, &trial["cell"]), "{engine}: {}", trial["cell"]);
    }
}

#[test]
fn texts_nulls_and_ordered_values_are_estimated_on_request() {
    for engine in installed().into_iter().filter(|engine| SQL.contains(engine)) {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let data = ["run", "estimate", server.url(), "--data", "text,nulls,clustered", "--state", "fresh"];
        place.run(&[&data[..], &BRIEF].concat()).success();
        let report = place.report();
        for data in ["text", "nulls", "clustered"] {
            let found = cell(&report, data, "fresh");
            assert_eq!(
                (&found["status"], found["verified"]["how"].as_str()),
                (&"ok".into(), Some("compared"))
            );
            assert!(metric(found, "q-error median").unwrap() < 2.0, "{engine}: {found:#}");
        }
        // NULL itself is one of the conditions: three rows in ten.
        let points = cell(&report, "nulls", "fresh")["points"][0]["points"].as_array().unwrap();
        assert!(
            points.iter().any(|point| (700.0..1_100.0).contains(&point[0].as_f64().unwrap())),
            "{points:?}"
        );
        assert_eq!(tables(&server).unwrap_or_default().trim(), "", "{engine}");
    }
}

#[test]
fn own_table_is_only_read() {
    for engine in installed().into_iter().filter(|engine| SQL.contains(engine)) {
        let Some(server) = testing::server(engine) else { continue };
        let make = "CREATE TABLE orders (id INT PRIMARY KEY, total INT); INSERT INTO orders VALUES (1, 10), (2, 20), (3, 30)";
        let Some(_) = sql(&server, "", make) else { continue };
        let place = Place::new();
        let own = "orders WHERE total > 10 AND id IN (1, 2, 3)";
        let args = ["run", "estimate", server.url(), "--data", own];
        let refused = place.run(&args);
        assert!(refused.err.contains("use --state as-is"), "{engine}: {refused:?}");
        place.run(&[&args[..], &["--state", "as-is"], &BRIEF].concat()).success();
        let report = place.report();
        let measured = cell(&report, own, "as-is");
        assert_eq!(measured["points"][0]["points"][0][0], 2.0, "{engine}: {measured:#}");
        assert!(metric(measured, "q-error worst").unwrap() >= 1.0);
        let change = ["--data", "orders; DELETE FROM orders", "--state", "as-is"];
        let changes = place.run(&[&["run", "estimate", server.url()], &change[..]].concat());
        changes.exit_code(2).err_has("may change data");
        assert_eq!(sql(&server, "", "SELECT COUNT(*) FROM orders").unwrap().trim(), "3");
        assert_eq!(tables(&server).unwrap().trim(), "orders", "{engine}");
    }
}

/// A run of many trials.
fn long(target: &str) -> [&str; 8] {
    ["run", "estimate", target, "--records", "3000", "--rounds", "30", "--no-html"]
}

#[test]
fn killed_server_fails_trials_with_reason() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let (child, _) = place.spawn_to_trial(&long(server.url()), 3);
    place.go_on(3);
    server.kill_hard().unwrap();
    Answer::at_end_of(child).exit_code(4);
    let report = place.report();
    for cell in cells(&report) {
        assert_eq!(cell["status"], "failed", "{cell:#}");
        let reason = cell["reason"].as_str().unwrap();
        let known = ["closed the connection", "nothing listens", "onnection"];
        assert!(known.iter().any(|part| reason.contains(part)), "{reason}");
    }
    // The next run removes what could not be removed.
    server.restart().unwrap();
    let answer = place.run(
        &[&["run", "estimate", server.url(), "--data", "uniform", "--state", "fresh"], &BRIEF[..]].concat(),
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(tables(&server).unwrap_or_default().trim(), "");
}

#[test]
fn ctrl_c_keeps_measured_trials_and_leaves_no_table() {
    let Some(server) = testing::server("mariadb") else { return };
    let place = Place::new();
    place.run(&[&long(server.url())[..], &["--dry-run"]].concat()).success();
    assert!(std::fs::read_dir(place.path()).unwrap().next().is_none(), "a dry run measures nothing");
    let (child, _) = place.spawn_to_trial(&long(server.url()), 3);
    place.go_on(3);
    signal(&child, "-INT");
    Answer::at_end_of(child).exit_code(130);
    let report = place.report();
    assert_eq!(report["complete"], false);
    assert!(cells(&report).iter().any(|cell| metric(cell, "q-error median").is_some()));
    assert_eq!(tables(&server).unwrap_or_default().trim(), "");
}
