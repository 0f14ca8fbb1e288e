//! SQLite: unusable files, tables of other programs, leases between programs.

use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;

fn open(path: &Path, options: &str) -> Box<dyn Driver> {
    crate::common::open(&format!("sqlite:{}{options}", path.display()))
}

fn refused(path: &Path, options: &str) -> Error {
    open(path, options).connect(&ConnectOptions::default()).err().unwrap()
}

fn collection() -> Arc<Collection> {
    let fields =
        vec![Field { name: "id", kind: FieldType::Int }, Field { name: "data", kind: FieldType::LongBytes }];
    Arc::new(Collection::new("kurabe_sqlite_test", fields, vec![0]))
}

#[test]
fn unusable_file_is_rejected_with_reason() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let error = refused(folder.path(), "");
    assert!(error.to_string().contains("is a folder"), "{error}");
    let error = refused(&at("no/such/folder/x.db"), "");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    std::fs::write(
        at("text.db"),
        "this is no database, and it is longer than a header of a hundred bytes is. ".repeat(9),
    )
    .unwrap();
    let before = std::fs::read(at("text.db")).unwrap();
    let error = refused(&at("text.db"), "");
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(error.to_string().contains("not a database"), "{error}");
    assert_eq!(std::fs::read(at("text.db")).unwrap(), before);
    Connection::open(at("small.db")).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let error = refused(&at("small.db"), "?page_size=8192");
    assert!(error.to_string().contains("already has pages of 4096 bytes"), "{error}");
}

#[test]
fn other_tables_of_the_file_are_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let theirs = Connection::open(&path).unwrap();
    theirs.execute_batch("CREATE TABLE users (name); INSERT INTO users VALUES ('ann');").unwrap();
    theirs.execute_batch("CREATE VIEW kurabe_sqlite_test AS SELECT 1").unwrap();
    let schema = |connection: &Connection| -> String {
        connection.query_row("SELECT group_concat(sql) FROM sqlite_schema", [], |row| row.get(0)).unwrap()
    };
    let before = schema(&theirs);
    let driver = open(&path, "");
    let mut namespace = driver.namespace().unwrap();
    // A view with our table's name is a conflict too.
    let error = namespace.create(&collection()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotOurs, "{error}");
    theirs.execute_batch("DROP VIEW kurabe_sqlite_test").unwrap();
    let after_their_drop = schema(&theirs);
    namespace.create(&collection()).unwrap();
    // SQLite's statistics tables are created and removed with it.
    namespace.analyse(&collection()).unwrap();
    assert!(schema(&theirs).contains("sqlite_stat1"));
    namespace.remove(&collection().name).unwrap();
    namespace.finish().unwrap();
    assert_ne!(before, after_their_drop);
    assert_eq!(schema(&theirs), after_their_drop);
    let users: i64 = theirs.query_row("SELECT count(*) FROM users", [], |row| row.get(0)).unwrap();
    assert_eq!(users, 1);
}

#[test]
fn statistics_of_other_tables_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let theirs = Connection::open(&path).unwrap();
    theirs
        .execute_batch(
            "CREATE TABLE users (name); CREATE INDEX by_name ON users (name); INSERT INTO users VALUES ('ann'); ANALYZE",
        )
        .unwrap();
    let driver = open(&path, "");
    let mut namespace = driver.namespace().unwrap();
    namespace.create(&collection()).unwrap();
    namespace.analyse(&collection()).unwrap();
    namespace.remove(&collection().name).unwrap();
    namespace.finish().unwrap();
    let kept: String =
        theirs.query_row("SELECT group_concat(tbl) FROM sqlite_stat1", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, "users");
    // Only Kurabe's collections are analysed.
    let error = namespace.analyse(&Collection::new("users", Vec::new(), Vec::new())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotOurs, "{error}");
}

#[test]
fn table_with_index_but_without_statistics_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let theirs = Connection::open(&path).unwrap();
    theirs
        .execute_batch(
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name); CREATE INDEX by_name ON users (name);
             CREATE TABLE plain (id INTEGER PRIMARY KEY, name); INSERT INTO plain VALUES (1, 'ann');",
        )
        .unwrap();
    let mut namespace = open(&path, "").namespace().unwrap();
    let mut warning = |table: &str| namespace.unanalysed(table).unwrap();
    assert_eq!(warning("users"), None, "an empty table has no statistics");
    theirs.execute_batch("INSERT INTO users SELECT value, 'ann' FROM json_each('[1,2,3]')").unwrap();
    let text = warning("Users").unwrap();
    assert!(text.contains("ANALYZE Users"), "{text}");
    for table in ["plain", "nobody", "o'hara", "\"users\""] {
        assert_eq!(warning(table), None, "{table}");
    }
    theirs.execute_batch("ANALYZE users").unwrap();
    assert_eq!(warning("users"), None);
}

#[test]
fn foreign_ownership_table_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE kurabe_marker (a); INSERT INTO kurabe_marker VALUES (1)")
        .unwrap();
    let mut namespace = open(&path, "").namespace().unwrap();
    for error in [
        namespace.create(&collection()).unwrap_err(),
        namespace.list().unwrap_err(),
        namespace.finish().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotOurs, "{error}");
    }
    let rows: i64 =
        Connection::open(&path).unwrap().query_row("SELECT a FROM kurabe_marker", [], |r| r.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn lease_of_one_run_with_two_targets_ends_with_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let lock = folder.path().join("x.db-kurabe.lock");
    let drivers = [open(&path, ""), open(&path, "?synchronous=off")];
    let [mut first, mut second] = drivers.each_ref().map(|driver| driver.namespace().unwrap());
    first.claim("run").unwrap();
    second.claim("run").unwrap();
    drop(first);
    let mut other = drivers[0].namespace().unwrap();
    assert_eq!(other.claim("other").unwrap_err().kind(), ErrorKind::InUse);
    drop(second);
    assert!(!lock.exists());
    other.claim("other").unwrap();
}

