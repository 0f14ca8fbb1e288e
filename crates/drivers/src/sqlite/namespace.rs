//! SQLite's part of the ownership rules: its catalogue, and a lock that ends with the process.

use super::DIALECT;
use super::error::explain;
use crate::ownership;
use crate::sql::{Dialect, SqlNamespaceOps};
use kurabe_core::{Error, ErrorKind, Result};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The locks that this process holds.
static HELD: Mutex<Vec<Weak<Lock>>> = Mutex::new(Vec::new());

pub(super) struct SqliteNamespace {
    connection: Connection,
    lock_path: PathBuf,
    lock: Option<Arc<Lock>>,
}

impl SqliteNamespace {
    pub(super) fn new(connection: Connection, lock_path: PathBuf) -> Self {
        Self { connection, lock_path, lock: None }
    }
}

impl SqlNamespaceOps for SqliteNamespace {
    fn dialect(&self) -> &Dialect {
        &DIALECT
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(|e| explain(&e))
    }

    fn column(&mut self, sql: &str) -> Result<Vec<String>> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection.prepare(sql)?;
            let rows = statement.query_map([], |row| row.get::<_, Value>(0))?;
            rows.map(|value| {
                Ok(match value? {
                    Value::Text(text) => text,
                    Value::Integer(n) => n.to_string(),
                    _ => String::new(),
                })
            })
            .collect()
        };
        read().map_err(|e| explain(&e))
    }

    fn table_exists(&mut self, name: &str) -> Result<bool> {
        // Tables, views and indexes share their names; so they do without regard to case.
        self.connection
            .query_row("SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE", [name], |_| Ok(()))
            .optional()
            .map(|found| found.is_some())
            .map_err(|e| explain(&e))
    }

    /// Where there is an index to choose: what SQLite assumes of one instead is written down, and need not be so.
    fn unanalysed_table(&mut self, table: &str) -> Result<Option<String>> {
        let indexes = format!(
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = '{table}' COLLATE NOCASE"
        );
        if self.column(&indexes)?.is_empty()
            || self.column(&format!("SELECT 1 FROM \"{table}\" LIMIT 1"))?.is_empty()
        {
            return Ok(None);
        }
        let known = format!("SELECT 1 FROM sqlite_stat1 WHERE tbl = '{table}' COLLATE NOCASE LIMIT 1");
        if self.table_exists("sqlite_stat1")? && !self.column(&known)?.is_empty() {
            return Ok(None);
        }
        Ok(Some(format!(
            "table {table} was never analysed: SQLite chooses among its indexes by rule and not by what is in them; run \
             ANALYZE {table} first, where the application's own database has been"
        )))
    }

    /// Its tables of statistics, where nothing stands in them: nobody misses them.
    fn swept(&mut self) -> Result<()> {
        for table in ["sqlite_stat1", "sqlite_stat4"] {
            if self.table_exists(table)?
                && self.column(&format!("SELECT tbl FROM {table} LIMIT 1"))?.is_empty()
            {
                self.execute(&format!("DROP TABLE {table}"))?;
            }
        }
        Ok(())
    }

    fn lock(&mut self, run: &str) -> Result<()> {
        if self.lock.is_none() {
            self.lock = Some(take_lock(&self.lock_path, run)?);
        }
        Ok(())
    }
}

/// A run's lock on a database: all targets of the run that reach the file share it.
struct Lock {
    path: PathBuf,
    holder: String,
    /// The device and number of the locked file.
    identity: (u64, u64),
    _file: File,
}

/// Whoever holds the lock removes the file before it lets go.
impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The system's lock on a file beside the database (`flock`): it ends with the process, however that ends.
fn take_lock(path: &Path, run: &str) -> Result<Arc<Lock>> {
    let failed = |error: &std::io::Error| {
        Error::new(ErrorKind::NotPermitted, format!("sqlite: cannot lock {}: {error}", path.display()))
    };
    let us = ownership::holder(run);
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    held.retain(|lock| lock.strong_count() > 0);
    loop {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| failed(&e))?;
        let ours = file.metadata().map_err(|e| failed(&e))?;
        let identity = (ours.dev(), ours.ino());
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                // The same run may reach the file by another target.
                let same = |lock: &Arc<Lock>| lock.identity == identity && lock.holder == us;
                if let Some(lock) = held.iter().filter_map(Weak::upgrade).find(same) {
                    return Ok(lock);
                }
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let by = if holder.is_empty() { "another run".to_owned() } else { holder.trim().to_owned() };
                return Err(Error::new(ErrorKind::InUse, format!("sqlite: the database is in use by {by}"))
                    .hint("wait for it to end, or name another file"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
        // The holder before may have removed the file between our opening and our locking it: then we hold the lock
        // of a file that nobody else will find.
        if fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == identity) {
            file.set_len(0).and_then(|()| writeln!(file, "{us}")).map_err(|e| failed(&e))?;
            let lock = Arc::new(Lock { path: path.to_owned(), holder: us, identity, _file: file });
            held.push(Arc::downgrade(&lock));
            return Ok(lock);
        }
    }
}
