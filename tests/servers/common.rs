//! Servers as these tests need them, and a client of their own to look into them.

use crate::support::Answer;
pub(super) use crate::support::with;
use kurabe_testbed::{Server, testing};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;

/// The engines with tables, users and passwords.
pub(super) const SQL: [&str; 3] = ["mysql", "mariadb", "postgres"];
/// Every engine that is a server.
pub(super) const SERVERS: [&str; 4] = ["mysql", "mariadb", "postgres", "memcached"];

/// The end of a command line that makes a run as short as it can be.
pub(super) const BRIEF: [&str; 12] = [
    "--compress",
    "none",
    "--layout",
    "blob",
    "--payload",
    "1k",
    "--requests",
    "40",
    "--records",
    "20",
    "--rounds",
    "1",
];

/// `kurabe run session` on these targets, ending as `rest` says.
pub(super) fn session<'a>(targets: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [&["run", "session"], targets, rest].concat()
}

/// Those of the engines that can be started here; each of the others is named, or fails the test where servers must
/// be there.
pub(super) fn installed() -> Vec<&'static str> {
    let found = kurabe_testbed::available();
    SERVERS
        .into_iter()
        .filter(|engine| {
            let there = found.iter().any(|(name, found)| name == engine && found.is_ok());
            there || skip(&format!("{engine} is not installed"))
        })
        .collect()
}

/// Says on the real standard error, which the test harness does not capture, what is not tested; fails where servers
/// must be there. False, for filters.
pub(crate) fn skip(why: &str) -> bool {
    assert!(!testing::required(), "{why}");
    tell(why);
    false
}

/// Says what is not tested, whether or not servers must be there.
pub(super) fn tell(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::stderr().write_all(format!("skipped a part of {test}: {why}\n").as_bytes());
}

/// The server's URL for another user: `bob` or `bob:password`; of another database where one is named.
pub(super) fn by(server: &Server, user: &str, database: &str) -> String {
    let (scheme, _) = server.url().split_once("://").unwrap();
    let at = if user.is_empty() { "" } else { "@" };
    format!("{scheme}://{user}{at}127.0.0.1:{}/{database}", server.port())
}

/// The user that the testbed makes.
pub(super) fn superuser(engine: &str) -> &'static str {
    if engine == "postgres" { "kurabe" } else { "root" }
}

/// Executes statements by the engine's own client program and gives what it prints, one row a line. `None`, said
/// aloud, where there is no such program.
pub(crate) fn sql(server: &Server, password: &str, statements: &str) -> Option<String> {
    let socket = server.socket().unwrap();
    let mut command = if server.url().starts_with("postgres") {
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
            .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names", "--execute", statements])
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
pub(super) fn tables(server: &Server) -> Option<String> {
    let schema = if server.url().starts_with("postgres") { "'public'" } else { "DATABASE()" };
    sql(
        server,
        "",
        &format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = {schema} ORDER BY table_name"
        ),
    )
}

/// Sends a request of one line to a memcached and gives the first line of the answer.
pub(super) fn ask_memcached(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// The cells of a report: each with each operation.
pub(crate) fn cells(report: &Value) -> &[Value] {
    report["cells"].as_array().unwrap()
}

/// That a cell was measured and verified.
pub(super) fn assert_verified(cell: &Value) {
    assert_eq!(cell["status"], "ok", "{cell:#}");
    let verified = &cell["verified"];
    let what = if cell["operation"] == "write" { "writes" } else { "reads" };
    assert!(verified[what].as_u64().unwrap() > 0, "{cell:#}");
    assert!(verified["reads"].as_u64().unwrap() > 0, "{cell:#}");
    assert_eq!(verified["mismatches"], 0, "{cell:#}");
    assert!(cell["ops_per_second"]["median"].as_f64().unwrap() > 0.0, "{cell:#}");
}

/// That a run ended well, and that each of its cells was measured and verified. Gives the report.
pub(super) fn assert_all_verified(place: &crate::support::Place, answer: &Answer) -> Value {
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let report = place.report();
    assert!(!cells(&report).is_empty());
    cells(&report).iter().for_each(assert_verified);
    report
}
