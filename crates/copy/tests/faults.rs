//! Faults in the copy's own reader, one for each type: each must be found by verification, which reads in another way. A
//! check that read as the copy does would see the same wrong values on both sides.

use crate::common::{NEVER, PAGE, Place, begun, copy_as, run_planned, side, wanted_all};
use kurabe_copy::page::PageSize;
use kurabe_copy::plan::{Plan, Resume, TablePlan};
use kurabe_copy::pool::Halt;
use kurabe_copy::run::{Copy, How};
use kurabe_copy::state::{OfTable, Phase};
use kurabe_copy::verify::{Of, verify};
use kurabe_copy::wanted::{Parts, Wanted};
use kurabe_core::{ErrorKind, Result};

/// A type, a value, and what is read instead of the column, `{}`.
type Fault = (&'static str, &'static str, &'static str);

const POSTGRES: &[Fault] = &[
    ("smallint", "5", "{} + 1"),
    ("bigint", "9007199254740993", "{}::float8::int8"),
    ("numeric(20,6)", "1.123456", "round({}, 2)::text"),
    ("numeric", "1e-30", "{}::float8::text || '1'"),
    ("real", "1.25", "round({}::numeric)::text"),
    ("double precision", "0.12345678901234567", "{}::real::text"),
    ("boolean", "true", "(NOT {})::text"),
    ("char(9)", "'ab'", "substr({}, 1, 1)"),
    ("varchar(9)", "'abc '", "rtrim({})"),
    ("text", "'größe'", "convert_from(convert_to({}, 'LATIN1'), 'LATIN1') || ' '"),
    ("text", "NULL", "coalesce({}, '')"),
    ("text", "''", "nullif({}, '')"),
    ("bytea", "'\\x00ff00'", "substr({}, 1, 2)::text"),
    ("date", "'2024-02-29'", "({} - 1)::text"),
    ("time(6)", "'01:02:03.000004'", "{}::time(3)::text"),
    ("timestamp(6)", "'2024-02-29 23:00:00'", "({} AT TIME ZONE 'Asia/Tokyo' AT TIME ZONE 'UTC')::text"),
    ("timestamptz", "'2024-02-29 23:00:00+00'", "({} AT TIME ZONE 'Asia/Tokyo')::text"),
    ("uuid", "md5('a')::uuid", "md5({}::text)::uuid::text"),
    ("json", "'{\"a\": 1, \"b\": 2}'", "({}::jsonb - 'a')::text"),
    ("jsonb", "'[1.50]'", "'[1.5000001]'"),
    ("inet", "'10.0.0.1/8'", "host({})"),
    ("interval", "'1 month 1 day'", "justify_interval({} + interval '1 second')::text"),
    ("int[]", "'{1,NULL}'", "array_remove({}, NULL)::text"),
    ("mood", "'bad'", "'ok'"),
];

const MYSQL: &[Fault] = &[
    ("tinyint", "-5", "ABS({})"),
    ("bigint", "9007199254740993", "CAST({} * 1e0 AS SIGNED)"),
    ("bigint unsigned", "18446744073709551615", "'18446744073709551614'"),
    ("decimal(20,6)", "1.123456", "ROUND({}, 2)"),
    ("float", "0.1", "ROUND({}, 0)"),
    ("double", "0.12345678901234567", "ROUND({}, 6)"),
    ("char(9)", "'ab'", "LEFT({}, 1)"),
    ("varchar(9)", "'abc '", "RTRIM({})"),
    ("varchar(9) CHARACTER SET latin1", "'größe'", "CONVERT({} USING ascii)"),
    ("text", "NULL", "COALESCE({}, '')"),
    ("text", "''", "NULLIF({}, '')"),
    ("binary(4)", "x'00ff0000'", "LEFT({}, 1)"),
    ("blob", "x'00ff00'", "LEFT({}, 2)"),
    ("date", "'2024-02-29'", "CAST({} - INTERVAL 1 DAY AS CHAR)"),
    ("time(6)", "'01:02:03.000004'", "CAST(CAST({} AS TIME) AS CHAR)"),
    ("time", "'23:00:00'", "CAST(ADDTIME({}, '00:30:00') AS CHAR)"),
    ("datetime(6)", "'2024-02-29 01:02:03.000004'", "CAST(CAST({} AS DATETIME) AS CHAR)"),
    ("timestamp", "'2024-02-29 23:00:00'", "CAST(CONVERT_TZ({}, '+00:00', '+09:00') AS CHAR)"),
    ("year", "2024", "{} - 1"),
    ("json", "'{\"a\": 1, \"b\": 2}'", "JSON_REMOVE({}, '$.a')"),
    ("enum('a','b')", "'b'", "ELT(1, 'a', {})"),
    ("set('a','b')", "'a,b'", "SUBSTRING_INDEX({}, ',', 1)"),
    ("bit(64)", "18446744073709551615", "'18446744073709551614'"),
    ("point", "point(1, 2)", "point(2, 1)"),
];

const SQLITE: &[Fault] = &[
    ("INTEGER", "9007199254740993", "CAST(CAST({} AS REAL) AS INTEGER)"),
    ("REAL", "0.12345678901234567", "round({}, 6)"),
    ("TEXT", "'it''s'", "substr({}, 1, 3)"),
    ("TEXT", "NULL", "coalesce({}, '')"),
    ("TEXT", "CAST(x'610062' AS TEXT)", "printf('%s', {})"),
    ("BLOB", "x'00ff00'", "substr({}, 1, 2)"),
    ("DATE_TEXT", "'2024-02-29'", "date({}, '-1 day')"),
    ("TIMESTAMPTZ_TEXT(6)", "'2024-02-29 23:00:00'", "datetime({}, '+9 hours')"),
    ("TIME_TEXT(6)", "'01:02:03.000004'", "time({})"),
    ("DECIMAL_TEXT(30,10)", "'12345678901234567890.5'", "CAST(CAST({} AS REAL) AS TEXT)"),
    ("JSON_TEXT", "'{\"a\":1,\"b\":2}'", "json_remove({}, '$.a')"),
    ("UUID_TEXT", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "replace({}, 'a', 'b')"),
    ("BOOLEAN", "1", "NOT {}"),
];

/// Settings of the source's session, and the type whose values the copy then reads wrongly.
const SETTINGS: &[Fault] = &[
    ("p", "SET TimeZone TO 'Asia/Tokyo'", "timestamptz"),
    ("p", "SET extra_float_digits TO -5", "real"),
    ("m", "SET SESSION time_zone = '+09:00'", "timestamp"),
];

/// A copy after something of its plan was changed. What an earlier one left is removed.
fn run(to: &Place, copy: &mut Copy<'_>, plan: &Plan, change: &dyn Fn(&mut TablePlan)) -> Result<()> {
    let mut plan = plan.clone();
    change(&mut plan.tables[0]);
    let how = How { restart: true, ..How::default() };
    run_planned(&to.url(), copy, &plan, how, &mut |_| {}).map(drop)
}

#[test]
fn fault_in_the_copys_reader_of_any_type_is_found() {
    let mut wrong = Vec::new();
    for (engine, faults, before) in [
        ("sqlite", SQLITE, ""),
        ("postgres", POSTGRES, "CREATE TYPE mood AS ENUM ('ok', 'bad'); "),
        ("mysql", MYSQL, ""),
        ("mariadb", MYSQL, ""),
    ] {
        let Some(from) = Place::new(engine) else { continue };
        let columns: Vec<String> =
            faults.iter().enumerate().map(|(at, (declared, ..))| format!("c{at} {declared}")).collect();
        let values: Vec<&str> = faults.iter().map(|(_, value, _)| *value).collect();
        let before = if engine.starts_with('m') { "SET time_zone = '+00:00'; " } else { before };
        from.ask(&format!(
            "{before}CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, {}); INSERT INTO t VALUES (7, {})",
            columns.join(", "),
            values.join(", ")
        ));
        // A target of the same kind gets the server's own text, others a common form.
        let others: &[&str] = if engine == "sqlite" { &["sqlite", "postgres"] } else { &["sqlite", engine] };
        for to in others {
            let Some(to) = Place::new(to) else { continue };
            wrong.extend(sweep(engine, &from, &to, faults));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Copies a row with a fault in each column, verifies each column by itself, and then copies it without faults.
fn sweep(engine: &str, from: &Place, to: &Place, faults: &[Fault]) -> Vec<String> {
    let mut wrong = Vec::new();
    let begin = || begun(from, to, &wanted_all(PAGE)).unwrap();
    let (mut copy, plan) = begin();
    let done = run(to, &mut copy, &plan, &|table| {
        for (column, (.., fault)) in table.columns[1..].iter_mut().zip(faults) {
            let name = quoted(engine, &column.name);
            column.read = column.read.replace(&name, &format!("({})", fault.replace("{}", &name)));
        }
    });
    let error = done.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{engine} to {}: {error}", to.url());
    let now = OfTable { rows: 1, ..OfTable::new(Phase::Copied) };
    let halt = Halt::new(&NEVER);
    for (at, (declared, value, fault)) in faults.iter().enumerate() {
        let mut one = plan.tables[0].clone();
        one.columns = vec![one.columns[0].clone(), one.columns[at + 1].clone()];
        let done = verify(&mut copy.source, &mut copy.target, &one, &now, None, &halt, &mut |_| {});
        let part = format!("row 7, column {}: ", one.columns[1].name);
        if !done.as_ref().is_err_and(|error| error.to_string().contains(&part)) {
            wrong.push(format!("{engine} to {}, {declared} {value}, read as {fault}: {done:?}", to.url()));
        }
    }
    // A server of the same kind reads an instant right with the offset that the source's time zone gives it.
    let is_postgres = to.url().starts_with("postgres");
    let is_wrong = |of: &&Fault| engine.starts_with(of.0) && (!is_postgres || of.2 != "timestamptz");
    // Settings of the session change what the copy reads, and not what verification reads in the same session.
    for (_, setting, declared) in SETTINGS.iter().filter(is_wrong) {
        let (mut copy, plan) = begin();
        copy.source.run(setting).unwrap();
        let at = faults.iter().position(|fault| fault.0 == *declared).unwrap();
        let done = run(to, &mut copy, &plan, &|_| {});
        let part = format!("row 7, column {}: ", plan.tables[0].columns[at + 1].name);
        if !done.as_ref().is_err_and(|error| error.to_string().contains(&part)) {
            wrong.push(format!("{engine} to {}, {setting}: {done:?}", to.url()));
        }
    }
    let (mut copy, plan) = begin();
    let done = run(to, &mut copy, &plan, &|_| {});
    wrong.extend(done.err().map(|error| format!("{engine} to {}: {error}", to.url())));
    wrong
}

/// A column's name in quotes.
fn quoted(engine: &str, name: &str) -> String {
    if engine.starts_with('m') { format!("`{name}`") } else { format!("\"{name}\"") }
}

/// A large table is compared while it is written; a fault in its middle is found all the same.
#[test]
fn rows_are_compared_while_others_are_written() {
    for (engine, to) in [("postgres", "mariadb"), ("mariadb", "postgres")] {
        let (Some(from), Some(to)) = (Place::new(engine), Place::new(to)) else { continue };
        let rows = "SELECT 1 + a.n + 1000 * b.n FROM n a, n b WHERE b.n < 120";
        let n = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 999)";
        from.ask(&format!(
            "CREATE TABLE t (id int PRIMARY KEY, v varchar(20)); INSERT INTO t (id) {n} {rows}"
        ));
        from.ask("UPDATE t SET v = 'value'");
        let open = |of: Of| Ok(side(&if of == Of::Source { from.url() } else { to.url() }));
        let mut copy = Copy { open: Some(&open), ..Copy::new(side(&from.url()), side(&to.url()), &NEVER) };
        let plan = copy.plan(&wanted_all(PageSize::default()), &mut []).unwrap();
        let read_wrongly = |table: &mut TablePlan| {
            let read = &mut table.columns[1].read;
            *read = format!("CASE WHEN id = 60000 THEN 'wrong' ELSE {read} END");
        };
        let error = run(&to, &mut copy, &plan, &read_wrongly).unwrap_err();
        assert!(error.to_string().contains("row 60000, column v"), "{engine}: {error}");
        let how = How { restart: true, ..How::default() };
        let done = run_planned(&to.url(), &mut copy, &plan, how, &mut |_| {}).unwrap();
        assert!(done[0].by_servers && done[0].rows == 120_000, "{engine}");
        // All but the last row were proven before the end, in the order of their keys.
        assert_eq!(done[0].proven, Some((120_000, 119_999)), "{engine}");
    }
}

/// The target changes a value, of a row that came in binary only.
#[test]
fn value_that_a_trigger_changes_is_found() {
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else { return };
    let table = "CREATE TABLE t (id int PRIMARY KEY, v int);";
    from.ask(&format!("{table} INSERT INTO t SELECT n, n FROM generate_series(1, 120) n"));
    to.ask(&format!(
        "{table} CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.v = 0; RETURN NEW; END'; \
         CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW \
         WHEN (NEW.id = 70 AND current_query() LIKE 'COPY %(FORMAT binary)') EXECUTE FUNCTION f(); \
         ALTER TABLE t ENABLE ALWAYS TRIGGER f"
    ));
    let error = copy_as(&from, &to, &Wanted { parts: Parts::Data, ..wanted_all(PAGE) }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    assert!(error.to_string().contains("row 70, column v"), "{error}");
}

/// A reader that loses a row, or reads one twice, is found by the counts.
#[test]
fn row_that_the_reader_loses_is_found() {
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    );
    let to = Place::sqlite();
    let (mut copy, plan) = begun(&from, &to, &wanted_all(PAGE)).unwrap();
    for (fault, part) in [
        ("(SELECT * FROM t WHERE id <> 2)", "the plan counted 3"),
        ("(SELECT id, v FROM t UNION ALL SELECT 4, 'd')", "the plan counted 3"),
    ] {
        let done = run(&to, &mut copy, &plan, &|table| {
            (table.from, table.resume) = (fault.to_owned(), Resume::Restart);
        });
        let error = done.expect_err(fault);
        assert!(error.to_string().contains(part), "{fault}: {error}");
    }
}

/// A key of an unrelated table is not the one that an earlier process made.
#[test]
fn copy_that_is_continued_makes_keys_whose_names_other_tables_have() {
    let (Some(from), Some(to)) = (Place::new("postgres"), Place::new("postgres")) else { return };
    from.ask(
        "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p SELECT generate_series(1, 120); \
         CREATE TABLE c (id int PRIMARY KEY, p int CONSTRAINT of_p REFERENCES p); INSERT INTO c SELECT g, g FROM generate_series(1, 120) g",
    );
    to.ask("CREATE TABLE other (id int PRIMARY KEY, o int CONSTRAINT of_p REFERENCES other)");
    crate::harm::stopped(&from, &to, &wanted_all(PAGE));
    copy_as(&from, &to, &wanted_all(PAGE)).unwrap();
    let keys = "SELECT count(DISTINCT conrelid) FROM pg_constraint WHERE conname = 'of_p'";
    assert_eq!(to.ask(keys), "2");
}
