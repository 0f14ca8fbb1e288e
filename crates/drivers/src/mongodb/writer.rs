//! BSON documents that are written field by field into one buffer.

use crate::prelude::*;
use kurabe_protocol::mongodb::bson::{ARRAY, BINARY, BOOL, DOCUMENT, INT32, INT64, NULL, OBJECT_ID, TEXT};

/// The subtypes of binary values that Kurabe writes.
const GENERIC: u8 = 0;
const UUID: u8 = 4;

/// A document that is being written, after the head of a message if it is a command.
#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    /// Offsets of the open documents, outermost first.
    open: Vec<usize>,
}

/// Copied without allocation where there is room.
impl Clone for Writer {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), open: self.open.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.bytes.clone_from(&other.bytes);
        self.open.clone_from(&other.open);
    }
}

impl Writer {
    /// Fields of a document, without the document.
    pub(super) fn fields(fill: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut fields = Self::default();
        fill(&mut fields);
        fields.bytes
    }

    /// A whole document of these fields.
    pub(super) fn document(fill: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut document = Self::default();
        document.restart(0);
        fill(&mut document);
        document.close();
        document.bytes
    }

    /// Starts an empty document, open, after `head` bytes.
    pub(super) fn restart(&mut self, head: usize) {
        self.bytes.clear();
        self.bytes.resize(head + 4, 0);
        self.open.clear();
        self.open.push(head);
    }

    /// Closes all nested documents.
    pub(super) fn close_nested(&mut self) {
        while self.open.len() > 1 {
            self.end();
        }
    }

    /// Appends fields that are written already.
    pub(super) fn append(&mut self, fields: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(fields);
        self
    }

    /// Appends a field with the bytes of its value, or the first of them.
    #[inline]
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
        self.field(TEXT, name, &(text.len() as i32 + 1).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self
    }

    /// An array of texts.
    pub(super) fn texts<'t>(&mut self, name: &str, texts: impl IntoIterator<Item = &'t str>) -> &mut Self {
        self.begin_array(name);
        for (n, text) in texts.into_iter().enumerate() {
            self.text(&n.to_string(), text);
        }
        self.end()
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

    pub(super) fn object_id(&mut self, name: &str, id: [u8; 12]) -> &mut Self {
        self.field(OBJECT_ID, name, &id)
    }

    pub(super) fn uuid(&mut self, name: &str, id: [u8; 16]) -> &mut Self {
        self.binary_of(UUID, name, &id)
    }

    pub(super) fn binary(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        self.binary_of(GENERIC, name, bytes)
    }

    fn binary_of(&mut self, subtype: u8, name: &str, bytes: &[u8]) -> &mut Self {
        self.field(BINARY, name, &(bytes.len() as i32).to_le_bytes());
        self.bytes.push(subtype);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Writes a field of a row. A timestamp is a whole number of microseconds: BSON dates have milliseconds.
    #[inline]
    pub(super) fn value(&mut self, name: &str, value: &Value<'_>) -> &mut Self {
        match value {
            Value::Null => self.null(name),
            Value::Int(n) | Value::Time(n) => self.long(name, *n),
            Value::Bool(truth) => self.long(name, i64::from(*truth)),
            Value::Text(text) => self.text(name, text),
            Value::Bytes(bytes) => self.binary(name, bytes),
        }
    }

    /// Closes the document.
    fn close(&mut self) {
        while !self.open.is_empty() {
            self.end();
        }
    }

    /// All bytes so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of bytes so far.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Closes the document, and returns all bytes, with those of the head.
    ///
    /// # Errors
    /// If it is longer than a document can be.
    pub(super) fn finish(&mut self) -> Result<&mut [u8]> {
        self.close();
        if i32::try_from(self.bytes.len()).is_ok() {
            return Ok(&mut self.bytes);
        }
        let message = format!("mongodb: a request of {} bytes cannot be a BSON document", self.bytes.len());
        Err(Error::new(ErrorKind::Limit, message).hint("use a smaller payload"))
    }
}
