//! Poolers between the client and PostgreSQL, which are found before anything is locked or created.
//!
//! A server names its process when a connection starts (`BackendKeyData`), and in `pg_backend_pid()`. A pooler such as
//! `PgBouncer`, pgcat or Odyssey answers the first itself, with a number of its own. If it gives a server process to another
//! client while this one is still connected, then a lock or a prepared statement of a session does not belong to that
//! session: the lock would stay on a connection of the pool, and exclude every later run.

use super::config::Config;
use super::lean::Lean;
use crate::prelude::*;
use crate::wire::Stream;
use crate::wire::link::{Query, value};
use std::time::Duration;

/// How often two connections are compared. Other clients of the pooler may take the server process in between.
const TRIES: usize = 4;

/// How long a connection may wait for a free server process.
const WAIT: Duration = Duration::from_secs(5);

/// PostgreSQL's manual, "Error Codes": `PgBouncer` refuses a transaction in statement mode with this.
const PROTOCOL_VIOLATION: &str = "08P01";

/// The note about a pooler that gives each client a server process of its own.
const NOTE: &str = "a connection pooler (such as PgBouncer) stands before the server, in session mode: its time and processor use are \
                    part of every result, and the server's processes are not observed through it";

/// Checks whether a pooler stands before the server. Returns a note if it does and keeps sessions apart.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) if it shares server processes among connected clients; or the server's error.
pub(super) fn check(first: &mut Lean<Stream>, config: &Config) -> Result<Option<&'static str>> {
    let process = process(first)?;
    // Servers that speak the protocol and have no processes have no such number.
    if process <= 0 || first.process().is_none_or(|announced| announced == process) {
        return Ok(None);
    }
    for _ in 0..TRIES {
        let before = self::process(first)?;
        let mut other = match Lean::connect(config, &ConnectOptions::within(WAIT)) {
            // The pool is exhausted: what the first connection has, it keeps.
            Err(error) if error.kind() == ErrorKind::Timeout => break,
            other => other?,
        };
        // In a transaction it keeps its server process. The first connection is idle, and has none in a shared pool.
        match other.query("BEGIN", &mut Reply::new()) {
            Err(error) if error.kind() == ErrorKind::Timeout => break,
            Err(error) if error.server_code() == Some(PROTOCOL_VIOLATION) => {
                return Err(refused("statements"));
            }
            done => done?,
        }
        let shared = self::process(&mut other)? == before || self::process(first)? != before;
        // A pooler closes server connections that are left in a transaction.
        other.query("ROLLBACK", &mut Reply::new())?;
        other.quit()?;
        if shared {
            return Err(refused("transactions"));
        }
    }
    Ok(Some(NOTE))
}

fn process(link: &mut Lean<Stream>) -> Result<i32> {
    let text = value(link, "SELECT pg_catalog.pg_backend_pid()")?;
    Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
}

fn refused(what: &str) -> Error {
    let message = format!(
        "a connection pooler (such as PgBouncer) stands before PostgreSQL and pools {what}: locks and prepared statements of a \
         session would stay on connections that others get"
    );
    Error::unsupported(message)
        .hint("name the server itself, or a database of the pooler with session pooling (PgBouncer: pool_mode=session)")
}
