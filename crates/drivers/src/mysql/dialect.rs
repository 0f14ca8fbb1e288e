//! The SQL of MySQL and MariaDB.

use super::engine::StorageEngine;
use super::literals::LITERALS;
use crate::prelude::*;
use crate::sql::{Dialect, insert, joined};
use crate::wire::link::{Query, rows};
use std::borrow::Cow;

/// Characters of the longest `varchar`: a row's columns share 65,535 bytes, and a character may take 4.
const MAX_TEXT: u32 = 12_000;

/// Bytes of the longest `varbinary`, for the same reason.
const MAX_BYTES: u32 = 48_000;

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
        parameter: |_| "?".to_owned(),
        literals: LITERALS,
        column_type,
        put,
        // Text compares by bytes, as in the other engines, not by collation weights.
        create_tail: format!("{engine} DEFAULT CHARSET=utf8mb4 COLLATE={collation}").into(),
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

pub(super) fn column_type(kind: FieldType, in_key: bool) -> Cow<'static, str> {
    match kind {
        FieldType::Text { max } if max <= MAX_TEXT => format!("varchar({max})").into(),
        FieldType::Bytes { max } if max <= MAX_BYTES => format!("varbinary({max})").into(),
        // An index entry holds at most 3,072 bytes.
        FieldType::Text { .. } | FieldType::LongText if in_key => "varchar(700)".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes if in_key => "varbinary(3000)".into(),
        FieldType::Text { .. } | FieldType::LongText => "longtext".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes => "longblob".into(),
        FieldType::Int => "bigint".into(),
        FieldType::Timestamp => "datetime(6)".into(),
    }
}

/// `INSERT … ON DUPLICATE KEY UPDATE …`, in the form that both engines support.
fn put(d: &Dialect, collection: &Collection) -> Result<String> {
    let rest = collection.rest();
    let fields = if rest.is_empty() { &collection.key } else { &rest };
    let set = joined(collection, fields, ", ", |_, name| format!("{0} = VALUES({0})", d.quoted(name)))?;
    Ok(format!("{} ON DUPLICATE KEY UPDATE {set}", insert(d, collection, 1)?))
}
