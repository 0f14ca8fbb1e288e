//! Dumps and restores by `pg_dump` and `psql`. How they connect, with the password, is in their environment.

use super::config::Config;
use crate::prelude::*;
use crate::program::{self, Dump};
use crate::wire::Place;
use crate::wire::link::{Query, value};
use kurabe_core::dump::{DumpTool, RowOrder};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a whole dump ends.
const END: &str = "-- PostgreSQL database dump complete";
const PACKAGE: &str = "apt-get install postgresql-client";

pub(super) struct PostgresDump {
    config: Config,
    link: Box<dyn Query>,
    dump: PathBuf,
    restore: PathBuf,
    programs: String,
    last: Option<Dump>,
}

impl PostgresDump {
    pub(super) fn new(config: &Config, link: Box<dyn Query>) -> Result<Self> {
        if !config.tls.is_off() {
            return Err(Error::unsupported("dumps over TLS are not supported; use a target without tls="));
        }
        let (dump, restore) = (program::find(&["pg_dump"], PACKAGE)?, program::find(&["psql"], PACKAGE)?);
        let programs = format!("{}; {}", program::version(&dump), program::version(&restore));
        Ok(Self { config: config.clone(), link, dump, restore, programs, last: None })
    }

    fn command(&self, program: &Path) -> Command {
        let config = &self.config;
        let mut command = Command::new(program);
        for name in ["PGPASSFILE", "PGSERVICE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGHOSTADDR"] {
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
        match &config.password {
            Some(password) => command.env("PGPASSWORD", password.expose()),
            None => command.env_remove("PGPASSWORD"),
        };
        let search_path = config.search_path.as_ref().map(|path| format!("-c search_path={path}"));
        let options: Vec<String> = config.options.iter().cloned().chain(search_path).collect();
        command.env("PGOPTIONS", options.join(" ")).arg("--no-password").stdin(Stdio::null());
        command
    }
}

impl DumpTool for PostgresDump {
    fn programs(&self) -> &str {
        &self.programs
    }

    /// Rows are dumped in the order in which they are stored: `pg_dump` has no other.
    fn dump(
        &mut self,
        table: &Collection,
        _order: RowOrder,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<u64> {
        self.last = None;
        let mut command = self.command(&self.dump);
        command.args(["--clean", "--if-exists", "--no-owner", "--no-privileges", "--table", &table.name]);
        let mut dump = Dump::beginning_with("")?;
        let length = dump.write(&mut command, END, progress)?;
        self.last = Some(dump);
        Ok(length)
    }

    fn restore(&mut self, _table: &Collection, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let mut command = self.command(&self.restore);
        command.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"]);
        let none = || Error::new(ErrorKind::Internal, "nothing was dumped that could be restored");
        self.last.as_mut().ok_or_else(none)?.read(&mut command, progress)
    }

    fn stored_bytes(&mut self, table: &Collection) -> Result<Option<u64>> {
        let sql = format!("SELECT pg_total_relation_size('{}')", table.name);
        Ok(value(&mut *self.link, &sql)?.and_then(|bytes| bytes.parse().ok()))
    }
}
