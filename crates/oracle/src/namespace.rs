//! Namespace of a run on Oracle.
//!
//! A lease is the lock on a row of the ownership table, held by an open transaction on a separate connection. It needs
//! no privilege except on the user's own table (`DBMS_LOCK` has to be granted), and always ends with the connection.
//! The connection is separate because every statement that creates or drops a table commits.

use super::config::Config;
use super::dialect::dialect;
use super::errors::{BUSY, DUPLICATE, NAME_TAKEN};
use super::link::Link;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{self, Dialect, MARKER, SqlNamespaceOps};
use kurabe_driver_common::wire::link::try_lock;

pub(crate) struct OracleNamespace {
    config: Config,
    dialect: Dialect,
    link: Link,
    claim: Option<Claim>,
}

struct Claim {
    holder: String,
    /// `None`: this process already holds the lease, through another target.
    _transaction: Option<Link>,
}

impl OracleNamespace {
    pub(crate) fn open(config: &Config) -> Result<Self> {
        let link = Link::connect(config, ConnectOptions::default().timeout)?;
        Ok(Self { config: config.clone(), dialect: dialect(config), link, claim: None })
    }

    /// Creates the ownership table and the row to lock in it, unless they exist.
    fn make_lock_row(&mut self) -> Result<()> {
        if !self.table_exists(MARKER)? {
            let sql = sql::create_table(&self.dialect, &sql::marker())?;
            unless(NAME_TAKEN, self.execute(&sql))
                .map_err(|e| e.context(format!("cannot create table {MARKER}")))?;
        }
        if self.column(&lock_row())?.is_empty() {
            unless(DUPLICATE, self.execute(&insert_lock_row()))?;
        }
        Ok(())
    }
}

/// Turns an error with this code into success.
fn unless(code: &str, done: Result<()>) -> Result<()> {
    match done {
        Err(error) if error.server_code() == Some(code) => Ok(()),
        done => done,
    }
}

/// Inserts the row that a lease locks. It is not an entry of a table: entries have a creation time.
pub(crate) fn insert_lock_row() -> String {
    format!("INSERT INTO \"{MARKER}\" (\"name\", \"made_by\", \"made_at\") VALUES ('{MARKER}', ' ', 0)")
}

/// Reads the current or last holder of the lease.
pub(crate) fn lock_row() -> String {
    format!("SELECT \"made_by\" FROM \"{MARKER}\" WHERE \"name\" = '{MARKER}'")
}

/// Takes the lock, or fails at once if it is taken.
pub(crate) fn take_lock() -> String {
    format!("{} FOR UPDATE NOWAIT", lock_row())
}

pub(crate) fn write_holder(holder: &str) -> String {
    format!("UPDATE \"{MARKER}\" SET \"made_by\" = '{holder}' WHERE \"name\" = '{MARKER}'")
}

/// Finds objects whose name conflicts with a new table. Tables, views, synonyms and sequences share one namespace;
/// indexes and triggers have their own (SQL Language Reference, "Database Object Naming Rules").
pub(crate) fn objects_named(name: &str) -> String {
    format!(
        "SELECT OBJECT_TYPE FROM ALL_OBJECTS WHERE OWNER = SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') \
         AND OBJECT_NAME = '{name}' AND OBJECT_TYPE NOT IN ('INDEX', 'TRIGGER', 'LOB', 'CLUSTER')"
    )
}

/// Name of this process and the run, in printable ASCII and at most 60 characters, the column's length.
fn holder_name(run: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() && c != '\'' && c != ':' && c != '"' { c } else { '_' };
    let run: String = run.chars().map(plain).collect();
    format!("process {} run {run}", std::process::id()).chars().take(60).collect()
}

impl SqlNamespaceOps for OracleNamespace {
    fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        if self.claim.is_some() && sql == sql::drop_table(&self.dialect, MARKER) {
            // The last statement of a run. Our own lock would block it.
            self.claim = None;
        }
        self.link.change(sql, &[])?;
        self.link.commit()
    }

    fn column(&mut self, sql: &str) -> Result<Vec<String>> {
        Ok(self.link.rows(sql)?.into_iter().filter_map(|row| row.into_iter().next()).collect())
    }

    fn table_exists(&mut self, name: &str) -> Result<bool> {
        Ok(!self.column(&objects_named(name))?.is_empty())
    }

    fn lock(&mut self, run: &str) -> Result<()> {
        let holder = holder_name(run);
        if self.claim.as_ref().is_some_and(|claim| claim.holder == holder) {
            return Ok(());
        }
        self.make_lock_row().map_err(foreign_marker)?;
        let mut link = Link::connect(&self.config, ConnectOptions::default().timeout)?;
        let taken = try_lock(|| match link.rows(&take_lock()) {
            Ok(rows) => Ok(!rows.is_empty()),
            Err(error) if error.server_code() == Some(BUSY) => Ok(false),
            Err(error) => Err(error),
        })?;
        if taken {
            // Other runs see the holder's name only after a commit, which also releases the lock.
            link.change(&write_holder(&holder), &[])?;
            link.commit()?;
            match link.rows(&take_lock()) {
                Ok(found) if found.first().and_then(|row| row.first()) == Some(&holder) => {
                    self.claim = Some(Claim { holder, _transaction: Some(link) });
                    return Ok(());
                }
                Err(error) if error.server_code() != Some(BUSY) => return Err(error),
                _ => {}
            }
        }
        let found = self.column(&lock_row())?.into_iter().next().unwrap_or_default();
        if found == holder {
            // A run may use one database through two targets.
            self.claim = Some(Claim { holder, _transaction: None });
            return Ok(());
        }
        let message = format!("another run of Kurabe is using this schema ({})", found.trim());
        Err(Error::new(ErrorKind::InUse, message).hint("wait for it to end, or use another user"))
    }
}

/// Converts errors about missing columns: an ownership table without our columns belongs to another program.
fn foreign_marker(error: Error) -> Error {
    match error.server_code() {
        Some("ORA-00904" | "ORA-00947" | "ORA-00913" | "ORA-01733") => {
            Error::new(ErrorKind::NotOurs, format!("table {MARKER} was not created by Kurabe ({error})"))
                .hint("Kurabe does not change it; rename it, or use another user")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holder_name_fits_column_and_needs_no_escaping() {
        let name =
            holder_name("2026-11-21T10:00:00 o'brien \" ; \u{e9} and a name that is much too long to fit");
        assert!(name.len() <= 60 && name.is_ascii(), "{name}");
        assert!(!name.contains(['\'', '"', ':']), "{name}");
        assert!(
            name.starts_with(&format!("process {} run 2026-11-21T10_00_00_o_brien", std::process::id())),
            "{name}"
        );
    }
}
