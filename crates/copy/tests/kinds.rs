//! Kinds of tables that were once copied in part, altered or not at all. What arrives is read by the engines' own programs,
//! without the code under test.

use crate::common::{Place, copy, copy_all, lists, planned};
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
    (
        "k PRIMARY KEY",
        "CASE n % 4 WHEN 0 THEN n WHEN 1 THEN n + 0.25 WHEN 2 THEN 't' || n ELSE CAST('b' || n AS BLOB) END",
    ),
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
            assert_eq!(
                to.ask(&format!("SELECT count(*) FROM {table}")),
                ROWS.to_string(),
                "{engine} {table}"
            );
            let sum = |of: &Place| {
                of.ask(&format!("SELECT sum(length(v)), max(v), min(v) FROM {table}")).replace('\t', "|")
            };
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
        for (at, key) in POSTGRES_KEYS.iter().enumerate() {
            let found = to.ask(&format!("SELECT count(*), count(DISTINCT k), count(DISTINCT v) FROM t{at}"));
            assert_eq!(found.replace('\t', "|"), format!("{ROWS}|{ROWS}|{ROWS}"), "{engine} {:?}", key);
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
                let found =
                    to.ask(&format!("SELECT count(*), count(DISTINCT k), count(DISTINCT v) FROM t{at}"));
                assert_eq!(
                    found.replace('\t', "|"),
                    format!("{most}|{most}|{most}"),
                    "{source} to {engine}: {declared}"
                );
            }
        }
    }
}

/// Keys of Firebird: type and value of the `n`th row.
const FIREBIRD_KEYS: &[(&str, &str)] = &[
    ("SMALLINT", "n - 150"),
    ("BIGINT", "n * 10000000000"),
    ("DECIMAL(10,2)", "n * 1.5"),
    ("DOUBLE PRECISION", "n / 8.0"),
    ("VARCHAR(20) CHARACTER SET UTF8", "'é' || n"),
    ("CHAR(8) CHARACTER SET UTF8", "'c' || n"),
    ("DATE", "DATEADD(n DAY TO DATE '2024-01-01')"),
    ("TIMESTAMP", "DATEADD(n HOUR TO TIMESTAMP '2024-01-01 00:00:00.25')"),
];

#[test]
fn all_rows_of_every_key_of_firebird_arrive_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(from), Some(back)) =
        (Place::new("firebird", folder.path()), Place::new("firebird", folder.path()))
    else {
        return;
    };
    for (at, (declared, value)) in FIREBIRD_KEYS.iter().enumerate() {
        let numbers = numbers().replace("SELECT 1 UNION", "SELECT 1 AS n FROM RDB$DATABASE UNION");
        from.ask(&format!(
            "CREATE TABLE T{at} (K {declared} NOT NULL PRIMARY KEY, V VARCHAR(20)); COMMIT; \
             INSERT INTO T{at} {numbers} SELECT {value}, 'v' || n FROM n"
        ));
    }
    for engine in ["sqlite", "postgres"] {
        let Some(to) = Place::new(engine, folder.path()) else { continue };
        copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        for (at, (declared, _)) in FIREBIRD_KEYS.iter().enumerate() {
            let table = to.ask(&format!(
                "SELECT count(*), count(DISTINCT \"K\"), count(DISTINCT \"V\") FROM \"T{at}\""
            ));
            assert_eq!(table, format!("{ROWS}|{ROWS}|{ROWS}"), "{engine}: {declared}");
        }
        if engine == "postgres" {
            copy_all(&to, &back).unwrap();
            for at in 0..FIREBIRD_KEYS.len() {
                let count = back.ask(&format!("SELECT COUNT(DISTINCT K), COUNT(DISTINCT V) FROM T{at}"));
                let found: Vec<&str> = count.split_whitespace().collect();
                assert_eq!(found, [ROWS.to_string(), ROWS.to_string()], "{at}");
            }
        }
    }
}

