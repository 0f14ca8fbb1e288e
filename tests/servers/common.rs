//! Servers for these tests, and clients to inspect them.

use crate::support::Answer;
pub(super) use crate::support::with;
use kurabe_testbed::{Server, testing};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// The engines with tables, users and passwords.
pub(super) const SQL: [&str; 3] = ["mysql", "mariadb", "postgres"];
/// Every engine that is a server.
pub(crate) const SERVERS: [&str; 7] =
    ["mysql", "mariadb", "postgres", "memcached", "redis", "mongodb", "couchdb"];

/// Options for the shortest run.
pub(super) const BRIEF: [&str; 12] = [
    "--compress", "none", "--layout", "blob", "--payload", "1k", "--requests", "40", "--records", "20",
    "--rounds", "1",
];

/// `kurabe run session` on these targets, ending as `rest` says; with writes and reads, unless `rest` names operations.
pub(super) fn session<'a>(targets: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    let both: &[&str] = if rest.contains(&"--operation") { &[] } else { &["--operation", "write,read"] };
    [&["run", "session"], targets, rest, both].concat()
}

/// The engines that can be started here. Each other one is named, or fails the test if servers are required.
pub(super) fn installed() -> Vec<&'static str> {
    SERVERS.into_iter().filter(|engine| has(engine)).collect()
}

/// Whether an engine can be started here. If not, it is named, or fails the test if servers are required.
pub(crate) fn has(engine: &str) -> bool {
    let there = kurabe_testbed::installed(engine).is_some_and(|found| found.is_ok());
    there || skip(&format!("{engine} is not installed"))
}

/// As [`has`]: whether a program is installed.
pub(crate) fn has_program(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok() || skip(&format!("there is no program {program}"))
}

/// Prints skipped parts to the real standard error, which the test harness does not capture; fails if servers
/// are required. Returns false, for filters.
pub(crate) fn skip(why: &str) -> bool {
    assert!(!testing::required(), "{why}");
    tell(why);
    false
}

/// Prints skipped parts, whether or not servers are required.
pub(crate) fn tell(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::stderr().write_all(format!("skipped a part of {test}: {why}\n").as_bytes());
}

/// The server's URL for another user, `bob` or `bob:password`; with another database if one is named.
pub(crate) fn by(server: &Server, user: &str, database: &str) -> String {
    let (scheme, _) = server.url().split_once("://").unwrap();
    let at = if user.is_empty() { "" } else { "@" };
    let path = if database.is_empty() { String::new() } else { format!("/{database}") };
    // MySQL's password is encrypted with its key where there is no TLS.
    let key = if scheme == "mysql" { "?get_server_public_key=true" } else { "" };
    format!("{scheme}://{user}{at}127.0.0.1:{}{path}{key}", server.port())
}

/// What PostgreSQL lets a superuser do only.
const ADMINISTER: [&str; 6] =
    ["CREATE ROLE", "ALTER ROLE few", "ALTER SYSTEM", "CREATE EXTENSION", "pg_reload_conf", "hba_file"];

/// Executes statements with the engine's own client program and returns its output, one row per line. `None`, with a
/// message, if the program is missing. An empty password is that of the server. PostgreSQL's role becomes a superuser where
/// the statements need that.
pub(crate) fn sql(server: &Server, password: &str, statements: &str) -> Option<String> {
    let password = if password.is_empty() { server.password().unwrap_or_default() } else { password };
    let socket = server.socket().unwrap();
    let mut command = if server.url().starts_with("postgres") {
        if ADMINISTER.iter().any(|words| statements.contains(words)) {
            testing::make_superuser(server);
        }
        let mut command = Command::new("psql");
        command
            .args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--username=kurabe"])
            .args(["--dbname=kurabe", "--set=ON_ERROR_STOP=1", "--command", statements])
            .arg(format!("--port={}", server.port()))
            .arg("--host")
            .arg(socket.parent().unwrap())
            .env("PGPASSWORD", password);
        command
    } else {
        let mut command = Command::new("mysql");
        command
            .args(["--no-defaults", "--user=root", "--default-character-set=utf8mb4", "--batch"])
            .args(["--skip-column-names", "--execute", statements])
            .arg("--socket")
            .arg(socket)
            .arg("kurabe")
            .env("MYSQL_PWD", password);
        command
    };
    let Ok(output) = command.output() else {
        skip(&format!("there is no program {}", command.get_program().display()));
        return None;
    };
    let answer = Answer::of(&output);
    assert_eq!(answer.code, Some(0), "{statements}: {answer:?}");
    Some(answer.out)
}

