//! The SQL of MySQL and MariaDB.

use super::engine::StorageEngine;
use super::literals::LITERALS;
use super::types::column_type;
use crate::prelude::*;
use crate::sql::{Dialect, insert, joined, plain_operator};
use crate::wire::link::{Query, rows};
use kurabe_core::collection::TABLE_COMMENT;

/// Collations that compare text by bytes, including trailing spaces: MariaDB since 10.2, MySQL since 8.0.17.
const BY_BYTES: [&str; 2] = ["utf8mb4_nopad_bin", "utf8mb4_0900_bin"];

/// Binary collation of every version; it ignores trailing spaces.
const BY_BYTES_BUT_SPACES: &str = "utf8mb4_bin";

/// Finds the first of [`BY_BYTES`] that the server has.
pub(crate) fn collation(link: &mut dyn Query) -> Result<Option<&'static str>> {
    let wanted = BY_BYTES.map(|name| format!("'{name}'")).join(", ");
    let there = rows(link, &format!("SHOW COLLATION WHERE `Collation` IN ({wanted})"))?;
    Ok(BY_BYTES
        .into_iter()
        .find(|name| there.iter().any(|row| row.first().is_some_and(|first| first == name))))
}

/// The dialect for tables with this storage engine and collation. Without a collation, text compares by bytes except
/// for trailing spaces.
pub(crate) fn dialect(engine: Option<&StorageEngine>, collation: Option<&'static str>) -> Dialect {
    let engine = engine.map(StorageEngine::create_tail).unwrap_or_default();
    let collation = collation.unwrap_or(BY_BYTES_BUT_SPACES);
    Dialect {
        engine: "MySQL",
        words: &["mysql", "mariadb"],
        quote: '`',
        schema: None,
        operator: plain_operator,
        parameter: |_| "?".to_owned(),
        literals: LITERALS,
        column_type,
        put,
        // Text compares by bytes, as in the other engines, not by collation weights.
        create_tail: format!(
            "{engine} COMMENT='{TABLE_COMMENT}' DEFAULT CHARSET=utf8mb4 COLLATE={collation}"
        )
        .into(),
        clear: "TRUNCATE TABLE",
        // LOCAL: not written to the binary log, because replicas need not analyse the table.
        analyse: Some("ANALYZE LOCAL TABLE"),
        ping: "DO 0",
        begin: "START TRANSACTION",
        commit: "COMMIT",
        rollback: "ROLLBACK",
        own: None,
        linked: Some(super::foreign::LINKED),
    }
}

/// `INSERT … ON DUPLICATE KEY UPDATE …`, in the form that both engines support.
fn put(d: &Dialect, collection: &Collection) -> Result<String> {
    let rest = collection.rest();
    let fields = if rest.is_empty() { &collection.key } else { &rest };
    let set = joined(collection, fields, ", ", |_, name| format!("{0} = VALUES({0})", d.quoted(name)))?;
    Ok(format!("{} ON DUPLICATE KEY UPDATE {set}", insert(d, collection, 1)?))
}