/// Verification counts by itself: a reader that loses rows cannot hide it.
#[test]
fn row_that_is_lost_or_added_meanwhile_is_an_error() {
    use kurabe_copy::event::{Event, Step};
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(&format!(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v); INSERT INTO t {} SELECT n, n FROM n",
        numbers()
    ));
    for (change, part) in [
        ("DELETE FROM t WHERE k = 5", "300 rows were copied, and the target's server counts 299"),
        ("INSERT INTO t VALUES (1000, 0)", "300 rows were copied, and the target's server counts 301"),
        ("UPDATE t SET v = 'x' WHERE k = 5", "row 5, column v"),
    ] {
        let to = Place::File(folder.path().join(format!("{}.db", part.len())));
        let mut changed = false;
        let stop = std::sync::atomic::AtomicBool::new(false);
        let error = crate::common::watched(&from.url(), &to.url(), "", &stop, &mut |event| {
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
    let Place::Server(server) = &from else { panic!("it is a server") };
    let app = format!("postgres://app@127.0.0.1:{}/kurabe", server.port());
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
    use kurabe_copy::event::{Event, Step};
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
    crate::common::watched(&from.url(), &to.url(), "", &stop, &mut |event| {
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
    assert_eq!(
        to.ask("SELECT d, zone, good FROM t WHERE id = 2"),
        "2024-13-45|2024-06-01 10:00:00-04:00|2024-02-29 10:00:00.5"
    );
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(
        "CREATE TABLE n (code TEXT PRIMARY KEY, x INT); INSERT INTO n VALUES (NULL, 1), ('a', 2), (NULL, 3)",
    );
    let error = planned(&from, &to).unwrap_err();
    assert!(error.to_string().contains("n.code: the key has 2 nulls"), "{error}");
}

/// A copy can end between any two of its first statements.
#[test]
fn copy_that_ended_before_its_state_table_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(&format!(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v); INSERT INTO t {} SELECT n, n FROM n",
        numbers()
    ));
    for engine in ["sqlite", "postgres", "mysql", "mariadb"] {
        let Some(to) = Place::new(engine, folder.path()) else { continue };
        let stop = std::sync::atomic::AtomicBool::new(true);
        crate::common::watched(&from.url(), &to.url(), "", &stop, &mut |_| {}).unwrap_err();
        to.ask("DROP TABLE kurabe_copy");
        assert_ne!(to.ask("SELECT count(*) FROM kurabe_marker"), "0");
        copy_all(&from, &to).unwrap_or_else(|error| panic!("{engine}: {error}"));
        assert_eq!(to.ask("SELECT count(*) FROM t"), ROWS.to_string());
    }
}

/// Copies between servers of one kind, with nothing accepted but what is named.
fn same(engine: &str, sql: &str, accept: &str) -> Option<(tempfile::TempDir, Place, Place)> {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (Place::new(engine, folder.path())?, Place::new(engine, folder.path())?);
    from.ask(sql);
    if engine == "sqlite" {
        // The second file is named after the first exists.
        let to = Place::new(engine, folder.path()).unwrap();
        copy(&from.url(), &to.url(), accept).unwrap();
        return Some((folder, from, to));
    }
    copy(&from.url(), &to.url(), accept).unwrap();
    Some((folder, from, to))
}

#[test]
fn sqlite_tables_keep_their_own_text() {
    let sql = "CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, x TEXT); \
        INSERT INTO a (x) VALUES ('1'), ('2'), ('3'); DELETE FROM a WHERE id = 3; \
        CREATE TABLE b (k TEXT PRIMARY KEY, v ANY) STRICT, WITHOUT ROWID; \
        INSERT INTO b VALUES ('a', 1), ('b', 'x'), ('c', 2.5), ('d', x'00ff'), ('e', 1e300 * 1e300); \
        CREATE TABLE c (id INTEGER PRIMARY KEY, x INT DEFAULT (1+1) CHECK (x > 0), y TEXT DEFAULT \"q\", \
          z TEXT COLLATE RTRIM, g INT AS (x * 2) VIRTUAL, UNIQUE (z) ON CONFLICT IGNORE); \
        INSERT INTO c (x, z) VALUES (3, 'z'); CREATE INDEX some ON c (x DESC) WHERE x > 1; \
        CREATE UNIQUE INDEX fold ON c (y COLLATE NOCASE); \
        CREATE TRIGGER count_c AFTER INSERT ON c BEGIN UPDATE a SET x = x || '!'; END; \
        CREATE TABLE d (id INTEGER PRIMARY KEY, a INT REFERENCES a DEFERRABLE INITIALLY DEFERRED); \
        INSERT INTO d VALUES (1, 99)";
    let Some((_folder, from, to)) = same("sqlite", sql, "") else { return };
    let schema = "SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name";
    assert_eq!(to.ask(schema), from.ask(schema));
    let values =
        "SELECT k, typeof(v), quote(v) FROM b; SELECT *, typeof(x) FROM c; SELECT * FROM a; SELECT * FROM d";
    assert_eq!(to.ask(values), from.ask(values));
    assert_eq!(to.ask("INSERT INTO a (x) VALUES ('new'); SELECT max(id) FROM a"), "4");
}

#[test]
fn mysql_tables_keep_their_own_text() {
    let sql = "CREATE TABLE t (id int PRIMARY KEY, title text, v varchar(500), g point NOT NULL, e int AS (id * 2) STORED, \
          c int CHECK (c > 0), d datetime DEFAULT (now() + interval 1 day), b binary(1) DEFAULT '0', f float, j bit(64), \
          KEY k (title(20)), UNIQUE KEY kv (v(100)), SPATIAL INDEX (g), FULLTEXT KEY (title)); \
        INSERT INTO t (id, title, v, g, c, f, j) VALUES (1, 'a', 'b', point(1, 2), 3, 0.1, 18446744073709551615); \
        CREATE TABLE n (id int AUTO_INCREMENT PRIMARY KEY, x int); INSERT INTO n (x) VALUES (1), (2), (3); \
        ALTER TABLE n AUTO_INCREMENT = 1000; INSERT INTO n (x) VALUES (4); DELETE FROM n WHERE id >= 1000; \
        CREATE TABLE u (name varchar(20) PRIMARY KEY, id int NOT NULL AUTO_INCREMENT, UNIQUE KEY (id)); \
        INSERT INTO u (name) VALUES ('a'), ('b'); \
        CREATE TABLE h (h bigint unsigned PRIMARY KEY, v int); \
        INSERT INTO h VALUES (1, 1), (9223372036854775807, 2), (9223372036854775808, 3), (18446744073709551615, 4); \
        CREATE TABLE p (id int PRIMARY KEY, c int) PARTITION BY HASH (id) PARTITIONS 4; INSERT INTO p VALUES (1, 1); \
        CREATE TABLE kid (id int PRIMARY KEY, n int, CONSTRAINT of_n FOREIGN KEY (n) REFERENCES n (id) ON DELETE CASCADE); \
        INSERT INTO kid VALUES (1, 2)";
    for engine in ["mysql", "mariadb"] {
        let Some((_folder, from, to)) = same(engine, sql, "") else { continue };
        for table in ["t", "n", "u", "h", "p", "kid"] {
            let mut lines: Vec<Vec<String>> = [&from, &to]
                .map(|place| place.ask(&format!("SHOW CREATE TABLE {table}")))
                .iter()
                .map(|text| text.lines().map(|line| line.trim_end_matches(',').to_owned()).collect())
                .collect();
            // Indexes that were added later come in another order.
            for lines in &mut lines {
                lines.sort();
            }
            assert_eq!(lines[0], lines[1], "{engine} {table}");
        }
        let values = "SELECT id, ST_AsText(g), e, f, HEX(j), HEX(b) FROM t; SELECT * FROM h ORDER BY h; SELECT * FROM kid";
        assert_eq!(to.ask(values), from.ask(values), "{engine}");
        assert_eq!(to.ask("INSERT INTO n (x) VALUES (9); SELECT LAST_INSERT_ID()"), "1001", "{engine}");
    }
    let history = "CREATE TABLE t (id int PRIMARY KEY, v int) WITH SYSTEM VERSIONING; INSERT INTO t VALUES (1, 1); UPDATE t SET v = 2";
    let folder = tempfile::tempdir().unwrap();
    let Some(from) = Place::new("mariadb", folder.path()) else { return };
    from.ask(history);
    let Some(to) = Place::new("mariadb", folder.path()) else { return };
    assert!(lists(&planned(&from, &to).unwrap(), "table-option", "t past"));
    copy(&from.url(), &to.url(), "table-option").unwrap();
    assert_eq!(to.ask("SELECT count(*) FROM t FOR SYSTEM_TIME ALL"), "1");
}

#[test]
fn postgres_tables_keep_the_servers_own_text() {
    let sql = "CREATE TYPE mood AS ENUM ('ok', 'bad'); CREATE DOMAIN short AS text CHECK (length(value) <= 3); \
        CREATE TYPE pair AS (a int, b mood); CREATE SEQUENCE ords START 5; CREATE EXTENSION citext; \
        CREATE TABLE person (id serial PRIMARY KEY, m mood DEFAULT 'ok', s short, moods mood[], ab pair, n numeric(5,-2), \
          o text DEFAULT 'ord-' || nextval('ords'), day date DEFAULT '2024-01-01'::date + make_interval(days => 1), \
          g int GENERATED ALWAYS AS (length(s)) STORED, price numeric(8,2), doc json, docb jsonb, w varchar(3) COLLATE \"C\", ci citext); \
        INSERT INTO person (ci, m, s, moods, ab, n, price, doc, docb) VALUES ('Ci', 'bad', 'abc', '{ok,bad}', '(1,ok)', 1234567, 1.50, \
          '{ \"b\": 1.0, \"a\" : 1 }', '{\"b\": 1.00, \"a\": 1}'); \
        CREATE TABLE p (a int, b int, PRIMARY KEY (a, b)); INSERT INTO p VALUES (1, 1); \
        CREATE TABLE c (id bigint GENERATED ALWAYS AS IDENTITY (START WITH 1000 INCREMENT BY 10) PRIMARY KEY, a int, b int, \
          u int UNIQUE DEFERRABLE INITIALLY DEFERRED, x int CHECK (x > 0), \
          FOREIGN KEY (a, b) REFERENCES p ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED); \
        CREATE INDEX i1 ON c (a DESC NULLS LAST) INCLUDE (b); \
        CREATE EXTENSION btree_gist; CREATE INDEX box ON c USING gist (a, b); \
        INSERT INTO c (a, b, u) SELECT 1, 1, g FROM generate_series(1, 5) g; DELETE FROM c WHERE id > 1020; \
        CREATE TABLE n (id int PRIMARY KEY, a int, b int); INSERT INTO n VALUES (1, 9, 9); \
        ALTER TABLE n ADD CONSTRAINT nv FOREIGN KEY (a, b) REFERENCES p NOT VALID; \
        ALTER TABLE n ADD CONSTRAINT ck CHECK (a < 5) NOT VALID; \
        CREATE TABLE m (id int PRIMARY KEY, a int, b int, FOREIGN KEY (a, b) REFERENCES p MATCH FULL); \
        CREATE UNLOGGED TABLE fast (id int, x text) WITH (fillfactor = 70); INSERT INTO fast VALUES (1, 'x'), (1, 'x'); \
        CREATE INDEX i2 ON person (lower(s)) WHERE price > 1; \
        CREATE INDEX i3 ON person USING gin (docb); CREATE UNIQUE INDEX i4 ON person (s text_pattern_ops)";
    let Some((_folder, from, to)) = same("postgres", sql, "") else { return };
    for sql in [
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid > 16384 AND indrelid::regclass::text !~ 'pg_' ORDER BY 1",
        "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = \
         'public'::regnamespace ORDER BY 1::text, 2",
        "SELECT table_name, column_name, column_default, is_nullable, is_identity, identity_generation, identity_start, \
         generation_expression, udt_name, collation_name FROM information_schema.columns WHERE table_schema = 'public' \
         ORDER BY 1, ordinal_position",
        "SELECT relname, relpersistence, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1",
        "SELECT * FROM person; SELECT * FROM c ORDER BY id; SELECT * FROM n; SELECT * FROM fast",
        "INSERT INTO c (a, b) VALUES (1, 1) RETURNING id; INSERT INTO person (s) VALUES ('x') RETURNING id, o",
    ] {
        assert_eq!(to.ask(sql), from.ask(sql), "{sql}");
    }
}

#[test]
fn what_other_engines_do_not_get_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(postgres) = Place::new("postgres", folder.path()) else { return };
    postgres.ask(
        "CREATE TABLE p (id int PRIMARY KEY); CREATE DOMAIN short AS text CHECK (length(value) <= 3); \
         CREATE TABLE c (id int GENERATED ALWAYS AS IDENTITY (INCREMENT BY 10) PRIMARY KEY, \
           p int REFERENCES p DEFERRABLE INITIALLY DEFERRED, u int UNIQUE DEFERRABLE, s short, \
           o text DEFAULT 'ord-' || id_of(1)::text)"
            .replace(" DEFAULT 'ord-' || id_of(1)::text", " DEFAULT 'ord-' || clock_timestamp()::text")
            .as_str(),
    );
    postgres.ask(
        "CREATE INDEX i1 ON c (p DESC) INCLUDE (u); CREATE UNLOGGED TABLE fast (id int PRIMARY KEY); \
         CREATE TABLE cust (id int PRIMARY KEY); INSERT INTO cust SELECT generate_series(1, 10); \
         CREATE TABLE pay (id int, cust int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day); \
         CREATE TABLE pay_1 PARTITION OF pay FOR VALUES FROM ('2024-01-01') TO ('2024-07-01'); \
         CREATE TABLE pay_2 PARTITION OF pay FOR VALUES FROM ('2024-07-01') TO ('2025-01-01'); \
         ALTER TABLE pay_1 ADD FOREIGN KEY (cust) REFERENCES cust (id); ALTER TABLE pay_1 ADD CHECK (cust > 0); \
         CREATE INDEX pay_1_cust ON pay_1 (cust); \
         CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; \
         CREATE TRIGGER tr BEFORE INSERT ON pay_1 FOR EACH ROW EXECUTE FUNCTION f(); \
         CREATE TABLE top (id int); CREATE TABLE sub () INHERITS (top); \
         INSERT INTO pay SELECT g, 1 + g % 10, date '2024-01-01' + g FROM generate_series(1, 300) g",
    );
    let to = Place::new("sqlite", folder.path()).unwrap();
    let plan = planned(&postgres, &to).unwrap();
    for (kind, words) in [
        ("constraint", "c.c_p_fkey DEFERRABLE"),
        ("constraint", "c.c_u_key DEFERRABLE"),
        ("identity", "c.id ALWAYS 10"),
        ("check", "c.s length"),
        ("default", "c.o clock_timestamp"),
        ("index-option", "c.i1 DESC INCLUDE"),
        ("table-option", "fast UNLOGGED"),
        ("table-option", "pay partitioned RANGE"),
        ("table-option", "sub inherits top"),
        ("foreign-key", "pay_1 cust"),
        ("check", "pay_1 cust"),
        ("index-option", "pay_1_cust"),
        ("trigger", "pay tr"),
    ] {
        assert!(lists(&plan, kind, words), "{kind} {words}: {:#?}", plan.issues);
    }
    copy_all(&postgres, &to).unwrap();
    assert_eq!(to.ask("SELECT count(*) FROM pay"), "300");
    // Of SQLite.
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(
        "CREATE TABLE account (id INTEGER PRIMARY KEY AUTOINCREMENT, email TEXT NOT NULL, name TEXT, nickname TEXT COLLATE NOCASE, \
           n INT CHECK (n > 0), UNIQUE (name) ON CONFLICT REPLACE); \
         CREATE UNIQUE INDEX account_email ON account (email COLLATE NOCASE); CREATE INDEX by_n ON account (n DESC); \
         INSERT INTO account VALUES (1, 'a', 'b', 'c', 1), (7, 'd', 'e', 'f', 2); DELETE FROM account WHERE id = 7",
    );
    let plan = planned(&from, &postgres).unwrap();
    for (kind, words) in [
        ("collation", "account.account_email NOCASE"),
        ("collation", "account.nickname NOCASE"),
        ("check", "n > 0"),
        ("constraint", "CONFLICT REPLACE"),
        ("index-option", "by_n DESC"),
    ] {
        assert!(lists(&plan, kind, words), "{kind} {words}: {:#?}", plan.issues);
    }
    assert!(!lists(&plan, "collation", "account.name "), "{:#?}", plan.issues);
    let Some(to) = Place::new("postgres", folder.path()) else { return };
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("INSERT INTO account (email) VALUES ('x') RETURNING id"), "8");
}

