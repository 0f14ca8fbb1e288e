//! Keys as document ids: `!field!field`.
//!
//! Ids sort in the order of the key, and ids with the same first fields are adjacent, so that they are one range of
//! `_all_docs`. That list is ordered by the ids' bytes, not by language rules as views are ("Views Collation" of
//! CouchDB's manual); PouchDB Server's is too.
//!
//! - Each field begins with `!`, which is less than any character within a field. So an id is never empty, and never
//!   begins with `_`, which CouchDB reserves.
//! - Bytes from `-` to `}` are written as they are. A lower byte is `$` and two hexadecimal digits, a higher one is `~`
//!   and two digits: this keeps the order, and ids are ASCII.
//! - Whole numbers and timestamps are sixteen hexadecimal digits of the value plus 2^63, so that negative ones sort
//!   first.

use crate::prelude::*;
use crate::wire::{hex, unhex};

/// The character before each field.
pub(super) const MARK: char = '!';
/// The character after [`MARK`], which ends a range of ids with the same first fields.
pub(super) const AFTER_MARK: char = '"';

const LOWEST: u8 = b'-';
const HIGHEST: u8 = b'}';
const BELOW: u8 = b'$';
const ABOVE: u8 = b'~';

/// Appends one field of a key.
///
/// # Errors
/// [`Server`](ErrorKind::Server) for `Null`, which a SQL database would refuse.
pub(super) fn push(out: &mut String, collection: &str, value: &Value<'_>) -> Result<()> {
    out.push(MARK);
    match value {
        Value::Null => return Err(crate::key::null(collection)),
        Value::Int(n) | Value::Time(n) => {
            let raised = (*n as u64) ^ (1 << 63);
            out.extend(raised.to_be_bytes().into_iter().flat_map(hex).map(char::from));
        }
        Value::Bool(truth) => push(out, collection, &Value::Int(i64::from(*truth)))?,
        Value::Text(text) => escape(out, text.as_bytes()),
        Value::Bytes(bytes) => escape(out, bytes),
    }
    Ok(())
}

fn escape(out: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        if (LOWEST..=HIGHEST).contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push(char::from(if byte < LOWEST { BELOW } else { ABOVE }));
            out.extend(hex(byte).map(char::from));
        }
    }
}

/// Appends a field of an id to the current row of a reply; an id that [`push`] did not write is a mismatch.
pub(super) fn reply(id: &str, position: usize, kind: FieldType, out: &mut Reply) -> Result<()> {
    let mut fields = id.split(MARK);
    let text = match fields.next() {
        Some("") => fields.nth(position),
        _ => None,
    };
    let text = text.ok_or_else(|| foreign(id))?;
    match kind {
        FieldType::Int => out.push_int(number(text).ok_or_else(|| foreign(id))?),
        FieldType::Timestamp => out.push_time(number(text).ok_or_else(|| foreign(id))?),
        _ => out.push_bytes_with(|bytes| unescape(text, bytes).ok_or_else(|| foreign(id)))?,
    }
    Ok(())
}

fn number(text: &str) -> Option<i64> {
    let raised = u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16)?;
    Some((raised ^ (1 << 63)) as i64)
}

fn unescape(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == BELOW || byte == ABOVE {
            out.push(unhex([bytes.next()?, bytes.next()?])?);
        } else {
            out.push(byte);
        }
    }
    Some(())
}

fn foreign(id: &str) -> Error {
    Error::mismatch(format!("the document id '{id}' was not written by Kurabe"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(fields: &[Value<'_>]) -> String {
        let mut out = String::new();
        for field in fields {
            push(&mut out, "kurabe_a", field).unwrap();
        }
        out
    }

    #[test]
    fn id_contains_the_key_as_text() {
        assert_eq!(id(&[Value::Text("abc"), Value::Int(5)]), "!abc!8000000000000005");
        assert_eq!(id(&[Value::Int(-1)]), "!7fffffffffffffff");
        assert_eq!(id(&[Value::Text("")]), "!");
        assert_eq!(id(&[Value::Text("_a b!ß~")]), "!_a$20b$21~c3~9f~7e");
        let error = push(&mut String::new(), "kurabe_a", &Value::Null).unwrap_err();
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Server, Some("NULL_KEY")));
    }

    #[test]
    fn foreign_id_is_a_mismatch() {
        let cases = [
            ("abc", FieldType::LongText),
            ("!$x0", FieldType::LongBytes),
            ("!12", FieldType::Int),
            ("", FieldType::Int),
        ];
        for (id, kind) in cases {
            assert_eq!(
                reply(id, 0, kind, &mut Reply::new()).unwrap_err().kind(),
                ErrorKind::Mismatch,
                "{id}"
            );
        }
        assert!(reply("!a", 1, FieldType::LongText, &mut Reply::new()).is_err());
    }

    proptest! {
        #[test]
        fn ids_are_ordered_as_their_keys(
            a in prop::collection::vec(any::<u8>(), 0..6), b in prop::collection::vec(any::<u8>(), 0..6),
            m: i64, n: i64,
        ) {
            let (one, two) = (id(&[Value::Bytes(&a), Value::Int(m)]), id(&[Value::Bytes(&b), Value::Int(n)]));
            prop_assert_eq!(one.cmp(&two), (&a, m).cmp(&(&b, n)));
            // Ids with the same first field are adjacent.
            let first = id(&[Value::Bytes(&a)]);
            let inside = two.as_str() >= &*format!("{first}!") && two.as_str() < &*format!("{first}\"");
            prop_assert_eq!(inside, a == b);
        }

        #[test]
        fn id_fields_round_trip(a in prop::collection::vec(any::<u8>(), 0..20), n: i64) {
            let id = id(&[Value::Bytes(&a), Value::Int(n), Value::Time(n)]);
            prop_assert!(id.is_ascii());
            let mut out = Reply::new();
            reply(&id, 1, FieldType::Int, &mut out).unwrap();
            reply(&id, 0, FieldType::LongBytes, &mut out).unwrap();
            reply(&id, 2, FieldType::Timestamp, &mut out).unwrap();
            out.end_row();
            prop_assert_eq!(out.field_int(0, 0), Some(n));
            prop_assert_eq!(out.field_bytes(0, 1), Some(&a[..]));
            prop_assert_eq!(out.field(0, 2), Some(Value::Time(n)));
        }
    }
}
