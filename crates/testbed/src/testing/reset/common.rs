//! What a reset is, and steps that engines have in common.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::Server;

/// What tests can change in a server, by names that are for display.
pub(crate) type State = BTreeMap<String, String>;

/// How servers of an engine are reset.
pub(crate) struct Reset {
    /// Whether servers with TLS are reset too: those with a Unix socket that has none.
    pub with_tls: bool,
    /// Reads its state.
    pub state: fn(&Server) -> Result<State, String>,
    /// Makes it as it was at the start, without a check of the result.
    pub clean: fn(&Server, first: &State) -> Result<(), String>,
}

/// How long a server may take for one step.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to a server's Unix socket.
pub(super) fn connect(server: &Server) -> Result<UnixStream, String> {
    let path = server.socket().ok_or("it has no socket")?;
    let open = || {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(stream)
    };
    open().map_err(|error: io::Error| format!("{} ({error})", path.display()))
}

/// Repeats an attempt until it is done.
pub(super) fn until(what: &str, done: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    within(TIMEOUT, what, done)
}

/// Repeats an attempt until it is done or this time has passed.
pub(super) fn within(
    limit: Duration,
    what: &str,
    mut done: impl FnMut() -> Result<bool, String>,
) -> Result<(), String> {
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
pub(super) fn changed(first: &State, now: &State, prefix: &str) -> Vec<(String, String)> {
    let different = first.iter().filter(|(name, value)| now.get(*name) != Some(*value));
    different
        .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone())))
        .collect()
}
