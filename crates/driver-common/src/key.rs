//! Keys of rows as text, for engines whose keys are one string.

use crate::prelude::*;
use crate::wire::{percent, push_number};

/// The error of a null in a key, which a SQL database would refuse.
pub fn null(collection: &str) -> Error {
    Error::new(ErrorKind::Server, format!("{collection}: NULL in the key")).code("NULL_KEY")
}

/// Appends a field of a key: a number in decimal digits; text and bytes with those that are `escaped` as `%` and two
/// hexadecimal digits.
///
/// # Errors
/// [`Server`](ErrorKind::Server) for `Null`.
#[inline]
pub fn push(
    out: &mut Vec<u8>,
    collection: &str,
    value: Value<'_>,
    escaped: impl Fn(u8) -> bool,
) -> Result<()> {
    let bytes = match value {
        Value::Null => return Err(null(collection)),
        Value::Int(n) | Value::Time(n) => {
            push_signed(out, n);
            return Ok(());
        }
        Value::Bool(truth) => return push(out, collection, Value::Int(i64::from(truth)), escaped),
        Value::Text(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
    };
    if !bytes.iter().any(|byte| escaped(*byte)) {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    for &byte in bytes {
        if escaped(byte) {
            out.extend_from_slice(&percent(byte));
        } else {
            out.push(byte);
        }
    }
    Ok(())
}

/// Appends a number in decimal digits.
pub fn push_signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_number(out, value.unsigned_abs());
}