#[test]
fn foreign_keys_that_cannot_be_made_are_listed_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let Some(to) = Place::new("postgres", folder.path()) else { return };
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (id INTEGER PRIMARY KEY, p INT REFERENCES p (id)); \
         CREATE TABLE d (id INTEGER PRIMARY KEY, p INT REFERENCES p (id)); INSERT INTO p VALUES (1); \
         INSERT INTO c VALUES (1, 99), (2, NULL), (3, 1); INSERT INTO d VALUES (1, 1)",
    );
    let plan = planned(&from, &to).unwrap();
    assert!(lists(&plan, "foreign-key", "c. 1 rows refer to no row of p"), "{:?}", plan.issues);
    assert_eq!(plan.issues.len(), 1, "{:?}", plan.issues);
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT conrelid::regclass FROM pg_constraint WHERE contype = 'f'"), "d");
    for engine in ["mysql", "mariadb"] {
        let (Some(from), Some(to)) =
            (Place::new("postgres", folder.path()), Place::new(engine, folder.path()))
        else {
            continue;
        };
        from.ask(
            "CREATE TABLE p (id bigint PRIMARY KEY); INSERT INTO p VALUES (1); \
             CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p (id)); INSERT INTO c VALUES (1, 1); \
             CREATE TABLE d (id int PRIMARY KEY, p bigint REFERENCES p (id)); INSERT INTO d VALUES (1, 1); \
             CREATE TABLE e (id int PRIMARY KEY, p bigint NOT NULL REFERENCES p (id) ON DELETE SET NULL)",
        );
        assert!(lists(&planned(&from, &to).unwrap(), "foreign-key", "e.e_p_fkey SET NULL"));
        assert!(lists(&planned(&from, &to).unwrap(), "foreign-key", "c.c_p_fkey one type"));
        copy_all(&from, &to).unwrap();
        let keys = "SELECT table_name FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()";
        assert_eq!(to.ask(keys), "d");
    }
    let (Some(from), Some(to)) =
        (Place::new("postgres", folder.path()), Place::new("firebird", folder.path()))
    else {
        return;
    };
    from.ask(
        "CREATE TABLE p (id int PRIMARY KEY); \
         CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p (id) ON UPDATE CASCADE ON DELETE RESTRICT)",
    );
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT TRIM(RDB$UPDATE_RULE) FROM RDB$REF_CONSTRAINTS").trim(), "CASCADE");
}

