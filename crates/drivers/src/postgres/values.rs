//! Binary values of the few types that Kurabe's tables have, by type number (`pg_type.dat`).

use crate::prelude::*;
use crate::wire::malformed;

/// Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL's time begins.
const EPOCH: i64 = 946_684_800_000_000;

/// How a type's binary form is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A whole number of so many bytes, big endian.
    Int(u8),
    /// Microseconds since 2000-01-01, eight bytes.
    Time,
    /// Text or bytes, as they are.
    Bytes,
    /// Anything, shown as text.
    Shown,
}

impl Form {
    /// The form of a type.
    pub(crate) fn of(type_number: u32) -> Self {
        match type_number {
            20 => Self::Int(8),
            23 => Self::Int(4),
            21 => Self::Int(2),
            1114 | 1184 => Self::Time,
            _ => Self::Bytes,
        }
    }

    /// Appends a field that is no text or bytes to the reply's row.
    pub(crate) fn push(self, bytes: &[u8], out: &mut Reply) -> Result<()> {
        match self {
            Self::Int(_) => out.push_int(whole(bytes)?),
            Self::Time => {
                let micros = whole(bytes)?;
                // The two ends of the range mean "infinity".
                out.push_time(micros.checked_add(EPOCH).ok_or_else(|| malformed("a moment out of range"))?);
            }
            Self::Bytes | Self::Shown => out.push_bytes(bytes),
        }
        Ok(())
    }

    /// Appends a parameter to `out`, without its length; `None` where it has no value. Text and bytes are left to
    /// the caller as a slice, so that long ones need no copy.
    pub(crate) fn encode<'a>(self, value: &Value<'a>) -> Result<Encoded<'a>> {
        Ok(match (self, *value) {
            (_, Value::Null) => Encoded::Null,
            (Self::Shown, Value::Int(n)) => Encoded::Digits(Digits::of(n)),
            (Self::Shown, Value::Bool(truth)) => Encoded::Slice(if truth { b"true" } else { b"false" }),
            (Self::Bytes | Self::Shown, Value::Bytes(bytes)) => Encoded::Slice(bytes),
            (Self::Bytes | Self::Shown, Value::Text(text)) => Encoded::Slice(text.as_bytes()),
            (Self::Int(8), Value::Int(n)) => Encoded::Eight(n.to_be_bytes()),
            (Self::Int(4), Value::Int(n)) => {
                Encoded::Four(i32::try_from(n).map_err(|_| out_of_range("integer"))?.to_be_bytes())
            }
            (Self::Int(_), Value::Int(n)) => {
                Encoded::Two(i16::try_from(n).map_err(|_| out_of_range("smallint"))?.to_be_bytes())
            }
            (Self::Time, Value::Time(micros)) => {
                let micros = micros.checked_sub(EPOCH).ok_or_else(|| out_of_range("timestamp"))?;
                Encoded::Eight(micros.to_be_bytes())
            }
            (form, value) => {
                let message = format!("a parameter of the form {form:?} was given {}", kind_of(&value));
                return Err(Error::new(ErrorKind::Internal, message));
            }
        })
    }
}

/// A parameter's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoded<'a> {
    Null,
    Two([u8; 2]),
    Four([u8; 4]),
    Eight([u8; 8]),
    Digits(Digits),
    Slice(&'a [u8]),
}

/// A whole number as text, in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    text: [u8; 20],
    from: usize,
}

impl Digits {
    fn of(number: i64) -> Self {
        let mut digits = Self { text: [b'0'; 20], from: 20 };
        let mut rest = number.unsigned_abs();
        while rest > 0 || digits.from == 20 {
            digits.from -= 1;
            digits.text[digits.from] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        if number < 0 {
            digits.from -= 1;
            digits.text[digits.from] = b'-';
        }
        digits
    }

    fn as_bytes(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

impl Encoded<'_> {
    /// The bytes; none where there is no value.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Null => None,
            Self::Two(bytes) => Some(bytes),
            Self::Four(bytes) => Some(bytes),
            Self::Eight(bytes) => Some(bytes),
            Self::Digits(digits) => Some(digits.as_bytes()),
            Self::Slice(bytes) => Some(bytes),
        }
    }
}

/// What a value is, without its content.
fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "no value",
        Value::Int(_) => "a whole number",
        Value::Text(_) => "text",
        Value::Bytes(_) => "bytes",
        Value::Time(_) => "a timestamp",
        Value::Bool(_) => "a truth value",
    }
}

fn out_of_range(what: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("a value is out of the range of {what}"))
}

fn whole(bytes: &[u8]) -> Result<i64> {
    if let Ok(eight) = bytes.try_into() {
        return Ok(i64::from_be_bytes(eight));
    }
    if let Ok(four) = bytes.try_into() {
        return Ok(i32::from_be_bytes(four).into());
    }
    let two = bytes.try_into().map_err(|_| malformed(format!("a number of {} bytes", bytes.len())))?;
    Ok(i16::from_be_bytes(two).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_again(n in any::<i64>(), micros in -62_135_596_800_000_000i64..253_402_300_800_000_000) {
            let mut reply = Reply::new();
            let int = Form::of(20).encode(&Value::Int(n)).unwrap();
            Form::of(20).push(int.bytes().unwrap(), &mut reply).unwrap();
            let time = Form::of(1184).encode(&Value::Time(micros)).unwrap();
            Form::of(1184).push(time.bytes().unwrap(), &mut reply).unwrap();
            reply.end_row();
            prop_assert_eq!(reply.field(0, 0), Some(Value::Int(n)));
            prop_assert_eq!(reply.field(0, 1), Some(Value::Time(micros)));
        }

        #[test]
        fn a_shown_number_is_the_numbers_own_text(n in any::<i64>()) {
            for n in [n, n >> 40, 0, i64::MIN, i64::MAX] {
                let shown = Form::Shown.encode(&Value::Int(n)).unwrap();
                let text = n.to_string();
                prop_assert_eq!(shown.bytes().unwrap(), text.as_bytes());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(kind in prop::sample::select(vec![20u32, 21, 23, 1184, 25]), bytes: Vec<u8>) {
            let _ = Form::of(kind).push(&bytes, &mut Reply::new());
        }
    }

    #[test]
    fn a_value_of_another_kind_is_refused_without_showing_it() {
        let error = Form::of(20).encode(&Value::Text("hunter2")).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(Form::of(23).encode(&Value::Int(i64::MAX)).is_err());
    }
}
