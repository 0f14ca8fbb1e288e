//! What a copy must not do to a target, or say of it: remove tables of others, call verified what was not compared, give numbers
//! again, change what stands beside its rows. What is there is read by the engines' own programs.

use crate::choices::{Done, all, places};
use crate::common::Place;
use kurabe_copy::event::{Event, TableDone};
use kurabe_copy::plan::Plan;
use kurabe_copy::wanted::{Parts, Wanted};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;

const TARGETS: [&str; 4] = ["sqlite", "postgres", "mysql", "mariadb"];

fn of(parts: Parts) -> Wanted {
    Wanted { parts, ..all() }
}

fn copy(from: &Place, to: &Place, wanted: &Wanted) -> Result<(Plan, Vec<TableDone>)> {
    Done::default().copy(from, to, wanted)
}

/// A copy that is stopped after its first page.
pub(crate) fn stopped(from: &Place, to: &Place, wanted: &Wanted) {
    let done = Done::default();
    let mut stop = |event: Event<'_>| {
        if matches!(event, Event::Progress { .. }) {
            done.stop.store(true, Ordering::Relaxed);
        }
    };
    let error = done.watched(from, to, wanted, &mut stop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
}

/// One that begins again.
fn again(from: &Place, to: &Place, wanted: &Wanted) -> Result<(Plan, Vec<TableDone>)> {
    Done { restart: true, ..Done::default() }.copy(from, to, wanted)
}

/// One whose record stays.
fn kept(from: &Place, to: &Place) {
    Done { keep: true, ..Done::default() }.copy(from, to, &all()).unwrap();
}

/// The rows alone, into tables that are emptied before.
fn filled(from: &Place, to: &Place) -> Result<(Plan, Vec<TableDone>)> {
    Done { truncate: true, ..Done::default() }.copy(from, to, &of(Parts::Data))
}

/// The error of a copy that would have harmed something.
fn refused(done: Result<(Plan, Vec<TableDone>)>, words: &str) -> Error {
    let error = done.map(|(plan, _)| plan.tables.len()).unwrap_err();
    assert!(error.kind() == ErrorKind::NotOurs && error.to_string().contains(words), "{words}: {error}");
    error
}

/// A source with 200 rows.
fn numbers() -> Place {
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, v INTEGER); WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL \
         SELECT n + 1 FROM n WHERE n < 200) INSERT INTO t SELECT n, n FROM n",
    );
    from
}

#[test]
fn table_that_took_the_place_of_one_of_an_unfinished_copy_stays() {
    let from = numbers();
    for engine in TARGETS {
        let Some((_, to)) = places(["sqlite", engine]) else { continue };
        stopped(&from, &to, &all());
        to.ask("DROP TABLE t; CREATE TABLE t (mine INTEGER); INSERT INTO t VALUES (7)");
        refused(again(&from, &to, &all()), "it is not the table that the copy made");
        assert_eq!(to.ask("SELECT mine FROM t"), "7", "{engine}");
        // With the same columns and other rows.
        to.ask("DROP TABLE t; CREATE TABLE t (id INTEGER, v INTEGER); INSERT INTO t VALUES (7, 7)");
        // PostgreSQL has numbers of its own for tables.
        let why = if engine == "postgres" { "not the table that the copy made" } else { "and it has 1" };
        refused(again(&from, &to, &all()), why);
        assert_eq!(to.ask("SELECT id FROM t"), "7", "{engine}");
        to.ask("DROP TABLE t");
        again(&from, &to, &all()).unwrap();
        assert_eq!(to.ask("SELECT COUNT(*) FROM t"), "200", "{engine}");
    }
}

#[test]
fn table_that_the_user_makes_after_the_server_refused_the_copys_stays() {
    let from = numbers();
    let Some((_, to)) = places(["sqlite", "postgres"]) else { return };
    // A table has a type of its name.
    to.ask("CREATE TYPE t AS ENUM ('a')");
    let error = copy(&from, &to, &all()).unwrap_err();
    assert!(error.kind() == ErrorKind::Server && error.to_string().contains("already exists"), "{error}");
    to.ask("DROP TYPE t; CREATE TABLE t (id int PRIMARY KEY, v int)");
    refused(copy(&from, &to, &all()), "exists, and the copy did not make it");
    refused(again(&from, &to, &all()), "exists, and the copy did not make it");
    to.ask("DROP TABLE t");
    copy(&from, &to, &all()).unwrap();
}

