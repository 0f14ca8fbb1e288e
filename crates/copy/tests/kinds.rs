//! Rows that were once lost, added or altered. What arrives is read by the engines' own programs, without the code under
//! test.

use crate::common::{
    NEVER, Place, assert_lists, copied, copy, copy_all, lists, planned, side, wanted_all, watched,
};
use kurabe_copy::event::{Event, Step};

/// Rows of many small pages.
const ROWS: u32 = 300;

/// A file whose table `t` has them.
fn with_rows() -> Place {
    let from = Place::sqlite();
    from.ask(&format!(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v); INSERT INTO t WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL \
         SELECT n + 1 FROM n WHERE n < {ROWS}) SELECT n, n FROM n"
    ));
    from
}

/// The reader of the other side ends then, with an error of its own.
#[test]
fn error_of_the_side_that_failed_first_is_reported() {
    let Some(from) = Place::new("postgres") else { return };
    from.ask("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t SELECT g, g FROM generate_series(1, 30000) g");
    let to = Place::sqlite();
    let wanted = wanted_all(kurabe_copy::page::PageSize::default());
    let mut last = 0;
    let error = copied(&from.url(), &to.url(), &wanted, &NEVER, &mut |event| {
        if let Event::Progress { step: Step::Copy, rows, .. } = event
            && rows == 30_000
            && std::mem::replace(&mut last, rows) != rows
        {
            to.ask("UPDATE t SET n = 'x' WHERE id = 1");
        }
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a value of class") && error.contains("is not one: t78"), "{error}");
}

#[test]
fn rows_that_a_policy_hides_or_a_child_adds_are_not_copied_in_silence() {
    let Some(from) = Place::new("postgres") else { return };
    from.ask(
        "CREATE TABLE event (id int NOT NULL, what text); CREATE TABLE event_2025 () INHERITS (event); \
         INSERT INTO event VALUES (1, 'parent'); INSERT INTO event_2025 VALUES (2, 'child'), (3, 'child')",
    );
    let to = Place::sqlite();
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT count(*) FROM event; SELECT count(*) FROM event_2025"), "1\n2");
    from.ask(
        "CREATE TABLE invoice (id int PRIMARY KEY, tenant text); \
         INSERT INTO invoice SELECT g, CASE WHEN g % 10 = 0 THEN 'app' ELSE 'other' END FROM generate_series(1, 100) g; \
         ALTER TABLE invoice ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON invoice USING (tenant = current_user); \
         CREATE ROLE app LOGIN PASSWORD 'a'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO app",
    );
    let to = Place::sqlite();
    let app = from.url_of("app:a");
    let error = copy(&app, &to.url(), "type,collation,decimal").unwrap_err();
    assert!(error.to_string().contains("row-level security"), "{error}");
}

#[test]
fn shadow_tables_of_a_virtual_table_are_a_part_of_it() {
    let from = Place::sqlite();
    let (made, ..) = from.try_ask(
        "CREATE TABLE doc (id INTEGER PRIMARY KEY, body TEXT); CREATE VIRTUAL TABLE doc_fts USING fts5(body); \
         INSERT INTO doc VALUES (1, 'hello'); INSERT INTO doc_fts VALUES ('hello')",
    );
    assert!(made);
    let to = Place::sqlite();
    let plan = planned(&from, &to).unwrap();
    let names: Vec<&str> = plan.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["doc"]);
    assert_lists(&plan, &[("view", "doc_fts virtual")]);
}

/// A page ends with the row that fills it: one wide row among many small ones costs one page.
#[test]
fn wide_row_does_not_make_every_page_small() {
    let from = with_rows();
    from.ask("INSERT INTO t VALUES (1000, randomblob(4000000))");
    let to = Place::sqlite();
    let mut pages = 0;
    watched(&from.url(), &to.url(), "", &NEVER, &mut |event| {
        pages += usize::from(matches!(event, Event::Progress { step: Step::Copy, .. }));
    })
    .unwrap();
    assert_eq!(pages, 7);
    assert_eq!(to.ask("SELECT count(*), max(length(v)) FROM t"), "301|4000000");
}

#[test]
fn columns_without_a_type_get_the_one_that_their_values_have() {
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, words, numbers, mixed, bytes); \
         INSERT INTO t VALUES (1, 'a', 1, 1, x'00'), (2, 'b', 9007199254740993, 'x', x'01'), (3, NULL, NULL, x'ff', NULL)",
    );
    let Some(to) = Place::new("postgres") else { return };
    let plan = planned(&from, &to).unwrap();
    assert_lists(&plan, &[("storage-class", "t.mixed")]);
    assert_eq!(plan.issues.len(), 1, "{:?}", plan.issues);
    copy_all(&from, &to).unwrap();
    let types = "SELECT string_agg(data_type, ',' ORDER BY ordinal_position) FROM information_schema.columns \
                 WHERE table_name = 't'";
    assert_eq!(to.ask(types), "bigint,text,bigint,bytea,bytea");
    assert_eq!(to.ask("SELECT words, numbers FROM t WHERE id = 2"), "b|9007199254740993");
}

