//! The SQL of Firebird 3.

use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{
    Dialect, Literals, OwnStatements, Placeholder, digits, hex, quoted, read_int,
};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Characters of the longest text, and bytes of the longest bytes, that lie in the row: a row has at most 64 KiB.
const MOST_IN_ROW: u32 = 4_000;

/// Bytes of the longest field of a key: an index entry has at most a quarter of a page, which is 8 KiB by default.
const MOST_IN_KEY: u32 = 1_000;

/// Bytes of the parameters of a statement, by the types that they are declared of (64 KiB).
const MOST_DECLARED: usize = 60_000;

/// The most rows of one statement: it has at most 256 contexts, one for each `INSERT`.
pub(crate) const MOST_ROWS: usize = 250;

/// Characters of one literal; a longer value is written as several.
const MOST_LITERAL: usize = 16_000;

pub(crate) static DIALECT: Dialect = Dialect {
    engine: "Firebird",
    words: &["firebird"],
    quote: '"',
    placeholder: Placeholder::Question,
    literals: Literals { text, bytes, int: digits, time: |out, micros| Ok(digits(out, micros)), read },
    column_type,
    // Never asked for: `own.put` stands in its place.
    upsert: |_, _| String::new(),
    create_tail: Cow::Borrowed(""),
    clear: "DELETE FROM",
    // There is no such statement: the namespace executes `set_statistics` in its place.
    analyse: Some("SET STATISTICS INDEX"),
    ping: "SELECT 1 FROM RDB$DATABASE",
    begin: "SET TRANSACTION READ COMMITTED",
    commit: "COMMIT",
    rollback: "ROLLBACK",
    own: Some(OwnStatements {
        put,
        drop_table,
        create_tail: |_, _| String::new(),
        rows_by_array: false,
        insert_rows: Some(insert_rows),
    }),
};

/// Every collation pads text with spaces before it compares. `OCTETS` compares bytes, and differs from other engines only
/// for text that ends with zero characters.
fn column_type(kind: FieldType, in_key: bool) -> Cow<'static, str> {
    let octets = |bytes: u32| format!("VARCHAR({bytes}) CHARACTER SET OCTETS").into();
    match kind {
        FieldType::Text { max } if in_key => octets(max.saturating_mul(4).clamp(1, MOST_IN_KEY)),
        FieldType::Bytes { max } if in_key => octets(max.clamp(1, MOST_IN_KEY)),
        FieldType::LongText | FieldType::LongBytes if in_key => octets(MOST_IN_KEY),
        FieldType::Text { max: max @ 1..=MOST_IN_ROW } => format!("VARCHAR({max}) CHARACTER SET UTF8").into(),
        FieldType::Bytes { max: max @ 1..=MOST_IN_ROW } => octets(max),
        FieldType::Text { .. } | FieldType::LongText => "BLOB SUB_TYPE TEXT CHARACTER SET UTF8".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes => "BLOB SUB_TYPE BINARY".into(),
        // A TIMESTAMP counts ten-thousandths of a second, so that a timestamp is its microseconds since 1970.
        FieldType::Int | FieldType::Timestamp => "BIGINT".into(),
    }
}

/// The bytes that a parameter of this type takes in a request's declaration.
fn declared(column: &str) -> usize {
    let length = column.strip_prefix("VARCHAR(").and_then(|rest| rest.split_once(')'));
    let bytes = length.and_then(|(length, _)| length.parse::<usize>().ok()).unwrap_or(8);
    if column.starts_with("VARCHAR") && column.ends_with("UTF8") { 4 * bytes + 8 } else { bytes + 8 }
}

fn put(d: &Dialect, collection: &Collection) -> Result<String> {
    let all: Vec<usize> = (0..collection.fields.len()).collect();
    let places = vec!["?"; all.len()].join(", ");
    let places = if d.placeholder == Placeholder::Question { places } else { gaps(d, 1, all.len()) };
    let (table, fields, key) =
        (d.quoted(&collection.name), names(d, collection, &all), names(d, collection, &collection.key));
    Ok(format!("UPDATE OR INSERT INTO {table} ({fields}) VALUES ({places}) MATCHING ({key})"))
}

