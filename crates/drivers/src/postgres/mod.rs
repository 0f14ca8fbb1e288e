//! PostgreSQL.

mod config;
mod dialect;
mod dump;
mod durability;
mod errors;
mod estimate;
mod facts;
mod foreign;
mod lean;
mod literals;
mod metrics;
mod mysql_fdw;
mod namespace;
mod passfile;
mod pooler;
mod read_only;
mod values;

use crate::charset;
use crate::prelude::*;
use crate::sql::{self, Dialect};
use crate::wire::link::{LinkSession, Query};
use crate::wire::tls;
use config::Config;
use kurabe_core::dump::DumpTool;
use kurabe_core::remote::{Link, RemoteAddress, RemoteServer};
use lean::Lean;
use std::sync::Arc;

/// The driver, for the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["postgres", "postgresql"],
    engine: "PostgreSQL",
    about: "relational server",
    url: "postgres://[user[:password]@][host][:port][/database]",
    options: &[
        OptionInfo::new("socket", "the server's Unix socket or the folder it is in, instead of TCP"),
        OptionInfo::new("host", "as in libpq: a host, or the folder of the Unix socket"),
        tls::OPTION,
        tls::CA,
        tls::CERT,
        tls::KEY,
        OptionInfo::new("sslmode", "as in libpq: disable, require, verify-ca or verify-full"),
        OptionInfo::new("sslrootcert", "as in libpq: file of the certificate authorities, or system"),
        OptionInfo::new("sslcert", "as in libpq: file of the client's certificate"),
        OptionInfo::new("sslkey", "as in libpq: file of the client's private key"),
        OptionInfo::new("search_path", "schemas in which tables are created and found: shop,public"),
        OptionInfo::new("options", "as in libpq: settings of the session, as -c name=value"),
        charset::OPTION,
    ],
    benchmark_clause: None,
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let (config, dialect) = (Arc::new(Config::from_url(url)?), Arc::new(dialect::dialect()));
    Ok(Box::new(Postgres { config, dialect, remotes: Vec::new() }))
}

struct Postgres {
    config: Arc<Config>,
    dialect: Arc<Dialect>,
    /// The servers to which it can link, and why not to the others.
    remotes: foreign::Remotes,
}

impl Postgres {
    fn query(&self, options: &ConnectOptions) -> Result<Box<dyn Query>> {
        Ok(Box::new(Lean::connect(&self.config, options)?))
    }
}

impl Driver for Postgres {
    fn describe(&self) -> Result<ServerFacts> {
        let mut link = Lean::connect(&self.config, &ConnectOptions::default())?;
        let pooler = pooler::check(&mut link, &self.config)?;
        let mut facts = facts::read(&mut link, lean::CLIENT)?;
        facts.notes.extend(pooler.map(ToOwned::to_owned));
        link.quit()?;
        Ok(facts)
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        let mut link = self.query(&ConnectOptions::default())?;
        let commit = durability::Durability::read(&mut *link)?.require(class)?;
        link.quit()?;
        let commit = commit.or(self.config.synchronous_commit);
        Arc::make_mut(&mut self.config).synchronous_commit = commit;
        Ok(())
    }

    fn endpoint(&self) -> Endpoint {
        self.config.place.endpoint()
    }

    fn supports(&self, operation: &Operation) -> Support {
        sql::supports(&self.dialect, operation)
    }

    fn supports_transfer(&self, _: Transfer) -> Support {
        Support::Native
    }

    fn capabilities(&self) -> Capabilities {
        let of_sql = Capabilities::of_sql(Support::Native);
        Capabilities { estimates: Support::Native, read_only_sessions: Support::Native, ..of_sql }
            .sharing_threads()
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let dialect = Arc::clone(&self.dialect);
        let lean = Lean::connect(&self.config, options)?.watch(&self.config, options);
        Ok(Box::new(LinkSession::new(lean, dialect, None)))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(metrics::PostgresStatsProbe::new(Lean::connect(&self.config, options)?)?))
    }

    fn add_remote(&mut self, remote: RemoteAddress) {
        self.remotes.push((remote.server, foreign::address(&remote.url)));
    }

    fn links(&self, server: RemoteServer, link: &Link) -> Result<Support> {
        if let Some(why) = foreign::refusal(&self.remotes, server, link) {
            return Ok(Support::No(why));
        }
        let mut connection = self.query(&ConnectOptions::default())?;
        let missing = foreign::missing(&mut *connection, link.way)?;
        connection.quit()?;
        Ok(Support::unless(missing))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let link = self.query(&ConnectOptions::default())?;
        let (dialect, remotes) = (Arc::clone(&self.dialect), self.remotes.clone());
        Ok(Box::new(Owned(namespace::PostgresNamespace { link, dialect, remotes })))
    }

    fn dump_tool(&self) -> Result<Box<dyn DumpTool>> {
        let link = self.query(&ConnectOptions::default())?;
        Ok(Box::new(dump::PostgresDump::new(&self.config, link)?))
    }
}
