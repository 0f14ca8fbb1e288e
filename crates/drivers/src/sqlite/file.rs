//! The database file, and how it is opened: for writing, for reading, or only to be described.
//!
//! A file of the user's stays as it is, to the byte, until a run writes to it: only a connection that writes changes its
//! journal mode, or creates it. Connections that read leave no file of theirs behind.

use super::error::explain;
use super::settings::{InForce, Settings, distrust};
use crate::embedded::Place;
use crate::prelude::*;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

pub(super) struct SqliteFile {
    place: Place,
    settings: Settings,
    /// Whether a first connection that writes has checked that the file is a database with the requested settings.
    ready: Mutex<bool>,
}

impl SqliteFile {
    pub(super) fn new(place: Place, settings: Settings) -> Self {
        Self { place, settings, ready: Mutex::new(false) }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Chooses settings of this durability class.
    pub(super) fn require(&mut self, class: DurabilityClass) -> Result<()> {
        self.settings.require(class, self.place.in_memory())?;
        self.ready = Mutex::new(false);
        Ok(())
    }

    /// Why it can only be read, as a clause; `None` if it can be written, as far as the file system says.
    pub(super) fn read_only(&self) -> Option<String> {
        if self.settings.read_only {
            return Some("it is opened with access=read".to_owned());
        }
        self.place.read_only_part().map(|part| format!("the {part} is read-only"))
    }

    /// Whether there is nothing to read: Kurabe's own temporary file, or one that is not there, has no tables yet.
    pub(super) fn is_missing(&self) -> bool {
        !self.place.path().exists()
    }

    /// A connection that writes, unless the file is read-only. The first one creates the file and sets its journal mode.
    pub(super) fn writer(&self) -> Result<Connection> {
        if self.read_only().is_some() {
            return self.reader();
        }
        {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            if !*ready {
                self.place.check()?;
                self.place.create()?;
                let connection = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
                self.settings.set_up(&connection).map_err(|e| e.context(self.place.shown()))?;
                *ready = true;
                // Returned and not closed: the last connection to close checkpoints the WAL.
                return Ok(connection);
            }
        }
        let connection = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        self.settings.apply(&connection).map_err(|e| e.context(self.place.shown()))?;
        Ok(connection)
    }

    /// A connection that only reads.
    pub(super) fn reader(&self) -> Result<Connection> {
        if self.place.is_temporary() && self.read_only().is_none() {
            return self.writer();
        }
        self.place.check()?;
        if self.is_missing() {
            let what = format!("{}: there is no such file", self.place.shown());
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        let connection = if self.place.read_only_part().is_some() || self.beside("-journal").exists() {
            // It must not roll back what another program's crash left.
            self.open(OpenFlags::SQLITE_OPEN_READ_ONLY)?
        } else {
            // A connection that SQLite lets only read creates a WAL and its index, but does not remove them.
            let had_wal = self.beside("-wal").exists();
            let connection = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            connection.pragma_update(None, "query_only", true).map_err(|e| explain(&e))?;
            // A WAL that was there stays as it was.
            connection
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, had_wal)
                .map_err(|e| explain(&e))?;
            connection
        };
        self.settings.apply_to_reader(&connection).map_err(|e| e.context(self.place.shown()))?;
        Ok(connection)
    }

    /// A connection for the limits of SQLite, the settings with which a run works, and notes about them.
    pub(super) fn described(&self) -> Result<(Connection, InForce, Vec<String>)> {
        if self.place.is_temporary() || self.read_only().is_some() {
            let connection = self.writer()?;
            let found = Settings::read_back(&connection)?;
            return Ok((connection, found, Vec::new()));
        }
        self.place.check()?;
        let mut notes = Vec::new();
        let connection = if self.is_missing() {
            notes.push("there is no such file yet: a run creates it".to_owned());
            // A temporary database of its own, with the same defaults.
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            let connection = Connection::open_with_flags("", flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
            let connection = connection.map_err(|e| explain(&e))?;
            self.settings.apply_to_reader(&connection)?;
            connection
        } else {
            self.reader()?
        };
        let is_empty = fs::metadata(self.place.path()).map_or(true, |about| about.len() == 0);
        let (found, change) = self
            .settings
            .when_written(Settings::read_back(&connection)?, is_empty)
            .map_err(|e| e.context(self.place.shown()))?;
        notes.extend(change);
        Ok((connection, found, notes))
    }

    /// What tells the file from others, however it is named.
    pub(super) fn identity(&self) -> Option<String> {
        let about = fs::metadata(self.place.path()).ok()?;
        Some(format!("file {} on device {}", about.ino(), about.dev()))
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.place.path().as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    }

    fn open(&self, flags: OpenFlags) -> Result<Connection> {
        // No mutex: `Session: Send` and `&mut self` ensure that one thread at a time uses a connection.
        let connection =
            Connection::open_with_flags(self.place.path(), flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
                .map_err(|e| self.place.explain_open(explain(&e)))?;
        distrust(&connection, self.settings.allows_defence())?;
        Ok(connection)
    }
}