/// Where tables are not made in a transaction, foreign keys that are tried on empty tables refer to these.
#[test]
fn copy_that_was_stopped_while_its_foreign_keys_were_tried_is_continued() {
    for (engine, number) in [("mysql", 0), ("mariadb", 1)] {
        let (Some(from), Some(to)) = (Place::new("postgres"), Place::new(engine)) else { return };
        from.ask(
            "CREATE TABLE a (id int PRIMARY KEY, b int); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a); \
             ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b; INSERT INTO a VALUES (1); INSERT INTO b VALUES (2, 1)",
        );
        for child in 0..30 {
            from.ask(&format!(
                "CREATE TABLE c{child} (id int PRIMARY KEY, a int REFERENCES a, b int REFERENCES b)"
            ));
        }
        let done = Done::default();
        let keys = "SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema = 'kurabe'";
        let stopped = std::thread::scope(|scope| {
            let watched = scope.spawn(|| {
                while to.ask(keys) == "0" {}
                done.stop.store(true, Ordering::Relaxed);
            });
            let stopped = done.copy(&from, &to, &of(Parts::All));
            watched.join().unwrap();
            stopped
        });
        assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
        assert_ne!(to.ask(keys), "0", "{engine}: the trial had ended");
        // Removed, or made again.
        if number == 0 {
            to.ask("CREATE TABLE own (id int, FOREIGN KEY (id) REFERENCES a (id))");
            refused(again(&from, &to, &of(Parts::All)), "own refers to it");
            refused(copy(&from, &to, &of(Parts::All)), "own refers to it");
            to.ask("DROP TABLE own");
            copy(&from, &to, &of(Parts::All)).unwrap();
        } else {
            again(&from, &to, &of(Parts::All)).unwrap();
        }
        assert_eq!(to.ask("SELECT a.b, b.a, (SELECT COUNT(*) FROM c29) FROM a, b"), "NULL\t1\t0");
    }
}

#[test]
fn copy_of_rows_alone_never_removes_the_table() {
    let from = numbers();
    for engine in TARGETS {
        let Some((_, to)) = places(["sqlite", engine]) else { continue };
        to.ask("CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, v INTEGER, mine INTEGER)");
        stopped(&from, &to, &of(Parts::Data));
        refused(copy(&from, &to, &all()), "it copies rows only");
        refused(again(&from, &to, &all()), "it copies rows only");
        refused(again(&from, &to, &of(Parts::Schema)), "it copies rows only");
        copy(&from, &to, &of(Parts::Data)).unwrap();
        refused(copy(&from, &to, &all()), "exists, and the copy did not make it");
        to.ask("DELETE FROM t");
        to.ask("INSERT INTO t VALUES (1000, 1, 1)");
        refused(copy(&from, &to, &of(Parts::Data)), "has 1 rows");
        to.ask("DELETE FROM t");
        stopped(&from, &to, &of(Parts::Data));
        to.ask("INSERT INTO t VALUES (1000, 1, 1)");
        refused(again(&from, &to, &of(Parts::Data)), "the copy inserted");
        to.ask("DELETE FROM t WHERE id = 1000");
        copy(&from, &to, &of(Parts::Data)).unwrap();
        assert_eq!(to.ask("SELECT COUNT(*) FROM t"), "200", "{engine}");
    }
}

#[test]
fn unfinished_copy_is_not_ended_as_one_of_another_kind() {
    let from = numbers();
    let (_, to) = places(["sqlite", "sqlite"]).unwrap();
    stopped(&from, &to, &all());
    refused(copy(&from, &to, &of(Parts::Schema)), "it copies tables and rows");
    refused(copy(&from, &to, &of(Parts::Data)), "it copies tables and rows");
    copy(&from, &to, &all()).unwrap();
}