#[test]
fn requested_settings_are_applied_and_decide_durability_class() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    for (options, class) in [
        ("", DurabilityClass::Synced),
        ("?synchronous=normal", DurabilityClass::OsCache),
        ("?journal_mode=delete&synchronous=extra", DurabilityClass::Synced),
        ("?journal_mode=off&synchronous=off&busy_timeout=250ms&cache_size=-77", DurabilityClass::Memory),
    ] {
        let path = folder.path().join(format!("{}.db", options.len()));
        let facts = open(&path, options).describe().unwrap();
        let all: Vec<String> = facts
            .durability_settings
            .iter()
            .chain(&facts.settings)
            .map(|setting| format!("{}={}", setting.name, setting.value))
            .collect();
        for option in options.trim_start_matches('?').split('&').filter(|option| !option.is_empty()) {
            let option = option.trim_end_matches("ms").to_owned();
            assert!(all.contains(&option), "{option} is not in {all:?}");
        }
        // On an in-memory file system nothing is synced; the driver detects that.
        if !facts.notes.iter().any(|note| note.contains("in-memory file system")) {
            assert_eq!(facts.durability, Some(class), "{options}");
        }
    }
}

#[test]
fn concurrent_writers_wait_for_each_other() {
    let driver = open(Path::new(""), "?synchronous=off");
    driver.namespace().unwrap().create(&collection()).unwrap();
    let insert = Operation::Insert { collection: collection() };
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (driver, insert) = (&driver, &insert);
            scope.spawn(move || {
                let mut session = driver.connect(&ConnectOptions::default()).unwrap();
                let [begin, insert, commit] = [&Operation::Begin, insert, &Operation::Commit]
                    .map(|operation| session.prepare(operation).unwrap());
                let mut out = Reply::new();
                for n in 0..100 {
                    session.execute(&begin, &[], &mut out).unwrap();
                    let row = [Value::Int(client * 100 + n), Value::Bytes(b"x")];
                    session.execute(&insert, &row, &mut out).unwrap();
                    session.execute(&commit, &[], &mut out).unwrap();
                }
            });
        }
    });
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    let count = session.prepare(&Operation::Count { collection: collection() }).unwrap();
    let mut out = Reply::new();
    session.execute(&count, &[], &mut out).unwrap();
    assert_eq!(out.field_int(0, 0), Some(400));
}

#[test]
fn literals_equal_their_values_in_every_file_encoding() {
    let folder = tempfile::tempdir().unwrap();
    for encoding in ["UTF-8", "UTF-16le"] {
        let path = folder.path().join(encoding);
        let file = Connection::open(&path).unwrap();
        file.execute_batch(&format!("PRAGMA encoding = '{encoding}'; CREATE TABLE theirs (id INTEGER)"))
            .unwrap();
        file.close().unwrap();
        crate::literals::check(&*open(&path, ""), true, encoding);
    }
}

#[test]
fn read_only_session_refuses_writes() {
    let folder = tempfile::tempdir().unwrap();
    // A switch of the connection is none of the session: statements that write are refused before they are executed.
    for (journal, last) in [("wal", "PRAGMA query_only"), ("delete", "PRAGMA query_only = OFF")] {
        let path = folder.path().join(journal);
        let file = Connection::open(&path).unwrap();
        let made = "CREATE TABLE theirs (id INTEGER PRIMARY KEY, n INTEGER, j TEXT);
                    INSERT INTO theirs VALUES (1, 5, '{\"a\": 1}'), (2, 6, '{}');
                    CREATE VIEW seen AS SELECT n FROM theirs;
                    CREATE TRIGGER copied INSTEAD OF INSERT ON seen BEGIN INSERT INTO theirs (n) VALUES (new.n); END;";
        file.execute_batch(made).unwrap();
        file.close().unwrap();
        let reads = [
            "SELECT n FROM theirs WHERE j GLOB '*a*'",
            "WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a WHERE x < 5) SELECT x FROM a",
            "SELECT rank() OVER (ORDER BY n DESC) FROM theirs",
            "SELECT j->>'a', json_extract(j, '$.a') FROM theirs",
            "SELECT id FROM theirs NOT INDEXED",
            "EXPLAIN DELETE FROM theirs",
            "PRAGMA table_info(theirs)",
            "VALUES (1)",
            last,
        ];
        let writes = [
            "INSERT INTO theirs VALUES (3, 7, NULL)",
            "INSERT INTO theirs VALUES (1, 7, NULL) ON CONFLICT DO UPDATE SET n = 7",
            "INSERT INTO seen VALUES (7)",
            "REPLACE INTO theirs VALUES (1, 7, NULL)",
            "UPDATE theirs SET n = 0",
            "DELETE FROM theirs",
            "WITH d AS (SELECT 1) DELETE FROM theirs",
            "CREATE TABLE made (a)",
            "CREATE TABLE made AS SELECT 1",
            "CREATE INDEX i ON theirs (n)",
            "DROP TABLE theirs",
            "ALTER TABLE theirs ADD COLUMN a",
            "VACUUM",
            "ANALYZE",
            "PRAGMA user_version = 5",
            "BEGIN IMMEDIATE",
        ];
        crate::read_only::check(
            &*open(&path, &format!("?journal_mode={journal}")),
            journal,
            &reads,
            &writes,
            &[],
        );
    }
}
