//! Replays without `--write` on servers of the user's: requests that change something, by their arguments, by what fills them or by
//! what they call, change nothing.

use super::*;
use kurabe_capture::file::{self, About, Known};
use kurabe_capture::record::{Parameter, Record, Request};
use kurabe_testbed::StartOptions;
use kurabe_wire::view::{Step, Transaction};
use std::path::Path;

/// A request as a capture has it: its template, in which `¿` is a gap, what fills it, and its parameters.
#[derive(Clone, Copy)]
struct Made<'a> {
    template: &'a str,
    literals: &'a [&'a str],
    parameters: &'a [(u32, &'a str)],
}

/// A capture: what its client said of itself, and its requests.
type Capture<'a> = (&'a [(&'a str, &'a str)], &'a [Made<'a>]);

fn text(template: &str) -> Made<'_> {
    Made { template, literals: &[], parameters: &[] }
}

fn filled<'a>(template: &'a str, literals: &'a [&'a str]) -> Made<'a> {
    Made { template, literals, parameters: &[] }
}

fn given<'a>(template: &'a str, parameters: &'a [(u32, &'a str)]) -> Made<'a> {
    Made { template, literals: &[], parameters }
}

/// Kinds of parts in a file: the name of a command or the method of a request, a part of a path, and a name in a query.
const NAME: u32 = 32;
const WORD: u32 = 33;
const KEY: u32 = 34;

/// Parts that say which request it is, in a capture of a protocol without SQL.
fn named<'a>(protocol: &str, template: &'a str) -> Vec<(u32, &'a str)> {
    match (protocol, template.split_once(' ')) {
        ("redis" | "memcached", _) => {
            template.split(' ').filter(|word| *word != "?").map(|word| (NAME, word)).collect()
        }
        ("couchdb", Some((method, path))) => {
            let path = path.split('/').map(|part| (WORD, part));
            std::iter::once((NAME, method)).chain(path).collect()
        }
        _ => Vec::new(),
    }
}