/// A column of decimal numbers that has other numbers too becomes one of floating-point numbers, unless they are too few.
/// Servers that write the values of a table as the same texts compare their own digests, and a value that they do not hold alike is
/// found all the same.
#[test]
fn servers_compare_their_own_digests_where_their_texts_agree() {
    let postgres = "CREATE TABLE t (id int PRIMARY KEY, s smallint, b bigint, d numeric(12,3), c char(5), v varchar(60), x text, y bytea, a date, \
                    h time(3), m timestamp(6), i timestamptz(3), o boolean, u uuid); \
                    INSERT INTO t VALUES (1, -5, 9e18, -0.5, 'ab', 'a|b', E'\\\\\\n ', '\\x00ff', '1969-12-31', '23:59:59.123', \
                    '1999-12-31 23:59:59.000001', '2024-02-29 01:02:03.5+03', true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), (2), \
                    (3, 0, 0, 0, '', '', '', '', '9999-12-31', '00:00:00', '0001-01-01', '1971-01-01', false, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12')"
        .replace("(2), ", "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), ");
    let mysql = "CREATE TABLE t (id int PRIMARY KEY, s smallint zerofill, b bigint unsigned, d decimal(12,3), c char(5), v varchar(60) CHARACTER SET latin1, \
                 x text, y varbinary(9), a date, h time(3), m datetime(6), i timestamp(3) NULL, o tinyint(1)); \
                 INSERT INTO t VALUES (1, 5, 18446744073709551615, -0.5, 'ab', 'é|b', '\\\\\n ', x'00ff', '1969-12-31', '23:59:59.123', \
                 '1999-12-31 23:59:59.000001', '2024-02-29 01:02:03.5', 1), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)";
    let found = |from: &Place, to: &Place| {
        let (_, done) = copy_all(from, to).unwrap();
        done.iter().all(|table| table.by_servers)
    };
    for (from, to) in [
        ("postgres", "postgres"),
        ("postgres", "mysql"),
        ("postgres", "mariadb"),
        ("mysql", "postgres"),
        ("mysql", "mysql"),
        ("mysql", "mariadb"),
        ("mariadb", "postgres"),
        ("mariadb", "mysql"),
        ("mariadb", "mariadb"),
    ] {
        let (Some(source), Some(target)) = (Place::new(from), Place::new(to)) else { continue };
        source.ask(if from == "postgres" { &postgres } else { mysql });
        assert!(found(&source, &target), "{from} to {to}");
    }
    // Floating-point numbers are no texts of both; documents of MySQL are not what they were.
    let (Some(source), Some(target)) = (Place::new("postgres"), Place::new("mysql")) else { return };
    source.ask("CREATE TABLE f (id int PRIMARY KEY, f float8); INSERT INTO f VALUES (1, 0.1)");
    assert!(!found(&source, &target));
}

