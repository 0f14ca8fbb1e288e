//! The claim and the statistics of Firebird.

use crate::support::{Place, signal};
use kurabe_core::ErrorKind;
use kurabe_core::driver::{ConnectOptions, Driver, Namespace};
use kurabe_core::operation::Operation;
use kurabe_core::raw::{RawPiece, RawStatement, RawText};
use kurabe_core::target::TargetUrl;
use kurabe_core::value::Reply;
use kurabe_testbed::{Server, testing};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

#[path = "../crates/drivers/tests/read_only.rs"]
mod read_only;

fn open(url: &str) -> Box<dyn Driver> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap()
}

fn namespace(url: &str) -> Box<dyn Namespace> {
    open(url).namespace().unwrap()
}

/// Executes statements with Firebird's own program, as SYSDBA, and returns its output without white space at the ends.
pub(crate) fn isql(server: &Server, statements: &str) -> String {
    let mut child = Command::new("isql-fb")
        .args(["-bail", "-q"])
        .envs([("ISC_USER", "SYSDBA"), ("ISC_PASSWORD", server.password().unwrap())])
        .arg(format!("127.0.0.1/{}:kurabe", server.port()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("SET HEADING OFF;\n{statements}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{statements}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Kurabe's tables.
fn ours(server: &Server) -> String {
    isql(
        server,
        "SELECT RDB$RELATION_NAME FROM RDB$RELATIONS WHERE RDB$RELATION_NAME STARTING WITH 'kurabe_';",
    )
}

#[test]
fn claim_of_another_user_is_seen_and_leaves_no_table() {
    let Some(server) = testing::server("firebird") else { return };
    isql(&server, "CREATE USER plain PASSWORD 'word'; COMMIT; GRANT CREATE TABLE TO USER plain; COMMIT;");
    let plain = format!("firebird://plain:word@127.0.0.1:{}/kurabe", server.port());
    for (first, second) in [(server.url(), plain.as_str()), (plain.as_str(), server.url())] {
        let (mut one, mut other) = (namespace(first), namespace(second));
        one.claim("first").unwrap();
        let error = other.claim("second").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
        assert!(error.to_string().contains("run first (process "), "{error}");
        drop(one);
        other.claim("second").unwrap();
        assert_eq!(namespace(first).claim("third").unwrap_err().kind(), ErrorKind::InUse);
        drop(other);
        assert_eq!(ours(&server), "");
    }
}

/// A snapshot that stays open would keep the old versions of all rows.
#[test]
fn held_claim_does_not_keep_old_versions_of_rows() {
    let Some(server) = testing::server("firebird") else { return };
    let mut one = namespace(server.url());
    one.claim("first").unwrap();
    let behind = || -> i64 {
        // The statements of isql are transactions themselves.
        isql(&server, "SELECT MON$NEXT_TRANSACTION - MON$OLDEST_SNAPSHOT FROM MON$DATABASE;").parse().unwrap()
    };
    let many =
        "CREATE TABLE t (n INTEGER); COMMIT;".to_owned() + &"INSERT INTO t VALUES (1); COMMIT;".repeat(200);
    isql(&server, &many);
    let caught_up = crate::support::eventually(60, || {
        std::thread::sleep(Duration::from_millis(200));
        (behind() < 100).then_some(())
    });
    assert!(caught_up.is_some(), "{} transactions behind", behind());
    // It is still held.
    assert_eq!(namespace(server.url()).claim("second").unwrap_err().kind(), ErrorKind::InUse);
}

/// A transaction of that isolation level in which a query is prepared locks the tables of the catalogue, too.
#[test]
fn claim_does_not_make_definitions_of_others_wait() {
    let Some(server) = testing::server("firebird") else { return };
    let (mut one, mut other) = (namespace(server.url()), namespace(server.url()));
    one.claim("first").unwrap();
    // The table is there now.
    other.claim("first").unwrap();
    isql(
        &server,
        "SET AUTODDL OFF; COMMIT; SET TRANSACTION READ WRITE NO WAIT; CREATE TABLE theirs (id INTEGER); COMMIT;
         SET TRANSACTION READ WRITE NO WAIT; DROP TABLE theirs; COMMIT;",
    );
}

#[test]
fn read_only_session_refuses_writes() {
    let Some(server) = testing::server("firebird") else { return };
    isql(
        &server,
        "CREATE TABLE theirs (id INTEGER NOT NULL PRIMARY KEY, n INTEGER); COMMIT;
         INSERT INTO theirs VALUES (1, 5); INSERT INTO theirs VALUES (2, 6); COMMIT;
         SET TERM |;
         CREATE PROCEDURE charge RETURNS (a INTEGER) AS BEGIN UPDATE theirs SET n = n + 1; a = 1; SUSPEND; END|
         CREATE FUNCTION twice (a INTEGER) RETURNS INTEGER AS BEGIN RETURN 2 * a; END|
         SET TERM ;|",
    );
    let reads = [
        "SELECT twice(n) FROM theirs",
        "WITH RECURSIVE a (x) AS (SELECT 1 FROM RDB$DATABASE UNION ALL SELECT x + 1 FROM a WHERE x < 5) SELECT x FROM a",
        "SELECT RANK() OVER (ORDER BY n DESC) FROM theirs",
        "SELECT FIRST 1 n FROM theirs WHERE n STARTING WITH '5'",
    ];
    let writes = [
        "INSERT INTO theirs VALUES (3, 7)",
        "UPDATE OR INSERT INTO theirs VALUES (1, 7)",
        "UPDATE theirs SET n = 0",
        "DELETE FROM theirs",
        "MERGE INTO theirs USING RDB$DATABASE ON 1 = 1 WHEN MATCHED THEN DELETE",
        "SELECT a FROM charge",
        "CREATE TABLE made (a INTEGER)",
        "DROP TABLE theirs",
        "ALTER TABLE theirs ADD a INTEGER",
    ];
    read_only::check(&*open(server.url()), "firebird", &reads, &writes, &["SELECT 1; DELETE FROM theirs"]);
}

#[test]
fn second_run_on_a_database_is_refused_until_the_first_is_killed() {
    let Some(server) = testing::server("firebird") else { return };
    let place = Place::new();
    let run = ["run", "point-read", server.url(), "--records", "50", "--no-html"];
    let long = [&run[..], &["--rounds", "100", "--duration", "300ms"]].concat();
    let short = [&run[..], &["--rounds", "1", "--requests", "50"]].concat();
    let (mut first, _) = place.spawn_to_trial(&long, 1);
    place.run(&short).exit_code(3).err_has("another run of Kurabe uses this database (run ");
    signal(&first, "-KILL");
    first.wait().unwrap();
    place.run(&short).success();
    assert_eq!(ours(&server), "", "the next run removes what the killed one left");
}

#[test]
fn statement_has_ended_on_the_server_when_its_client_gave_up() {
    let Some(server) = testing::server("firebird") else { return };
    let long = "SELECT COUNT(*) FROM RDB$FIELDS a, RDB$FIELDS b, RDB$FIELDS c, RDB$FIELDS d, RDB$FIELDS e";
    let running = || {
        isql(
            &server,
            "SELECT COUNT(*) FROM MON$STATEMENTS WHERE MON$STATE <> 0 AND MON$SQL_TEXT CONTAINING 'RDB$FIELDS d' \
             AND MON$ATTACHMENT_ID <> CURRENT_CONNECTION;",
        )
    };
    let pieces = vec![RawPiece::Text(long.to_owned())];
    let texts = vec![RawText { engine: None, pieces }];
    let statement = RawStatement { place: "test".to_owned(), texts, parameters: 0, collection: None };
    let options = ConnectOptions::within(Duration::from_secs(1));
    let mut session = open(server.url()).connect(&options).unwrap();
    let prepared = session.prepare(&Operation::Raw { statement: Arc::new(statement) }).unwrap();
    let error = session.execute(&prepared, &[], &mut Reply::new()).unwrap_err();
    assert_eq!((error.kind(), running()), (ErrorKind::Timeout, "0".to_owned()), "{error}");
}

#[test]
fn error_within_a_block_is_the_servers_own() {
    let Some(server) = testing::server("firebird") else { return };
    let block = "EXECUTE BLOCK AS BEGIN EXECUTE STATEMENT 'DROP TABLE NO_SUCH_TABLE'; END";
    let texts = vec![RawText { engine: None, pieces: vec![RawPiece::Text(block.to_owned())] }];
    let statement = RawStatement { place: "test".to_owned(), texts, parameters: 0, collection: None };
    let mut session = open(server.url()).connect(&ConnectOptions::default()).unwrap();
    let prepared = session.prepare(&Operation::Raw { statement: Arc::new(statement) }).unwrap();
    for _ in 0..2 {
        let error = session.execute(&prepared, &[], &mut Reply::new()).unwrap_err();
        assert!(error.to_string().contains("NO_SUCH_TABLE"), "{error}");
    }
}
