//! Settings of a server's new sessions: a replay sends statements under the recorded ones.

use super::{captured, replay, report};
use crate::servers::common::{has_program, sql};
use crate::support::Place;
use kurabe_testbed::testing;

const MYSQL_DATA: &str = "DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, n int); \
                          INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);";

/// Each statement has another answer under one of the settings.
const MYSQL_STATEMENTS: &str = r#"SELECT * FROM t ORDER BY id;
UPDATE t SET n = 11 WHERE id = 1;
ROLLBACK;
SELECT n FROM t WHERE id = 1;
BEGIN;
UPDATE t SET n = 21 WHERE id = 2;
COMMIT;
UPDATE t SET n = 22 WHERE id = 2;
ROLLBACK;
SELECT n FROM t WHERE id = 2;
SELECT "n" FROM t WHERE id = 3;
SELECT 'a\\b', LENGTH('a\nb');
SELECT 'a' || 'b';
INSERT INTO t VALUES (4, 'x');
SELECT n FROM t WHERE id = 4;
"#;

/// Settings of a server, and the number of rows that the statements' answers have then: a limit cuts the first, without strictness
/// the last has one.
const MYSQL_SETTINGS: [(&str, u64); 5] = [
    ("sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES', sql_select_limit = 1", 6),
    ("sql_mode = 'NO_BACKSLASH_ESCAPES', completion_type = CHAIN", 9),
    ("sql_mode = 'TRADITIONAL', autocommit = 0", 8),
    ("sql_mode = ''", 9),
    ("sql_mode = 'ORACLE'", 9),
];

#[test]
fn statements_of_mysql_are_replayed_under_the_settings_of_the_recorded_server() {
    statements_are_replayed_under_the_settings_of_the_recorded_server("mysql");
}

#[test]
fn statements_of_mariadb_are_replayed_under_the_settings_of_the_recorded_server() {
    statements_are_replayed_under_the_settings_of_the_recorded_server("mariadb");
}

fn statements_are_replayed_under_the_settings_of_the_recorded_server(engine: &str) {
    let Some(server) = testing::own_server(engine) else { return };
    if !has_program("mysql") {
        return;
    }
    let place = Place::that_starts_servers();
    place.file("statements.sql", MYSQL_STATEMENTS);
    let data = place.file("data.sql", MYSQL_DATA);
    let client = "mysql --no-defaults --force --host=127.0.0.1 --port=$MYSQL_TCP_PORT --user=root --skip-ssl kurabe < statements.sql || true";
    let up = format!("up:{engine}");
    let record = |name: &str| {
        sql(&server, "", &format!("SET autocommit = 1; {MYSQL_DATA}")).unwrap();
        captured(&place, name, &server, client)
    };
    // A server whose sessions are not usual.
    let path = record("usual");
    let other = format!(
        "{up}?init_connect=SET%20sql_select_limit%20%3D%201&completion_type=CHAIN&autocommit=0&sql_mode=NO_ENGINE_SUBSTITUTION"
    );
    report(&place, &path, &[&other, "--data", &data]);
    for (number, (settings, rows)) in MYSQL_SETTINGS.iter().enumerate() {
        // MySQL has no mode for Oracle's language.
        if engine == "mysql" && settings.contains("ORACLE") {
            continue;
        }
        sql(&server, "", &format!("SET GLOBAL {}", settings.replace(", ", ", GLOBAL "))).unwrap();
        let path = record(&number.to_string());
        let shown = crate::capture::shown(&place, &path);
        assert_eq!(crate::capture::sum(&shown["statements"], "rows"), *rows, "{settings}: {shown:#}");
        report(&place, &path, &[&up, "--data", &data]);
        sql(
            &server,
            "",
            "SET GLOBAL sql_mode = DEFAULT, GLOBAL sql_select_limit = DEFAULT, GLOBAL completion_type = DEFAULT, GLOBAL autocommit = 1",
        )
        .unwrap();
    }
}

const POSTGRES_DATA: &str = "CREATE SCHEMA other; CREATE TABLE other.t (n int); CREATE TABLE t (n int); \
                             INSERT INTO other.t VALUES (1), (2); INSERT INTO t VALUES (7);";

const POSTGRES_READS: &str = "SELECT date '2026-11-29', decode('01ff', 'hex'); SELECT n FROM t ORDER BY n;";

