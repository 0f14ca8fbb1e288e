//! BSON documents that are read where they are.

use super::writer::Writer;
use crate::prelude::*;
use kurabe_protocol::mongodb::bson::{
    self, ARRAY, BINARY, BOOL, DATE_TIME, DOCUMENT, DOUBLE, INT32, INT64, NULL, OBJECT_ID, TEXT,
};
use std::fmt;

/// A value. Texts are not checked to be UTF-8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Element<'a> {
    Double(f64),
    Text(&'a [u8]),
    Document(Raw<'a>),
    Array(Raw<'a>),
    Binary(&'a [u8]),
    ObjectId(&'a [u8]),
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

    /// Writes a number or a text again; anything else as null.
    pub(super) fn write(&self, name: &str, out: &mut Writer) {
        match self {
            Self::Int32(n) => out.int(name, *n),
            Self::Int64(n) => out.long(name, *n),
            Self::Text(text) => out.text(name, &String::from_utf8_lossy(text)),
            _ => out.null(name),
        };
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
            OBJECT_ID => take(from, 12).map(Element::ObjectId)?,
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
        Self(Writer::document(fill))
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
