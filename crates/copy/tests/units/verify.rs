//! [`kurabe_copy::verify`]: how values are shown, whose error is told, and the digests that servers compute. Files of SQLite have the
//! rows; the engine has a digest here, of integers.

use kurabe_copy::engines::{Engine, Sums, of_scheme};
use kurabe_copy::event::TableDone;
use kurabe_copy::issue::{Becomes, IssueKind};
use kurabe_copy::page::PageSize;
use kurabe_copy::plan::{ColumnPlan, Resume, TablePlan};
use kurabe_copy::pool::Halt;
use kurabe_copy::sql::Side;
use kurabe_copy::state::{OfTable, Phase};
use kurabe_copy::types::{Class, Kind, Mapped, UNLIMITED};
use kurabe_copy::verify::servers::{Digests, digest};
use kurabe_copy::verify::{Checks, Forms, Of, both, verify};
use kurabe_core::value::Reply;
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use crate::common::{Place, side};

fn kind(class: Class, declared: &str) -> Kind {
    Kind { class, n: UNLIMITED, s: 0, declared: declared.to_owned() }
}

pub(super) fn column(name: &str, class: Class, nullable: bool) -> ColumnPlan {
    let of = kind(class, "");
    ColumnPlan {
        name: name.to_owned(),
        mapped: Mapped { sql: String::new(), stored: of.clone(), issue: None },
        kind: of,
        nullable,
        sql: String::new(),
        exact: false,
        mend: None,
        identity: None,
        read: format!("\"{name}\""),
        rounds: false,
        has_binary: false,
        written: true,
    }
}

/// A table `t` whose first column is its key.
pub(super) fn table(columns: Vec<ColumnPlan>) -> TablePlan {
    TablePlan {
        name: "t".to_owned(),
        to: "t".to_owned(),
        filter: None,
        columns,
        from: "\"t\"".to_owned(),
        key: vec![0],
        resume: Resume::Columns(vec![0]),
        page: PageSize { rows: 10, bytes: 1 << 20 },
        rows: 0,
        create: String::new(),
        has_key: true,
        indexes: Vec::new(),
        foreign: Vec::new(),
    }
}

/// The texts of a row in the digest of PostgreSQL.
fn texts_of_row(columns: Vec<ColumnPlan>) -> Option<String> {
    let digest = digest(of_scheme("postgres").unwrap(), &table(columns), Of::Source)?;
    let (_, texts) = digest.split_once("concat_ws('|', ").unwrap();
    Some(texts.split_once("))), 1, 7)").unwrap().0.replace("pg_catalog.", "").replace('"', ""))
}

/// Otherwise two rows whose texts begin at other places would have one digest.
#[test]
fn row_of_a_digest_has_the_length_of_each_text_but_the_last() {
    let text = |name, nullable| column(name, Class::Text, nullable);
    let id = || column("id", Class::Int64, false);
    for (columns, expected) in [
        (vec![id()], "id"),
        (vec![column("n", Class::Int64, true)], "coalesce((n)::text, 'n')"),
        (vec![id(), text("a", false)], "id, a::text"),
        (vec![text("a", false), id()], "id, a::text"),
        // The length of the last one says that it is null.
        (vec![text("a", true)], "coalesce((char_length(a))::text, 'n'), a::text"),
        (
            vec![text("a", false), text("b", true), text("c", false)],
            "char_length(a), coalesce((char_length(b))::text, 'n'), a::text, b::text, c::text",
        ),
    ] {
        assert_eq!(texts_of_row(columns).as_deref(), Some(expected));
    }
}

