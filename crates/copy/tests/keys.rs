//! Every type that can be a key, with more rows than a page has, from each engine to each engine. Rows are counted by the
//! engines' own programs.

use super::common::{Place, copy_as, wanted_all};
use kurabe_copy::page::PageSize;

/// The engines, each as a source and a target.
pub const ENGINES: [&str; 4] = ["sqlite", "postgres", "mysql", "mariadb"];

/// More than a page of rows.
const ROWS: u32 = 2_100;

/// The declaration of column `k`, perhaps with more columns or a key after it, the value of the `n`th row, and the number
/// of rows where the type has fewer values.
type Key = (&'static str, &'static str, u32);

const SQLITE: &[Key] = &[
    ("k PRIMARY KEY", "n", ROWS),
    ("k PRIMARY KEY", "'setting/' || n", ROWS),
    ("k TEXT PRIMARY KEY", "CASE n WHEN 7 THEN x'00ff' ELSE 'k' || n END", ROWS),
    (
        "k PRIMARY KEY",
        "CASE n % 4 WHEN 0 THEN n WHEN 1 THEN n + 0.25 WHEN 2 THEN 't' || n ELSE CAST('b' || n AS BLOB) END",
        ROWS,
    ),
    ("k BLOB PRIMARY KEY", "CAST('b' || n AS BLOB)", ROWS),
    ("k REAL PRIMARY KEY", "n / 8.0", ROWS),
    ("k NUMERIC PRIMARY KEY", "n * 1.5", ROWS),
    ("k TEXT COLLATE NOCASE PRIMARY KEY", "'Name ' || n", ROWS),
    ("k INTEGER PRIMARY KEY", "n - 150", ROWS),
    ("k DATETIME PRIMARY KEY", "datetime('2024-01-01', n || ' hours')", ROWS),
    ("k DATE PRIMARY KEY", "date('2024-01-01', n || ' days')", ROWS),
    ("k BOOLEAN PRIMARY KEY", "n - 1", 2),
    ("k TEXT, rowid INT", "n % 3", ROWS),
    ("k TEXT, rowid INT, _rowid_ INT, oid INT", "n % 3", ROWS),
];

const POSTGRES: &[Key] = &[
    ("k smallint PRIMARY KEY", "n - 150", ROWS),
    ("k integer PRIMARY KEY", "n * 500003", ROWS),
    ("k bigint PRIMARY KEY", "n::bigint * 1000000000000", ROWS),
    ("k numeric(10) PRIMARY KEY", "CASE WHEN n > 150 THEN 90000 + n ELSE n END", ROWS),
    ("k numeric PRIMARY KEY", "n / 7.0", ROWS),
    ("k real PRIMARY KEY", "n / 8.0", ROWS),
    ("k double precision PRIMARY KEY", "n / 16.0", ROWS),
    ("k money PRIMARY KEY", "n::numeric::money", ROWS),
    ("k boolean PRIMARY KEY", "n = 1", 2),
    ("k text PRIMARY KEY", "'k' || n", ROWS),
    ("k text COLLATE \"C\" PRIMARY KEY", "CASE n % 2 WHEN 0 THEN 'B' ELSE 'a' END || n", ROWS),
    ("k varchar(20) PRIMARY KEY", "'é' || n", ROWS),
    ("k char(8) PRIMARY KEY", "'c' || n", ROWS),
    ("k name PRIMARY KEY", "'n' || n", ROWS),
    ("k \"char\" PRIMARY KEY", "chr(32 + n)::\"char\"", 90),
    ("k bytea PRIMARY KEY", "decode(lpad(to_hex(n * 77), 6, '0'), 'hex')", ROWS),
    ("k date PRIMARY KEY", "date '2024-01-01' + n", ROWS),
    ("k time PRIMARY KEY", "time '00:00' + n * interval '1 second'", ROWS),
    ("k timetz PRIMARY KEY", "timetz '00:00+02' + n * interval '1 second'", ROWS),
    ("k timestamp PRIMARY KEY", "timestamp '2024-01-01' + n * interval '1 hour 0.25 s'", ROWS),
    ("k timestamptz PRIMARY KEY", "timestamptz '2024-01-01 00:00:00+02' + n * interval '1 hour'", ROWS),
    ("k interval PRIMARY KEY", "n * interval '1 hour'", ROWS),
    ("k uuid PRIMARY KEY", "md5(n::text)::uuid", ROWS),
    ("k inet PRIMARY KEY", "inet '10.0.0.0' + n", ROWS),
    ("k cidr PRIMARY KEY", "(inet '10.0.0.0' + n)::cidr", ROWS),
    ("k macaddr PRIMARY KEY", "('08002b00' || lpad(to_hex(n), 4, '0'))::macaddr", ROWS),
    ("k macaddr8 PRIMARY KEY", "('08002b0102030' || lpad(to_hex(n), 3, '0'))::macaddr8", ROWS),
    ("k bit(16) PRIMARY KEY", "n::bit(16)", ROWS),
    ("k varbit PRIMARY KEY", "n::bit(16)::varbit", ROWS),
    ("k oid PRIMARY KEY", "n::oid", ROWS),
    ("k pg_lsn PRIMARY KEY", "'0/0'::pg_lsn + n", ROWS),
    ("k jsonb PRIMARY KEY", "jsonb_build_object('n', n)", ROWS),
    ("k int4range PRIMARY KEY", "int4range(n, n + 5)", ROWS),
    ("k integer[] PRIMARY KEY", "ARRAY[n, n % 7]", ROWS),
    ("k tsvector PRIMARY KEY", "to_tsvector('simple', 'w' || n)", ROWS),
    ("k mood PRIMARY KEY", "(enum_range(NULL::mood))[n]", 3),
    ("k code PRIMARY KEY", "('c' || n)::code", ROWS),
    ("k pair PRIMARY KEY", "ROW(n, 'x')::pair", ROWS),
];

