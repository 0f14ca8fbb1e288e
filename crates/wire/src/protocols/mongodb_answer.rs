//! The answer to a command of MongoDB, read in parts of any size. Its documents are not kept.

use crate::view::{Digest, KEPT};
use kurabe_protocol::bytes::{until_zero, word};
use kurabe_protocol::mongodb::bson::{self, ARRAY, DOCUMENT, Element, INT64, REGEX};
use kurabe_protocol::mongodb::frame::{Message, Msg, OP_COMPRESSED, OP_MSG, OP_REPLY, flag};

pub(super) const COMPRESSED: &str = "its messages are compressed";
/// Why an answer cannot be read.
pub(super) const NO_SERVER: &str = "the server does not speak MongoDB's protocol";

#[derive(Default)]
pub(super) struct Answer {
    pub(super) header: Message,
    pub(super) more_to_come: bool,
    pub(super) rows: u64,
    pub(super) digest: Digest,
    /// Documents that were found or written, and those that were changed, where the two differ.
    pub(super) found: Option<i64>,
    pub(super) modified: Option<i64>,
    /// Documents that an update made, which are none of those.
    pub(super) upserted: i64,
    /// The number of the cursor that can go on; 0: none.
    pub(super) cursor: i64,
    /// Whether it is no success, the code that it has then, and that of the first write that failed.
    failed: bool,
    code: Option<i64>,
    write_code: Option<i64>,
    /// Bytes of an element whose length is not known yet.
    kept: Vec<u8>,
    /// The position behind the header of the next byte.
    at: usize,
    /// The bytes of a value that have not arrived, and whether it is a row.
    left: usize,
    is_row: bool,
    /// The open documents, and where they end.
    open: Vec<(Role, usize)>,
    /// Where the document of the answer ends, once it has begun.
    end: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Answer,
    Cursor,
    Rows,
    Errors,
    Error,
    Upserted,
    /// What `findAndModify` did.
    Change,
}

impl Answer {
    /// The message with this header. `digest` has the rows before those of this answer.
    pub(super) fn new(header: Message, digest: Digest) -> Self {
        Self { header, digest, ..Self::default() }
    }

    pub(super) fn is_old(&self) -> bool {
        self.header.opcode == OP_REPLY
    }

    pub(super) fn error(&self) -> Option<String> {
        let code = if self.failed { Some(self.code.unwrap_or(0)) } else { self.write_code };
        code.map(|code| code.to_string())
    }

