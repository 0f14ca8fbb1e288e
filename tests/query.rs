//! Queries that are compared: `kurabe run query`.

use crate::copy::side;
use crate::support::Place;
use kurabe_testbed::testing;
use serde_json::Value;

const SCHEMA: &str =
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, total INTEGER NOT NULL);\n";
const QUICK: &str = "SELECT id, total FROM orders\nWHERE customer = 7 ORDER BY id;\n";
const SLOW: &str =
    "-- The same, without the index.\nSELECT id, total FROM orders WHERE customer + 0 = 7 ORDER BY id";
const SHORT: [&str; 5] = ["--requests", "20", "--rounds", "2", "--no-html"];

/// A file of SQL that makes the table with 400 rows.
fn shop(place: &Place, name: &str, indexed: bool) -> String {
    let rows: Vec<String> = (1..=400).map(|n| format!("({n}, {}, {})", n * 7 % 40, n % 9)).collect();
    let index = if indexed { "CREATE INDEX by_customer ON orders (customer);\n" } else { "" };
    place.file(name, format!("{SCHEMA}INSERT INTO orders VALUES {};\n{index}", rows.join(", ")))
}

/// A SQLite database with the table.
fn sqlite(place: &Place) -> String {
    let path = place.at("shop.db");
    let mut side = side(&format!("sqlite:{path}"));
    let text = std::fs::read_to_string(shop(place, "shop.sql", true)).unwrap();
    for statement in text.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        side.run(statement).unwrap();
    }
    format!("sqlite:{path}")
}

fn plans(report: &Value) -> Vec<&Value> {
    report["findings"].as_array().unwrap().iter().filter(|one| one["kind"] == "plan").collect()
}

#[test]
fn queries_with_one_answer_are_compared_prepared_and_not_with_their_plans() {
    let place = Place::new();
    let (quick, slow) = (place.file("quick.sql", QUICK), place.file("slow.sql", SLOW));
    let engines = ["postgres", "mysql", "mariadb"].into_iter().filter(|name| testing::server(name).is_some());
    let data = shop(&place, "data.sql", true);
    let up: Vec<Vec<String>> =
        engines.map(|name| vec![format!("up:{name}"), "--data".to_owned(), data.clone()]).collect();
    for target in up.into_iter().chain([vec![sqlite(&place)]]) {
        let target: Vec<&str> = target.iter().map(String::as_str).collect();
        let answer = place.run(&[&["run", "query", &quick, &slow], &target[..], &SHORT].concat()).success();
        let report = place.report();
        let cells = report["cells"].as_array().unwrap();
        assert!(cells.iter().all(|cell| cell["status"] == "ok"), "{answer:?}");
        let compared = report["verdicts"].as_array().unwrap().iter().filter(|one| one["primary"] == true);
        let compared: Vec<_> = compared.map(|one| one["axis"].clone()).collect();
        assert_eq!(compared, ["query", "query"], "prepared, and as text: {target:?}");
        let found = plans(&report);
        assert_eq!(found.len(), 2, "{target:?}: {found:#?}");
        assert_ne!(found[0]["steps"], found[1]["steps"], "one uses the index: {target:?}");
        assert!(found.iter().all(|one| one["rows"] == 10.0), "{found:#?}");
        assert!(answer.out.contains("Plan of quick.sql") && answer.out.lines().count() <= 20, "{answer:?}");
        let pages = found.iter().filter(|one| one["pages"].as_u64().is_some()).count();
        assert_eq!(pages, if target[0] == "up:postgres" { 2 } else { 0 }, "{found:#?}");
    }
}

