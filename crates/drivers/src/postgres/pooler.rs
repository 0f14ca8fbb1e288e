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

/// Databases by which poolers let themselves be administered: of `PgBouncer` and pgcat, of Odyssey.
const CONSOLES: [&str; 3] = ["pgbouncer", "pgcat", "console"];

/// What is said of a pooler without a name.
const UNKNOWN: &str = "a connection pooler (such as PgBouncer)";

/// The note about a pooler that gives each client a server process of its own.
pub(super) fn note(name: &str) -> String {
    format!(
        "{name} stands before the server, in session mode: its time and processor use are part of every result, and the \
         server's processes are not observed through it"
    )
}

/// Checks whether a pooler stands before the server. Returns its name if it does and keeps sessions apart.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) if it shares server processes among connected clients; or the server's error.
pub(super) fn check(first: &mut Lean<Stream>, config: &Config) -> Result<Option<String>> {
    let process = process(first)?;
    // Servers that speak the protocol and have no processes have no such number.
    if process <= 0 || first.process().is_none_or(|announced| announced == process) {
        return Ok(None);
    }
    let name = name(config);
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
                return Err(refused(&name, "statements"));
            }
            done => done?,
        }
        let shared = self::process(&mut other)? == before || self::process(first)? != before;
        // A pooler closes server connections that are left in a transaction.
        other.query("ROLLBACK", &mut Reply::new())?;
        other.quit()?;
        if shared {
            return Err(refused(&name, "transactions"));
        }
    }
    Ok(Some(name))
}

fn process(link: &mut Lean<Stream>) -> Result<i32> {
    let text = value(link, "SELECT pg_catalog.pg_backend_pid()")?;
    Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// The pooler's name and version, by its console. Who may not use that learns its name only.
fn name(config: &Config) -> String {
    for console in CONSOLES {
        let config = Config { database: console.to_owned(), ..config.clone() };
        let answer = Lean::connect(&config, &ConnectOptions::within(WAIT)).and_then(|mut link| {
            let version = value(&mut link, "SHOW VERSION")?;
            link.quit()?;
            Ok(version)
        });
        match answer {
            Ok(Some(version)) => return version.split(" (").next().unwrap_or(UNKNOWN).trim().to_owned(),
            // PgBouncer refuses its own database to others than its administrators.
            Err(error) if console == "pgbouncer" && error.to_string().contains("not allowed") => {
                return "PgBouncer".to_owned();
            }
            _ => {}
        }
    }
    UNKNOWN.to_owned()
}

fn refused(name: &str, what: &str) -> Error {
    let message = format!(
        "{name} stands before PostgreSQL and pools {what}: locks and prepared statements of a \
         session would stay on connections that others get"
    );
    Error::unsupported(message)
        .hint("name the server itself, or a database of the pooler with session pooling (PgBouncer: pool_mode=session)")
}
