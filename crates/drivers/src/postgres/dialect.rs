//! The SQL of PostgreSQL.

use super::literals::LITERALS;
use crate::sql::{Dialect, on_conflict_do_update};
use kurabe_core::collection::FieldType;
use std::borrow::Cow;

/// Characters of the longest `varchar` (PostgreSQL manual, "Character Types").
const MAX_TEXT: u32 = 10_485_760;

pub(crate) fn dialect() -> Dialect {
    Dialect {
        engine: "PostgreSQL",
        words: &["postgres", "postgresql"],
        quote: '"',
        schema: None,
        operator,
        parameter: |number| format!("${number}"),
        literals: LITERALS,
        column_type,
        put: on_conflict_do_update,
        create_tail: Cow::Borrowed(""),
        clear: "TRUNCATE TABLE",
        analyse: Some("ANALYZE"),
        // The empty query; the protocol has no other ping.
        ping: "",
        begin: "BEGIN",
        commit: "COMMIT",
        rollback: "ROLLBACK",
        own: None,
        linked: Some(super::foreign::LINKED),
    }
}

/// There is no operator of `varchar` in `pg_catalog`, so that one of this type in another schema of the session's path, which
/// others may create, would be taken: it fits better than that of `text`.
fn operator(kind: FieldType, sign: &'static str) -> Cow<'static, str> {
    match kind {
        FieldType::Text { .. } => format!("OPERATOR(pg_catalog.{sign})").into(),
        _ => sign.into(),
    }
}

/// Text compares by bytes, as in the other engines, not by a language's rules.
fn column_type(kind: FieldType, _in_key: bool) -> Cow<'static, str> {
    match kind {
        FieldType::Text { max } if (1..=MAX_TEXT).contains(&max) => {
            format!("varchar({max}) COLLATE \"C\"").into()
        }
        FieldType::Text { .. } | FieldType::LongText => "text COLLATE \"C\"".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes => "bytea".into(),
        FieldType::Int => "bigint".into(),
        FieldType::Timestamp => "timestamptz".into(),
    }
}