/// `INSERT` takes one row: several are statements of one block, which is executed as a whole or not at all.
fn insert_rows(d: &Dialect, collection: &Collection, rows: usize) -> Result<String> {
    let all: Vec<usize> = (0..collection.fields.len()).collect();
    let (table, fields) = (d.quoted(&collection.name), names(d, collection, &all));
    let columns: Vec<Cow<'_, str>> = collection
        .fields
        .iter()
        .enumerate()
        .map(|(at, field)| column_type(field.kind, collection.is_indexed(at)))
        .collect();
    let fits = rows * columns.iter().map(|column| declared(column)).sum::<usize>() <= MOST_DECLARED;
    let (mut taken, mut inserts) = (Vec::new(), String::new());
    for row in 0..rows {
        let first = row * all.len() + 1;
        let values = if d.placeholder == Placeholder::Question {
            for (at, column) in columns.iter().enumerate() {
                // As a BLOB a value is 8 bytes of the declaration.
                let kind =
                    if fits || !column.starts_with("VARCHAR") { column } else { "BLOB SUB_TYPE BINARY" };
                taken.push(format!("p{} {kind} = ?", first + at));
            }
            (first..first + all.len()).map(|number| format!(":p{number}")).collect::<Vec<_>>().join(", ")
        } else {
            gaps(d, first, all.len())
        };
        // Writing to a String cannot fail.
        let _ = write!(inserts, "INSERT INTO {table} ({fields}) VALUES ({values}); n = n + ROW_COUNT; ");
    }
    let taken = if taken.is_empty() { String::new() } else { format!("({}) ", taken.join(", ")) };
    Ok(format!("EXECUTE BLOCK {taken}RETURNS (n BIGINT) AS BEGIN n = 0; {inserts}SUSPEND; END"))
}

/// Places for literals.
fn gaps(d: &Dialect, first: usize, count: usize) -> String {
    let mut out = String::new();
    for number in first..first + count {
        out += if number == first { "" } else { ", " };
        d.parameter(&mut out, number);
    }
    out
}

fn names(d: &Dialect, collection: &Collection, fields: &[usize]) -> String {
    let names = fields.iter().filter_map(|at| collection.fields.get(*at)).map(|field| d.quoted(field.name));
    names.collect::<Vec<_>>().join(", ")
}

/// Names are ours: they hold no quotes.
fn drop_table(d: &Dialect, name: &str) -> String {
    let table = d.quoted(name);
    format!(
        "EXECUTE BLOCK AS BEGIN IF (EXISTS (SELECT 1 FROM RDB$RELATIONS WHERE RDB$RELATION_NAME = '{name}')) THEN \
         EXECUTE STATEMENT 'DROP TABLE {table}'; END"
    )
}

/// Has the server count again how selective each index of a table is, which it does else only when the index is made.
pub(crate) fn set_statistics(table: &str) -> String {
    format!(
        "EXECUTE BLOCK AS DECLARE i VARCHAR(31); BEGIN FOR SELECT TRIM(RDB$INDEX_NAME) FROM RDB$INDICES WHERE \
         RDB$RELATION_NAME = '{table}' INTO :i DO EXECUTE STATEMENT 'SET STATISTICS INDEX \"' || i || '\"'; END"
    )
}

fn text(out: &mut String, text: &str) -> Result<()> {
    if text.len() > MOST_LITERAL || text.contains('\0') {
        return bytes(out, text.as_bytes());
    }
    // Without its character set the literal would be compared as text is, with spaces behind it.
    out.push_str("_OCTETS ");
    quoted(out, text);
    Ok(())
}

fn bytes(out: &mut String, bytes: &[u8]) -> Result<()> {
    let several = bytes.len() > MOST_LITERAL;
    out.push_str(if several { "CAST('' AS BLOB SUB_TYPE BINARY)" } else { "" });
    for piece in bytes.chunks(MOST_LITERAL).chain(bytes.is_empty().then_some(bytes)) {
        out.push_str(if several { " || x'" } else { "x'" });
        hex(out, piece);
        out.push('\'');
    }
    Ok(())
}

fn read(kind: FieldType) -> Option<kurabe_driver_common::sql::Read> {
    match kind {
        FieldType::Int => Some(read_int),
        FieldType::Timestamp => Some(|text, out| {
            let mut number = Reply::new();
            read_int(text, &mut number)?;
            number.end_row();
            out.push_time(number.field_int(0, 0).unwrap_or_default());
            Ok(())
        }),
        _ => None,
    }
}