#[test]
fn answers_that_differ_end_the_run_with_the_first_difference() {
    let place = Place::new();
    let target = sqlite(&place);
    let run = |second: &str| {
        let first = "SELECT id, total FROM orders WHERE customer = 7 ORDER BY id";
        place.run(&[&["run", "query", &target, "-c", first, second][..], &SHORT].concat())
    };
    run("SELECT id, total FROM orders WHERE customer = 7 AND id <> 41 ORDER BY id").exit_code(2).err_has(
        "query 2: its answer differs from that of query 1: 9 rows, and not 10; it lacks the row (41 | 5)",
    );
    run("SELECT id, total FROM orders WHERE customer = 7 ORDER BY id DESC")
        .exit_code(2)
        .err_has("row 1 is (361 | 1), and not (1 | 1): the rows are in another order");
    // Without ORDER BY in one of them the order is nobody's.
    run("SELECT id, total FROM (SELECT * FROM orders ORDER BY id DESC) t WHERE customer = 7").success();
    run("SELECT id, random() FROM orders WHERE customer = 7")
        .exit_code(2)
        .err_has("its second answer differs");
    assert!(std::fs::read_dir(place.path()).unwrap().count() > 0);
}

#[test]
fn error_of_a_query_names_its_file_and_line_and_ends_the_run() {
    let place = Place::new();
    let target = sqlite(&place);
    let quick = place.file("quick.sql", QUICK);
    let wrong = place.file("wrong.sql", "SELECT id\n  FROM orders\n  WHERE custmer = 7\n");
    let run = |words: &[&str]| place.run(&[&["run", "query"], words, &SHORT[..]].concat());
    let answer = run(&[&target, &quick, &wrong]).exit_code(2).err_has("wrong.sql").err_has("LINE 3");
    assert!(!answer.out.contains("failed"), "one error, and no report of failures: {answer:?}");
    run(&[&target, &quick]).exit_code(2).err_has("nothing to be compared with");
    run(&[&target]).exit_code(2).err_has("there is no query");
    run(&[&target, &quick, &quick]).exit_code(2).err_has("is named twice");
    let two = place.file("two.sql", "SELECT 1; SELECT 2;");
    run(&[&target, &quick, &two]).exit_code(2).err_has("two.sql: ").err_has("one statement");
}

#[test]
fn query_that_writes_needs_leave_and_is_undone() {
    let place = Place::new();
    let target = sqlite(&place);
    let run = |more: &[&str]| {
        let queries = ["-c", "DELETE FROM orders WHERE id > 0", "-c", "DELETE FROM orders"];
        place.run(&[&["run", "query", &target], &queries[..], more, &SHORT].concat())
    };
    run(&[]).exit_code(2).err_has("query 1 may change data").err_has("--write");
    run(&["--write"]).success();
    // All rows are left: a query for them has an answer of 400.
    let rows = ["-c", "SELECT * FROM orders", "-c", "SELECT * FROM orders WHERE id < 401"];
    place.run(&[&["run", "query", &target], &rows[..], &SHORT].concat()).success();
    assert!(plans(&place.report()).iter().all(|one| one["rows"] == 400.0));
}

#[test]
fn one_query_is_compared_on_two_schemas_whose_answers_are_equal() {
    if testing::server("postgres").is_none() {
        return;
    }
    let place = Place::new();
    let quick = place.file("quick.sql", QUICK);
    let [main, branch] = [("main.sql", true), ("branch.sql", false)]
        .map(|(name, indexed)| format!("up:postgres?setup={}", shop(&place, name, indexed)));
    let run = |first: &str, second: &str| {
        place.run(&[&["run", "query", &quick, first, second][..], &SHORT].concat())
    };
    run(&main, &branch).success();
    let report = place.report();
    let found = plans(&report);
    assert_eq!(found.len(), 2, "{found:#?}");
    let setups = report["spec"]["target_setups"].as_array().unwrap();
    assert!(setups.len() == 2 && setups.iter().all(|one| one["digest"].is_string()), "{setups:?}");
    // The run is made again with these files only.
    place.run(&["run", "--again", "last", "--no-html"]).success();
    std::fs::write(place.at("branch.sql"), format!("{SCHEMA}INSERT INTO orders VALUES (1, 7, 3);")).unwrap();
    place.run(&["run", "--again", "last", "--no-html"]).exit_code(2).err_has("another content");
    // Which target is measured first, the seed decides.
    run(&main, &branch)
        .exit_code(2)
        .err_has("differs from that of another target")
        .err_has(" rows, and not 1");
}
