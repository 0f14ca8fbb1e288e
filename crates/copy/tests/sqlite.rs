//! Copies between two files of SQLite.

use crate::common::{NEVER, Place, copy, copy_all, run, side, watched};
use kurabe_copy::event::{Event, Step};
use kurabe_core::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const COUNT: &str = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5000)";

/// The first field of the first row.
fn value(url: &str, sql: &str) -> String {
    side(url).value(sql).unwrap().unwrap_or_default()
}

/// A source with tables of all kinds, and an empty target.
fn files() -> (TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] =
        ["from.db", "to.db"].map(|name| format!("sqlite:{}", folder.path().join(name).display()));
    run(
        &from,
        &[
            "CREATE TABLE parents (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL DEFAULT 'it''s', UNIQUE (name))",
            "CREATE TABLE children (parent INT NOT NULL REFERENCES parents (id) ON DELETE CASCADE, n INT NOT NULL, \
             data BLOB, PRIMARY KEY (parent, n)) WITHOUT ROWID",
            "CREATE TABLE words (word TEXT, number REAL)",
            "CREATE INDEX by_word ON words (word, number)",
            &format!("INSERT INTO parents {COUNT} SELECT n, 'name ' || n FROM n"),
            &format!("INSERT INTO children {COUNT} SELECT n, n % 7, randomblob(n % 20) FROM n"),
            &format!("INSERT INTO words {COUNT} SELECT nullif(n % 9, 3), n / 7.0 FROM n"),
            "INSERT INTO words VALUES ('', NULL), ('東京', -0.0), (NULL, 5e-324)",
        ],
    );
    (folder, from, to)
}

#[test]
fn copy_has_the_same_schema_and_leaves_nothing_of_ours() {
    let (_folder, from, to) = files();
    let (_, done) = copy(&from, &to, "").unwrap();
    let rows: Vec<(&str, u64)> = done.iter().map(|table| (table.name.as_str(), table.rows)).collect();
    assert_eq!(rows, [("parents", 5_000), ("children", 5_000), ("words", 5_003)]);
    let names = "SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_schema WHERE name NOT LIKE \
                 'sqlite_autoindex%' ORDER BY name)";
    assert_eq!(value(&to, names), "by_word children parents words");
    assert_eq!(
        value(&to, "SELECT \"table\" || on_delete FROM pragma_foreign_key_list('children')"),
        "parentsCASCADE"
    );
    assert_eq!(
        value(&to, "SELECT dflt_value FROM pragma_table_info('parents') WHERE name = 'name'"),
        "'it''s'"
    );
    for sum in ["SELECT sum(length(data)) FROM children", "SELECT total(number) FROM words"] {
        assert_eq!(value(&from, sum), value(&to, sum));
    }
}

