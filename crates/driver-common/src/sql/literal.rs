//! An engine's literals, and its text format of values in answers.
//!
//! A literal must have the same meaning under all server settings (`sql_mode`, `standard_conforming_strings`, …), and
//! no text may end it early. Each engine's rules are defined with its dialect.

use crate::prelude::*;
use crate::wire;
use std::fmt::Write as _;

/// Parses a field in text format and appends it to the reply's row.
pub type Read = fn(&[u8], &mut Reply) -> Result<()>;

/// An engine's literals.
#[derive(Clone, Copy, Debug)]
pub struct Literals {
    /// Appends a value as a literal: text, bytes, a whole number, a timestamp, or null. Text is for a field of a text
    /// type, bytes are for a field of bytes. What an engine writes as in the SQL standard it leaves to [`standard`].
    pub write: fn(&mut String, Value<'_>) -> Result<()>,
    /// The parser of a field of this type in an answer in text format; `None` if it needs none.
    pub read: fn(FieldType) -> Option<Read>,
}

/// The error of a value that a field of this type cannot have.
pub fn unfit(kind: FieldType, what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("a field of type {kind:?} was given {what}"))
}

/// Appends text in single quotes, with quotes doubled. Every engine accepts this if the text has no other special
/// characters.
pub fn quoted(out: &mut String, text: &str) {
    out.push('\'');
    for (n, piece) in text.split('\'').enumerate() {
        if n > 0 {
            out.push_str("''");
        }
        out.push_str(piece);
    }
    out.push('\'');
}

/// Appends bytes as hexadecimal digits.
pub fn hex(out: &mut String, bytes: &[u8]) {
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.extend(wire::hex(*byte).map(char::from));
    }
}

/// Appends bytes as `x'…'`, as in the SQL standard.
pub fn quoted_hex(out: &mut String, bytes: &[u8]) {
    out.push_str("x'");
    hex(out, bytes);
    out.push('\'');
}

/// Appends a value as in the SQL standard, and a timestamp as a number of microseconds since 1970.
pub fn standard(out: &mut String, value: Value<'_>) -> Result<()> {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Text(text) => quoted(out, text),
        Value::Bytes(bytes) => quoted_hex(out, bytes),
        Value::Bool(truth) => out.push_str(if truth { "TRUE" } else { "FALSE" }),
        Value::Int(n) | Value::Time(n) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{n}");
        }
    }
    Ok(())
}

/// Parses a whole number.
///
/// # Errors
/// [`Protocol`](ErrorKind::Protocol) if it is invalid.
pub fn read_int(text: &[u8], out: &mut Reply) -> Result<()> {
    number(text).map(|number| out.push_int(number))
}

/// Reads a timestamp that is stored as a number of microseconds.
pub fn read_micros(text: &[u8], out: &mut Reply) -> Result<()> {
    number(text).map(|micros| out.push_time(micros))
}

fn number(text: &[u8]) -> Result<i64> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::new(ErrorKind::Protocol, "the server sent an invalid whole number"))
}

/// Parses the rows of `raw`, whose fields are all in text format, and appends them to `out`.
pub fn read_rows(raw: &Reply, readers: &[Option<Read>], out: &mut Reply) -> Result<()> {
    if raw.rows() > 0 && raw.width() != readers.len() {
        let message = format!("rows have {} fields, expected {}", raw.width(), readers.len());
        return Err(Error::new(ErrorKind::Protocol, message));
    }
    for row in 0..raw.rows() {
        for (field, reader) in readers.iter().enumerate() {
            match (raw.field_bytes(row, field), reader) {
                (None, _) => out.push_null(),
                (Some(bytes), None) => out.push_bytes(bytes),
                (Some(bytes), Some(read)) => read(bytes, out)?,
            }
        }
        out.end_row();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quoted_text_does_not_end_early(text in any::<String>()) {
            let mut out = String::new();
            quoted(&mut out, &text);
            let inside = &out[1..out.len() - 1];
            prop_assert_eq!(inside.replace("''", "").matches('\'').count(), 0);
            prop_assert_eq!(inside.replace("''", "'"), text);
        }
    }
}