    /// Reads the next part of the message.
    pub(super) fn read(&mut self, part: &[u8]) -> Result<(), &'static str> {
        match self.header.opcode {
            OP_REPLY => return Ok(()),
            OP_MSG => {}
            OP_COMPRESSED => return Err(COMPRESSED),
            _ => return Err(NO_SERVER),
        }
        let part = part.get(self.value(part)..).unwrap_or_default();
        if self.kept.is_empty() {
            let taken = self.elements(part).ok_or(NO_SERVER)?;
            self.kept.extend_from_slice(part.get(taken..).unwrap_or_default());
        } else {
            let mut kept = std::mem::take(&mut self.kept);
            kept.extend_from_slice(part);
            let taken = self.elements(&kept).ok_or(NO_SERVER)?;
            kept.drain(..taken);
            self.kept = kept;
        }
        // Only names and patterns can be longer than what tells the length of an element.
        if self.kept.len() > KEPT { Err(NO_SERVER) } else { Ok(()) }
    }

    /// Ends the message.
    pub(super) fn end(&mut self) -> Result<(), &'static str> {
        self.read(&[])?;
        let is_whole = self.is_old() || self.end.is_some() && self.open.is_empty() && self.kept.is_empty();
        is_whole.then_some(()).ok_or(NO_SERVER)
    }

    /// The number of bytes that are kept of it.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.kept.capacity()
    }

    /// Reads on in a value of which some bytes are missing. Returns how many of these it has.
    fn value(&mut self, bytes: &[u8]) -> usize {
        let part = bytes.get(..self.left).unwrap_or(bytes);
        (self.left, self.at) = (self.left - part.len(), self.at + part.len());
        if self.is_row {
            self.digest.push(part);
            if self.left == 0 {
                self.digest.end_row();
                self.is_row = false;
            }
        }
        part.len()
    }

    /// Reads what begins in these bytes. Returns how many it has read; `None` if they are invalid.
    fn elements(&mut self, bytes: &[u8]) -> Option<usize> {
        let begin = self.at;
        while let Some(rest) = bytes.get(self.at - begin..).filter(|_| self.left == 0) {
            let Some((role, end)) = self.open.last().copied() else {
                if self.end.is_some() {
                    // The checksum.
                    self.left = self.header.rest - self.at;
                    self.value(rest);
                    break;
                }
                if rest.len() < HEAD {
                    break;
                }
                self.begin(rest)?;
                continue;
            };
            let Some(kind) = rest.first().copied() else { break };
            if kind == 0 {
                self.at += 1;
                self.open.pop();
                (self.at == end).then_some(())?;
                continue;
            }
            let (name, value) = until_zero(rest, 1);
            bson::is_kind(kind).then_some(())?;
            let Some(rest) = rest.get(value..) else { break };
            if !tells_length(kind, rest) {
                break;
            }
            let length = bson::length(kind, rest)?;
            (self.at + value + length < end).then_some(())?;
            if let Some(role) = entered(role, name, kind) {
                self.at += value + 4;
                self.open.push((role, self.at - 4 + length));
                continue;
            }
            // Numbers are short: they are read whole.
            let element = Element {
                kind,
                name,
                value: rest.get(..length).unwrap_or(rest),
                is_whole: length <= rest.len(),
            };
            if !element.is_whole && length <= SHORT {
                break;
            }
            self.at += value;
            (self.left, self.is_row) = (length, self.begins_row(role, &element));
            self.number(role, &element);
            self.value(rest);
        }
        Some(self.at - begin)
    }

    /// Begins the document of the answer, its only section.
    fn begin(&mut self, bytes: &[u8]) -> Option<()> {
        let message = Msg::read(bytes, true).filter(|message| message.is_known(flag::MORE_TO_COME))?;
        self.more_to_come = message.flags & flag::MORE_TO_COME != 0;
        let end = self.header.rest.checked_sub(message.checksum())?;
        let document = message.document()?;
        (HEAD - 4 + word(document, 0) as usize == end).then_some(())?;
        (self.at, self.end) = (HEAD, Some(end));
        self.open.push((Role::Answer, end));
        Some(())
    }

    /// Whether an element is a row: a document of a cursor, a distinct value, or the document that was found and changed.
    fn begins_row(&mut self, role: Role, element: &Element<'_>) -> bool {
        let is_document = element.kind == DOCUMENT;
        let is_row = role == Role::Rows || role == Role::Answer && element.name == b"value" && is_document;
        self.rows += u64::from(is_row);
        if is_row && !is_document {
            self.digest.push(&[element.kind]);
        }
        is_row
    }

    fn number(&mut self, role: Role, element: &Element<'_>) {
        self.upserted += i64::from(role == Role::Upserted);
        let Some(number) = element.number() else { return };
        match (role, element.name) {
            (Role::Answer, b"ok") => self.failed = number == 0,
            (Role::Answer, b"code") => self.code = Some(number),
            (Role::Error, b"code") => self.write_code = self.write_code.or(Some(number)),
            (Role::Answer | Role::Change, b"n") => self.found = Some(number),
            (Role::Answer, b"nModified") => self.modified = Some(number),
            (Role::Cursor, b"id") if element.kind == INT64 => self.cursor = number,
            _ => {}
        }
    }
}

/// The bytes before the elements of an answer: flags, the kind of its section, the length of its document.
const HEAD: usize = 9;
/// The maximum length of a value of a fixed length.
const SHORT: usize = 16;

/// What a document is that is read element by element.
fn entered(role: Role, name: &[u8], kind: u8) -> Option<Role> {
    match (role, name, kind) {
        (Role::Answer, b"cursor", DOCUMENT) => Some(Role::Cursor),
        (Role::Cursor, b"firstBatch" | b"nextBatch", ARRAY) | (Role::Answer, b"values", ARRAY) => {
            Some(Role::Rows)
        }
        (Role::Answer, b"writeErrors", ARRAY) => Some(Role::Errors),
        (Role::Answer, b"upserted", ARRAY) => Some(Role::Upserted),
        (Role::Answer, b"lastErrorObject", DOCUMENT) => Some(Role::Change),
        (Role::Errors, _, DOCUMENT) => Some(Role::Error),
        _ => None,
    }
}

/// Whether the first bytes of a value are enough to tell its length.
fn tells_length(kind: u8, bytes: &[u8]) -> bool {
    match kind {
        REGEX => bytes.iter().filter(|byte| **byte == 0).nth(1).is_some(),
        _ => bson::fixed(kind).is_some() || bytes.len() >= 4,
    }
}
