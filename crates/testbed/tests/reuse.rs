//! A server that several tests use, one after the other, is like a new one for each.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kurabe_testbed::StartOptions;
use kurabe_testbed::testing::{self, Lease};

use crate::common::{PROGRAM, Tool, eventually};

/// These tests know which server is the next one: they run one after the other.
fn in_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server of a kind that no other tests use, even if they share the pool.
fn leased(engine: &str) -> Option<Lease> {
    testing::server_with(engine, ours)
}

/// Gives a server back, and leases it again.
fn again(server: Lease, engine: &str) -> Lease {
    let pid = server.pid();
    drop(server);
    let next = leased(engine).unwrap();
    assert_eq!(next.pid(), pid, "{engine}: it is another server");
    next
}

fn ours(options: StartOptions) -> StartOptions {
    StartOptions { timeout: Duration::from_secs(61), ..options }
}

/// What the engine's own client program prints; `None` if it is not installed.
fn ask(server: &Lease, statements: &str) -> Option<String> {
    let socket = server.socket().unwrap();
    let mut command = if server.url().starts_with("postgres") {
        let mut command = Command::new("psql");
        command.arg("-h").arg(socket.parent().unwrap()).arg("-p").arg(server.port().to_string());
        command.args(["-U", "kurabe", "-d", "kurabe", "-XAt", "-v", "ON_ERROR_STOP=1", "-c", statements]);
        command
    } else if server.url().starts_with("redis") || server.url().starts_with("valkey") {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(socket).args(statements.split(' '));
        command.env("REDISCLI_AUTH", server.password().unwrap());
        command
    } else {
        let mut command = Command::new("mariadb");
        command
            .args(["--no-defaults", "-u", "root", "-BN", "kurabe", "-e", statements])
            .arg("--socket")
            .arg(socket)
            .env("MYSQL_PWD", server.password().unwrap());
        command
    };
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            testing::skipped(&format!("{}: {error}", command.get_program().display()));
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{statements}: {errors}");
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Sends bytes to a server's port, and returns what it answers until it closes the connection.
fn raw(server: &Lease, request: &str) -> String {
    let mut stream = testing::connected(server).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Soils a server, gives it back, and checks that the next user gets the same server as it was.
fn is_as_before(engine: &str, soil: &[&str], look: &[&str]) {
    let _turn = in_turn();
    let Some(server) = leased(engine) else { return };
    let all = |server: &Lease| look.iter().map(|what| ask(server, what)).collect::<Option<Vec<_>>>();
    let Some(before) = all(&server) else { return };
    if ["postgres", "mysql", "mariadb"].contains(&engine) {
        testing::make_superuser(&server);
    }
    for statements in soil {
        ask(&server, statements);
    }
    assert_ne!(all(&server).unwrap(), before, "{engine}: nothing was changed");
    let server = again(server, engine);
    assert_eq!(all(&server).unwrap(), before, "{engine}");
}

#[test]
fn postgres_is_as_before() {
    is_as_before(
        "postgres",
        &[
            "CREATE TABLE t (id int)",
            "CREATE DATABASE other",
            "CREATE ROLE reader LOGIN PASSWORD 'x'; GRANT SELECT ON t TO reader",
            "ALTER SYSTEM SET work_mem = '77MB'",
            "SELECT pg_reload_conf(), pg_sleep(0.1)",
            "ALTER ROLE kurabe SET statement_timeout = 99999; ALTER DATABASE kurabe SET lock_timeout = 9",
            "SELECT pg_create_physical_replication_slot('slot')",
        ],
        &[
            "SELECT count(*) FROM pg_class",
            "SELECT datname, datacl FROM pg_database ORDER BY 1",
            "SELECT rolname, rolsuper FROM pg_roles ORDER BY 1",
            "SHOW work_mem",
            "SHOW statement_timeout",
            "SHOW lock_timeout",
            "SELECT slot_name FROM pg_replication_slots",
        ],
    );
}

#[test]
fn mysql_and_mariadb_are_as_before() {
    for engine in ["mysql", "mariadb"] {
        is_as_before(
            engine,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY)",
                "CREATE DATABASE `o``ther`",
                "CREATE USER reader@'%' IDENTIFIED BY 'x'; GRANT SELECT ON kurabe.* TO reader@'%'",
                "SET GLOBAL max_connections = 77; SET GLOBAL long_query_time = 0.25; SET GLOBAL slow_query_log = ON",
                "SET GLOBAL sql_mode = ''; SET GLOBAL init_connect = 'SELECT 1'; SET GLOBAL log_output = 'TABLE'",
                "CREATE SERVER far FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.1', DATABASE 'x')",
                "ALTER DATABASE kurabe CHARACTER SET latin1",
            ],
            &[
                "SHOW TABLES",
                "SHOW DATABASES",
                "SHOW CREATE DATABASE kurabe",
                "SELECT user, host FROM mysql.user ORDER BY 1, 2",
                "SHOW GLOBAL VARIABLES WHERE variable_name IN ('max_connections', 'long_query_time', 'slow_query_log', \
                 'sql_mode', 'init_connect', 'log_output')",
                "SELECT server_name FROM mysql.servers",
                "SELECT COUNT(*) FROM mysql.slow_log",
            ],
        );
    }
}

