//! What a user chooses: tables, names, rows, types, objects that are left out, rows that the target refuses, sessions.
//! What arrives is read by the engines' own programs.

use crate::common::{PAGE, Place, begun, run_planned, side, wanted_all};
use kurabe_copy::casts::UserCasts;
use kurabe_copy::engines;
use kurabe_copy::event::{Event, Step, TableDone};
use kurabe_copy::issue::{Accepted, IssueKind};
use kurabe_copy::plan::Plan;
use kurabe_copy::reject::Rejects;
use kurabe_copy::run::{Copy, How};
use kurabe_copy::verify::Of;
use kurabe_copy::wanted::{Parts, Wanted};
use kurabe_core::{ErrorKind, Result};
use kurabe_testbed::testing;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a copy is done, and what it leaves.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) jobs: usize,
    pub(crate) truncate: bool,
    pub(crate) restart: bool,
    pub(crate) keep: bool,
    pub(crate) rejected: Option<Rejects>,
    /// What changes on the source between the plan and the first row.
    pub(crate) meanwhile: &'static str,
    pub(crate) stop: AtomicBool,
}

impl Done {
    pub(crate) fn by(jobs: usize) -> Self {
        Self { jobs, ..Self::default() }
    }

    pub(crate) fn copy(&self, from: &Place, to: &Place, wanted: &Wanted) -> Result<(Plan, Vec<TableDone>)> {
        self.watched(from, to, wanted, &mut |_| {})
    }

