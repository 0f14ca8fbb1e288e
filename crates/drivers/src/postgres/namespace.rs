//! Namespace of a run on PostgreSQL.

use super::foreign::{self, literal};
use super::origin;
use crate::prelude::*;
use crate::sql::{Dialect, SqlNamespaceOps, outgrown};
use crate::wire::link::{Query, rows, try_lock, value};
use kurabe_core::remote::{Link, RemoteServer};

/// The advisory lock's key: "kurabe" in ASCII. The lock is per database and ends with its connection.
const LOCK: i64 = 0x6b75_7261_6265;

/// Maximum growth factor of a table since it was last analysed. ANALYZE samples 30,000 rows, so its row count is
/// accurate.
const FAR: u64 = 3;

pub(crate) struct PostgresNamespace {
    pub(crate) link: Box<dyn Query>,
    /// Behind a pooler: a connection whose transaction holds the lease, and keeps its server process.
    pub(crate) holder: Option<Box<dyn Query>>,
    /// With the schema that the user's sessions create tables in.
    pub(crate) dialect: Dialect,
    pub(crate) remotes: foreign::Remotes,
}

impl SqlNamespaceOps for PostgresNamespace {
    fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        self.link.query(sql, &mut Reply::new())
    }

    fn column(&mut self, sql: &str) -> Result<Vec<String>> {
        Ok(rows(&mut *self.link, sql)?.into_iter().filter_map(|row| row.into_iter().next()).collect())
    }

    fn table_exists(&mut self, name: &str) -> Result<bool> {
        // A linked collection has a foreign server of its name.
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {}) OR EXISTS (SELECT FROM pg_catalog.pg_foreign_server WHERE srvname = '{name}')",
            self.relation(name)
        );
        Ok(value(&mut *self.link, &sql)?.as_deref() == Some("t"))
    }

    fn not_made_by_us(&mut self, name: &str) -> Result<Option<String>> {
        let relation = self.relation(name);
        origin::doubt(&mut *self.link, &relation, name)
    }

    /// The privileges that `ALTER DEFAULT PRIVILEGES` gives on new tables.
    fn keep_to_ourselves(&mut self, table: &str) -> Result<()> {
        let sql = format!(
            "SELECT DISTINCT 'REVOKE ALL ON TABLE {} FROM ' || CASE WHEN x.grantee = '0' THEN 'PUBLIC' \
             ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(x.grantee)) END \
             FROM (SELECT c.relacl, c.relowner FROM {}) c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) x \
             WHERE x.grantee <> c.relowner",
            self.dialect.table(table).replace('\'', "''"),
            self.relation(table)
        );
        self.column(&sql)?.iter().try_for_each(|sql| self.execute(sql))
    }

    /// Checks the statistics themselves, not the time of the last ANALYZE, which a crash loses. `pg_stats` shows only
    /// columns that the user may read.
    fn unanalysed_table(&mut self, table: &str) -> Result<Option<String>> {
        let Some(oid) = self.found(table)? else { return Ok(None) };
        let sql = format!(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname), \
             c.reltuples::int8, COALESCE(pg_catalog.pg_stat_get_live_tuples(c.oid), 0) \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.oid = '{oid}' \
             AND c.relkind IN ('r', 'm') AND pg_catalog.pg_relation_size(c.oid) > 0"
        );
        let found = rows(&mut *self.link, &sql)?;
        let Some([known, counted, now]) = found.first().map(Vec::as_slice) else { return Ok(None) };
        let number = |text: &str| text.parse::<i64>().unwrap_or(0).max(0) as u64;
        Ok(if known == "t" {
            outgrown(table, number(counted), number(now), FAR, &format!("ANALYZE {table}"))
        } else {
            Some(format!(
                "table {table} was never analysed: the planner guesses row counts, and plans may change during the run when \
                 autovacuum analyses the table; run ANALYZE {table} first"
            ))
        })
    }

    fn link(&mut self, collection: &Collection, server: RemoteServer, link: &Link) -> Result<()> {
        let statements = foreign::create(&self.dialect, &self.remotes, collection, server, link)?;
        let schema = self.dialect.quoted(self.dialect.schema.as_deref().unwrap_or("public"));
        foreign::install(&mut *self.link, link.way, &schema)?;
        statements.iter().try_for_each(|sql| self.execute(sql))
    }

    fn unlink(&mut self, name: &str) -> Result<()> {
        let sql = format!("SELECT srvname FROM pg_catalog.pg_foreign_server WHERE srvname = '{name}'");
        if self.column(&sql)?.is_empty() {
            return Ok(());
        }
        foreign::remove(&self.dialect, name).iter().try_for_each(|sql| self.execute(sql))
    }

    /// Removes the extensions that Kurabe installed, if nothing else depends on them.
    fn swept(&mut self) -> Result<()> {
        for sql in self.column(foreign::INSTALLED)? {
            match self.execute(&sql) {
                Err(error) if error.server_code() == Some(foreign::IN_USE) => {}
                done => done?,
            }
        }
        Ok(())
    }

    fn hold_statistics_of(&self, table: &str) -> Option<String> {
        Some(format!("ALTER TABLE {table} SET (autovacuum_enabled = off)"))
    }

    fn lock(&mut self, run: &str) -> Result<()> {
        let name = application_name(run);
        // Before the lock, so that other runs can read the holder's name.
        let Self { link, holder, .. } = self;
        let (mut locking, lock) = if let Some(holder) = holder {
            holder.query("BEGIN", &mut Reply::new())?;
            let settings = format!(
                "SELECT pg_catalog.set_config('application_name', '{name}', true), pg_catalog.set_config(name, '0', true) \
                 FROM pg_catalog.pg_settings WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')"
            );
            holder.query(&settings, &mut Reply::new())?;
            (Some(holder), "pg_try_advisory_xact_lock")
        } else {
            link.query(&format!("SET application_name TO '{name}'"), &mut Reply::new())?;
            (None, "pg_try_advisory_lock")
        };
        let lock = format!("SELECT pg_catalog.{lock}({LOCK})");
        let holder_of_it = format!(
            "SELECT a.application_name, a.pid, a.usename, a.client_addr \
             FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a USING (pid) \
             WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 \
             AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) \
             AND (l.classid::int8 << 32 | l.objid::int8) = {LOCK}"
        );
        let mut found = Vec::new();
        let taken = try_lock(|| {
            let taken = match &mut locking {
                Some(holder) => value(&mut ***holder, &lock)?,
                None => value(&mut **link, &lock)?,
            };
            if taken.as_deref() == Some("t") {
                return Ok(true);
            }
            // Over the other connection: a transaction sees the sessions as they were when it first asked.
            found = rows(&mut **link, &holder_of_it)?.into_iter().next().unwrap_or_default();
            // A run may use one database through two targets.
            Ok(found.first() == Some(&name))
        })?;
        if taken {
            return Ok(());
        }
        let who = match found.as_slice() {
            [theirs, pid, user, address] => {
                let from = if address.is_empty() { "a Unix socket" } else { address };
                format!(" ('{theirs}', server process {pid}, user {user} from {from})")
            }
            _ => String::new(),
        };
        Err(Error::new(ErrorKind::InUse, format!("another run of Kurabe is using this database{who}"))
            .hint("wait for it to end, or use another database"))
    }
}