#[test]
fn mysql_has_its_redo_log_again() {
    is_as_before(
        "mysql",
        &["ALTER INSTANCE DISABLE INNODB REDO_LOG"],
        &["SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'"],
    );
}

#[test]
fn redis_and_valkey_are_as_before() {
    for engine in ["redis", "valkey"] {
        is_as_before(
            engine,
            &[
                "SET key value",
                "CONFIG SET maxmemory 77mb maxmemory-policy allkeys-lru",
                "ACL SETUSER reader on nopass ~* +get",
                "CLIENT PAUSE 100 WRITE",
            ],
            &["DBSIZE", "CONFIG GET maxmemory*", "ACL USERS"],
        );
    }
}

#[test]
fn memcached_is_as_before() {
    let _turn = in_turn();
    let Some(server) = leased("memcached") else { return };
    assert_eq!(raw(&server, "set a 0 0 1\r\nx\r\nquit\r\n"), "STORED\r\n");
    let server = again(server, "memcached");
    let answer = raw(&server, "get a\r\nstats\r\nquit\r\n");
    assert!(answer.starts_with("END\r\n") && answer.contains("STAT curr_items 0\r\n"), "{answer}");
    assert!(answer.contains("STAT cmd_set 0\r\n"), "{answer}");
}

#[test]
fn couchdb_is_as_before() {
    let _turn = in_turn();
    let Some(server) = leased("couchdb") else { return };
    let http = |server: &Lease, method: &str, path: &str| {
        let user = testing::authorization(server);
        let head = format!("Host: localhost\r\nConnection: close\r\nContent-Length: 0\r\n{user}");
        raw(server, &format!("{method} {path} HTTP/1.1\r\n{head}\r\n"))
    };
    let before = http(&server, "GET", "/_all_dbs");
    let made = http(&server, "PUT", "/some_db");
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    assert!(http(&server, "GET", "/_all_dbs").contains("some_db"));
    let server = again(server, "couchdb");
    let names = |answer: &str| answer.rsplit("\r\n\r\n").next().unwrap().trim().to_owned();
    assert_eq!(names(&http(&server, "GET", "/_all_dbs")), names(&before));
}

#[test]
fn session_of_earlier_test_is_closed() {
    let _turn = in_turn();
    let Some(server) = leased("mariadb") else { return };
    let mut left = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    left.read_exact(&mut [0; 4]).unwrap();
    let server = again(server, "mariadb");
    let mut rest = Vec::new();
    // The rest of the greeting, and the end; a reset is an end too.
    let _ = left.read_to_end(&mut rest);
    assert!(ask(&server, "SHOW PROCESSLIST").is_none_or(|list| !list.contains("unauthenticated")));
}

