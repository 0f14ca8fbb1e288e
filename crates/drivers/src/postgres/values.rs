//! Encoding of values by type OID (`pg_type.dat`): binary for the types of Kurabe's tables, text for all others, which
//! custom tables may have.

use crate::prelude::*;
use std::io::Write as _;

/// Microseconds from 1970-01-01 to 2000-01-01, PostgreSQL's epoch.
const EPOCH: i64 = 946_684_800_000_000;

/// Wire format of a type's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Binary: a big-endian integer of this many bytes.
    Int(u8),
    /// Binary: microseconds since 2000-01-01, eight bytes.
    Time,
    /// Binary: text or bytes, unchanged.
    Bytes,
    /// The text format, which every type has.
    Text,
    /// An integer in the text format.
    Digits,
}

/// The name of a type (`pg_type.dat`).
pub(crate) fn type_name(number: u32) -> &'static str {
    match number {
        16 => "boolean",
        17 => "bytea",
        18 => "\"char\"",
        19 => "name",
        20 => "bigint",
        21 => "smallint",
        23 => "integer",
        25 => "text",
        114 => "json",
        700 => "real",
        701 => "double precision",
        705 => "unknown",
        1042 => "character",
        1043 => "character varying",
        1082 => "date",
        1083 => "time",
        1114 => "timestamp",
        1184 => "timestamp with time zone",
        1186 => "interval",
        1700 => "numeric",
        2950 => "uuid",
        3802 => "jsonb",
        _ => "of another type",
    }
}

impl Form {
    pub(crate) fn of(type_number: u32) -> Self {
        match type_number {
            20 => Self::Int(8),
            23 => Self::Int(4),
            21 => Self::Int(2),
            1114 | 1184 => Self::Time,
            // bytea, "char", name, text, json, xml, unknown, char, varchar: no conversion needed.
            17 | 18 | 19 | 25 | 114 | 142 | 705 | 1042 | 1043 => Self::Bytes,
            _ => Self::Text,
        }
    }

    /// The form for the same values in the text format.
    pub(crate) fn as_text(self) -> Self {
        match self {
            Self::Int(_) | Self::Digits => Self::Digits,
            Self::Time | Self::Bytes | Self::Text => Self::Text,
        }
    }

    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Int(_) | Self::Time | Self::Bytes)
    }

    pub(crate) fn push(self, bytes: &[u8], out: &mut Reply) -> Result<()> {
        match self {
            Self::Int(_) => out.push_int(whole(bytes)?),
            Self::Time => out.push_time(unix_micros(bytes)?),
            Self::Digits => out.push_int(digits(bytes)?),
            Self::Bytes | Self::Text => out.push_bytes(bytes),
        }
        Ok(())
    }

    /// A value that borrows its text or bytes.
    #[inline]
    pub(crate) fn value(self, bytes: &[u8]) -> Result<Value<'_>> {
        Ok(match self {
            Self::Int(_) => Value::Int(whole(bytes)?),
            Self::Time => Value::Time(unix_micros(bytes)?),
            Self::Digits => Value::Int(digits(bytes)?),
            Self::Bytes | Self::Text => Value::Bytes(bytes),
        })
    }

    /// Encodes a parameter, without its length. Text and bytes are borrowed, so long values need no copy.
    pub(crate) fn encode<'a>(self, value: &Value<'a>) -> Result<Encoded<'a>> {
        Ok(match (self, *value) {
            (_, Value::Null) => Encoded::Null,
            (Self::Text | Self::Digits, Value::Int(n)) => Encoded::Short(ShortText::of_int(n)),
            (Self::Text, Value::Time(micros)) => Encoded::Short(ShortText::of_time(micros)?),
            (Self::Text, Value::Bool(truth)) => Encoded::Slice(if truth { b"true" } else { b"false" }),
            (Self::Bytes | Self::Text, Value::Bytes(bytes)) => Encoded::Slice(bytes),
            (Self::Bytes | Self::Text, Value::Text(text)) => Encoded::Slice(text.as_bytes()),
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
                let message = format!("a parameter of form {form:?} was given {}", value.type_name());
                return Err(Error::new(ErrorKind::Internal, message));
            }
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoded<'a> {
    Null,
    Two([u8; 2]),
    Four([u8; 4]),
    Eight([u8; 8]),
    Short(ShortText),
    Slice(&'a [u8]),
}

/// A short text without allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortText {
    text: [u8; Self::MAX],
    from: usize,
}

