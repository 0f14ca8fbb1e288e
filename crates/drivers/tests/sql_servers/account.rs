//! Logins, privileges and limits, and their errors.

use super::common::{ENGINES, open, refusal, table, with, with_password};
use kurabe_core::ErrorKind;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::durability::DurabilityClass;
use kurabe_testbed::testing;
use std::time::Duration;

/// Interval between up to a hundred attempts while the server needs time.
const PAUSE: Duration = Duration::from_millis(50);

#[test]
fn server_facts_are_complete() {
    for engine in ENGINES {
        let Some(server) = testing::server(engine) else { continue };
        let facts = open(server.url()).unwrap().describe().unwrap();
        let name = match engine {
            "mysql" => "MySQL",
            "mariadb" => "MariaDB",
            _ => "PostgreSQL",
        };
        assert_eq!(facts.engine, name);
        assert!(facts.version.contains(server.version()), "{} {}", facts.version, server.version());
        assert_eq!(facts.durability, Some(DurabilityClass::Synced), "{facts:?}");
        assert!(facts.durability_settings.len() > 3, "{facts:?}");
        assert!(facts.settings.len() > 10, "{facts:?}");
        assert_eq!(facts.transport, "TCP");
        // The server may still count connections that were just closed, longer on a busy machine.
        let few = (0..100).any(|_| {
            std::thread::sleep(PAUSE);
            let now = open(server.url()).unwrap().describe().unwrap();
            now.limits.connections_in_use.is_some_and(|n| n <= 3)
        });
        assert!(few, "{facts:?}");
        assert!(facts.limits.connections.is_some_and(|limit| limit.most >= 90));
        assert!(facts.limits.value_bytes.is_some() && facts.limits.request_bytes.is_some());
    }
}

#[test]
fn wrong_password_and_missing_database_have_different_errors() {
    for engine in ENGINES {
        let Some(server) = testing::server_with(engine, |options| options.with_password("right:p@ss")) else {
            continue;
        };
        let url = with_password(server.url(), "right%3Ap%40ss");
        open(&url).unwrap().describe().unwrap();
        let error = refusal(&with_password(server.url(), "hunter2"));
        assert_eq!(error.kind(), ErrorKind::Denied, "{engine}: {error}");
        assert!(error.server_code().is_some(), "{engine}: {error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        let (start, _) = url.rsplit_once('/').unwrap();
        let error = refusal(&format!("{start}/no_such_database"));
        assert_eq!(error.kind(), ErrorKind::NotFound, "{engine}: {error}");
    }
}

#[test]
fn stopped_server_and_full_server_have_different_errors() {
    for engine in ENGINES {
        let settings = if engine == "postgres" { 5 } else { 2 };
        let Some(server) = testing::server_with(engine, |options| options.set("max_connections", settings))
        else {
            continue;
        };
        let url = server.url().to_owned();
        let driver = open(&url).unwrap();
        let mut held = Vec::new();
        let error = loop {
            match driver.connect(&ConnectOptions::default()) {
                Ok(session) => held.push(session),
                Err(error) => break error,
            }
            assert!(held.len() < 20, "{engine}: no limit");
        };
        assert_eq!(error.kind(), ErrorKind::Limit, "{engine}: {error}");
        for session in held {
            session.close().unwrap();
        }
        // The server needs time to notice the closed connections.
        let again = (0..100).any(|_| {
            std::thread::sleep(PAUSE);
            driver.connect(&ConnectOptions::default()).is_ok()
        });
        assert!(again, "{engine}: the connections are still held");
        let url = server.url().to_owned();
        server.stop().unwrap();
        let error = refusal(&url);
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{url}: {error}");
        assert!(error.to_string().contains("nothing listens at 127.0.0.1:"), "{error}");
    }
}

#[test]
fn two_runs_do_not_share_a_database_but_one_run_may_use_it_twice() {
    for engine in ENGINES {
        let Some(server) = testing::server(engine) else { continue };
        let driver = open(server.url()).unwrap();
        let mut first = driver.namespace().unwrap();
        first.claim("2026-11-20 session").unwrap();
        driver.namespace().unwrap().claim("2026-11-20 session").unwrap();
        let error = driver.namespace().unwrap().claim("another").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse, "{engine}: {error}");
        assert!(error.to_string().contains("user "), "{engine}: {error}");
        drop(first);
        // The server needs time to notice the closed connection.
        let free = (0..100).any(|_| {
            std::thread::sleep(PAUSE);
            driver.namespace().unwrap().claim("another").is_ok()
        });
        assert!(free, "{engine}: the lease remains after its connection ended");
    }
}

#[test]
fn target_selects_storage_engine() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let url = server.url().to_owned();
        let driver = open(&with(&url, "engine=MyISAM")).unwrap();
        assert_eq!(driver.describe().unwrap().durability, Some(DurabilityClass::Memory));
        let mut namespace = driver.namespace().unwrap();
        namespace.create(&table("kurabe_engine")).unwrap();
        namespace.remove("kurabe_engine").unwrap();
        let error = open(&with(&url, "engine=Nonsense")).unwrap();
        let error = error.namespace().unwrap().create(&table("kurabe_engine")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}
