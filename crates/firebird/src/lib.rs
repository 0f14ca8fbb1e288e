//! Firebird 3, by the pure Rust client of the crate `rsfbclient`.

mod connection;
mod dialect;
mod errors;
mod namespace;

use connection::{Connection, Statement, lock, text};
use dialect::{DIALECT, MOST_ROWS};
use kurabe_driver_common::info::DriverInfo;
use kurabe_driver_common::ownership::Owned;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::slots::check_parameters;
use kurabe_driver_common::sql::{self, shape};
use kurabe_driver_common::wire::Place;
use kurabe_driver_common::wire::link::{Link, LinkSession, Query, rows};
use namespace::FirebirdNamespace;
use rsfbclient_core::TrOp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The client, for the facts.
pub(crate) const CLIENT: &str = "rsfbclient 0.29, pure Rust";

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

/// Where the database is, and who asks. Its `Debug` shows no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) password: Secret,
}

impl Config {
    pub(crate) fn place(&self) -> Place {
        Place::Tcp { host: self.host.clone(), port: self.port }
    }
}

/// User and password come from Firebird's own variables where the URL has none.
fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    if url.path.is_empty() {
        return Err(url
            .wrong("no database is named")
            .hint("name an alias or a path: firebird://user@host/alias"));
    }
    let user = url.user.clone().or_else(|| variable("ISC_USER"));
    let config = Config {
        host: url.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned()),
        port: url.port.unwrap_or(3050),
        database: url.path.clone(),
        user: user.ok_or_else(|| url.wrong("no user is named").hint("name one in the URL or in ISC_USER"))?,
        password: url
            .password
            .clone()
            .or_else(|| variable("ISC_PASSWORD").map(Secret::new))
            .unwrap_or_default(),
    };
    Ok(Box::new(Firebird { config }))
}

struct Firebird {
    config: Config,
}

impl Driver for Firebird {
    fn describe(&self) -> Result<ServerFacts> {
        let mut link = FirebirdLink::open(&self.config, &ConnectOptions::default(), true)?;
        let sql = "SELECT RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION'), MON$FORCED_WRITES, MON$PAGE_SIZE, MON$PAGE_BUFFERS, \
                   MON$SWEEP_INTERVAL, MON$RESERVE_SPACE, MON$SQL_DIALECT FROM MON$DATABASE";
        let row = rows(&mut link, sql)?.into_iter().next().unwrap_or_default();
        link.quit()?;
        let [version, forced, settings @ ..] = row.as_slice() else {
            return Err(Error::new(ErrorKind::Protocol, "the server says nothing of its database"));
        };
        let names = ["page size", "page buffers", "sweep interval", "reserve space", "SQL dialect"];
        Ok(ServerFacts {
            engine: INFO.engine.to_owned(),
            version: version.clone(),
            client: CLIENT.to_owned(),
            transport: "TCP".to_owned(),
            // A commit writes its pages: to the storage, or to the operating system.
            durability: Some(if forced == "1" { DurabilityClass::Synced } else { DurabilityClass::OsCache }),
            durability_settings: vec![Setting::new("ForcedWrites", if forced == "1" { "on" } else { "off" })],
            settings: names
                .iter()
                .zip(settings)
                .map(|(name, value)| Setting::new(*name, value))
                .chain([Setting::new("isolation", "READ COMMITTED RECORD_VERSION")])
                .chain(DIALECT.statistics())
                .collect(),
            limits: Limits::default(),
            notes: NOTES.map(str::to_owned).to_vec(),
        })
    }

    fn supports(&self, operation: &Operation) -> Support {
        supports(operation)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_sql(Support::no(
            "the crate rsfbclient awaits each answer before it sends the next request",
        ))
    }

    fn endpoint(&self) -> Endpoint {
        self.config.place().endpoint()
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let link = FirebirdLink::open(&self.config, options, true)?;
        let session = LinkSession::new(link, Arc::new(DIALECT.clone()));
        Ok(Box::new(session.with_support(Some(Arc::new(supports)))))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let link = FirebirdLink::open(&self.config, &ConnectOptions::default(), false)?;
        Ok(Box::new(Owned(FirebirdNamespace { link, config: self.config.clone() })))
    }
}

/// What a reader of the results should know of the client.
const NOTES: [&str; 5] = [
    "A query is three round trips (execute, count, fetch), and a change outside of a transaction four (begin, execute, count, \
     commit): the client sends nothing together.",
    "The client reads a value of a BLOB (text and bytes of more than 4,000) by 1,024 bytes a round trip.",
    "The client encrypts what it sends by ARC4 unless the server has WireCrypt = Disabled.",
    "Connecting includes one query, by which the driver finds the client's socket for its time limit.",
    "Timestamps are stored as numbers of microseconds: Firebird's own type counts ten-thousandths of a second.",
];

fn supports(operation: &Operation) -> Support {
    match operation {
        Operation::InsertMany { rows, .. } | Operation::InsertEach { rows, .. } if *rows > MOST_ROWS => {
            Support::no(format!("a statement of Firebird's adds at most {MOST_ROWS} rows"))
        }
        _ => sql::supports(&DIALECT, operation),
    }
}

/// A connection as the session and the namespace use it.
pub(crate) struct FirebirdLink(Arc<Mutex<Connection>>);

impl FirebirdLink {
    fn open(config: &Config, options: &ConnectOptions, waits: bool) -> Result<Self> {
        Connection::open(config, options, waits).map(Self)
    }

    fn exchange<T>(&mut self, doing: &str, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        lock(&self.0).exchange(doing, work)
    }

    fn prepared(&mut self, mut statement: Statement) -> Result<Statement> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        (statement.number, statement.as_text) = (NUMBERS.fetch_add(1, Ordering::Relaxed), false);
        self.exchange("preparing", |connection| connection.prepare(&statement))?;
        Ok(statement)
    }
}

impl Query for FirebirdLink {
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        self.exchange("executing", |connection| match sql {
            _ if sql == DIALECT.begin => connection.begin_transaction(),
            _ if sql == DIALECT.commit => connection.end_transaction(TrOp::Commit),
            _ if sql == DIALECT.rollback => connection.end_transaction(TrOp::Rollback),
            _ => connection.execute(&text(sql), &[], out),
        })
    }

    fn quit(&mut self) -> Result<()> {
        self.exchange("closing", Connection::quit)
    }

    fn transport(&self) -> String {
        "TCP".to_owned()
    }
}

impl Link for FirebirdLink {
    type Statement = Statement;

    fn ping(&mut self) -> Result<()> {
        self.exchange("pinging", Connection::ping)
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.prepared(text(sql))
    }

    fn prepare_operation(&mut self, operation: &Operation, sql: &str) -> Result<Statement> {
        let shape = shape(operation)?;
        let raw = matches!(operation, Operation::Raw { .. });
        // A block gives the number of its rows, which is no field.
        let gives = if sql.starts_with("EXECUTE BLOCK") { Vec::new() } else { shape.gives };
        self.prepared(Statement { parameters: shape.takes.len(), gives, raw, ..text(sql) })
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        check_parameters("the statement", statement.parameters, parameters.len())?;
        self.exchange("executing", |connection| connection.execute(statement, parameters, out))
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        self.exchange("closing a statement", |connection| connection.forget(statement.number))
    }
}
