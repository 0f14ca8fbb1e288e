//! A connection of the crate, with time limits for all calls and containment of panics.
//!
//! One panic cannot be contained: a panic within `Statement::query` poisons a lock that a destructor in the same call
//! then takes; this panics again and ends the process. All other calls borrow their statement, so this cannot happen
//! there.

use super::config::{Config, Lob};
use super::errors;
use super::guard::{contain, discard, within};
use super::values::{self, Bind};
use kurabe_driver_common::prelude::*;
use oracledb::{BindParameters, Connection, Row, Statement, ToDbValue};
use std::time::Duration;

/// Maximum time to close a connection.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

pub(crate) struct Link {
    connection: Option<Connection>,
    timeout: Duration,
    prefetch: u32,
    fetch_size: u32,
    locators: bool,
    transport: &'static str,
}

impl Link {
    /// Connects and applies the session settings of [`Config`], within the timeout, because the crate has no time limit
    /// for connecting.
    pub(crate) fn connect(config: &Config, timeout: Duration) -> Result<Self> {
        let timeout = timeout.max(Duration::from_millis(1));
        let ready = config.for_crate(timeout)?;
        let tls = ready.get_connect_descriptor().to_ascii_lowercase().contains("(protocol=tcps)");
        let place = config.place.clone();
        let made = within(timeout, move || {
            contain("connecting", || oracledb::connect(ready))
                .map_err(|error| error.context(&place))
                .and_then(|made| made.map_err(|error| errors::connecting(&error, &place)))
        })?;
        let connection = made.unwrap_or_else(|| {
            let message = format!("{} does not answer within the time allowed", config.place);
            Err(Error::new(ErrorKind::Timeout, message)
                .hint("the port may not belong to an Oracle listener, or the server hangs"))
        })?;
        let mut link = Self {
            connection: Some(connection),
            timeout,
            prefetch: config.prefetch,
            fetch_size: config.fetch_size,
            locators: config.lob == Lob::Locator,
            transport: if tls { "TCP with TLS" } else { "TCP" },
        };
        link.call("setting its time limit", |connection| connection.set_call_timeout(Some(timeout)))?;
        link.set_up(config)?;
        Ok(link)
    }

    /// Sends one `ALTER SESSION` (one round trip) if a setting has to change.
    fn set_up(&mut self, config: &Config) -> Result<()> {
        let by_language = if let Some(known) = config.sorts_by_language.get() {
            *known
        } else {
            let found = self.rows(SORTING)?;
            let binary = found.iter().all(|row| row.get(1).is_some_and(|value| value == "BINARY"));
            *config.sorts_by_language.get_or_init(|| !binary)
        };
        match alter_session(by_language, config.wait_for_redo) {
            Some(sql) => self.change(&sql, &[]).map(drop),
            None => Ok(()),
        }
    }

