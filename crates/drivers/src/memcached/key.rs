//! Keys: `collection:generation:field:field`.
//!
//! A memcached key has at most 250 bytes, without spaces and control characters. Within a field, `:`, `%` and
//! everything but printable ASCII are written as `%` and two hexadecimal digits, so that different fields never make
//! the same key.

use crate::key;
use crate::prelude::*;
use crate::wire::hex;

/// The longest key of the protocol, in bytes.
const LONGEST: usize = 250;

/// Writes a row's key into `out`, replacing its contents.
///
/// # Errors
/// [`Limit`](ErrorKind::Limit) if the key is too long, [`Server`](ErrorKind::Server) if one of its fields is `Null`.
pub(super) fn write<'v>(
    out: &mut Vec<u8>,
    collection: &str,
    generation: u64,
    fields: impl Iterator<Item = Value<'v>>,
) -> Result<()> {
    out.clear();
    out.extend_from_slice(collection.as_bytes());
    out.push(b':');
    for byte in generation.to_be_bytes() {
        out.extend(hex(byte).map(|digit| digit.to_ascii_uppercase()));
    }
    for field in fields {
        out.push(b':');
        key::push(out, collection, field, |byte| !byte.is_ascii_graphic() || matches!(byte, b':' | b'%'))?;
        if out.len() > LONGEST {
            let message = format!("{collection}: a key is longer than {LONGEST} bytes");
            return Err(Error::new(ErrorKind::Limit, message).hint("this is the limit of memcached"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(fields: &[Value<'_>]) -> Result<String> {
        let mut out = Vec::new();
        write(&mut out, "kurabe_a", 0x1F, fields.iter().copied()).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn different_fields_make_different_keys() {
        let plain = key(&[Value::Text("ab"), Value::Int(-7)]).unwrap();
        assert_eq!(plain, "kurabe_a:000000000000001F:ab:-7");
        assert_eq!(
            key(&[Value::Bytes(&[0, b' ', b':', b'%', 255])]).unwrap().split_at(26).1,
            "%00%20%3A%25%FF"
        );
        assert_ne!(
            key(&[Value::Text("a:b"), Value::Text("c")]),
            key(&[Value::Text("a"), Value::Text("b:c")])
        );
        assert_eq!(key(&[Value::Null]).unwrap_err().kind(), ErrorKind::Server);
        assert_eq!(key(&[Value::Text(&"x".repeat(300))]).unwrap_err().kind(), ErrorKind::Limit);
    }

    proptest! {
        #[test]
        fn any_field_makes_a_valid_key(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            match key(&[Value::Bytes(&bytes)]) {
                Ok(key) => prop_assert!(key.len() <= 250 && key.bytes().all(|b| b.is_ascii_graphic())),
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Limit),
            }
        }
    }
}
