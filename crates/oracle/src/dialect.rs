//! The SQL of Oracle Database 12.2 and later; nothing requires 23ai.

use super::config::{Config, Lob};
use super::literals::LITERALS;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{Dialect, OwnStatements, joined, plain_operator};
use std::borrow::Cow;

/// Characters of the longest text in a `VARCHAR2`, which has as many bytes with `MAX_STRING_SIZE=STANDARD` (SQL Language Reference, "Data Types").
const MAX_TEXT: u32 = 4_000;

/// Bytes of the longest `RAW` with `MAX_STRING_SIZE=STANDARD`.
const MAX_BYTES: u32 = 2_000;

pub(crate) fn dialect(config: &Config) -> Dialect {
    Dialect {
        engine: "Oracle",
        words: &["oracle"],
        quote: '"',
        schema: None,
        operator: plain_operator,
        parameter: |number| format!(":{number}"),
        literals: LITERALS,
        column_type: if config.text_as_clob { column_type_clob } else { column_type },
        put: merge,
        create_tail: Cow::Borrowed(""),
        clear: "TRUNCATE TABLE",
        // Would be a PL/SQL call, which could not be tested without a server. Oracle gathers statistics every night.
        analyse: None,
        ping: "SELECT 1 FROM DUAL",
        // Sessions do not send this, because the first change begins a transaction implicitly.
        begin: "SET TRANSACTION READ WRITE",
        commit: "COMMIT",
        rollback: "ROLLBACK",
        own: Some(OwnStatements {
            drop_table,
            create_tail: if config.lob == Lob::OutOfRow { lobs_out_of_row } else { lobs_in_row },
            rows_by_array: true,
            rows_by_select: None,
            // From Oracle 12.2 on.
            longest_name: 128,
        }),
        linked: None,
    }
}

/// Lengths of text are in characters, as in the other engines. A `RAW` holds only 2,000 bytes, so longer values are in
/// a `BLOB`.
fn column_type(kind: FieldType, in_key: bool) -> Cow<'static, str> {
    match kind {
        FieldType::Text { max } if (1..=MAX_TEXT).contains(&max) => format!("VARCHAR2({max} CHAR)").into(),
        FieldType::Bytes { max } if (1..=MAX_BYTES).contains(&max) => format!("RAW({max})").into(),
        // LOBs cannot be indexed, and an index entry must fit into a block (6,398 bytes with 8 KB blocks).
        FieldType::Text { .. } | FieldType::LongText if in_key => "VARCHAR2(700 CHAR)".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes if in_key => "RAW(2000)".into(),
        FieldType::Text { .. } | FieldType::LongText => "CLOB".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes => "BLOB".into(),
        FieldType::Int => "NUMBER(19)".into(),
        // Without a zone; values are in UTC.
        FieldType::Timestamp => "TIMESTAMP(6)".into(),
    }
}

/// As [`column_type`], with all text outside keys in a `CLOB`.
fn column_type_clob(kind: FieldType, in_key: bool) -> Cow<'static, str> {
    match kind {
        FieldType::Text { .. } if !in_key => "CLOB".into(),
        _ => column_type(kind, in_key),
    }
}

/// Positions of the fields whose columns are LOBs.
pub(crate) fn lobs(dialect: &Dialect, collection: &Collection) -> Vec<usize> {
    let is_lob = |(position, field): (usize, &kurabe_core::collection::Field)| {
        let column = (dialect.column_type)(field.kind, collection.is_indexed(position));
        (column == "CLOB" || column == "BLOB").then_some(position)
    };
    collection.fields.iter().enumerate().filter_map(is_lob).collect()
}

fn lobs_in_row(dialect: &Dialect, collection: &Collection) -> String {
    lob_storage(dialect, collection, "ENABLE STORAGE IN ROW")
}

fn lobs_out_of_row(dialect: &Dialect, collection: &Collection) -> String {
    lob_storage(dialect, collection, "DISABLE STORAGE IN ROW")
}

/// ` LOB ("a", "b") STORE AS (…)`. The server's setting `db_securefile` decides whether it is a `SecureFile`.
fn lob_storage(dialect: &Dialect, collection: &Collection, how: &str) -> String {
    let name = |position| collection.fields.get::<usize>(position).map(|field| dialect.quoted(field.name));
    let names: Vec<String> = lobs(dialect, collection).into_iter().filter_map(name).collect();
    if names.is_empty() { String::new() } else { format!(" LOB ({}) STORE AS ({how})", names.join(", ")) }
}

/// Drops a table if it exists. `IF EXISTS` requires 23ai, so a block ignores ORA-00942 instead. PURGE bypasses the
/// recycle bin, where the table would keep its space.
fn drop_table(dialect: &Dialect, name: &str) -> String {
    format!(
        "BEGIN EXECUTE IMMEDIATE 'DROP TABLE {} PURGE'; EXCEPTION WHEN OTHERS THEN IF SQLCODE <> -942 THEN RAISE; END IF; END;",
        dialect.quoted(name).replace('\'', "''")
    )
}

/// The upsert of tables without LOBs. Each parameter occurs once, in the order of the fields.
fn merge(d: &Dialect, collection: &Collection) -> Result<String> {
    if collection.key.is_empty() || collection.fields.is_empty() {
        let message = format!("collection {} has no key", collection.name);
        return Err(Error::new(ErrorKind::Internal, message));
    }
    let all: Vec<usize> = (0..collection.fields.len()).collect();
    let source =
        joined(collection, &all, ", ", |n, name| format!("{} AS {}", (d.parameter)(n + 1), d.quoted(name)))?;
    let same = |_, name: &str| format!("t.{0} = s.{0}", d.quoted(name));
    let on = joined(collection, &collection.key, " AND ", same)?;
    let rest = collection.rest();
    let matched = if rest.is_empty() {
        String::new()
    } else {
        format!(" WHEN MATCHED THEN UPDATE SET {}", joined(collection, &rest, ", ", same)?)
    };
    let names = joined(collection, &all, ", ", |_, name| d.quoted(name))?;
    let values = joined(collection, &all, ", ", |_, name| format!("s.{}", d.quoted(name)))?;
    Ok(format!(
        "MERGE INTO {} t USING (SELECT {source} FROM DUAL) s ON ({on}){matched} WHEN NOT MATCHED THEN INSERT ({names}) \
         VALUES ({values})",
        d.quoted(&collection.name)
    ))
}
