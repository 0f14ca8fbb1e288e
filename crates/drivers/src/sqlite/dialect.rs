//! The SQL of SQLite.

use super::attach;
use super::literals::LITERALS;
use crate::sql::{Dialect, on_conflict_do_update, plain_operator};
use kurabe_core::collection::FieldType;
use std::borrow::Cow;

/// SQLite's SQL. Text compares by bytes by default.
pub static DIALECT: Dialect = Dialect {
    engine: "SQLite",
    words: &["sqlite"],
    quote: '"',
    schema: None,
    operator: plain_operator,
    parameter: |_| "?".to_owned(),
    literals: LITERALS,
    column_type,
    put: on_conflict_do_update,
    create_tail: Cow::Borrowed(""),
    clear: "DELETE FROM",
    analyse: Some("ANALYZE"),
    ping: "SELECT 1",
    // Takes the write lock at once, and waits for it. Otherwise a transaction that reads first and writes later would
    // fail if another one wrote in between.
    begin: "BEGIN IMMEDIATE",
    commit: "COMMIT",
    rollback: "ROLLBACK",
    own: None,
    linked: Some(attach::LINKED),
};

fn column_type(kind: FieldType, _: bool) -> Cow<'static, str> {
    match kind {
        // SQLite does not enforce the length.
        FieldType::Text { max } => format!("VARCHAR({max})").into(),
        FieldType::LongText => "TEXT".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes => "BLOB".into(),
        // Microseconds since 1970: SQLite has no timestamp type.
        FieldType::Int | FieldType::Timestamp => "INTEGER".into(),
    }
}
