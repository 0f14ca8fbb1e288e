//! Encoding of the fields outside a row's key as one value.
//!
//! **One such field** is the value itself, as an application stores it: bytes and text as they are, a whole number and
//! a timestamp (microseconds since 1970) in decimal digits. Redis has no null value: null is written as [`NONE`], and
//! bytes that begin with [`NONE`] are prefixed with it.
//!
//! **Several** are packed one after the other.

use crate::key::push_signed;
use crate::packed::{self, LONGEST, Source, bytes_of};
use crate::prelude::*;
use crate::wire::{Outbox, Peer};

/// The encoding of null, and the prefix of bytes that begin with it.
const NONE: &[u8; 8] = b"\0kurabe\0";

/// The encoding of a collection's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One field of this type, unpacked.
    One(FieldType),
    /// This many fields, packed.
    Packed(usize),
}

impl Default for Form {
    fn default() -> Self {
        Self::Packed(0)
    }
}

impl Form {
    /// Returns an error if a field is too long; called before anything is written.
    pub(super) fn check<'a>(mut fields: impl Iterator<Item = Value<'a>>) -> Result<()> {
        if fields.any(|field| bytes_of(&field).is_some_and(|bytes| bytes.len() > LONGEST)) {
            return Err(Error::new(ErrorKind::Limit, "a value is longer than 4 GB"));
        }
        Ok(())
    }

    /// The length of the value of these fields, in bytes.
    #[inline]
    pub(super) fn length<'a>(self, fields: impl Iterator<Item = Value<'a>>) -> usize {
        match self {
            Self::One(_) => fields.map(|field| one_length(&field)).sum(),
            Self::Packed(_) => fields.map(|field| packed::length(&field)).sum(),
        }
    }

    /// Appends the value of these fields to a request.
    #[inline]
    pub(super) fn write<'v, S: Peer>(
        self,
        out: &mut Outbox<'_, 'v, S>,
        fields: impl Iterator<Item = Value<'v>>,
    ) -> Result<()> {
        for field in fields {
            match (self, field) {
                (Self::One(_), Value::Null) => out.text.extend_from_slice(NONE),
                (Self::One(_), Value::Int(n) | Value::Time(n)) => push_signed(out.text, n),
                (Self::One(_), Value::Bool(truth)) => push_signed(out.text, i64::from(truth)),
                (Self::One(_), Value::Text(_) | Value::Bytes(_)) => {
                    let bytes = bytes_of(&field).unwrap_or_default();
                    if bytes.starts_with(NONE) {
                        out.text.extend_from_slice(NONE);
                    }
                    out.value(bytes)?;
                }
                (Self::Packed(_), field) => {
                    if let Some(bytes) = packed::push(out.text, &field) {
                        out.value(bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a value of `total` bytes and appends its fields that are `wanted` (in ascending order) to the reply. An
    /// invalid value is read completely too, so that the connection stays usable.
    #[inline]
    pub(super) fn read(
        self,
        from: &mut impl Source,
        total: usize,
        wanted: &[usize],
        out: &mut Reply,
    ) -> Result<()> {
        let mut left = total;
        let whole = match self {
            Self::One(kind) => one(from, &mut left, kind, !wanted.is_empty(), out)?,
            Self::Packed(width) => packed::read(from, &mut left, width, wanted, out)?,
        };
        if whole && left == 0 {
            return Ok(());
        }
        from.skip(left)?;
        Err(Error::mismatch(format!("a value of {total} bytes is not a row of its collection")))
    }
}

/// Reads an unpacked value; `false` if it is not of that type.
fn one(
    from: &mut impl Source,
    left: &mut usize,
    kind: FieldType,
    wanted: bool,
    out: &mut Reply,
) -> Result<bool> {
    if *left >= NONE.len() && from.look(NONE.len())? == NONE {
        from.skip(NONE.len())?;
        *left -= NONE.len();
        if *left == 0 {
            if wanted {
                out.push_null();
            }
            return Ok(true);
        }
    }
    let number = matches!(kind, FieldType::Int | FieldType::Timestamp);
    if number {
        // The longest whole number has 20 characters.
        if *left > 20 {
            return Ok(false);
        }
        let mut digits = [0; 20];
        for digit in &mut digits[..*left] {
            [*digit] = from.bytes::<1>()?;
        }
        let value = kurabe_protocol::resp::number(&digits[..*left]);
        *left = 0;
        match value {
            None => return Ok(false),
            Some(_) if !wanted => {}
            Some(value) if kind == FieldType::Int => out.push_int(value),
            Some(value) => out.push_time(value),
        }
        return Ok(true);
    }
    let length = std::mem::take(left);
    if wanted {
        out.push_bytes_with(|bytes| from.append(length, bytes))?;
    } else {
        from.skip(length)?;
    }
    Ok(true)
}

fn one_length(value: &Value<'_>) -> usize {
    match value {
        Value::Null => NONE.len(),
        Value::Int(n) | Value::Time(n) => {
            let digits = n.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
            digits + usize::from(*n < 0)
        }
        Value::Bool(_) => 1,
        Value::Text(_) | Value::Bytes(_) => {
            let bytes = bytes_of(value).unwrap_or_default();
            bytes.len() + if bytes.starts_with(NONE) { NONE.len() } else { 0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;
    use crate::wire::script::{Parts, Script};
    use proptest::prelude::*;

    fn written(form: Form, fields: &[Value<'_>]) -> Vec<u8> {
        let mut wire = Wire::new(Script::new(Vec::new()));
        let mut text = Vec::new();
        let mut out = Outbox::new(&mut wire, &mut text);
        form.write(&mut out, fields.iter().copied()).unwrap();
        out.flush().unwrap();
        let sent = wire.stream().sent.clone();
        assert_eq!(form.length(fields.iter().copied()), sent.len());
        sent
    }

    fn read(form: Form, value: &[u8], wanted: &[usize], piece: usize) -> Result<Reply> {
        let mut wire = Wire::new(Script::in_pieces([value, b"next"].concat(), piece));
        let mut out = Reply::new();
        let result = form.read(&mut wire, value.len(), wanted, &mut out);
        // The next data is found, even after an error.
        assert_eq!(wire.peek(4).unwrap(), b"next");
        let mut again = Reply::new();
        let mut slice = value;
        let same = form.read(&mut slice, value.len(), wanted, &mut again);
        assert_eq!(same, result);
        assert!(slice.is_empty());
        out.end_row();
        result.map(|()| out)
    }

    const TEXT: Form = Form::One(FieldType::LongText);

    #[test]
    fn one_field_is_written_unpacked() {
        assert_eq!(written(TEXT, &[Value::Text("hello")]), b"hello");
        assert_eq!(written(TEXT, &[Value::Bytes(b"")]), b"");
        assert_eq!(written(Form::One(FieldType::Int), &[Value::Int(-70)]), b"-70");
        assert_eq!(written(Form::One(FieldType::Timestamp), &[Value::Time(0)]), b"0");
        for form in [TEXT, Form::One(FieldType::Int)] {
            let none = read(form, &written(form, &[Value::Null]), &[0], 3).unwrap();
            assert_eq!(none.field(0, 0), Some(Value::Null));
        }
        for number in [0, 1, -1, 9, 10, i64::MIN, i64::MAX] {
            let form = Form::One(FieldType::Timestamp);
            let reply = read(form, &written(form, &[Value::Time(number)]), &[0], 3).unwrap();
            assert_eq!(reply.field(0, 0), Some(Value::Time(number)));
        }
        for wrong in [&b"1x"[..], b"", b"123456789012345678901234"] {
            let error = read(Form::One(FieldType::Int), wrong, &[0], 5).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch);
        }
    }

    #[test]
    fn bytes_that_begin_like_null_round_trip() {
        for bytes in [&NONE[..], b"\0kurabe\0\0kurabe\0", b"\0kurabe\0x", b"\0kurabe", b"\0"] {
            let reply = read(TEXT, &written(TEXT, &[Value::Bytes(bytes)]), &[0], 4).unwrap();
            assert_eq!(reply.field_bytes(0, 0), Some(bytes));
        }
    }

    #[test]
    fn packed_row_round_trips() {
        let long = vec![7; 40_000];
        let fields = [
            Value::Bytes(&[0, 255]),
            Value::Null,
            Value::Text("longer"),
            Value::Int(-1),
            Value::Time(i64::MIN),
            Value::Bytes(&long),
        ];
        let form = Form::Packed(6);
        let reply = read(form, &written(form, &fields), &[0, 1, 2, 3, 4, 5], 3_000).unwrap();
        assert_eq!(reply.field_bytes(0, 2), Some(&b"longer"[..]));
        assert_eq!(reply.field(0, 1), Some(Value::Null));
        assert_eq!(reply.field(0, 4), Some(Value::Time(i64::MIN)));
        assert_eq!(reply.field_bytes(0, 5), Some(&long[..]));
        let reply = read(form, &written(form, &fields), &[3], 100).unwrap();
        assert_eq!((reply.width(), reply.field_int(0, 0)), (1, Some(-1)));
    }

    #[test]
    fn truncated_packed_row_is_a_mismatch() {
        let whole = written(Form::Packed(2), &[Value::Text("hello"), Value::Int(1)]);
        for cut in 0..whole.len() {
            let error = read(Form::Packed(2), &whole[..cut], &[0], 100).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch, "{cut}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(read(Form::Packed(2), &longer, &[0], 100).unwrap_err().kind(), ErrorKind::Mismatch);
    }

    mod fuzz {
        use super::*;

        #[test]
        fn any_value_is_a_row_or_a_mismatch() {
            bolero::check!(name = "redis-values").for_each(|input: &[u8]| {
                let mut parts = Parts::new(input);
                let (piece, _) = parts.head();
                let value = parts.rest();
                for form in [Form::Packed(3), Form::One(FieldType::Int)] {
                    if let Err(error) = read(form, value, &[0], piece) {
                        assert_eq!(error.kind(), ErrorKind::Mismatch);
                    }
                }
            });
        }
    }

    proptest! {
        #[test]
        fn any_bytes_round_trip(value in prop::collection::vec(any::<u8>(), 0..60), marks in 0usize..3) {
            let value = [&NONE.repeat(marks)[..], &value].concat();
            let reply = read(TEXT, &written(TEXT, &[Value::Bytes(&value)]), &[0], 7).unwrap();
            prop_assert_eq!(reply.field_bytes(0, 0), Some(&value[..]));
        }
    }
}