impl PostgresNamespace {
    /// A table of ours in the catalogue: what follows `FROM`, of a row `c` or none. Names of tables contain no quotes.
    fn relation(&self, name: &str) -> String {
        let schema = literal(self.dialect.schema.as_deref().unwrap_or_default());
        format!(
            "pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = {schema} AND c.relname = '{name}'"
        )
    }

    /// The number of a table that a user's statement names, by the user's own search path.
    fn found(&mut self, table: &str) -> Result<Option<String>> {
        self.execute("BEGIN")?;
        let sql = format!(
            "SELECT COALESCE(pg_catalog.to_regclass('\"{table}\"'), pg_catalog.to_regclass('{table}'))::pg_catalog.oid"
        );
        let found =
            self.execute("SET LOCAL search_path TO DEFAULT").and_then(|()| value(&mut *self.link, &sql));
        self.execute("ROLLBACK")?;
        Ok(found?.filter(|oid| !oid.is_empty()))
    }
}

impl Drop for PostgresNamespace {
    fn drop(&mut self) {
        // The lock ends with the transaction, or with the connection; Terminate makes the server end it at once.
        if let Some(holder) = &mut self.holder {
            let _ = holder.query("ROLLBACK", &mut Reply::new()).and_then(|()| holder.quit());
        }
        let _ = self.link.quit();
    }
}

/// Name of this process and the run, in printable ASCII and at most 63 characters.
fn application_name(run: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() && c != '\'' && c != '\\' { c } else { '_' };
    let run: String = run.chars().map(plain).collect();
    format!("kurabe {} {run}", std::process::id()).chars().take(63).collect()
}
