//! MySQL and MariaDB, which share a protocol and most of their settings.

mod config;
mod connections;
mod dialect;
mod dump;
mod durability;
mod edition;
mod engine;
mod errors;
mod estimate;
mod facts;
mod foreign;
mod lean;
mod literals;
mod metrics;
mod namespace;
mod option_file;
mod origin;
mod proxy;
mod session;
mod types;
mod version;

use crate::charset;
use crate::dump::ProgramDump;
use crate::own_code::OwnCode;
use crate::prelude::*;
use crate::sql::{self, Dialect};
use crate::wire::link::{LinkSession, Query, Supports, value};
use crate::wire::tls;
use config::Config;
use durability::Durability;
use engine::StorageEngine;
use kurabe_core::compression::Compression;
use kurabe_core::driver::Access;
use kurabe_core::remote::{Link, RemoteAddress, RemoteServer};
use lean::{Connection, Lean};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use version::Era;

/// The driver, for the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["mysql", "mariadb"],
    engine: "MySQL, MariaDB",
    about: "relational server; InnoDB tables unless engine= says otherwise",
    url: "mysql://[user[:password]@][host][:port]/database",
    options: &[
        OptionInfo::file("socket", "path of the server's Unix socket, instead of TCP"),
        tls::OPTION,
        tls::CA,
        tls::CERT,
        tls::KEY,
        OptionInfo::new(
            "ssl-mode",
            "as in MySQL's client: DISABLED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY, with ssl-ca; default: that of the \
             option files",
        ),
        OptionInfo::file("ssl-ca", "as in MySQL's client: file of the certificate authorities"),
        OptionInfo::file("ssl-cert", "as in MySQL's client: file of the client's certificate"),
        OptionInfo::file("ssl-key", "as in MySQL's client: file of the client's private key"),
        OptionInfo::file("ssl-crl", "as in MySQL's client: file of revoked certificates"),
        OptionInfo::new(
            "enable_cleartext_plugin",
            "true: allow sending the password in plain text (PAM, LDAP), with tls=verify; default: false",
        ),
        OptionInfo::new(
            "get_server_public_key",
            "true: without TLS, ask the server for the RSA key that encrypts the password (caching_sha2_password); \
             default: false",
        ),
        OptionInfo::file("server_public_key_path", "file of that key (PEM), instead of asking for it"),
        OptionInfo::new(
            "engine",
            "storage engine of our tables: InnoDB, MyISAM, Aria, MEMORY; default: the server's",
        ),
        charset::OPTION,
    ],
    benchmark_clause: Some(edition::CLAUSE),
    connections: connections::CONNECTIONS,
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let config = Arc::new(Config::from_url(url)?);
    let dialect = Arc::new(dialect::dialect(None, None));
    let (engine, era, takes_files) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
    let (allowed, remotes) = (Arc::default(), Vec::new());
    let (closes_idle, unusual, requires_keys) = (AtomicBool::new(false), OnceLock::new(), OnceLock::new());
    Ok(Box::new(Mysql {
        config,
        dialect,
        engine,
        era,
        allowed,
        remotes,
        takes_files,
        closes_idle,
        proxy: OnceLock::new(),
        unusual,
        requires_keys,
        own_code: OwnCode::default(),
    }))
}

/// The server's default of `wait_timeout`, in seconds.
const IDLE: u64 = 28_800;

struct Mysql {
    config: Arc<Config>,
    dialect: Arc<Dialect>,
    /// The storage engine of our tables, once the server has reported it.
    engine: OnceLock<StorageEngine>,
    /// Set once the server's version is known to be supported.
    era: OnceLock<Era>,
    /// `max_allowed_packet`, once a lean connection has read it.
    allowed: Arc<AtomicUsize>,
    /// The servers to which it can link, and why not to the others.
    remotes: foreign::Remotes,
    /// Whether the server takes `LOAD DATA LOCAL`, once it was asked.
    takes_files: OnceLock<bool>,
    /// Whether the server closes connections that are idle for less than [`IDLE`], once it was asked.
    closes_idle: AtomicBool,
    /// The name of what stands before the server, if something does.
    proxy: OnceLock<String>,
    /// What new sessions have and Kurabe's must not, once the server was asked.
    unusual: OnceLock<session::Unusual>,
    /// The setting by which the server refuses tables without a primary key, if it does, once it was asked.
    requires_keys: OnceLock<String>,
    /// Functions of the server, and views of the database.
    own_code: OwnCode,
}