const POSTGRES_STATEMENTS: &str = r"SELECT 'a\\b';
SELECT date '2026-11-29', interval '1 day -2 hours', decode('01ff', 'hex');
SELECT 0.1::float8 + 0.2::float8, timestamptz '2026-11-29 00:00:00+00';
SELECT n FROM t ORDER BY n;
INSERT INTO t VALUES (3);
SELECT n FROM t ORDER BY n;
";

const POSTGRES_SETTINGS: [&str; 2] =
    ["default_transaction_read_only = on", "standard_conforming_strings = off"];

#[test]
fn statements_of_postgres_are_replayed_under_the_settings_of_the_recorded_role_and_database() {
    let Some(server) = testing::own_server("postgres") else { return };
    if !has_program("psql") {
        return;
    }
    let place = Place::that_starts_servers();
    testing::make_superuser(&server);
    let data = place.file("data.sql", POSTGRES_DATA);
    sql(&server, "", POSTGRES_DATA).unwrap();
    place.file("reads.sql", POSTGRES_READS);
    let usual = captured(&place, "usual", &server, "psql -qAtXf reads.sql");
    sql(
        &server,
        "",
        "ALTER DATABASE kurabe SET DateStyle = German; ALTER DATABASE kurabe SET IntervalStyle = sql_standard; \
         ALTER ROLE kurabe SET bytea_output = escape; ALTER ROLE kurabe SET search_path = other, public; \
         ALTER DATABASE kurabe SET extra_float_digits = -3; ALTER DATABASE kurabe SET TimeZone = 'Asia/Tokyo'",
    )
    .unwrap();
    // A database that has got other settings since.
    report(&place, &usual, &[server.url()]);
    place.file("statements.sql", POSTGRES_STATEMENTS);
    for (number, setting) in POSTGRES_SETTINGS.iter().enumerate() {
        sql(&server, "", &format!("ALTER DATABASE kurabe SET {setting}")).unwrap();
        let path = captured(&place, &number.to_string(), &server, "psql -qAtXf statements.sql");
        report(&place, &path, &["up:postgres", "--data", &data]);
        let name = setting.split(' ').next().unwrap();
        sql(&server, "", &format!("SET TRANSACTION READ WRITE; ALTER DATABASE kurabe RESET {name}")).unwrap();
    }
}

/// Statements in whose text ORDER BY is found under the recorded setting only; what makes that of new sessions; and a client of them.
const ORDERED: [(&str, &str, &str, &str); 3] = [
    (
        "mysql",
        "SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES'",
        r"SELECT '\' AS a, name FROM t ORDER BY n;",
        MYSQL_CLIENT,
    ),
    (
        "mariadb",
        "SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES'",
        r"SELECT '\' AS a, name FROM t ORDER BY n;",
        MYSQL_CLIENT,
    ),
    (
        "postgres",
        "ALTER DATABASE kurabe SET standard_conforming_strings = off",
        r"SELECT 'it\'s' AS a, name FROM t ORDER BY n;",
        "psql -qAtXf statements.sql",
    ),
];

const MYSQL_CLIENT: &str = "mysql --no-defaults --host=127.0.0.1 --port=$MYSQL_TCP_PORT --user=root --skip-ssl kurabe < statements.sql";

#[test]
fn order_of_rows_is_compared_in_texts_that_only_the_recorded_sessions_read_so() {
    for (engine, set, statement, client) in ORDERED {
        let Some(server) = testing::own_server(engine) else { continue };
        if !has_program(client.split(' ').next().unwrap()) {
            continue;
        }
        let place = Place::new();
        place.file("statements.sql", statement);
        let made = "CREATE TABLE t (n int, name varchar(9)); INSERT INTO t VALUES (1, 'x'), (2, 'y')";
        sql(&server, "", &format!("{made}; {set}")).unwrap();
        let path = captured(&place, "ordered", &server, client);
        report(&place, &path, &[server.url()]);
        sql(&server, "", "UPDATE t SET n = 3 - n").unwrap();
        let answer = replay(&place, &path, &[server.url()]);
        let all = format!("{}{}", answer.out, answer.err);
        assert!(answer.code != Some(0) && all.contains("other values in 2 rows"), "{engine}: {all}");
    }
}
