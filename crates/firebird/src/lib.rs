//! Firebird 3, by the pure Rust client of the crate `rsfbclient`.

mod connection;
mod dialect;
mod namespace;

use connection::{Connection, Statement, lock, text};
use dialect::{DIALECT, MOST_ROWS};
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{self, shape};
use kurabe_driver_common::wire::link::{Link, LinkSession, Query, rows};
use kurabe_driver_common::wire::{Place, lost};
use rsfbclient_core::{FbError, TrOp};
use rsfbclient_rust::RustFbClientAttachmentConfig;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const CLIENT: &str = "rsfbclient 0.29, pure Rust";

/// The driver, for the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["firebird"],
    engine: "Firebird",
    about: "relational server",
    url: "firebird://[user[:password]@][host][:port]/path-or-alias",
    options: &[],
    benchmark_clause: None,
    statements: None,
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
        let sql = "SELECT RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION'), TRIM(IIF(MON$FORCED_WRITES = 1, 'on', 'off')), \
                   MON$PAGE_SIZE, MON$PAGE_BUFFERS, MON$SWEEP_INTERVAL, MON$SQL_DIALECT FROM MON$DATABASE";
        let row = rows(&mut link, sql)?.into_iter().next().unwrap_or_default();
        link.quit()?;
        let [version, forced, settings @ ..] = row.as_slice() else {
            return Err(Error::new(ErrorKind::Protocol, "the server does not describe its database"));
        };
        let settings = ["page size", "page buffers", "sweep interval", "SQL dialect"].iter().zip(settings);
        // A commit writes its pages: to the storage, or to the operating system.
        let synced = if forced == "on" { DurabilityClass::Synced } else { DurabilityClass::OsCache };
        Ok(ServerFacts {
            engine: INFO.engine.to_owned(),
            version: version.clone(),
            client: CLIENT.to_owned(),
            transport: "TCP".to_owned(),
            durability: Some(synced),
            durability_settings: vec![Setting::new("ForcedWrites", forced)],
            settings: settings.map(|(name, value)| Setting::new(*name, value)).collect(),
            notes: NOTES.map(str::to_owned).to_vec(),
            ..ServerFacts::default()
        })
    }

    fn supports(&self, operation: &Operation) -> Support {
        match operation {
            Operation::InsertMany { rows, .. } | Operation::InsertEach { rows, .. } if *rows > MOST_ROWS => {
                Support::no(format!("a statement of Firebird adds at most {MOST_ROWS} rows"))
            }
            _ => sql::supports(&DIALECT, operation),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let pipelining = Support::no("the crate rsfbclient waits for each answer before the next request");
        let estimates = Support::no("a plan of Firebird 3 has no row estimates");
        Capabilities { estimates, ..Capabilities::of_sql(pipelining) }
    }

    fn endpoint(&self) -> Endpoint {
        self.place.endpoint()
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let (link, driver) = (FirebirdLink(Connection::open(self, options, None)?), self.clone());
        let supports = Arc::new(move |operation: &Operation| driver.supports(operation));
        Ok(Box::new(LinkSession::new(link, Arc::new(DIALECT.clone()), Some(supports))))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let link = FirebirdLink(Connection::open(self, &ConnectOptions::default(), Some(1))?);
        Ok(Box::new(Owned(namespace::FirebirdNamespace(link))))
    }
}

const NOTES: [&str; 6] = [
    "The client waits for each answer: a query takes three round trips, a change without a transaction four.",
    "The client reads 1,024 bytes of a BLOB (long text and bytes) per round trip.",
    "The client encrypts with ARC4 unless the server has WireCrypt = Disabled.",
    "An index sorts the smallest BIGINT after 0: a fault of Firebird 3.",
    "Connecting includes one query, which finds the client's socket.",
    "Only SYSDBA and the database's owner see that a run of another user uses the database.",
];

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

    fn forget(&mut self, statement: Statement) -> Result<()> {
        lock(&self.0).exchange(|connection| connection.forget(statement.number))
    }
}

/// Parts of messages of Firebird and the client, their meaning, SQLSTATE and hint.
const KNOWN: [(&str, ErrorKind, &str, &str); 8] = [
    ("ContAuth", ErrorKind::Denied, "28000", "the server asks again: check the user and the password"),
    ("Connection closed", ErrorKind::ConnectionLost, "08006", ""),
    ("Error while trying to open", ErrorKind::NotFound, "08001", "does the server have that alias or file?"),
    ("Table unknown", ErrorKind::NotFound, "42S02", ""),
    ("key size", ErrorKind::Limit, "54000", "use shorter keys, or a database with larger pages"),
    ("Name longer than", ErrorKind::Limit, "42000", "a name has at most 31 characters in Firebird 3"),
    ("PRIMARY or UNIQUE KEY", ErrorKind::Server, "23000", ""),
    ("deadlock", ErrorKind::Server, "40001", ""),
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