/// The processors to which a process is restricted, as the system shows them.
fn processors(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap().to_owned()
}

#[test]
fn restarted_and_restricted_servers_are_as_before() {
    let _turn = in_turn();
    let Some(server) = leased("redis") else { return };
    let all = processors(server.pid());
    ask(&server, "SET key value");
    server.restart().unwrap();
    server.restrict(&[0], true).unwrap();
    let server = again(server, "redis");
    assert_eq!(processors(server.pid()), all);
    assert!(ask(&server, "DBSIZE").is_none_or(|keys| keys == "0"));
}

#[test]
fn server_that_cannot_be_reset_or_does_not_run_is_not_used_again() {
    type Change = fn(&Lease);
    let _turn = in_turn();
    let killed: Change = |server| {
        crate::common::send(server.pid(), rustix::process::Signal::KILL);
        eventually("its end is known", || server.died().is_some());
    };
    let changes: [(&str, Change); 3] = [
        ("redis", |server| server.kill_hard().unwrap()),
        ("memcached", |server| server.pause().unwrap()),
        ("memcached", killed),
    ];
    for (engine, change) in changes {
        let Some(server) = leased(engine) else { continue };
        change(&server);
        let (pid, dir) = (server.pid(), server.dir().to_owned());
        drop(server);
        assert!(!dir.exists(), "it was not removed");
        assert_ne!(leased(engine).unwrap().pid(), pid);
    }
    // No statement takes a plugin's data out of the server again.
    let Some(server) = leased("mariadb") else { return };
    if ask(&server, "INSTALL SONAME 'auth_ed25519'").is_some() {
        let pid = server.pid();
        drop(server);
        let next = leased("mariadb").unwrap();
        assert_ne!(next.pid(), pid);
    }
}

#[test]
fn server_of_failed_test_is_not_used_again() {
    let _turn = in_turn();
    if !crate::common::installed("memcached") {
        return;
    }
    let failed = std::thread::spawn(|| {
        let server = leased("memcached").unwrap();
        std::panic::panic_any(server.dir().to_owned());
    });
    let dir = *failed.join().unwrap_err().downcast::<std::path::PathBuf>().unwrap();
    assert!(!dir.exists());
}

#[test]
fn two_users_at_once_have_two_servers_and_options_make_kinds() {
    let _turn = in_turn();
    let with_memory = || testing::server_with("memcached", |options| ours(options).set("m", 77));
    let (Some(one), Some(two), Some(other)) = (leased("memcached"), leased("memcached"), with_memory())
    else {
        return;
    };
    assert!(one.pid() != two.pid() && one.pid() != other.pid());
    let pid = other.pid();
    drop(other);
    assert_eq!(with_memory().unwrap().pid(), pid);
}

#[test]
fn program_leases_a_server_and_returns_it_however_it_ends() {
    let _turn = in_turn();
    // No test uses this setting.
    let lease = || testing::server_with("memcached", |options| options.set("m", 79));
    let Some(server) = lease() else { return };
    let pid = server.pid();
    drop(server);
    let tool = |small: bool| {
        let mut command = Command::new(PROGRAM);
        command.args(["up", "memcached", "m=79"]).env(testing::POOL, testing::pool().unwrap());
        if small {
            command.env(testing::SMALL, "1");
        }
        Tool::of(&mut command)
    };
    let mut of_its_own = tool(false);
    assert_ne!(of_its_own.server, pid, "its servers are not those of tests");
    of_its_own.child.kill().unwrap();
    let mut leasing = tool(true);
    assert_eq!(leasing.server, pid);
    let mut others = vec![lease().unwrap()];
    assert_ne!(others[0].pid(), pid, "it has two users");
    leasing.child.kill().unwrap();
    leasing.child.wait().unwrap();
    eventually("the server is back", || {
        let next = lease().unwrap();
        let back = next.pid() == pid;
        others.push(next);
        back || {
            std::thread::sleep(Duration::from_millis(100));
            false
        }
    });
}