/// Types of the two servers in common, and those of MariaDB.
const MYSQL: &[Key] = &[
    ("k tinyint unsigned PRIMARY KEY", "n - 1", 256),
    ("k tinyint(1) PRIMARY KEY", "n - 1", 2),
    ("k smallint PRIMARY KEY", "n - 150", ROWS),
    ("k mediumint unsigned PRIMARY KEY", "n * 4000", ROWS),
    ("k int PRIMARY KEY", "n - 150", ROWS),
    ("k bigint unsigned PRIMARY KEY", "18446744073709551615 - n", ROWS),
    ("k decimal(12,2) PRIMARY KEY", "n * 1.5", ROWS),
    ("k float PRIMARY KEY", "n / 8", ROWS),
    ("k double PRIMARY KEY", "n / 8", ROWS),
    ("k varchar(30) PRIMARY KEY", "CONCAT('Name ', n)", ROWS),
    ("k varchar(30) COLLATE utf8mb4_bin PRIMARY KEY", "CONCAT('é ', n)", ROWS),
    ("k varchar(30) CHARACTER SET latin1 PRIMARY KEY", "CONCAT('é ', n)", ROWS),
    ("k char(10) PRIMARY KEY", "CONCAT('c', n)", ROWS),
    ("k text NOT NULL, PRIMARY KEY (k(40))", "CONCAT('t', n)", ROWS),
    ("k blob NOT NULL, PRIMARY KEY (k(40))", "CONCAT('b', n)", ROWS),
    ("k varbinary(20) PRIMARY KEY", "UNHEX(LPAD(HEX(n * 77), 6, '0'))", ROWS),
    ("k binary(4) PRIMARY KEY", "UNHEX(LPAD(HEX(n + 16000000), 8, '0'))", ROWS),
    ("k date PRIMARY KEY", "DATE_ADD('2024-01-01', INTERVAL n DAY)", ROWS),
    ("k time PRIMARY KEY", "SEC_TO_TIME(n)", ROWS),
    ("k time(3) PRIMARY KEY", "SEC_TO_TIME(n / 8)", ROWS),
    ("k datetime(3) PRIMARY KEY", "DATE_ADD('2024-01-01 00:00:00.250', INTERVAL n HOUR)", ROWS),
    ("k timestamp NOT NULL PRIMARY KEY", "DATE_ADD('2024-05-01', INTERVAL n MINUTE)", ROWS),
    ("k year PRIMARY KEY", "1900 + n", 255),
    ("k bit(20) PRIMARY KEY", "n", ROWS),
    ("k enum('low','mid','high') PRIMARY KEY", "n", 3),
    ("k set('a','b','c','d','e','f','g','h','i','j','k','l','m') PRIMARY KEY", "n", ROWS),
];

