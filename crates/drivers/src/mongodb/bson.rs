//! BSON: documents written field by field into one buffer, and read where they are.
//! Source: <https://bsonspec.org/spec.html>.

use crate::prelude::*;
use kurabe_protocol::mongodb::bson::{
    self, ARRAY, BINARY, BOOL, DATE_TIME, DOCUMENT, DOUBLE, INT32, INT64, NULL, OBJECT_ID, TEXT,
};
use std::fmt;

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

    /// Writes a number or a text that was read; anything else as null.
    pub(super) fn element(&mut self, name: &str, element: &Element<'_>) -> &mut Self {
        match element {
            Element::Int32(n) => self.int(name, *n),
            Element::Int64(n) => self.long(name, *n),
            Element::Text(text) => self.text(name, &String::from_utf8_lossy(text)),
            _ => self.null(name),
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
        while !self.open.is_empty() {
            self.end();
        }
        if i32::try_from(self.bytes.len()).is_ok() {
            return Ok(&mut self.bytes);
        }
        let message = format!("mongodb: a request of {} bytes cannot be a BSON document", self.bytes.len());
        Err(Error::new(ErrorKind::Limit, message).hint("use a smaller payload"))
    }
}

/// A value. Texts are not checked to be UTF-8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Element<'a> {
    Double(f64),
    Text(&'a [u8]),
    Document(Raw<'a>),
    Array(Raw<'a>),
    Binary(&'a [u8]),
    ObjectId,
    Bool(bool),
    /// Milliseconds since 1970.
    DateTime(i64),
    Null,
    Int32(i32),
    Int64(i64),
    /// Of a type that Kurabe never writes and needs of no server.
    Other,
}

impl Element<'_> {
    /// A whole number of any width.
    #[inline]
    pub(super) fn whole(&self) -> Option<i64> {
        match self {
            Self::Int32(n) => Some(i64::from(*n)),
            Self::Int64(n) => Some(*n),
            _ => None,
        }
    }

    /// A whole number of any numeric type.
    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Double(n) => Some(*n as i64),
            other => other.whole(),
        }
    }
}

fn invalid() -> Error {
    malformed("the server sent an invalid BSON document")
}

/// Takes bytes from the front.
#[inline]
fn take<'a>(from: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length).ok_or_else(invalid)?;
    *from = rest;
    Ok(taken)
}

#[inline]
fn take_array<const N: usize>(from: &mut &[u8]) -> Result<[u8; N]> {
    let (taken, rest) = from.split_first_chunk().ok_or_else(invalid)?;
    *from = rest;
    Ok(*taken)
}

#[inline]
fn take_length(from: &mut &[u8]) -> Result<usize> {
    usize::try_from(i32::from_le_bytes(take_array(from)?)).map_err(|_| invalid())
}

/// Takes a text that ends with a zero byte.
#[inline]
fn take_name<'a>(from: &mut &'a [u8]) -> Result<&'a [u8]> {
    let end = from.iter().position(|byte| *byte == 0).ok_or_else(invalid)?;
    let name = take(from, end)?;
    take(from, 1)?;
    Ok(name)
}

/// Takes a text with its length before it.
#[inline]
fn take_text<'a>(from: &mut &'a [u8]) -> Result<&'a [u8]> {
    let length = take_length(from)?;
    match take(from, length)?.split_last() {
        Some((0, text)) => Ok(text),
        _ => Err(invalid()),
    }
}

/// Takes a document with its length before it.
#[inline]
fn take_document<'a>(from: &mut &'a [u8]) -> Result<Raw<'a>> {
    let length = usize::try_from(i32::from_le_bytes(*from.first_chunk().ok_or_else(invalid)?));
    Raw::new(take(from, length.map_err(|_| invalid())?)?)
}

/// A received document or array. Its length and its last byte are valid; its elements are checked when they are read.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Raw<'a>(&'a [u8]);

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.elements()).finish()
    }
}

