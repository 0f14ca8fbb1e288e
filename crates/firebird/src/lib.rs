//! Firebird 3, by the pure Rust client of the crate `rsfbclient`.

mod claim;
mod connection;
mod dialect;
mod facts;
mod metrics;
mod namespace;
mod statement;

use connection::{CONFLICT, Connection, lock};
use dialect::{DIALECT, MAX_ROWS};
use kurabe_driver_common::clients::RSFBCLIENT_RUST as CLIENT;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{self, shape};
use kurabe_driver_common::wire::link::{Link, LinkSession, Query};
use kurabe_driver_common::wire::{Place, lost};
use rsfbclient_core::{FbError, TrOp};
use rsfbclient_rust::RustFbClientAttachmentConfig;
use statement::{Statement, text};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The driver, for the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["firebird"],
    engine: "Firebird",
    about: "relational server",
    url: "firebird://[user[:password]@][host][:port]/path-or-alias",
    options: &[],
    benchmark_clause: None,
    connections: Connections {
        variables: &[("ISC_PASSWORD", "the password, where the URL has none")],
        authentication: &[("Srp, Srp256", "")],
        ..Connections::NONE
    },
    open,
};

#[derive(Clone)]
struct Firebird {
    place: Place,
    target: RustFbClientAttachmentConfig,
}

/// Without a password in the URL, that of Firebird's environment variable is used.
fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    if url.path.is_empty() {
        return Err(url.wrong("no database is named").hint("firebird://user@host/path-or-alias"));
    }
    let mut target = RustFbClientAttachmentConfig { db_name: url.path.clone(), ..Default::default() };
    (target.host, target.port) = (url.host.clone().unwrap_or("127.0.0.1".into()), url.port.unwrap_or(3050));
    let pass = url.password.as_ref().map(|password| password.expose().to_owned());
    target.pass = pass.or_else(|| std::env::var("ISC_PASSWORD").ok()).unwrap_or_default();
    target.user = url.user.clone().unwrap_or("SYSDBA".into());
    let place = Place::Tcp { host: target.host.clone(), port: target.port };
    Ok(Box::new(Firebird { place, target }))
}

impl Driver for Firebird {
    fn describe(&self) -> Result<ServerFacts> {
        let mut link = FirebirdLink(Connection::open(self, &ConnectOptions::default(), None)?);
        let facts = facts::read(&mut link)?;
        link.quit()?;
        Ok(facts)
    }

    fn supports(&self, operation: &Operation) -> Support {
        match operation {
            Operation::InsertMany { rows, .. } | Operation::InsertEach { rows, .. } if *rows > MAX_ROWS => {
                Support::no(format!("a statement of Firebird adds at most {MAX_ROWS} rows"))
            }
            _ => sql::supports(&DIALECT, operation),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let pipelining = Support::no("the crate rsfbclient waits for each answer before the next request");
        let estimates = Support::no("a plan of Firebird 3 has no row estimates");
        let read_only_sessions = Support::Native;
        Capabilities { estimates, read_only_sessions, ..Capabilities::of_sql(pipelining) }
    }

    fn endpoint(&self) -> Endpoint {
        self.place.endpoint()
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let connection = Connection::open(self, options, None)?;
        connection::lock(&connection).watch(self, options);
        let (link, driver) = (FirebirdLink(connection), self.clone());
        let supports = Arc::new(move |operation: &Operation| driver.supports(operation));
        Ok(Box::new(LinkSession::new(link, Arc::new(DIALECT.clone()), Some(supports))))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(metrics::FirebirdStatsProbe::new(FirebirdLink(Connection::open(self, options, None)?))))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let link = FirebirdLink(Connection::open(self, &ConnectOptions::default(), Some(1))?);
        Ok(Owned::boxed(namespace::FirebirdNamespace::new(link, self.clone())))
    }

    without!(transfers, compression, other_durability, limited_memory, links, dump_tool);
}

/// A connection, which sessions and namespaces use.
struct FirebirdLink(Arc<Mutex<Connection>>);

