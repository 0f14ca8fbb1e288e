//! The namespace. A claim is a variable of the connection. Other connections see it in the monitoring tables, if they have the
//! same user or that of an administrator. It ends with the connection.

use crate::FirebirdLink;
use crate::connection::release_all;
use crate::dialect::DIALECT;
use kurabe_driver_common::ownership::holder;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{Dialect, SqlNamespaceOps};
use kurabe_driver_common::wire::link::{Query, rows, try_lock};

pub(crate) struct FirebirdNamespace(pub(crate) FirebirdLink);

impl SqlNamespaceOps for FirebirdNamespace {
    fn dialect(&self) -> &Dialect {
        &DIALECT
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        let mut done = self.0.query(sql, &mut Reply::new());
        for _ in 0..9 {
            if done.as_ref().is_err_and(|error| error.to_string().contains("is in use")) {
                release_all();
                done = self.0.query(sql, &mut Reply::new());
            }
        }
        done
    }

    fn column(&mut self, sql: &str) -> Result<Vec<String>> {
        // The monitoring tables do not change within a transaction.
        self.0.query(DIALECT.commit, &mut Reply::new())?;
        Ok(rows(&mut self.0, sql)?.into_iter().filter_map(|row| row.into_iter().next()).collect())
    }

    fn table_exists(&mut self, name: &str) -> Result<bool> {
        let sql = format!("SELECT 1 FROM RDB$RELATIONS WHERE RDB$RELATION_NAME = '{}'", DIALECT.name(name));
        Ok(!self.column(&sql)?.is_empty())
    }

    /// Sets the claim and then searches for others: of two concurrent runs, at least one finds the other's.
    fn lock(&mut self, run: &str) -> Result<()> {
        let ours = holder(run).replace('\'', "_");
        let set =
            |v: &str| format!("SELECT RDB$SET_CONTEXT('USER_SESSION', 'KURABE', {v}) FROM RDB$DATABASE");
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
        let message = || format!("another run of Kurabe uses this database ({})", by.unwrap_or_default());
        if taken { Ok(()) } else { Err(Error::new(ErrorKind::InUse, message()).hint("wait for it to end")) }
    }
}
