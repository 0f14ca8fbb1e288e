//! Firebird's part of the ownership rules. A claim is a variable of the connection's, which the monitoring tables show to
//! others and which ends with the connection.

use crate::connection::let_go;
use crate::dialect::{DIALECT, set_statistics};
use crate::{Config, FirebirdLink};
use kurabe_driver_common::ownership::holder;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{Dialect, SqlNamespaceOps};
use kurabe_driver_common::wire::link::{Query, rows, try_lock};
use std::time::Duration;

pub(crate) struct FirebirdNamespace {
    pub(crate) link: FirebirdLink,
    pub(crate) config: Config,
}

/// How long a table's end waits for connections that have just been closed.
const TRIES: u32 = 50;

impl SqlNamespaceOps for FirebirdNamespace {
    fn dialect(&self) -> &Dialect {
        &DIALECT
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        let analyse = DIALECT.analyse.and_then(|analyse| sql.strip_prefix(analyse));
        let analyse = analyse.map(|table| set_statistics(table.trim().trim_matches('"')));
        let sql = analyse.as_deref().unwrap_or(sql);
        for _ in 0..TRIES {
            match self.link.query(sql, &mut Reply::new()) {
                Err(error) if error.to_string().contains("is in use") => let_go(&self.config),
                done => return done,
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.link.query(sql, &mut Reply::new())
    }

    fn column(&mut self, sql: &str) -> Result<Vec<String>> {
        // A transaction sees the monitoring tables as they were when it first looked.
        self.link.query(DIALECT.commit, &mut Reply::new())?;
        Ok(rows(&mut self.link, sql)?.into_iter().filter_map(|row| row.into_iter().next()).collect())
    }

    fn table_exists(&mut self, name: &str) -> Result<bool> {
        // Names are ours: they hold no quotes.
        let sql = format!("SELECT 1 FROM RDB$RELATIONS WHERE RDB$RELATION_NAME = '{name}'");
        Ok(!self.column(&sql)?.is_empty())
    }

    /// Writes the name down and then looks for another: of two that come at once at least one finds the other.
    fn lock(&mut self, run: &str) -> Result<()> {
        let ours = holder(run).replace('\'', "_");
        let set = |value: &str| {
            format!("SELECT RDB$SET_CONTEXT('USER_SESSION', 'KURABE', {value}) FROM RDB$DATABASE")
        };
        let others = format!(
            "SELECT MON$VARIABLE_VALUE FROM MON$CONTEXT_VARIABLES WHERE MON$VARIABLE_NAME = 'KURABE' \
             AND MON$ATTACHMENT_ID <> CURRENT_CONNECTION AND MON$VARIABLE_VALUE <> '{ours}'"
        );
        let mut by = None;
        let taken = try_lock(|| {
            self.column(&set(&format!("'{ours}'")))?;
            by = self.column(&others)?.into_iter().next();
            if by.is_some() {
                self.column(&set("NULL"))?;
            }
            Ok(by.is_none())
        })?;
        if taken {
            return Ok(());
        }
        let message = format!("another run of Kurabe is using this database ({})", by.unwrap_or_default());
        Err(Error::new(ErrorKind::InUse, message).hint("wait for it to end, or use another database"))
    }
}