#[test]
fn tables_whose_values_servers_write_in_different_ways_have_no_digest() {
    let of = |change: &dyn Fn(&mut ColumnPlan)| {
        let mut one = column("a", Class::Text, false);
        change(&mut one);
        texts_of_row(vec![one])
    };
    let decimal = |n, s, stored| {
        move |column: &mut ColumnPlan| {
            column.kind = Kind { n, s, ..kind(Class::Decimal, "") };
            column.mapped.stored = Kind { n, s: stored, ..kind(Class::Decimal, "") };
        }
    };
    assert_eq!(of(&decimal(10, 2, 2)).as_deref(), Some("a"));
    assert_eq!(of(&decimal(10, 2, 3)), None);
    assert_eq!(of(&decimal(UNLIMITED, 2, 2)), None);
    let text_of_decimal = |column: &mut ColumnPlan| {
        decimal(10, 2, 2)(column);
        column.mapped.stored.class = Class::Text;
    };
    assert_eq!(of(&text_of_decimal), None);
    // Spaces are taken away from those that may have some.
    let full = "CASE char_length(a) WHEN 3 THEN concat(a) ELSE a::text END";
    let character = |n| move |column: &mut ColumnPlan| column.kind = Kind { n, ..kind(Class::Char, "") };
    assert_eq!(of(&character(3)).as_deref(), Some(full));
    assert_eq!(of(&character(UNLIMITED)).as_deref(), Some("a::text"));
    // Each side by its own type.
    assert_eq!(of(&|column| column.kind.class = Class::Bool).as_deref(), Some("a::int"));
    assert_eq!(of(&|column| column.mapped.stored.class = Class::Blob), None);
    assert_eq!(of(&|column| column.kind.class = Class::Json), None);
    assert_eq!(of(&|column| column.mend = Some((IssueKind::NulCharacter, Becomes::Usual))), None);
    // Functions have at most a hundred parameters.
    let many = |count: usize| (0..count).map(|at| column(&format!("c{at}"), Class::Int64, false)).collect();
    assert!(texts_of_row(many(89)).is_some() && texts_of_row(many(90)).is_none());
    // Between servers of one kind, where another function has the digest.
    let exact = |count: usize, class| {
        let columns =
            (0..count).map(|at| ColumnPlan { exact: true, ..column(&format!("c{at}"), class, false) });
        digest(of_scheme("postgres").unwrap(), &table(columns.collect()), Of::Target)
    };
    assert!(exact(89, Class::Int64).is_some_and(|sql| sql.contains("hash") && sql.contains("\"c88\"")));
    assert!(exact(90, Class::Int64).is_none() && exact(1, Class::Native).is_none());
}

#[test]
fn text_is_shown_in_quotes_and_numbers_are_not() {
    for (scheme, texts) in [
        ("postgres", [("35", "35"), ("6162", "'ab' (2 bytes)"), ("zz", "zz"), ("3ff8000000000000", "1.5")]),
        ("sqlite", [("#35", "35"), ("t6162", "'ab' (2 bytes)"), ("bzz", "bzz"), ("1.5", "1.5")]),
    ] {
        let classes = [Class::Int64, Class::Text, Class::Blob, Class::Float64];
        let columns = classes.iter().map(|class| column("c", *class, true)).collect();
        let table = table(columns);
        let checks = Checks::new(of_scheme(scheme).unwrap(), &table, Of::Target).unwrap();
        let mut row: Vec<Option<Vec<u8>>> =
            texts.iter().map(|(text, _)| Some(text.as_bytes().to_vec())).collect();
        row.push(None);
        for (at, (_, shown)) in texts.iter().enumerate() {
            assert_eq!(checks.shown(&row, at), *shown, "{scheme}");
        }
        row[0] = None;
        assert_eq!(checks.shown(&row, 0), "null");
    }
}

#[test]
fn error_of_two_readers_is_that_of_the_one_that_was_not_interrupted() {
    let fails = |kind, what: &'static str| move || Err::<u8, _>(Error::new(kind, what));
    let error = |ours, theirs| both(fails(ours, "a"), fails(theirs, "b")).unwrap_err().to_string();
    assert_eq!(error(ErrorKind::Server, ErrorKind::Server), "a");
    assert_eq!(error(ErrorKind::Server, ErrorKind::Interrupted), "a");
    assert_eq!(error(ErrorKind::Interrupted, ErrorKind::Server), "b");
    assert_eq!(both(|| Ok(1), || Ok(2)).unwrap(), [1, 2]);
    assert_eq!(both(|| Ok(1), fails(ErrorKind::Interrupted, "b")).unwrap_err().to_string(), "b");
    assert_eq!(both(fails(ErrorKind::Interrupted, "a"), || Ok(1)).unwrap_err().to_string(), "a");
}

/// SQLite with a digest of integers, which tells apart rows and the order of their values.
fn with_digests() -> &'static Engine {
    let sums = Sums {
        row: str::to_owned,
        length: str::to_owned,
        or: |text, _| text.to_owned(),
        sum: str::to_owned,
        exact: Some(|_, x, _, row| format!("(({row}) * 31 + coalesce({x}, 7)) % 1000003")),
    };
    Box::leak(Box::new(Engine { sums: Some(sums), is_loose: false, ..*of_scheme("sqlite").unwrap() }))
}

/// Two files with the same 200 rows, and the plan of their table.
fn files() -> ([Place; 2], TablePlan) {
    let places = [Place::sqlite(), Place::sqlite()];
    for place in &places {
        place.ask(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); WITH RECURSIVE g (g) AS (SELECT 1 UNION ALL \
             SELECT g + 1 FROM g WHERE g < 200) INSERT INTO t SELECT g, g * g FROM g",
        );
    }
    let columns = ["id", "n"].map(|name| ColumnPlan { exact: true, ..column(name, Class::Int64, true) });
    (places, TablePlan { rows: 200, ..table(columns.to_vec()) })
}

