//! Statements that no list of words finds: what they call writes, or lets the session write. In a read-only session none changes
//! anything, however it is sent, and none opens the way for the next one.

use super::common::{connect, open};
use super::methods::{administer_by, has_mariadb_program};
use crate::read_only::{execute, literal, reader};
use kurabe_core::driver::{Driver, Session};
use kurabe_core::{ErrorKind, Result};
use kurabe_testbed::testing;
use std::process::Command;

/// What PostgreSQL's functions do, by innocent names. Each returns a number.
const POSTGRES_FUNCTIONS: &[(&str, &str, &str)] = &[
    ("area_of", "sql", "UPDATE theirs SET n = n + 1 RETURNING n"),
    ("name_of", "plpgsql", "BEGIN INSERT INTO theirs VALUES (9, 9); RETURN 1; END"),
    ("length_of", "plpgsql IMMUTABLE", "BEGIN PERFORM area_of(); RETURN 1; END"),
    ("photo_of", "sql", "SELECT lo_create(0)::bigint"),
    ("thumb_of", "sql", "SELECT lo_from_bytea(0, 'x')::bigint"),
    ("next_of", "sql", "SELECT nextval('numbers')"),
    ("first_of", "sql", "SELECT setval('numbers', 77)"),
    ("free_of", "sql", "SELECT length(set_config('default_transaction_read_only', 'off', false))::bigint"),
    ("loose_of", "sql", "SELECT length(set_config('transaction_read_only', 'off', false))::bigint"),
    ("open_of", "plpgsql", "BEGIN SET default_transaction_read_only = off; RETURN 1; END"),
    (
        "try_of",
        "plpgsql",
        "BEGIN UPDATE theirs SET n = 0; RETURN 1; EXCEPTION WHEN OTHERS THEN \
         PERFORM set_config('default_transaction_read_only', 'off', false); RETURN 2; END",
    ),
    ("drop_of", "plpgsql", "BEGIN EXECUTE 'DROP TABLE spare'; RETURN 1; END"),
    ("note_of", "plpgsql", "BEGIN EXECUTE 'COMMENT ON TABLE theirs IS ''x'''; RETURN 1; END"),
    ("role_of", "plpgsql", "BEGIN EXECUTE 'ALTER ROLE CURRENT_USER SET work_mem = 99'; RETURN 1; END"),
    (
        "wide_of",
        "plpgsql",
        "BEGIN EXECUTE 'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE'; RETURN 1; END",
    ),
    ("hide_of", "plpgsql", "BEGIN RETURN free_of() + photo_of(); END"),
];

/// Where a call may stand.
const POSTGRES_PLACES: &[&str] = &[
    "SELECT {}",
    "SELECT id FROM theirs WHERE {} > 0",
    "WITH a AS (SELECT {} AS v) SELECT v FROM a",
    "VALUES ({})",
    "SELECT * FROM generate_series(1, least({}, 3)) AS g (v)",
    "SELECT CASE WHEN {} > 0 THEN 1 END",
    "EXPLAIN (ANALYZE, COSTS off, TIMING off) SELECT {}",
    "SELECT 1 ORDER BY {}",
    "SELECT a.v FROM theirs, LATERAL (SELECT {} AS v) AS a",
    "(SELECT {}) UNION ALL (SELECT 2)",
    "/* BEGIN */ SELECT -- nothing\n {} /* a /* b */ c */",
    "SELECT count(*) FILTER (WHERE {} > 0) FROM theirs",
    "SELECT ARRAY(SELECT {})",
    "SELECT sum({}) OVER (ORDER BY id) FROM theirs",
];

const POSTGRES_MADE: &[&str] = &[
    "CREATE TABLE theirs (id bigint, n bigint)",
    "INSERT INTO theirs VALUES (1, 5), (2, 6)",
    "CREATE TABLE spare (id bigint)",
    "CREATE SEQUENCE numbers",
];