#[test]
fn emptying_leaves_what_belongs_to_others() {
    let from = numbers();
    for engine in TARGETS {
        let Some((_, to)) = places(["sqlite", engine]) else { continue };
        kept(&from, &to);
        filled(&from, &to).unwrap();
        to.ask("CREATE TABLE mine (x INTEGER NOT NULL PRIMARY KEY, p BIGINT, FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE)");
        to.ask("INSERT INTO mine VALUES (1, 1)");
        refused(filled(&from, &to), "mine refers to them");
        assert_eq!(to.ask("SELECT COUNT(*) FROM mine"), "1", "{engine}");
        to.ask("DROP TABLE mine; DROP TABLE t; CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, v INTEGER, mine INTEGER)");
        to.ask("INSERT INTO t VALUES (1, 1, 1)");
        refused(filled(&from, &to), "'kurabe copy' did not make it");
        assert_eq!(to.ask("SELECT COUNT(*) FROM t"), "1", "{engine}");
    }
}

#[test]
fn emptying_and_beginning_again_leave_rows_of_other_schemas_and_of_tables_that_inherit() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    let tables = "CREATE TABLE a (id int PRIMARY KEY, v int); CREATE TABLE e (v int);";
    from.ask(&format!(
        "{tables} INSERT INTO a VALUES (1, 1), (2, 2); INSERT INTO e SELECT generate_series(1, 200)"
    ));
    to.ask(tables);
    let elsewhere = "CREATE SCHEMA o; CREATE TABLE o.x (p int REFERENCES public.a ON DELETE CASCADE)";
    stopped(&from, &to, &Wanted { tables: vec!["a".to_owned()], ..of(Parts::Data) });
    to.ask(&format!("{elsewhere}; INSERT INTO o.x VALUES (1)"));
    refused(again(&from, &to, &of(Parts::Data)), "o.x refers to it");
    assert_eq!(to.ask("SELECT count(*) FROM o.x"), "1");
    let Some((_, to)) = places(["sqlite", "postgres"]) else { return };
    kept(&from, &to);
    to.ask(&format!("{elsewhere}; INSERT INTO o.x VALUES (1)"));
    refused(filled(&from, &to), "o.x refers to them");
    to.ask("DROP TABLE o.x; CREATE TABLE o.h () INHERITS (e); INSERT INTO o.h VALUES (7)");
    refused(filled(&from, &to), "o.h refers to them");
    assert_eq!(to.ask("SELECT count(*) FROM o.h"), "1");
    // Another table with the name and the columns.
    to.ask("DROP TABLE o.h; DROP TABLE e; CREATE TABLE e (v int); INSERT INTO e VALUES (70)");
    refused(filled(&from, &to), "'kurabe copy' did not make it");
    assert_eq!(to.ask("SELECT v FROM e"), "70");
}

#[test]
fn emptying_leaves_parents_of_rows_in_other_databases() {
    let from = numbers();
    for engine in ["mysql", "mariadb"] {
        let Some((_, to)) = places(["sqlite", engine]) else { continue };
        kept(&from, &to);
        to.ask("CREATE DATABASE o; CREATE TABLE o.x (p BIGINT, FOREIGN KEY (p) REFERENCES kurabe.t (id)); INSERT INTO o.x VALUES (1)");
        refused(filled(&from, &to), "o.x refers to them");
        assert_eq!(to.ask("SELECT COUNT(*) FROM t"), "200", "{engine}");
        to.ask("DROP DATABASE o");
    }
}

#[test]
fn default_of_bytes_is_carried_or_listed() {
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask("CREATE TABLE t (id int PRIMARY KEY, b varbinary(10) DEFAULT x'00ff')");
        let (plan, _) = copy(&from, &to, &all()).unwrap();
        let insert = "INSERT INTO t (id) VALUES (1); SELECT HEX(b) FROM t";
        assert_eq!(from.ask(insert), "00FF");
        let found = to.ask(insert);
        assert!(
            found == "00FF" || found == "NULL" && crate::common::lists(&plan, "default", "t.b"),
            "{engine}: {found}"
        );
    }
}

