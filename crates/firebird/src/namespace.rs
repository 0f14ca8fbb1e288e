//! The namespace.

use crate::claim::{Claim, TABLE};
use crate::connection::{Firebird, release_all};
use crate::dialect::DIALECT;
use crate::link::FirebirdLink;
use kurabe_driver_common::ownership::MARKER;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{Dialect, SqlNamespaceOps};
use kurabe_driver_common::wire::link::{Query, rows};

pub(crate) struct FirebirdNamespace {
    link: FirebirdLink,
    to: Firebird,
    claim: Option<Claim>,
}

impl FirebirdNamespace {
    pub(crate) fn new(link: FirebirdLink, to: Firebird) -> Self {
        Self { link, to, claim: None }
    }
}

impl SqlNamespaceOps for FirebirdNamespace {
    fn dialect(&self) -> &Dialect {
        &DIALECT
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        let mut done = self.link.query(sql, &mut Reply::new());
        for _ in 0..9 {
            if done.as_ref().is_err_and(|error| error.to_string().contains("is in use")) {
                release_all();
                done = self.link.query(sql, &mut Reply::new());
            }
        }
        done
    }

    fn column(&mut self, sql: &str) -> Result<Vec<String>> {
        Ok(rows(&mut self.link, sql)?.into_iter().filter_map(|row| row.into_iter().next()).collect())
    }

    fn table_exists(&mut self, name: &str) -> Result<bool> {
        let sql = format!("SELECT 1 FROM RDB$RELATIONS WHERE RDB$RELATION_NAME = '{}'", DIALECT.name(name));
        Ok(!self.column(&sql)?.is_empty())
    }

    fn kept(&self) -> &'static [&'static str] {
        &[TABLE]
    }

    fn lock(&mut self, run: &str) -> Result<()> {
        if self.claim.is_none() {
            self.claim = Some(Claim::take(&self.to, run)?);
        }
        Ok(())
    }
}

impl Drop for FirebirdNamespace {
    fn drop(&mut self) {
        // The ownership table remains as long as there is anything of ours; the claim's table goes with it.
        if let Some(claim) = self.claim.take()
            && self.table_exists(MARKER) == Ok(false)
        {
            claim.remove();
        }
    }
}