#[test]
fn large_integers_beside_fractions_keep_all_their_digits() {
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n NUMERIC(5), m NUMERIC(20,2), d NUMERIC(5)); \
         INSERT INTO t VALUES (1, -9223372036854775807, 0.123, 0.5), (2, 0.25, 9007199254740993, 9007199254740992), \
         (3, 9223372036854775807, NULL, NULL)",
    );
    for engine in ["sqlite", "postgres", "mysql", "mariadb"] {
        let Some(to) = Place::new(engine) else { continue };
        let (plan, _) = copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        if engine != "sqlite" {
            assert!(
                lists(&plan, "storage-class", "t.n text") && lists(&plan, "storage-class", "t.m text"),
                "{engine}"
            );
            assert!(lists(&plan, "storage-class", "t.d double"), "{engine}");
        }
        let found = to.ask("SELECT n, m FROM t ORDER BY id").replace('\t', "|");
        let null = if engine.starts_with('m') { "NULL" } else { "" };
        let expected =
            format!("-9223372036854775807|0.123\n0.25|9007199254740993\n9223372036854775807|{null}");
        assert_eq!(found, expected, "{engine}");
    }
}

/// Texts that look like dates, and nulls in keys, are found by the plan.
#[test]
fn values_that_the_target_refuses_are_found_before_anything_is_made() {
    let Some(to) = Place::new("postgres") else { return };
    let from = Place::sqlite();
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
    assert_eq!(
        to.ask("SELECT d, zone, good FROM t WHERE id = 2"),
        "2024-13-45|2024-06-01 10:00:00-04:00|2024-02-29 10:00:00.5"
    );
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE n (code TEXT PRIMARY KEY, x INT); INSERT INTO n VALUES (NULL, 1), ('a', 2), (NULL, 3)",
    );
    let error = planned(&from, &to).unwrap_err();
    assert!(error.to_string().contains("n.code: nulls are in the key"), "{error}");
}

/// A copy can end between any two of its first statements.
#[test]
fn copy_that_ended_before_its_state_table_begins_again() {
    let from = with_rows();
    for engine in ["sqlite", "postgres", "mysql", "mariadb"] {
        let Some(to) = Place::new(engine) else { continue };
        let stop = std::sync::atomic::AtomicBool::new(true);
        watched(&from.url(), &to.url(), "", &stop, &mut |_| {}).unwrap_err();
        to.ask("DROP TABLE kurabe_copy");
        assert_ne!(to.ask("SELECT count(*) FROM kurabe_marker"), "0");
        copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!(to.ask("SELECT count(*) FROM t"), ROWS.to_string());
    }
}

/// A file in WAL mode is read as it was when the copy began, while others write to it.
#[test]
fn writers_of_a_file_in_wal_mode_do_not_wait() {
    let from = with_rows();
    from.ask("PRAGMA journal_mode = WAL");
    let to = Place::sqlite();
    let mut written = 0;
    let reader = format!("{}?access=read", from.url());
    watched(&reader, &to.url(), "", &NEVER, &mut |_| {
        from.ask("INSERT INTO t (v) VALUES ('new')");
        written += 1;
    })
    .unwrap();
    assert!(written > 3);
    assert_eq!(to.ask("SELECT count(*) FROM t"), ROWS.to_string());
    let mut reader = side(&reader);
    assert_eq!(reader.engine.dialect.hinders(&mut reader).unwrap(), None);
    let mut side = side(&to.url());
    // The driver of runs sets WAL mode; a file of others has a journal.
    side.run("PRAGMA journal_mode = DELETE").unwrap();
    assert!(side.engine.dialect.hinders(&mut side).unwrap().is_some());
}

/// Each compiled plan takes a second of the server, and the catalogue is read by some twenty queries.
#[test]
fn server_does_not_compile_the_plans_of_a_copy() {
    let Some(server) = Place::new("postgres") else { return };
    let mut side = side(&server.url());
    for statement in side.engine.reading {
        side.run(statement).unwrap();
    }
    assert_eq!(side.value("SHOW jit").unwrap().as_deref(), Some("off"));
}

