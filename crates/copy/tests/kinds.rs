//! Kinds of tables that were once copied in part, altered or not at all. What arrives is read by the engines' own programs,
//! without the code under test.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests fail by panics")]

mod common;

use common::{Place, copy, copy_all, lists, planned};
use kurabe_core::ErrorKind;

/// Rows of a sweep: many pages.
const ROWS: u32 = 300;

fn numbers() -> String {
    format!("WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {ROWS})")
}

/// Keys of SQLite: the declaration of the column, and its value for the `n`th row.
const SQLITE_KEYS: &[(&str, &str)] = &[
    ("k PRIMARY KEY", "n"),
    ("k PRIMARY KEY", "'setting/' || n"),
    ("k TEXT PRIMARY KEY", "CASE n WHEN 7 THEN x'00ff' ELSE 'k' || n END"),
    ("k PRIMARY KEY", "CASE n % 4 WHEN 0 THEN n WHEN 1 THEN n + 0.25 WHEN 2 THEN 't' || n ELSE CAST('b' || n AS BLOB) END"),
    ("k BLOB PRIMARY KEY", "CAST('b' || n AS BLOB)"),
    ("k REAL PRIMARY KEY", "n / 8.0"),
    ("k NUMERIC PRIMARY KEY", "n * 1.5"),
    ("k TEXT COLLATE NOCASE PRIMARY KEY", "'Name ' || n"),
    ("k INTEGER PRIMARY KEY", "n - 150"),
    ("k DATETIME PRIMARY KEY", "datetime('2024-01-01', n || ' hours')"),
    ("k TEXT, rowid INT", "n % 3"),
    ("k TEXT, rowid INT, _rowid_ INT, oid INT", "n % 3"),
];

#[test]
fn all_rows_of_every_key_of_sqlite_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    for (at, (declared, value)) in SQLITE_KEYS.iter().enumerate() {
        let numbers = numbers();
        let keyed = declared.contains("PRIMARY");
        for (table, options) in [(format!("t{at}"), ""), (format!("w{at}"), " WITHOUT ROWID")] {
            if !options.is_empty() && !keyed {
                continue;
            }
            from.ask(&format!(
                "CREATE TABLE {table} ({declared}, v TEXT){options}; \
                 INSERT INTO {table} (k, v) {numbers} SELECT {value}, 'v' || n FROM n"
            ));
        }
    }
    let tables = from.ask("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
    for engine in ["sqlite", "postgres", "mysql", "mariadb"] {
        let Some(to) = Place::new(engine, folder.path()) else { continue };
        let (_, done) = copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!(done.len(), tables.lines().count());
        for table in tables.lines() {
            assert_eq!(to.ask(&format!("SELECT count(*) FROM {table}")), ROWS.to_string(), "{engine} {table}");
            let sum = |of: &Place| of.ask(&format!("SELECT sum(length(v)), max(v), min(v) FROM {table}")).replace('\t', "|");
            assert_eq!(sum(&to), sum(&from), "{engine} {table}");
        }
        if engine == "sqlite" {
            for table in tables.lines() {
                let exactly = format!("SELECT typeof(k), quote(k), v FROM {table} ORDER BY typeof(k), k, v");
                assert_eq!(to.ask(&exactly), from.ask(&exactly), "{table}");
            }
        }
    }
}

/// Keys of PostgreSQL: type and value.
const POSTGRES_KEYS: &[(&str, &str)] = &[
    ("smallint", "g - 150"),
    ("integer", "g * 1000003"),
    ("bigint", "g * 10000000000000"),
    ("numeric(10)", "CASE WHEN g > 150 THEN 90000 + g ELSE g END"),
    ("numeric", "g / 7.0"),
    ("real", "g / 8.0"),
    ("double precision", "g / 7.0"),
    ("text", "'k' || g"),
    ("text COLLATE \"C\"", "CASE g % 2 WHEN 0 THEN 'B' ELSE 'a' END || g"),
    ("varchar(20)", "'é' || g"),
    ("char(8)", "'c' || g"),
    ("bytea", "decode(lpad(to_hex(g * 77), 6, '0'), 'hex')"),
    ("date", "date '2024-01-01' + g"),
    ("time", "time '00:00' + g * interval '1 minute'"),
    ("timestamp", "timestamp '2024-01-01' + g * interval '1 hour 0.25 s'"),
    ("timestamptz", "timestamptz '2024-01-01 00:00:00+02' + g * interval '1 hour'"),
    ("uuid", "md5(g::text)::uuid"),
    ("inet", "inet '10.0.0.0' + g"),
    ("interval", "g * interval '1 hour'"),
];

