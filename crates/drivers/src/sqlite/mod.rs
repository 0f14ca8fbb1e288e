//! SQLite, in this process: the embedded default.
//!
//! Each session has its own connection to one file, like a thread of an application. Without a path, the file is in a
//! temporary folder that is removed with the driver. `sqlite:///x.db` is relative to the working folder, like
//! `sqlite:x.db`; an absolute path is `sqlite:/x.db`.

mod attach;
mod dialect;
mod dump;
mod error;
mod file;
mod literals;
mod namespace;
mod only_reads;
mod session;
mod settings;
mod transfer;
mod values;

pub use dialect::DIALECT;

use crate::clients;
use crate::dump::ProgramDump;
use crate::embedded::{Place, ProcessStatsProbe};
use crate::prelude::*;
use crate::sql;
use error::explain;
use file::SqliteFile;
use kurabe_core::driver::Access;
use kurabe_core::facts::{Limit as Most, Limits, ServerFacts};
use kurabe_core::remote::{Link, RemoteAddress, RemoteServer};
use rusqlite::limits::Limit;
use settings::Settings;
use std::path::PathBuf;
use std::sync::Arc;

/// The driver, for the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["sqlite"],
    engine: "SQLite",
    about: "embedded, in this process; needs no server",
    url: "sqlite:[path]",
    options: &[
        OptionInfo::new(
            "journal_mode",
            "delete, truncate, persist, memory, wal or off (default wal), from when a run writes",
        ),
        OptionInfo::new("synchronous", "off, normal, full or extra (default full)"),
        OptionInfo::new(
            "cache_size",
            "page cache of each connection, as a size (2m) or as SQLite's own number",
        ),
        OptionInfo::new("busy_timeout", "maximum time that a write waits for another (default 5s)"),
        OptionInfo::new("mmap_size", "size of the file's part that is read by memory mapping (default 0)"),
        OptionInfo::new("page_size", "bytes of a page, for a new file (default 4096)"),
        OptionInfo::new("wal_autocheckpoint", "pages in the WAL that trigger a checkpoint (default 1000)"),
        OptionInfo::new(
            "access",
            "write (default), or read: open an existing file for reading only, as it is",
        ),
    ],
    benchmark_clause: None,
    connections: Connections::NONE,
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    if url.path == ":memory:" {
        return Err(Error::usage("sqlite::memory: creates a separate database for each connection")
            .hint("use a file on an in-memory file system: sqlite:/dev/shm/kurabe.db?synchronous=off"));
    }
    let settings = Settings::parse(url)?;
    let file = Arc::new(SqliteFile::new(Place::parse(url)?, settings));
    Ok(Box::new(Sqlite { file, remotes: Arc::default() }))
}

struct Sqlite {
    file: Arc<SqliteFile>,
    /// The files that a session can attach.
    remotes: Arc<attach::Remotes>,
}

impl Driver for Sqlite {
    fn describe(&self) -> Result<ServerFacts> {
        let (connection, read, found) = self.file.described()?;
        let place = self.file.place();
        let (durability, mut notes) = settings::durability(&read, place.in_memory());
        notes.extend(found.into_iter().chain(place.note()));
        let identity = self.file.identity();
        let limit = |limit, name: &str| {
            let most = connection.limit(limit).map_err(|e| explain(&e))?;
            Ok::<_, Error>(Some(Most { most: most.max(0) as u64, set_by: name.to_owned() }))
        };
        Ok(ServerFacts {
            engine: INFO.engine.to_owned(),
            version: rusqlite::version().to_owned(),
            client: format!("{}, SQLite compiled in", clients::RUSQLITE),
            transport: "in process".to_owned(),
            durability: Some(durability),
            durability_settings: read.durability,
            settings: read.others.into_iter().chain(DIALECT.statistics()).collect(),
            limits: Limits {
                value_bytes: limit(Limit::SQLITE_LIMIT_LENGTH, "SQLITE_MAX_LENGTH")?,
                parameters: limit(Limit::SQLITE_LIMIT_VARIABLE_NUMBER, "SQLITE_MAX_VARIABLE_NUMBER")?,
                ..Limits::default()
            },
            read_only: self.file.read_only(),
            identity: identity.map(|server| ServerIdentity { server, database: String::new() }),
            notes,
            ..ServerFacts::default()
        })
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        let shared = || Error::new(ErrorKind::Internal, "sqlite: the file is open already");
        Arc::get_mut(&mut self.file).ok_or_else(shared)?.require(class)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess
    }

    fn supports(&self, operation: &Operation) -> Support {
        sql::supports(&DIALECT, operation)
    }

    fn supports_transfer(&self, transfer: Transfer) -> Support {
        match transfer {
            Transfer::Read(Fetch::Rows(_)) => Support::no(
                "SQLite is in process: it gives one row after the other, without round trips (--fetch whole)",
            ),
            Transfer::Read(Fetch::Whole) | Transfer::Write => Support::Native,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let pipelining = Support::no("SQLite is in process: there is no round trip to save");
        // https://www.sqlite.org/eqp.html; https://www.sqlite.org/c3ref/stmt_scanstatus.html
        let estimates = Support::no(
            "SQLite's EXPLAIN QUERY PLAN has no row estimates, and its scan status, which has them, is not compiled in",
        );
        let is_temporary = self.file.place().is_temporary();
        let read_only_sessions = Support::Native;
        Capabilities { is_temporary, estimates, read_only_sessions, ..Capabilities::of_sql(pipelining) }
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let connection = match options.access {
            Access::ReadOnly => self.file.reader()?,
            Access::ReadWrite => self.file.writer()?,
        };
        let remotes = Arc::clone(&self.remotes);
        Ok(Box::new(session::SqliteSession::new(connection, remotes, options.access)?))
    }

    fn stats_probe(&self, _: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(ProcessStatsProbe))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Owned::boxed(namespace::SqliteNamespace::new(Arc::clone(&self.file))))
    }

    fn dump_tool(&self) -> Result<Box<dyn DumpTool>> {
        Ok(ProgramDump::boxed(dump::SqliteDump::new(Arc::clone(&self.file))?))
    }

    fn links(&self) -> Result<&dyn Links> {
        Ok(self)
    }

    fn add_remote(&mut self, remote: RemoteAddress) {
        let mut remotes = attach::Remotes::clone(&self.remotes);
        remotes.push((remote.server, attach::file(&remote.url)));
        self.remotes = Arc::new(remotes);
    }

    without!(compression, limited_memory);
}

impl Links for Sqlite {
    fn file(&self) -> Option<PathBuf> {
        std::path::absolute(self.file.place().path()).ok()
    }

    fn remote(&self, server: RemoteServer) -> Result<&dyn Driver> {
        no_remote(server)
    }

    fn supports(&self, server: RemoteServer, link: &Link) -> Result<Support> {
        Ok(Support::unless(attach::refusal(&self.remotes, server, link)))
    }
}
