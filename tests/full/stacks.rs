//! Application stacks before real databases. Each is required where servers are.

mod connections;

use crate::lies;
use crate::servers::common::{cells, has, skip};
use crate::support::{Answer, Place, eventually, piped, signal};
use kurabe_relay::{LOOPBACK, Relay, Way, on_piece};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether a stack and a database can be started here; a line says why not, and fails the test where servers are required.
fn there(stack: &str, engine: &str) -> bool {
    let name = stack.split('/').next().unwrap();
    if let Err(missing) = kurabe_testbed::installed_stack(name).unwrap() {
        return skip(&format!("stack:{name}: {}; {}", missing.what, missing.how()));
    }
    has(engine)
}

/// Each variant of a stack that can use a database conforms before it.
fn conforms(stack: &str, engine: &str) {
    if !there(stack, engine) {
        return;
    }
    let variants = kurabe_testbed::variants(stack).unwrap();
    let able = variants.iter().filter(|variant| variant.databases.contains(&engine));
    let urls: Vec<String> = able.map(|variant| format!("stack:{stack}/{}?workers=4", variant.name)).collect();
    assert!(!urls.is_empty());
    let database = format!("up:{engine}");
    let answer = Place::new().run(&["doctor", "--via", &urls.join(","), "--db", &database]).success();
    let all = [
        "kv read: 8 clients", "kv write: 8 clients", "connect read: 8 clients", "/connect/new?key=0",
        "webapp request: 8 clients", "/webapp/request?name=nobody",
    ];
    let serves = |experiment: &str| {
        let able = variants.iter().filter(|variant| variant.databases.contains(&engine));
        able.filter(|variant| variant.experiments.contains(&experiment)).count()
    };
    for (part, experiment) in all.into_iter().zip(["kv", "kv", "connect", "connect", "webapp", "webapp"]) {
        assert_eq!(answer.out.matches(part).count(), serves(experiment), "{part}: {answer:?}");
    }
    let right = answer.out.matches(" as docs/app.openapi.yaml says, 0 not").count();
    assert_eq!(right, urls.len(), "{answer:?}");
}

/// A test of one stack before one database.
macro_rules! conformance {
    ($($name:ident: $stack:literal $engine:literal;)*) => {
        $(#[test]
        fn $name() {
            conforms($stack, $engine);
        })*
    };
}

conformance! {
    php_conforms_on_mariadb: "php" "mariadb";
    php_conforms_on_mysql: "php" "mysql";
    php_conforms_on_postgres: "php" "postgres";
    java_conforms_on_mariadb: "java" "mariadb";
    java_conforms_on_mysql: "java" "mysql";
    java_conforms_on_postgres: "java" "postgres";
    python_conforms_on_mariadb: "python" "mariadb";
    python_conforms_on_mysql: "python" "mysql";
    python_conforms_on_postgres: "python" "postgres";
    node_conforms_on_mariadb: "node" "mariadb";
    node_conforms_on_mysql: "node" "mysql";
    node_conforms_on_postgres: "node" "postgres";
    mod_php_conforms_on_mariadb: "mod_php" "mariadb";
    mod_php_conforms_on_mysql: "mod_php" "mysql";
    mod_php_conforms_on_postgres: "mod_php" "postgres";
    perl_conforms_on_mariadb: "perl" "mariadb";
    perl_conforms_on_mysql: "perl" "mysql";
    perl_conforms_on_postgres: "perl" "postgres";
    mod_php_conforms_on_mongodb: "mod_php" "mongodb";
    mod_php_conforms_on_couchdb: "mod_php" "couchdb";
    mod_php_conforms_on_memcached: "mod_php" "memcached";
    perl_conforms_on_memcached: "perl" "memcached";
}

/// `kurabe run` of an experiment through stacks before a database.
fn run(experiment: &str, via: &str, engine: &str, rest: &[&str]) -> (Answer, Value) {
    let place = Place::new();
    let database = format!("up:{engine}");
    let brief =
        ["--requests", "200", "--rounds", "1", "--clients", "4", "--records", "300", "--no-html", "--quiet"];
    let args = ["run", experiment, "--via", via, "--db", &database];
    let answer = place.run(&[&args[..], &brief, rest].concat());
    let report = if answer.code == Some(0) { place.report() } else { Value::Null };
    (answer, report)
}