#[test]
fn all_rows_of_every_key_of_postgres_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let Some(from) = Place::new("postgres", folder.path()) else { return };
    for (at, (declared, value)) in POSTGRES_KEYS.iter().enumerate() {
        from.ask(&format!(
            "CREATE TABLE t{at} (k {declared} PRIMARY KEY, v text); \
             INSERT INTO t{at} SELECT {value}, 'v' || g FROM generate_series(1, {ROWS}) g"
        ));
    }
    for engine in ["sqlite", "postgres", "mysql", "mariadb"] {
        let Some(to) = Place::new(engine, folder.path()) else { continue };
        copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        for at in 0..POSTGRES_KEYS.len() {
            let found = to.ask(&format!("SELECT count(*), count(DISTINCT k), count(DISTINCT v) FROM t{at}"));
            assert_eq!(found.replace('\t', "|"), format!("{ROWS}|{ROWS}|{ROWS}"), "{engine} {:?}", POSTGRES_KEYS[at]);
            if engine == "postgres" {
                let exactly = format!("SELECT md5(string_agg(k::text || v, ',' ORDER BY v)) FROM t{at}");
                assert_eq!(to.ask(&exactly), from.ask(&exactly), "{at}");
            }
        }
    }
}

/// Keys of MySQL and MariaDB: type and value.
const MYSQL_KEYS: &[(&str, &str)] = &[
    ("tinyint unsigned", "n % 256"),
    ("int", "n - 150"),
    ("bigint unsigned", "18446744073709551615 - n"),
    ("decimal(12,2)", "n * 1.5"),
    ("double", "n / 8"),
    ("varchar(30)", "CONCAT('Name ', n)"),
    ("varchar(30) COLLATE utf8mb4_bin", "CONCAT('é ', n)"),
    ("char(10)", "CONCAT('c', n)"),
    ("varbinary(20)", "UNHEX(LPAD(HEX(n * 77), 6, '0'))"),
    ("binary(4)", "UNHEX(LPAD(HEX(n + 16000000), 8, '0'))"),
    ("date", "DATE_ADD('2024-01-01', INTERVAL n DAY)"),
    ("time", "SEC_TO_TIME(n)"),
    ("datetime(3)", "DATE_ADD('2024-01-01 00:00:00.250', INTERVAL n HOUR)"),
    ("timestamp", "DATE_ADD('2024-05-01', INTERVAL n HOUR)"),
    ("bit(20)", "n"),
];

#[test]
fn all_rows_of_every_key_of_mysql_and_mariadb_arrive() {
    let folder = tempfile::tempdir().unwrap();
    for source in ["mysql", "mariadb"] {
        let Some(from) = Place::new(source, folder.path()) else { continue };
        for (at, (declared, value)) in MYSQL_KEYS.iter().enumerate() {
            let most = if declared.starts_with("tinyint") { 256 } else { ROWS };
            let numbers = numbers();
            from.ask(&format!(
                "CREATE TABLE t{at} (k {declared} NOT NULL, v text, PRIMARY KEY (k)); \
                 INSERT INTO t{at} {numbers} SELECT {value}, CONCAT('v', n) FROM n WHERE n <= {most}"
            ));
        }
        for engine in ["sqlite", "postgres", "mysql", "mariadb"] {
            let Some(to) = Place::new(engine, folder.path()) else { continue };
            copy_all(&from, &to).unwrap_or_else(|error| panic!("{source} to {engine}: {error}"));
            for (at, (declared, _)) in MYSQL_KEYS.iter().enumerate() {
                let most = if declared.starts_with("tinyint") { 256 } else { ROWS };
                let found = to.ask(&format!("SELECT count(*), count(DISTINCT k), count(DISTINCT v) FROM t{at}"));
                assert_eq!(found.replace('\t', "|"), format!("{most}|{most}|{most}"), "{source} to {engine}: {declared}");
            }
        }
    }
}

