//! Rows as JSON documents.
//!
//! The key's fields are in the document's id only; each other field is a member with its name. Text is a string, bytes
//! are a base64 string, and a missing value is `null`. Whole numbers and timestamps (microseconds since 1970) are
//! numbers within ±(2^53 − 1) and decimal strings beyond: JavaScript, which PouchDB Server and browsers use, is exact
//! only up to there.

use super::id;
use crate::prelude::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;

/// The largest whole number that JSON implementations represent exactly: 2^53 − 1 (RFC 8259, section 6).
const LARGEST: u64 = (1 << 53) - 1;

pub(super) fn push_value(out: &mut Vec<u8>, kind: FieldType, value: &Value<'_>) -> Result<()> {
    match (kind, value) {
        (_, Value::Null) => out.extend_from_slice(b"null"),
        (FieldType::Int | FieldType::Timestamp, Value::Int(n) | Value::Time(n)) => {
            let quote = if n.unsigned_abs() > LARGEST { "\"" } else { "" };
            // Writing to a vector cannot fail.
            let _ = write!(out, "{quote}{n}{quote}");
        }
        (FieldType::Text { .. } | FieldType::LongText, Value::Text(text)) => push_text(out, text),
        (FieldType::Bytes { .. } | FieldType::LongBytes, Value::Text(text)) => {
            push_base64(out, text.as_bytes())?;
        }
        (FieldType::Bytes { .. } | FieldType::LongBytes, Value::Bytes(bytes)) => push_base64(out, bytes)?,
        _ => return Err(Error::new(ErrorKind::Internal, "a parameter is not of its field's type")),
    }
    Ok(())
}

/// Appends a string with its quotes.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    // Serializing a string to a vector cannot fail.
    let _ = serde_json::to_writer(out, text);
}

fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let too_long = || Error::new(ErrorKind::Limit, "a value is too long for memory");
    let length = base64::encoded_len(bytes.len(), true).ok_or_else(too_long)?;
    out.push(b'"');
    let start = out.len();
    out.resize(start + length, 0);
    STANDARD.encode_slice(bytes, &mut out[start..]).map_err(|_| too_long())?;
    out.push(b'"');
    Ok(())
}

/// Writes a document, member by member.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Writer<'a> {
    /// Starts a document, with the revision that it replaces, if any.
    pub(super) fn new(out: &'a mut Vec<u8>, revision: Option<&str>) -> Self {
        out.push(b'{');
        let mut writer = Self { out, empty: true };
        if let Some(revision) = revision {
            push_text(writer.name("_rev"), revision);
        }
        writer
    }

    /// Appends a field's name and returns the buffer for its value.
    pub(super) fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        push_text(self.out, name);
        self.out.push(b':');
        self.out
    }

    pub(super) fn end(self) {
        self.out.push(b'}');
    }
}

/// A value of an answer; text is copied only if it contains escapes.
#[derive(Debug, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Int(i64),
    Text(Cow<'a, str>),
    /// A type that Kurabe does not write.
    Other,
}

impl Json<'_> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Appends the value as JSON.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null | Self::Other => out.extend_from_slice(b"null"),
            Self::Int(n) => {
                let _ = write!(out, "{n}");
            }
            Self::Text(text) => push_text(out, text),
        }
    }

    /// Appends the value to the current row of a reply, as a field of this type.
    fn reply(&self, kind: FieldType, out: &mut Reply) -> Option<()> {
        match (kind, self) {
            (_, Self::Null) => out.push_null(),
            (FieldType::Int, _) => out.push_int(self.number()?),
            (FieldType::Timestamp, _) => out.push_time(self.number()?),
            (FieldType::Text { .. } | FieldType::LongText, Self::Text(text)) => {
                out.push_bytes(text.as_bytes());
            }
            (_, Self::Text(text)) => {
                out.push_bytes_with(|bytes| STANDARD.decode_vec(text.as_bytes(), bytes)).ok()?;
            }
            _ => return None,
        }
        Some(())
    }

    fn number(&self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(*n),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json<'de>, E> {
        Ok(Json::Other)
    }

    fn visit_i64<E>(self, n: i64) -> Result<Json<'de>, E> {
        Ok(Json::Int(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Json<'de>, E> {
        Ok(i64::try_from(n).map_or(Json::Other, Json::Int))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json<'de>, E> {
        Ok(Json::Other)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Json<'de>, A::Error> {
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Json::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Json<'de>, A::Error> {
        while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Json::Other)
    }
}

/// The name of a member; copied only if it contains escapes.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object's members.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Object<'a>(#[serde(borrow)] BTreeMap<Name<'a>, Json<'a>>);

impl<'a> Object<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.0.iter().find(|(known, _)| known.0 == name).map(|(_, value)| value)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Json::text)
    }

    /// A member that is a whole number, or its decimal text, as in settings.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Json::number)
    }

    /// Appends the document to a reply, as a row of these fields.
    pub(super) fn reply(&self, collection: &Collection, fields: &[usize], out: &mut Reply) -> Result<()> {
        let id = self.text("_id").ok_or_else(|| Error::mismatch("a document has no id"))?;
        for &position in fields {
            let field = &collection.fields[position];
            if let Some(place) = collection.key.iter().position(|key| *key == position) {
                id::reply(id, place, field.kind, out)?;
                continue;
            }
            let value = self.get(field.name).unwrap_or(&Json::Null);
            value.reply(field.kind, out).ok_or_else(|| {
                Error::mismatch(format!("field {} of document '{id}' is not what was stored", field.name))
            })?;
        }
        out.end_row();
        Ok(())
    }
}

