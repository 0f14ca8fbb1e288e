//! A statement does not outlive its client: it has ended on the server when the error of its time-out is returned.

use super::common::{ENGINES, once, open};
use super::tables::raw;
use kurabe_core::ErrorKind;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::statements;
use kurabe_testbed::testing;
use std::time::Duration;

/// A statement that runs for a very long time, and one that counts such statements.
fn texts(engine: &str) -> [&'static str; 2] {
    match engine {
        "postgres" => [
            "SELECT pg_sleep(600 + 7)",
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600 + 7)%' AND pid <> pg_backend_pid()",
        ],
        _ => [
            "SELECT SLEEP(600 + 7)",
            "SELECT COUNT(*) FROM information_schema.processlist \
             WHERE info LIKE '%SLEEP(600 + 7)%' AND id <> CONNECTION_ID()",
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