/// What calls these functions without naming one.
const POSTGRES_HIDDEN: &[&str] = &[
    "CREATE VIEW prices AS SELECT area_of() AS v",
    "CREATE VIEW photos AS SELECT lo_create(0) AS v",
    "CREATE VIEW rates AS SELECT free_of() AS v",
    "CREATE FUNCTION two_of(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT photo_of() + $1 + $2'",
    "CREATE OPERATOR <+> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = two_of)",
    "CREATE AGGREGATE all_of (bigint) (SFUNC = two_of, STYPE = bigint, INITCOND = '0')",
    "CREATE TYPE pair AS (a bigint)",
    "CREATE FUNCTION pair_of(bigint) RETURNS pair LANGUAGE sql AS 'SELECT ROW(free_of())::pair'",
    "CREATE CAST (bigint AS pair) WITH FUNCTION pair_of(bigint)",
    "CREATE FUNCTION is_even(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT photo_of() > 0'",
    "CREATE DOMAIN even AS bigint CHECK (is_even(VALUE))",
    "CREATE FUNCTION \"Area Of\"() RETURNS bigint LANGUAGE sql AS 'SELECT photo_of()'",
    "CREATE PROCEDURE tidy() LANGUAGE plpgsql AS 'BEGIN SET default_transaction_read_only = off; COMMIT; DELETE FROM theirs; END'",
    "CREATE FUNCTION rows_of() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT free_of()'",
];

const POSTGRES_STATEMENTS: &[&str] = &[
    "TABLE prices",
    "TABLE photos",
    "SELECT v FROM rates",
    "SELECT 1::bigint <+> 2::bigint",
    "SELECT all_of(n) FROM theirs",
    "SELECT n::pair FROM theirs",
    "SELECT CAST(n AS even) FROM theirs",
    "SELECT \"Area Of\"()",
    "SELECT U&\"Area\\0020Of\"()",
    "CALL tidy()",
    "SELECT * FROM rows_of()",
    "WITH d AS (DELETE FROM theirs RETURNING 1) SELECT count(*) FROM d",
    "EXPLAIN ANALYZE DELETE FROM theirs",
    "EXPLAIN ANALYZE CREATE TABLE made AS SELECT 1",
    "DO $$ BEGIN PERFORM free_of(); END $$",
    "DO $$ BEGIN SET default_transaction_read_only = off; COMMIT; DELETE FROM theirs; END $$",
    "SELECT 1 INTO made",
    "MERGE INTO theirs USING (SELECT 1) AS s ON true WHEN MATCHED THEN DELETE",
    "SELECT id FROM theirs FOR UPDATE",
    "SELECT 1; DELETE FROM theirs",
    "SET default_transaction_read_only = off; COMMIT; DELETE FROM theirs",
    "COMMIT; BEGIN READ WRITE; DELETE FROM theirs; COMMIT",
    "SELECT pg_catalog.set_config('default_transaction_read_only', 'off', false)",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "VACUUM theirs",
    "REINDEX TABLE theirs",
    "LOCK TABLE theirs",
    "REFRESH MATERIALIZED VIEW prices",
    "ALTER TABLE theirs ADD COLUMN a int",
    "GRANT SELECT ON theirs TO PUBLIC",
    "SELECT lo_unlink(1)",
    "SELECT lo_create(4711)",
];

