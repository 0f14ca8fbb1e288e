//! Writes commands as BSON, field by field, into one buffer. Each value is copied once, at any depth of the command.
//! Source: <https://bsonspec.org/spec.html>.

use kurabe_core::value::Value;
use mongodb::bson::RawDocumentBuf;
use mongodb::bson::oid::ObjectId;

const STRING: u8 = 0x02;
const DOCUMENT: u8 = 0x03;
const ARRAY: u8 = 0x04;
const BINARY: u8 = 0x05;
const OBJECT_ID: u8 = 0x07;
const BOOL: u8 = 0x08;
const NULL: u8 = 0x0a;
const INT32: u8 = 0x10;
const INT64: u8 = 0x12;

/// A document that is being written. The clone of a partial document serves as a template.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    /// Offsets of the open documents, outermost first.
    open: Vec<usize>,
}

impl Writer {
    /// An empty document, open.
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; 4], open: vec![0] }
    }

    /// A copy of the partial document, with capacity for these values and for the fields of `last`.
    pub(super) fn continued(&self, values: &[Value<'_>], last: &Self) -> Self {
        let length = |value: &Value<'_>| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 8,
        };
        let more = values.iter().map(|value| length(value) + 24).sum::<usize>() + 64 + last.bytes.len();
        let mut bytes = Vec::with_capacity(self.bytes.len() + more);
        bytes.extend_from_slice(&self.bytes);
        Self { bytes, open: self.open.clone() }
    }

    /// Closes all nested documents, and appends the fields of `last`, which are closed.
    pub(super) fn append_last(&mut self, last: &Self) {
        while self.open.len() > 1 {
            self.end();
        }
        self.bytes.extend_from_slice(&last.bytes[4..]);
    }

    /// Appends a field with the bytes of its value, or the first of them.
    fn field(&mut self, kind: u8, name: &str, value: &[u8]) -> &mut Self {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.bytes.extend_from_slice(value);
        self
    }

    /// Opens a nested document; [`Writer::end`] closes it.
    pub(super) fn begin(&mut self, name: &str) -> &mut Self {
        self.begin_as(DOCUMENT, name)
    }

    /// Opens an array, whose elements are named "0", "1", …
    pub(super) fn begin_array(&mut self, name: &str) -> &mut Self {
        self.begin_as(ARRAY, name)
    }

    fn begin_as(&mut self, kind: u8, name: &str) -> &mut Self {
        self.field(kind, name, &[0; 4]);
        self.open.push(self.bytes.len() - 4);
        self
    }

    /// Closes the innermost open document or array.
    pub(super) fn end(&mut self) -> &mut Self {
        self.bytes.push(0);
        if let Some(start) = self.open.pop() {
            let length = (self.bytes.len() - start) as i32;
            self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
        }
        self
    }

    pub(super) fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.field(STRING, name, &(text.len() as i32 + 1).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self
    }

    pub(super) fn int(&mut self, name: &str, n: i32) -> &mut Self {
        self.field(INT32, name, &n.to_le_bytes())
    }

    pub(super) fn long(&mut self, name: &str, n: i64) -> &mut Self {
        self.field(INT64, name, &n.to_le_bytes())
    }

    pub(super) fn bool(&mut self, name: &str, value: bool) -> &mut Self {
        self.field(BOOL, name, &[u8::from(value)])
    }

    pub(super) fn null(&mut self, name: &str) -> &mut Self {
        self.field(NULL, name, &[])
    }

    pub(super) fn object_id(&mut self, name: &str, id: ObjectId) -> &mut Self {
        self.field(OBJECT_ID, name, &id.bytes())
    }

    fn binary(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        self.field(BINARY, name, &(bytes.len() as i32).to_le_bytes());
        // The generic subtype.
        self.bytes.push(0);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Writes a field of a row. A timestamp is a whole number of microseconds: BSON dates have milliseconds.
    pub(super) fn value(&mut self, name: &str, value: &Value<'_>) -> &mut Self {
        match value {
            Value::Null => self.null(name),
            Value::Int(n) | Value::Time(n) => self.long(name, *n),
            Value::Bool(truth) => self.long(name, i64::from(*truth)),
            Value::Text(text) => self.text(name, text),
            Value::Bytes(bytes) => self.binary(name, bytes),
        }
    }

    /// The bytes so far.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn finish(mut self) -> mongodb::error::Result<RawDocumentBuf> {
        while !self.open.is_empty() {
            self.end();
        }
        Ok(RawDocumentBuf::from_bytes(self.bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::{Document, doc, spec::BinarySubtype};

    #[test]
    fn written_bytes_equal_the_crates_serialization() {
        let id = ObjectId::new();
        let mut writer = Writer::new();
        writer.text("insert", "kurabe_a").bool("ordered", true).begin("writeConcern").int("w", 1).end();
        writer.begin_array("documents");
        let mut whole = writer.continued(&[], &Writer::new());
        whole.begin("0").object_id("_id", id);
        for (name, value) in [
            ("a", Value::Text("ü🦀")),
            ("b", Value::Bytes(&[0, 255])),
            ("c", Value::Null),
            ("d", Value::Int(i64::MIN)),
            ("e", Value::Time(-1)),
        ] {
            whole.value(name, &value);
        }
        let written = Document::try_from(whole.finish().unwrap()).unwrap();
        let binary = mongodb::bson::Binary { subtype: BinarySubtype::Generic, bytes: vec![0, 255] };
        let expected = doc! {
            "insert": "kurabe_a", "ordered": true, "writeConcern": {"w": 1},
            "documents": [{"_id": id, "a": "ü🦀", "b": binary, "c": null, "d": i64::MIN, "e": -1_i64}],
        };
        assert_eq!(written, expected);
        // The template is unchanged.
        let empty = Document::try_from(writer.finish().unwrap()).unwrap();
        assert_eq!(empty.get_array("documents").unwrap().len(), 0);
    }
}
