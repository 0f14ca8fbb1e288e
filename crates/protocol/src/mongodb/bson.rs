//! BSON documents, as far as commands need it (bsonspec.org, version 1.1).

use crate::bytes::{until_zero, word};
use std::borrow::Cow;

pub const DOUBLE: u8 = 0x01;
pub const TEXT: u8 = 0x02;
pub const DOCUMENT: u8 = 0x03;
pub const ARRAY: u8 = 0x04;
pub const BINARY: u8 = 0x05;
const UNDEFINED: u8 = 0x06;
pub const OBJECT_ID: u8 = 0x07;
pub const BOOL: u8 = 0x08;
/// Milliseconds since 1970.
pub const DATE_TIME: u8 = 0x09;
pub const NULL: u8 = 0x0a;
/// A regular expression: two texts, which end with a zero byte each.
pub const REGEX: u8 = 0x0b;
const POINTER: u8 = 0x0c;
pub const CODE: u8 = 0x0d;
const SYMBOL: u8 = 0x0e;
/// A program with a document of variables.
pub const CODE_WITH_SCOPE: u8 = 0x0f;
pub const INT32: u8 = 0x10;
/// Of a log.
const TIMESTAMP: u8 = 0x11;
pub const INT64: u8 = 0x12;
const DECIMAL: u8 = 0x13;
const MAX_KEY: u8 = 0x7f;
const MIN_KEY: u8 = 0xff;

/// An element: its type, its name and its value's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    pub kind: u8,
    pub name: &'a [u8],
    pub value: &'a [u8],
    /// Whether all of the value is there.
    pub is_whole: bool,
}

impl<'a> Element<'a> {
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }

    pub fn text(&self) -> Option<String> {
        let length = (word(self.value, 0) as usize).checked_sub(1)?;
        let text = self.value.get(4..4_usize.checked_add(length)?)?;
        (self.kind == TEXT).then(|| String::from_utf8_lossy(text).into_owned())
    }

    pub fn document(&self) -> Option<&'a [u8]> {
        (self.kind == DOCUMENT).then_some(self.value)
    }

    /// A number of any type, or a truth value, as a whole number.
    pub fn number(&self) -> Option<i64> {
        match self.kind {
            DOUBLE => Some(f64::from_le_bytes(self.value.try_into().ok()?) as i64),
            BOOL => self.value.first().map(|truth| i64::from(*truth)),
            INT32 => Some(i64::from(i32::from_le_bytes(self.value.try_into().ok()?))),
            INT64 => Some(i64::from_le_bytes(self.value.try_into().ok()?)),
            _ => None,
        }
    }
}

pub fn is_kind(kind: u8) -> bool {
    fixed(kind).is_some() || counted(kind).is_some() || kind == REGEX
}

/// The length of a value of this type at the front of these bytes; `None` if the type is unknown, or no value begins so. It may
/// exceed the bytes.
pub fn length(kind: u8, bytes: &[u8]) -> Option<usize> {
    if let Some(length) = fixed(kind) {
        return Some(length);
    }
    if kind == REGEX {
        let (_, options) = until_zero(bytes, 0);
        return Some(until_zero(bytes, options).1);
    }
    let (beside, least) = counted(kind)?;
    let number = word(bytes, 0);
    let rest = u64::from(number).checked_add_signed(beside).filter(|_| number >= least)?;
    usize::try_from(rest).ok()?.checked_add(4)
}

/// The length of each value of this type, if all have the same.
pub fn fixed(kind: u8) -> Option<usize> {
    Some(match kind {
        DOUBLE | DATE_TIME | TIMESTAMP | INT64 => 8,
        UNDEFINED | NULL | MAX_KEY | MIN_KEY => 0,
        OBJECT_ID => 12,
        BOOL => 1,
        INT32 => 4,
        DECIMAL => 16,
        _ => return None,
    })
}

/// How long values of this type are that begin with a number in four bytes: so many bytes more than the number follow it, and
/// the number is not less than the second one.
fn counted(kind: u8) -> Option<(i64, u32)> {
    Some(match kind {
        TEXT | CODE | SYMBOL => (0, 1),
        // Their number counts itself.
        DOCUMENT | ARRAY | CODE_WITH_SCOPE => (-4, 5),
        BINARY => (1, 0),
        POINTER => (12, 1),
        _ => return None,
    })
}

/// The elements of a document, as far as they are there and can be read.
pub struct Elements<'a> {
    document: &'a [u8],
    at: usize,
}

impl Elements<'_> {
    /// Whether the document ends where it says, after the elements that were given.
    pub fn has_ended(&self) -> bool {
        self.document.get(self.at) == Some(&0) && self.at + 1 == word(self.document, 0) as usize
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let kind = *self.document.get(self.at).filter(|kind| **kind != 0)?;
        let (name, value) = until_zero(self.document, self.at + 1);
        let rest = self.document.get(value..)?;
        let length = length(kind, rest)?;
        let end = length.min(rest.len());
        self.at = value.checked_add(length)?;
        Some(Element { kind, name, value: rest.get(..end)?, is_whole: length <= rest.len() })
    }
}

pub fn elements(document: &[u8]) -> Elements<'_> {
    Elements { document, at: 4 }
}

pub fn element<'a>(document: &'a [u8], name: &str) -> Option<Element<'a>> {
    elements(document).find(|element| element.name == name.as_bytes())
}

pub fn push(out: &mut Vec<u8>, kind: u8, name: &[u8], value: &[u8]) {
    out.push(kind);
    out.extend_from_slice(name);
    out.push(0);
    out.extend_from_slice(value);
}

pub fn push_text(out: &mut Vec<u8>, name: &[u8], text: &[u8]) {
    push(out, TEXT, name, &(text.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(text);
    out.push(0);
}

/// Begins a document or a list within another one. Returns where it starts.
pub fn begin(out: &mut Vec<u8>, kind: u8, name: &[u8]) -> usize {
    push(out, kind, name, &[0; 4]);
    out.len() - 4
}

/// Ends a document, whose length is at `start`.
pub fn end(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}
