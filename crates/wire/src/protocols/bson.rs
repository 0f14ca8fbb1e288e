//! BSON documents, as far as commands need it (bsonspec.org, version 1.1).

use crate::input::{until_zero, word};

pub(super) const DOUBLE: u8 = 1;
pub(super) const TEXT: u8 = 2;
pub(super) const DOCUMENT: u8 = 3;
pub(super) const ARRAY: u8 = 4;
pub(super) const BOOL: u8 = 8;
pub(super) const NULL: u8 = 10;
pub(super) const INT32: u8 = 16;
pub(super) const INT64: u8 = 18;

/// An element: its type, its name and its value's bytes.
pub(super) struct Element<'a> {
    pub(super) kind: u8,
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// Whether all of the value is there.
    pub(super) is_whole: bool,
}

impl<'a> Element<'a> {
    pub(super) fn text(&self) -> Option<String> {
        let length = (word(self.value, 0) as usize).checked_sub(1)?;
        let text = self.value.get(4..4_usize.checked_add(length)?)?;
        (self.kind == TEXT).then(|| String::from_utf8_lossy(text).into_owned())
    }

    pub(super) fn document(&self) -> Option<&'a [u8]> {
        (self.kind == DOCUMENT).then_some(self.value)
    }

    /// A number of any type, or a truth value, as a whole number.
    pub(super) fn number(&self) -> Option<i64> {
        number(self.kind, self.value)
    }
}

/// A value as a whole number, if it is a number or a truth value.
pub(super) fn number(kind: u8, value: &[u8]) -> Option<i64> {
    match kind {
        DOUBLE => Some(f64::from_le_bytes(value.try_into().ok()?) as i64),
        BOOL => value.first().map(|truth| i64::from(*truth)),
        INT32 => Some(i64::from(i32::from_le_bytes(value.try_into().ok()?))),
        INT64 => Some(i64::from_le_bytes(value.try_into().ok()?)),
        _ => None,
    }
}

/// The bytes of a value of this type: those that are always there, and how many more the number in its first four bytes adds.
/// `None` for an unknown type, and for a regular expression, whose two texts end with a zero byte each.
pub(super) fn size(kind: u8) -> Option<Size> {
    Some(match kind {
        DOUBLE | 9 | 17 | INT64 => Size::Fixed(8),
        TEXT | 13 | 14 => Size::Counted { beside: 0, least: 1 },
        // Their number counts itself.
        DOCUMENT | ARRAY | 15 => Size::Counted { beside: -4, least: 5 },
        5 => Size::Counted { beside: 1, least: 0 },
        6 | NULL | 127 | 255 => Size::Fixed(0),
        7 => Size::Fixed(12),
        BOOL => Size::Fixed(1),
        12 => Size::Counted { beside: 12, least: 1 },
        INT32 => Size::Fixed(4),
        19 => Size::Fixed(16),
        _ => return None,
    })
}

/// A regular expression.
pub(super) const REGEX: u8 = 11;

/// How long a value is.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Fixed(usize),
    /// A number in four bytes, and so many bytes after it and these. The number is not less than `least`.
    Counted {
        beside: i64,
        least: u32,
    },
}

impl Size {
    /// The bytes after the number of one that is counted; `None` if no value has that number.
    pub(super) fn rest(self, number: u32) -> Option<u64> {
        match self {
            Self::Fixed(length) => Some(length as u64),
            Self::Counted { beside, least } if number >= least => {
                u64::try_from(i64::from(number) + beside).ok()
            }
            Self::Counted { .. } => None,
        }
    }
}

/// The elements of a document, as far as they are there and can be read.
pub(super) struct Elements<'a> {
    document: &'a [u8],
    at: usize,
}

impl Elements<'_> {
    /// Whether the document ends where it says, after the elements that were given.
    pub(super) fn has_ended(&self) -> bool {
        self.document.get(self.at) == Some(&0) && self.at + 1 == word(self.document, 0) as usize
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let kind = *self.document.get(self.at).filter(|kind| **kind != 0)?;
        let (name, value) = until_zero(self.document, self.at + 1);
        let rest = self.document.get(value..)?;
        let length = match size(kind) {
            Some(Size::Fixed(length)) => length,
            Some(counted) => usize::try_from(counted.rest(word(rest, 0))?).ok()?.checked_add(4)?,
            None if kind == REGEX => {
                let (_, options) = until_zero(rest, 0);
                until_zero(rest, options).1
            }
            None => return None,
        };
        let end = length.min(rest.len());
        self.at = value.checked_add(length)?;
        Some(Element { kind, name, value: rest.get(..end)?, is_whole: length <= rest.len() })
    }
}

pub(super) fn elements(document: &[u8]) -> Elements<'_> {
    Elements { document, at: 4 }
}

pub(super) fn element<'a>(document: &'a [u8], name: &str) -> Option<Element<'a>> {
    elements(document).find(|element| element.name == name.as_bytes())
}
