//! Statements with literal values: an engine's literals, and its text format of values in answers.
//!
//! A literal must have the same meaning under all server settings (`sql_mode`, `standard_conforming_strings`, …), and
//! no text may end it early. Each engine's rules are defined with its dialect.

use super::dialect::{Dialect, GAP};
use super::shape::{Shape, shape};
use super::statement;
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

/// A statement with gaps for its values.
#[derive(Debug)]
pub struct Template {
    name: &'static str,
    /// The text around the gaps: one part more than gaps.
    parts: Vec<String>,
    shape: Shape,
    literals: Literals,
}

impl Template {
    /// The template of an operation.
    pub fn new(dialect: &Dialect, operation: &Operation) -> Result<Self> {
        let text = statement::text(&with_gaps(dialect), operation)?;
        Self::of(&text, shape(operation)?, operation.name(), dialect.literals)
    }

    /// The template of a statement from a dialect [`with_gaps`], with values in the order of its gaps.
    ///
    /// # Errors
    /// [`Internal`](ErrorKind::Internal) if the numbers of gaps and values differ.
    pub fn of(text: &str, shape: Shape, name: &'static str, literals: Literals) -> Result<Self> {
        let parts: Vec<String> = text.split(GAP).map(ToOwned::to_owned).collect();
        if parts.len() != shape.takes.len() + 1 {
            let message = format!("{name} has {} gaps for {} values", parts.len() - 1, shape.takes.len());
            return Err(Error::new(ErrorKind::Internal, message));
        }
        Ok(Self { name, parts, shape, literals })
    }

    /// The types of the result fields; empty if there are no rows.
    pub fn gives(&self) -> &[FieldType] {
        &self.shape.gives
    }

    /// Replaces `out` by the statement with these values.
    ///
    /// # Errors
    /// If the numbers of values and gaps differ, a value is not of its field's type, or the engine has no literal for
    /// it.
    pub fn fill(&self, values: &[Value<'_>], out: &mut String) -> Result<()> {
        crate::slots::check_parameters(self.name, self.shape.takes.len(), values.len())?;
        out.clear();
        out.push_str(self.parts.first().map_or("", String::as_str));
        for ((value, kind), part) in values.iter().zip(&self.shape.takes).zip(self.parts.iter().skip(1)) {
            self.literal(out, *value, *kind)?;
            out.push_str(part);
        }
        Ok(())
    }

    fn literal(&self, out: &mut String, value: Value<'_>, kind: FieldType) -> Result<()> {
        let is_text = matches!(kind, FieldType::Text { .. } | FieldType::LongText);
        let is_bytes = matches!(kind, FieldType::Bytes { .. } | FieldType::LongBytes);
        let fitting = match value {
            Value::Bytes(bytes) if is_text => Value::Text(
                std::str::from_utf8(bytes)
                    .map_err(|_| Error::usage("a field of text is given bytes that are not UTF-8"))?,
            ),
            Value::Text(text) if is_bytes => Value::Bytes(text.as_bytes()),
            Value::Int(_) if kind != FieldType::Int => return Err(unfit(kind, "a number")),
            Value::Time(_) if kind != FieldType::Timestamp => return Err(unfit(kind, "a timestamp")),
            Value::Bool(_) => return Err(unfit(kind, "a truth value")),
            Value::Text(_) | Value::Bytes(_) if !is_text && !is_bytes => {
                return Err(unfit(kind, "text or bytes"));
            }
            fitting => fitting,
        };
        (self.literals.write)(out, fitting)
    }

    /// The parser of each field of an answer; empty if no field needs one.
    pub fn readers(&self) -> Vec<Option<Read>> {
        let readers: Vec<_> = self.shape.gives.iter().map(|kind| (self.literals.read)(*kind)).collect();
        if readers.iter().all(Option::is_none) { Vec::new() } else { readers }
    }
}

/// The dialect with a gap for each value.
pub fn with_gaps(dialect: &Dialect) -> Dialect {
    Dialect { parameter: |_| GAP.to_string(), ..dialect.clone() }
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
