//! MySQL and MariaDB, which share a protocol and most of their settings.

mod config;
pub(crate) mod datetime;
mod dialect;
mod edition;
mod errors;
mod facts;
mod house;
mod lean;
mod option_file;
mod wrapped;

use crate::info::{DriverInfo, OptionInfo};
use crate::sql::{Dialect, SqlNamespace};
use crate::wire::Stream;
use crate::wire::link::{LinkSession, Query};
use config::Config;
use kurabe_core::Result;
use kurabe_core::driver::{ConnectOptions, Driver, Namespace, ServerFacts, Session, Support};
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use lean::Lean;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use wrapped::Wrapped;

/// The driver, for the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["mysql", "mariadb"],
    engine: "MySQL, MariaDB",
    about: "relational server; InnoDB tables unless engine= says otherwise",
    url: "mysql://[user[:password]@][host][:port]/database",
    options: &[
        OptionInfo { name: "socket", help: "path of the server's Unix socket, instead of TCP" },
        OptionInfo {
            name: "tls",
            help: "off (default), require (encrypted), verify (certificate checked too)",
        },
        OptionInfo {
            name: "ca",
            help: "file of certificates (PEM) to trust with tls=verify; default: Mozilla's list",
        },
        OptionInfo { name: "engine", help: "storage engine of our tables; default: the server's" },
        OptionInfo { name: "client", help: "lean (default): Kurabe's own; driver: the mysql crate" },
    ],
    benchmark_clause: Some(edition::CLAUSE),
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let config = Config::from_url(url)?;
    let dialect = Arc::new(dialect::dialect(&config, None));
    Ok(Box::new(Mysql { config, dialect, allowed: Arc::default() }))
}

struct Mysql {
    config: Config,
    dialect: Arc<Dialect>,
    /// `max_allowed_packet`, once a lean connection had to know it.
    allowed: Arc<AtomicUsize>,
}

impl Mysql {
    fn lean(&self, options: &ConnectOptions) -> Result<Lean<Stream>> {
        Lean::connect(&self.config, options.timeout, Arc::clone(&self.allowed))
    }

    fn link(&self, options: &ConnectOptions) -> Result<Box<dyn Query>> {
        Ok(if self.config.wrapped {
            Box::new(Wrapped::connect(&self.config, options.timeout)?)
        } else {
            Box::new(self.lean(options)?)
        })
    }
}

impl Driver for Mysql {
    fn describe(&self) -> Result<ServerFacts> {
        let mut link = self.link(&ConnectOptions::default())?;
        let client = if self.config.wrapped { wrapped::CLIENT } else { lean::CLIENT };
        let facts = facts::read(&mut *link, &self.config, client)?;
        link.quit()?;
        Ok(facts)
    }

    fn supports(&self, _operation: &Operation) -> Support {
        Support::Native
    }

    fn prepared_statements(&self) -> Support {
        Support::Native
    }

    fn pipelining(&self) -> Support {
        Support::No("the MySQL protocol is spoken one command at a time".to_owned())
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let dialect = Arc::clone(&self.dialect);
        Ok(if self.config.wrapped {
            Box::new(LinkSession::new(Wrapped::connect(&self.config, options.timeout)?, dialect))
        } else {
            Box::new(LinkSession::new(self.lean(options)?, dialect))
        })
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let mut link = self.link(&ConnectOptions::default())?;
        // Only here are tables made.
        let dialect = Arc::new(dialect::dialect(&self.config, dialect::collation(&mut *link)?));
        Ok(Box::new(SqlNamespace::new(house::MysqlHouse { link, dialect })))
    }
}
