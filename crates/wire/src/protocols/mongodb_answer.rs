//! The answer to a command of MongoDB, read in pieces without keeping its documents.

use super::bson::{self, ARRAY, DOCUMENT, INT64, REGEX, Size};
use super::mongodb::{HEADER, LONGEST, OP_COMPRESSED, OP_MSG};
use crate::input::word;
use crate::view::Digest;

/// The answer to an `OP_QUERY`.
const OP_REPLY: u32 = 1;
/// Flags of `OP_MSG`: a checksum follows, and more messages follow that answer the same request.
pub(super) const CHECKSUM: u32 = 1;
pub(super) const MORE_TO_COME: u32 = 2;
/// Flags that must be known.
pub(super) const REQUIRED: u32 = 0xffff;
/// The part of a name that is kept, in bytes.
const NAME: usize = 16;

/// What an answer says.
pub(super) struct Answer {
    /// The number of the request that it answers, and whether it is the answer to an `OP_QUERY`.
    pub(super) answers: u32,
    pub(super) is_old: bool,
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
    reader: Reader,
}

/// What the next bytes are.
enum Stage {
    Header,
    /// Flags and the kind of the first section.
    Head,
    /// The length of a document that is entered.
    Document(Role),
    Kind,
    Name(u8),
    /// A value of so many bytes.
    Fixed(u8, usize),
    /// The number before a value.
    Counted(u8, Size),
    /// So many bytes of a value; whether they are part of a row.
    Rest(u64, bool),
    /// So many texts that end with a zero byte; whether they are part of a row.
    Texts(u8, bool),
    End,
}

/// What an open document is.
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

struct Reader {
    stage: Stage,
    /// Bytes of the stage that have arrived.
    token: Vec<u8>,
    name: Vec<u8>,
    position: u64,
    /// Where the message ends, and where its document must.
    end: u64,
    document_end: u64,
    /// The open documents, and where they end.
    open: Vec<(Role, u64)>,
}

impl Answer {
    /// One of which nothing was read.
    pub(super) fn new() -> Self {
        Self {
            answers: 0,
            is_old: false,
            more_to_come: false,
            rows: 0,
            digest: Digest::new(false),
            found: None,
            modified: None,
            upserted: 0,
            cursor: 0,
            failed: false,
            code: None,
            write_code: None,
            reader: Reader {
                stage: Stage::Header,
                token: Vec::new(),
                name: Vec::new(),
                position: 0,
                end: HEADER as u64,
                document_end: 0,
                open: Vec::new(),
            },
        }
    }

    /// Whether nothing was read of it.
    pub(super) fn is_new(&self) -> bool {
        self.reader.position == 0
    }

    /// The code of the error.
    pub(super) fn error(&self) -> Option<String> {
        let code = if self.failed { Some(self.code.unwrap_or(0)) } else { self.write_code };
        code.map(|code| code.to_string())
    }

