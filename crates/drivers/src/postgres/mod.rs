//! PostgreSQL.

mod config;
mod connections;
mod dialect;
mod dump;
mod durability;
mod errors;
mod estimate;
mod facts;
mod foreign;
mod hosts;
mod lean;
mod literals;
mod metrics;
mod mysql_fdw;
mod namespace;
mod origin;
mod passfile;
mod path;
mod pooler;
mod product;
mod read_only;
mod service;
mod tls;
mod values;

use crate::charset;
use crate::dump::ProgramDump;
use crate::own_code::OwnCode;
use crate::prelude::*;
use crate::sql::{self, Dialect};
use crate::wire::link::{LinkSession, Query};
use crate::wire::{self, Stream};
use config::Config;
use hosts::Hosts;
use kurabe_core::driver::Access;
use kurabe_core::remote::{Link, RemoteAddress, RemoteServer};
use lean::Lean;
use pooler::Pooler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The driver, for the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["postgres", "postgresql"],
    engine: "PostgreSQL",
    about: "relational server",
    url: "postgres://[user[:password]@][host][:port][,host:port…][/database]",
    options: &[
        OptionInfo::file("socket", "the server's Unix socket or the folder it is in, instead of TCP"),
        OptionInfo::new("host", "as in libpq: a host, or the folder of the Unix socket; or several: a,b"),
        OptionInfo::new("hostaddr", "as in libpq: the address of the host, without a look-up of its name"),
        OptionInfo::new("port", "as in libpq: the port, or one for each host"),
        OptionInfo::new("user", "as in libpq: the user, where none is before the host"),
        OptionInfo::new("dbname", "as in libpq: the database, where none is in the path"),
        OptionInfo::new(
            "service",
            "as in libpq: a section of ~/.pg_service.conf, for what the URL does not say",
        ),
        OptionInfo::new(
            "target_session_attrs",
            "as in libpq, which of the hosts is wanted: any (default), read-write, read-only, primary, standby or \
             prefer-standby; the first connection decides for the run",
        ),
        OptionInfo::new(
            "connect_timeout",
            "as in libpq: seconds that connecting may take; default: --timeout",
        ),
        OptionInfo::new("application_name", "as in libpq: the name of the sessions; default: kurabe"),
        OptionInfo::file("passfile", "as in libpq: the password file; default: ~/.pgpass"),
        OptionInfo::new("channel_binding", "as in libpq: prefer (default), require or disable"),
        wire::tls::OPTION,
        wire::tls::CA,
        wire::tls::CERT,
        wire::tls::KEY,
        OptionInfo::new("sslmode", "as in libpq: disable, require, verify-ca or verify-full"),
        OptionInfo::file("sslrootcert", "as in libpq: file of the certificate authorities, or system"),
        OptionInfo::file("sslcert", "as in libpq: file of the client's certificate"),
        OptionInfo::file("sslkey", "as in libpq: file of the client's private key"),
        OptionInfo::file("sslcrl", "as in libpq: file of revoked certificates"),
        OptionInfo::new("search_path", "schemas in which tables are created and found: shop,public"),
        OptionInfo::new("options", "as in libpq: settings of the session, as -c name=value"),
        charset::OPTION,
    ],
    benchmark_clause: None,
    connections: connections::CONNECTIONS,
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let (hosts, dialect) = (Hosts::new(Config::from_url(url)?), Arc::new(dialect::dialect()));
    Ok(Box::new(Postgres {
        hosts,
        dialect,
        remotes: Vec::new(),
        closes_idle: AtomicBool::new(false),
        pooler: OnceLock::new(),
        own_code: OwnCode::default(),
    }))
}

struct Postgres {
    hosts: Hosts,
    dialect: Arc<Dialect>,
    /// The servers to which it can link, and why not to the others.
    remotes: foreign::Remotes,
    /// Whether the server closes idle connections (`idle_session_timeout`), once it was asked.
    closes_idle: AtomicBool,
    /// What stands before the server, if something does, once it was asked.
    pooler: OnceLock<Option<Pooler>>,
    /// Functions of the database, and what calls some without naming them.
    own_code: OwnCode,
}

impl Postgres {
    /// What stands before the server, as far as that is known.
    fn pooler(&self) -> Option<&Pooler> {
        self.pooler.get()?.as_ref()
    }

    /// The pooler, if sessions share its connections.
    fn sharing(&self) -> Option<&Pooler> {
        self.pooler().filter(|pooler| pooler.shares)
    }

    /// Refuses what needs a session that keeps its server process.
    fn needs_session(&self, why: &str) -> Result<()> {
        self.sharing().map_or(Ok(()), |pooler| Err(pooler.refuses(why)))
    }

    fn lean(&self, options: &ConnectOptions) -> Result<Lean<Stream>> {
        let mut lean = Lean::connect(self.hosts.get()?, options)?;
        if options.access == Access::ReadOnly
            && self.own_code.check(options.trial, || read_only::ask(&mut lean))?
        {
            lean.check_all()?;
        }
        // Kurabe's own sessions are idle while clients work. A client is as the application would be.
        if options.trial == 0 && self.closes_idle.load(Ordering::Relaxed) && self.sharing().is_none() {
            lean.query("SET idle_session_timeout = 0", &mut Reply::new())?;
        }
        Ok(lean)
    }