#[test]
fn floating_point_numbers_are_compared_by_all_their_digits() {
    for engine in ["mysql", "mariadb"] {
        let Some(from) = Place::new(engine) else { continue };
        from.ask(
            "CREATE TABLE t (id int PRIMARY KEY, d double(10,2), f float(8,3), x double, y float); \
             INSERT INTO t VALUES (1, -0.1, -0.1, -1.3099567662856599e-292, -1.17549435e-38), \
             (2, 5, 1.005, -2.2250738585072014e-308, 3.4028e38), (3, 1.1, 2.2, 1.7976931348623157e308, 0.1), (4, NULL, NULL, NULL, NULL)",
        );
        for other in ["postgres", "sqlite", "mysql", "mariadb"] {
            let Some(to) = Place::new(other) else { continue };
            copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine} to {other}: {error}"));
            let Some(to) = Place::new(other) else { continue };
            // The next number, or the one after it.
            let change = "UPDATE t SET x = x * 1.0000000000000002e0 WHERE id = 1";
            let mut events = |event: Event<'_>| {
                if matches!(event, Event::Progress { step: Step::Copy, .. }) {
                    to.ask(change);
                }
            };
            let done = watched(&from.url(), &to.url(), "", &NEVER, &mut events);
            let error = done.map_or_else(|error| error.to_string(), |_| String::new());
            assert!(error.contains("row 1, column x"), "{engine} to {other}: {error}");
        }
    }
}

#[test]
fn decimal_numbers_in_documents_are_compared_by_their_digits() {
    for engine in ["mysql", "mariadb", "postgres"] {
        let (Some(from), Some(to)) = (Place::new("mysql"), Place::new(engine)) else { continue };
        from.ask("CREATE TABLE t (id int PRIMARY KEY, j json); INSERT INTO t VALUES (1, JSON_OBJECT('price', CAST(1.10 AS DECIMAL(10,2)))), (2, '{\"b\": 1e3, \"a\": [0.50]}')");
        copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert!(to.ask("SELECT j FROM t WHERE id = 1").contains("1.1"), "{engine}");
    }
}

#[test]
fn vectors_are_carried() {
    let Some(from) = Place::new("mysql") else { return };
    from.ask("CREATE TABLE t (id int PRIMARY KEY, v vector(3)); INSERT INTO t VALUES (1, STRING_TO_VECTOR('[1,2.5,-3]')), (2, NULL)");
    for (engine, sql) in [
        ("mysql", "SELECT VECTOR_TO_STRING(v) FROM t WHERE id = 1"),
        ("postgres", "SELECT v FROM t WHERE id = 1"),
    ] {
        let Some(to) = Place::new(engine) else { continue };
        copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!(to.ask(sql), "[1.00000e+00,2.50000e+00,-3.00000e+00]", "{engine}");
    }
}

#[test]
fn keys_of_64_bits_without_a_sign_go_to_all_engines_and_in_parts() {
    for engine in ["mysql", "mariadb"] {
        let Some(from) = Place::new(engine) else { continue };
        from.ask(
            "CREATE TABLE u (id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, x int); \
             INSERT INTO u VALUES (1, 1), (9223372036854775807, 2), (9223372036854775808, 3), (18446744073709551614, 4)",
        );
        from.ask("INSERT INTO u WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 900) SELECT n + 9223372036854775900, n FROM n");
        for to in ["sqlite", "postgres", "mysql", "mariadb"] {
            let Some(to) = Place::new(to) else { continue };
            let jobs = if to.engine().has_one_writer { 1 } else { 2 };
            let done = crate::choices::Done::by(jobs).copy(&from, &to, &crate::choices::all());
            done.unwrap_or_else(|error| panic!("{engine}: {error}"));
            assert_eq!(to.ask("SELECT x FROM u WHERE id = '18446744073709551614'"), "4", "{engine}");
        }
    }
}