impl Query for FirebirdLink {
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        lock(&self.0).exchange(|connection| match sql {
            _ if sql == DIALECT.begin => connection.begin_transaction(),
            _ if sql == DIALECT.commit => connection.end_transaction(TrOp::Commit),
            _ if sql == DIALECT.rollback => connection.end_transaction(TrOp::Rollback),
            _ => connection.execute(&text(sql), &[], out),
        })
    }

    fn quit(&mut self) -> Result<()> {
        lock(&self.0).exchange(Connection::quit)
    }

    fn transport(&self) -> String {
        "TCP".to_owned()
    }
}

impl Link for FirebirdLink {
    type Statement = Statement;

    fn ping(&mut self) -> Result<()> {
        let ping = Statement { number: u64::MAX, ..text(DIALECT.ping) };
        lock(&self.0).exchange(|connection| connection.execute(&ping, &[], &mut Reply::new()))
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let statement = Statement { number: NUMBERS.fetch_add(1, Ordering::Relaxed), ..text(sql) };
        lock(&self.0).exchange(|connection| connection.prepare(&statement)).map(|()| statement)
    }

    fn prepare_operation(&mut self, operation: &Operation, sql: &str) -> Result<Statement> {
        let (shape, raw) = (shape(operation)?, matches!(operation, Operation::Raw { .. }));
        Ok(Statement { shape, raw, ..self.prepare(sql)? })
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        check_parameters("the statement", statement.shape.takes.len(), parameters.len())?;
        lock(&self.0).exchange(|connection| connection.execute(statement, parameters, out))
    }

    fn run_in_pages(
        &mut self,
        statement: &mut Statement,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        check_parameters("the statement", statement.shape.takes.len(), parameters.len())?;
        let page = &mut Reply::new();
        lock(&self.0)
            .exchange(|connection| connection.execute_in_pages(statement, parameters, page, Some(pages)))
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        lock(&self.0).exchange(|connection| connection.forget(statement.number))
    }
}

/// Parts of messages of Firebird and the client, their meaning, SQLSTATE and hint.
const KNOWN: [(&str, ErrorKind, &str, &str); 10] = [
    ("read-only transaction", ErrorKind::ReadOnly, "25006", ""),
    ("ContAuth", ErrorKind::Denied, "28000", "the server asks again: check the user and the password"),
    ("Connection closed", ErrorKind::ConnectionLost, "08006", ""),
    ("Error while trying to open", ErrorKind::NotFound, "08001", "does the server have that alias or file?"),
    ("Table unknown", ErrorKind::NotFound, "42S02", ""),
    ("key size", ErrorKind::Limit, "54000", "use shorter keys, or a database with larger pages"),
    ("Name longer than", ErrorKind::Limit, "42000", "a name has at most 31 characters in Firebird 3"),
    ("PRIMARY or UNIQUE KEY", ErrorKind::Server, "23000", ""),
    ("deadlock", ErrorKind::Server, CONFLICT, ""),
    ("lock conflict", ErrorKind::Server, CONFLICT, ""),
];

/// Converts an error of the client, which has the server's message, but few of its codes.
fn explain(error: FbError) -> Error {
    let (message, kind, code) = match error {
        FbError::Io(error) => return lost(&error),
        FbError::Sql { msg, code } => (msg.replace('\n', ": "), ErrorKind::Server, code.to_string()),
        FbError::Other(text) => (text, ErrorKind::Protocol, "client".to_owned()),
    };
    let known = KNOWN.iter().find(|(words, ..)| message.contains(words));
    let (_, kind, code, hint) = *known.unwrap_or(&("", kind, &*code, ""));
    Error::new(kind, format!("Firebird: {message}")).code(code).hint(hint)
}

/// Shows the line of a statement that the server names in its message: `- line 2, column 8`.
fn located(error: Error, statement: &str) -> Error {
    let text = error.to_string();
    let number = |label: &str| -> Option<usize> {
        let (_, rest) = text.rsplit_once(label)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let (Some(line), Some(column)) = (number("line "), number("column ")) else { return error };
    let before: usize =
        statement.split_inclusive('\n').take(line.saturating_sub(1)).map(|line| line.chars().count()).sum();
    error.position(before + column).in_statement(statement)
}
