//! Namespace of a run on SQLite: its catalogue, and a lock that ends with the process.

use super::dialect::DIALECT;
use super::error::explain;
use super::file::SqliteFile;
use crate::embedded::Claim;
use crate::sql::{Dialect, MARKER, SqlNamespaceOps, create_table, marker};
use kurabe_core::Result;
use kurabe_core::collection::Collection;
use kurabe_core::remote::{Link, RemoteServer};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _};
use std::sync::Arc;

pub(super) struct SqliteNamespace {
    file: Arc<SqliteFile>,
    /// Opened when it is needed: for reading, until something is written.
    connection: Option<Connection>,
    writes: bool,
    claim: Claim,
}

impl SqliteNamespace {
    pub(super) fn new(file: Arc<SqliteFile>) -> Self {
        Self { file, connection: None, writes: false, claim: Claim::default() }
    }

    /// The connection for reading; `None` if there is no file yet.
    fn reader(&mut self) -> Result<Option<&Connection>> {
        if self.connection.is_none() && !self.file.is_missing() {
            self.connection = Some(self.file.reader()?);
        }
        Ok(self.connection.as_ref())
    }

    fn writer(&mut self) -> Result<&Connection> {
        if !self.writes {
            // Before the journal mode is changed, for which no other connection may read.
            self.connection = None;
            self.writes = true;
        }
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(self.file.writer()?)),
        }
    }
}

impl SqlNamespaceOps for SqliteNamespace {
    fn dialect(&self) -> &Dialect {
        &DIALECT
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        self.writer()?.execute_batch(sql).map_err(|e| explain(&e))
    }

    fn column(&mut self, sql: &str) -> Result<Vec<String>> {
        let Some(connection) = self.reader()? else { return Ok(Vec::new()) };
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = connection.prepare(sql)?;
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
        // Tables, views and indexes share one case-insensitive namespace.
        let sql = "SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE";
        let Some(connection) = self.reader()? else { return Ok(false) };
        let found = connection.query_row(sql, [name], |_| Ok(())).optional();
        found.map(|found| found.is_some()).map_err(|e| explain(&e))
    }

    /// The author of the file is not known. The ownership table must have the text by which Kurabe creates it, and nothing may
    /// belong to it: a trigger would run when Kurabe writes.
    fn not_made_by_us(&mut self, name: &str) -> Result<Option<String>> {
        let sql = "SELECT type, name, sql FROM sqlite_schema WHERE (name = ?1 COLLATE NOCASE OR tbl_name = ?1 COLLATE NOCASE) \
                   AND sql IS NOT NULL ORDER BY type <> 'table'";
        let Some(connection) = self.reader()? else { return Ok(None) };
        let read = || -> rusqlite::Result<Vec<[String; 3]>> {
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map([name], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
            rows.collect()
        };
        let found = read().map_err(|e| explain(&e))?;
        let Some([kind, _, text]) = found.first() else { return Ok(None) };
        if kind != "table" {
            return Ok(Some(format!("it is a {kind}")));
        }
        if text.get(..14).is_some_and(|start| start.eq_ignore_ascii_case("CREATE VIRTUAL")) {
            return Ok(Some("it is a virtual table".to_owned()));
        }
        if name != MARKER {
            return Ok(None);
        }
        if let Some([kind, name, _]) = found.get(1) {
            return Ok(Some(format!("it has a {kind}, {name}")));
        }
        let same = *text == create_table(&DIALECT, &marker())?;
        Ok((!same).then(|| "it has other columns".to_owned()))
    }

    /// Reports only a table with an index: without statistics, SQLite chooses indexes by fixed assumptions.
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
            "table {table} was never analysed: SQLite chooses among its indexes by fixed rules, not by their content; run \
             ANALYZE {table} first if the application's own database has been analysed"
        )))
    }

    /// Drops SQLite's statistics tables if they are empty.
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

    /// Creates nothing: each session attaches the file itself.
    fn link(&mut self, _: &Collection, _: RemoteServer, _: &Link) -> Result<()> {
        Ok(())
    }

    fn lock(&mut self, run: &str) -> Result<()> {
        let place = self.file.place();
        if let Some(why) = self.file.read_only() {
            return Err(place.read_only(&why));
        }
        self.claim.take("sqlite", &place.lock_path(), run)
    }
}