impl Mysql {
    fn lean(&self, options: &ConnectOptions) -> Result<Lean<Connection>> {
        let mut lean = Lean::connect(&self.config, options, Arc::clone(&self.allowed))?;
        if let Some(unusual) = self.unusual.get() {
            unusual.reset(&mut lean)?;
        }
        if options.access == Access::ReadOnly
            && self.own_code.check(options.trial, || lean::ask(&mut lean))?
        {
            lean.arm_always();
        }
        // Kurabe's own sessions are idle while clients work. A client is as the application would be.
        if options.trial == 0 && self.closes_idle.load(Ordering::Relaxed) {
            lean.query(&format!("SET SESSION wait_timeout = {IDLE}"), &mut Reply::new())?;
        }
        Ok(lean)
    }

    fn link(&self, options: &ConnectOptions) -> Result<Box<dyn Query>> {
        Ok(Box::new(self.asked(options)?))
    }

    /// A connection to a server that is known to be supported.
    fn asked(&self, options: &ConnectOptions) -> Result<Lean<Connection>> {
        let mut link = self.lean(options)?;
        // Read by a statement: the greeting may come from a proxy.
        if self.era.get().is_none() {
            let era = version::check(&value(&mut link, "SELECT VERSION()")?.unwrap_or_default())?;
            let unusual = session::Unusual::read(&mut link)?;
            unusual.reset(&mut link)?;
            let _ = (self.unusual.set(unusual), self.era.set(era));
        }
        Ok(link)
    }

    fn engine(&self) -> Option<StorageEngine> {
        self.engine.get().cloned().or_else(|| self.config.engine.as_deref().map(StorageEngine::named))
    }

    /// Whether the server takes `LOAD DATA LOCAL`.
    fn takes_files(&self) -> Result<bool> {
        if let Some(known) = self.takes_files.get() {
            return Ok(*known);
        }
        let mut link = self.link(&ConnectOptions::default())?;
        let found = value(&mut *link, "SELECT @@local_infile")?.is_some_and(|value| value == "1");
        link.quit()?;
        Ok(*self.takes_files.get_or_init(|| found))
    }

    fn durability(&self, link: &mut dyn Query) -> Result<Durability> {
        let durability = durability::read(link, &self.config)?;
        let _ = self.engine.set(durability.engine.clone());
        Ok(durability)
    }
}

impl Driver for Mysql {
    fn describe(&self) -> Result<ServerFacts> {
        let mut link = self.asked(&ConnectOptions::default())?;
        let number = link.number();
        let proxy = proxy::check(&mut link, number, || self.lean(&ConnectOptions::default()))?;
        let durability = self.durability(&mut link)?;
        let mut facts = facts::read(&mut link, &durability, lean::CLIENT)?;
        facts.notes.extend(self.config.notes.iter().cloned());
        if let Some(name) = proxy {
            facts.notes.push(format!(
                "{name} stands before the server: its time and processor use are part of every result, and the server's processes \
                 are not observed through it"
            ));
            let _ = self.proxy.set(name);
        }
        facts.notes.extend(self.unusual.get().and_then(session::Unusual::note));
        let idle = facts.settings.iter().find(|setting| setting.name == "wait_timeout");
        let is_short =
            idle.and_then(|idle| idle.value.parse().ok()).is_some_and(|seconds: u64| seconds < IDLE);
        self.closes_idle.store(is_short, Ordering::Relaxed);
        // They are among the facts only if they are on.
        let keys = facts.settings.iter().find(|setting| setting.name.ends_with("_primary_key"));
        if let Some(setting) = keys {
            let _ = self.requires_keys.set(setting.name.clone());
        }
        link.quit()?;
        Ok(facts)
    }