    pub(crate) fn transport(&self) -> &'static str {
        self.transport
    }

    /// The server's release, from the login: `23.26.0.0.0`.
    pub(crate) fn version(&mut self) -> Result<String> {
        self.call("reading the version", |connection| Ok(connection.version()?.to_string()))
    }

    pub(crate) fn ping(&mut self) -> Result<()> {
        self.call("pinging", Connection::ping)
    }

    pub(crate) fn commit(&mut self) -> Result<()> {
        self.call("committing", Connection::commit)
    }

    pub(crate) fn rollback(&mut self) -> Result<()> {
        self.call("rolling back", Connection::rollback)
    }

    /// Executes a statement other than a query; returns the number of changed rows. Does not commit.
    pub(crate) fn change(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<u64> {
        let binds: Vec<&dyn ToDbValue> = binds.iter().map(Bind::as_crate).collect();
        let mut statement = self.statement(sql)?;
        let done = self.call("executing", |_| statement.execute(&binds));
        discard(statement);
        done.map(|done| done.rows_affected())
    }

    /// Executes a change once for each `width` parameters, in one request. Does not commit.
    pub(crate) fn changes(&mut self, sql: &str, width: usize, binds: &[Bind<'_>]) -> Result<u64> {
        let binds: Vec<&dyn ToDbValue> = binds.iter().map(Bind::as_crate).collect();
        let rows: Vec<&[&dyn ToDbValue]> = binds.chunks(width.max(1)).collect();
        let mut statement = self.statement(sql)?;
        let done = self.call("executing a batch", |_| statement.execute_batch(BindParameters::Slice(&rows)));
        discard(statement);
        done.map(|done| done.rows_affected())
    }

    /// Executes a query and appends its rows, with columns of these types.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        binds: &[Bind<'_>],
        kinds: &[FieldType],
        out: &mut Reply,
    ) -> Result<()> {
        self.each_row(sql, binds, |row| values::push_row(row, kinds, out))
    }

    /// Reads all rows of a query without parameters, as text; empty text for NULL.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>> {
        let mut rows = Vec::new();
        self.each_row(sql, &[], |row| {
            let text = |column| row.get::<Option<String>>(column).map(Option::unwrap_or_default);
            let fields: std::result::Result<_, _> = (0..row.columns().len()).map(text).collect();
            rows.push(fields.map_err(|error| errors::executing(&error))?);
            Ok(())
        })?;
        Ok(rows)
    }

    fn each_row(
        &mut self,
        sql: &str,
        binds: &[Bind<'_>],
        mut each: impl FnMut(&mut Row) -> Result<()>,
    ) -> Result<()> {
        let binds: Vec<&dyn ToDbValue> = binds.iter().map(Bind::as_crate).collect();
        let statement = self.statement(sql)?;
        let mut cursor = self.call("executing a query", |_| statement.query(&binds))?;
        let fetched = contain("fetching", || {
            for row in cursor.by_ref() {
                each(&mut row.map_err(|error| errors::executing(&error))?)?;
            }
            Ok(())
        });
        discard(cursor);
        let done = fetched.unwrap_or_else(Err);
        self.end_if_lost(done)
    }

    /// A statement from the crate's cache; the server parses it once while it is cached.
    fn statement(&mut self, sql: &str) -> Result<Statement> {
        let (prefetch, fetch_size, locators) = (self.prefetch, self.fetch_size, self.locators);
        self.call("preparing", |connection| {
            let builder = connection.statement(sql)?.prefetch_rows(prefetch).fetch_array_size(fetch_size);
            if locators { builder.fetch_lobs().build() } else { builder.build() }
        })
    }

    fn call<T>(
        &mut self,
        doing: &str,
        call: impl FnOnce(&Connection) -> std::result::Result<T, oracledb::Error>,
    ) -> Result<T> {
        let Some(connection) = &self.connection else {
            return Err(Error::new(ErrorKind::ConnectionLost, "the connection was closed"));
        };
        let called = contain(doing, || call(connection));
        self.end_if_lost(called.and_then(|done| done.map_err(|error| errors::executing(&error))))
    }

    /// Drops the connection after an error that makes it unusable.
    fn end_if_lost<T>(&mut self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done
            && matches!(error.kind(), ErrorKind::ConnectionLost | ErrorKind::Protocol)
            && let Some(connection) = self.connection.take()
        {
            let _ = within(self.timeout.min(CLOSE_LIMIT), move || discard(connection));
        }
        done
    }

    /// Closes the connection; uncommitted changes are rolled back.
    pub(crate) fn quit(&mut self) -> Result<()> {
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        let closed = within(self.timeout.min(CLOSE_LIMIT), move || {
            let closed = contain("closing", || connection.close());
            discard(connection);
            closed.and_then(|closed| closed.map_err(|error| errors::executing(&error)))
        })?;
        closed.unwrap_or_else(|| {
            let message = "the server did not close the connection within the time allowed";
            Err(Error::new(ErrorKind::Timeout, message))
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The connection is closed even if this fails.
        let _ = self.quit();
    }
}

/// Reads how a session compares and sorts text.
pub(crate) const SORTING: &str =
    "SELECT PARAMETER, VALUE FROM NLS_SESSION_PARAMETERS WHERE PARAMETER IN ('NLS_COMP', 'NLS_SORT')";

/// Settings of a session: text compares and sorts by bytes, as in the other engines; and whether a commit waits until
/// its redo is on disk (Database Reference, `COMMIT_WAIT` and `COMMIT_LOGGING`).
pub(crate) fn alter_session(by_language: bool, wait_for_redo: Option<bool>) -> Option<String> {
    let mut settings = Vec::new();
    if by_language {
        settings.extend(["NLS_COMP = BINARY", "NLS_SORT = BINARY"]);
    }
    match wait_for_redo {
        Some(true) => settings.extend(["COMMIT_LOGGING = IMMEDIATE", "COMMIT_WAIT = WAIT"]),
        // IMMEDIATE notifies the log writer of each commit; with BATCH, it learns of them up to three seconds later.
        Some(false) => settings.extend(["COMMIT_LOGGING = IMMEDIATE", "COMMIT_WAIT = NOWAIT"]),
        None => {}
    }
    (!settings.is_empty()).then(|| format!("ALTER SESSION SET {}", settings.join(" ")))
}