    fn query(&self, options: &ConnectOptions) -> Result<Box<dyn Query>> {
        Ok(Box::new(self.lean(options)?))
    }

    /// A session that only Kurabe writes statements for, and the schema in which the user's own sessions create tables. It
    /// searches `pg_catalog` alone.
    fn own(&self, options: &ConnectOptions) -> Result<(Lean<Stream>, Option<String>)> {
        let mut lean = self.lean(options)?;
        let schema = path::schema(&mut lean)?;
        // Through a pooler, which may not have been looked for yet, the setting could stay with sessions of others.
        if matches!(self.pooler.get(), Some(None)) {
            path::only_catalog(&mut lean)?;
        }
        Ok((lean, schema))
    }
}

impl Driver for Postgres {
    fn describe(&self) -> Result<ServerFacts> {
        let config = self.hosts.get()?;
        let mut link = Lean::connect(config, &ConnectOptions::default())?;
        let pooler = pooler::check(&mut link, config)?;
        let access = facts::access(&mut link)?;
        path::check(&mut link, config)?;
        if pooler.is_none() {
            path::only_catalog(&mut link)?;
        }
        let mut facts = facts::read(&mut link, lean::CLIENT, access)?;
        let idle = facts.settings.iter().find(|setting| setting.name == "idle_session_timeout");
        self.closes_idle.store(idle.is_some_and(|idle| idle.value != "0"), Ordering::Relaxed);
        if let Some(pooler) = &pooler {
            facts.notes.push(pooler.note());
            if pooler.shares && config.synchronous_commit.is_some() {
                return Err(
                    pooler.refuses("the commit mode that --durability sets would not stay with its session")
                );
            }
        }
        let _ = self.pooler.set(pooler);
        link.quit()?;
        Ok(facts)
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        let (mut link, _) = self.own(&ConnectOptions::default())?;
        let commit = durability::Durability::read(&mut link)?.require(class)?;
        link.quit()?;
        for config in self.hosts.all_mut() {
            config.synchronous_commit = commit.or(config.synchronous_commit);
        }
        Ok(())
    }

    fn endpoint(&self) -> Endpoint {
        if let Some(pooler) = self.pooler() {
            return Endpoint::Elsewhere(format!("{} stands before it", pooler.name));
        }
        self.hosts.first().map_or(Endpoint::InProcess, |config| config.place.endpoint())
    }

    fn supports(&self, operation: &Operation) -> Support {
        sql::supports(&self.dialect, operation)
    }

    fn supports_transfer(&self, _: Transfer) -> Support {
        Support::Native
    }

    fn capabilities(&self) -> Capabilities {
        let of_sql = Capabilities::of_sql(Support::Native);
        let settings = "a pooler shares the connections, so that settings do not stay with a session";
        let own_sessions = Support::unless(self.sharing().map(|_| settings.to_owned()));
        let read_only_sessions = own_sessions.clone();
        Capabilities { estimates: Support::Native, read_only_sessions, own_sessions, ..of_sql }
            .sharing_threads()
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let dialect = Arc::clone(&self.dialect);
        let config = self.hosts.get()?;
        let lean = self.lean(options)?.watch(config, options);
        Ok(Box::new(LinkSession::new(lean, dialect, None)))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        self.needs_session("its sessions are not those of the server")?;
        Ok(Box::new(metrics::PostgresStatsProbe::new(self.own(options)?.0)?))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let (link, schema) = self.own(&ConnectOptions::default())?;
        let (link, remotes): (Box<dyn Query>, _) = (Box::new(link), self.remotes.clone());
        let dialect = Dialect { schema, ..Dialect::clone(&self.dialect) };
        // Not every pooler ends a session's locks with its client, but each ends its transaction.
        let holder = self.pooler().map(|_| self.query(&ConnectOptions::default())).transpose()?;
        Ok(Owned::boxed(namespace::PostgresNamespace { link, holder, dialect, remotes }))
    }

    fn dump_tool(&self) -> Result<Box<dyn DumpTool>> {
        self.needs_session("pg_dump changes settings of its session")?;
        let (link, schema) = self.own(&ConnectOptions::default())?;
        Ok(ProgramDump::boxed(dump::PostgresDump::new(self.hosts.get()?, Box::new(link), schema)?))
    }

    fn links(&self) -> Result<&dyn Links> {
        Ok(self)
    }

    fn add_remote(&mut self, remote: RemoteAddress) {
        self.remotes.push((remote.server, foreign::address(&remote.url)));
    }

    without!(compression, limited_memory);
}

impl Links for Postgres {
    fn file(&self) -> Option<std::path::PathBuf> {
        None
    }

    fn remote(&self, server: RemoteServer) -> Result<&dyn Driver> {
        no_remote(server)
    }

    fn supports(&self, server: RemoteServer, link: &Link) -> Result<Support> {
        if let Some(why) = foreign::refusal(&self.remotes, server, link) {
            return Ok(Support::No(why));
        }
        let (mut connection, _) = self.own(&ConnectOptions::default())?;
        let missing = foreign::missing(&mut connection, link.way)?;
        connection.quit()?;
        Ok(Support::unless(missing))
    }
}