#[test]
fn default_that_would_mean_another_thing_on_the_target_is_listed() {
    let Some((from, to)) = places(["mariadb", "mariadb"]) else { return };
    from.ask(
        "CREATE SEQUENCE sq START WITH 100; CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT nextval(sq), KEY k (n DESC))",
    );
    let (plan, _) = copy(&from, &to, &all()).unwrap();
    // The rest of the server's own text of the table is not made either.
    crate::common::assert_lists(&plan, &[("default", "t.n nextval"), ("index-option", "t.k DESC")]);
    to.ask("INSERT INTO t (id) VALUES (1)");
    assert_eq!(from.ask("SELECT nextval(sq)"), "100");
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask("CREATE COLLATION nd (provider = icu, locale = 'und', deterministic = false); CREATE TABLE t (id int PRIMARY KEY, v text COLLATE nd)");
    let (plan, _) = copy(&from, &to, &all()).unwrap();
    assert!(crate::common::lists(&plan, "collation", "t.v nd"), "{:?}", plan.issues);
    to.ask("DROP TABLE t");
    // One of the server's own, which is not the same in all databases.
    to.ask("DROP COLLATION pg_catalog.\"de-x-icu\"");
    for (made, lacks) in [
        ("DOMAIN x AS text COLLATE nd", "public.nd"),
        ("TYPE x AS (a text COLLATE public.nd)", "public.nd"),
        ("TYPE x AS RANGE (SUBTYPE = text, COLLATION = \"de-x-icu\")", "de-x-icu"),
    ] {
        from.ask(&format!("CREATE {made}"));
        let (plan, _) = copy(&from, &to, &all()).unwrap();
        assert!(crate::common::lists(&plan, "view", &format!("x {lacks}")), "{made}: {:?}", plan.issues);
        from.ask("CREATE TABLE u (id int PRIMARY KEY, x x)");
        to.ask("DROP TABLE t");
        let error = copy(&from, &to, &all()).unwrap_err().to_string();
        assert!(
            error.contains("the target refused x,u;") && error.contains(&format!("collation \"{lacks}\"")),
            "{made}: {error}"
        );
        assert_eq!(to.ask("SELECT count(*) FROM pg_class WHERE relname = 'u'"), "0");
        from.ask("DROP TABLE u; DROP TYPE x");
    }
    let Some((from, to)) = places(["postgres", "mysql"]) else { return };
    from.ask(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz DEFAULT now(), local timestamp DEFAULT now())",
    );
    let (plan, _) = copy(&from, &to, &all()).unwrap();
    assert!(crate::common::lists(&plan, "default", "t.at UTC"), "{:?}", plan.issues);
    assert!(!crate::common::lists(&plan, "default", "t.local"), "{:?}", plan.issues);
}

#[test]
fn rows_without_parents_are_found_where_the_server_does_not_look() {
    for engine in TARGETS {
        let Some((from, to)) = places(["sqlite", engine]) else { continue };
        from.ask("CREATE TABLE c (x INTEGER NOT NULL PRIMARY KEY, p INTEGER); INSERT INTO c VALUES (1, 99), (2, NULL)");
        to.ask("CREATE TABLE par (id INTEGER NOT NULL PRIMARY KEY)");
        to.ask(
            "CREATE TABLE c (x INTEGER NOT NULL PRIMARY KEY, p INTEGER, FOREIGN KEY (p) REFERENCES par (id))",
        );
        let error = copy(&from, &to, &of(Parts::Data)).unwrap_err();
        let found = error.kind() == ErrorKind::Mismatch
            && error.to_string().contains("1 rows refer to no row of par");
        assert!(engine == "postgres" || found, "{engine}: {error}");
        to.ask("INSERT INTO par VALUES (99)");
        copy(&from, &to, &of(Parts::Data)).unwrap();
        assert_eq!(to.ask("SELECT COUNT(*) FROM c"), "2", "{engine}");
    }
}

#[test]
fn row_that_a_trigger_changes_while_another_table_is_filled_is_found() {
    let Some((from, to)) = places(["sqlite", "sqlite"]) else { return };
    let tables = "CREATE TABLE a (id INTEGER NOT NULL PRIMARY KEY, v INTEGER); CREATE TABLE b (id INTEGER NOT NULL PRIMARY KEY, v INTEGER);";
    from.ask(&format!("{tables} INSERT INTO a VALUES (1, 10); INSERT INTO b VALUES (1, 20)"));
    to.ask(&format!("{tables} CREATE TRIGGER c AFTER INSERT ON b BEGIN UPDATE a SET v = -1; END"));
    let error = copy(&from, &to, &of(Parts::Data)).unwrap_err();
    assert!(error.to_string().contains("10 on the source, -1 on the target"), "{error}");
}