/// Documents go as they were written to engines that keep text; what others lose is listed.
#[test]
fn documents_keep_their_text_or_the_plan_lists_what_they_lose() {
    let folder = tempfile::tempdir().unwrap();
    let Some(from) = Place::new("postgres", folder.path()) else { return };
    let document = r#"{ "b": 1.00, "a": 12345678901234567890123.5, "b": 2 }"#;
    from.ask(&format!(
        "CREATE TABLE t (id int PRIMARY KEY, j json, n numeric); INSERT INTO t VALUES (1, '{document}', 1e40)"
    ));
    let to = Place::new("sqlite", folder.path()).unwrap();
    assert!(!lists(&planned(&from, &to).unwrap(), "json", "t.j"));
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT j FROM t"), document);
    let Some(to) = Place::new("mysql", folder.path()) else { return };
    let plan = planned(&from, &to).unwrap();
    assert!(lists(&plan, "json", "t.j keys 64"), "{:?}", plan.issues);
    assert!(lists(&plan, "decimal", "t.n more digits"), "{:?}", plan.issues);
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT j->'$.b', n FROM t"), format!("2\t1{}", "0".repeat(40)));
}

/// Values that are not what a column's declared type says, of kinds that no engine reads.
#[test]
fn texts_that_are_no_numbers_or_times_are_copied_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let Some(to) = Place::new("postgres", folder.path()) else { return };
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, d DECIMAL_TEXT(9,2), u UNSIGNED64_TEXT, h TIME_TEXT(6), s DATETIME); \
         INSERT INTO t VALUES (1, 'Inf', '-1', '0', '2024-01-01 00:00:00.123456789')",
    );
    let plan = planned(&from, &to).unwrap();
    for column in ["t.d", "t.u", "t.h", "t.s"] {
        assert!(lists(&plan, "storage-class", column), "{column}: {:?}", plan.issues);
    }
    copy_all(&from, &to).unwrap();
    assert_eq!(to.ask("SELECT d, u, h, s FROM t"), "Inf|-1|0|2024-01-01 00:00:00.123456789");
}