    pub(crate) fn watched(
        &self,
        from: &Place,
        to: &Place,
        wanted: &Wanted,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<(Plan, Vec<TableDone>)> {
        let meanwhile = || drop((!self.meanwhile.is_empty()).then(|| from.ask(self.meanwhile)));
        self.done(&from.url(), &to.url(), wanted, &meanwhile, events)
    }

    /// A copy between databases by these URLs.
    pub(crate) fn between(&self, from: &str, to: &str, wanted: &Wanted) -> Result<(Plan, Vec<TableDone>)> {
        self.done(from, to, wanted, &|| {}, &mut |_| {})
    }

    fn done(
        &self,
        from: &str,
        to: &str,
        wanted: &Wanted,
        meanwhile: &dyn Fn(),
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<(Plan, Vec<TableDone>)> {
        let pair = || (side(from), side(to));
        let (source, target) = pair();
        let open = |of: Of| Ok(side(if of == Of::Source { from } else { to }));
        let mut copy = Copy { open: Some(&open), ..Copy::new(source, target, &self.stop) };
        let mut more: Vec<_> = (1..self.jobs).map(|_| pair()).collect();
        let plan = copy.plan(wanted, &mut more)?;
        if let Some(error) = plan.refusal(&wanted.accepted) {
            return Err(error);
        }
        meanwhile();
        let Self { truncate, restart, keep, .. } = *self;
        let how = How { restart, truncate, keep, more, reject: self.rejected.as_ref() };
        let done = run_planned(to, &mut copy, &plan, how, events)?;
        Ok((plan, done))
    }
}

pub(crate) fn all() -> Wanted {
    wanted_all(PAGE)
}

/// The plan of a copy to SQLite.
fn planned(from: &Place, wanted: &Wanted) -> Result<Plan> {
    begun(from, &Place::sqlite(), wanted).map(|(_, plan)| plan)
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

pub(crate) fn places([from, to]: [&str; 2]) -> Option<(Place, Place)> {
    Some((Place::new(from)?, Place::new(to)?))
}

#[test]
fn tables_are_chosen_by_patterns_and_renamed_with_the_keys_that_refer_to_them() {
    let (from, to) = places(["sqlite", "sqlite"]).unwrap();
    from.ask(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, total INT); INSERT INTO orders VALUES (1, 5), (2, 50), (3, 500); \
         CREATE TABLE order_items (id INTEGER PRIMARY KEY, o INT REFERENCES orders (id)); \
         INSERT INTO order_items VALUES (1, 2), (2, 3); CREATE TABLE order_log (x); CREATE TABLE people (x)",
    );
    let wanted = Wanted {
        tables: words(&["order*"]),
        exclude: words(&["*_log"]),
        rename: vec![("orders".to_owned(), "sales".to_owned())],
        filters: vec![("orders".to_owned(), "total > 5 OR total IS NULL".to_owned())],
        ..all()
    };
    let (_, done) = Done::by(1).copy(&from, &to, &wanted).unwrap();
    assert_eq!(done.iter().map(|table| table.rows).collect::<Vec<_>>(), [2, 2]);
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    assert_eq!(to.ask(tables), "order_items\nsales");
    assert_eq!(to.ask("SELECT id FROM sales ORDER BY id"), "2\n3");
    assert_eq!(to.ask("SELECT \"table\" FROM pragma_foreign_key_list('order_items')"), "sales");
    // An item whose order is not copied.
    from.ask("INSERT INTO order_items VALUES (3, 1)");
    let (_, to) = places(["sqlite", "sqlite"]).unwrap();
    let (plan, _) = Done::by(1).copy(&from, &to, &wanted).unwrap();
    assert!(crate::common::lists(&plan, "foreign-key", "order_items. 1 rows refer"), "{:?}", plan.issues);
    for wrong in ["ordres", "x*"] {
        let wanted = Wanted { tables: words(&[wrong]), ..all() };
        let error = Done::by(1).copy(&from, &to, &wanted).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}

#[test]
fn objects_are_left_out_by_name_and_refused_ones_do_not_stop_the_others() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2'; \
         CREATE TABLE p (id int PRIMARY KEY, n int); CREATE INDEX by_twice ON p (twice(n)); CREATE INDEX by_n ON p (n); \
         CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p (id)); CREATE INDEX by_p ON c (p); \
         CREATE VIEW big AS SELECT id FROM p WHERE n > 5; COMMENT ON COLUMN p.n IS 'it''s a number'; \
         CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
         CREATE TRIGGER note BEFORE INSERT ON c FOR EACH ROW EXECUTE FUNCTION noted(); GRANT SELECT ON p TO PUBLIC; \
         INSERT INTO p SELECT g, g FROM generate_series(1, 200) g; INSERT INTO c SELECT g, g FROM generate_series(1, 200) g",
    );
    // The function of the index is not on the target, which says so before the first row.
    let error = Done::by(1).copy(&from, &to, &all()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("nothing was copied") && text.contains("p.by_twice"), "{text}");
    assert!(text.contains("--leave-out p.by_twice"), "{text}");
    assert_eq!(to.ask("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"), "0");
    // One that is there no longer when the rows are.
    to.ask("CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2'");
    let mut is_there = true;
    let mut drop = |event: Event<'_>| {
        if is_there && matches!(event, Event::Progress { .. }) {
            to.ask("DROP FUNCTION twice(int)");
            is_there = false;
        }
    };
    let error = Done::by(1).watched(&from, &to, &all(), &mut drop).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("all rows were copied and verified") && text.contains("p.by_twice"), "{text}");
    let indexes = "SELECT count(*) FROM pg_indexes WHERE indexname IN ('by_n', 'by_p')";
    assert_eq!(to.ask(indexes), "2");
    assert_eq!(to.ask("SELECT count(*) FROM pg_constraint WHERE contype = 'f'"), "1");
    let wanted = Wanted { leave_out: words(&["p.by_twice"]), ..all() };
    let (plan, done) = Done::by(1).copy(&from, &to, &wanted).unwrap();
    assert_eq!(done.iter().map(|table| table.copied).sum::<u64>(), 0, "the rows were there");
    let text = plan.left_text(to.engine());
    for part in [
        "-- left out: p.by_twice\nCREATE INDEX by_twice",
        "CREATE VIEW big AS  SELECT",
        "CREATE TRIGGER note BEFORE INSERT ON",
        "CREATE OR REPLACE FUNCTION noted()",
        "GRANT SELECT ON p TO PUBLIC;",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(to.ask("SELECT col_description('p'::regclass, 2)"), "it's a number");
    assert_eq!(to.ask("SELECT to_regclass('kurabe_copy') IS NULL"), "t");
    let wanted = Wanted { leave_out: words(&["c_p_fkey", "by_p", "by_twice"]), ..all() };
    let plan = planned(&from, &wanted).unwrap();
    let left: Vec<&str> = plan.left.iter().map(|left| left.object.as_str()).collect();
    assert_eq!(left, ["c.c_p_fkey", "p.by_twice", "c.by_p"]);
    assert!(
        !plan.statements().contains("c_p_fkey") && plan.statements().contains("by_n"),
        "{}",
        plan.statements()
    );
    let wanted = Wanted { leave_out: words(&["by_nothing"]), ..all() };
    let error = planned(&from, &wanted).unwrap_err();
    assert!(error.to_string().contains("nothing that would be made is named 'by_nothing'"), "{error}");
}

