//! Conversion of parameters to the crate's binds, and of the crate's columns to replies.
//!
//! Oracle treats empty text as NULL (SQL Language Reference, "Nulls"), and empty bytes too. An empty value is therefore
//! stored as one zero character, and a text of zero characters only with one more of them. This keeps texts distinct
//! and in byte order. All other texts are stored unchanged.

use super::errors;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::unfit;
use oracledb::{Lob, OracleTimestamp, Row, ToDbValue};
use std::io::Read;

/// A parameter for the crate. The type also decides the declared type of NULL.
#[derive(Debug, PartialEq)]
pub(crate) enum Bind<'a> {
    Text(Option<&'a str>),
    /// Text of zero characters only, with one added.
    Zeros(String),
    Bytes(Option<&'a [u8]>),
    /// Bytes, like [`Bind::Zeros`].
    ZeroBytes(Vec<u8>),
    Int(Option<i64>),
    Time(Option<OracleTimestamp>),
}

impl<'a> Bind<'a> {
    /// Converts `value` for a field of this type.
    pub(crate) fn new(kind: FieldType, value: &Value<'a>) -> Result<Self> {
        Ok(match (kind, value) {
            (FieldType::Text { .. } | FieldType::LongText, Value::Null) => Self::Text(None),
            (FieldType::Text { .. } | FieldType::LongText, Value::Text(text)) => Self::text(text),
            (FieldType::Text { .. } | FieldType::LongText, Value::Bytes(bytes)) => {
                Self::text(std::str::from_utf8(bytes).map_err(|_| unfit(kind, "bytes that are not UTF-8"))?)
            }
            (FieldType::Bytes { .. } | FieldType::LongBytes, Value::Null) => Self::Bytes(None),
            (FieldType::Bytes { .. } | FieldType::LongBytes, Value::Bytes(bytes)) => Self::bytes(bytes),
            (FieldType::Bytes { .. } | FieldType::LongBytes, Value::Text(text)) => {
                Self::bytes(text.as_bytes())
            }
            (FieldType::Int, Value::Null) => Self::Int(None),
            (FieldType::Int, Value::Int(number)) => Self::Int(Some(*number)),
            (FieldType::Timestamp, Value::Null) => Self::Time(None),
            (FieldType::Timestamp, Value::Time(micros)) => Self::Time(Some(timestamp(*micros)?)),
            (kind, Value::Int(_)) => return Err(unfit(kind, "a number")),
            (kind, Value::Time(_)) => return Err(unfit(kind, "a timestamp")),
            (kind, Value::Bool(_)) => return Err(unfit(kind, "a boolean")),
            (kind, Value::Text(_) | Value::Bytes(_)) => return Err(unfit(kind, "text or bytes")),
        })
    }

    fn text(text: &'a str) -> Self {
        if text.bytes().all(|byte| byte == 0) {
            Self::Zeros("\0".repeat(text.len() + 1))
        } else {
            Self::Text(Some(text))
        }
    }

    fn bytes(bytes: &'a [u8]) -> Self {
        if bytes.iter().all(|byte| *byte == 0) {
            Self::ZeroBytes(vec![0; bytes.len() + 1])
        } else {
            Self::Bytes(Some(bytes))
        }
    }

    pub(crate) fn as_crate(&self) -> &(dyn ToDbValue + '_) {
        match self {
            Self::Text(value) => value,
            Self::Zeros(value) => value,
            Self::Bytes(value) => value,
            Self::ZeroBytes(value) => value,
            Self::Int(value) => value,
            Self::Time(value) => value,
        }
    }
}

/// Reverses the encoding of [`Bind`] for text or bytes.
fn stored(bytes: &[u8]) -> &[u8] {
    match bytes {
        [0, rest @ ..] if rest.iter().all(|byte| *byte == 0) => rest,
        other => other,
    }
}

fn timestamp(micros: i64) -> Result<OracleTimestamp> {
    let DateTime { year, month, day, hour, minute, second, micros } = DateTime::from_micros(micros)?;
    Ok(OracleTimestamp::new_timestamp(year as i16, month, day, hour, minute, second, micros * 1_000))
}

fn micros(at: &OracleTimestamp) -> Option<i64> {
    let (year, month, day) = (u16::try_from(at.year()).ok()?, at.month(), at.day());
    let (hour, minute, second, micros) = (at.hour(), at.minute(), at.second(), at.nanoseconds() / 1_000);
    DateTime { year, month, day, hour, minute, second, micros }.micros()
}

pub(crate) fn push_row(row: &mut Row, kinds: &[FieldType], out: &mut Reply) -> Result<()> {
    let found = row.columns().len();
    if found != kinds.len() {
        let message = format!("the server sent {found} columns, expected {}", kinds.len());
        return Err(Error::new(ErrorKind::Protocol, message));
    }
    for (column, kind) in kinds.iter().enumerate() {
        push(row, column, *kind, out)?;
    }
    out.end_row();
    Ok(())
}

fn push(row: &mut Row, column: usize, kind: FieldType, out: &mut Reply) -> Result<()> {
    let failed = |error: oracledb::Error| errors::executing(&error);
    let is_locator = {
        let kind = row.columns()[column].db_type();
        *kind == *oracledb::DB_TYPE_CLOB || *kind == *oracledb::DB_TYPE_BLOB
    };
    match kind {
        FieldType::Int => match row.get::<Option<i64>>(column).map_err(failed)? {
            Some(number) => out.push_int(number),
            None => out.push_null(),
        },
        FieldType::Timestamp => match row.get::<Option<OracleTimestamp>>(column).map_err(failed)? {
            Some(at) => out.push_time(micros(&at).ok_or_else(|| {
                Error::new(ErrorKind::Protocol, format!("the server sent an invalid timestamp, {at}"))
            })?),
            None => out.push_null(),
        },
        _ if is_locator => match row.take::<Option<Lob>>(column).map_err(failed)? {
            Some(mut lob) => push_lob(&mut lob, out)?,
            None => out.push_null(),
        },
        FieldType::Text { .. } | FieldType::LongText => {
            match row.get::<Option<&str>>(column).map_err(failed)? {
                Some(text) => out.push_bytes(stored(text.as_bytes())),
                None => out.push_null(),
            }
        }
        FieldType::Bytes { .. } | FieldType::LongBytes => {
            match row.get::<Option<&[u8]>>(column).map_err(failed)? {
                Some(bytes) => out.push_bytes(stored(bytes)),
                None => out.push_null(),
            }
        }
    }
    Ok(())
}

/// Reads a LOB by its locator, in one round trip, because the locator includes the size. A CLOB's size is in UTF-16
/// units, each at most three bytes of UTF-8.
fn push_lob(lob: &mut Lob, out: &mut Reply) -> Result<()> {
    let size = lob.get_size().map_err(|error| errors::executing(&error))?;
    let room = if *lob.db_type() == *oracledb::DB_TYPE_CLOB { size.saturating_mul(3) } else { size };
    let mut bytes = vec![0; room];
    let mut read = 0;
    while read < bytes.len() {
        match lob.read(&mut bytes[read..]) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) => {
                let message = format!("a LOB could not be read: {error}");
                return Err(Error::new(ErrorKind::ConnectionLost, message));
            }
        }
    }
    out.push_bytes(stored(&bytes[..read]));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: FieldType = FieldType::Text { max: 10 };

    /// The text that the server stores.
    fn encoded(text: &str) -> String {
        match Bind::new(TEXT, &Value::Text(text)).unwrap() {
            Bind::Text(Some(text)) => text.to_owned(),
            Bind::Zeros(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn empty_text_is_not_null_and_is_returned_empty() {
        assert_eq!(encoded(""), "\0");
        assert_eq!(encoded("\0"), "\0\0");
        assert_eq!(encoded("\0a"), "\0a");
        assert_eq!(stored(b"\0"), b"");
        assert_eq!(stored(b""), b"");
        assert_eq!(Bind::new(FieldType::LongBytes, &Value::Bytes(b"")).unwrap(), Bind::ZeroBytes(vec![0]));
        assert_eq!(Bind::new(TEXT, &Value::Null).unwrap(), Bind::Text(None));
    }

    #[test]
    fn value_of_wrong_type_is_rejected() {
        for (kind, value) in [
            (FieldType::Int, Value::Text("1")),
            (FieldType::Timestamp, Value::Int(1)),
            (TEXT, Value::Int(1)),
            (TEXT, Value::Bytes(b"\xff")),
            (FieldType::LongBytes, Value::Time(1)),
            (FieldType::Timestamp, Value::Time(i64::MAX)),
        ] {
            assert!(Bind::new(kind, &value).is_err(), "{kind:?} {value:?}");
        }
    }

    proptest! {
        #[test]
        fn texts_round_trip_and_keep_order(one in "[\0-\u{2}a]{0,4}", two in "[\0-\u{2}a]{0,4}") {
            let (encoded_one, encoded_two) = (encoded(&one), encoded(&two));
            prop_assert!(!encoded_one.is_empty());
            prop_assert_eq!(stored(encoded_one.as_bytes()), one.as_bytes());
            prop_assert_eq!(encoded_one.cmp(&encoded_two), one.cmp(&two));
        }

        #[test]
        fn timestamps_round_trip(at in -62_135_596_800_000_000i64..253_402_300_799_999_999) {
            prop_assert_eq!(micros(&timestamp(at).unwrap()), Some(at));
        }

        #[test]
        fn integers_equal_numbers_of_the_crate(n in any::<i64>()) {
            prop_assert_eq!(oracledb::OracleNumber::from(n).to_string(), n.to_string());
        }
    }
}