#[test]
fn server_goes_on_with_the_numbers_of_the_source() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE TABLE a (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v int); INSERT INTO a (id, v) VALUES (1, 1), (2, 2); \
         ALTER TABLE a ALTER id RESTART WITH 7; CREATE TABLE b (id serial PRIMARY KEY, v int); INSERT INTO b (v) VALUES (1), (2), (3); \
         DELETE FROM b WHERE id > 1; CREATE TABLE c (id serial PRIMARY KEY, v int); SELECT setval('c_id_seq', 77, false); \
         CREATE SEQUENCE s; SELECT setval('s', 5, false); CREATE TABLE d (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int)",
    );
    copy(&from, &to, &all()).unwrap();
    let next = |place: &Place| {
        ["a", "b", "c", "d"]
            .map(|table| place.ask(&format!("INSERT INTO {table} (v) VALUES (9) RETURNING id")))
            .join(",")
            + &place.ask("SELECT nextval('s')")
    };
    assert_eq!(next(&to), "7,4,77,15");
    assert_eq!(next(&from), "7,4,77,15");
    // Of another engine: never a number again.
    for engine in ["mysql", "mariadb"] {
        let Some((_, to)) = places(["sqlite", engine]) else { continue };
        copy(&from, &to, &all()).unwrap();
        for (table, expected) in [("a", "8"), ("b", "5"), ("c", "78")] {
            to.ask(&format!("INSERT INTO {table} (v) VALUES (9)"));
            assert_eq!(to.ask(&format!("SELECT MAX(id) FROM {table}")), expected, "{engine} {table}");
        }
    }
}

#[test]
fn sequence_that_the_user_may_not_read_is_listed_and_gives_no_number_again() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE TABLE a (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v int); CREATE TABLE b (id serial PRIMARY KEY, v int); \
         INSERT INTO a (v) VALUES (1), (2); INSERT INTO b (v) VALUES (1), (2); \
         CREATE ROLE reader LOGIN PASSWORD 'a'; GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    );
    let url = from.url_of("reader:a");
    assert_ne!(url, from.url());
    let (plan, _) = Done::default().between(&url, &to.url(), &all()).unwrap();
    for column in ["a.id", "b.id"] {
        assert!(crate::common::lists(&plan, "identity", column), "{:?}", plan.issues);
    }
    for table in ["a", "b"] {
        assert_eq!(to.ask(&format!("INSERT INTO {table} (v) VALUES (9) RETURNING id")), "3");
    }
}

#[test]
fn numbers_end_where_those_of_the_source_end() {
    for (from, to) in [("mysql", "postgres"), ("postgres", "postgres"), ("postgres", "mysql")] {
        let Some((from, to)) = places([from, to]) else { continue };
        let identity = if from.url().starts_with("postgres") {
            "GENERATED BY DEFAULT AS IDENTITY"
        } else {
            "AUTO_INCREMENT"
        };
        from.ask(&format!("CREATE TABLE t (id int {identity} PRIMARY KEY, v int)"));
        from.ask("INSERT INTO t (id, v) VALUES (2147483647, 1)");
        copy(&from, &to, &all()).unwrap();
        assert_eq!(to.ask("SELECT id FROM t"), "2147483647");
        let (inserted, _, error) = to.try_ask("INSERT INTO t (v) VALUES (1)");
        assert!(!inserted || from.url().starts_with("postgres"), "{error}");
    }
}

#[test]
fn rows_go_into_serial_and_generated_columns_that_are_there() {
    let Some((from, to)) = places(["sqlite", "postgres"]) else { return };
    from.ask("CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, v INTEGER, twice INTEGER); INSERT INTO t VALUES (1, 2, 4), (5, 3, 6)");
    to.ask("CREATE TABLE t (id serial PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) STORED)");
    copy(&from, &to, &of(Parts::Data)).unwrap();
    assert_eq!(to.ask("INSERT INTO t (v) VALUES (9) RETURNING id"), "6");
    let identity = "id int GENERATED BY DEFAULT AS IDENTITY (INCREMENT 2 MAXVALUE 7) PRIMARY KEY";
    to.ask(&format!(
        "DROP TABLE t; CREATE TABLE t ({identity}, v int, twice int GENERATED ALWAYS AS (v * 2) STORED)"
    ));
    copy(&from, &to, &of(Parts::Data)).unwrap();
    assert_eq!(to.ask("INSERT INTO t (v) VALUES (9) RETURNING id"), "6");
    // One that the target computes otherwise.
    to.ask("DELETE FROM t");
    from.ask("UPDATE t SET twice = 5 WHERE id = 1");
    let error = copy(&from, &to, &of(Parts::Data)).unwrap_err();
    assert!(error.to_string().contains("column twice: 5 on the source, 4 on the target"), "{error}");
}

