//! Messages: a header of 16 bytes, and what its operation has.

use crate::bytes::{until_zero, word};
use crate::mongodb::bson;
use crate::{Found, Header};

/// The answer to an `OP_QUERY`.
pub const OP_REPLY: u32 = 1;
pub const OP_QUERY: u32 = 2004;
pub const OP_COMPRESSED: u32 = 2012;
pub const OP_MSG: u32 = 2013;

/// Flags of `OP_MSG`. Those below 16 must be known.
pub mod flag {
    pub(super) const CHECKSUM_PRESENT: u32 = 1;
    /// More messages follow that answer the same request; of a request, none answers it.
    pub const MORE_TO_COME: u32 = 2;
    pub(super) const REQUIRED: u32 = 0xffff;
}

const CHECKSUM: usize = 4;

/// The longest message of any server: `MaxMessageSizeBytes` in MongoDB's source.
pub const LONGEST: usize = 48_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The length of what follows.
    pub rest: usize,
    pub number: u32,
    /// The number of the request that it answers.
    pub answers: u32,
    pub opcode: u32,
}

impl Message {
    /// Writes the header in front of a message of these bytes, which has room for it.
    #[inline]
    pub fn write(message: &mut [u8], number: u32, opcode: u32) {
        let length = message.len() as u32;
        for (at, value) in [length, number, 0, opcode].into_iter().enumerate() {
            message[at * 4..at * 4 + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
}

impl Header for Message {
    const LENGTH: usize = 16;

    #[inline]
    fn find(bytes: &[u8]) -> Found<Self> {
        let Some(header) = bytes.first_chunk::<{ Self::LENGTH }>() else { return Found::Need(Self::LENGTH) };
        let [length, number, answers, opcode] = [0, 4, 8, 12].map(|at| word(header, at));
        match (length as usize).checked_sub(Self::LENGTH) {
            Some(rest @ 0..=LONGEST) => Found::Header(Self { rest, number, answers, opcode }),
            _ => Found::Invalid(length.into()),
        }
    }

    #[inline]
    fn body(self) -> u64 {
        self.rest as u64
    }
}

/// What follows the header of an `OP_MSG`.
#[derive(Clone, Copy, Debug)]
pub struct Msg<'a> {
    pub flags: u32,
    /// Sections with their kinds, without the checksum.
    pub sections: &'a [u8],
}

impl<'a> Msg<'a> {
    /// Reads it. Of one that is cut off the checksum is missing.
    #[inline]
    pub fn read(rest: &'a [u8], is_cut: bool) -> Option<Self> {
        let (flags, sections) = rest.split_first_chunk()?;
        let flags = u32::from_le_bytes(*flags);
        let whole = Self { flags, sections };
        let checksum = if is_cut { 0 } else { whole.checksum() };
        Some(Self { flags, sections: sections.get(..sections.len().checked_sub(checksum)?)? })
    }

    /// The length of the checksum behind the sections.
    #[inline]
    pub fn checksum(self) -> usize {
        if self.flags & flag::CHECKSUM_PRESENT == 0 { 0 } else { CHECKSUM }
    }

    /// Whether it has no flags that must be known, but these.
    #[inline]
    pub fn is_known(self, known: u32) -> bool {
        self.flags & flag::REQUIRED & !(flag::CHECKSUM_PRESENT | known) == 0
    }

    /// The document of a message that has no other section, as answers have none.
    #[inline]
    pub fn document(self) -> Option<&'a [u8]> {
        match self.sections {
            [0, document @ ..] if !document.is_empty() => Some(document),
            _ => None,
        }
    }

    /// The document and the sequences of documents, by name, as far as they are there; `None` if it has other sections.
    pub fn parts(self) -> Option<(Option<&'a [u8]>, Sequences<'a>)> {
        let (mut document, mut sequences, mut rest) = (None, Vec::new(), self.sections);
        while let Some((kind, section)) = rest.split_first() {
            let length = (word(section, 0) as usize).max(4);
            let own = section.get(..length.min(section.len()))?;
            rest = section.get(own.len()..)?;
            match kind {
                0 if document.is_none() => document = Some(own),
                1 => {
                    let (name, at) = until_zero(own, 4);
                    sequences.push((name, own.get(at..).unwrap_or_default()));
                }
                _ => return None,
            }
        }
        Some((document, sequences))
    }
}

/// Sequences of documents, by name.
pub type Sequences<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The collection and the document of an `OP_QUERY`, behind its header: flags, the collection, two numbers, the document.
pub fn query(rest: &[u8]) -> (&[u8], Option<&[u8]>) {
    let (collection, at) = until_zero(rest, 4);
    (collection, rest.get(at.saturating_add(8)..))
}

/// Name and version of the driver, which the first command has.
pub fn driver(document: &[u8]) -> Option<String> {
    let client = bson::element(document, "client")?;
    let driver = bson::element(client.document()?, "driver")?;
    let part = |name: &str| bson::element(driver.document()?, name)?.text();
    let name = part("name")?;
    Some(part("version").map_or(name.clone(), |version| format!("{name} {version}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of FerretDB 1.24 to a `ping`, captured.
    const ANSWER: &[u8] =
        b"\x26\0\0\0\x04\0\0\0\x01\0\0\0\xdd\x07\0\0\0\0\0\0\0\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0?\0";

    #[test]
    fn captured_answer_is_found_and_has_one_document() {
        assert_eq!(Message::find(&ANSWER[..15]), Found::Need(16));
        let header = Message { rest: 22, number: 4, answers: 1, opcode: OP_MSG };
        assert_eq!(Message::find(ANSWER), Found::Header(header));
        let message = Msg::read(&ANSWER[16..], false).unwrap();
        assert!(message.is_known(0));
        assert_eq!(message.document(), Some(&ANSWER[21..]));
        assert_eq!(bson::element(message.document().unwrap(), "ok").unwrap().number(), Some(1));
    }

    #[test]
    fn lengths_that_no_message_has_are_refused() {
        for length in [0, 15, LONGEST as u32 + 17, u32::MAX] {
            let header = [&length.to_le_bytes()[..], &[0; 12]].concat();
            assert_eq!(Message::find(&header), Found::Invalid(length.into()));
        }
    }

    #[test]
    fn checksum_is_no_part_of_the_sections() {
        let rest = [&[1, 0, 0, 0, 0][..], b"document", &[1, 2, 3, 4]].concat();
        assert_eq!(Msg::read(&rest, false).unwrap().document(), Some(&b"document"[..]));
        assert!(Msg::read(b"\x01\0\0\0\0\0\0", false).is_none() && Msg::read(b"", false).is_none());
    }
}
