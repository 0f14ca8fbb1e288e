//! How a server that a test has used becomes like a new one, through a minimal client of its protocol.
//!
//! Kurabe's drivers are what tests test, so that none of this uses them.

mod couchdb;
mod firebird;
mod memcached;
mod mongodb;
mod mysql;
mod postgres;
mod redis;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::Server;

/// What tests can change in a server, by names that are for display.
pub(super) type State = BTreeMap<String, String>;

/// How servers of an engine are reset.
pub(super) struct Reset {
    /// Whether servers with TLS are reset too: those with a Unix socket that has none.
    pub with_tls: bool,
    /// Reads its state.
    pub state: fn(&Server) -> Result<State, String>,
    /// Makes it as it was at the start, without a check of the result.
    pub clean: fn(&Server, first: &State) -> Result<(), String>,
}

/// How servers of this engine are reset; `None` if they are not.
pub(super) fn of(engine: &str) -> Option<&'static Reset> {
    static TCP: Reset = Reset { with_tls: false, state: |_| Ok(State::new()), clean: |_, _| Ok(()) };
    match engine {
        "postgres" => Some(&postgres::RESET),
        "mysql" | "mariadb" => Some(&mysql::RESET),
        "redis" | "valkey" => Some(&redis::RESET),
        "memcached" => Some(&memcached::RESET),
        "mongodb" => Some(&mongodb::RESET),
        "couchdb" => Some(&couchdb::RESET),
        "firebird" => Some(&firebird::RESET),
        // It keeps nothing.
        "tcp" => Some(&TCP),
        _ => None,
    }
}

/// How long a server may take for one step.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to a server's Unix socket.
fn connect(server: &Server) -> Result<UnixStream, String> {
    let path = server.socket().ok_or("it has no socket")?;
    let open = || {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(stream)
    };
    open().map_err(|error: io::Error| format!("{} ({error})", path.display()))
}

/// Repeats an attempt until it is done.
fn until(what: &str, done: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    within(TIMEOUT, what, done)
}

/// Repeats an attempt until it is done or this time has passed.
fn within(limit: Duration, what: &str, mut done: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let until = Instant::now() + limit;
    while !done()? {
        if Instant::now() > until {
            return Err(format!("{what}: not within {} s", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// The settings that differ now from those at the start, with their first values: names after `prefix`.
fn changed(first: &State, now: &State, prefix: &str) -> Vec<(String, String)> {
    let different = first.iter().filter(|(name, value)| now.get(*name) != Some(*value));
    different
        .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone())))
        .collect()
}