fn sides(places: &[Place; 2]) -> [Side; 2] {
    places.each_ref().map(|place| Side { engine: with_digests(), ..side(&place.url()) })
}

/// What verification of a table says of which so many rows were copied and rejected, and the numbers of rows that it told.
fn verified(
    places: &[Place; 2],
    table: &TablePlan,
    [rows, rejected]: [u64; 2],
    proven: Option<(i64, u64)>,
) -> (Result<(u64, bool)>, Vec<u64>) {
    let ([mut source, mut target], stop) = (sides(places), AtomicBool::new(false));
    let now = OfTable { rows, rejected, ..OfTable::new(Phase::Copied) };
    let mut told = Vec::new();
    let done =
        verify(&mut source, &mut target, table, &now, proven, &Halt::new(&stop), &mut |rows| told.push(rows));
    (done, told)
}

#[test]
fn equal_digests_of_all_ranges_prove_a_table() {
    let (places, table) = files();
    let (done, told) = verified(&places, &table, [200, 0], None);
    assert_eq!(done.unwrap(), (200, true));
    // Of each range, the rows so far.
    assert_eq!(told, [50, 100, 150, 200]);
    // Rows below a key are known.
    let (done, told) = verified(&places, &table, [200, 0], Some((101, 100)));
    assert_eq!((done.unwrap(), told), ((200, true), vec![150, 200]));
    places[1].ask("UPDATE t SET n = 0 WHERE id = 100");
    assert_eq!(verified(&places, &table, [200, 0], Some((101, 100))).0.unwrap(), (200, true));
    for proven in [None, Some((100, 99))] {
        let error = verified(&places, &table, [200, 0], proven).0.unwrap_err().to_string();
        assert!(error.contains("row 100, column n: 10000 on the source, 0 on the target"), "{error}");
    }
    // Without a key on the target, in one range.
    places[1].ask("UPDATE t SET n = 10000 WHERE id = 100");
    let keyless = TablePlan { has_key: false, ..table.clone() };
    let (done, told) = verified(&places, &keyless, [200, 0], None);
    assert_eq!((done.unwrap(), told), ((200, true), vec![200]));
    // Only some rows of the source.
    places[1].ask("DELETE FROM t WHERE id > 120");
    let some = TablePlan { filter: Some("id <= 120".to_owned()), rows: 120, ..table.clone() };
    assert_eq!(verified(&places, &some, [120, 0], None).0.unwrap(), (120, true));
}

/// The numbers of rows that are known must be one, whatever the digests are.
#[test]
fn digests_prove_nothing_where_rows_are_missing() {
    let (places, table) = files();
    let error =
        |rows, table: &TablePlan, proven| verified(&places, table, rows, proven).0.unwrap_err().to_string();
    let text = error([199, 0], &table, None);
    assert!(text.contains("199 rows were copied, and the source's server counts 200"), "{text}");
    let text = error([200, 0], &TablePlan { rows: 199, ..table.clone() }, None);
    assert!(text.contains("200 rows were copied, and the plan counted 199"), "{text}");
    let text = error([199, 1], &table, None);
    assert!(text.contains("199 rows were copied, and the target's server counts 200"), "{text}");
    // What was known of rows below a key was wrong: the table is compared as any other.
    assert_eq!(verified(&places, &table, [200, 0], Some((101, 99))).0.unwrap(), (200, false));
}

/// Rows of other parts are not kept to be compared.
#[test]
fn row_that_is_named_is_of_the_first_part_that_differs() {
    let (places, table) = files();
    places[1].ask("UPDATE t SET n = -1 WHERE id BETWEEN 10 AND 150");
    let [_, mut target] = sides(&places);
    let checks = Checks::new(target.engine, &table, Of::Target).unwrap();
    let (mut reply, mut forms) = (Reply::new(), Forms::default());
    let sql = format!("SELECT {} FROM t WHERE n = -1 ORDER BY id", checks.list.join(", "));
    target.execute(&sql, &[], &mut reply).unwrap();
    let mut part = |row: usize| checks.digests(&reply, row, &mut forms).unwrap().0;
    let first = (0..141).min_by_key(|row| part(*row)).unwrap() + 10;
    let error = verified(&places, &table, [200, 0], None).0.unwrap_err().to_string();
    assert!(first > 10 && error.contains(&format!("row {first}, column n:")), "{first}: {error}");
}

