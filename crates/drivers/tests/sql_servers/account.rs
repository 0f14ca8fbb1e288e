//! Limits, and their errors.

use super::common::{ENGINES, open};
use kurabe_core::ErrorKind;
use kurabe_core::driver::ConnectOptions;
use kurabe_testbed::testing;
use std::time::Duration;

/// Interval between up to a hundred attempts while the server needs time.
const PAUSE: Duration = Duration::from_millis(50);

#[test]
fn full_server_is_a_limit_until_sessions_end() {
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
    }
}