    /// Reads on. Returns whether the answer is complete.
    ///
    /// # Errors
    /// With the reason if it cannot be read.
    pub(super) fn read(&mut self, bytes: &mut &[u8]) -> Result<bool, &'static str> {
        const WRONG: &str = "the server does not speak MongoDB's protocol";
        while !matches!(self.reader.stage, Stage::End) {
            if bytes.is_empty() {
                return Ok(false);
            }
            let left = self.reader.end - self.reader.position;
            let there = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            let (piece, _) = bytes.split_at(there);
            let before = self.reader.position;
            self.step(piece).ok_or_else(|| {
                let is_packed =
                    self.reader.token.len() == HEADER && word(&self.reader.token, 12) == OP_COMPRESSED;
                if is_packed { super::mongodb::COMPRESSED } else { WRONG }
            })?;
            let taken = usize::try_from(self.reader.position - before).unwrap_or(usize::MAX);
            *bytes = bytes.get(taken..).unwrap_or_default();
            if self.reader.position == self.reader.end && !matches!(self.reader.stage, Stage::End) {
                return Err(WRONG);
            }
        }
        Ok(true)
    }

    /// Reads the next part of a message from a piece that is not empty, and does not exceed it; `None` if it is invalid.
    fn step(&mut self, piece: &[u8]) -> Option<()> {
        match self.reader.stage {
            Stage::Header => {
                let true = self.reader.fill(piece, HEADER) else { return Some(()) };
                let [length, answers, code] = [0, 8, 12].map(|at| word(&self.reader.token, at));
                self.answers = answers;
                self.is_old = code == OP_REPLY;
                let least = if self.is_old { 36 } else { HEADER as u32 + 10 };
                let is_known = code == OP_MSG || self.is_old;
                if !is_known || !(least..=LONGEST).contains(&length) {
                    return None;
                }
                self.reader.end = u64::from(length);
                let rest = self.reader.end - HEADER as u64;
                self.reader.go(if self.is_old { Stage::Rest(rest, false) } else { Stage::Head });
            }
            Stage::Head => {
                let true = self.reader.fill(piece, 5) else { return Some(()) };
                let flags = word(&self.reader.token, 0);
                let is_known = flags & REQUIRED & !(CHECKSUM | MORE_TO_COME) == 0;
                if !is_known || self.reader.token.get(4) != Some(&0) {
                    return None;
                }
                self.more_to_come = flags & MORE_TO_COME != 0;
                self.reader.document_end = self.reader.end - if flags & CHECKSUM == 0 { 0 } else { 4 };
                self.reader.go(Stage::Document(Role::Answer));
            }
            Stage::Document(role) => {
                let true = self.reader.fill(piece, 4) else { return Some(()) };
                let length = word(&self.reader.token, 0);
                let end = self.reader.position - 4 + u64::from(length);
                let is_answer = role == Role::Answer;
                let fits =
                    if is_answer { end == self.reader.document_end } else { end < self.reader.limit() };
                if length < 5 || !fits {
                    return None;
                }
                self.reader.open.push((role, end));
                self.reader.go(Stage::Kind);
            }
            Stage::Kind => {
                self.reader.position += 1;
                match *piece.first()? {
                    0 => self.reader.close()?,
                    kind => self.reader.go(Stage::Name(kind)),
                }
            }
            Stage::Name(kind) => {
                let end = piece.iter().position(|byte| *byte == 0);
                let text = piece.get(..end.unwrap_or(piece.len()))?;
                let room = NAME.saturating_sub(self.reader.token.len());
                self.reader.token.extend(text.iter().take(room));
                self.reader.position += text.len() as u64 + u64::from(end.is_some());
                if end.is_some() {
                    self.reader.name = std::mem::take(&mut self.reader.token);
                    self.value(kind)?;
                }
            }
            Stage::Fixed(kind, length) => {
                let true = self.reader.fill(piece, length) else { return Some(()) };
                self.scalar(kind);
                self.reader.go(Stage::Kind);
            }
            Stage::Counted(kind, size) => {
                let true = self.reader.fill(piece, 4) else { return Some(()) };
                let rest = size.rest(word(&self.reader.token, 0))?;
                if self.reader.position + rest >= self.reader.limit() {
                    return None;
                }
                let is_row = self.begin_row(kind);
                if is_row {
                    self.digest.push(&self.reader.token);
                }
                self.pass(rest, is_row);
            }
            Stage::Rest(left, is_row) => {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
                if is_row {
                    self.digest.push(piece.get(..here)?);
                }
                self.reader.position += here as u64;
                self.pass(left - here as u64, is_row);
            }
            Stage::Texts(left, is_row) => {
                let end = piece.iter().position(|byte| *byte == 0);
                let here = end.map_or(piece.len(), |end| end + 1);
                if is_row {
                    self.digest.push(piece.get(..here)?);
                }
                self.reader.position += here as u64;
                match (end, left) {
                    (None, _) => {}
                    (Some(_), 1) => self.pass(0, is_row),
                    (Some(_), left) => self.reader.go(Stage::Texts(left - 1, is_row)),
                }
            }
            Stage::End => {}
        }
        Some(())
    }

    /// Goes on in a value of which so many bytes have not arrived.
    fn pass(&mut self, left: u64, is_row: bool) {
        if left > 0 {
            return self.reader.go(Stage::Rest(left, is_row));
        }
        if is_row {
            self.digest.end_row();
        }
        let has_ended = self.reader.open.is_empty();
        self.reader.go(if has_ended { Stage::End } else { Stage::Kind });
    }

    /// A value begins.
    fn value(&mut self, kind: u8) -> Option<()> {
        let role = self.reader.role();
        let entered = match (role, self.reader.name.as_slice(), kind) {
            (Role::Answer, b"cursor", DOCUMENT) => Some(Role::Cursor),
            (Role::Cursor, b"firstBatch" | b"nextBatch", ARRAY) | (Role::Answer, b"values", ARRAY) => {
                Some(Role::Rows)
            }
            (Role::Answer, b"writeErrors", ARRAY) => Some(Role::Errors),
            (Role::Answer, b"upserted", ARRAY) => Some(Role::Upserted),
            (Role::Answer, b"lastErrorObject", DOCUMENT) => Some(Role::Change),
            (Role::Errors, _, DOCUMENT) => Some(Role::Error),
            _ => None,
        };
        self.upserted += i64::from(role == Role::Upserted);
        if let Some(role) = entered {
            self.reader.go(Stage::Document(role));
            return Some(());
        }
        match bson::size(kind) {
            Some(Size::Fixed(length)) => {
                if self.reader.position + length as u64 >= self.reader.limit() {
                    return None;
                }
                if length > 0 {
                    self.reader.go(Stage::Fixed(kind, length));
                } else {
                    self.reader.token.clear();
                    self.scalar(kind);
                    self.reader.go(Stage::Kind);
                }
            }
            Some(size) => self.reader.go(Stage::Counted(kind, size)),
            None if kind == REGEX => {
                let is_row = self.begin_row(kind);
                self.reader.go(Stage::Texts(2, is_row));
            }
            None => return None,
        }
        Some(())
    }

    /// Whether the value that begins is a row: a document of a cursor, a distinct value, or the document that was found and changed.
    fn begin_row(&mut self, kind: u8) -> bool {
        let is_found = self.reader.role() == Role::Answer && self.reader.name == b"value" && kind == DOCUMENT;
        let is_row = is_found || self.reader.role() == Role::Rows;
        self.rows += u64::from(is_row);
        if is_row && kind != DOCUMENT {
            self.digest.push(&[kind]);
        }
        is_row
    }

    /// A value of a fixed length.
    fn scalar(&mut self, kind: u8) {
        if self.begin_row(kind) {
            self.digest.push(&self.reader.token);
            self.digest.end_row();
        }
        let Some(number) = bson::number(kind, &self.reader.token) else { return };
        match (self.reader.role(), self.reader.name.as_slice()) {
            (Role::Answer, b"ok") => self.failed = number == 0,
            (Role::Answer, b"code") => self.code = Some(number),
            (Role::Error, b"code") => {
                self.write_code.get_or_insert(number);
            }
            (Role::Answer | Role::Change, b"n") => self.found = Some(number),
            (Role::Answer, b"nModified") => self.modified = Some(number),
            (Role::Cursor, b"id") if kind == INT64 => self.cursor = number,
            _ => {}
        }
    }
}

impl Reader {
    /// Takes bytes until the stage has this many. Returns whether it has.
    fn fill(&mut self, piece: &[u8], length: usize) -> bool {
        let here = piece.get(..length - self.token.len()).unwrap_or(piece);
        self.token.extend_from_slice(here);
        self.position += here.len() as u64;
        self.token.len() == length
    }

    fn go(&mut self, stage: Stage) {
        self.stage = stage;
        self.token.clear();
    }

    fn role(&self) -> Role {
        self.open.last().map_or(Role::Answer, |(role, _)| *role)
    }

    /// Where the innermost document ends.
    fn limit(&self) -> u64 {
        self.open.last().map_or(self.end, |(_, end)| *end)
    }

    /// Ends the innermost document; `None` if it does not end here.
    fn close(&mut self) -> Option<()> {
        let (_, end) = self.open.pop()?;
        if end != self.position {
            return None;
        }
        let checksum = self.end - self.document_end;
        self.go(match (self.open.is_empty(), checksum) {
            (false, _) => Stage::Kind,
            (true, 0) => Stage::End,
            (true, left) => Stage::Rest(left, false),
        });
        Some(())
    }
}
