//! SQLite: a file that somebody else made.

use super::*;
use std::path::Path;

/// What the author of the file put into it. `wages` is what a trap would change.
const TRAPS: &[&str] = &[
    "CREATE TABLE wages (n INTEGER)",
    "INSERT INTO wages VALUES (7)",
    "CREATE TABLE sprung (what TEXT)",
    "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, twice INTEGER GENERATED ALWAYS AS (id * 2) VIRTUAL, CHECK (id > 0))",
    "INSERT INTO people (id, name) VALUES (1, 'Ada'), (2, 'Ben')",
    "CREATE VIEW names AS SELECT name, load_extension('/tmp/trap') FROM people",
    "CREATE VIEW dbstat AS SELECT load_extension('/tmp/trap') AS pgsize",
    "CREATE VIEW kurabe_view AS SELECT load_extension('/tmp/trap') AS x",
    "CREATE INDEX lowered ON people (lower(name)) WHERE length(name) > 0",
    "CREATE VIEW sizes AS SELECT n, load_extension('/tmp/trap') AS x FROM wages",
];

/// A trigger at each time of each change of each table and view.
fn triggers() -> Vec<String> {
    let at = |times: &'static [&'static str], names: &'static [&'static str]| {
        names.iter().flat_map(move |name| times.iter().map(move |time| (*name, *time)))
    };
    let of_tables = at(&["BEFORE", "AFTER"], &["people", "wages"]);
    let all = of_tables.chain(at(&["INSTEAD OF"], &["names", "sizes", "kurabe_view"]));
    let each = |(name, time): (&str, &str)| {
        let (mark, changes) = (time.replace(' ', "_"), ["INSERT", "UPDATE", "DELETE"]);
        changes.map(|change| {
            format!(
                "CREATE TRIGGER {mark}_{change}_{name} {time} {change} ON {name} BEGIN INSERT INTO sprung VALUES ('{name}'); END"
            )
        })
    };
    all.flat_map(each).collect()
}

fn file(place: &Place, name: &str) -> String {
    let path = place.at(name);
    execute(Path::new(&path), TRAPS);
    let triggers = triggers();
    assert!(TRAPS.len() + triggers.len() > 30);
    execute(Path::new(&path), &triggers.iter().map(String::as_str).collect::<Vec<_>>());
    format!("sqlite:{path}")
}

/// By SQLite's own program's library, without the driver.
fn execute(path: &Path, statements: &[&str]) {
    let mut db = Db::open(&format!("sqlite:{}", path.display()));
    db.all(statements);
}

fn sprung(url: &str) -> (String, String) {
    let mut db = Db::open(url);
    (db.value("SELECT COUNT(*) FROM sprung"), db.value("SELECT SUM(n) FROM wages"))
}

#[test]
fn no_command_runs_triggers_and_views_of_the_file() {
    let place = Place::new();
    let url = file(&place, "theirs.db");
    let none = ("0".to_owned(), "7".to_owned());
    let custom = place.file("custom.toml", CUSTOM);
    let (to, all) = (format!("sqlite:{}", place.at("copy.db")), kurabe_copy::issue::IssueKind::ALL);
    let accepted = all.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",");
    let beside = format!("sqlite:{}", place.at("beside.db"));
    let commands: [&[&str]; 9] = [
        &["doctor", &url],
        &["doctor", "--messages", &url],
        &[
            "run", "query", &url, "-c", "SELECT n FROM wages", "-c", "SELECT n + 0 AS n FROM wages",
            "--requests", "40", "--rounds", "1",
        ],
        &[&["gate", &custom, &url, &beside, "--fail-on", "slower:5%"][..], &GATE].concat(),
        &[&["run", "session", &url][..], &SESSION].concat(),
        &[&["run", "point-read", &url][..], &SHORT].concat(),
        &[&["run", "-f", &custom, &url][..], &SHORT].concat(),
        &["copy", &url, &to, "--tables", "people,wages", "--accept", &accepted],
        &["copy", &to, &url, "--rename", "people=p2,wages=w2", "--accept", &accepted],
    ];
    for command in commands {
        let answer = place.run(command);
        let allowed: &[i32] = if command[0] == "gate" { &[0, 6, 7] } else { &[0] };
        let is_allowed = answer.code.is_some_and(|code| allowed.contains(&code));
        assert!(is_allowed, "{}: {answer:?}", command.join(" "));
        assert_eq!(sprung(&url), none, "{}", command.join(" "));
    }
}

