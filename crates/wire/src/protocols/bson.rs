//! BSON documents, as far as commands need it (bsonspec.org, version 1.1).

use crate::input::{until_zero, word};

/// An element: its type, its name and its value's bytes.
pub(super) struct Element<'a> {
    pub(super) kind: u8,
    pub(super) name: &'a [u8],
    value: &'a [u8],
}

impl<'a> Element<'a> {
    pub(super) fn text(&self) -> Option<String> {
        let length = (word(self.value, 0) as usize).checked_sub(1)?;
        let text = self.value.get(4..4_usize.checked_add(length)?)?;
        (self.kind == 2).then(|| String::from_utf8_lossy(text).into_owned())
    }

    pub(super) fn document(&self) -> Option<&'a [u8]> {
        (self.kind == 3).then_some(self.value)
    }
}

/// The elements of a document, as far as they are there and can be read.
pub(super) fn elements(document: &[u8]) -> impl Iterator<Item = Element<'_>> {
    let mut at = 4;
    std::iter::from_fn(move || {
        let kind = *document.get(at).filter(|kind| **kind != 0)?;
        let (name, value) = until_zero(document, at + 1);
        let rest = document.get(value..)?;
        let number = word(rest, 0) as usize;
        let length = match kind {
            1 | 9 | 17 | 18 => 8,
            2 | 13 | 14 => number.checked_add(4)?,
            3 | 4 | 15 => number.max(5),
            5 => number.checked_add(5)?,
            6 | 10 | 127 | 255 => 0,
            7 => 12,
            8 => 1,
            11 => {
                let (_, options) = until_zero(rest, 0);
                until_zero(rest, options).1
            }
            12 => number.checked_add(16)?,
            16 => 4,
            19 => 16,
            _ => return None,
        };
        let end = length.min(rest.len());
        at = value.checked_add(length)?;
        Some(Element { kind, name, value: rest.get(..end)? })
    })
}

pub(super) fn element<'a>(document: &'a [u8], name: &str) -> Option<Element<'a>> {
    elements(document).find(|element| element.name == name.as_bytes())
}
