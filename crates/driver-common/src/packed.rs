//! Several fields of a row packed into one value, for engines without fields.
//!
//! Each field is a tag followed by its data: `0` null; `1` a whole number and `2` a timestamp (microseconds since
//! 1970), both of eight bytes; `3` text or bytes, after their length in four bytes. Numbers are little-endian. By tags
//! and lengths a truncated or foreign value is detected.

use crate::prelude::*;
use crate::wire::{Peer, Wire};

const NULL: u8 = 0;
const INT: u8 = 1;
const TIME: u8 = 2;
const BYTES: u8 = 3;

/// Maximum overhead of packing a field, in bytes.
pub const PACKING: u64 = 9;

/// Maximum length of packed text or bytes.
pub const LONGEST: usize = u32::MAX as usize;

/// The source of a value: the connection, or bytes that were received before.
pub trait Source {
    /// The next `N` (at most eight) bytes.
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.look(N)?);
        self.skip(N)?;
        Ok(bytes)
    }
    /// The next `n` (at most eight) bytes, without consuming them.
    fn look(&mut self, n: usize) -> Result<&[u8]>;
    /// Appends the next `n` bytes.
    fn append(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()>;
    /// Skips `n` bytes.
    fn skip(&mut self, n: usize) -> Result<()>;
}

impl<S: Peer> Source for Wire<S> {
    fn look(&mut self, n: usize) -> Result<&[u8]> {
        self.peek(n)
    }

    fn append(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        self.take_into(n, out)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        Wire::skip(self, n)
    }
}

impl Source for &[u8] {
    fn look(&mut self, n: usize) -> Result<&[u8]> {
        self.get(..n).ok_or_else(short)
    }

    fn append(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        let (first, rest) = self.split_at_checked(n).ok_or_else(short)?;
        out.extend_from_slice(first);
        *self = rest;
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        *self = self.get(n..).ok_or_else(short)?;
        Ok(())
    }
}

fn short() -> Error {
    Error::new(ErrorKind::Internal, "a value was read beyond its end")
}

/// The bytes of text or bytes; `None` for other values.
#[inline]
pub fn bytes_of<'a>(value: &Value<'a>) -> Option<&'a [u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// The length of a packed field, in bytes.
#[inline]
pub fn length(value: &Value<'_>) -> usize {
    match value {
        Value::Null => 1,
        Value::Int(_) | Value::Time(_) | Value::Bool(_) => 9,
        Value::Text(text) => 5 + text.len(),
        Value::Bytes(bytes) => 5 + bytes.len(),
    }
}

/// Appends a field, except the bytes of text or bytes: these are returned, for the caller to append or send uncopied.
/// They have at most [`LONGEST`] bytes.
#[inline]
pub fn push<'a>(out: &mut Vec<u8>, value: &Value<'a>) -> Option<&'a [u8]> {
    let mut put = |mark: u8, rest: &[u8]| {
        out.push(mark);
        out.extend_from_slice(rest);
    };
    match value {
        Value::Null => put(NULL, &[]),
        Value::Int(n) => put(INT, &n.to_le_bytes()),
        Value::Time(n) => put(TIME, &n.to_le_bytes()),
        Value::Bool(truth) => put(INT, &i64::from(*truth).to_le_bytes()),
        Value::Text(_) | Value::Bytes(_) => {
            let bytes = bytes_of(value).unwrap_or_default();
            put(BYTES, &(bytes.len() as u32).to_le_bytes());
            return Some(bytes);
        }
    }
    None
}

/// Appends fields to a value.
pub fn pack<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = Value<'a>>) {
    for field in fields {
        let bytes = push(out, &field);
        out.extend_from_slice(bytes.unwrap_or_default());
    }
}

/// The fields of a value in memory, read one after the other. What is missing or has another format is null.
pub struct Fields<'a> {
    value: &'a [u8],
    /// The part from the field number `next` on.
    rest: &'a [u8],
    next: usize,
}

impl<'a> Fields<'a> {
    /// Those of a value that [`pack`] wrote.
    pub fn of(value: &'a [u8]) -> Self {
        Self { value, rest: value, next: 0 }
    }

    /// The field at a position. Positions in ascending order need one pass.
    #[inline]
    pub fn at(&mut self, position: usize) -> Value<'a> {
        if position < self.next {
            *self = Self::of(self.value);
        }
        while self.next < position {
            self.take();
        }
        self.take()
    }

    fn take(&mut self) -> Value<'a> {
        self.next += 1;
        let (field, rest) = first(self.rest).unwrap_or((Value::Null, &[]));
        self.rest = rest;
        field
    }
}