/// The tables of the database, one a line.
pub(crate) fn tables(server: &Server) -> Option<String> {
    let schema = if server.url().starts_with("postgres") { "'public'" } else { "DATABASE()" };
    sql(
        server,
        "",
        &format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = {schema} ORDER BY table_name"
        ),
    )
}

/// Our remaining objects on a server, queried without the driver; empty if there are none, or if there is no program
/// to query with.
pub(crate) fn left(engine: &str, server: &Server) -> String {
    match engine {
        "memcached" => ["kurabe_marker", "kurabe_claim"]
            .map(|key| ask_line(server, &format!("get {key}")))
            .into_iter()
            .filter(|answer| answer != "END")
            .collect(),
        // It has no other users.
        "redis" => Some(ask_line(server, "DBSIZE")).filter(|answer| answer != ":0").unwrap_or_default(),
        "couchdb" => lines_with_ours(&ask_http(server, "GET", "/_all_dbs")),
        "mongodb" => lines_with_ours(&mongodb_collections(server)),
        _ => tables(server).unwrap_or_default(),
    }
}

fn lines_with_ours(text: &str) -> String {
    text.lines().filter(|line| line.contains("kurabe_")).collect()
}

/// Sends a request of one line to memcached or Redis and returns the first line of the reply.
pub(super) fn ask_line(server: &Server, request: &str) -> String {
    let mut stream = testing::connected(server).unwrap();
    stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// Sends a request without a body to `CouchDB` and returns the whole reply.
pub(super) fn ask_http(server: &Server, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let user = testing::authorization(server);
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\n{user}Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{method} {path}: {answer}");
    answer
}

/// The reply of `MongoDB` to `listCollections` in the testbed's database, as far as it is text.
fn mongodb_collections(server: &Server) -> String {
    // One document in one section of one message (OP_MSG, 2013).
    let document =
        b"\x10listCollections\0\x01\0\0\0\x08nameOnly\0\x01\x02$db\0\x07\0\0\0kurabe\0\0".as_slice();
    let mut message = Vec::new();
    for number in [0_u32, 1, 0, 2013, 0] {
        message.extend(number.to_le_bytes());
    }
    message.push(0);
    message.extend((document.len() as u32 + 4).to_le_bytes());
    message.extend(document);
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_le_bytes());
    let mut stream = testing::connected(server).unwrap();
    stream.write_all(&message).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_le_bytes(length) as usize - 4];
    stream.read_exact(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("firstBatch"), "{answer}");
    answer
}

/// The cells of a report: each with each operation.
pub(crate) fn cells(report: &Value) -> &[Value] {
    report["cells"].as_array().unwrap()
}

/// Checks that a cell was measured and verified.
pub(super) fn assert_verified(cell: &Value) {
    assert_eq!(cell["status"], "ok", "{cell:#}");
    let verified = &cell["verified"];
    let (what, how) = match cell["operation"].as_str() {
        Some("write") => ("read_back", &["read-back-all"][..]),
        // Some of a cache's requests are writes, several of which may be to one record.
        Some("request") => ("answers", &["read-back-all", "read-back-last", "compared"][..]),
        _ => ("answers", &["compared"][..]),
    };
    assert!(verified[what].as_u64().unwrap() > 0, "{cell:#}");
    assert!(how.contains(&verified["how"].as_str().unwrap()), "{cell:#}");
    assert_eq!(verified["mismatches"], 0, "{cell:#}");
    assert!(cell["ops_per_second"]["mean"].as_f64().unwrap() > 0.0, "{cell:#}");
}

/// Checks that a run succeeded, and that each of its cells was measured and verified. Returns the report.
pub(super) fn assert_all_verified(place: &crate::support::Place, answer: &Answer) -> Value {
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let report = place.report();
    assert!(!cells(&report).is_empty());
    cells(&report).iter().for_each(assert_verified);
    report
}