/// The keys of the rows in a file of those that were refused.
pub(crate) fn ids(path: &Path) -> Vec<i64> {
    let file = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["row"]["id"].as_i64();
    file.lines().filter_map(line).collect()
}

/// A process that is killed has written lines that it has not recorded, perhaps half of one.
#[test]
fn row_that_is_refused_is_once_in_the_file_of_a_copy_that_was_killed() {
    let Some((from, to)) = places(["sqlite", "postgres"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); CREATE TABLE u (id INTEGER, rowid INT, _rowid_ INT, oid INT, v TEXT); \
         WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300) \
         INSERT INTO t SELECT n, iif(n IN (7, 51, 52, 300), 'word', n) FROM n; \
         INSERT INTO u SELECT id + 1000, 1, 1, 1, v FROM t",
    );
    let mut casts = UserCasts::default();
    casts.add("text=integer").unwrap();
    let wanted = Wanted { casts, ..all() };
    let path = folder.path().join("refused");
    std::fs::write(&path, "{\"copy\": \"another\", \"table\": \"t\", \"range\": 0, \"row\": {\"id\": 0}}\n")
        .unwrap();
    for stop_at in ["t", "u", ""] {
        let done = Done { rejected: Some(Rejects::open(&path).unwrap()), ..Done::by(1) };
        let copied = done.watched(&from, &to, &wanted, &mut |event| {
            if let Event::Progress { table, step: Step::Copy, rows } = event {
                done.stop.store(table.name == stop_at && rows >= 100, Ordering::Relaxed);
            }
        });
        assert_eq!(copied.is_ok(), stop_at.is_empty());
        let text = std::fs::read_to_string(&path).unwrap();
        if !stop_at.is_empty() {
            let last = text.lines().last().unwrap().to_owned();
            std::fs::write(&path, format!("{text}{last}\n{}", &last[..30])).unwrap();
        }
    }
    assert_eq!(ids(&path), [0, 7, 51, 52, 300, 1007, 1051, 1052, 1300]);
    assert_eq!(to.ask("SELECT count(*) FROM t; SELECT count(*) FROM u"), "296\n296");
}

#[test]
fn rows_that_the_target_refuses_go_to_a_file_with_the_reason() {
    let Some((from, to)) = places(["sqlite", "postgres"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n \
         WHERE n < 300) INSERT INTO t SELECT n, CASE WHEN n IN (7, 51, 52, 300) THEN 'word' ELSE n END FROM n",
    );
    let mut casts = UserCasts::default();
    casts.add("t.v=integer").unwrap();
    let wanted = Wanted { casts, ..all() };
    let path = folder.path().join("refused");
    let done = Done { rejected: Some(Rejects::open(&path).unwrap()), ..Done::by(1) };
    let (_, tables) = done.copy(&from, &to, &wanted).unwrap();
    assert_eq!((tables[0].rows, tables[0].copied, tables[0].rejected), (296, 296, 4));
    assert_eq!(
        to.ask("SELECT count(*), sum(v), pg_typeof(min(v)) FROM t"),
        format!("296|{}|integer", 45_150 - 410)
    );
    assert_eq!(ids(&path), [7, 51, 52, 300]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("invalid input syntax"));
    to.ask("DROP TABLE t");
    let error = Done::by(1).copy(&from, &to, &wanted).unwrap_err();
    assert!(error.to_string().contains("invalid input syntax"), "{error}");
}

