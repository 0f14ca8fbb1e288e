//! Messages for missing servers.

use std::process::Command;

use kurabe_testbed::{StartOptions, TestbedError};

/// The tool on a machine without any server.
fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(crate::common::PROGRAM);
    command
        .args(args)
        .env("PATH", "")
        .env("KURABE_SERVER_PATH", "/nonexistent")
        .env("KURABE_CACHE", "/nonexistent");
    command
}

#[test]
fn missing_engine_is_reported_with_install_instructions() {
    for (engine, package) in [
        ("postgres", "https://www.postgresql.org/download"),
        ("mariadb", "https://mariadb.org/download"),
        ("memcached", "https://memcached.org/downloads"),
        ("mysql", "https://dev.mysql.com/downloads/mysql"),
        ("valkey", "https://valkey.io/download"),
        ("mongodb", "https://www.mongodb.com/"),
        ("couchdb", "https://couchdb.apache.org"),
    ] {
        let output = bare(&["up", engine]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(said.starts_with(&format!("{engine} is not installed: ")), "{said}");
        assert!(said.contains(package), "{said}");
    }
}

#[test]
fn available_lists_missing_engines() {
    let output = bare(&["available"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().count(), kurabe_testbed::engines().count());
    // The listener is part of the program.
    let missing = |line: &str| line.starts_with("tcp: ") != line.contains("not installed");
    assert!(said.lines().all(missing), "{said}");
}

#[test]
fn unknown_engine_error_lists_known_engines() {
    let error = kurabe_testbed::start("postgers", &crate::common::options()).unwrap_err();
    let all = "mysql, mysql@5.5, mariadb, postgres, memcached, redis, valkey, mongodb, couchdb, tcp";
    assert!(error.to_string().contains(all), "{error}");
}

#[test]
fn program_without_supervisor_is_detected() {
    for program in ["/bin/true", "/bin/cat", "/nonexistent/supervisor"] {
        let error = kurabe_testbed::start("memcached", &StartOptions::new(program)).unwrap_err();
        assert!(matches!(error, TestbedError::Supervisor { .. }), "{program}: {error}");
    }
}

#[test]
fn missing_folder_is_reported() {
    if !crate::common::installed("memcached") {
        return;
    }
    let error = kurabe_testbed::start("memcached", &crate::common::options().in_folder("/nonexistent/base"))
        .unwrap_err();
    assert!(error.to_string().contains("/nonexistent/base"), "{error}");
}
