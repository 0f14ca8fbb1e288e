//! Poolers between the client and PostgreSQL, which are found before anything is locked or created.
//!
//! A server names its process when a connection starts (`BackendKeyData`), and in `pg_backend_pid()`. A pooler such as
//! `PgBouncer`, pgcat or Odyssey answers the first itself, with a number of its own. If it gives a server process to another
//! client while this one is still connected, then a lock or a setting of a session does not belong to that session: the
//! lock would stay on a connection of the pool, and exclude every later run. A lock of a transaction does, and a prepared
//! statement too if the pooler prepares it again where the session goes on (`PgBouncer` from 1.21 on, with
//! `max_prepared_statements`).

use super::config::Config;
use super::lean::Lean;
use crate::prelude::*;
use crate::wire::Stream;
use crate::wire::link::{Link as _, Query, value};
use std::time::Duration;

/// How often two connections are compared. Other clients of the pooler may take the server process in between.
const TRIES: usize = 4;

/// How long a connection may wait for a free server process.
const WAIT: Duration = Duration::from_secs(5);

/// PostgreSQL's manual, "Error Codes": `PgBouncer` refuses a transaction in statement mode with this.
const PROTOCOL_VIOLATION: &str = "08P01";

/// Databases by which poolers let themselves be administered: of `PgBouncer` and pgcat, of Odyssey.
const CONSOLES: [&str; 3] = ["pgbouncer", "pgcat", "console"];

const HINT: &str = "name the server itself, or a database of the pooler with session pooling (PgBouncer: \
                    pool_mode=session), or with prepared statements (PgBouncer 1.21 or newer: max_prepared_statements)";

/// What is said of a pooler without a name.
const UNKNOWN: &str = "a connection pooler (such as PgBouncer)";

/// The server process of the session.
const PROCESS: &str = "SELECT pg_catalog.pg_backend_pid()";

/// A pooler before the server.
pub(super) struct Pooler {
    pub(super) name: String,
    /// Whether a session has a server process only during a transaction.
    pub(super) shares: bool,
}

impl Pooler {
    pub(super) fn note(&self) -> String {
        let mode = if self.shares {
            "transaction mode (it keeps prepared statements; clients wait for its connections)"
        } else {
            "session mode"
        };
        format!(
            "{} stands before the server, in {mode}: its time and processor use are part of every result, and the \
             server's processes are not observed through it",
            self.name
        )
    }

    /// The error of what needs a session that keeps its server process.
    pub(super) fn refuses(&self, what: &str) -> Error {
        let message = format!("{} stands before PostgreSQL and pools transactions: {what}", self.name);
        Error::unsupported(message).hint(HINT)
    }
}

/// Checks whether a pooler stands before the server.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) if it shares server processes among connected clients, and does not keep
/// their prepared statements; or the server's error.
pub(super) fn check(first: &mut Lean<Stream>, config: &Config) -> Result<Option<Pooler>> {
    let process = process(first)?;
    // Servers that speak the protocol and have no processes have no such number.
    if process <= 0 || first.process().is_none_or(|announced| announced == process) {
        return Ok(pgpool(first)?.map(|name| Pooler { name, shares: false }));
    }
    let name = name(config);
    for _ in 0..TRIES {
        // A pool that hands out what was idle longest gives the two sessions their own all the same, but not twice.
        let rotates = self::process(first)?;
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
        let theirs = self::process(&mut other)?;
        let ours = self::process(first).map_err(|error| alone(&name, error))?;
        if ours == theirs {
            // Not every pooler of statements refuses a transaction.
            return Err(refused(&name, "statements"));
        }
        let shared = theirs == before || ours != before || rotates != before;
        // A pooler closes server connections that are left in a transaction.
        other.query("ROLLBACK", &mut Reply::new())?;
        other.quit()?;
        if shared {
            if !keeps_statements(first, config).map_err(|error| alone(&name, error))? {
                return Err(refused(&name, "transactions"));
            }
            let pooler = Pooler { name, shares: true };
            if config.options.is_some() || config.search_path.is_some() {
                return Err(
                    pooler.refuses("settings of a session (options=, search_path=) would not stay with it")
                );
            }
            return Ok(Some(pooler));
        }
    }
    Ok(Some(Pooler { name, shares: false }))
}

/// The name of Pgpool-II, which passes the server's numbers on: the server has another client than this one. Each of its
/// clients has a server process of its own.
fn pgpool(first: &mut Lean<Stream>) -> Result<Option<String>> {
    let seen = value(first, "SELECT pg_catalog.inet_client_port()")?.and_then(|text| text.parse().ok());
    if seen.is_none() || seen == first.port() {
        return Ok(None);
    }
    match value(first, "SHOW pool_version") {
        Ok(version) => {
            Ok(version.map(|version| format!("Pgpool-II {}", version.split(' ').next().unwrap_or(""))))
        }
        // The server itself: the client's port was changed on the way.
        Err(error) if error.server_code().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a prepared statement is there when its session goes on in another server process. Nothing stays on the
/// server: where the pooler does not know of the statement, the process that has it is asked to forget it.
fn keeps_statements(first: &mut Lean<Stream>, config: &Config) -> Result<bool> {
    for _ in 0..TRIES {
        first.query("BEGIN", &mut Reply::new())?;
        let prepared_in = process(first)?;
        let statement = first.prepare_unique(PROCESS);
        first.query("COMMIT", &mut Reply::new())?;
        let Ok(mut statement) = statement else { return Ok(false) };
        // It takes that process, so that the session gets another one.
        let mut other = Lean::connect(config, &ConnectOptions::within(WAIT))?;
        other.query("BEGIN", &mut Reply::new())?;
        process(&mut other)?;
        let mut reply = Reply::new();
        let run = first.run(&mut statement, &[], &mut reply);
        if run.as_ref().is_err_and(|error| error.server_code().is_some()) {
            let _ = other.query(&format!("DEALLOCATE {}", statement.name()), &mut Reply::new());
        }
        other.query("ROLLBACK", &mut Reply::new())?;
        other.quit()?;
        first.forget(statement)?;
        match run {
            Err(error) if error.server_code().is_some() => return Ok(false),
            run => run?,
        }
        if reply.field_int(0, 0) != Some(i64::from(prepared_in)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn process(link: &mut Lean<Stream>) -> Result<i32> {
    let text = value(link, PROCESS)?;
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

/// The error of a session that waited for the pool's only connection, which another one of ours has.
fn alone(name: &str, error: Error) -> Error {
    if error.kind() != ErrorKind::Timeout {
        return error;
    }
    Error::unsupported(format!("{name} stands before PostgreSQL and has no connection for a second session"))
        .hint(
            "allow it more connections (PgBouncer: default_pool_size, pool_size), or name the server itself",
        )
}

fn refused(name: &str, what: &str) -> Error {
    let message = format!(
        "{name} stands before PostgreSQL and pools {what}: prepared statements of a session would stay on connections \
         that others get"
    );
    Error::unsupported(message).hint(HINT)
}
