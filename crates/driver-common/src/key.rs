//! Keys of rows as one string: as text, or so that the bytes of keys compare as their fields do.

use crate::packed::bytes_of;
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

/// Appends the fields of a key so that keys compare as their fields do; `whole`: these are all fields of the key.
///
/// # Errors
/// [`Server`](ErrorKind::Server) if one is null.
pub fn push_ordered<'a>(
    out: &mut Vec<u8>,
    collection: &str,
    fields: impl ExactSizeIterator<Item = Value<'a>>,
    whole: bool,
) -> Result<()> {
    let last = fields.len();
    for (number, value) in fields.enumerate() {
        if !encode(out, value, whole && number + 1 == last) {
            return Err(null(collection));
        }
    }
    Ok(())
}

/// Appends a field of a key so that the bytes of keys compare as their fields do, one after the other. Only the last
/// field of a key may omit the terminator. `false` for `Null`, which is invalid in a key.
pub fn encode(out: &mut Vec<u8>, value: Value<'_>, last: bool) -> bool {
    match value {
        Value::Null => return false,
        // Flipping the sign bit puts negative numbers first.
        Value::Int(n) | Value::Time(n) => out.extend_from_slice(&((n as u64) ^ (1 << 63)).to_be_bytes()),
        Value::Bool(truth) => return encode(out, Value::Int(i64::from(truth)), last),
        Value::Text(_) | Value::Bytes(_) => {
            let bytes = bytes_of(&value).unwrap_or_default();
            if last {
                out.extend_from_slice(bytes);
            } else {
                // 0x00 inside a field becomes 0x00 0xFF; the terminator 0x00 0x00 sorts before any longer field.
                for &byte in bytes {
                    out.push(byte);
                    if byte == 0 {
                        out.push(0xFF);
                    }
                }
                out.extend_from_slice(&[0, 0]);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encoded_keys_sort_as_their_fields(
            a in (prop::collection::vec(0u8..3, 0..4), any::<i64>(), prop::collection::vec(0u8..3, 0..4)),
            b in (prop::collection::vec(0u8..3, 0..4), any::<i64>(), prop::collection::vec(0u8..3, 0..4)),
        ) {
            let key = |(x, n, y): &(Vec<u8>, i64, Vec<u8>)| {
                let mut out = Vec::new();
                encode(&mut out, Value::Bytes(x), false);
                encode(&mut out, Value::Int(*n), false);
                encode(&mut out, Value::Bytes(y), true);
                out
            };
            prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        }
    }
}