#[test]
fn settings_of_the_targets_database_do_not_change_what_is_made() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    to.ask(
        "ALTER DATABASE kurabe SET standard_conforming_strings = off; ALTER DATABASE kurabe SET array_nulls = off; \
         ALTER DATABASE kurabe SET transform_null_equals = on",
    );
    from.ask(
        "CREATE TABLE t (id int PRIMARY KEY, p text DEFAULT 'C:\\new\\tmp' CHECK (p !~ '^\\d+$'), a text[] DEFAULT '{NULL}', \
         n int CHECK (n = NULL)); CREATE INDEX ix ON t (id) WHERE p <> '\\n'; INSERT INTO t (id) VALUES (1)",
    );
    copy(&from, &to, &all()).unwrap();
    let text = "SET standard_conforming_strings = on; SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1; \
                SELECT pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1; SELECT pg_get_indexdef('ix'::regclass)";
    assert_eq!(to.ask(text), from.ask(text));
}

#[test]
fn copy_by_a_key_of_many_digits_is_continued_after_its_last_row() {
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask("CREATE TABLE t (id decimal(65,0) PRIMARY KEY)");
        let key = |n: u32| format!("({n:03}{})", "7".repeat(56));
        let rows: Vec<String> = (1..=200).map(key).collect();
        from.ask(&format!("INSERT INTO t VALUES {}", rows.join(",")));
        stopped(&from, &to, &all());
        copy(&from, &to, &all()).unwrap();
        assert_eq!(to.ask("SELECT COUNT(*) FROM t"), "200");
    }
}

/// Whoever makes a table anew, with the same name and columns, keeps its rows.
#[test]
fn emptying_leaves_a_table_that_was_made_anew() {
    let from = numbers();
    for engine in TARGETS {
        let Some((_, to)) = places(["sqlite", engine]) else { continue };
        copy(&from, &to, &of(Parts::Schema)).unwrap();
        filled(&from, &to).unwrap();
        filled(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        to.ask("DROP TABLE t");
        to.ask("CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, v INTEGER)");
        to.ask("INSERT INTO t VALUES (77, 7)");
        refused(filled(&from, &to), "'kurabe copy' did not make it");
        assert_eq!(to.ask("SELECT COUNT(*) FROM t").trim(), "1", "{engine}");
    }
}

#[test]
fn database_is_not_copied_onto_itself_by_another_name() {
    let is_itself = |from: &str, to: &str| {
        let truncate = Done { truncate: true, ..Done::default() };
        let error = truncate.between(from, to, &of(Parts::Data)).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Usage && error.to_string().contains("the same database"),
            "{error}"
        );
    };
    let from = numbers();
    let Place::File(folder) = &from else { panic!("it is a file") };
    let file = folder.path().join("db");
    std::fs::hard_link(&file, folder.path().join("hard")).unwrap();
    std::os::unix::fs::symlink(&file, folder.path().join("soft")).unwrap();
    for other in ["hard", "soft", "../db"] {
        let other = other.replace("..", &format!("{}/.", folder.path().display()));
        let other =
            if other.starts_with('/') { other } else { format!("{}/{other}", folder.path().display()) };
        is_itself(&from.url(), &format!("sqlite:{other}"));
    }
    assert_eq!(from.ask("SELECT COUNT(*) FROM t"), "200");
    for engine in ["postgres", "mysql", "mariadb"] {
        let Some(place) = Place::new(engine) else { continue };
        place.ask("CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY); INSERT INTO t VALUES (1)");
        let other = place.url().replace("127.0.0.1", "localhost");
        assert_ne!(other, place.url());
        is_itself(&place.url(), &other);
        assert_eq!(place.ask("SELECT COUNT(*) FROM t"), "1", "{engine}");
        // Another database of the server, or another schema, is another place.
        let (host, options) = other.rsplit_once("/kurabe").unwrap();
        let (make, url) = match engine {
            "postgres" => ("CREATE SCHEMA o", format!("{other}?search_path=o")),
            _ => ("CREATE DATABASE o", format!("{host}/o{options}")),
        };
        place.ask(make);
        Done::default().between(&place.url(), &url, &all()).unwrap();
        assert_eq!(place.ask("SELECT COUNT(*) FROM o.t"), "1", "{engine}");
    }
}

