//! Firebird 3, by the pure Rust client of the crate `rsfbclient`.

mod claim;
mod connection;
mod dialect;
mod errors;
mod facts;
mod link;
mod metrics;
mod namespace;
mod statement;

use connection::{Connection, Firebird, lock};
use dialect::{DIALECT, MAX_ROWS};
use kurabe_driver_common::environment::Environment;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql;
use kurabe_driver_common::wire::Place;
use kurabe_driver_common::wire::link::{LinkSession, Query};
use link::FirebirdLink;
use rsfbclient_rust::RustFbClientAttachmentConfig;
use std::sync::Arc;

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

/// Without a password in the URL, that of Firebird's environment variable is used.
fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    if url.path.is_empty() {
        return Err(url.wrong("no database is named").hint("firebird://user@host/path-or-alias"));
    }
    let mut target = RustFbClientAttachmentConfig { db_name: url.path.clone(), ..Default::default() };
    (target.host, target.port) = (url.host.clone().unwrap_or("127.0.0.1".into()), url.port.unwrap_or(3050));
    let pass = url.password.as_ref().map(|password| password.expose().to_owned());
    let environment = Environment::for_url(url);
    target.pass =
        environment.check(Ok(pass.or_else(|| environment.get("ISC_PASSWORD"))))?.unwrap_or_default();
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
        lock(&connection).watch(self, options);
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