/// Makes a capture of one connection, of whose answers nothing is known.
fn made(place: &Place, protocol: &str, said: &[(&str, &str)], requests: &[Made<'_>]) -> String {
    made_in_version(4, place, (protocol, &[]), said, requests)
}

/// The second version has names of commands and requests of HTTP in their texts only; the fourth is the present one. `session` are
/// the settings of the recorded server's new sessions.
fn made_in_version(
    version: u8,
    place: &Place,
    (protocol, session): (&str, &[(&str, &str)]),
    said: &[(&str, &str)],
    requests: &[Made<'_>],
) -> String {
    let path = place.at("made.capture");
    let _ = std::fs::remove_file(&path);
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let session = (!session.is_empty()).then(|| session.iter().map(owned).collect());
    let said = said.iter().map(owned).collect();
    let mut records = vec![Record::Open { connection: 0, at: 0, said }];
    for (number, made) in (0..).zip(requests) {
        let template = made.template.replace('¿', "\0");
        records.push(Record::Statement { number, template });
        let parameter = |(kind, value): &(u32, &str)| Parameter::new(*kind, false, value.as_bytes());
        let names = if version == 2 { Vec::new() } else { named(protocol, made.template) };
        let request = Request {
            at: 1_000 * number,
            time: Some(500),
            statement: number,
            literals: made.literals.iter().map(|literal| (*literal).to_owned()).collect(),
            parameters: names.iter().chain(made.parameters).map(parameter).collect(),
            step: Step::Text,
            transaction: Transaction::None,
            ..Request::default()
        };
        records.push(Record::Request(Box::new(request)));
    }
    records.push(Record::Close { connection: 0, at: 1_000_000, unreadable: None });
    records.push(Record::End { requests: requests.len() as u64 });
    let about = About { protocol: protocol.to_owned(), known: Known::Requests, session, ..About::default() };
    file::write(Path::new(&path), &about, &records).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let at = "kurabe capture ".len();
    if version == 2 {
        bytes[at] = b'2';
        std::fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(bytes[at], b'0' + version, "the present version of captures is another");
    path
}

/// Replays each of these alone, which must fail and leave the state as it is.
fn refused(server: &Server, protocol: &str, all: &[Capture<'_>], state: &mut dyn FnMut() -> String) {
    let place = Place::new();
    let before = state();
    for ((said, requests), version) in all.iter().flat_map(|one| [(one, 4), (one, 2)]) {
        let path = made_in_version(version, &place, (protocol, &[]), said, requests);
        let shown: Vec<_> = requests.iter().map(|one| (one.template, one.literals, one.parameters)).collect();
        let answer = replay(&place, &path, &[server.url()]);
        assert_eq!(state(), before, "{protocol} {version}: {said:?} {shown:?}: {answer:?}");
        assert_eq!(answer.code, Some(2), "{protocol} {version}: {said:?} {shown:?}: {answer:?}");
    }
}

#[test]
fn replay_on_postgres_ends_when_its_session_writes_or_may_write() {
    let Some(server) = testing::server("postgres") else { return };
    let made = "CREATE TABLE victim (n int); INSERT INTO victim VALUES (1), (2); CREATE SEQUENCE numbers; \
                CREATE FUNCTION unlock() RETURNS text LANGUAGE sql AS 'SELECT set_config(''default_transaction_read_only'', ''off'', false)'; \
                CREATE FUNCTION photo() RETURNS bigint LANGUAGE sql AS 'SELECT lo_create(0)::bigint'; \
                CREATE VIEW photos AS SELECT lo_create(0) AS v; \
                CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2'";
    sql(&server, "", made).unwrap();
    let all = "SELECT (SELECT string_agg(n::text, ',' ORDER BY n) FROM victim), (SELECT count(*) FROM pg_largeobject_metadata), \
               (SELECT last_value FROM numbers), (SELECT is_called FROM numbers)";
    let mut state = || sql(&server, "", all).unwrap();
    let delete = text("EXPLAIN ANALYZE DELETE FROM victim");
    let options = [("options", "-c default_transaction_read_only=off")];
    let quoted =
        [("standard_conforming_strings", "off"), ("application_x.y", "\\'); DELETE FROM victim; --")];
    refused(
        &server,
        "postgres",
        &[
            (&[], &[text("SELECT unlock()"), delete]),
            (&[], &[text("BEGIN"), text("SELECT unlock()"), text("COMMIT"), delete]),
            (&[], &[text("SELECT photo()")]),
            (&[], &[text("BEGIN"), text("SELECT photo()"), text("COMMIT")]),
            (&[], &[text("TABLE photos")]),
            (&[], &[delete]),
            (&options, &[delete]),
            (&quoted, &[text("SELECT 1"), delete]),
            (&[("standard_conforming_strings", "off")], &[text(r"SELECT '\'', photo() -- '")]),
            (&[], &[filled("SELECT n FROM victim WHERE n = ¿", &["1; DELETE FROM victim"])]),
            (&[], &[filled("SELECT n FROM victim WHERE n = ¿", &["(SELECT nextval('numbers'))"])]),
            (&[], &[filled("¿", &["DELETE FROM victim"])]),
            (&[], &[text("WITH d AS (DELETE FROM victim RETURNING n) SELECT n FROM d")]),
        ],
        &mut state,
    );
    // Functions that only read are executed, and answered as they were.
    let place = Place::new();
    let script = "psql -qX -c 'SELECT twice(n), repeat($$x$$, 100000) FROM victim ORDER BY n' -c 'SET work_mem = 4096' \
                  -c 'BEGIN ISOLATION LEVEL REPEATABLE READ' -c 'SELECT 1 / 0' -c 'ROLLBACK' -c 'SHOW work_mem' -c '' || true";
    let path = captured(&place, "reads", &server, script);
    report(&place, &path, &[server.url()]);
}

#[test]
fn replay_on_mysql_and_mariadb_ends_when_its_session_may_write() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let setting = if engine == "mysql" { "transaction_read_only" } else { "tx_read_only" };
        let made = format!(
            "CREATE TABLE victim (n INT); INSERT INTO victim VALUES (1), (2);\nDELIMITER |\n\
             CREATE FUNCTION unlock_it() RETURNS INT DETERMINISTIC BEGIN SET SESSION {setting} = 0; RETURN 1; END|\n\
             CREATE FUNCTION charge() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN DELETE FROM victim; RETURN 1; END|\n"
        );
        let Some(_) = sql(&server, "", &made) else { return };
        let mut state = || sql(&server, "", "SELECT GROUP_CONCAT(n ORDER BY n) FROM victim").unwrap();
        let statement = format!("STATEMENT {setting}=0 FOR DELETE FROM victim");
        refused(
            &server,
            engine,
            &[
                (&[], &[text("SELECT unlock_it()"), text("SELECT charge()")]),
                (&[], &[text("SET @x = unlock_it()"), text("SELECT charge()")]),
                (&[], &[text("SELECT charge()")]),
                (&[], &[filled("SET ¿", &[&statement])]),
                (&[], &[filled("SELECT n FROM victim WHERE n = ¿", &["1 INTO OUTFILE '/tmp/no'"])]),
                (
                    &[],
                    &[filled(
                        "SELECT /*¿ 1 */ n FROM victim",
                        &["! n INTO OUTFILE '/tmp/no' FROM victim -- "],
                    )],
                ),
                (&[], &[filled("COM_¿", &["CHANGE_USER"])]),
                (&[], &[text("BEGIN NOT ATOMIC DELETE FROM victim; END")]),
                (&[], &[text("BEGIN NOT ATOMIC KILL 99999999; END")]),
                (&[], &[text("SELECT 1; DELETE FROM victim")]),
                (
                    &[("multi_statements", "")],
                    &[
                        text("SET sql_mode = 'ANSI_QUOTES'"),
                        text(
                            r#"SELECT '\'' AS "\"; SET SESSION TRANSACTION READ WRITE; DELETE FROM victim; -- '""#,
                        ),
                    ],
                ),
            ],
            &mut state,
        );
    }
}

/// A text that is one read in most sessions is, in one with another `sql_mode`, several statements, of which no read-only transaction
/// stops the second.
#[test]
fn replay_on_mysql_and_mariadb_executes_one_statement_of_a_text_in_every_mode() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::own_server(engine) else { continue };
        let place = Place::new();
        testing::make_superuser(&server);
        let state = || sql(&server, "", "SELECT @@GLOBAL.max_connect_errors, COUNT(*) FROM mysql.user");
        let Some(before) = state() else { return };
        let several = [("multi_statements", "on")];
        let held = |session: &[(&str, &str)], requests: &[Made<'_>], code: Option<i32>| {
            let path = made_in_version(4, &place, (engine, session), &several, requests);
            let answer = replay(&place, &path, &[server.url()]);
            let texts: Vec<_> = requests.iter().map(|one| one.template).collect();
            assert_eq!(state().unwrap(), before, "{engine}: {session:?} {texts:?}: {answer:?}");
            assert!(code.is_none() || answer.code == code, "{engine}: {session:?} {texts:?}: {answer:?}");
        };
        for change in ["SET GLOBAL max_connect_errors = 77", "CREATE USER hidden", "KILL 99999999"] {
            for (mode, hidden) in [
                ("NO_BACKSLASH_ESCAPES", format!(r"SELECT 'a\'; {change}; -- '")),
                ("ANSI_QUOTES", format!(r#"SELECT '\'' AS "\"; {change}; -- '""#)),
                ("no_backslash_escapes", format!(r"SELECT 'a\'; {change}; -- '")),
                ("ORACLE", format!(r#"BEGIN SELECT '\'' AS "\"; {change}; END -- '""#)),
            ] {
                let is_block = mode == "ORACLE";
                if is_block && engine == "mysql" {
                    continue;
                }
                let set = format!("SET sql_mode = '{mode}'");
                let (set, hidden) = (text(&set), text(&hidden));
                held(&[("sql_mode", mode)], &[hidden], Some(2));
                held(&[], &[set, hidden], is_block.then_some(2));
                held(&[], &[text("COM_SET_OPTION 0"), set, hidden], Some(2));
                // The sessions of the target have another mode than the capture says, or than is usual.
                sql(&server, "", &format!("SET GLOBAL sql_mode = '{mode}'")).unwrap();
                held(&[], &[hidden], is_block.then_some(2));
                sql(&server, "", "SET GLOBAL sql_mode = DEFAULT").unwrap();
            }
        }
    }
}

/// Whether a session writes is said by nobody but the replay, and what it does not know it says.
#[test]
fn replay_on_postgres_takes_no_right_to_write_from_a_capture_and_names_settings_that_it_does_not_know() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let off = ("default_transaction_read_only", "off");
    for (session, said) in [
        (&[off][..], &[][..]),
        (&[], &[("Default_Transaction_Read_Only", "off")]),
        (
            &[],
            &[("options", "--default-transaction-read-only=off -c TRANSACTION_READ_ONLY=off -c work_mem=64")],
        ),
        (&[("future_setting", "x")], &[]),
    ] {
        let path = made_in_version(4, &place, ("postgres", session), said, &[text("SELECT 1")]);
        let answer = replay(&place, &path, &[server.url()]);
        assert_eq!(answer.code, Some(0), "{session:?} {said:?}: {answer:?}");
        let is_unknown = session.iter().any(|(name, _)| *name == "future_setting");
        assert_eq!(answer.err.contains("does not set: future_setting"), is_unknown, "{answer:?}");
    }
}

/// Asserts that a replay of these reads is refused, or executed, where something has been made that a read-only session does not hold back.
#[track_caller]
fn is_held(place: &Place, server: &Server, url: &str, reads: &[Made<'_>], not_held: Option<&str>) {
    let engine = url.split_once(':').unwrap().0;
    let before = sql(server, "", "SELECT MAX(n) FROM victim").unwrap();
    let answer = replay(place, &made(place, engine, &[], reads), &[url]);
    assert_eq!(sql(server, "", "SELECT MAX(n) FROM victim").unwrap(), before, "{not_held:?}: {answer:?}");
    match not_held {
        None => assert_eq!(answer.code, Some(0), "{answer:?}"),
        Some(what) => {
            assert_eq!(answer.code, Some(2), "{what}: {answer:?}");
            for part in ["does not hold back", what, "--write", "up:"] {
                assert!(answer.err.contains(part), "{part}: {answer:?}");
            }
        }
    }
}

/// A read-only session of PostgreSQL knows nothing of what a function does by another connection, in another process or on the server's
/// disk, wherever that function is called from.
#[test]
#[expect(clippy::too_many_lines, reason = "one server, and each kind of code there")]
fn replay_is_refused_where_postgres_has_code_that_works_outside_of_its_transaction() {
    let Some(server) = testing::own_server("postgres") else { return };
    let place = Place::new();
    let by_dblink = |body: &str| {
        format!(
            "SELECT dblink_exec('host={} port={} user=kurabe dbname=kurabe', 'UPDATE victim SET n = n + 1'){body}",
            server.socket().unwrap().parent().unwrap().display(),
            server.port()
        )
    };
    let text_of = by_dblink("").replace('\'', "''");
    let made = "CREATE TABLE victim (n int); INSERT INTO victim VALUES (1); CREATE ROLE app LOGIN PASSWORD 'pw'; \
                GRANT SELECT ON victim TO app; CREATE EXTENSION pgcrypto; CREATE EXTENSION hstore; \
                CREATE EXTENSION moddatetime; CREATE EXTENSION pg_stat_statements; \
                CREATE FUNCTION twice(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 2 * $1; END'";
    sql(&server, "", made).unwrap();
    let app = crate::servers::common::by(&server, "app:pw", "kurabe");
    let read = [text("SELECT twice(n), digest('a', 'md5') FROM victim")];
    is_held(&place, &server, &app, &read, None);
    is_held(&place, &server, server.url(), &read, None);
    // Each is made, judged and removed again.
    let trap =
        format!("CREATE EXTENSION dblink; CREATE FUNCTION trap() RETURNS text LANGUAGE sql AS '{text_of}'");
    let cases: [(&str, &str, &str, Option<&str>); 18] = [
        (
            &trap,
            "SELECT trap() FROM victim",
            "DROP EXTENSION dblink CASCADE; DROP FUNCTION IF EXISTS trap()",
            Some("dblink"),
        ),
        (
            &format!(
                "CREATE EXTENSION dblink; CREATE VIEW seen AS {}; GRANT SELECT ON seen TO app",
                by_dblink(" AS done")
            ),
            "TABLE seen",
            "DROP EXTENSION dblink CASCADE",
            Some("dblink"),
        ),
        (
            // Nobody but the owner may call dblink.
            &format!(
                "{trap}; ALTER FUNCTION trap() SECURITY DEFINER; REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC; \
                 GRANT EXECUTE ON FUNCTION trap() TO app; GRANT EXECUTE ON FUNCTION twice(int) TO app"
            ),
            "SELECT trap() FROM victim",
            "DROP FUNCTION trap()",
            Some("dblink"),
        ),
        (
            "SELECT 1",
            "SELECT twice(n) FROM victim",
            "DROP EXTENSION dblink; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC",
            None,
        ),
        (
            "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; \
             CREATE FOREIGN TABLE program (n text) SERVER files OPTIONS (program 'touch /tmp/x'); GRANT SELECT ON program TO app",
            "TABLE program",
            "DROP EXTENSION file_fdw CASCADE",
            Some("foreign table public.program"),
        ),
        (
            "CREATE FUNCTION trap() RETURNS boolean LANGUAGE sql AS 'SELECT pg_terminate_backend(1)'",
            "SELECT trap()",
            "DROP FUNCTION trap()",
            Some("function public.trap()"),
        ),
        (
            "CREATE FUNCTION trap() RETURNS boolean BEGIN ATOMIC SELECT pg_cancel_backend(1); END",
            "SELECT trap()",
            "DROP FUNCTION trap()",
            Some("function public.trap()"),
        ),
        (
            "CREATE FUNCTION trap() RETURNS int LANGUAGE plpgsql AS 'BEGIN NOTIFY heard; RETURN 1; END'",
            "SELECT trap()",
            "DROP FUNCTION trap()",
            Some("function public.trap()"),
        ),
        (
            "CREATE VIEW seen AS SELECT pg_notify('heard', 'x') IS NULL",
            "TABLE seen",
            "DROP VIEW seen",
            Some("view public.seen"),
        ),
        (
            "CREATE FUNCTION fine() RETURNS int LANGUAGE plpgsql AS 'DECLARE notify int; BEGIN notify := 1; RETURN notify; END'",
            "SELECT fine()",
            "DROP FUNCTION fine()",
            None,
        ),
        (
            "CREATE VIEW seen AS SELECT pg_cancel_backend(1)",
            "TABLE seen",
            "DROP VIEW seen",
            Some("view public.seen"),
        ),
        (
            "CREATE OPERATOR === (FUNCTION = pg_cancel_backend, RIGHTARG = int)",
            "SELECT === n FROM victim",
            "DROP OPERATOR === (NONE, int)",
            Some("operator public.===(NONE,integer)"),
        ),
        (
            "CREATE TYPE own AS (n int); CREATE FUNCTION to_own(int) RETURNS own LANGUAGE sql AS \
             'SELECT ROW(pg_cancel_backend($1)::int)::own'; CREATE CAST (int AS own) WITH FUNCTION to_own(int)",
            "SELECT n::own FROM victim",
            "DROP TYPE own CASCADE",
            Some("function public.to_own(integer)"),
        ),
        (
            "CREATE DOMAIN checked AS int CHECK (VALUE > 0 OR pg_cancel_backend(VALUE))",
            "SELECT n::checked FROM victim",
            "DROP DOMAIN checked",
            Some("domain public.checked"),
        ),
        (
            "CREATE POLICY p ON victim USING (pg_cancel_backend(n) OR true)",
            "TABLE victim",
            "DROP POLICY p ON victim",
            Some("policy of public.victim"),
        ),
        (
            "CREATE FUNCTION trap() RETURNS text LANGUAGE plpgsql AS 'BEGIN EXECUTE ''COPY victim TO '' || ''PROGRAM cat''; \
             RETURN 1; END'; GRANT pg_execute_server_program TO app",
            "SELECT trap()",
            "REVOKE pg_execute_server_program FROM app",
            Some("function public.trap()"),
        ),
        // Without that right it is the transaction's.
        ("SELECT 1", "SELECT twice(n) FROM victim", "DROP FUNCTION trap()", None),
        (
            // A role that the user can become.
            "CREATE EXTENSION dblink; CREATE ROLE powerful; GRANT powerful TO app; \
             REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC; \
             GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO powerful",
            "SELECT 1",
            "DROP EXTENSION dblink",
            Some("dblink"),
        ),
    ];
    for (make, read, remove, not_held) in cases {
        sql(&server, "", make).unwrap();
        is_held(&place, &server, &app, &[text(read)], not_held);
        sql(&server, "", remove).unwrap();
    }
}

#[test]
fn replay_is_refused_where_mariadb_has_tables_or_functions_that_work_elsewhere() {
    let with_connect = |options: StartOptions| StartOptions {
        settings: vec![("plugin_load_add".into(), "ha_connect".into())],
        ..options
    };
    let Some(server) = testing::own_server_with("mariadb", with_connect) else { return };
    let place = Place::new();
    let url = server.url();
    let made = "CREATE TABLE victim (n INT); INSERT INTO victim VALUES (1); CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN 2 * n";
    if sql(&server, "", made).is_none() {
        return;
    }
    let read = [text("SELECT twice(n) FROM victim")];
    is_held(&place, &server, url, &read, None);
    for (make, remove, not_held) in [
        (
            "CREATE TABLE far (n INT) ENGINE=CONNECT TABLE_TYPE=MYSQL CONNECTION='mysql://a@127.0.0.1:1/a/b'",
            "DROP TABLE far",
            "table kurabe.far of engine CONNECT",
        ),
        (
            "CREATE FUNCTION spider_direct_sql RETURNS INT SONAME 'ha_spider.so'",
            "DROP FUNCTION spider_direct_sql",
            "function spider_direct_sql of library ha_spider.so",
        ),
        (
            "CREATE FUNCTION trap() RETURNS INT DETERMINISTIC BEGIN SELECT 1 INTO OUTFILE '/tmp/no'; RETURN 1; END",
            "DROP FUNCTION trap",
            "routine kurabe.trap",
        ),
    ] {
        sql(&server, "", &format!("DELIMITER |\n{make}|\n")).unwrap();
        is_held(&place, &server, url, &read, Some(not_held));
        sql(&server, "", remove).unwrap();
    }
    is_held(&place, &server, url, &read, None);
}

/// What a server answers to lines, up to a last one.
pub(super) fn asked(server: &Server, lines: &str, last: &str) -> String {
    let mut stream = testing::connected(server).unwrap();
    stream.write_all(lines.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains(last) {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "{}", answer.escape_ascii());
        answer.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn replay_on_memcached_sends_no_flag_and_no_line_that_changes_something() {
    let Some(server) = testing::server("memcached") else { return };
    asked(&server, "set session 0 0 5\r\nhello\r\nmn\r\n", "MN");
    let mut state = || asked(&server, "mg session v t\r\nmg counter v\r\nmg made v\r\nmn\r\n", "MN");
    let line = "session\r\nset made 0 0 1\r\nx";
    refused(
        &server,
        "memcached",
        &[
            (&[], &[given("mg ? ?", &[(0, "session"), (0, "v"), (0, "T2")])]),
            (&[], &[given("mg ? ?", &[(0, "counter"), (0, "v"), (0, "N0"), (0, "T2")])]),
            (&[], &[given("mg ? ?", &[(0, "session"), (0, "R30")])]),
            (&[], &[given("gat ? ?", &[(0, "2"), (0, "session")])]),
            (&[], &[given("touch ? ?", &[(0, "session"), (0, "2")])]),
            (&[], &[given("get ?", &[(0, line)])]),
            (&[], &[given("get\r\nflush_all ?", &[(0, "x")])]),
            (&[], &[given("stats ?", &[(0, "reset")])]),
            (&[], &[given("delete ?", &[(0, "session")])]),
        ],
        &mut state,
    );
}

#[test]
fn replay_on_redis_sends_no_arguments_that_change_something() {
    let Some(server) = testing::server("redis") else { return };
    asked(&server, "SET a 1\r\nRPUSH l 3 1 2\r\nGEOADD g 1 2 x\r\nPFADD p a b\r\nECHO done\r\n", "done");
    let keys =
        "DBSIZE\r\nGET a\r\nTTL a\r\nLRANGE l 0 9\r\nDUMP p\r\nEXISTS b\r\nACL WHOAMI\r\nECHO done\r\n";
    let mut state = || asked(&server, keys, "done");
    let one = |text: &'static str| {
        let words: Vec<(u32, &str)> = text.split(' ').skip(1).map(|word| (0, word)).collect();
        given(text.split(' ').next().unwrap(), words.leak())
    };
    let all: Vec<Made<'_>> = [
        "SORT l STORE b",
        "SORT l ALPHA store b",
        "GETEX a EX 100",
        "GETEX a PERSIST",
        "GETDEL a",
        "BITFIELD a SET u8 0 9",
        "BITFIELD a GET u8 0 INCRBY u8 0 1",
        "GEORADIUS g 1 2 3 km STORE b",
        "GEOSEARCHSTORE b g FROMLONLAT 1 2 BYRADIUS 3 km",
        "SINTERSTORE b l",
        "EVAL redis.call('set','b','1') 0",
        "FCALL f 0",
        "OBJECT MADE a",
        "PFCOUNT p",
        "LMPOP 1 l LEFT",
        "COPY a b",
        "EXPIRE a 100",
        "XREADGROUP GROUP g c STREAMS s >",
        "HELLO 2 AUTH other word",
    ]
    .map(one)
    .to_vec();
    let each: Vec<Capture<'_>> = all.chunks(1).map(|made| (&[][..], made)).collect();
    refused(&server, "redis", &each, &mut state);
}

#[test]
fn replay_on_mongodb_sends_nothing_that_stores() {
    let Some(server) = testing::server("mongodb") else { return };
    let mut client = mongodb::Client::of(&server);
    let documents = serde_json::json!({"documents": [{"_id": 1, "n": 5}, {"_id": 2, "n": 6}]});
    client.ask("insert", &"items".into(), &documents);
    let mut state = || {
        let counted = ["items", "made"]
            .map(|name| client.ask("count", &name.into(), &serde_json::json!({}))["n"].clone());
        format!("{counted:?}")
    };
    let each: Vec<Made<'_>> = [
        r#"aggregate items {"pipeline": [{"$out": ?}], "cursor": {}}"#,
        r#"aggregate items {"pipeline": [{"$match": {}}, {"$merge": {"into": ?}}], "cursor": {}}"#,
        r#"aggregate items {"pipeline": [{"$facet": {"a": [{"$out": ?}]}}], "cursor": {}}"#,
        r#"findAndModify items {"query": {}, "remove": ?}"#,
        r#"mapReduce items {"map": ?, "reduce": ?, "out": ?}"#,
        r#"find items {"filter": {"$where": ?}}"#,
        r#"aggregate items {"pipeline": ?, "cursor": {}}"#,
        "drop items",
    ]
    .map(|template| given(template, &[(4, "x"), (256, "kurabe")]))
    .to_vec();
    let each: Vec<Capture<'_>> = each.chunks(1).map(|made| (&[][..], made)).collect();
    refused(&server, "mongodb", &each, &mut state);
}

#[test]
fn replay_on_couchdb_sends_no_other_request_within_one() {
    let Some(server) = testing::server("couchdb") else { return };
    if !has_program("curl") {
        return;
    }
    let database = format!("http://{}@127.0.0.1:{}/victim", testing::login(&server), server.port());
    let curl = |rest: &[&str]| {
        let output =
            Command::new("curl").args(["-sS", "-H", "Content-Type: application/json"]).args(rest).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    curl(&["-X", "PUT", &database]);
    curl(&["-X", "PUT", &format!("{database}/17"), "-d", "{\"n\":1}"]);
    let mut state = || curl(&[&format!("{database}/_all_docs?include_docs=true")]);
    assert!(state().contains("\"n\":1"), "{}", state());
    let path = |text: &str| text.replace("DB", "victim");
    let other = path("x\r\n\r\nDELETE /DB HTTP/1.1\r\nHost: x");
    let texts = [
        "POST /DB/_bulk_docs",
        "DELETE /DB",
        "GET /DB/_design/x/_rewrite/y",
        "POST /DB/_find/../_bulk_docs",
        "GET /DB/%5fdesign/x/%5Frewrite/y",
        "GET /%5freplicator/_all_docs",
        "GET /DB HTTP/1.1\r\nHost: x\r\n\r\nDELETE /DB",
        "COPY /DB/17",
        "POST /DB/_purge",
        "POST /DB?/_find",
    ]
    .map(path);
    let bodies = [(0, "{\"docs\":[{\"n\":2}]}"), (4, "application/json")];
    let field = [(1, other.as_str())];
    let get = path("GET /DB/17");
    let mut all: Vec<Made<'_>> = texts.iter().map(|text| given(text, &bodies)).collect();
    all.push(given(&get, &field));
    // A part of the path behind a name in the query.
    let post = path("POST /DB");
    let parts = [(KEY, "x"), (WORD, "_find"), bodies[0], bodies[1]];
    all.push(given(&post, &parts));
    let each: Vec<Capture<'_>> = all.chunks(1).map(|made| (&[][..], made)).collect();
    refused(&server, "couchdb", &each, &mut state);
}

/// A file may hold a thousand requests for each of its bytes.
#[test]
fn capture_with_more_requests_than_bytes_is_counted_and_not_replayed() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let all = vec![text("SELECT 1"); 1];
    let path = made(&place, "postgres", &[], &all);
    let mut records = Vec::new();
    file::read(Path::new(&path), |_, record| records.push(record)).unwrap();
    let request = records.remove(2);
    let end = records.split_off(2);
    records.extend(std::iter::repeat_n(request, 260_000));
    records.extend(end);
    let path = place.at("many.capture");
    let about = About { protocol: "postgres".to_owned(), known: Known::Requests, ..About::default() };
    file::write(Path::new(&path), &about, &records).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 100_000);
    replay(&place, &path, &[server.url(), "--dry-run"]).success();
    let answer = replay(&place, &path, &[server.url()]);
    let said = format!("{}{}", answer.out, answer.err);
    assert!(answer.code != Some(0) && said.contains("counted, and not replayed"), "{answer:?}");
    assert_eq!(shown(&place, &path)["requests"], 260_000);
}