/// A table without transactions keeps the first rows of an insert that fails: they would be refused as duplicates, or be there
/// twice.
#[test]
fn refused_row_of_table_without_transactions_is_not_searched_for() {
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = places(["sqlite", engine]) else { continue };
        from.ask(
            "CREATE TABLE m (id INTEGER PRIMARY KEY, x INTEGER); INSERT INTO m VALUES (1, 1), (2, 2), (3, 1)",
        );
        to.ask("CREATE TABLE m (id bigint, x bigint, UNIQUE (x)) ENGINE=MyISAM");
        let wanted = Wanted { parts: Parts::Data, ..all() };
        let refused = |from: &Place, wanted: &Wanted| {
            let wanted = Wanted { rejects: true, ..wanted.clone() };
            let error = Done::default().copy(from, &to, &wanted).unwrap_err().to_string();
            assert!(error.contains("--reject: table m has no transactions"), "{engine}: {error}");
            assert_eq!(to.ask("SHOW TABLES; SELECT COUNT(*) FROM m"), "m\n0", "{engine}");
        };
        refused(&from, &wanted);
        // A table made by the source server's text.
        if let Some(own) = Place::new(engine) {
            own.ask("CREATE TABLE m (id bigint, x bigint) ENGINE=MyISAM");
            refused(&own, &all());
        }
        let error = Done::default().copy(&from, &to, &wanted).unwrap_err().to_string();
        assert!(error.contains("Duplicate") && !error.contains("row 1"), "{engine}: {error}");
        assert_eq!(to.ask("SELECT COUNT(*) FROM m"), "2", "{engine}");
    }
}

#[test]
fn table_without_transactions_does_not_change_while_others_are_read() {
    for (engine, jobs) in [("mysql", 1), ("mysql", 2), ("mariadb", 1), ("mariadb", 2)] {
        let Some((from, to)) = places([engine, "postgres"]) else { continue };
        from.ask(
            "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1), (2), (3); \
             CREATE TABLE m (id int PRIMARY KEY) ENGINE=MyISAM; INSERT INTO m VALUES (1), (2)",
        );
        let insert = "SET SESSION lock_wait_timeout = 1; INSERT INTO m VALUES (3)";
        let mut tried = 0;
        let done = Done { jobs, ..Done::default() };
        let (plan, _) = done
            .watched(&from, &to, &all(), &mut |event| {
                if matches!(event, Event::Progress { .. }) && tried == 0 {
                    tried += 1;
                    let (inserted, _, error) = from.try_ask(insert);
                    assert!(!inserted && error.contains("timeout"), "{engine}: {error}");
                }
            })
            .unwrap();
        assert!(tried > 0 && !crate::common::lists(&plan, "unlocked", ""), "{:?}", plan.issues);
        assert_eq!(to.ask("SELECT count(*) FROM m"), "2");
        from.ask(insert);
        // Nobody locks it, so that the plan says it.
        let Some(to) = Place::new("sqlite") else { continue };
        let plan = crate::common::planned(&from, &to).unwrap();
        assert!(crate::common::lists(&plan, "unlocked", "m transactions"), "{:?}", plan.issues);
        assert!(!plan.issues.iter().any(|issue| issue.object == "a"), "{:?}", plan.issues);
    }
}

