//! A statement does not outlive its client: it has ended on the server when the error of its time-out is returned.

use super::common::{ENGINES, once, open, with};
use super::tables::raw;
use kurabe_core::ErrorKind;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::statements;
use kurabe_relay::{Relay, Server, Through};
use kurabe_testbed::{StartOptions, testing};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// A statement that runs for a very long time, and one that counts those that run: servers show the text while they prepare it too,
/// and what ends the preparation does not end the statement.
fn texts(engine: &str) -> [&'static str; 2] {
    match engine {
        "postgres" => [
            "SELECT pg_sleep(600 + 7)",
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600 + 7)%' AND wait_event = 'PgSleep'",
        ],
        _ => [
            "SELECT SLEEP(600 + 7)",
            "SELECT COUNT(*) FROM information_schema.processlist \
             WHERE info LIKE '%SLEEP(600 + 7)%' AND state = 'User sleep'",
        ],
    }
}

#[test]
fn statement_has_ended_on_the_server_when_its_client_gave_up() {
    for engine in ENGINES {
        let Some(server) = testing::server(engine) else { continue };
        let [long, count] = texts(engine);
        let driver = open(server.url()).unwrap();
        // Asked by a session of its own.
        let mut observer = driver.connect(&ConnectOptions::default()).unwrap();
        let mut running = || {
            let counted = once(&mut *observer, &raw(&[count]), &[]).unwrap();
            counted.field_int(0, 0).unwrap()
        };
        // A time-out.
        let mut session = driver.connect(&ConnectOptions::within(Duration::from_secs(1))).unwrap();
        let error = once(&mut *session, &raw(&[long]), &[]).unwrap_err();
        assert_eq!((error.kind(), running()), (ErrorKind::Timeout, 0), "{engine}: {error}");
        // An answer that comes late is not taken for that to the next request.
        let error = once(&mut *session, &raw(&[count]), &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{engine}: {error}");
        // Another thread ends it, as at Ctrl-C.
        let trial = statements::new_trial();
        let options = ConnectOptions { trial, ..ConnectOptions::default() };
        let mut session = driver.connect(&options).unwrap();
        let client =
            std::thread::spawn(move || once(&mut *session, &raw(&[long]), &[]).map(drop).unwrap_err());
        while running() == 0 {
            std::thread::yield_now();
        }
        assert!(statements::end(Some(trial)), "{engine}");
        let error = client.join().unwrap();
        assert_eq!((error.kind(), running()), (ErrorKind::Interrupted, 0), "{engine}: {error}");
        // The observer's connection was left alone.
        assert_eq!(running(), 0, "{engine}");
    }
}

/// The connection that ends a statement is checked as the session is: by the name of the host, which its address does not show.
#[test]
fn statement_ends_where_the_certificate_is_for_the_name_and_not_for_the_address() {
    for engine in ENGINES {
        let Some(server) = testing::server_with(engine, StartOptions::with_tls) else { continue };
        let ca = server.ca().unwrap().display().to_string();
        let [long, count] = texts(engine);
        // The certificate is for localhost and 127.0.0.1.
        let elsewhere = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0));
        let relay = Relay::start(elsewhere, Server::local(server.port()), |_| Arc::new(Through)).unwrap();
        let port = relay.address().port();
        let url = if engine == "postgres" {
            let password = server.password().unwrap();
            format!(
                "postgres://kurabe:{password}@localhost:{port}/kurabe?hostaddr=127.0.0.2&sslmode=verify-full&sslrootcert={ca}"
            )
        } else {
            with(&server.url().replace("127.0.0.1", "localhost"), &format!("tls=verify&ca={ca}"))
        };
        let driver = open(&url).unwrap();
        let mut session = driver.connect(&ConnectOptions::within(Duration::from_secs(1))).unwrap();
        let error = once(&mut *session, &raw(&[long]), &[]).unwrap_err();
        let mut observer = driver.connect(&ConnectOptions::default()).unwrap();
        let counted = once(&mut *observer, &raw(&[count]), &[]).unwrap();
        let running = counted.field_int(0, 0).unwrap();
        assert_eq!((error.kind(), running), (ErrorKind::Timeout, 0), "{engine}: {error}");
    }
}
