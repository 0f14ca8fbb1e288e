//! The columns of a server's tables, which alone say what a row has that is written without a list of them.

use kurabe_capture::Catalogue;
use kurabe_copy::sql::{GAP, operation};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long the application waits for it at most, once for each table.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads them by a connection of its own; `None` if the protocol's servers have none.
pub(super) fn of(url: &TargetUrl, protocol: &str) -> Option<Catalogue> {
    let is_postgres = match protocol {
        "postgres" | "postgresql" => true,
        "mysql" | "mariadb" => false,
        _ => return None,
    };
    let url = url.clone();
    Some(Box::new(move |table| {
        let (send, columns) = channel();
        let (url, table) = (url.clone(), table.to_owned());
        // It ends with the program, if the server never answers.
        thread::spawn(move || send.send(read(&url, &table, is_postgres)));
        let late = |_| Error::new(ErrorKind::Timeout, "the server does not answer within a second");
        columns.recv_timeout(PATIENCE).map_err(late)?
    }))
}

fn read(url: &TargetUrl, table: &str, is_postgres: bool) -> Result<Vec<String>> {
    let mut session = kurabe_drivers::registry::open(url)?.connect(&ConnectOptions::default())?;
    let (query, parameters) = if is_postgres {
        let query =
            "SELECT column_name::text FROM information_schema.columns WHERE lower(table_name) = lower";
        (format!("{query}({GAP}::text)"), &[Value::Text(table)][..])
    } else {
        // No SELECT, which the server would count among those of the application.
        (format!("SHOW COLUMNS FROM `{}`", table.replace('`', "``")), &[][..])
    };
    let mut reply = Reply::new();
    let done = session
        .prepare(&operation(&query))
        .and_then(|prepared| session.execute(&prepared, parameters, &mut reply));
    session.close()?;
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        done => done?,
    }
    let text = |row| match reply.field(row, 0) {
        Some(Value::Text(text)) => text.to_owned(),
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    Ok((0..reply.rows()).map(text).collect())
}