/// The answer of `_all_docs`.
#[derive(Debug, Deserialize)]
pub(super) struct AllDocs<'a> {
    #[serde(borrow)]
    pub(super) rows: Vec<Listed<'a>>,
}

/// One document of `_all_docs`.
#[derive(Debug, Deserialize)]
pub(super) struct Listed<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    /// Present if documents were requested; `null` for one that was removed meanwhile.
    #[serde(borrow, default)]
    pub(super) doc: Option<Object<'a>>,
}

/// The answer of `_find`.
#[derive(Debug, Deserialize)]
pub(super) struct Found<'a> {
    #[serde(borrow)]
    pub(super) docs: Vec<Object<'a>>,
}

/// Parses an answer as JSON of this type.
pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        Error::new(ErrorKind::Protocol, format!("the server's answer is not CouchDB's JSON: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::collection::Field;
    use proptest::prelude::*;

    fn collection() -> Collection {
        let fields = [
            ("id", FieldType::Text { max: 9 }),
            ("word", FieldType::LongText),
            ("data", FieldType::LongBytes),
            ("number", FieldType::Int),
            ("at", FieldType::Timestamp),
        ];
        Collection::new("kurabe_a", fields.map(|(name, kind)| Field { name, kind }).to_vec(), vec![0])
    }

    fn written(row: &[Value<'_>]) -> Vec<u8> {
        let (mut out, collection) = (Vec::new(), collection());
        let mut writer = Writer::new(&mut out, Some("1-a"));
        push_text(writer.name("_id"), "!k");
        for (field, value) in collection.fields.iter().zip(row).skip(1) {
            push_value(writer.name(field.name), field.kind, value).unwrap();
        }
        writer.end();
        out
    }

    #[test]
    fn row_is_written_as_plain_json() {
        let row = [
            Value::Null,
            Value::Text("a\"ü\n"),
            Value::Bytes(b"\0\xff"),
            Value::Int(-5),
            Value::Time(1 << 53),
        ];
        assert_eq!(
            String::from_utf8(written(&row)).unwrap(),
            r#"{"_rev":"1-a","_id":"!k","word":"a\"ü\n","data":"AP8=","number":-5,"at":"9007199254740992"}"#
        );
        assert!(push_value(&mut Vec::new(), FieldType::Int, &Value::Text("5")).is_err());
    }

    #[test]
    fn document_with_other_types_is_a_mismatch() {
        for body in [
            r#"{"_id":"!k","number":"five"}"#,
            r#"{"_id":"!k","data":"%%"}"#,
            r#"{"_id":"!k","word":[1,{"a":2}]}"#,
            r#"{"word":"no id"}"#,
        ] {
            let object: Object<'_> = parse(body.as_bytes()).unwrap();
            let error = object.reply(&collection(), &[1, 2, 3], &mut Reply::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch, "{body}");
        }
        let error = parse::<Object<'_>>(b"<html>").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol);
    }

    mod fuzz {
        use super::super::super::{config::Config, errors};
        use super::*;
        use crate::wire::script::Parts;

        const WORDS: &[&str] = &[
            "{", "}", "[", "]", ":", ",", "\"_id\":", "\"!k\"", "\"_rev\":\"1-a\"", "\"word\":", "\"data\":",
            "\"AP8=\"", "\"number\":", "\"at\":", "\"9007199254740992\"", "null", "-1", "1e400",
            "\"\\ud800\"", "\"rows\":", "\"id\":", "\"doc\":", "\"docs\":", "true", "\"error\":",
            "\"reason\":", "\"missing\"",
        ];

        /// The body is the input itself, or text with words of a document.
        #[test]
        fn any_body_is_read_or_refused() {
            bolero::check!(name = "couchdb-documents").for_each(|input: &[u8]| {
                let mut parts = Parts::new(input);
                let (_, with_words) = parts.head();
                let body = if with_words { parts.words(WORDS) } else { parts.rest().to_vec() };
                let config = Config::from_url(&TargetUrl::parse("couchdb://h").unwrap()).unwrap();
                for status in [200, 401, 404, 413, 500] {
                    let _ = errors::of_answer(status, &body, &config);
                }
                let _ = errors::reason(&body);
                let (collection, all) = (collection(), [0, 1, 2, 3, 4]);
                let reply = |object: &Object<'_>| {
                    let _ = object.reply(&collection, &all, &mut Reply::new());
                };
                let _ = parse::<Object<'_>>(&body).map(|object| reply(&object));
                let _ = parse::<Found<'_>>(&body).map(|found| found.docs.iter().for_each(reply));
                let _ = parse::<AllDocs<'_>>(&body)
                    .map(|listed| listed.rows.iter().filter_map(|row| row.doc.as_ref()).for_each(reply));
            });
        }
    }

    proptest! {
        #[test]
        fn values_round_trip(
            word in ".{0,20}", data in prop::collection::vec(any::<u8>(), 0..40), number: i64, at: i64,
        ) {
            let row = [Value::Null, Value::Text(&word), Value::Bytes(&data), Value::Int(number), Value::Time(at)];
            let body = written(&row);
            let object: Object<'_> = parse(&body).unwrap();
            let mut out = Reply::new();
            object.reply(&collection(), &[4, 0, 1, 2, 3], &mut out).unwrap();
            prop_assert_eq!(out.field(0, 0), Some(Value::Time(at)));
            prop_assert_eq!(out.field_bytes(0, 1), Some(&b"k"[..]));
            prop_assert_eq!(out.field_bytes(0, 2), Some(word.as_bytes()));
            prop_assert_eq!(out.field_bytes(0, 3), Some(&data[..]));
            prop_assert_eq!(out.field_int(0, 4), Some(number));
        }
    }
}