#[test]
fn stopped_copy_continues_after_its_last_page() {
    let (_folder, from, to) = files();
    let stop = AtomicBool::new(false);
    let mut copied = 0;
    let stopped = watched(&from, &to, "", &stop, &mut |event| {
        if let Event::Progress { table, step: Step::Copy, rows } = event
            && table.name == "children"
        {
            copied = rows;
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
    assert!(copied > 0 && copied < 5_000, "{copied}");
    let (_, done) = copy(&from, &to, "").unwrap();
    let again: Vec<(u64, u64)> = done.iter().map(|table| (table.rows, table.copied)).collect();
    assert_eq!(again[0], (5_000, 0), "the first table was complete");
    assert_eq!(again[1], (5_000, 5_000 - copied));
    assert_eq!(value(&to, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'kurabe%'"), "0");
}

#[test]
fn copy_that_is_killed_before_its_result_is_read_says_it_again() {
    let (folder, from, to) = files();
    let killed = format!("sqlite:{}", folder.path().join("killed.db").display());
    let mut told = None;
    let file = |url: &str| url.trim_start_matches("sqlite:").to_owned();
    let (_, done) = watched(&from, &to, "", &NEVER, &mut |event| {
        if let Event::Done(done) = event {
            told = Some(done.iter().map(|table| table.rows).sum::<u64>());
            // What a process that is killed at this moment leaves.
            run(&to, &[&format!("VACUUM INTO '{}'", file(&killed))]);
        }
    })
    .unwrap();
    assert_eq!(told, Some(done.iter().map(|table| table.rows).sum()));
    let (_, again) = copy(&from, &killed, "").unwrap();
    let rows: Vec<(u64, u64)> = again.iter().map(|table| (table.rows, table.copied)).collect();
    assert_eq!(rows, [(5_000, 0), (5_000, 0), (5_003, 0)]);
    assert_eq!(value(&killed, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'kurabe%'"), "0");
}

#[test]
fn row_that_changes_after_its_table_was_verified_is_found_by_the_next_process() {
    let (_folder, from, to) = files();
    let stop = AtomicBool::new(false);
    let stopped = watched(&from, &to, "", &stop, &mut |event| {
        if let Event::Table(table) = event {
            assert_eq!(table.name, "parents");
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
    run(&from, &["UPDATE parents SET name = 'new' WHERE id = 77"]);
    let error = copy(&from, &to, "").unwrap_err();
    assert!(error.to_string().contains("row 77, column name: 'new'"), "{error}");
}

#[test]
fn changed_value_is_found_with_its_row_and_column() {
    let (_folder, from, to) = files();
    let cases = [
        ("children", "UPDATE children SET data = x'00' WHERE parent = 4321", "row 4321, 2, column data"),
        // Verification counts by itself.
        (
            "children",
            "DELETE FROM children WHERE parent = 4321",
            "5,000 rows were copied, and the target's server counts 4,999; row 4321, 2 of children is not on the target",
        ),
        (
            "children",
            "INSERT INTO children VALUES (4321, 100, NULL)",
            "5,000 rows were copied, and the target's server counts 5,001; row 4321, 100 of children is on the target only",
        ),
        ("parents", "UPDATE parents SET name = 'x' WHERE id = 5000", "row 5000, column name: 'name 5000'"),
        ("words", "UPDATE words SET number = 1 WHERE rowid = 5", "of words is not on the target"),
    ];
    for (number, (table, change, part)) in cases.into_iter().enumerate() {
        let to = format!("{to}-{number}");
        let mut changed = false;
        let error = watched(&from, &to, "", &NEVER, &mut |event| {
            if let Event::Progress { table: of, step: Step::Copy, rows } = event
                && of.name == table
                && rows >= 5_000
                && !changed
            {
                run(&to, &[change]);
                changed = true;
            }
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{change}: {error}");
        assert!(error.to_string().contains(part), "{change}: {error}");
    }
}

#[test]
fn copy_of_another_source_is_not_continued() {
    let (folder, from, to) = files();
    let stop = AtomicBool::new(false);
    let mut events = |event: Event<'_>| {
        if matches!(event, Event::Table(_)) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    watched(&from, &to, "", &stop, &mut events).unwrap_err();
    let other = format!("sqlite:{}", folder.path().join("other.db").display());
    run(&other, &["CREATE TABLE parents (id INTEGER PRIMARY KEY)"]);
    let error = copy(&other, &to, "").unwrap_err();
    assert!(error.to_string().contains("is unfinished, and it is another one"), "{error}");
    run(&from, &["ALTER TABLE words ADD COLUMN more TEXT"]);
    let error = copy(&from, &to, "").unwrap_err();
    assert!(error.to_string().contains("their definitions have changed"), "{error}");
}

#[test]
fn source_that_is_opened_for_reading_is_not_changed() {
    let (folder, from, to) = files();
    let file = folder.path().join("from.db");
    // A run would set its own journal mode, which the file keeps.
    run(&format!("{from}?journal_mode=delete"), &["DELETE FROM words WHERE rowid = 1"]);
    let before = std::fs::read(&file).unwrap();
    let reader = format!("{from}?access=read");
    copy(&reader, &to, "").unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert!(side(&reader).run("DELETE FROM words").is_err());
    run(&from, &["DELETE FROM words WHERE rowid = 2"]);
    assert_ne!(std::fs::read(&file).unwrap(), before);
    let none = folder.path().join("none.db");
    let url = format!("sqlite:{}?access=read", none.display());
    assert!(crate::common::driver(&url).connect(&kurabe_core::driver::ConnectOptions::default()).is_err());
    assert!(!none.exists());
}

#[test]
fn text_that_is_not_utf8_is_carried_cast_refused_or_named() {
    use crate::choices::{Done, all};
    let from = Place::sqlite();
    from.ask("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT); INSERT INTO t VALUES (1, 'good'), (2, CAST(x'ff41' AS TEXT)), (3, 'it''s')");
    let to = Place::sqlite();
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT typeof(x), hex(x) FROM t WHERE id = 2"), "text|FF41");
    let Some(to) = Place::new("postgres") else { return };
    let error = copy_all(&from, &to).unwrap_err().to_string();
    assert!(error.contains("t.x, row 2") && error.contains("--reject"), "{error}");
    let Some(to) = Place::new("postgres") else { return };
    let mut cast = all();
    cast.casts.add("t.x=bytea").unwrap();
    Done::default().copy(&from, &to, &cast).unwrap();
    assert_eq!(to.ask("SELECT x FROM t WHERE id = 2"), "\\xff41");
    let Some(to) = Place::new("postgres") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rejected");
    let rejected = Some(kurabe_copy::reject::Rejects::open(&file).unwrap());
    Done { rejected, ..Done::default() }.copy(&from, &to, &all()).unwrap();
    assert_eq!(to.ask("SELECT string_agg(id::text, ',' ORDER BY id) FROM t"), "1,3");
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
}

#[test]
fn largest_number_of_a_key_has_no_next_one() {
    let (from, Some(to)) = (Place::sqlite(), Place::new("postgres")) else { return };
    from.ask("CREATE TABLE t (id INTEGER PRIMARY KEY, x INT); INSERT INTO t VALUES (9223372036854775807, 1), (-9223372036854775808, 2)");
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT min(id), max(id) FROM t"), "-9223372036854775808|9223372036854775807");
    let (is_there, _, error) = to.try_ask("INSERT INTO t (x) VALUES (3)");
    assert!(!is_there && error.contains("reached maximum value"), "{error}");
}