    /// Only checks the class: all settings that decide it are global. The storage engine is not, but it is the user's
    /// choice, and an engine without transactions would measure something else.
    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        let mut link = self.link(&ConnectOptions::default())?;
        let durability = self.durability(&mut *link)?;
        link.quit()?;
        if durability.class().0 == Some(class) { Ok(()) } else { Err(durability.refusal(class)) }
    }

    fn endpoint(&self) -> Endpoint {
        if let Some(name) = self.proxy.get() {
            return Endpoint::Elsewhere(format!("{name} stands before it"));
        }
        self.config.place.endpoint()
    }

    fn supports(&self, operation: &Operation) -> Support {
        let has_times =
            |of: &Arc<Collection>| of.fields.iter().any(|field| field.kind == FieldType::Timestamp);
        if let (Some(setting), Operation::Insert { collection }) = (self.requires_keys.get(), operation)
            && collection.key.is_empty()
        {
            return Support::No(format!(
                "the server requires a primary key ({setting} = ON), and table {} has none",
                collection.name
            ));
        }
        if self.era.get() == Some(&Era::Mysql55) && operation.collection().is_some_and(has_times) {
            return Support::no("MySQL 5.5 stores times without microseconds");
        }
        match sql::supports(&self.dialect, operation) {
            Support::Native => self.engine().map_or(Support::Native, |engine| engine.supports(operation)),
            no @ Support::No(_) => no,
        }
    }

    fn supports_transfer(&self, transfer: Transfer) -> Support {
        match transfer {
            Transfer::Read(_) => Support::Native,
            Transfer::Write => match self.takes_files() {
                Ok(true) => Support::Native,
                Ok(false) => Support::no(
                    "the server refuses LOAD DATA LOCAL: set local_infile=ON, or give up:mysql?local_infile=1",
                ),
                // A server that does not run yet is asked when it does.
                Err(error) if error.kind() == ErrorKind::Unreachable => Support::Native,
                Err(error) => Support::No(format!("the server cannot be asked for local_infile: {error}")),
            },
        }
    }

    /// Tries it, since a proxy or a setting may decide it.
    fn supports_compression(&self, compression: Compression) -> Support {
        let tried = || self.lean(&ConnectOptions { compression, ..ConnectOptions::default() })?.quit();
        match tried() {
            Ok(()) => Support::Native,
            // A server that does not run yet is asked when it does.
            Err(error) if error.kind() == ErrorKind::Unreachable => Support::Native,
            Err(error) => Support::No(error.to_string()),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let pipelining = Support::no("the MySQL protocol allows one outstanding command at a time");
        let (estimates, latin1) = (Support::Native, Support::Native);
        let old = self.era.get() == Some(&Era::Mysql55);
        let read_only_sessions = Support::unless(old.then_some(
            "MySQL 5.5 has no read-only transactions; allow writes with --write, or 'write = true' in the file",
        ));
        let of_sql = Capabilities::of_sql(pipelining);
        Capabilities { estimates, latin1, read_only_sessions, ..of_sql }.sharing_threads()
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        if options.trial != 0 && self.era.get().is_none() {
            // A client of an agent: this process has not described the server.
            self.link(&ConnectOptions::default())?.quit()?;
        }
        let dialect = Arc::clone(&self.dialect);
        let supports =
            self.engine().map(|engine| -> Supports { Arc::new(move |operation| engine.supports(operation)) });
        let lean = self.lean(options)?.watch(&self.config, options);
        Ok(Box::new(LinkSession::new(lean, dialect, supports)))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(metrics::MysqlStatsProbe::new(self.lean(options)?)?))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let mut link = self.link(&ConnectOptions::default())?;
        // Tables are created only through the namespace.
        let collation = dialect::collation(&mut *link)?;
        let named = self.config.engine.as_deref().map(StorageEngine::named);
        let dialect = Arc::new(dialect::dialect(named.as_ref(), collation));
        let marker = dialect::dialect(None, collation);
        let engine = self.engine().map(|engine| engine.name);
        let (database, remotes) = (self.config.database.clone(), self.remotes.clone());
        let era = self.era.get().copied().unwrap_or(Era::Current);
        Ok(Owned::boxed(namespace::MysqlNamespace { link, era, dialect, marker, engine, database, remotes }))
    }

    fn dump_tool(&self) -> Result<Box<dyn DumpTool>> {
        let link = self.link(&ConnectOptions::default())?;
        Ok(ProgramDump::boxed(dump::MysqlDump::new(&self.config, link, self.unusual.get())?))
    }

    fn links(&self) -> Result<&dyn Links> {
        Ok(self)
    }

    fn add_remote(&mut self, remote: RemoteAddress) {
        self.remotes.push((remote.server, foreign::address(&remote.url)));
    }

    without!(limited_memory);
}

impl Links for Mysql {
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
        let mut connection = self.link(&ConnectOptions::default())?;
        let missing = foreign::missing(&mut *connection, server, link.way)?;
        connection.quit()?;
        Ok(Support::unless(missing))
    }
}
