//! On databases, with the clients' own transactions. `mission.rs` has each engine.

use crate::servers::common::cells;
use crate::support::Place;
use serde_json::Value;

/// Options for the shortest run.
const BRIEF: [&str; 7] = ["--requests", "300", "--records", "200", "--rounds", "1", "--no-html"];

fn run<'a>(targets: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [&["run", "webapp"], targets, rest, &BRIEF[..]].concat()
}

fn assert_measured(report: &Value, wanted: usize) {
    assert_eq!(cells(report).len(), wanted, "{report:#}");
    for cell in cells(report) {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        let verified = &cell["verified"];
        // Each request wrote its line; lines and changed users were read back.
        assert!(verified["writes"].as_u64().unwrap() >= 300 && verified["mismatches"] == 0, "{cell:#}");
        assert_eq!(verified["how"], "read-back-all", "{cell:#}");
        // Each request read its user.
        assert!(verified["answers"].as_u64().unwrap() >= 300, "{cell:#}");
    }
}

#[test]
fn every_cell_is_verified_on_sqlite_with_step_times() {
    let place = Place::new();
    // SQLite does not serve waiting writers in order: on a busy machine one may wait long.
    let answer = place.run(&run(&["sqlite:?busy_timeout=60s", "null:"], &["--clients", "1,5", "--verbose"]));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    // Two targets, two numbers of clients, two kinds of connection; and each target's A/A control.
    assert_measured(&place.report(), 10);
    for step in ["log in", "write log", "update", "search"] {
        assert!(answer.out.contains(step), "{step}: {}", answer.out);
    }
    assert!(answer.out.contains("SQLite") && answer.out.contains("per-request"), "{}", answer.out);
}

#[test]
fn compared_answers_are_counted_separately_from_records_read_back() {
    let place = Place::new();
    let answer = place.run(&[
        "run", "webapp",
        // The second writer may find the lock taken at each look, for longer than the default 5 s if the disk is slow.
        "sqlite:?busy_timeout=60s", "--clients", "2", "--connection", "kept", "--requests", "2000",
        "--records", "500", "--rounds", "1", "--no-html",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for cell in cells(&place.report()) {
        let of = |what: &str| cell["verified"][what].as_u64().unwrap();
        let made = of("answers");
        assert!(made > 2_000, "{cell:#}");
        // A line for each, and one change in twenty.
        assert!(of("read_back") >= made + made / 21 && of("counted") == made, "{cell:#}");
    }
}

#[test]
fn postal_code_list_is_used_and_invalid_line_is_reported() {
    let place = Place::new();
    let line = |code: u64| {
        format!(
            "13101,\"100  \",\"{code:07}\",\"ト\",\"ク\",\"マチ\",\"東京都\",\"千代田区\",\"町{code}\",0,0,0,0,0,0\r\n"
        )
    };
    let list: String = (1_000_000..1_000_400).step_by(7).map(line).collect();
    let file = place.file("utf_ken_all.csv", &list);
    let path = &file;
    let answer = place.run(&run(
        &["sqlite:?busy_timeout=60s"],
        &["--clients", "2", "--connection", "kept", "--postal-codes", path],
    ));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_measured(&place.report(), 2);
    std::fs::write(&file, format!("{list}13101,\"100  \",\"10000\",a,b,c,d,e,f\r\n")).unwrap();
    let answer = place.run(&run(&["sqlite:"], &["--postal-codes", path])).exit_code(2);
    assert!(answer.err.contains("line 59: the third column is not a postal code"), "{answer:?}");
}