#[test]
fn types_and_names_that_the_target_lacks_are_found_by_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let Some(from) = Place::new("postgres", folder.path()) else { return };
    from.ask(
        "CREATE TABLE wide (id int PRIMARY KEY, c1 varchar(4000), c2 varchar(4000), c3 varchar(4000), c4 varchar(4000), \
           c5 varchar(4000)); INSERT INTO wide VALUES (1, 'a', 'b', 'c', 'd', 'e'); \
         CREATE TYPE mood AS ENUM ('ok', 'bad'); CREATE TABLE person (id uuid PRIMARY KEY, m mood, i interval, n inet); \
         CREATE INDEX ON person (m); INSERT INTO person VALUES (md5('a')::uuid, 'bad', '1 day', '10.0.0.1'); \
         CREATE TABLE t (id int PRIMARY KEY, a numeric(5,-2), b numeric(3,5)); INSERT INTO t VALUES (1, 1234500, 0.00123)",
    );
    for engine in ["mysql", "mariadb"] {
        let Some(to) = Place::new(engine, folder.path()) else { continue };
        let plan = planned(&from, &to).unwrap();
        assert!(lists(&plan, "text-length", "wide. maximum length"), "{engine}: {:?}", plan.issues);
        copy_all(&from, &to).unwrap();
        assert_eq!(to.ask("SELECT c1, c5 FROM wide"), "a\te");
        assert_eq!(to.ask("SELECT a, b FROM t"), "1234500\t0.00123");
        assert_eq!(to.ask("SELECT m, n FROM person"), "bad\t10.0.0.1/32");
    }
    let cased = Place::new("postgres", folder.path()).unwrap();
    cased.ask("CREATE TABLE t (id int PRIMARY KEY, \"Name\" text, name text)");
    let tables = Place::new("postgres", folder.path()).unwrap();
    tables.ask("CREATE TABLE \"Order\" (id int); CREATE TABLE \"order\" (id int)");
    let to = Place::new("sqlite", folder.path()).unwrap();
    for from in [&cased, &tables] {
        let error = planned(from, &to).unwrap_err().to_string();
        assert!(error.contains("are one name on the target"), "{error}");
    }
    let (Some(mariadb), Some(mysql)) =
        (Place::new("mariadb", folder.path()), Place::new("mysql", folder.path()))
    else {
        return;
    };
    mariadb.ask(
        "CREATE TABLE t (id uuid PRIMARY KEY, ip inet6, j json, g point, n varchar(0), c char(0), w varchar(10)); \
         INSERT INTO t VALUES ('123e4567-e89b-12d3-a456-426655440000', '::1', '{\"b\":1,\"a\":[]}', point(1, 2), '', '', 'x')",
    );
    let plan = planned(&mariadb, &mysql).unwrap();
    assert!(lists(&plan, "type", "t.ip inet6") && lists(&plan, "json", "t.j keys"), "{:?}", plan.issues);
    assert_eq!(plan.issues.len(), 2, "{:?}", plan.issues);
    copy_all(&mariadb, &mysql).unwrap();
    assert_eq!(
        mysql.ask("SELECT id, ip, j->'$.b', ST_AsText(g), w FROM t"),
        "123e4567-e89b-12d3-a456-426655440000\t::1\t1\tPOINT(1 2)\tx"
    );
    let to = Place::new("postgres", folder.path()).unwrap();
    copy_all(&mariadb, &to).unwrap();
    assert_eq!(
        to.ask("SELECT id, ip, g, n, w FROM t"),
        "123e4567-e89b-12d3-a456-426655440000|::1|POINT(1 2)||x"
    );
}