#[test]
fn variants_on_one_database_are_verified_and_tiers_are_observed() {
    if !there("php", "mariadb") {
        return;
    }
    let via = "stack:php/mysqli,stack:php/mysqli-persistent";
    let (answer, report) = run("connect", via, "mariadb", &["--connection", "kept,per-request"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let mut measured = Vec::new();
    for cell in cells(&report) {
        let [target, connection] =
            [&cell["target"], &cell["axes"]["connection"]].map(|text| text.as_str().unwrap());
        if (target, connection) == ("php/mysqli", "kept") {
            // It opens a connection for each request, and says so.
            assert_eq!(cell["status"], "unavailable", "{cell:#}");
            continue;
        }
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert!(cell["verified"]["answers"].as_u64() >= Some(200), "{cell:#}");
        measured.push((target.to_owned(), connection.to_owned()));
        let tiers = cell["observed"][0]["tiers"].as_array().unwrap();
        let names: Vec<&str> = tiers.iter().map(|tier| tier["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["application", "database"], "{cell:#}");
        // nginx, php-fpm and its sixteen workers.
        assert!(tiers[0]["used"]["seen"]["processes"].as_u64() >= Some(18), "{cell:#}");
    }
    measured.sort();
    measured.dedup();
    assert_eq!(measured.len(), 3, "{report:#}");
}

#[test]
fn records_added_through_stack_are_read_back() {
    if !there("php", "postgres") {
        return;
    }
    let (answer, report) = run("kv", "stack:php/pg-persistent,stack:php/pdo", "postgres", &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let writes = cells(&report).iter().filter(|cell| cell["operation"] == "write").collect::<Vec<_>>();
    assert!(writes.len() >= 2, "{report:#}");
    for cell in writes {
        let verified = &cell["verified"];
        assert!(verified["writes"].as_u64() >= Some(200), "{cell:#}");
        assert!(verified["counted"].as_u64() >= Some(200), "{cell:#}");
    }
}

/// A running `kurabe up stack`.
struct Stack {
    child: Option<Child>,
    address: SocketAddr,
    /// User and password as in a URL: `kurabe:PASSWORD@`.
    login: String,
    _place: Place,
}

impl Stack {
    fn start(stack: &str, engine: &str, rest: &[&str]) -> Self {
        Self::before(stack, &format!("up:{engine}"), rest)
    }

    /// Before a database of this URL.
    fn before(stack: &str, database: &str, rest: &[&str]) -> Self {
        let place = Place::new();
        let args = ["up", "stack", stack, "--db", database, "--records", "300"];
        let mut child = piped(&mut place.command(&[&args[..], rest].concat()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.find('@').map_or(0, |at| at + 1);
        let (login, address) = line.split_at(at);
        let (Some(login), Ok(address)) = (login.strip_prefix("http://"), address.trim().parse()) else {
            panic!("no address: {line:?} {:?}", Answer::at_end_of(child));
        };
        Self { child: Some(child), address, login: login.to_owned(), _place: place }
    }

    fn ended(mut self) -> Answer {
        Answer::of(&self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            signal(&child, "-TERM");
            let _ = child.wait();
        }
    }
}

/// The processes whose command line contains all of these parts.
fn processes(parts: &[&str]) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|number| {
            let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            parts.iter().all(|part| line.contains(part))
        })
        .collect()
}

#[test]
fn stack_is_removed_when_it_is_stopped() {
    if !there("php", "mariadb") {
        return;
    }
    let stack = Stack::start("php", "mariadb", &["--variant", "fpm-pdo-persistent", "--workers", "3"]);
    let config = nginx_of(stack.address);
    assert!(TcpStream::connect(stack.address).is_ok());
    signal(stack.child.as_ref().unwrap(), "-TERM");
    let address = stack.address;
    stack.ended().success();
    assert!(TcpStream::connect(address).is_err());
    assert!(!config.exists() && !config.parent().unwrap().exists(), "{}", config.display());
}

/// The configuration of the nginx that listens there.
fn nginx_of(address: SocketAddr) -> PathBuf {
    let listens = format!("listen {address}");
    let folders =
        std::fs::read_dir(std::env::var_os("KURABE_TMP").map_or_else(std::env::temp_dir, PathBuf::from));
    let mut files = folders.unwrap().flatten().map(|entry| entry.path().join("nginx.conf"));
    files.find(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains(&listens))).unwrap()
}

#[test]
fn end_of_one_program_ends_the_stack_and_is_reported() {
    if !there("php", "mariadb") {
        return;
    }
    let stack = Stack::start("php", "mariadb", &[]);
    let folder = nginx_of(stack.address).parent().unwrap().to_owned();
    // The master of php-fpm names its configuration; its workers do not.
    let master = processes(&["php-fpm: master", folder.to_str().unwrap()]);
    assert_eq!(master.len(), 1, "{master:?}");
    let killed = std::process::Command::new("kill").args(["-KILL", &master[0].to_string()]).status().unwrap();
    assert!(killed.success());
    let address = stack.address;
    stack.ended().exit_code(3).err_has("php-fpm").err_has("SIGKILL");
    assert!(TcpStream::connect(address).is_err() && !folder.exists());
    let gone = eventually(20, || processes(&[folder.to_str().unwrap()]).is_empty().then_some(()));
    assert!(gone.is_some(), "{:?}", processes(&[folder.to_str().unwrap()]));
}

/// Whether a process is a descendant of another.
fn descends(mut number: u32, from: u32) -> bool {
    while number > 1 {
        if number == from {
            return true;
        }
        number = kurabe_os::process::Stat::of(number).map_or(0, |stat| stat.parent);
    }
    false
}

#[test]
fn end_of_stack_during_run_fails_its_cells_and_is_named() {
    if !there("php", "mariadb") {
        return;
    }
    let place = Place::new();
    let mut args = vec!["run", "kv", "--via", "stack:php/mysqli-persistent", "--db", "up:mariadb"];
    args.extend(["--records", "300", "--clients", "2", "--rounds", "1", "--duration", "60s", "--no-html"]);
    let run = place.spawn(&args);
    let id = run.id();
    place.wait_for_trials(0);
    let master =
        eventually(120, || processes(&["php-fpm: master"]).into_iter().find(|number| descends(*number, id)));
    let killed = std::process::Command::new("kill").args(["-KILL", &master.unwrap().to_string()]).status();
    assert!(killed.unwrap().success());
    let answer = Answer::at_end_of(run).exit_code(4);
    assert!(answer.err.contains("the application: ") && answer.err.contains("php-fpm"), "{answer:?}");
    assert!(cells(&place.report()).iter().all(|cell| cell["status"] == "failed"), "{answer:?}");
}

/// A relay that changes the last byte of one answer with a record among this many.
fn lying(to: SocketAddr, every: u64) -> Relay {
    let answers = Arc::new(AtomicU64::new(0));
    let lie = move |_| {
        let answers = Arc::clone(&answers);
        on_piece(move |way, bytes, ends| {
            if way == Way::ToClient
                && let Some(last) = bytes.last_mut().filter(|last| last.is_ascii_hexdigit())
                && answers.fetch_add(1, Ordering::Relaxed) % every == every - 1
            {
                *last = if *last == b'0' { b'1' } else { b'0' };
            }
            ends.to.write_all(bytes)
        })
    };
    Relay::start(LOOPBACK, to.into(), lie).unwrap()
}

#[test]
fn one_wrong_answer_in_10_000_fails_its_trial() {
    if !there("php", "mariadb") {
        return;
    }
    let stack = Stack::start("php", "mariadb", &["--variant", "mysqli-persistent"]);
    let relay = lying(stack.address, 10_000);
    let url = format!("http://{}{}", stack.login, relay.address());
    let place = Place::new();
    let answer = place.run(&[
        "run", "kv", "--via", &url, "--operation", "read", "--requests", "10000", "--rounds", "1",
        "--clients", "4", "--no-html", "--quiet",
    ]);
    assert_eq!(answer.code, Some(4), "{answer:?}");
    let report = place.report();
    let failed = cells(&report).iter().filter(|cell| cell["status"] == "failed").collect::<Vec<_>>();
    assert!(!failed.is_empty(), "{report:#}");
    for cell in failed {
        assert!(cell["reason"].as_str().unwrap().contains("wrong content from byte 95 on"), "{cell:#}");
    }
}

#[test]
fn no_planted_lie_passes() {
    if !there("php", "mariadb") {
        return;
    }
    let stack = Stack::start("php", "mariadb", &["--variant", "mysqli-persistent"]);
    lies::no_lie_passes(stack.address, &stack.login, 400, true);
}

#[test]
fn truth_through_the_relay_passes() {
    if !there("php", "mariadb") {
        return;
    }
    let stack = Stack::start("php", "mariadb", &["--variant", "mysqli-persistent"]);
    lies::truth_passes(stack.address, &stack.login, 400);
}