/// Several ways to send a statement.
#[derive(Clone, Copy, Debug)]
enum Way {
    Prepared,
    Literal,
    /// As a message of the protocol.
    Raw,
    /// As messages of PostgreSQL's extended protocol.
    RawPrepared,
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// Whether an answer of MySQL without EOF packets is complete.
fn is_whole(bytes: &[u8]) -> bool {
    let (mut rest, mut number) = (bytes, 0);
    while let Some(&[a, b, c, _]) = rest.first_chunk::<4>() {
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let Some(payload) = rest.get(4..4 + length) else { return false };
        if matches!(payload.first(), Some(0xff | 0xfe)) || number == 0 && payload.first() == Some(&0) {
            return true;
        }
        (rest, number) = (&rest[4 + length..], number + 1);
    }
    false
}

fn raw(session: &mut dyn Session, messages: &[u8], is_postgres: bool) -> Result<()> {
    let mut answer = Vec::new();
    session.raw_messages()?.exchange_raw(messages, &mut |piece, _| {
        answer.extend_from_slice(piece);
        let is_ready = answer.len() > 5 && answer[answer.len() - 6..].starts_with(b"Z\0\0\0\x05");
        Ok(if is_postgres { is_ready } else { is_whole(&answer) })
    })
}

impl Way {
    fn send(self, session: &mut dyn Session, sql: &str, is_postgres: bool) -> Result<()> {
        match self {
            Self::Prepared => execute(session, sql).map(drop),
            Self::Literal => literal(session, sql),
            Self::Raw if is_postgres => {
                raw(session, &message(b'Q', &[sql.as_bytes(), b"\0"].concat()), is_postgres)
            }
            Self::Raw => {
                let length = (sql.len() as u32 + 1).to_le_bytes();
                raw(session, &[&length[..3], &[0, 3], sql.as_bytes()].concat(), is_postgres)
            }
            Self::RawPrepared => {
                let messages = [
                    message(b'P', &[b"s\0", sql.as_bytes(), b"\0\0\0"].concat()),
                    message(b'B', b"\0s\0\0\0\0\0\0\0"),
                    message(b'E', b"\0\0\0\0\0"),
                    message(b'S', b""),
                ];
                raw(session, &messages.concat(), is_postgres)
            }
        }
    }
}

/// Sends each statement in a session of its own, and after it one that writes; `state` must stay as it is. Returns how many of the
/// statements were refused.
fn harmless(
    driver: &dyn Driver,
    statements: &[String],
    ways: &[Way],
    next: &str,
    state: &mut dyn FnMut() -> String,
) -> usize {
    let (before, mut refused) = (state(), 0);
    for way in ways {
        for sql in statements {
            let in_both = matches!(way, Way::Prepared | Way::Raw);
            for in_transaction in [false, true].into_iter().take(1 + usize::from(in_both)) {
                let mut session = reader(driver);
                let is_postgres = next.starts_with("EXPLAIN");
                if in_transaction {
                    let _ = way.send(&mut *session, "BEGIN", is_postgres);
                }
                let done = way.send(&mut *session, sql, is_postgres);
                refused += usize::from(done.is_err());
                // A run ends with the first error of this kind.
                if done.is_ok() || done.is_err_and(|error| error.kind() != ErrorKind::ReadOnly) {
                    assert_eq!(state(), before, "{way:?}, in a transaction: {in_transaction}: {sql}");
                    if in_transaction {
                        let _ = way.send(&mut *session, "COMMIT", is_postgres);
                    }
                    let _ = way.send(&mut *session, next, is_postgres);
                }
                drop(session);
                assert_eq!(state(), before, "{way:?}, in a transaction: {in_transaction}: after {sql}");
            }
        }
    }
    refused
}

fn value(session: &mut dyn Session, sql: &str) -> String {
    let reply = execute(session, sql).unwrap();
    String::from_utf8_lossy(reply.field_bytes(0, 0).unwrap_or_default()).into_owned()
}

#[test]
fn nothing_that_postgres_executes_in_a_read_only_session_changes_anything() {
    let Some(server) = testing::server("postgres") else { return };
    // A superuser, who may execute programs, gets no session in a database with functions that execute any text.
    let mut other = connect(server.url()).unwrap();
    let functions = POSTGRES_FUNCTIONS.iter().map(|(name, language, body)| {
        format!("CREATE FUNCTION {name}() RETURNS bigint LANGUAGE {language} AS $body${body}$body$")
    });
    let made = POSTGRES_MADE.iter().map(|sql| (*sql).to_owned());
    for sql in made.chain(functions).chain(POSTGRES_HIDDEN.iter().map(|sql| (*sql).to_owned())) {
        execute(&mut *other, &sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let dump = || {
        let output = Command::new("pg_dump").arg(server.url()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        // A key that differs each time.
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter(|line| !line.contains("restrict")).collect::<Vec<_>>().join("\n")
    };
    let all = "SELECT concat_ws(' ', (SELECT string_agg(t::text, ',' ORDER BY id) FROM theirs t), \
               (SELECT count(*) FROM pg_largeobject_metadata), (SELECT last_value || is_called::text FROM numbers), \
               (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_attribute), (SELECT count(*) FROM pg_description), \
               (SELECT count(*) FROM pg_db_role_setting), (SELECT count(*) FROM pg_proc), (SELECT relacl FROM pg_class WHERE relname = 'theirs'))";
    let mut state = || value(&mut *other, all);
    let mut statements: Vec<String> = POSTGRES_STATEMENTS.iter().map(|sql| (*sql).to_owned()).collect();
    for (name, ..) in POSTGRES_FUNCTIONS {
        let call = format!("{name}()");
        statements.extend(POSTGRES_PLACES.iter().map(|place| place.replace("{}", &call)));
    }
    let (before, driver) = (dump(), open(server.url()).unwrap());
    let ways = [Way::Prepared, Way::Literal, Way::Raw, Way::RawPrepared];
    let next = "EXPLAIN ANALYZE DELETE FROM theirs";
    let refused = harmless(&*driver, &statements, &ways, next, &mut state);
    assert!(statements.len() > 250 && refused > statements.len(), "{refused} of {}", statements.len());
    assert_eq!(dump(), before);
    // What only reads is answered, in a database with code of its own, in any way and as often.
    for way in ways {
        let mut session = reader(&*driver);
        for _ in 0..8 {
            for sql in [
                "SELECT n FROM theirs", "SHOW work_mem", "BEGIN", "SELECT 1", "COMMIT",
                "SET work_mem = '8MB'",
            ] {
                way.send(&mut *session, sql, true).unwrap_or_else(|error| panic!("{way:?}: {sql}: {error}"));
            }
        }
        session.close().unwrap();
    }
}

#[test]
fn answers_of_messages_are_those_of_a_session_without_checks() {
    let Some(server) = testing::server("postgres") else { return };
    let driver = open(server.url()).unwrap();
    let bound = |sql: &str| {
        [
            message(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat()),
            message(b'B', b"\0\0\0\0\0\0\0\0"),
            message(b'D', b"P\0"),
            message(b'E', b"\0\0\0\0\0"),
        ]
        .concat()
    };
    let several =
        [bound("SELECT 1"), bound("SELECT 'kurabe: only reads'"), bound("SELECT 1/0"), bound("SELECT 2")];
    let sync = message(b'S', b"");
    for messages in [
        [bound("SELECT generate_series(1, 3)"), sync.clone()].concat(),
        [several.concat(), sync.clone()].concat(),
        [bound("SELECT repeat('x', 100000)"), bound("SHOW work_mem"), sync].concat(),
    ] {
        let answers: Vec<Vec<u8>> = [true, false]
            .map(|reads| {
                let mut session = if reads {
                    reader(&*driver)
                } else {
                    driver.connect(&kurabe_core::driver::ConnectOptions::default()).unwrap()
                };
                let mut answer = Vec::new();
                let done = session.raw_messages().unwrap().exchange_raw(&messages, &mut |piece, _| {
                    answer.extend_from_slice(piece);
                    Ok(answer.len() > 5 && answer[answer.len() - 6..].starts_with(b"Z\0\0\0\x05"))
                });
                done.unwrap();
                answer
            })
            .to_vec();
        assert_eq!(answers[0].escape_ascii().to_string(), answers[1].escape_ascii().to_string());
    }
}

#[test]
fn nothing_that_mysql_and_mariadb_execute_in_a_read_only_session_changes_anything() {
    if !has_mariadb_program() {
        return;
    }
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let setting = if engine == "mysql" { "transaction_read_only" } else { "tx_read_only" };
        let mut made = format!(
            "CREATE TABLE theirs (id BIGINT PRIMARY KEY, n BIGINT)|
             INSERT INTO theirs VALUES (1, 5), (2, 6)|
             CREATE TABLE old (id INT) ENGINE = MyISAM|
             CREATE FUNCTION area_of() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE theirs SET n = n + 1; RETURN 1; END|
             CREATE FUNCTION name_of() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO old VALUES (1); RETURN 1; END|
             CREATE FUNCTION free_of() RETURNS INT DETERMINISTIC BEGIN SET SESSION {setting} = 0; RETURN 1; END|
             CREATE FUNCTION loose_of() RETURNS INT DETERMINISTIC BEGIN SET @@session.{setting} = OFF; RETURN 1; END|
             CREATE FUNCTION wide_of() RETURNS INT DETERMINISTIC BEGIN SET SESSION TRANSACTION READ WRITE; RETURN 1; END|
             CREATE FUNCTION try_of() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN
                 DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET SESSION {setting} = 0; DELETE FROM theirs; RETURN 1; END|
             CREATE FUNCTION hush_of() RETURNS INT DETERMINISTIC BEGIN SET SESSION session_track_system_variables = '';
                 SET SESSION {setting} = 0; RETURN 1; END|
             CREATE FUNCTION once_of() RETURNS INT DETERMINISTIC BEGIN
                 DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; SET TRANSACTION READ WRITE; RETURN 1; END|
             CREATE VIEW rates AS SELECT free_of() AS v|
             CREATE VIEW prices AS SELECT area_of() AS v|
             CREATE PROCEDURE tidy() BEGIN SET SESSION {setting} = 0; COMMIT; SELECT 1; END|"
        );
        if engine == "mariadb" {
            made += "CREATE SEQUENCE numbers|
                 CREATE FUNCTION next_of() RETURNS INT DETERMINISTIC MODIFIES SQL DATA RETURN NEXTVAL(numbers)|";
        }
        administer_by(&server, "|", &made);
        let places = [
            "SELECT {}",
            "SELECT id FROM theirs WHERE {} > 0",
            "SELECT CASE WHEN {} > 0 THEN 1 END",
            "SELECT id FROM theirs ORDER BY {}",
            "SET @x = {}",
            "SELECT * FROM (SELECT {} AS v) AS d",
            "(SELECT {}) UNION ALL (SELECT 2)",
            "SELECT /*!50000 {} */ AS v",
            "SELECT SUM({}) FROM theirs",
            "SELECT {} INTO @x",
        ];
        let mut statements: Vec<String> = [
            "SELECT v FROM rates",
            "SELECT v FROM prices",
            "CALL tidy()",
            "DO free_of()",
            "SET SESSION TRANSACTION READ WRITE",
            "DELETE FROM theirs",
            "DELETE FROM old",
            "TRUNCATE TABLE theirs",
            "SELECT 1; DELETE FROM theirs",
            "SELECT id FROM theirs FOR UPDATE",
            "OPTIMIZE TABLE theirs",
            "CREATE TABLE made AS SELECT 1 AS a",
        ]
        .map(str::to_owned)
        .to_vec();
        statements.push(format!("SET SESSION {setting} = 0"));
        statements.push(format!("SET STATEMENT {setting} = 0 FOR DELETE FROM theirs"));
        statements.push(format!("SELECT /*+ SET_VAR({setting} = 0) */ area_of()"));
        let functions = [
            "area_of()", "name_of()", "free_of()", "loose_of()", "wide_of()", "try_of()", "hush_of()",
            "once_of()",
        ];
        for call in functions.iter().chain((engine == "mariadb").then_some(&"next_of()")) {
            statements.extend(places.iter().map(|place| place.replace("{}", call)));
        }
        // A statement that names the setting is refused by its words.
        statements.retain(|sql| !sql.contains("SET STATEMENT") && !sql.contains("SET_VAR"));
        let mut other = connect(server.url()).unwrap();
        let next_value =
            if engine == "mariadb" { "(SELECT next_not_cached_value FROM numbers)" } else { "0" };
        let all = format!(
            "SELECT CONCAT_WS(' ', (SELECT GROUP_CONCAT(id, '=', n ORDER BY id) FROM theirs), (SELECT COUNT(*) FROM old), \
             (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()), {next_value})"
        );
        let mut state = || value(&mut *other, &all);
        let driver = open(server.url()).unwrap();
        let ways = [Way::Prepared, Way::Literal, Way::Raw];
        let refused = harmless(&*driver, &statements, &ways, "DELETE FROM theirs", &mut state);
        assert!(
            statements.len() > 70 && refused > statements.len(),
            "{engine}: {refused} of {}",
            statements.len()
        );
    }
}
