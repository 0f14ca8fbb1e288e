//! A row as one byte string, and an order-preserving encoding of keys.

use crate::packed::bytes_of;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};

/// Size of a field's header, in bytes: a tag (one byte), and its number or the end of its bytes (eight). The bytes of
/// all fields follow the headers.
const HEAD: usize = 9;
const NULL: u8 = 0;
const INT: u8 = 1;
const TIME: u8 = 2;
const BYTES: u8 = 3;

/// Appends the fields of a row.
pub fn pack<'a>(out: &mut Vec<u8>, fields: impl ExactSizeIterator<Item = Value<'a>> + Clone) {
    let mut end = 0;
    for value in fields.clone() {
        let (tag, number) = match value {
            Value::Null => (NULL, end),
            Value::Int(n) => (INT, n as u64),
            Value::Time(n) => (TIME, n as u64),
            Value::Bool(truth) => (INT, u64::from(truth)),
            Value::Text(_) | Value::Bytes(_) => {
                end += bytes_of(&value).map_or(0, <[u8]>::len) as u64;
                (BYTES, end)
            }
        };
        out.push(tag);
        out.extend_from_slice(&number.to_le_bytes());
    }
    for value in fields {
        out.extend_from_slice(bytes_of(&value).unwrap_or_default());
    }
}

/// A field of a row of `width` fields, as packed by [`pack`].
pub fn field(row: &[u8], width: usize, position: usize) -> Value<'_> {
    let (tag, number) = head(row, position);
    match tag {
        INT => Value::Int(number as i64),
        TIME => Value::Time(number as i64),
        BYTES => {
            // The bytes start where the previous field of bytes ends. Rows are narrow, so searching backwards is faster
            // than storing every start.
            let before = (0..position).rev().map(|i| head(row, i)).find(|(tag, _)| *tag == BYTES);
            let start = before.map_or(0, |(_, end)| end as usize);
            let base = width * HEAD;
            row.get(base + start..base + number as usize).map_or(Value::Null, Value::Bytes)
        }
        _ => Value::Null,
    }
}

fn head(row: &[u8], position: usize) -> (u8, u64) {
    match row.get(position * HEAD..).and_then(<[u8]>::first_chunk::<HEAD>) {
        Some([tag, number @ ..]) => (*tag, u64::from_le_bytes(*number)),
        None => (NULL, 0),
    }
}

/// Appends fields of a row of `width` fields, as packed by [`pack`], to a reply as a row.
pub fn give(out: &mut Reply, row: &[u8], width: usize, fields: &[usize]) {
    for at in fields {
        push(out, field(row, width, *at));
    }
    out.end_row();
}

/// Replaces `out` by the row `before` with new values for some of its fields.
pub fn change(out: &mut Vec<u8>, before: &[u8], width: usize, fields: &[usize], new: &[Value<'_>]) {
    let new = |at| fields.iter().position(|field| *field == at).map(|number| new[number]);
    out.clear();
    pack(out, (0..width).map(|at| new(at).unwrap_or_else(|| field(before, width, at))));
}

/// Appends the order-preserving encoding of a key's fields; `whole`: these are all fields of the key.
///
/// # Errors
/// [`Server`](ErrorKind::Server) if one is null.
pub fn push_key<'a>(
    out: &mut Vec<u8>,
    fields: impl ExactSizeIterator<Item = Value<'a>>,
    whole: bool,
) -> Result<()> {
    let last = fields.len();
    for (number, value) in fields.enumerate() {
        if !encode(out, value, whole && number + 1 == last) {
            return Err(Error::new(ErrorKind::Server, "a field of the key is null").code("NULL_KEY"));
        }
    }
    Ok(())
}

/// Sets the key of a row in a store that keeps all collections in one ordered map: the collection's name, a colon, and
/// the fields encoded by [`push_key`].
pub fn set_key<'a>(
    key: &mut Vec<u8>,
    collection: &str,
    fields: impl ExactSizeIterator<Item = Value<'a>>,
    whole: bool,
) -> Result<()> {
    key.clear();
    key.extend_from_slice(collection.as_bytes());
    key.push(b':');
    push_key(key, fields, whole)
}

/// Appends a field of a row to a reply.
pub fn push(out: &mut Reply, value: Value<'_>) {
    match value {
        Value::Null => out.push_null(),
        Value::Int(n) => out.push_int(n),
        Value::Time(n) => out.push_time(n),
        Value::Bool(truth) => out.push_int(i64::from(truth)),
        Value::Text(text) => out.push_bytes(text.as_bytes()),
        Value::Bytes(bytes) => out.push_bytes(bytes),
    }
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

    #[test]
    fn packed_fields_round_trip() {
        let fields = [
            Value::Text("id"),
            Value::Null,
            Value::Int(i64::MIN),
            Value::Bytes(&[0, 255]),
            Value::Time(-1),
            Value::Bytes(b""),
        ];
        let mut row = Vec::new();
        pack(&mut row, fields.iter().copied());
        let back: Vec<Value<'_>> = (0..fields.len()).map(|i| field(&row, fields.len(), i)).collect();
        assert_eq!(back[0], Value::Bytes(b"id"));
        assert_eq!(back[1..], fields[1..]);
    }

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