#[test]
fn values_that_are_no_word_of_an_enumeration_are_known_before_rows_are_copied() {
    for engine in ["mysql", "mariadb"] {
        let (Some(from), Some(to)) = (Place::new(engine), Place::new(engine)) else { continue };
        from.ask("SET sql_mode = ''; CREATE TABLE t (id int PRIMARY KEY, e enum('a', 'b', '')); INSERT INTO t VALUES (1, 'nope'), (2, 'a'), (3, '')");
        let plan = planned(&from, &to).unwrap();
        assert_lists(&plan, &[("enum", "t.e values 1 row --reject")]);
        assert!(copy(&from.url(), &to.url(), "").is_err());
        let to = Place::sqlite();
        copy_all(&from, &to).unwrap();
        assert_eq!(to.ask("SELECT group_concat(e, '|') FROM (SELECT e FROM t ORDER BY id)"), "|a|");
    }
}

#[test]
fn digest_of_postgres_tells_apart_values_that_hash_partitions_take_for_equal() {
    let Some(place) = Place::new("postgres") else { return };
    let hash = place.engine().sums.as_ref().unwrap().exact.unwrap();
    let are_different = |hash: String, columns: &str, values: &[String]| {
        let rows = values.iter().map(|value| format!("({value})")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT count(*), count(h), count(DISTINCT h) FROM (SELECT {hash} AS h FROM (VALUES {rows}) v({columns})) w"
        );
        let count = values.len();
        assert_eq!(place.ask(&sql), format!("{count}|{count}|{count}"), "{sql}");
    };
    let all = [
        ("smallint", "0 1 '-1' NULL"),
        ("integer", "0 1 '-1' '-2147483648' NULL"),
        (
            "bigint",
            "0 1 '-1' 4294967295 4294967296 4294967297 '-4294967297' 9223372036854775807 '-9223372036854775808' NULL",
        ),
        ("numeric", "0 1 -1 1.0 10 10000 'NaN' 'Infinity' '-Infinity' NULL"),
        ("double precision", "0 '-0' 1 'NaN' 'Infinity' NULL"),
        ("real", "0 '-0' 1 NULL"),
        ("text", "'' 'a' 'A' '\\' '0' NULL"),
        ("character varying(9)", "'' 'a' 'A' NULL"),
        ("character(3)", "'' 'a' 'A' NULL"),
        ("bytea", "'' '\\x00' '\\x0000' NULL"),
        ("boolean", "'t' 'f' NULL"),
        ("date", "'2020-01-01' '0001-01-01' 'infinity' '-infinity' NULL"),
        ("time without time zone", "'00:00' '24:00' '00:00:00.000001' NULL"),
        (
            "timestamp without time zone",
            "'2000-01-01' '1999-12-31' '2000-01-01T01:11:34.967296' 'infinity' NULL",
        ),
        ("timestamp with time zone", "'2000-01-01' '2000-01-01T01:00' '-infinity' NULL"),
        ("uuid", "'00000000-0000-0000-0000-000000000000' '00000000-0000-0000-0000-000000000001' NULL"),
        ("json", "'{}' '[]' 'null' NULL"),
    ];
    for (declared, values) in all {
        let values: Vec<String> = values.split(' ').map(|value| format!("{value}::{declared}")).collect();
        are_different(hash(declared, "x", true, "0".to_owned()), "x", &values);
        let known = &values[..values.len() - 1];
        are_different(hash(declared, "x", false, "0".to_owned()), "x", known);
    }
    // A space at the end, which `character` does not have; and values that move to another column.
    are_different(hash("text", "x", false, "0".to_owned()), "x", &["'a'", "'a '"].map(str::to_owned));
    let both = |declared| hash(declared, "b", true, hash(declared, "a", true, "0".to_owned()));
    let rows = "1,NULL NULL,1 NULL,NULL 0,NULL NULL,0 0,0 1,0 0,1 1,1".split(' ').map(str::to_owned);
    are_different(both("integer"), "a, b", &rows.collect::<Vec<_>>());
    let rows = "'x',NULL NULL,'x' NULL,NULL '',NULL NULL,'' '','' 'x','' '','x' 'xx','' '','xx'".split(' ');
    are_different(both("text"), "a, b", &rows.map(str::to_owned).collect::<Vec<_>>());
}
