//! Namespace of a run on SQLite: its catalogue, and a lock that ends with the process.

use super::dialect::DIALECT;
use super::error::explain;
use crate::embedded::Claim;
use crate::sql::{Dialect, MARKER, SqlNamespaceOps, create_table, marker};
use kurabe_core::collection::Collection;
use kurabe_core::remote::{Link, RemoteServer};
use kurabe_core::{Error, Result};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _};
use std::path::PathBuf;

pub(super) struct SqliteNamespace {
    connection: Connection,
    lock_path: PathBuf,
    claim: Claim,
    /// The error of a file that can only be read.
    refusal: Option<Error>,
}

impl SqliteNamespace {
    pub(super) fn new(connection: Connection, lock_path: PathBuf, refusal: Option<Error>) -> Self {
        Self { connection, lock_path, claim: Claim::default(), refusal }
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
        // Tables, views and indexes share one case-insensitive namespace.
        let sql = "SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE";
        let found = self.connection.query_row(sql, [name], |_| Ok(())).optional();
        found.map(|found| found.is_some()).map_err(|e| explain(&e))
    }

    /// The author of the file is not known. The ownership table must have the text by which Kurabe creates it, and nothing may
    /// belong to it: a trigger would run when Kurabe writes.
    fn not_made_by_us(&mut self, name: &str) -> Result<Option<String>> {
        let sql = "SELECT type, name, sql FROM sqlite_schema WHERE (name = ?1 COLLATE NOCASE OR tbl_name = ?1 COLLATE NOCASE) \
                   AND sql IS NOT NULL ORDER BY type <> 'table'";
        let read = || -> rusqlite::Result<Vec<[String; 3]>> {
            let mut statement = self.connection.prepare(sql)?;
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
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        self.claim.take("sqlite", &self.lock_path, run)
    }
}
