//! The columns of a server's tables, which alone say what a row has that is written without a list of them.

use kurabe_capture::Catalogue;
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

/// What was read: another name of the database, or a table with its schema and columns; `None` at the end.
type Piece = Option<[String; 4]>;

/// Reads the catalogue by one connection of its own, before the first client has one; why not, if it cannot. `None` if the protocol's
/// servers have none. Of MySQL's tables, those that are read in time are known.
pub(super) fn read(url: &TargetUrl, protocol: &str) -> Option<std::result::Result<Catalogue, String>> {
    let ask = match protocol {
        "postgres" | "postgresql" => postgres,
        "mysql" | "mariadb" => mysql,
        _ => return None,
    };
    let (end, (send, pieces)) = (Instant::now() + PATIENCE, channel());
    let mut catalogue = Catalogue::new(vec![url.path.clone()]);
    let url = url.clone();
    let asked = move || {
        let done = connected(&url).and_then(|mut session| {
            let done = ask(&mut *session, &send);
            session.close().and(done)
        });
        // Nobody waits any more if it is late.
        let _ = send.send(done.map(|()| None));
    };
    // If the server never answers, it ends by its connection's own time limit, and nobody waits for it.
    if let Err(error) = thread::Builder::new().name("catalogue".to_owned()).spawn(asked) {
        return Some(Err(error.to_string()));
    }
    let mut is_read = false;
    loop {
        let late = |_| Error::new(ErrorKind::Timeout, "the server does not answer within two seconds");
        let left = end.saturating_duration_since(Instant::now());
        match pieces.recv_timeout(left).map_err(late).and_then(|piece: Result<Piece>| piece) {
            Ok(Some([database, schema, table, columns])) => {
                is_read = true;
                catalogue.names(&database);
                catalogue.add(&schema, &table, columns.split('\n'));
            }
            Err(error) if !is_read => return Some(Err(error.to_string())),
            Ok(None) | Err(_) => return Some(Ok(catalogue)),
        }
    }
}

fn connected(url: &TargetUrl) -> Result<Box<dyn Session>> {
    let options = ConnectOptions { timeout: PATIENCE, ..ConnectOptions::default() };
    kurabe_drivers::registry::open(url)?.connect(&options)
}

fn postgres(session: &mut dyn Session, send: &Sender<Result<Piece>>) -> Result<()> {
    rows(session, &text_operation(POSTGRES), true)?.into_iter().for_each(|row| {
        let _ = send.send(Ok(Some(row)));
    });
    Ok(())
}

/// Asks by no SELECT, which the server would count among those of the application.
fn mysql(session: &mut dyn Session, send: &Sender<Result<Piece>>) -> Result<()> {
    for [table, ..] in rows(session, &operation("SHOW TABLES"), false)? {
        let show = operation(&format!("SHOW COLUMNS FROM `{}`", table.replace('`', "``")));
        // A table that is gone, or a view that is not valid, is not known.
        let Ok(columns) = rows(session, &show, false) else { continue };
        if columns.is_empty() {
            // The user has no right to see them.
            continue;
        }
        let columns = columns.into_iter().map(|[column, ..]| column).collect::<Vec<_>>().join("\n");
        if send.send(Ok(Some([String::new(), String::new(), table, columns]))).is_err() {
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