const MARIADB: &[Key] = &[
    (
        "k uuid PRIMARY KEY",
        "CONCAT(LPAD(HEX(n * 7919 % 65536), 8, '0'), '-0000-1000-8000-000000000000')",
        ROWS,
    ),
    ("k inet6 PRIMARY KEY", "CONCAT('fe80::', HEX(n))", ROWS),
    ("k inet4 PRIMARY KEY", "INET_NTOA(167772160 + n)", ROWS),
];

/// Makes the tables of an engine: names and rows. Servers limit how deep a query may go on by itself.
fn made(from: &Place, engine: &str, keys: &[&Key]) -> Vec<(String, u32)> {
    let mut tables = Vec::new();
    for (at, (declared, value, rows)) in keys.iter().enumerate() {
        let without_rowid: &[&str] =
            if engine == "sqlite" && declared.contains("PRIMARY") { &["t", "w"] } else { &["t"] };
        for letter in without_rowid {
            let name = format!("{letter}{at}");
            let options = if *letter == "w" { " WITHOUT ROWID" } else { "" };
            let v = if engine.starts_with('m') { "CONCAT('v', n)" } else { "'v' || n" };
            // The key may not be the last declaration of the column.
            let (column, key) = declared
                .split_once(", PRIMARY")
                .map_or((*declared, String::new()), |(column, key)| (column, format!(", PRIMARY{key}")));
            from.ask(&format!(
                "CREATE TABLE {name} ({column}, v TEXT{key}){options}; \
                 INSERT INTO {name} (k, v) \
                 WITH RECURSIVE a(a) AS (SELECT 0 UNION ALL SELECT a + 1 FROM a WHERE a < 45) \
                 SELECT {value}, {v} FROM (SELECT x.a * 46 + y.a + 1 AS n FROM a x CROSS JOIN a y) numbers WHERE n <= {rows}"
            ));
            tables.push((name, *rows));
        }
    }
    tables
}

/// Copies all tables of an engine to the chosen ones and counts there.
pub fn sweep(engine: &str, chosen: &[&str]) {
    let (keys, before): (Vec<&Key>, _) = match engine {
        "sqlite" => (SQLITE.iter().collect(), ""),
        "postgres" => (
            POSTGRES.iter().collect(),
            "CREATE TYPE mood AS ENUM ('low', 'mid', 'high'); CREATE DOMAIN code AS text CHECK (length(VALUE) < 9); \
             CREATE TYPE pair AS (a int, b text)",
        ),
        "mysql" => (MYSQL.iter().collect(), ""),
        _ => (MYSQL.iter().chain(MARIADB).collect(), ""),
    };
    let Some(from) = Place::new(engine) else { return };
    if !before.is_empty() {
        from.ask(before);
    }
    let tables = made(&from, engine, &keys);
    for target in chosen.iter().copied() {
        let Some(to) = Place::new(target) else { continue };
        let done = copy_as(&from, &to, &wanted_all(PageSize::default()));
        let (_, done) = done.unwrap_or_else(|error| panic!("{engine} to {target}: {error}"));
        assert_eq!(done.len(), tables.len(), "{engine} to {target}");
        for (table, rows) in &tables {
            let distinct =
                if keys.iter().any(|(declared, ..)| declared.contains("rowid")) { "v" } else { "k" };
            let count = to
                .ask(&format!("SELECT COUNT(*), COUNT(DISTINCT {distinct}), COUNT(DISTINCT v) FROM {table}"));
            let found: Vec<&str> = count
                .split(|c: char| c == '|' || c.is_whitespace())
                .filter(|word| !word.is_empty())
                .collect();
            assert_eq!(found, vec![rows.to_string(); 3], "{engine} to {target}: {table}");
        }
        if engine == target && ["sqlite", "postgres"].contains(&engine) {
            for (table, _) in &tables {
                let exactly = if engine == "sqlite" {
                    format!("SELECT typeof(k), quote(k), v FROM {table} ORDER BY typeof(k), k, v")
                } else {
                    format!("SELECT md5(string_agg(k::text || v, ',' ORDER BY v)) FROM {table}")
                };
                assert_eq!(to.ask(&exactly), from.ask(&exactly), "{table}");
            }
        }
    }
}
