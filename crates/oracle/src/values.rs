//! Values of ours as the crate binds them, and columns of the crate's as replies hold them.
//!
//! To Oracle an empty text is no value (SQL Language Reference, "Nulls"), and so are empty bytes. What must come back
//! empty is therefore stored as one zero character, and a text of nothing but zero characters as one more of them:
//! no two texts become one, their order by bytes stays, and any other text is stored as it is.

use super::errors;
use crate::datetime::DateTime;
use crate::prelude::*;
use oracledb::{Lob, OracleTimestamp, Row, ToDbValue};
use std::io::Read;

/// A parameter as the crate takes it; the type decides what a missing value is declared as.
#[derive(Debug, PartialEq)]
pub(crate) enum Bind<'a> {
    Text(Option<&'a str>),
    /// Text of zero characters only, with one more.
    Zeros(String),
    Bytes(Option<&'a [u8]>),
    /// As [`Bind::Zeros`].
    ZeroBytes(Vec<u8>),
    Int(Option<i64>),
    Time(Option<OracleTimestamp>),
}

impl<'a> Bind<'a> {
    /// The parameter `value` for a field of this type.
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
            (kind, Value::Bool(_)) => return Err(unfit(kind, "a truth value")),
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

    /// What the crate binds.
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

fn unfit(kind: FieldType, what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("a field of type {kind:?} was given {what}"))
}

/// What [`Bind`] made of text or bytes, undone.
fn stored(bytes: &[u8]) -> &[u8] {
    match bytes {
        [0, rest @ ..] if rest.iter().all(|byte| *byte == 0) => rest,
        other => other,
    }
}

fn timestamp(micros: i64) -> Result<OracleTimestamp> {
    let at = DateTime::from_micros(micros)?;
    Ok(OracleTimestamp::new_timestamp(
        at.year as i16,
        at.month,
        at.day,
        at.hour,
        at.minute,
        at.second,
        at.micros * 1_000,
    ))
}

fn micros(at: &OracleTimestamp) -> Option<i64> {
    let year = u16::try_from(at.year()).ok()?;
    let micros = at.nanoseconds() / 1_000;
    DateTime {
        year,
        month: at.month(),
        day: at.day(),
        hour: at.hour(),
        minute: at.minute(),
        second: at.second(),
        micros,
    }
    .micros()
}

/// Appends a row of these types.
pub(crate) fn push_row(row: &mut Row, kinds: &[FieldType], out: &mut Reply) -> Result<()> {
    let found = row.columns().len();
    if found != kinds.len() {
        let message = format!("the server sent {found} columns where {} were asked for", kinds.len());
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
                Error::new(ErrorKind::Protocol, format!("the server sent {at}, which is no moment"))
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

/// Reads a LOB by its locator, in one round trip: the size came with the locator. Of characters it is a count of
/// UTF-16 units, of which each is at most three bytes of UTF-8.
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
                return Err(Error::new(
                    ErrorKind::ConnectionLost,
                    format!("a LOB could not be read: {error}"),
                ));
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

    /// What the server would hold of a text, and whether it takes it for a value at all.
    fn held(text: &str) -> String {
        match Bind::new(TEXT, &Value::Text(text)).unwrap() {
            Bind::Text(Some(text)) => text.to_owned(),
            Bind::Zeros(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_empty_text_is_a_value_and_comes_back_empty() {
        assert_eq!(held(""), "\0");
        assert_eq!(held("\0"), "\0\0");
        assert_eq!(held("\0a"), "\0a");
        assert_eq!(stored(b"\0"), b"");
        assert_eq!(stored(b""), b"");
        assert_eq!(Bind::new(FieldType::LongBytes, &Value::Bytes(b"")).unwrap(), Bind::ZeroBytes(vec![0]));
        assert_eq!(Bind::new(TEXT, &Value::Null).unwrap(), Bind::Text(None));
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
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
        fn every_text_comes_back_and_keeps_its_place(one in "[\0-\u{2}a]{0,4}", two in "[\0-\u{2}a]{0,4}") {
            let (held_one, held_two) = (held(&one), held(&two));
            prop_assert!(!held_one.is_empty());
            prop_assert_eq!(stored(held_one.as_bytes()), one.as_bytes());
            prop_assert_eq!(held_one.cmp(&held_two), one.cmp(&two));
        }

        #[test]
        fn every_moment_comes_back(at in -62_135_596_800_000_000i64..253_402_300_799_999_999) {
            prop_assert_eq!(micros(&timestamp(at).unwrap()), Some(at));
        }

        #[test]
        fn every_number_is_the_crates_number(n in any::<i64>()) {
            prop_assert_eq!(oracledb::OracleNumber::from(n).to_string(), n.to_string());
        }
    }
}
