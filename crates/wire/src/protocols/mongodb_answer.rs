//! The answer to a command of MongoDB.

use crate::view::Digest;
use kurabe_protocol::bytes::word;
use kurabe_protocol::mongodb::bson::{ARRAY, DOCUMENT, Element, INT64, elements};
use kurabe_protocol::mongodb::frame::{Message, Msg, OP_COMPRESSED, OP_MSG, OP_REPLY, flag};

/// Why an answer cannot be read.
pub(super) const NO_SERVER: &str = "the server does not speak MongoDB's protocol";

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
}

impl Answer {
    /// Reads a message. `digest` has the rows before those of this answer.
    ///
    /// # Errors
    /// With the reason if it cannot be read.
    pub(super) fn read(header: Message, body: &[u8], digest: Digest) -> Result<Self, &'static str> {
        let mut answer = Self {
            answers: header.answers,
            is_old: header.opcode == OP_REPLY,
            more_to_come: false,
            rows: 0,
            digest,
            found: None,
            modified: None,
            upserted: 0,
            cursor: 0,
            failed: false,
            code: None,
            write_code: None,
        };
        match header.opcode {
            OP_REPLY => Ok(answer),
            OP_MSG => {
                let message = Msg::read(body, false).filter(|message| message.is_known(flag::MORE_TO_COME));
                let message = message.ok_or(NO_SERVER)?;
                answer.more_to_come = message.flags & flag::MORE_TO_COME != 0;
                answer.document(message.document().ok_or(NO_SERVER)?).ok_or(NO_SERVER)?;
                Ok(answer)
            }
            OP_COMPRESSED => Err(super::mongodb::COMPRESSED),
            _ => Err(NO_SERVER),
        }
    }

    /// The code of the error.
    pub(super) fn error(&self) -> Option<String> {
        let code = if self.failed { Some(self.code.unwrap_or(0)) } else { self.write_code };
        code.map(|code| code.to_string())
    }

    fn document(&mut self, document: &[u8]) -> Option<()> {
        each(document, |field| {
            match (field.name, field.kind) {
                (b"cursor", DOCUMENT) => return self.cursor(field.value),
                (b"values", ARRAY) => return self.rows(field.value),
                (b"writeErrors", ARRAY) => {
                    return each(field.value, |error| {
                        let code = error.document().and_then(|error| number(error, b"code"));
                        self.write_code = self.write_code.or(code);
                        Some(())
                    });
                }
                (b"upserted", ARRAY) => {
                    return each(field.value, |_| {
                        self.upserted += 1;
                        Some(())
                    });
                }
                // What `findAndModify` did.
                (b"lastErrorObject", DOCUMENT) => self.found = number(field.value, b"n").or(self.found),
                // The document that was found and changed.
                (b"value", DOCUMENT) => self.row(field),
                _ => {}
            }
            if let Some(number) = field.number() {
                match field.name {
                    b"ok" => self.failed = number == 0,
                    b"code" => self.code = Some(number),
                    b"n" => self.found = Some(number),
                    b"nModified" => self.modified = Some(number),
                    _ => {}
                }
            }
            Some(())
        })
    }

    fn cursor(&mut self, cursor: &[u8]) -> Option<()> {
        each(cursor, |field| match (field.name, field.kind) {
            (b"firstBatch" | b"nextBatch", ARRAY) => self.rows(field.value),
            (b"id", INT64) => {
                self.cursor = field.number()?;
                Some(())
            }
            _ => Some(()),
        })
    }

    fn rows(&mut self, rows: &[u8]) -> Option<()> {
        each(rows, |row| {
            self.row(row);
            Some(())
        })
    }

    fn row(&mut self, row: &Element<'_>) {
        self.rows += 1;
        if row.kind != DOCUMENT {
            self.digest.push(&[row.kind]);
        }
        self.digest.push(row.value);
        self.digest.end_row();
    }
}

/// Gives each element of a document; `None` if it cannot be read to its end.
fn each(document: &[u8], mut work: impl FnMut(&Element<'_>) -> Option<()>) -> Option<()> {
    (document.len() == word(document, 0) as usize).then_some(())?;
    let mut elements = elements(document);
    for element in elements.by_ref() {
        element.is_whole.then_some(())?;
        work(&element)?;
    }
    elements.has_ended().then_some(())
}

/// The number with this name.
fn number(document: &[u8], name: &[u8]) -> Option<i64> {
    elements(document).find(|element| element.name == name)?.number()
}