/// The first field, and the rest after it.
fn first(value: &[u8]) -> Option<(Value<'_>, &[u8])> {
    let (mark, rest) = value.split_first()?;
    let number = || rest.split_first_chunk().map(|(number, rest)| (i64::from_le_bytes(*number), rest));
    match *mark {
        NULL => Some((Value::Null, rest)),
        INT => number().map(|(number, rest)| (Value::Int(number), rest)),
        TIME => number().map(|(number, rest)| (Value::Time(number), rest)),
        BYTES => {
            let (length, rest) = rest.split_first_chunk()?;
            let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            Some((Value::Bytes(bytes), rest))
        }
        _ => None,
    }
}

/// Appends fields of a value that [`pack`] wrote to a reply as a row.
pub fn give(out: &mut Reply, value: &[u8], fields: &[usize]) {
    let mut all = Fields::of(value);
    for at in fields {
        match all.at(*at) {
            Value::Int(n) => out.push_int(n),
            Value::Time(n) => out.push_time(n),
            Value::Bytes(bytes) => out.push_bytes(bytes),
            _ => out.push_null(),
        }
    }
    out.end_row();
}

/// The `width` fields of the value `before`, with new values for some of them.
pub fn changed<'a>(
    before: &'a [u8],
    width: usize,
    fields: &[usize],
    new: &[Value<'a>],
) -> impl Iterator<Item = Value<'a>> {
    let mut old = Fields::of(before);
    let new = |at| fields.iter().position(|field| *field == at).map(|number| new[number]);
    (0..width).map(move |at| new(at).unwrap_or_else(|| old.at(at)))
}

/// Reads `width` fields from a value of `left` bytes, and appends those `wanted` (in ascending order) to the reply.
/// `false` if the value does not have the format described above.
#[inline]
pub fn read(
    from: &mut impl Source,
    left: &mut usize,
    width: usize,
    wanted: &[usize],
    out: &mut Reply,
) -> Result<bool> {
    for position in 0..width {
        let Some([mark]) = take::<1>(from, left)? else { return Ok(false) };
        let wanted = wanted.contains(&position);
        match mark {
            NULL if wanted => out.push_null(),
            NULL => {}
            INT | TIME => {
                let Some(number) = take::<8>(from, left)? else { return Ok(false) };
                let number = i64::from_le_bytes(number);
                match (wanted, mark) {
                    (false, _) => {}
                    (true, INT) => out.push_int(number),
                    (true, _) => out.push_time(number),
                }
            }
            BYTES => {
                let Some(length) = take::<4>(from, left)? else { return Ok(false) };
                let length = u32::from_le_bytes(length) as usize;
                if length > *left {
                    return Ok(false);
                }
                if wanted {
                    out.push_bytes_with(|bytes| from.append(length, bytes))?;
                } else {
                    from.skip(length)?;
                }
                *left -= length;
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The next `N` bytes; `None` if the value has fewer left.
#[inline]
fn take<const N: usize>(from: &mut impl Source, left: &mut usize) -> Result<Option<[u8; N]>> {
    if *left < N {
        return Ok(None);
    }
    *left -= N;
    from.bytes::<N>().map(Some)
}

/// Fields of a row that need no allocation.
const FEW: usize = 16;

/// Calls `work` with so many fields, all null, to be set to borrowed values and passed on.
///
/// # Errors
/// The error of `work`.
#[inline]
pub fn with_fields<'v>(count: usize, work: impl FnOnce(&mut [Value<'v>]) -> Result<()>) -> Result<()> {
    if count <= FEW { work(&mut [Value::Null; FEW][..count]) } else { work(&mut vec![Value::Null; count]) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut all = Fields::of(&row);
        let back: Vec<Value<'_>> = (0..fields.len()).map(|i| all.at(i)).collect();
        assert_eq!(back[0], Value::Bytes(b"id"));
        assert_eq!(back[1..], fields[1..]);
        assert_eq!([3, 0, 6].map(|i| all.at(i)), [back[3], back[0], Value::Null]);
        let new = [Value::Int(7), Value::Bytes(b"new")];
        let merged: Vec<Value<'_>> = changed(&row, fields.len(), &[4, 1], &new).collect();
        assert_eq!(merged, [back[0], new[1], back[2], back[3], new[0], back[5]]);
        for cut in 0..row.len() {
            assert_eq!(Fields::of(&row[..cut]).at(5), Value::Null);
        }
    }
}
