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

    fn not_made_by_us(&mut self, name: &str) -> Result<Option<String>> {
        let table = DIALECT.name(name);
        let sql = format!(
            "SELECT TRIM(RDB$OWNER_NAME), IIF(TRIM(RDB$OWNER_NAME) = CURRENT_USER, 1, 0), IIF(RDB$VIEW_BLR IS NULL AND \
             RDB$EXTERNAL_FILE IS NULL, 0, 1), (SELECT COUNT(*) FROM RDB$TRIGGERS t WHERE t.RDB$RELATION_NAME = r.RDB$RELATION_NAME \
             AND COALESCE(t.RDB$SYSTEM_FLAG, 0) = 0) FROM RDB$RELATIONS r WHERE RDB$RELATION_NAME = '{table}'"
        );
        let Some(row) = rows(&mut self.link, &sql)?.into_iter().next() else { return Ok(None) };
        let field = |at: usize| row.get(at).map_or("", String::as_str);
        Ok(match (field(1), field(2), field(3)) {
            ("0", ..) => Some(format!("it belongs to user {}", field(0))),
            (_, "1", _) => Some("it is a view or an external table".to_owned()),
            (_, _, "0") => None,
            // The measured table is removed with its triggers.
            _ => (name == MARKER).then(|| "it has a trigger".to_owned()),
        })
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