impl ShortText {
    /// The length of `2009-02-13 23:31:30.123456+00`.
    const MAX: usize = 29;

    fn of_int(number: i64) -> Self {
        let mut digits = Self { text: [b'0'; Self::MAX], from: Self::MAX };
        let mut rest = number.unsigned_abs();
        while rest > 0 || digits.from == Self::MAX {
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

    /// Writes a timestamp with its zone, so that the session's does not matter. A `date` uses only the day.
    fn of_time(micros: i64) -> Result<Self> {
        let mut text = [0; Self::MAX];
        write!(&mut text[..], "{}+00", DateTime::from_micros(micros)?)
            .map_err(|_| out_of_range("timestamp"))?;
        Ok(Self { text, from: 0 })
    }

    fn as_bytes(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

impl Encoded<'_> {
    /// The bytes; `None` for NULL.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Null => None,
            Self::Two(bytes) => Some(bytes),
            Self::Four(bytes) => Some(bytes),
            Self::Eight(bytes) => Some(bytes),
            Self::Short(text) => Some(text.as_bytes()),
            Self::Slice(bytes) => Some(bytes),
        }
    }
}

fn out_of_range(what: &str) -> Error {
    Error::usage(format!("a value is out of the range of {what}"))
}

/// Microseconds since 1970. The ends of the range mean "infinity" and "-infinity".
fn unix_micros(bytes: &[u8]) -> Result<i64> {
    whole(bytes)?.checked_add(EPOCH).ok_or_else(|| malformed("a timestamp out of range"))
}

fn digits(text: &[u8]) -> Result<i64> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| malformed("an invalid integer"))
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
        fn encoded_values_round_trip(n in any::<i64>(), micros in -62_135_596_800_000_000i64..253_402_300_800_000_000) {
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
        fn text_format_of_a_number_is_its_digits(n in any::<i64>()) {
            for n in [n, n >> 40, 0, i64::MIN, i64::MAX] {
                let encoded = Form::Text.encode(&Value::Int(n)).unwrap();
                let text = n.to_string();
                prop_assert_eq!(encoded.bytes().unwrap(), text.as_bytes());
                let mut reply = Reply::new();
                Form::of(20).as_text().push(text.as_bytes(), &mut reply).unwrap();
                reply.end_row();
                prop_assert_eq!(reply.field(0, 0), Some(Value::Int(n)));
            }
        }
    }

    #[test]
    fn other_types_use_text_format() {
        // uuid, jsonb, numeric, date, bool, double precision, an enumeration
        for kind in [2950, 3802, 1700, 1082, 16, 701, 16_384] {
            assert_eq!(Form::of(kind), Form::Text, "{kind}");
        }
        let text = |value| Form::Text.encode(&value).unwrap().bytes().unwrap().to_vec();
        assert_eq!(text(Value::Time(1_234_567_890_123_456)), b"2009-02-13 23:31:30.123456+00");
        assert_eq!(text(Value::Bool(true)), b"true");
        assert_eq!(text(Value::Text("1.5")), b"1.5");
        assert!(Form::Text.encode(&Value::Time(i64::MAX)).is_err());
    }

    #[test]
    fn value_of_wrong_type_is_rejected_without_showing_it() {
        let error = Form::of(20).encode(&Value::Text("hunter2")).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(Form::of(23).encode(&Value::Int(i64::MAX)).is_err());
    }
}
