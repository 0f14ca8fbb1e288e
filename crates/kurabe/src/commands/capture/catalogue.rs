//! The columns of the server's tables: a row without a list of its columns may have a secret, which only they say.

use kurabe_capture::Catalogue;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long the application waits for it at most.
const PATIENCE: Duration = Duration::from_secs(1);
/// Protocols of servers that have one.
const SQL: [&str; 4] = ["postgres", "postgresql", "mysql", "mariadb"];
const COLUMNS: &str = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema NOT IN \
                       ('pg_catalog', 'information_schema', 'mysql', 'performance_schema', 'sys')";

/// What gives them, by a connection of its own; `None` if the protocol's servers have none.
pub(super) fn of(url: &TargetUrl, protocol: &str) -> Option<Catalogue> {
    let url = url.clone();
    let ask = move || {
        let (send, columns) = channel();
        let url = url.clone();
        // It ends with the program, if the server never answers.
        thread::spawn(move || send.send(read(&url)));
        let late = |_| Error::new(ErrorKind::Timeout, "the server does not answer within a second");
        columns.recv_timeout(PATIENCE).map_err(late)?
    };
    SQL.contains(&protocol).then(|| -> Catalogue { Box::new(ask) })
}

fn read(url: &TargetUrl) -> Result<Vec<(String, String)>> {
    let mut session = kurabe_drivers::registry::open(url)?.connect(&ConnectOptions::default())?;
    let query = session.prepare(&kurabe_copy::sql::operation(COLUMNS))?;
    let mut reply = Reply::new();
    session.execute(&query, &[], &mut reply)?;
    let text = |row, field| match reply.field(row, field) {
        Some(Value::Text(text)) => text.to_owned(),
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    let columns = (0..reply.rows()).map(|row| (text(row, 0), text(row, 1))).collect();
    session.close()?;
    Ok(columns)
}