/// Verification counts by itself: a reader that loses rows cannot hide it.
#[test]
fn row_that_is_lost_or_added_meanwhile_is_an_error() {
    use kurabe_copy::run::{Event, Step};
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(&format!("CREATE TABLE t (k INTEGER PRIMARY KEY, v); INSERT INTO t {} SELECT n, n FROM n", numbers()));
    for (change, part) in [
        ("DELETE FROM t WHERE k = 5", "300 rows were copied, and the target's server counts 299"),
        ("INSERT INTO t VALUES (1000, 0)", "300 rows were copied, and the target's server counts 301"),
        ("UPDATE t SET v = 'x' WHERE k = 5", "row 5, column v"),
    ] {
        let to = Place::File(folder.path().join(format!("{}.db", part.len())));
        let mut changed = false;
        let stop = std::sync::atomic::AtomicBool::new(false);
        let error = common::watched(&from.url(), &to.url(), "", &stop, &mut |event| {
            if let Event::Progress { step: Step::Copy, rows, .. } = event
                && rows == u64::from(ROWS)
                && !changed
            {
                to.ask(change);
                changed = true;
            }
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
        assert!(error.to_string().contains(part), "{change}: {error}");
        std::fs::remove_file(folder.path().join(format!("{}.db", part.len()))).unwrap();
    }
}

#[test]
fn rows_that_a_policy_hides_or_a_child_adds_are_not_copied_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let Some(from) = Place::new("postgres", folder.path()) else { return };
    from.ask(
        "CREATE TABLE event (id int NOT NULL, what text); CREATE TABLE event_2025 () INHERITS (event); \
         INSERT INTO event VALUES (1, 'parent'); INSERT INTO event_2025 VALUES (2, 'child'), (3, 'child')",
    );
    let to = Place::new("sqlite", folder.path()).unwrap();
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT count(*) FROM event; SELECT count(*) FROM event_2025"), "1\n2");
    from.ask(
        "CREATE TABLE invoice (id int PRIMARY KEY, tenant text); \
         INSERT INTO invoice SELECT g, CASE WHEN g % 10 = 0 THEN 'app' ELSE 'other' END FROM generate_series(1, 100) g; \
         ALTER TABLE invoice ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON invoice USING (tenant = current_user); \
         CREATE ROLE app LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO app",
    );
    let to = Place::new("sqlite", folder.path()).unwrap();
    let (_, port) = from.url().rsplit_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let app = format!("postgres://app@127.0.0.1:{port}");
    let error = copy(&app, &to.url(), "type,collation,decimal").unwrap_err();
    assert!(error.to_string().contains("row-level security"), "{error}");
}

#[test]
fn shadow_tables_of_a_virtual_table_are_a_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    let (made, ..) = from.try_ask(
        "CREATE TABLE doc (id INTEGER PRIMARY KEY, body TEXT); CREATE VIRTUAL TABLE doc_fts USING fts5(body); \
         INSERT INTO doc VALUES (1, 'hello'); INSERT INTO doc_fts VALUES ('hello')",
    );
    assert!(made);
    let to = Place::new("sqlite", folder.path()).unwrap();
    let plan = planned(&from, &to).unwrap();
    let names: Vec<&str> = plan.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["doc"]);
    assert!(lists(&plan, "view", "doc_fts virtual"), "{:?}", plan.issues);
}

