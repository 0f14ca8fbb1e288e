//! Values: the fields of a row outside its key, always packed.

use super::protocol::Client;
use crate::packed::{self, LONGEST, bytes_of};
use crate::prelude::*;
use crate::wire::Peer;

/// Packs the fields into `out`, except the bytes of the longest field, which are not copied. Returns the value in three
/// parts: the bytes before that field's, those, and the bytes after them.
pub(super) fn pack<'a>(
    out: &'a mut Vec<u8>,
    fields: impl Iterator<Item = Value<'a>> + Clone,
) -> Result<[&'a [u8]; 3]> {
    out.clear();
    let length = |value: &Value<'_>| bytes_of(value).map_or(0, <[u8]>::len);
    let longest =
        fields.clone().enumerate().max_by_key(|(_, value)| length(value)).map(|(position, _)| position);
    let (mut middle, mut split): (&[u8], _) = (&[], 0);
    for (position, value) in fields.enumerate() {
        if length(&value) > LONGEST {
            return Err(Error::new(ErrorKind::Limit, "memcached: a value is longer than 4 GB"));
        }
        match packed::push(out, &value) {
            Some(bytes) if longest == Some(position) => (middle, split) = (bytes, out.len()),
            bytes => out.extend_from_slice(bytes.unwrap_or_default()),
        }
    }
    let (head, tail) = out.split_at(split);
    Ok([head, middle, tail])
}

/// Receives a value of `total` bytes with `width` fields, and appends those `wanted` (in ascending order) to the reply
/// as a row. An invalid value is read completely too, so that the connection stays usable.
pub(super) fn receive<S: Peer>(
    client: &mut Client<S>,
    total: u64,
    width: usize,
    wanted: &[usize],
    out: &mut Reply,
) -> Result<()> {
    let mut left = total as usize;
    let whole = packed::read(&mut client.wire, &mut left, width, wanted, out)?;
    client.wire.skip(left)?;
    client.end_value()?;
    if whole && left == 0 {
        out.end_row();
        return Ok(());
    }
    Err(Error::mismatch(format!("memcached has a value of {total} bytes that is not a complete row")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::script::{Parts, Script};

    fn packed(fields: &[Value<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        pack(&mut out, fields.iter().copied()).unwrap().concat()
    }

    fn received(value: &[u8], width: usize, wanted: &[usize], piece: usize) -> Result<Reply> {
        let answer = [value, b"\r\nMN\r\n"].concat();
        let mut client = Client::new(Script::in_pieces(answer, piece));
        let mut out = Reply::new();
        let result = receive(&mut client, value.len() as u64, width, wanted, &mut out);
        // The next answer is found, even after an error.
        client.ping().unwrap();
        result.map(|()| out)
    }

    #[test]
    fn packed_row_round_trips() {
        let fields = [
            Value::Bytes(&[0, 255]),
            Value::Null,
            Value::Text("longer"),
            Value::Int(-1),
            Value::Time(i64::MIN),
            Value::Text(""),
        ];
        let reply = received(&packed(&fields), 6, &[0, 1, 2, 3, 4, 5], 3).unwrap();
        assert_eq!(reply.field_bytes(0, 2), Some(&b"longer"[..]));
        assert_eq!(reply.field(0, 1), Some(Value::Null));
        assert_eq!(reply.field(0, 4), Some(Value::Time(i64::MIN)));
        let reply = received(&packed(&fields), 6, &[3], 100).unwrap();
        assert_eq!((reply.width(), reply.field_int(0, 0)), (1, Some(-1)));
    }

    #[test]
    fn truncated_value_is_a_mismatch() {
        let whole = packed(&[Value::Text("hello"), Value::Int(1)]);
        for cut in 0..whole.len() {
            assert_eq!(
                received(&whole[..cut], 2, &[0], 100).unwrap_err().kind(),
                ErrorKind::Mismatch,
                "{cut}"
            );
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(received(&longer, 2, &[0], 100).unwrap_err().kind(), ErrorKind::Mismatch);
    }

    mod fuzz {
        use super::*;

        #[test]
        fn any_value_is_a_row_or_a_mismatch() {
            bolero::check!(name = "memcached-values").for_each(|input: &[u8]| {
                let mut parts = Parts::new(input);
                let (piece, _) = parts.head();
                if let Err(error) = received(parts.rest(), 3, &[0, 2], piece) {
                    assert_eq!(error.kind(), ErrorKind::Mismatch);
                }
            });
        }
    }
}
