//! Literals in statements (SQL Language Reference, "Literals"). Empty texts and bytes are encoded as in
//! [`Bind`](super::values::Bind).

use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{Literals, hex, quoted, standard};
use std::fmt::Write as _;

/// Replies always have the types of their columns.
pub(super) const LITERALS: Literals = Literals { write, read: |_| None };

/// Bytes of the longest text literal with `MAX_STRING_SIZE=STANDARD`.
const MAX_TEXT: usize = 4_000;

/// Bytes of the longest `RAW`; each byte is two digits of a text literal.
const MAX_BYTES: usize = 2_000;

fn write(out: &mut String, value: Value<'_>) -> Result<()> {
    match value {
        Value::Text(value) => text(out, value)?,
        Value::Bytes(value) => bytes(out, value)?,
        Value::Time(micros) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "TIMESTAMP '{}'", DateTime::from_micros(micros)?);
        }
        _ => standard(out, value)?,
    }
    Ok(())
}

/// Writes a text literal. Only the quote needs escaping, by doubling, so Oracle's alternative quotes (`q'[…]'`), which
/// a text could end early, are not used. A zero character is written as a function call, because some layers would end
/// the text there.
fn text(out: &mut String, text: &str) -> Result<()> {
    if text.len() >= MAX_TEXT {
        return Err(too_long(MAX_TEXT));
    }
    if text.bytes().all(|byte| byte == 0) {
        out.push_str("CHR(0)");
        (0..text.len()).for_each(|_| out.push_str("||CHR(0)"));
        return Ok(());
    }
    let mut first = true;
    let mut join = |out: &mut String| {
        if !std::mem::take(&mut first) {
            out.push_str("||");
        }
    };
    for (n, piece) in text.split('\0').enumerate() {
        if n > 0 {
            join(out);
            out.push_str("CHR(0)");
        }
        // '' is NULL, and adds nothing.
        if !piece.is_empty() {
            join(out);
            quoted(out, piece);
        }
    }
    Ok(())
}

fn bytes(out: &mut String, bytes: &[u8]) -> Result<()> {
    if bytes.len() >= MAX_BYTES {
        return Err(too_long(MAX_BYTES));
    }
    out.push_str("HEXTORAW('");
    hex(out, bytes);
    if bytes.iter().all(|byte| *byte == 0) {
        out.push_str("00");
    }
    out.push_str("')");
    Ok(())
}

fn too_long(most: usize) -> Error {
    Error::unsupported(format!("Oracle supports no literal of {most} bytes or more")).hint("bind such values")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_literals_encode_empty_text_quotes_and_zero_characters() {
        for (value, literal) in [
            ("it's", "'it''s'"),
            ("a\\n", "'a\\n'"),
            ("", "CHR(0)"),
            ("\0", "CHR(0)||CHR(0)"),
            ("a\0'b\0", "'a'||CHR(0)||'''b'||CHR(0)"),
            ("\0a", "CHR(0)||'a'"),
        ] {
            let mut out = String::new();
            text(&mut out, value).unwrap();
            assert_eq!(out, literal);
        }
        let mut out = String::new();
        bytes(&mut out, b"").unwrap();
        bytes(&mut out, b"\0'").unwrap();
        assert_eq!(out, "HEXTORAW('00')HEXTORAW('0027')");
        assert!(text(&mut out, &"x".repeat(4_000)).is_err() && bytes(&mut out, &[1; 2_000]).is_err());
    }
}