/// A page ends with the row that fills it: one wide row among many small ones costs one page.
#[test]
fn wide_row_does_not_make_every_page_small() {
    use kurabe_copy::run::{Event, Step};
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(&format!(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v); INSERT INTO t {} SELECT n, n FROM n; \
         INSERT INTO t VALUES (1000, randomblob(4000000))",
        numbers()
    ));
    let to = Place::new("sqlite", folder.path()).unwrap();
    let mut pages = 0;
    let stop = std::sync::atomic::AtomicBool::new(false);
    common::watched(&from.url(), &to.url(), "", &stop, &mut |event| {
        pages += usize::from(matches!(event, Event::Progress { step: Step::Copy, .. }));
    })
    .unwrap();
    assert_eq!(pages, 7);
    assert_eq!(to.ask("SELECT count(*), max(length(v)) FROM t"), "301|4000000");
}

#[test]
fn columns_without_a_type_get_the_one_that_their_values_have() {
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, words, numbers, mixed, bytes); \
         INSERT INTO t VALUES (1, 'a', 1, 1, x'00'), (2, 'b', 9007199254740993, 'x', x'01'), (3, NULL, NULL, x'ff', NULL)",
    );
    let Some(to) = Place::new("postgres", folder.path()) else { return };
    let plan = planned(&from, &to).unwrap();
    assert!(lists(&plan, "storage-class", "t.mixed"), "{:?}", plan.issues);
    assert_eq!(plan.issues.len(), 1, "{:?}", plan.issues);
    copy_all(&from, &to).unwrap();
    let types = "SELECT string_agg(data_type, ',' ORDER BY ordinal_position) FROM information_schema.columns \
                 WHERE table_name = 't'";
    assert_eq!(to.ask(types), "bigint,text,bigint,bytea,bytea");
    assert_eq!(to.ask("SELECT words, numbers FROM t WHERE id = 2"), "b|9007199254740993");
}

/// Texts that look like dates, and nulls in keys, are found by the plan.
#[test]
fn values_that_the_target_refuses_are_found_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let Some(to) = Place::new("postgres", folder.path()) else { return };
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE, ts DATETIME, zone DATETIME, good DATETIME); \
         INSERT INTO t VALUES (1, '2024-02-30', '2024-01-01 25:61:00', '2024-01-01 10:00:00-05:00', '2024-01-01 10:00:00'), \
         (2, '2024-13-45', '2024-01-01 10:00:00', '2024-06-01 10:00:00-04:00', '2024-02-29T10:00:00.5')",
    );
    let plan = planned(&from, &to).unwrap();
    for column in ["t.d", "t.ts", "t.zone"] {
        assert!(lists(&plan, "storage-class", column), "{column}: {:?}", plan.issues);
    }
    assert_eq!(plan.issues.len(), 3, "{:?}", plan.issues);
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT d, zone, good FROM t WHERE id = 2"), "2024-13-45|2024-06-01 10:00:00-04:00|2024-02-29 10:00:00.5");
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask("CREATE TABLE n (code TEXT PRIMARY KEY, x INT); INSERT INTO n VALUES (NULL, 1), ('a', 2), (NULL, 3)");
    let error = planned(&from, &to).unwrap_err();
    assert!(error.to_string().contains("n.code: the key has 2 nulls"), "{error}");
}

/// A copy can end between any two of its first statements.
#[test]
fn copy_that_ended_before_its_state_table_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(&format!("CREATE TABLE t (k INTEGER PRIMARY KEY, v); INSERT INTO t {} SELECT n, n FROM n", numbers()));
    for engine in ["sqlite", "postgres", "mysql", "mariadb"] {
        let Some(to) = Place::new(engine, folder.path()) else { continue };
        let stop = std::sync::atomic::AtomicBool::new(true);
        common::watched(&from.url(), &to.url(), "", &stop, &mut |_| {}).unwrap_err();
        to.ask("DROP TABLE kurabe_copy");
        assert_ne!(to.ask("SELECT count(*) FROM kurabe_marker"), "0");
        copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!(to.ask("SELECT count(*) FROM t"), ROWS.to_string());
    }
}
