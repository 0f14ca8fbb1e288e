//! Parameters and rows, as SQLite has them.

use crate::prelude::*;
use rusqlite::Row;
use rusqlite::types::ValueRef;

/// Converts a parameter. In SQLite, text and bytes never compare equal, so the field's type decides, not the
/// parameter's.
pub(super) fn bound(value: Value<'_>, kind: FieldType) -> ValueRef<'_> {
    let of_kind = |bytes| match kind {
        FieldType::Text { .. } | FieldType::LongText => ValueRef::Text(bytes),
        _ => ValueRef::Blob(bytes),
    };
    match value {
        Value::Null => ValueRef::Null,
        Value::Int(n) | Value::Time(n) => ValueRef::Integer(n),
        Value::Bool(truth) => ValueRef::Integer(i64::from(truth)),
        Value::Text(text) => of_kind(text.as_bytes()),
        Value::Bytes(bytes) => of_kind(bytes),
    }
}

/// Appends a row. Without declared types, a floating-point number becomes text.
pub(super) fn push_row(
    row: &Row<'_>,
    columns: usize,
    column_types: Option<&[FieldType]>,
    out: &mut Reply,
) -> rusqlite::Result<()> {
    for i in 0..columns {
        let kind = column_types.and_then(|kinds| kinds.get(i));
        match row.get_ref(i)? {
            ValueRef::Null => out.push_null(),
            ValueRef::Integer(micros) if kind == Some(&FieldType::Timestamp) => out.push_time(micros),
            ValueRef::Integer(n) => out.push_int(n),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => out.push_bytes(bytes),
            ValueRef::Real(n) if kind.is_none() => out.push_bytes(n.to_string().as_bytes()),
            ValueRef::Real(_) => {
                return Err(rusqlite::Error::InvalidColumnType(
                    i,
                    String::new(),
                    rusqlite::types::Type::Real,
                ));
            }
        }
    }
    if columns > 0 {
        out.end_row();
    }
    Ok(())
}
