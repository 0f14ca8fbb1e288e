//! Values in the text of a statement ("SQL Language Expressions", "Literal Values").

use crate::sql::{Literals, digits, quoted, quoted_hex};
use kurabe_core::{Error, Result};

/// Answers come in SQLite's own types, whatever the statement.
pub(super) const LITERALS: Literals = Literals {
    text,
    bytes: |out, bytes| {
        quoted_hex(out, bytes);
        Ok(())
    },
    int: digits,
    // Microseconds since 1970, as in the tables.
    time: |out, micros| {
        digits(out, micros);
        Ok(())
    },
    read: |_| None,
};

/// SQLite takes the text of a statement to end at its first zero character, so that one within a value is made by a
/// function, in the place of a character that the value does not hold. One `||` for each would go too deep.
fn text(out: &mut String, text: &str) -> Result<()> {
    if !text.contains('\0') {
        quoted(out, text);
        return Ok(());
    }
    let unused = ('\u{e000}'..='\u{f8ff}').find(|c| !text.contains(*c));
    let unused =
        unused.ok_or_else(|| Error::unsupported("a text of every private character cannot be written"))?;
    let mut sign = [0; 4];
    let sign = unused.encode_utf8(&mut sign);
    out.push_str("replace(");
    quoted(out, &text.replace('\0', sign));
    out.push_str(", '");
    out.push_str(sign);
    out.push_str("', char(0))");
    Ok(())
}