/// A library between a program and the system, which notes the path of each file that is synced, and its bytes.
const NOTES_SYNCS: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int synced(long call, int file) {
    long done = syscall(call, file);
    char link[64], path[4096];
    struct stat of;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path);
    int notes = open(getenv("KURABE_TEST_SYNCS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (done == 0 && length > 0 && fstat(file, &of) == 0)
        dprintf(notes, "%lld %.*s\n", (long long) of.st_size, (int) length, path);
    close(notes);
    return (int) done;
}
int fsync(int file) { return synced(SYS_fsync, file); }
int fdatasync(int file) { return synced(SYS_fdatasync, file); }
"#;

/// The system says what was synced. A file that another process reads may be in memory only.
#[test]
fn file_of_refused_rows_is_synced_before_the_copy_is_told_as_done() {
    let test = "choices::file_of_refused_rows_is_synced_before_the_copy_is_told_as_done";
    if let Some(folder) = testing::rerun_input() {
        let file = |name: &str| Path::new(&folder).join(name);
        let (from, to) = places(["sqlite", "sqlite"]).unwrap();
        from.ask(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        );
        to.ask("CREATE TABLE t (id INTEGER PRIMARY KEY, v INT CHECK (v <> 2))");
        let done = Done { rejected: Some(Rejects::open(&file("rows")).unwrap()), ..Done::by(1) };
        let wanted = Wanted { parts: Parts::Data, ..all() };
        let copied = done.watched(&from, &to, &wanted, &mut |event| {
            if let Event::Done(_) = event {
                let mut notes = std::fs::File::options().append(true).open(file("notes")).unwrap();
                notes.write_all(b"done\n").unwrap();
            }
        });
        assert_eq!(copied.unwrap().1[0].rejected, 1);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("syncs.c"), NOTES_SYNCS).unwrap();
    // It links this program, too.
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(path.join("syncs.so")).arg(path.join("syncs.c"));
    assert!(compiler.status().unwrap().success());
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.env("LD_PRELOAD", path.join("syncs.so")).env("KURABE_TEST_SYNCS", path.join("notes"));
    let output = testing::rerun(&mut again, test, path.to_str().unwrap()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let bytes = std::fs::metadata(path.join("rows")).unwrap().len();
    let notes = std::fs::read_to_string(path.join("notes")).unwrap();
    let (before, _) = notes.split_once("\ndone\n").unwrap();
    let synced = format!("{bytes} {}", path.join("rows").display());
    assert!(bytes > 0 && before.lines().any(|line| line == synced), "{synced}: {notes}");
}

/// A file of rows that were refused does not hide a row that was lost.
#[test]
fn row_that_is_lost_beside_refused_ones_is_an_error() {
    let Some((from, to)) = places(["sqlite", "postgres"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, '1'), (2, 'x'), (3, '3')",
    );
    let mut casts = UserCasts::default();
    casts.add("text=integer").unwrap();
    let rejected = Rejects::open(&folder.path().join("refused")).ok();
    let done = Done { rejected, ..Done::by(1) };
    let error = done
        .watched(&from, &to, &Wanted { casts, ..all() }, &mut |event| {
            if matches!(event, Event::Progress { step: Step::Copy, .. }) {
                to.ask("DELETE FROM t WHERE id = 3; INSERT INTO t VALUES (2, 2)");
            }
        })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
}

#[test]
fn several_sessions_copy_one_view_of_the_source_and_can_be_continued() {
    for engine in ["postgres", "mysql", "mariadb"] {
        let Some((from, to)) = places([engine, "postgres"]) else { continue };
        let numbers = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000)";
        let fill = |table: &str| {
            from.ask(&format!(
                "CREATE TABLE {table} (id bigint PRIMARY KEY, v varchar(20)); \
                 INSERT INTO {table} {numbers} SELECT n * n - 500, concat('v', n) FROM n"
            ));
        };
        ["a", "b"].into_iter().for_each(fill);
        // No session sees it.
        let meanwhile = "INSERT INTO a VALUES (-5000, 'new'); DELETE FROM b WHERE id = 400";
        let first = Done { meanwhile, ..Done::by(3) };
        let stopped = first.watched(&from, &to, &all(), &mut |event| {
            if matches!(event, Event::Progress { step: Step::Copy, .. }) {
                first.stop.store(true, Ordering::Relaxed);
            }
        });
        assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted, "{engine}");
        from.ask("DELETE FROM a WHERE id = -5000; INSERT INTO b VALUES (400, 'v30')");
        let (_, done) =
            Done::by(2).copy(&from, &to, &all()).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert!(
            done.iter().map(|table| table.copied).sum::<u64>() < 2_000,
            "{engine}: the first ranges were kept"
        );
        for table in ["a", "b"] {
            let sum = format!("SELECT count(*), sum(id), sum(length(v)) FROM {table}");
            assert_eq!(to.ask(&sum), from.ask(&sum).replace('\t', "|"), "{engine} {table}");
        }
    }
    let (from, to) = places(["sqlite", "sqlite"]).unwrap();
    from.ask("CREATE TABLE t (x)");
    let error = Done::by(2).copy(&from, &to, &all()).unwrap_err();
    assert!(error.to_string().contains("use --jobs 1"), "{error}");
}

