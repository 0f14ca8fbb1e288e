//! Dumps and restores by `pg_dump` and `psql`. How they connect, with the password, is in their environment.

use super::config::Config;
use super::dialect::dialect;
use super::foreign::literal;
use crate::dump::{Programs, over_tls};
use crate::prelude::*;
use crate::program;
use crate::sql::Dialect;
use crate::wire::Place;
use crate::wire::link::{Query, value};
use kurabe_core::dump::RowOrder;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PACKAGE: &str = "apt-get install postgresql-client";

pub(super) struct PostgresDump {
    config: Config,
    link: Box<dyn Query>,
    dump: PathBuf,
    restore: PathBuf,
    names: String,
    dialect: Dialect,
}

impl PostgresDump {
    /// `schema`: the one in which the user's sessions create tables.
    pub(super) fn new(config: &Config, link: Box<dyn Query>, schema: Option<String>) -> Result<Self> {
        if !config.tls.is_off() {
            return Err(over_tls());
        }
        let (dump, restore) = (program::find(&["pg_dump"], PACKAGE)?, program::find(&["psql"], PACKAGE)?);
        let names = format!("{}; {}", program::version(&dump), program::version(&restore));
        let dialect = Dialect { schema, ..dialect() };
        Ok(Self { config: config.clone(), link, dump, restore, names, dialect })
    }

    fn command(&self, program: &Path) -> Command {
        let config = &self.config;
        let mut command = Command::new(program);
        // Nothing of the user's settings for other servers, of which each version of libpq knows more.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        match &config.place {
            Place::Tcp { host, port } => command.env("PGHOST", host).env("PGPORT", port.to_string()),
            Place::Unix(path) => {
                // libpq is told the folder, and the port that is in the name of the socket: `.s.PGSQL.5432`.
                let port = path.extension().unwrap_or_default();
                command.env("PGHOST", path.parent().unwrap_or(path)).env("PGPORT", port)
            }
        };
        command.env("PGUSER", &config.user).env("PGDATABASE", &config.database).env("PGSSLMODE", "disable");
        config.password.as_ref().map(|password| command.env("PGPASSWORD", password.expose()));
        let search_path = config.search_path.as_ref().map(|path| format!("-c search_path={path}"));
        let options: Vec<String> = config.options.iter().cloned().chain(search_path).collect();
        command.env("PGOPTIONS", options.join(" ")).arg("--no-password").stdin(Stdio::null());
        command
    }
}

impl Programs for PostgresDump {
    const END: &'static str = "-- PostgreSQL database dump complete";

    fn names(&self) -> &str {
        &self.names
    }

    /// Rows are dumped in the order in which they are stored: `pg_dump` has no other.
    fn dump(&self, table: &Collection, _order: RowOrder) -> Command {
        let mut command = self.command(&self.dump);
        command.args(["--clean", "--if-exists", "--no-owner", "--no-privileges", "--table", &table.name]);
        command
    }

    fn restore(&self) -> Command {
        let mut command = self.command(&self.restore);
        command.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"]);
        command
    }

    fn stored_bytes(&mut self, table: &Collection) -> Result<Option<u64>> {
        let name = literal(&self.dialect.table(&table.name));
        let sql = format!("SELECT pg_catalog.pg_total_relation_size(pg_catalog.to_regclass({name}))");
        Ok(value(&mut *self.link, &sql)?.and_then(|bytes| bytes.parse().ok()))
    }
}
