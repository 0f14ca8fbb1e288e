//! Questions to a server before a capture begins: the columns of its tables, and the settings of new sessions. Only the columns say
//! what a row has that is written without a list of them. The statements are sent under the settings.

use kurabe_capture::file::About;
use kurabe_capture::{Catalogue, Values, session};
use kurabe_copy::sql::{operation, text_operation};
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The time for all of it, which the application's first connection waits.
const PATIENCE: Duration = Duration::from_secs(2);
/// The tables of PostgreSQL's database: its name, schema, table and columns. The server ends it in time.
const POSTGRES: &str = "SET LOCAL search_path TO pg_catalog; SET LOCAL statement_timeout TO 2000; \
    SELECT current_database()::text, n.nspname::text, c.relname::text, string_agg(a.attname::text, E'\\n') \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    WHERE c.relkind IN ('r', 'p', 'f', 'v') AND c.relpersistence <> 't' GROUP BY n.nspname, c.relname";

/// A part of the answer.
enum Piece {
    Settings(Vec<(String, String)>),
    /// A name of the database, and a table with its schema and columns.
    Table([String; 4]),
    End,
}

/// The server's answer.
#[derive(Default)]
pub(super) struct Found {
    /// The catalogue, or why it could not be read; `None` if the protocol's servers have none, or values are not kept.
    pub(super) catalogue: Option<std::result::Result<Catalogue, String>>,
    /// Why the settings of new sessions are not known.
    pub(super) settings_unknown: Option<String>,
}

/// Reads the catalogue by one connection of its own, before the first client has one. Of MySQL's tables, those that are read in time
/// are known. Enters the settings into what the capture is of.
pub(super) fn read(url: &TargetUrl, about: &mut About) -> Found {
    let is_postgres = match about.protocol.as_str() {
        "postgres" | "postgresql" => true,
        "mysql" | "mariadb" => false,
        _ => return Found::default(),
    };
    let keeps_values = about.values == Values::Keep;
    let (end, (send, pieces)) = (Instant::now() + PATIENCE, channel());
    let mut catalogue = Catalogue::new(vec![url.path.clone()]);
    let url = url.clone();
    let asked = move || {
        let ask = |session: &mut dyn Session| {
            let settings = if is_postgres { postgres_settings(session) } else { mysql_settings(session) };
            let _ = send.send(Ok(Piece::Settings(settings?)));
            match (keeps_values, is_postgres) {
                (false, _) => Ok(()),
                (true, true) => {
                    for row in rows(session, &text_operation(POSTGRES), true)? {
                        let _ = send.send(Ok(Piece::Table(row)));
                    }
                    Ok(())
                }
                (true, false) => mysql_tables(session, &send),
            }
        };
        let done = connected(&url).and_then(|mut session| {
            let done = ask(&mut *session);
            session.close().and(done)
        });
        // Nobody waits any more if it is late.
        let _ = send.send(done.map(|()| Piece::End));
    };
    // If the server never answers, it ends by its connection's own time limit, and nobody waits for it.
    if let Err(error) = thread::Builder::new().name("catalogue".to_owned()).spawn(asked) {
        let why = error.to_string();
        return Found { catalogue: keeps_values.then(|| Err(why.clone())), settings_unknown: Some(why) };
    }
    let mut is_read = false;
    let why = loop {
        let late = |_| Error::new(ErrorKind::Timeout, "the server does not answer within two seconds");
        let left = end.saturating_duration_since(Instant::now());
        match pieces.recv_timeout(left).map_err(late).and_then(|piece: Result<Piece>| piece) {
            Ok(Piece::Settings(all)) => about.session = Some(all.into_iter().collect()),
            Ok(Piece::Table([database, schema, table, columns])) => {
                is_read = true;
                catalogue.names(&database);
                catalogue.add(&schema, &table, columns.split('\n'));
            }
            Err(error) => break Some(error.to_string()),
            Ok(Piece::End) => break None,
        }
    };
    let settings_unknown = why.clone().filter(|_| about.session.is_none());
    let catalogue = why.filter(|_| !is_read).map_or(Ok(catalogue), Err);
    Found { catalogue: keeps_values.then_some(catalogue), settings_unknown }
}

fn connected(url: &TargetUrl) -> Result<Box<dyn Session>> {
    let options = ConnectOptions { timeout: PATIENCE, ..ConnectOptions::default() };
    kurabe_drivers::registry::open(url)?.connect(&options)
}

fn postgres_settings(session: &mut dyn Session) -> Result<Vec<(String, String)>> {
    let one = |name: &&str| format!("('{name}', pg_catalog.current_setting('{name}', true))");
    let all: Vec<String> = session::names("postgres").iter().map(one).collect();
    // A server of another make lacks some.
    let known = format!("SELECT s.n, s.v FROM (VALUES {}) AS s(n, v) WHERE s.v IS NOT NULL", all.join(", "));
    Ok(rows(session, &text_operation(&known), true)?
        .into_iter()
        .map(|[name, value, ..]| (name, value))
        .collect())
}

/// Asks by no SELECT, which the server would count among those of the application.
fn mysql_settings(session: &mut dyn Session) -> Result<Vec<(String, String)>> {
    let mut settings = Vec::new();
    for name in session::names("mysql") {
        // Each alone: one of them limits the rows of an answer.
        let show = operation(&format!("SHOW SESSION VARIABLES LIKE '{name}'"));
        settings.extend(rows(session, &show, false)?.into_iter().map(|[name, value, ..]| (name, value)));
    }
    rows(session, &operation("SET sql_select_limit = 18446744073709551615"), false)?;
    Ok(settings)
}

/// Asks by no SELECT either.
fn mysql_tables(session: &mut dyn Session, send: &Sender<Result<Piece>>) -> Result<()> {
    for [table, ..] in rows(session, &operation("SHOW TABLES"), false)? {
        let show = operation(&format!("SHOW COLUMNS FROM `{}`", table.replace('`', "``")));
        // A table that is gone, or a view that is not valid, is not known.
        let Ok(columns) = rows(session, &show, false) else { continue };
        if columns.is_empty() {
            // The user has no right to see them.
            continue;
        }
        let columns = columns.into_iter().map(|[column, ..]| column).collect::<Vec<_>>().join("\n");
        if send.send(Ok(Piece::Table([String::new(), String::new(), table, columns]))).is_err() {
            break;
        }
    }
    Ok(())
}

/// The first four columns of an answer. `is_text`: the server does not prepare it.
fn rows(session: &mut dyn Session, operation: &Operation, is_text: bool) -> Result<Vec<[String; 4]>> {
    let mut reply = Reply::new();
    let prepared = if is_text { session.prepare_literal(operation) } else { session.prepare(operation) }?;
    session.execute(&prepared, &[], &mut reply)?;
    session.release(prepared)?;
    let text = |row, column| match reply.field(row, column) {
        Some(Value::Text(text)) => text.to_owned(),
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    Ok((0..reply.rows()).map(|row| [0, 1, 2, 3].map(|column| text(row, column))).collect())
}