#[test]
fn row_that_one_side_lacks_is_named() {
    let (places, table) = files();
    let error = || verified(&places, &table, [200, 0], None).0.unwrap_err().to_string();
    places[1].ask("DELETE FROM t WHERE id = 77");
    let text = error();
    let counts = "200 rows were copied, and the target's server counts 199";
    assert!(text.contains(&format!("{counts}; row 77 of t is not on the target")), "{text}");
    places[0].ask("DELETE FROM t WHERE id = 77");
    places[1].ask("INSERT INTO t VALUES (777, 1)");
    let text = error();
    assert!(text.contains("row 777 of t is on the target only"), "{text}");
}

/// It may be one that was not kept.
#[test]
fn row_is_not_told_as_missing_where_not_all_rows_of_its_part_were_kept() {
    let (places, table) = files();
    let [mut source, _] = sides(&places);
    let checks = Checks::new(source.engine, &table, Of::Source).unwrap();
    let (mut reply, mut forms) = (Reply::new(), Forms::default());
    let numbers = "WITH RECURSIVE g (g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM g WHERE g < 4000) SELECT g AS id, 0 AS n FROM g";
    let sql = format!("SELECT {} FROM ({numbers}) t ORDER BY id", checks.list.join(", "));
    source.execute(&sql, &[], &mut reply).unwrap();
    let parts: Vec<usize> = (0..4000).map(|row| checks.digests(&reply, row, &mut forms).unwrap().0).collect();
    let of_first = (0..4000).filter(|row| parts[*row] == parts[0]).map(|row| row + 1);
    let [a, b, c] = of_first.take(3).collect::<Vec<_>>().try_into().unwrap();
    // In hexadecimal digits, two are more than the 64 MiB that are kept.
    let long = "zeroblob(17825792)";
    places[0].ask(&format!("DELETE FROM t; INSERT INTO t VALUES ({a}, {long}), ({b}, {long}), ({c}, 1)"));
    places[1].ask(&format!("DELETE FROM t; INSERT INTO t VALUES ({a}, {long}), ({c}, 1)"));
    let table = TablePlan { rows: 3, ..table };
    let text = verified(&places, &table, [3, 0], None).0.unwrap_err().to_string();
    assert!(text.contains("counts 2; the rows of t do not have the same digest"), "{text}");
}

/// The rows that are missing are exactly those.
#[test]
fn rows_that_the_target_refused_are_taken_off_the_sources_sums() {
    let (places, table) = files();
    places[1].ask("DELETE FROM t WHERE id = 77");
    let refused = |id: u32| {
        let [mut source, mut target] = sides(&places);
        let checks = Checks::new(source.engine, &table, Of::Source).unwrap();
        let (mut reply, mut forms) = (Reply::new(), Forms::default());
        let sql = format!("SELECT {} FROM t WHERE id = {id}", checks.list.join(", "));
        source.execute(&sql, &[], &mut reply).unwrap();
        let mut now = OfTable { rows: 199, ..OfTable::new(Phase::Copied) };
        now.reject(checks.digests(&reply, 0, &mut forms).unwrap());
        let stop = AtomicBool::new(false);
        verify(&mut source, &mut target, &table, &now, None, &Halt::new(&stop), &mut |_| {})
    };
    assert_eq!(refused(77).unwrap(), (199, false));
    assert_eq!(refused(78).unwrap_err().kind(), ErrorKind::Mismatch);
}

#[test]
fn rows_below_the_keys_that_arrive_are_compared() {
    let (places, table) = files();
    let followed = |keys: &[i64]| {
        let engine = with_digests();
        let digests = Digests::new(engine, engine, &table).unwrap();
        assert_eq!(digests.key.unwrap(), "id");
        let (send, receive) = channel();
        for key in keys {
            send.send(*key).unwrap();
        }
        drop(send);
        let stop = AtomicBool::new(false);
        digests.follow(sides(&places), &receive, &Halt::new(&stop))
    };
    assert_eq!(followed(&[]), None);
    assert_eq!(followed(&[11]), Some((11, 10)));
    // Pages that arrive meanwhile are compared together, four at most.
    assert_eq!(followed(&[11, 21, 31, 41, 51, 61]), Some((61, 60)));
    places[1].ask("UPDATE t SET n = 0 WHERE id = 45");
    assert_eq!(followed(&[11, 21, 31, 41, 51, 61]), Some((41, 40)));
    assert_eq!(followed(&[51]), None);
}

/// What a table's figures say of how it was compared.
#[test]
fn engine_without_digests_compares_rows() {
    let (places, _) = files();
    let to = Place::sqlite();
    let (_, done) = crate::common::copy(&places[0].url(), &to.url(), "").unwrap();
    let [TableDone { by_servers, rows, .. }] = done.as_slice() else { panic!("one table") };
    assert_eq!((*by_servers, *rows), (false, 200));
}
