//! Literals in statements, and fields in text format (manual, "Lexical Structure", "Constants"; "Date/Time Types";
//! "Binary Data Types").

use crate::prelude::*;
use crate::sql::{Literals, Read, hex, quoted, read_int, standard};
use crate::wire::{malformed, unhex};
use std::fmt::Write as _;

pub(super) const LITERALS: Literals = Literals { write, read };

fn write(out: &mut String, value: Value<'_>) -> Result<()> {
    match value {
        Value::Text(value) => text(out, value)?,
        // The hexadecimal form of `bytea` starts with a backslash.
        Value::Bytes(bytes) => {
            out.push_str("E'\\\\x");
            hex(out, bytes);
            out.push('\'');
        }
        // Unquoted, the smallest integer would be a negated `numeric`.
        Value::Int(i64::MIN) => quoted(out, &i64::MIN.to_string()),
        // With a zone, so that the session's does not matter.
        Value::Time(micros) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "TIMESTAMPTZ'{}+00'", DateTime::from_micros(micros)?);
        }
        _ => standard(out, value)?,
    }
    Ok(())
}

/// Writes a text literal. In plain quotes, a backslash is an escape only if `standard_conforming_strings` is off; in
/// `E'…'` it always is.
fn text(out: &mut String, text: &str) -> Result<()> {
    if text.contains('\0') {
        let message = "PostgreSQL does not allow a zero character in text";
        return Err(Error::new(ErrorKind::Server, message).code("22021"));
    }
    if text.contains('\\') {
        out.push('E');
        quoted(out, &text.replace('\\', "\\\\"));
    } else {
        quoted(out, text);
    }
    Ok(())
}

fn read(kind: FieldType) -> Option<Read> {
    match kind {
        FieldType::Int => Some(read_int),
        FieldType::Timestamp => Some(read_time),
        FieldType::Bytes { .. } | FieldType::LongBytes => Some(read_bytes),
        FieldType::Text { .. } | FieldType::LongText => None,
    }
}

/// Reads `\x` and hexadecimal digits; or, with `bytea_output = escape`, the bytes themselves, with a backslash doubled
/// or followed by three octal digits.
fn read_bytes(text: &[u8], out: &mut Reply) -> Result<()> {
    out.push_bytes_with(|to| {
        if let Some(digits) = text.strip_prefix(b"\\x") {
            let (pairs, rest) = digits.as_chunks::<2>();
            for pair in pairs {
                to.push(unhex(*pair).ok_or_else(|| malformed("bytes with an invalid digit"))?);
            }
            return if rest.is_empty() {
                Ok(())
            } else {
                Err(malformed("bytes with an odd number of digits"))
            };
        }
        let mut rest = text;
        while let Some((&first, after)) = rest.split_first() {
            rest = match (first, after) {
                (b'\\', [b'\\', after @ ..]) => {
                    to.push(b'\\');
                    after
                }
                (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                    to.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                    after
                }
                (b'\\', _) => return Err(malformed("bytes with an invalid escape")),
                _ => {
                    to.push(first);
                    after
                }
            };
        }
        Ok(())
    })
}

/// Reads `2009-02-13 23:31:30.123456+00`, with the session's zone in hours, minutes and seconds.
fn read_time(text: &[u8], out: &mut Reply) -> Result<()> {
    let foreign = || {
        Error::unsupported("the server does not write timestamps in ISO format")
            .hint("set DateStyle to ISO, or use prepared statements")
    };
    let text = std::str::from_utf8(text).map_err(|_| foreign())?;
    // The zone's sign is the last sign, after the date.
    let sign = text.rfind(['+', '-']).filter(|at| *at > 10).ok_or_else(foreign)?;
    let local = DateTime::parse(&text[..sign]).and_then(DateTime::micros).ok_or_else(foreign)?;
    let mut zone = 0;
    for (part, unit) in text[sign + 1..].split(':').zip([3_600, 60, 1]) {
        zone += part.parse::<i64>().map_err(|_| foreign())? * unit;
    }
    let zone = if text.as_bytes()[sign] == b'-' { -zone } else { zone };
    out.push_time(local - zone * 1_000_000);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(read: Read, text: &str) -> Result<Reply> {
        let mut reply = Reply::new();
        read(text.as_bytes(), &mut reply)?;
        reply.end_row();
        Ok(reply)
    }

    #[test]
    fn bytes_are_read_in_both_formats() {
        for text in [r"\x005c27ff61", r"\000\\'\377a"] {
            assert_eq!(
                field(read_bytes, text).unwrap().field_bytes(0, 0),
                Some(&b"\0\\'\xffa"[..]),
                "{text}"
            );
        }
        for text in [r"\x0", r"\xzz", r"\8", r"\"] {
            assert_eq!(field(read_bytes, text).unwrap_err().kind(), ErrorKind::Protocol, "{text}");
        }
    }

    #[test]
    fn timestamp_is_read_in_any_session_time_zone() {
        for (text, micros) in [
            ("1970-01-01 00:00:00+00", 0),
            ("1970-01-01 09:00:00.5+09", 500_000),
            ("1969-12-31 20:30:00.000001-03:30", 1),
            ("1883-11-18 12:03:58-04:56:02", -2_717_650_800_000_000),
        ] {
            assert_eq!(field(read_time, text).unwrap().field(0, 0), Some(Value::Time(micros)), "{text}");
        }
        for text in ["13.02.2009 23:31:30 UTC", "infinity", "", "2009-02-13", "2009-02-13 23:31:30"] {
            assert_eq!(field(read_time, text).unwrap_err().kind(), ErrorKind::Unsupported, "{text}");
        }
    }
}
