//! Oracle Database, with Oracle's own driver in Rust, the crate `oracledb` (blocking).
//!
//! The driver was written without access to a server. `docs/oracle.md` lists what is not verified.

mod config;
mod dialect;
mod errors;
mod facts;
mod guard;
mod link;
mod literals;
mod metrics;
mod namespace;
mod plan;
mod session;
#[cfg(test)]
mod tests;
mod values;

use config::Config;
use kurabe_core::remote::RemoteAddress;
use kurabe_driver_common::info::{BenchmarkClause, Connections};
use kurabe_driver_common::prelude::*;
use link::Link;
use session::OracleSession;
use std::sync::Arc;

/// The driver, for the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["oracle"],
    engine: "Oracle Database",
    about: "relational server; not yet verified against one",
    url: "oracle://user[:password]@host[:port]/service",
    options: &[
        OptionInfo::new("sid", "the instance's SID, instead of a service name"),
        OptionInfo::file(
            "descriptor",
            "a TNS descriptor, an Easy Connect Plus string or a name in tnsnames.ora (TNS_ADMIN), instead of host and service",
        ),
        OptionInfo::new("server", "dedicated, shared or pooled; default: the listener's choice"),
        OptionInfo::new("tls", "off (default), verify (TCPS; the certificate is always checked)"),
        OptionInfo::file("wallet", "folder of ewallet.pem; its password in KURABE_ORACLE_WALLET_PASSWORD"),
        OptionInfo::new("statement_cache", "statements that a connection keeps open (default 20)"),
        OptionInfo::new("prefetch", "rows in a query's first reply (default 100)"),
        OptionInfo::new("fetch_size", "rows in each further reply (default 100)"),
        OptionInfo::new(
            "lob",
            "in-row (default), out-of-row (DISABLE STORAGE IN ROW), locator (read by LOB locator)",
        ),
        OptionInfo::new("text", "varchar2 (default) or clob: column type of text of up to 4,000 characters"),
    ],
    // From public copies of the licence of 2026-08; the Oracle Free Use Terms have no such clause.
    benchmark_clause: Some(BenchmarkClause {
        name: "Oracle Technology Network License Agreement, License Rights and Restrictions",
        says: "it forbids to 'disclose results of any Program benchmark tests without Oracle's prior consent'; \
               other Oracle licences differ, so read the one of your copy",
        source: "https://www.oracle.com/downloads/licenses/standard-license.html",
        holds_for: |facts| !["Free", "Express"].iter().any(|edition| facts.version.contains(edition)),
    }),
    connections: Connections {
        variables: &[
            ("KURABE_ORACLE_WALLET_PASSWORD", "the wallet's password"),
            ("TNS_ADMIN", "the folder of tnsnames.ora"),
        ],
        authentication: &[("a password, a wallet", "")],
        ..Connections::NONE
    },
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    Ok(Box::new(Oracle { config: Arc::new(Config::from_url(url)?) }))
}

struct Oracle {
    config: Arc<Config>,
}

impl Driver for Oracle {
    fn describe(&self) -> Result<ServerFacts> {
        let mut link = Link::connect(&self.config, ConnectOptions::default().timeout)?;
        let facts = facts::read(&mut link, &self.config)?;
        link.quit()?;
        Ok(facts)
    }

    fn supports(&self, operation: &Operation) -> Support {
        match operation {
            Operation::Raw { .. } => Support::No(plan::NO_RAW.to_owned()),
            Operation::Page { .. } => Support::no("a database has no pages"),
            Operation::Flow(_) => Support::no(NO_FLOW),
            _ => Support::Native,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let why = "the crate oracledb awaits each reply before it sends the next request";
        let estimates = Support::no(
            "Oracle's estimates are read from a plan table, which Kurabe does not do: no server was available to verify it",
        );
        Capabilities { estimates, ..Capabilities::of_sql(Support::no(why)) }
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        let wait = match class {
            DurabilityClass::Synced => Some(true),
            DurabilityClass::PeriodicSync => Some(false),
            _ => None,
        };
        if let Some(wait) = wait {
            let mut config = (*self.config).clone();
            config.wait_for_redo = Some(wait);
            self.config = Arc::new(config);
        }
        let facts = self.describe()?;
        if facts.durability == Some(class) {
            return Ok(());
        }
        let why = "and a session may choose only between 'synced' and 'periodic-sync', by COMMIT_WAIT";
        Err(facts.refuse_durability(class, why, "ask the server's administrator, or omit --durability"))
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let link = Link::connect(&self.config, options.timeout)?;
        Ok(Box::new(OracleSession::new(link, &self.config)))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        let link = Link::connect(&self.config, options.timeout)?;
        Ok(Box::new(metrics::OracleStatsProbe::new(link)))
    }

    fn links(&self) -> Result<&dyn Links> {
        Err(Error::unsupported(
            "Oracle reads another server's tables by database links only, which Kurabe does not create yet: there was no \
             server to verify them against",
        ))
    }

    fn add_remote(&mut self, _: RemoteAddress) {}

    /// No server was available to verify which processes belong to a listener.
    fn endpoint(&self) -> Endpoint {
        Endpoint::Elsewhere("its driver does not report where it listens".to_owned())
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Owned::boxed(namespace::OracleNamespace::open(&self.config)?))
    }

    without!(transfers, compression, limited_memory, dump_tool);
}