/// A type of an extension, or of another schema, that the target's server does not have.
#[test]
fn type_that_the_other_server_does_not_have_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(from), Some(to)) =
        (Place::new("postgres", folder.path()), Place::new("postgres", folder.path()))
    else {
        return;
    };
    from.ask("CREATE SCHEMA other; CREATE TYPE other.kind AS ENUM ('a'); CREATE TABLE t (id int PRIMARY KEY, k other.kind)");
    let error = planned(&from, &to).unwrap_err().to_string();
    assert!(error.contains("t.k: the target has no type other.kind"), "{error}");
    // The database compares by ICU, whatever its locale of libc says.
    from.ask("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE)");
    let (made, ..) = from.try_ask(
        "CREATE DATABASE icu TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LC_COLLATE 'C' LC_CTYPE 'C'",
    );
    let Place::Server(server) = &from else { panic!("it is a server") };
    if made {
        let icu = format!("postgres://kurabe@127.0.0.1:{}/icu", server.port());
        crate::common::run(&icu, &["CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE)"]);
        let error = copy(&icu, &to.url(), "").unwrap_err().to_string();
        assert!(error.contains("collation"), "{error}");
    }
}

/// A file in WAL mode is read as it was when the copy began, while others write to it.
#[test]
fn writers_of_a_file_in_wal_mode_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let from = Place::new("sqlite", folder.path()).unwrap();
    from.ask(&format!(
        "PRAGMA journal_mode = WAL; CREATE TABLE t (k INTEGER PRIMARY KEY, v); INSERT INTO t {} SELECT n, n FROM n",
        numbers()
    ));
    let to = Place::File(folder.path().join("to.db"));
    let mut written = 0;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let reader = format!("{}?access=read", from.url());
    crate::common::watched(&reader, &to.url(), "", &stop, &mut |_| {
        from.ask("INSERT INTO t (v) VALUES ('new')");
        written += 1;
    })
    .unwrap();
    assert!(written > 3);
    assert_eq!(to.ask("SELECT count(*) FROM t"), ROWS.to_string());
    let mut side = crate::common::side(&reader);
    assert_eq!(side.engine.hinders(&mut side).unwrap(), None);
    let mut side = crate::common::side(&to.url());
    // The driver of runs sets WAL mode; a file of others has a journal.
    side.run("PRAGMA journal_mode = DELETE").unwrap();
    assert!(side.engine.hinders(&mut side).unwrap().is_some());
}
