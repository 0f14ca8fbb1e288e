//! Values: the fields of a row that are not its key, one after the other.
//!
//! Each field is a mark and what follows it: `0` no value; `1` a whole number, `2` a moment, both of eight bytes; `3`
//! text or bytes, with their length in four bytes before them. Numbers are little-endian. A row of one field has its
//! mark and length too, so that a value which was cut or is not ours is told from one that is.

use super::protocol::Client;
use crate::wire::Peer;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};

const NULL: u8 = 0;
const INT: u8 = 1;
const TIME: u8 = 2;
const BYTES: u8 = 3;

/// A row's value in three parts: what comes before its longest field, that field's own bytes, and what comes after.
pub(super) struct Packed<'a> {
    pub(super) middle: &'a [u8],
    /// Where in `out` the middle belongs.
    pub(super) split: usize,
}

/// Packs the fields into `out`, all but the bytes of the longest, which need not be copied.
pub(super) fn pack<'a>(
    out: &mut Vec<u8>,
    fields: impl Iterator<Item = Value<'a>> + Clone,
) -> Result<Packed<'a>> {
    out.clear();
    let length = |value: &Value<'_>| bytes(value).map_or(0, <[u8]>::len);
    let longest =
        fields.clone().enumerate().max_by_key(|(_, value)| length(value)).map(|(position, _)| position);
    let mut packed = Packed { middle: &[], split: 0 };
    for (position, value) in fields.enumerate() {
        match value {
            Value::Null => out.push(NULL),
            Value::Int(n) => push(out, INT, &n.to_le_bytes()),
            Value::Time(n) => push(out, TIME, &n.to_le_bytes()),
            Value::Text(text) => put_bytes(out, &mut packed, text.as_bytes(), longest == Some(position))?,
            Value::Bytes(bytes) => put_bytes(out, &mut packed, bytes, longest == Some(position))?,
        }
    }
    Ok(packed)
}

fn push(out: &mut Vec<u8>, mark: u8, rest: &[u8]) {
    out.push(mark);
    out.extend_from_slice(rest);
}

fn put_bytes<'a>(out: &mut Vec<u8>, packed: &mut Packed<'a>, bytes: &'a [u8], apart: bool) -> Result<()> {
    let length = u32::try_from(bytes.len())
        .map_err(|_| Error::new(ErrorKind::Limit, "memcached: a value of more than 4 GB"))?;
    push(out, BYTES, &length.to_le_bytes());
    if apart {
        packed.middle = bytes;
        packed.split = out.len();
    } else {
        out.extend_from_slice(bytes);
    }
    Ok(())
}

fn bytes<'a>(value: &Value<'a>) -> Option<&'a [u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// Receives a value of `total` bytes that holds `width` fields, and appends those `wanted` (in rising order) to the
/// reply as a row. Whatever goes wrong with the value itself, all of it is read, so that the connection stays usable.
pub(super) fn receive<S: Peer>(
    client: &mut Client<S>,
    total: u64,
    width: usize,
    wanted: &[usize],
    out: &mut Reply,
) -> Result<()> {
    let mut left = total as usize;
    let whole = fields(client, &mut left, width, wanted, out)?;
    client.wire.skip(left)?;
    client.end_value()?;
    if whole && left == 0 {
        out.end_row();
        return Ok(());
    }
    Err(Error::mismatch(format!(
        "memcached holds a value of {total} bytes that is not a whole row of Kurabe's"
    )))
}

/// `false` where the value does not have the form described above.
fn fields<S: Peer>(
    client: &mut Client<S>,
    left: &mut usize,
    width: usize,
    wanted: &[usize],
    out: &mut Reply,
) -> Result<bool> {
    for position in 0..width {
        let Some([mark]) = take::<1, _>(client, left)? else { return Ok(false) };
        let wanted = wanted.contains(&position);
        match mark {
            NULL if wanted => out.push_null(),
            NULL => {}
            INT | TIME => {
                let Some(number) = take::<8, _>(client, left)? else { return Ok(false) };
                let number = i64::from_le_bytes(number);
                match (wanted, mark) {
                    (false, _) => {}
                    (true, INT) => out.push_int(number),
                    (true, _) => out.push_time(number),
                }
            }
            BYTES => {
                let Some(length) = take::<4, _>(client, left)? else { return Ok(false) };
                let length = u32::from_le_bytes(length) as usize;
                if length > *left {
                    return Ok(false);
                }
                if wanted {
                    out.push_bytes_with(|bytes| client.wire.take_into(length, bytes))?;
                } else {
                    client.wire.skip(length)?;
                }
                *left -= length;
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The next `N` bytes, where the value has so many left.
fn take<const N: usize, S: Peer>(client: &mut Client<S>, left: &mut usize) -> Result<Option<[u8; N]>> {
    if *left < N {
        return Ok(None);
    }
    let bytes = client.wire.peek(N)?.first_chunk::<N>().copied();
    client.wire.consume(N);
    *left -= N;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::script::Script;
    use proptest::prelude::*;

    fn packed(fields: &[Value<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        let packed = pack(&mut out, fields.iter().copied()).unwrap();
        [&out[..packed.split], packed.middle, &out[packed.split..]].concat()
    }

    fn received(value: &[u8], width: usize, wanted: &[usize], piece: usize) -> Result<Reply> {
        let answer = [value, b"\r\nMN\r\n"].concat();
        let mut client = Client::new(Script::in_pieces(answer, piece));
        let mut out = Reply::new();
        let result = receive(&mut client, value.len() as u64, width, wanted, &mut out);
        // Right or wrong, the next answer is found.
        client.ping().unwrap();
        result.map(|()| out)
    }

    #[test]
    fn a_row_comes_back_as_it_was_packed() {
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
    fn a_value_that_was_cut_is_a_mismatch() {
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

    proptest! {
        #[test]
        fn any_value_is_a_row_or_a_mismatch(value in prop::collection::vec(0u8..6, 0..60), piece in 1usize..9) {
            if let Err(error) = received(&value, 3, &[0, 2], piece) {
                prop_assert_eq!(error.kind(), ErrorKind::Mismatch);
            }
        }
    }
}
