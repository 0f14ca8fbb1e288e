//! Single objects of a schema: each is made as it was, or the plan lists what is lost.

use crate::common::{Place, copied, copy_all, lists, planned, wanted_all};
use kurabe_copy::plan::{Plan, Wanted};
use kurabe_copy::rows::PageSize;
use kurabe_core::Result;
use std::sync::atomic::AtomicBool;

/// A copy of all tables, with every difference accepted but for what is said.
fn copy_with(from: &Place, to: &Place, change: impl Fn(&mut Wanted)) -> Result<Plan> {
    let mut wanted = wanted_all(PageSize::default());
    change(&mut wanted);
    copied(&from.url(), &to.url(), &wanted, &AtomicBool::new(false), &mut |_| {}).map(|(plan, _)| plan)
}

fn assert_lists(plan: &Plan, expected: &[(&str, &str)]) {
    for (kind, words) in expected {
        assert!(lists(plan, kind, words), "{kind} {words}: {:#?}", plan.issues);
    }
}

#[test]
fn foreign_key_goes_to_the_table_of_its_exact_name() {
    let folder = tempfile::tempdir().unwrap();
    let Some(from) = Place::new("postgres", folder.path()) else { return };
    let schema = "CREATE TABLE \"P\" (id int PRIMARY KEY); CREATE TABLE p (id int PRIMARY KEY); \
                  CREATE TABLE c (x int REFERENCES p (id)); INSERT INTO \"P\" VALUES (1); INSERT INTO p VALUES (2); \
                  INSERT INTO c VALUES (2)";
    from.ask(schema);
    for (engine, sql) in [
        ("postgres", "SELECT confrelid::regclass FROM pg_constraint WHERE contype = 'f'"),
        (
            "mysql",
            "SELECT referenced_table_name FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()",
        ),
    ] {
        let Some(to) = Place::new(engine, folder.path()) else { continue };
        let plan =
            copy_with(&from, &to, |wanted| wanted.rename = vec![("c".to_owned(), "cc".to_owned())]).unwrap();
        assert!(!lists(&plan, "foreign-key", ""), "{:?}", plan.issues);
        assert_eq!(to.ask(sql), "p", "{engine}");
    }
    // SQLite finds names without regard to case.
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask("CREATE TABLE Par (Id INTEGER PRIMARY KEY); CREATE TABLE kid (x INT REFERENCES PAR (ID)); INSERT INTO kid VALUES (NULL)");
    let Some(to) = Place::new("postgres", folder.path()) else { return };
    copy_with(&from, &to, |wanted| wanted.rename = vec![("Par".to_owned(), "parent".to_owned())]).unwrap();
    assert_eq!(to.ask("SELECT confrelid::regclass FROM pg_constraint WHERE contype = 'f'"), "parent");
}

#[test]
fn defaults_of_sqlite_are_what_it_stores() {
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(
        "CREATE TABLE \"a\\b\" (id INTEGER PRIMARY KEY); INSERT INTO \"a\\b\" VALUES (1); \
         CREATE TABLE t (id INTEGER PRIMARY KEY, b text DEFAULT 1e3, m text DEFAULT 007, d varchar(9) DEFAULT 1.50, \
           q text DEFAULT '007', s string DEFAULT 007, v string DEFAULT '1e3', n int DEFAULT 007, r real DEFAULT 1e3, \
           day date DEFAULT 'soon'); INSERT INTO t (id, day) VALUES (1, '2024-01-01')",
    );
    let values = "SELECT b, m, d, q, s, v, n, r FROM t ORDER BY id";
    for engine in ["postgres", "mysql", "firebird"] {
        let Some(to) = Place::new(engine, folder.path()) else { continue };
        assert_lists(&planned(&from, &to).unwrap(), &[("default", "t.day soon")]);
        copy_all(&from, &to).unwrap();
        if engine == "postgres" {
            to.ask("INSERT INTO t (id) VALUES (2)");
            assert_eq!(to.ask(values).lines().nth(1), Some("1000.0|7|1.5|007|7|1000|7|1000"));
            assert_eq!(to.ask("SELECT id FROM \"a\\b\""), "1");
        }
    }
}

#[test]
fn defaults_and_lengths_that_the_target_has_not_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(postgres), Some(mysql)) =
        (Place::new("postgres", folder.path()), Place::new("mysql", folder.path()))
    else {
        return;
    };
    postgres.ask(
        "CREATE TABLE a (id int PRIMARY KEY, t timestamp DEFAULT 'infinity', z timestamptz DEFAULT '2024-01-01 00:00:00+00', \
         b text DEFAULT true, v varchar(5000), c char(300))",
    );
    mysql.ask("CREATE TABLE m (id int PRIMARY KEY, t time DEFAULT '-01:00:00', u time DEFAULT '01:00:00')");
    for engine in ["mysql", "mariadb"] {
        let Some(to) = Place::new(engine, folder.path()) else { continue };
        let plan = planned(&postgres, &to).unwrap();
        assert_lists(
            &plan,
            &[("default", "a.t infinity"), ("text-length", "a.v 5000"), ("text-length", "a.c 300")],
        );
        assert!(!lists(&plan, "default", "a.z"), "{:?}", plan.issues);
        copy_all(&postgres, &to).unwrap();
    }
    let plan = planned(&mysql, &postgres).unwrap();
    assert_lists(&plan, &[("default", "m.t -01:00:00")]);
    assert!(!lists(&plan, "default", "m.u"), "{:?}", plan.issues);
    copy_all(&mysql, &postgres).unwrap();
    let to = Place::new("sqlite", folder.path()).unwrap();
    copy_all(&postgres, &to).unwrap();
    to.ask("INSERT INTO a (id) VALUES (1)");
    assert_eq!(to.ask("SELECT t, z, b FROM a"), "infinity|2024-01-01 00:00:00|true");
}
