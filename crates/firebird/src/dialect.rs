//! The SQL of Firebird 3.

use kurabe_core::collection::Field;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{Dialect, Literals, OwnStatements};
use kurabe_driver_common::sql::{
    hex, insert, joined, plain_operator, quoted, read_int, read_micros, standard,
};
use std::borrow::Cow;

/// The maximum length of a text in characters, and of bytes, that is stored in the row, which has at most 64 KiB.
const IN_ROW: u32 = 4_000;
/// The maximum length of a key's field in bytes: an index entry has at most a quarter of a page, which has 8 KiB by default.
const IN_KEY: u32 = 1_000;
/// The maximum number of rows of one statement, which has at most 256 contexts.
pub(crate) const MAX_ROWS: usize = 250;
/// The maximum length of a literal in bytes. A longer value is written as several.
const LITERAL: usize = 16_000;

pub(crate) static DIALECT: Dialect = Dialect {
    engine: "Firebird",
    words: &["firebird"],
    quote: '"',
    schema: None,
    operator: plain_operator,
    parameter: |_| "?".to_owned(),
    literals: Literals {
        write: |out, value| match value {
            Value::Text(value) => text(out, value),
            Value::Bytes(value) => bytes(out, value),
            _ => standard(out, value),
        },
        read: |kind| match kind {
            FieldType::Int => Some(read_int),
            FieldType::Timestamp => Some(read_micros),
            _ => None,
        },
    },
    column_type,
    put,
    create_tail: Cow::Borrowed(""),
    clear: "DELETE FROM",
    analyse: None,
    ping: "SELECT 1 FROM RDB$DATABASE",
    begin: "SET TRANSACTION READ COMMITTED",
    commit: "COMMIT",
    rollback: "ROLLBACK",
    own: Some(OwnStatements {
        drop_table,
        create_tail: |_, _| String::new(),
        rows_by_array: false,
        rows_by_select: Some((" FROM RDB$DATABASE", casts)),
        longest_name: 31,
    }),
    linked: None,
};

/// Every collation pads text with spaces before it compares. `OCTETS` compares bytes, and pads with zeros.
fn column_type(kind: FieldType, in_key: bool) -> Cow<'static, str> {
    let octets = |bytes: u32| format!("VARCHAR({bytes}) CHARACTER SET OCTETS").into();
    match kind {
        // Microseconds since 1970: the resolution of TIMESTAMP is 100 µs.
        FieldType::Int | FieldType::Timestamp => "BIGINT".into(),
        FieldType::Text { max } if in_key => octets(max.saturating_mul(4).clamp(1, IN_KEY)),
        FieldType::Bytes { max } if in_key => octets(max.clamp(1, IN_KEY)),
        _ if in_key => octets(IN_KEY),
        FieldType::Text { max: max @ 1..=IN_ROW } => format!("VARCHAR({max}) CHARACTER SET UTF8").into(),
        FieldType::Bytes { max: max @ 1..=IN_ROW } => octets(max),
        FieldType::Text { .. } | FieldType::LongText => "BLOB SUB_TYPE TEXT CHARACTER SET UTF8".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes => "BLOB SUB_TYPE BINARY".into(),
    }
}

fn put(d: &Dialect, collection: &Collection) -> Result<String> {
    let key = joined(collection, &collection.key, ", ", |_, name| d.quoted(name))?;
    Ok(format!("UPDATE OR {} MATCHING ({key})", insert(d, collection, 1)?))
}

/// A statement has at most 64 KiB of declared parameters. A BLOB counts 8 bytes. Firebird stores a dot for each byte
/// beyond ASCII of a binary BLOB as text: it must be a BLOB of the column's character set.
fn casts(collection: &Collection, rows: usize) -> Vec<Cow<'static, str>> {
    let column = |(at, field): (usize, &Field)| column_type(field.kind, collection.is_indexed(at));
    let mut columns: Vec<_> = collection.fields.iter().enumerate().map(column).collect();
    let length = |column: &Cow<'_, str>| column.split(['(', ')']).find_map(|n| n.parse().ok()).unwrap_or(0);
    if rows * columns.iter().map(|column| 16 + 4 * length(column)).sum::<usize>() > 60_000 {
        for column in &mut columns {
            if let Some((_, charset)) = column.strip_prefix("VARCHAR(").and_then(|rest| rest.split_once(')'))
            {
                *column = format!("BLOB SUB_TYPE TEXT{charset}").into();
            }
        }
    }
    columns
}

/// The names are Kurabe's and contain no quotes.
fn drop_table(d: &Dialect, name: &str) -> String {
    let name = d.name(name);
    format!(
        "EXECUTE BLOCK AS BEGIN IF (EXISTS (SELECT 1 FROM RDB$RELATIONS WHERE RDB$RELATION_NAME = '{name}')) THEN \
         EXECUTE STATEMENT 'DROP TABLE \"{name}\"'; END"
    )
}

fn text(out: &mut String, text: &str) -> Result<()> {
    if text.len() > LITERAL || text.contains('\0') {
        return bytes(out, text.as_bytes());
    }
    // In another character set it would be compared with trailing spaces.
    out.push_str("_OCTETS ");
    quoted(out, text);
    Ok(())
}

fn bytes(out: &mut String, bytes: &[u8]) -> Result<()> {
    if bytes.len() > 4_000_000 {
        return Err(Error::unsupported("a statement of Firebird has at most 10 MB").hint("bind such values"));
    }
    let several = bytes.len() > LITERAL;
    out.push_str(if several { "CAST('' AS BLOB SUB_TYPE BINARY)" } else { "" });
    for piece in bytes.chunks(LITERAL).chain(bytes.is_empty().then_some(bytes)) {
        out.push_str(if several { " || x'" } else { "x'" });
        hex(out, piece);
        out.push('\'');
    }
    Ok(())
}