/// Its servers give rows in the order of their places, which is that of no key here: in binary, as text, and for a file of refused rows.
#[test]
fn copy_between_servers_of_postgres_goes_on_after_the_place_of_its_last_row() {
    for (jobs, rejects) in [(1, false), (2, false), (1, true)] {
        let Some((from, to)) = places(["postgres", "postgres"]) else { return };
        // With these, several processes read a table unless they are kept from it.
        from.ask(
            "ALTER DATABASE kurabe SET parallel_setup_cost = 0; ALTER DATABASE kurabe SET parallel_tuple_cost = 0; \
             ALTER DATABASE kurabe SET min_parallel_table_scan_size = 0; ALTER DATABASE kurabe SET parallel_leader_participation = off",
        );
        let tables =
            ["a (k uuid PRIMARY KEY, n int)", "b (k int PRIMARY KEY, n int)", "c (k interval, n int)"];
        let keys = ["md5(n::text)::uuid", "n * 7919 % 2003", "n * interval '1 hour'"];
        for (table, key) in tables.iter().zip(keys) {
            let name = &table[..1];
            from.ask(&format!(
                "CREATE TABLE {table}; INSERT INTO {name} SELECT {key}, n FROM generate_series(1, 2000) n; \
                 DELETE FROM {name} WHERE n % 9 = 4; INSERT INTO {name} SELECT {key}, n FROM generate_series(2001, 2002) n"
            ));
        }
        let folder = tempfile::tempdir().unwrap();
        let reject = || rejects.then(|| Rejects::open(&folder.path().join("refused")).unwrap());
        for (table, rows) in [("a", 300), ("b", 700), ("c", 1_200)] {
            let done = Done { rejected: reject(), ..Done::by(jobs) };
            let stopped = done.watched(&from, &to, &all(), &mut |event| {
                if let Event::Progress { table: of, step: Step::Copy, rows: copied } = event {
                    done.stop.fetch_or(of.name == table && copied >= rows, Ordering::Relaxed);
                }
            });
            assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted, "{table} {jobs} {rejects}");
        }
        let done = Done { rejected: reject(), ..Done::by(jobs) };
        let (_, tables) = done.copy(&from, &to, &all()).unwrap();
        let copied: u64 = tables.iter().map(|table| table.copied).sum();
        assert!(copied < 1_000, "{copied} rows {jobs} {rejects}");
        for table in ["a", "b", "c"] {
            let order =
                |by: &str| format!("SELECT md5(string_agg(t::text, ',' ORDER BY {by})) FROM {table} t");
            assert_eq!(to.ask(&order("n")), from.ask(&order("n")), "{table} {jobs} {rejects}");
            if jobs == 1 {
                assert_eq!(to.ask(&order("ctid")), from.ask(&order("ctid")), "{table} {rejects}");
            }
        }
    }
}