impl<'a> Raw<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self> {
        match bytes {
            [a, b, c, d, .., 0] if i32::from_le_bytes([*a, *b, *c, *d]) as usize == bytes.len() => {
                Ok(Self(bytes))
            }
            _ => Err(invalid()),
        }
    }

    /// The names and values, in their order. Nothing follows an error.
    #[inline]
    pub(super) fn elements(self) -> Elements<'a> {
        Elements(&self.0[4..self.0.len() - 1])
    }

    /// The values of an array; those after an invalid one are missing.
    pub(super) fn values(self) -> impl Iterator<Item = Element<'a>> {
        self.elements().map_while(Result::ok).map(|(_, element)| element)
    }

    /// The value of a field; `None` if there is none.
    ///
    /// # Errors
    /// If the document is invalid before it.
    #[inline]
    pub(super) fn get(self, name: &str) -> Result<Option<Element<'a>>> {
        for element in self.elements() {
            let (found, element) = element?;
            if found == name.as_bytes() {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    fn find(self, name: &str) -> Option<Element<'a>> {
        self.get(name).ok().flatten()
    }

    pub(super) fn has(self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        match self.find(name)? {
            Element::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// The texts of an array; empty if there is none.
    pub(super) fn texts(self, name: &str) -> Vec<String> {
        let values = self.array(name).into_iter().flat_map(Raw::values);
        let text = |value| match value {
            Element::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        };
        values.filter_map(text).collect()
    }

    pub(super) fn document(self, name: &str) -> Option<Raw<'a>> {
        match self.find(name)? {
            Element::Document(document) => Some(document),
            _ => None,
        }
    }

    pub(super) fn array(self, name: &str) -> Option<Raw<'a>> {
        match self.find(name)? {
            Element::Array(array) => Some(array),
            _ => None,
        }
    }

    pub(super) fn bool(self, name: &str) -> Option<bool> {
        match self.find(name)? {
            Element::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn number(self, name: &str) -> Option<i64> {
        self.find(name)?.number()
    }

    /// A non-negative number: a size or a count.
    pub(super) fn size(self, name: &str) -> Option<u64> {
        self.number(name).and_then(|n| u64::try_from(n).ok())
    }

    /// The value at a path of nested documents.
    pub(super) fn at(self, path: &[&str]) -> Option<Element<'a>> {
        let (last, path) = path.split_last()?;
        path.iter().try_fold(self, |document, name| document.document(name))?.find(last)
    }

    pub(super) fn to_owned(self) -> Document {
        Document(self.0.to_vec())
    }
}

pub(super) struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    #[inline]
    fn element(&mut self) -> Result<(&'a [u8], Element<'a>)> {
        let from = &mut self.0;
        let [kind] = take_array(from)?;
        let name = take_name(from)?;
        let element = match kind {
            DOUBLE => Element::Double(f64::from_le_bytes(take_array(from)?)),
            TEXT => Element::Text(take_text(from)?),
            DOCUMENT => Element::Document(take_document(from)?),
            ARRAY => Element::Array(take_document(from)?),
            BINARY => {
                let length = take_length(from)?;
                take(from, 1)?;
                Element::Binary(take(from, length)?)
            }
            OBJECT_ID => take(from, 12).map(|_| Element::ObjectId)?,
            BOOL => match take_array(from)? {
                [truth @ (0 | 1)] => Element::Bool(truth == 1),
                _ => return Err(invalid()),
            },
            DATE_TIME => Element::DateTime(i64::from_le_bytes(take_array(from)?)),
            NULL => Element::Null,
            INT32 => Element::Int32(i32::from_le_bytes(take_array(from)?)),
            INT64 => Element::Int64(i64::from_le_bytes(take_array(from)?)),
            kind => {
                let length = bson::length(kind, from).ok_or_else(invalid)?;
                take(from, length).map(|_| Element::Other)?
            }
        };
        Ok((name, element))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<(&'a [u8], Element<'a>)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let element = self.element();
        if element.is_err() {
            self.0 = &[];
        }
        Some(element)
    }
}

/// A document that is kept.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Document(Vec<u8>);

impl Document {
    /// A document of these fields.
    pub(super) fn of(fill: impl FnOnce(&mut Writer)) -> Self {
        let mut document = Writer::default();
        document.restart(0);
        fill(&mut document);
        while !document.open.is_empty() {
            document.end();
        }
        Self(document.bytes)
    }

    pub(super) fn raw(&self) -> Raw<'_> {
        Raw(&self.0)
    }
}

impl Default for Document {
    fn default() -> Self {
        Self::of(|_| ())
    }
}

#[cfg(test)]
mod tests;