#[test]
fn view_under_the_name_of_what_a_copy_reads_runs_no_function_with_effects() {
    let place = Place::new();
    let url = file(&place, "view.db");
    let view = "CREATE VIEW pragma_table_list AS SELECT 'main' AS schema, load_extension('/tmp/trap') AS name, 0 AS wr";
    execute(Path::new(url.strip_prefix("sqlite:").unwrap()), &[view]);
    let to = format!("sqlite:{}", place.at("copy.db"));
    let answer = place.run(&["copy", &url, &to]).exit_code(3);
    assert!(answer.err.contains("unsafe use of load_extension()"), "{answer:?}");
}

#[test]
fn ownership_table_of_others_is_refused_and_removes_nothing() {
    let place = Place::new();
    let ours = "CREATE TABLE \"kurabe_marker\" (\"name\" VARCHAR(60) NOT NULL, \"made_by\" VARCHAR(60), \"made_at\" INTEGER, \
                PRIMARY KEY (\"name\"))";
    let plain = "CREATE TABLE kurabe_marker (name, made_by, made_at)";
    let entry = "INSERT INTO kurabe_marker VALUES ('kurabe_view', 'kurabe 1', 5)";
    let markers: [(&str, &[&str]); 8] = [
        ("another text", &[plain]),
        (
            "a trigger",
            &[ours, "CREATE TRIGGER t BEFORE INSERT ON kurabe_marker BEGIN UPDATE wages SET n = 0; END"],
        ),
        (
            "a trigger on deletion",
            &[ours, "CREATE TRIGGER t AFTER DELETE ON kurabe_marker BEGIN DELETE FROM wages; END"],
        ),
        ("an index", &[ours, "CREATE INDEX i ON kurabe_marker (lower(name))"]),
        (
            "a check",
            &[
                "CREATE TABLE kurabe_marker (name VARCHAR(60) PRIMARY KEY, made_by CHECK (abs(made_at) > 0), made_at INTEGER)",
            ],
        ),
        ("a generated column", &["CREATE TABLE kurabe_marker (name, made_by, made_at AS (5))"]),
        (
            "a view",
            &["CREATE VIEW kurabe_marker AS SELECT 'kurabe_view' AS name, 'x' AS made_by, 5 AS made_at"],
        ),
        ("a virtual table", &["CREATE VIRTUAL TABLE kurabe_marker USING fts5(name, made_by, made_at)"]),
    ];
    for (at, (trap, statements)) in markers.into_iter().enumerate() {
        let url = file(&place, &format!("marker-{at}.db"));
        let path = url.strip_prefix("sqlite:").unwrap();
        execute(Path::new(path), statements);
        let answer = place.run(&[&["run", "session", &url][..], &SESSION].concat());
        assert_marker_refused(&answer, trap);
        assert_eq!(sprung(&url), ("0".to_owned(), "7".to_owned()), "{trap}");
    }
    // One with our text, and an entry of what is no table.
    let url = file(&place, "entry.db");
    execute(Path::new(url.strip_prefix("sqlite:").unwrap()), &[ours, entry]);
    let answer = place.run(&[&["run", "session", &url][..], &SESSION].concat()).exit_code(3);
    assert!(answer.err.contains("table kurabe_view") && answer.err.contains("it is a view"), "{answer:?}");
    assert_eq!(Db::open(&url).value("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'kurabe_view'"), "1");
}