#[test]
fn rows_go_into_tables_that_exist_and_only_own_ones_are_emptied() {
    for engine in ["sqlite", "postgres", "mysql", "mariadb"] {
        let Some((from, to)) = places(["sqlite", engine]) else { continue };
        from.ask(
            "CREATE TABLE p (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO p VALUES (1, 'a'), (2, 'b'); \
             CREATE TABLE c (id INTEGER PRIMARY KEY, p INT REFERENCES p (id)); INSERT INTO c VALUES (1, 2), (2, NULL)",
        );
        let wanted = |parts| Wanted { parts, ..all() };
        Done::by(1)
            .copy(&from, &to, &wanted(Parts::Schema))
            .unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!(to.ask("SELECT count(*) FROM p"), "0");
        let data = wanted(Parts::Data);
        Done::by(1).copy(&from, &to, &data).unwrap_or_else(|error| panic!("{engine}: {error}"));
        from.ask("INSERT INTO p VALUES (3, 'c')");
        let error = Done::by(1).copy(&from, &to, &data).unwrap_err();
        assert!(error.to_string().contains("--truncate-target"), "{engine}: {error}");
        let again = Done { truncate: true, ..Done::by(1) };
        let (_, done) = again.copy(&from, &to, &data).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!(done.iter().map(|table| table.copied).sum::<u64>(), 5, "{engine}");
        assert_eq!(to.ask("SELECT count(*), max(v) FROM p").replace('\t', "|"), "3|c", "{engine}");
        // A table of somebody else.
        to.ask("CREATE TABLE other (id integer); INSERT INTO other VALUES (9)");
        from.ask("CREATE TABLE other (id integer)");
        let error = again.copy(&from, &to, &data).unwrap_err();
        assert!(error.to_string().contains("'kurabe copy' did not make it"), "{engine}: {error}");
        assert_eq!(to.ask("SELECT id FROM other"), "9");
    }
}

#[test]
fn values_that_the_target_cannot_hold_become_what_was_chosen() {
    let Some((from, to)) = places(["mariadb", "postgres"]) else { return };
    from.ask(
        "SET sql_mode = ''; CREATE TABLE t (id int PRIMARY KEY, d date NOT NULL, b tinyint(1), v varchar(9)); \
         INSERT INTO t VALUES (1, '0000-00-00', 1, concat('a', char(0), 'b')), (2, '2024-02-29', 0, 'c')",
    );
    let mut casts = UserCasts::default();
    casts.add("tinyint(1)=boolean").unwrap();
    let accepted = Accepted::parse(["zero-date=0001-01-01", "nul-character=?", "collation"]).unwrap();
    let wanted = Wanted { casts, accepted, page: PAGE, ..Wanted::default() };
    Done::by(1).copy(&from, &to, &wanted).unwrap();
    assert_eq!(to.ask("SELECT * FROM t ORDER BY id"), "1|0001-01-01|t|a?b\n2|2024-02-29|f|c");
    assert_eq!(
        to.ask("SELECT attnotnull FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'd'"),
        "t"
    );
    // A boolean is not any number.
    from.ask("UPDATE t SET b = 2 WHERE id = 2");
    to.ask("DROP TABLE t");
    assert_eq!(Done::by(1).copy(&from, &to, &wanted).unwrap_err().kind(), ErrorKind::Mismatch);
}

