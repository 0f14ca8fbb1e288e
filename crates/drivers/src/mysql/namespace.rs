//! Namespace of a run on MySQL and MariaDB.

use super::version::Era;
use super::{foreign, origin};
use crate::prelude::*;
use crate::sql::{Dialect, SqlNamespaceOps, drop_table, hex, outgrown};
use crate::wire::link::{Query, rows, try_lock, value};
use kurabe_core::collection::Charset;
use kurabe_core::remote::{Link, RemoteServer};
use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum number of rows of a table that are counted before a run.
const COUNT_LIMIT: u64 = 100_000;
/// Maximum factor by which InnoDB's row estimate may be too low. InnoDB samples 20 pages of a table. For 20,000 rows
/// just analysed, MySQL 9.7 reported 1,820 once and a third or less in 6 of 40 attempts; for 10,000 and 100,000 it was
/// close.
const FAR: u64 = 20;

pub(crate) struct MysqlNamespace {
    pub(crate) link: Box<dyn Query>,
    pub(super) era: Era,
    pub(crate) dialect: Arc<Dialect>,
    /// Dialect of the ownership table, without a storage engine: a MEMORY table would lose its rows when the server
    /// ends.
    pub(crate) marker: Dialect,
    /// The storage engine required for our tables, if known.
    pub(crate) engine: Option<String>,
    pub(crate) database: String,
    pub(crate) remotes: foreign::Remotes,
}

impl SqlNamespaceOps for MysqlNamespace {
    fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    fn marker_dialect(&self) -> &Dialect {
        &self.marker
    }

    /// Checks the table's storage engine: without `NO_ENGINE_SUBSTITUTION` in `sql_mode`, the server may substitute
    /// another one with only a warning.
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
        Err(Error::unsupported(format!("the server created a table with {found} instead of {wanted}"))
            .hint("the storage engine is disabled, or the server enforces another one"))
    }

    fn set_charset(&mut self, table: &str, charset: Charset) -> Result<()> {
        self.execute(&format!("ALTER TABLE `{table}` CONVERT TO{}", foreign::charset_clause(charset)))
    }

    /// InnoDB's tables are their primary keys.
    fn keeps_insertion_order(&self) -> bool {
        !self.engine.as_deref().is_some_and(|engine| engine.eq_ignore_ascii_case("InnoDB"))
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        self.link.query(sql, &mut Reply::new())
    }

    fn column(&mut self, sql: &str) -> Result<Vec<String>> {
        Ok(rows(&mut *self.link, sql)?.into_iter().filter_map(|row| row.into_iter().next()).collect())
    }

    fn table_exists(&mut self, name: &str) -> Result<bool> {
        // Kurabe's table names contain no quotes.
        let sql = format!(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '{name}'"
        );
        Ok(value(&mut *self.link, &sql)?.is_some() || self.definition(name)?.is_some())
    }

    fn not_made_by_us(&mut self, name: &str) -> Result<Option<String>> {
        // Only who may write server definitions can have made a linked collection.
        if self.definition(name)?.is_some() {
            return Ok(None);
        }
        origin::doubt(&mut *self.link, name)
    }

    fn link(&mut self, collection: &Collection, server: RemoteServer, link: &Link) -> Result<()> {
        let definition = foreign::definition(&collection.name, &self.database);
        let dialect = Arc::clone(&self.dialect);
        let statements = foreign::create(&dialect, &self.remotes, collection, server, link, &definition)?;
        statements.iter().try_for_each(|sql| self.execute(sql))
    }

    fn unlink(&mut self, name: &str) -> Result<()> {
        let Some(definition) = self.definition(name)? else { return Ok(()) };
        self.execute(&drop_table(&Arc::clone(&self.dialect), name))?;
        self.execute(&format!("DROP SERVER IF EXISTS `{definition}`"))
    }

    /// Compares the row count of InnoDB's last statistics with the table's rows, counted up to [`COUNT_LIMIT`]. InnoDB
    /// updates statistics automatically by default, but late after a bulk insert. `None` if the user may not read them.
    fn unanalysed_table(&mut self, table: &str) -> Result<Option<String>> {
        if self.era == Era::Mysql55 {
            // It has no table of statistics.
            return Ok(None);
        }
        let sql = format!(
            "SELECT n_rows FROM mysql.innodb_table_stats WHERE database_name = DATABASE() AND table_name = '{table}'"
        );
        let Some(known) = value(&mut *self.link, &sql)?.and_then(|rows| rows.parse().ok()) else {
            return Ok(None);
        };
        let sql = format!("SELECT COUNT(*) FROM (SELECT 1 FROM `{table}` LIMIT {COUNT_LIMIT}) AS counted");
        let there = value(&mut *self.link, &sql)?.and_then(|rows| rows.parse().ok()).unwrap_or(0);
        Ok(outgrown(table, known, there, FAR, &format!("ANALYZE TABLE {table}")))
    }

    fn hold_statistics_of(&self, table: &str) -> Option<String> {
        (self.era == Era::Current).then(|| format!("ALTER TABLE {table} STATS_AUTO_RECALC = 0"))
    }

    /// Takes two named locks, which are released with the connection: one for the database, and one that identifies the
    /// run. The second lets one run use the same database through two targets, but not on MySQL 5.5, where it would
    /// release the first.
    fn lock(&mut self, run: &str) -> Result<()> {
        let current = self.era == Era::Current;
        // A lock name has at most 64 characters. MySQL 9 removed MD5 and SHA1.
        let database = if current {
            "CONCAT('kurabe:', LEFT(SHA2(DATABASE(), 256), 50))"
        } else {
            "CONCAT('kurabe:', SHA1(DATABASE()))"
        };
        // The run's name and the process ID, which distinguishes processes whose runs have the same name.
        let mut name = String::new();
        hex(&mut name, format!("{run}/{}", std::process::id()).as_bytes());
        let ours = format!("CONCAT('kurabe:', LEFT(SHA2(CONCAT(DATABASE(), X'{name}'), 256), 50))");
        let mut holder = String::new();
        let link = &mut *self.link;
        let taken = try_lock(|| {
            match value(link, &format!("SELECT GET_LOCK({database}, 0)"))?.as_deref() {
                Some("1") if !current => return Ok(true),
                Some("1") => {
                    value(link, &format!("SELECT GET_LOCK({ours}, 0)"))?;
                    return Ok(true);
                }
                Some("0") => {}
                // NULL is an error, not a lock held by another run.
                _ => {
                    let message = "the server could not take a lock by GET_LOCK";
                    return Err(Error::new(ErrorKind::Server, message));
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
    /// The server definition of a linked collection, if there is one. A user who may not read definitions cannot have
    /// created one.
    fn definition(&mut self, name: &str) -> Result<Option<String>> {
        match value(&mut *self.link, &foreign::find(&foreign::definition(name, &self.database))) {
            Err(error) if error.server_code().is_some() => Ok(None),
            found => found,
        }
    }

    /// Describes a connection's user and host, as far as this user may see them.
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
        // The locks end with the connection; COM_QUIT makes the server end it at once.
        let _ = self.link.quit();
    }
}
