//! Housekeeping on MySQL and MariaDB.

use crate::prelude::*;
use crate::sql::{Dialect, SqlNamespaceOps, drop_table, hex, outgrown};
use crate::wire::link::{Query, rows, try_lock, value};
use std::fmt::Write as _;
use std::sync::Arc;

/// The most rows of somebody's table that are counted before a run.
const LOOKED_AT: u64 = 100_000;
/// InnoDB's estimates, from 20 pages of a table, are not so many times too low: of 20,000 rows just analysed MySQL 9.7
/// said 1,820 once and a third or less in 6 of 40 tries; of 10,000 and of 100,000 it was never far off.
const FAR: u64 = 20;

/// A connection that manages the namespace.
pub(crate) struct MysqlNamespace {
    pub(crate) link: Box<dyn Query>,
    pub(crate) dialect: Arc<Dialect>,
    /// Without a storage engine: the marker must not lose its rows with the server, as tables of MEMORY do.
    pub(crate) marker: Dialect,
    /// The storage engine that our tables must have, where it is known.
    pub(crate) engine: Option<String>,
}

impl SqlNamespaceOps for MysqlNamespace {
    fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    fn marker_dialect(&self) -> &Dialect {
        &self.marker
    }

    /// A server may take another storage engine than the one asked for, with a warning that nobody reads (`sql_mode`
    /// without `NO_ENGINE_SUBSTITUTION`).
    fn made(&mut self, table: &str) -> Result<()> {
        let Some(wanted) = &self.engine else { return Ok(()) };
        let sql = format!(
            "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '{table}'"
        );
        let found = value(&mut *self.link, &sql)?.unwrap_or_default();
        if found.eq_ignore_ascii_case(wanted) {
            return Ok(());
        }
        let wanted = wanted.clone();
        self.execute(&drop_table(&self.dialect, table))?;
        Err(Error::unsupported(format!("asked for a table of {wanted}, the server made one of {found}"))
            .hint("it has that storage engine disabled, or enforces another"))
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        self.link.query(sql, &mut Reply::new())
    }

    fn column(&mut self, sql: &str) -> Result<Vec<String>> {
        Ok(rows(&mut *self.link, sql)?.into_iter().filter_map(|row| row.into_iter().next()).collect())
    }

    fn table_exists(&mut self, name: &str) -> Result<bool> {
        // Names are ours: they hold no quotes.
        let sql = format!(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '{name}'"
        );
        Ok(value(&mut *self.link, &sql)?.is_some())
    }

    /// InnoDB gathers by itself unless it is told not to, and late after many rows came at once. When it last did, it wrote down
    /// how many rows there were, for whom may read that; this is held to as many as are counted in no time.
    fn unanalysed_table(&mut self, table: &str) -> Result<Option<String>> {
        let sql = format!(
            "SELECT n_rows FROM mysql.innodb_table_stats WHERE database_name = DATABASE() AND table_name = '{table}'"
        );
        let Some(known) = value(&mut *self.link, &sql)?.and_then(|rows| rows.parse().ok()) else {
            return Ok(None);
        };
        let sql = format!("SELECT COUNT(*) FROM (SELECT 1 FROM `{table}` LIMIT {LOOKED_AT}) AS looked_at");
        let there = value(&mut *self.link, &sql)?.and_then(|rows| rows.parse().ok()).unwrap_or(0);
        Ok(outgrown(table, known, there, FAR, &format!("ANALYZE TABLE {table}")))
    }

    /// Two named locks, which end with the connection: one for the database, one that tells which run has it, so
    /// that a run may reach one database by two targets.
    fn lock(&mut self, run: &str) -> Result<()> {
        // A name holds at most 64 characters; MySQL 9 has no MD5 any more.
        let database = "CONCAT('kurabe:', LEFT(SHA2(DATABASE(), 256), 50))";
        // A run's name and this process, so that two processes whose runs are named alike are two.
        let mut name = String::new();
        hex(&mut name, format!("{run}/{}", std::process::id()).as_bytes());
        let ours = format!("CONCAT('kurabe:', LEFT(SHA2(CONCAT(DATABASE(), X'{name}'), 256), 50))");
        let mut holder = String::new();
        let link = &mut *self.link;
        let taken = try_lock(|| {
            match value(link, &format!("SELECT GET_LOCK({database}, 0)"))?.as_deref() {
                Some("1") => {
                    value(link, &format!("SELECT GET_LOCK({ours}, 0)"))?;
                    return Ok(true);
                }
                Some("0") => {}
                // NULL: that is no word of another run.
                _ => {
                    return Err(Error::new(
                        ErrorKind::Server,
                        "the server could not take a lock by GET_LOCK",
                    ));
                }
            }
            let sql = format!("SELECT IS_USED_LOCK({database}), IS_USED_LOCK({ours})");
            let mut holders = rows(link, &sql)?.into_iter().next().unwrap_or_default().into_iter();
            holder = holders.next().unwrap_or_default();
            Ok(!holder.is_empty() && holders.next().as_ref() == Some(&holder))
        })?;
        if taken {
            return Ok(());
        }
        let who = self.holder(&holder);
        Err(Error::new(ErrorKind::InUse, format!("another run of Kurabe is using this database{who}"))
            .hint("wait for it to end, or use another database"))
    }
}

impl MysqlNamespace {
    /// Who holds a connection, as far as this user may see it.
    fn holder(&mut self, connection: &str) -> String {
        let mut who = String::new();
        if connection.is_empty() || !connection.bytes().all(|b| b.is_ascii_digit()) {
            return who;
        }
        let _ = write!(who, " (connection {connection}");
        let sql = format!("SELECT user, host FROM information_schema.processlist WHERE id = {connection}");
        if let Ok(found) = rows(&mut *self.link, &sql)
            && let Some([user, host]) = found.first().map(Vec::as_slice)
        {
            let _ = write!(who, ", user {user} from {host}");
        }
        who.push(')');
        who
    }
}

impl Drop for MysqlNamespace {
    fn drop(&mut self) {
        // The locks go with the connection; saying goodbye lets the server see it at once.
        let _ = self.link.quit();
    }
}
