//! Literals in statements, and fields in text format (MySQL manual, "Literal Values").

use crate::prelude::*;
use crate::sql::{Literals, Read, quoted, quoted_hex, read_int, standard};
use std::fmt::Write as _;

pub(super) const LITERALS: Literals = Literals { write, read };

fn write(out: &mut String, value: Value<'_>) -> Result<()> {
    match value {
        Value::Text(value) => text(out, value),
        Value::Time(micros) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "TIMESTAMP'{}'", DateTime::from_micros(micros)?);
        }
        _ => return standard(out, value),
    }
    Ok(())
}

/// Writes a text literal. Whether a backslash is an escape depends on `sql_mode` (`NO_BACKSLASH_ESCAPES`). Text with a
/// backslash or a control character is therefore written in hexadecimal, which every mode reads alike. The introducer
/// gives the text's character set, whatever the connection's is.
fn text(out: &mut String, text: &str) {
    let plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic() && byte != b'\\' || !byte.is_ascii();
    let in_quotes = text.bytes().all(plain);
    if !in_quotes || !text.is_ascii() {
        out.push_str("_utf8mb4 ");
    }
    if in_quotes {
        quoted(out, text);
    } else {
        quoted_hex(out, text.as_bytes());
    }
}

fn read(kind: FieldType) -> Option<Read> {
    match kind {
        FieldType::Int => Some(read_int),
        FieldType::Timestamp => Some(read_time),
        _ => None,
    }
}

/// `2009-02-13 23:31:30.123456`.
fn read_time(text: &[u8], out: &mut Reply) -> Result<()> {
    let at = std::str::from_utf8(text).ok().and_then(DateTime::parse);
    let at = at.ok_or_else(|| malformed("an invalid timestamp"))?;
    out.push_time(at.micros().ok_or_else(|| Error::unsupported("an invalid date"))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_same_in_every_sql_mode() {
        for (value, literal) in [
            ("it's", "'it''s'"),
            ("", "''"),
            ("a\\'b", "_utf8mb4 x'615c2762'"),
            ("a\0b", "_utf8mb4 x'610062'"),
            ("漢'", "_utf8mb4 '漢'''"),
            ("漢\n", "_utf8mb4 x'e6bca20a'"),
        ] {
            let mut out = String::new();
            text(&mut out, value);
            assert_eq!(out, literal);
        }
    }
}