/// MariaDB's catalogue has the keys and checks of those tables only that the user may change.
#[test]
fn user_that_may_only_read_copies_keys_checks_and_documents() {
    let tables = "CREATE TABLE p (id int PRIMARY KEY, k int, n int CHECK (n > 0), j json, UNIQUE (id, k)); \
        CREATE TABLE c (id int PRIMARY KEY, p int, q int, n int, r int, CONSTRAINT `f (x` FOREIGN KEY (p, q) REFERENCES p (id, k) \
          ON DELETE CASCADE ON UPDATE SET NULL, CONSTRAINT g FOREIGN KEY (r) REFERENCES p (id), CONSTRAINT `h)` CHECK (n <> 7)); \
        INSERT INTO p VALUES (1, 1, 1, '{\"a\": 1}'), (2, 2, 2, '[]'); INSERT INTO c VALUES (1, 1, 1, 1, 1), (2, 2, 2, 2, 1); \
        CREATE USER reader@'%' IDENTIFIED BY 'a'; GRANT SELECT ON kurabe.* TO reader@'%'";
    for engine in ["mysql", "mariadb"] {
        let Some(from) = Place::new(engine) else { continue };
        from.ask(tables);
        let reader = from.url_of("reader:a");
        for name in [engine, "postgres", "sqlite"] {
            let Some(to) = (if name == "sqlite" { Some(Place::sqlite()) } else { Place::new(name) }) else {
                continue;
            };
            let same = name == engine;
            let accept = if same { "" } else { "check,collation,json" };
            let (plan, _) = crate::common::copy(&reader, &to.url(), accept).unwrap();
            if !same {
                crate::common::assert_lists(&plan, &[("check", "p. n"), ("check", "c. h)")]);
            }
            let foreign_keys = if name == "sqlite" { "PRAGMA foreign_keys = 1; " } else { "" };
            let refused = |row: &str| !to.try_ask(&format!("{foreign_keys}{row}")).0;
            assert!(
                refused("INSERT INTO c VALUES (3, 1, 2, 1, 1)")
                    && refused("INSERT INTO c VALUES (3, 1, 1, 1, 9)"),
                "{engine} to {name}"
            );
            assert!(
                !same
                    || refused("INSERT INTO c VALUES (3, 1, 1, 7, 1)")
                        && refused("INSERT INTO p VALUES (3, 3, 0, '1')")
            );
            to.ask(&format!("{foreign_keys}DELETE FROM p WHERE id = 2"));
            to.ask(&format!("{foreign_keys}UPDATE p SET k = 5 WHERE id = 1"));
            assert_eq!(
                to.ask("SELECT COUNT(*), COUNT(q) FROM c").replace('\t', "|"),
                "1|0",
                "{engine} to {name}"
            );
        }
    }
}

/// Columns of a table whose collation is the database's stay so where another column's is not made.
#[test]
fn columns_keep_the_collation_of_the_database_where_another_collation_is_lost() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask("CREATE COLLATION nd (provider = icu, locale = 'und', deterministic = false); CREATE TABLE t (id int PRIMARY KEY, a text, b text COLLATE \"C\", v text COLLATE nd)");
    let (plan, _) = copy(&from, &to, &all()).unwrap();
    assert!(
        crate::common::lists(&plan, "collation", "t.v nd")
            && !crate::common::lists(&plan, "collation", "t.a")
    );
    let of = "SELECT attcollation::regcollation FROM pg_attribute WHERE attrelid = 't'::regclass AND attname IN ('a', 'b') ORDER BY attname";
    assert_eq!(to.ask(of), from.ask(of));
}

/// Such a table is not made by its own text.
#[test]
fn renamed_table_has_the_collations_of_the_source_and_lists_its_engine() {
    let renamed = || {
        let mut wanted = all();
        wanted.rename = [("t", "u"), ("v", "w")].map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec();
        wanted
    };
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask("CREATE TABLE t (id int PRIMARY KEY, a varchar(9)) ENGINE=MyISAM CHARSET latin1 COLLATE latin1_german1_ci");
        from.ask("CREATE TABLE v (id int PRIMARY KEY, a varchar(9), UNIQUE KEY h (a) USING HASH)");
        let (plan, _) = copy(&from, &to, &renamed()).unwrap();
        crate::common::assert_lists(&plan, &[("table-option", "t ENGINE=MyISAM")]);
        // MySQL does not keep the word.
        assert_eq!(crate::common::lists(&plan, "index-option", "v.h USING HASH"), engine == "mariadb");
        let of = "SELECT table_collation FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'u'";
        assert_eq!(to.ask(of), "latin1_german1_ci");
    }
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask("CREATE TABLE t (id int PRIMARY KEY, a text[] COLLATE \"C\", b text[], c int[], z bpchar); CREATE INDEX h ON t USING hash (z); CREATE TABLE v (id int PRIMARY KEY)");
    let (plan, _) = copy(&from, &to, &renamed()).unwrap();
    crate::common::assert_lists(&plan, &[("index-option", "t.h USING hash")]);
    let of = |table| {
        format!(
            "SELECT attname, atttypid::regtype, attcollation::regcollation FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY 1"
        )
    };
    assert_eq!(to.ask(&of("u")), from.ask(&of("t")));
}