#[test]
fn other_databases_are_refused_by_name_with_what_can_be_done() {
    for (scheme, name) in [("mongodb", "MongoDB"), ("couchdb", "CouchDB")] {
        let error = engines::of_scheme(scheme).err().unwrap().to_string();
        assert!(error.contains(name) && error.contains("JSON column"), "{error}");
    }
    assert!(IssueKind::ALL.iter().any(|kind| kind.is_only_listed()));
}

/// Names are not ours because they begin as ours do.
#[test]
fn users_tables_are_copied_whatever_their_names_and_ours_are_listed() {
    for (from, to) in
        [("mysql", "sqlite"), ("mariadb", "postgres"), ("postgres", "mysql"), ("sqlite", "mariadb")]
    {
        let Some((from, to)) = places([from, to]) else { continue };
        from.ask(
            "CREATE TABLE kurabe_orders (id INTEGER NOT NULL PRIMARY KEY); INSERT INTO kurabe_orders VALUES (1); \
             CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY); CREATE VIEW kurabe_view AS SELECT id FROM t",
        );
        // Ours, as a copy into this database left them.
        let origin = Place::sqlite();
        origin.ask("CREATE TABLE other (id INTEGER NOT NULL PRIMARY KEY)");
        Done { keep: true, ..Done::default() }.copy(&origin, &from, &all()).unwrap();
        let (plan, _) = Done::default().copy(&from, &to, &all()).unwrap();
        let mut names: Vec<&str> = plan.tables.iter().map(|table| table.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["kurabe_orders", "other", "t"]);
        let left: Vec<&str> = plan.left.iter().map(|left| left.object.as_str()).collect();
        assert_eq!(left, ["kurabe_copy", "kurabe_marker"]);
        assert!(crate::common::lists(&plan, "view", "kurabe_view"), "{:?}", plan.issues);
        assert_eq!(to.ask("SELECT id FROM kurabe_orders"), "1");
    }
    // A name that the copy's own record has on the target.
    let (from, to) = places(["sqlite", "sqlite"]).unwrap();
    from.ask("CREATE TABLE kurabe_copy (id INTEGER PRIMARY KEY); INSERT INTO kurabe_copy VALUES (5)");
    let error = Done::default().copy(&from, &to, &all()).unwrap_err();
    assert!(error.to_string().contains("kurabe_copy") && error.to_string().contains("--rename"), "{error}");
    let renamed = Wanted { rename: vec![("kurabe_copy".to_owned(), "c".to_owned())], ..all() };
    Done::default().copy(&from, &to, &renamed).unwrap();
    assert_eq!(to.ask("SELECT id FROM c"), "5");
}

/// An index answers the condition, so that the rows come in another order than that of their places.
#[test]
fn copy_of_some_rows_goes_on_after_its_last_row_whatever_answers_the_condition() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "ALTER DATABASE kurabe SET enable_seqscan = off; ALTER DATABASE kurabe SET enable_bitmapscan = off; \
         CREATE TABLE f (k int PRIMARY KEY, w int); INSERT INTO f SELECT n, n * 7919 % 20011 FROM generate_series(1, 20000) n; \
         CREATE INDEX ON f (w); ANALYZE f",
    );
    let some = Wanted { filters: vec![("f".to_owned(), "w < 2000".to_owned())], ..all() };
    let done = Done::by(1);
    let stopped = done.watched(&from, &to, &some, &mut |event| {
        if let Event::Progress { step: Step::Copy, rows, .. } = event {
            done.stop.fetch_or(rows >= 300, Ordering::Relaxed);
        }
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
    let (_, tables) = Done::by(1).copy(&from, &to, &some).unwrap();
    assert!(tables[0].copied < 1_900, "{}", tables[0].copied);
    let sum = "SELECT count(*) || md5(string_agg(f::text, ',' ORDER BY k)) FROM f";
    assert_eq!(to.ask(sum), from.ask(&format!("{sum} WHERE w < 2000")));
}
