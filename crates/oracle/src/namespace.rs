//! Housekeeping on Oracle.
//!
//! A claim is the lock on a row of the marker, held by an open transaction on a connection of its own: it needs no
//! right but the user's own table (`DBMS_LOCK` has to be granted), and ends with the connection, however that ends. Any
//! statement that makes or removes a table commits, which is why it cannot be the connection that manages the namespace.

use super::config::Config;
use super::dialect::dialect;
use super::errors::{BUSY, DUPLICATE, NAME_TAKEN};
use super::link::Link;
use crate::prelude::*;
use crate::sql::{self, Dialect, MARKER, SqlNamespaceOps};
use crate::wire::link::try_lock;

/// A connection that manages the namespace.
pub(crate) struct OracleNamespace {
    config: Config,
    dialect: Dialect,
    link: Link,
    claim: Option<Claim>,
}

struct Claim {
    holder: String,
    /// `None`: this process holds it already, through another target.
    _transaction: Option<Link>,
}

impl OracleNamespace {
    pub(crate) fn open(config: &Config) -> Result<Self> {
        let link = Link::connect(config, ConnectOptions::default().timeout)?;
        Ok(Self { config: config.clone(), dialect: dialect(config), link, claim: None })
    }

    /// Makes the marker and the row in it that is locked, where they are not there yet.
    fn make_lock_row(&mut self) -> Result<()> {
        if !self.table_exists(MARKER)? {
            let sql = sql::create_table(&self.dialect, &sql::marker())?;
            unless(NAME_TAKEN, self.execute(&sql))
                .map_err(|e| e.context(format!("cannot make table {MARKER}")))?;
        }
        if self.column(&lock_row())?.is_empty() {
            unless(DUPLICATE, self.execute(&insert_lock_row()))?;
        }
        Ok(())
    }
}

/// As `done`, but an error of this code is none.
fn unless(code: &str, done: Result<()>) -> Result<()> {
    match done {
        Err(error) if error.server_code() == Some(code) => Ok(()),
        done => done,
    }
}

/// The row that a claim locks is no entry of a table: entries have the time that they were made.
pub(crate) fn insert_lock_row() -> String {
    format!("INSERT INTO \"{MARKER}\" (\"name\", \"made_by\", \"made_at\") VALUES ('{MARKER}', ' ', 0)")
}

/// Who holds the claim, or held it last.
pub(crate) fn lock_row() -> String {
    format!("SELECT \"made_by\" FROM \"{MARKER}\" WHERE \"name\" = '{MARKER}'")
}

/// Takes the lock, or says at once that it is taken.
pub(crate) fn take_lock() -> String {
    format!("{} FOR UPDATE NOWAIT", lock_row())
}

/// Writes down who holds it.
pub(crate) fn sign_lock(holder: &str) -> String {
    format!("UPDATE \"{MARKER}\" SET \"made_by\" = '{holder}' WHERE \"name\" = '{MARKER}'")
}

/// Whatever has this name where we would make a table: tables, views, synonyms and sequences share their names, and
/// indexes and triggers do not (SQL Language Reference, "Database Object Naming Rules").
pub(crate) fn objects_named(name: &str) -> String {
    format!(
        "SELECT OBJECT_TYPE FROM ALL_OBJECTS WHERE OWNER = SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') \
         AND OBJECT_NAME = '{name}' AND OBJECT_TYPE NOT IN ('INDEX', 'TRIGGER', 'LOB', 'CLUSTER')"
    )
}

/// Names this process and the run, in the 60 plain characters that the marker has room for.
fn holder_name(run: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() && c != '\'' && c != ':' && c != '"' { c } else { '_' };
    format!("process {} run {}", std::process::id(), run.chars().map(plain).collect::<String>())
        .chars()
        .take(60)
        .collect()
}

impl SqlNamespaceOps for OracleNamespace {
    fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        if self.claim.is_some() && sql == sql::drop_table(&self.dialect, MARKER) {
            // The last that a run does. Our own lock would stand in the way.
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
            // Whoever finds it taken shall find the name too, which only a commit shows; it lets go of the lock.
            link.change(&sign_lock(&holder), &[])?;
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
            // One run may reach a database by two targets.
            self.claim = Some(Claim { holder, _transaction: None });
            return Ok(());
        }
        let message = format!("another run of Kurabe is using this schema ({})", found.trim());
        Err(Error::new(ErrorKind::InUse, message).hint("wait for it to end, or use another user"))
    }
}

/// A marker without our columns is somebody else's table.
fn foreign_marker(error: Error) -> Error {
    match error.server_code() {
        Some("ORA-00904" | "ORA-00947" | "ORA-00913" | "ORA-01733") => Error::new(
            ErrorKind::NotOurs,
            format!("table {MARKER} is not the one that Kurabe makes ({error})"),
        )
        .hint("it is left alone; rename it, or use another user"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_fits_the_marker_and_holds_no_sign_of_sql() {
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
