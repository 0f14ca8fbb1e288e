//! Messages of a read-only session that are sent as they are: each query among them is followed by the check of `read_only`,
//! whose answer is taken out again. A text is sent as one statement, so that a server refuses several.

use super::request;
use crate::postgres::read_only::{self, PASSED};
use crate::prelude::*;
use kurabe_protocol::postgres::frame::{Tagged, backend, frontend};
use kurabe_protocol::postgres::message::{Request, Target};
use kurabe_protocol::{Found, Header as _};
use std::collections::HashMap;

/// The maximum length of an error or a setting that is read.
const LONGEST: usize = 1 << 16;

/// What the session has prepared and bound: whether the check follows its execution.
#[derive(Default)]
pub(super) struct Guard {
    statements: HashMap<Vec<u8>, bool>,
    portals: HashMap<Vec<u8>, bool>,
}

impl Guard {
    /// Messages with the checks, and the filter of their answers.
    pub(super) fn wrap(&mut self, mut messages: &[u8]) -> Result<(Vec<u8>, Answers)> {
        let malformed =
            || Error::new(ErrorKind::Damaged, "a message of the capture is no message of PostgreSQL");
        let (mut out, mut answers) = (Vec::with_capacity(messages.len() + 64), Answers::default());
        while !messages.is_empty() {
            let Found::Header(header) = Tagged::find(messages) else { return Err(malformed()) };
            let (message, rest) =
                messages.split_at_checked(Tagged::LENGTH + header.length).ok_or_else(malformed)?;
            messages = rest;
            let body = &message[Tagged::LENGTH..];
            match Request::read(header.tag, body).ok_or_else(malformed)? {
                Request::Query(text) => {
                    // Two answers of two texts would not be told apart.
                    if answers.syncs > 0 {
                        return Err(malformed());
                    }
                    answers.is_text = true;
                    let text = std::str::from_utf8(text).map_err(|_| malformed())?;
                    request::whole(&mut out, text)?;
                    if read_only::is_checked(text) {
                        request::check(&mut out);
                    }
                    request::sync(&mut out);
                    answers.syncs += 1;
                    continue;
                }
                Request::Parse { name, text, .. } => {
                    let is_checked = std::str::from_utf8(text).is_ok_and(read_only::is_checked);
                    self.statements.insert(name.to_vec(), is_checked);
                }
                Request::Bind(bind) => {
                    let is_checked = self.statements.get(bind.statement).copied().unwrap_or(true);
                    self.portals.insert(bind.portal.to_vec(), is_checked);
                }
                Request::Execute { portal, .. } => {
                    out.extend_from_slice(message);
                    if self.portals.get(portal).copied().unwrap_or(true) {
                        request::check(&mut out);
                    }
                    continue;
                }
                Request::Close(Target::Statement(name)) => drop(self.statements.remove(name)),
                Request::Close(Target::Portal(name)) => drop(self.portals.remove(name)),
                Request::Describe(_) | Request::Other(frontend::FLUSH, _) => {}
                Request::Sync => answers.syncs += 1,
                // A call of a function by its number, data of COPY.
                Request::FunctionCall(_)
                | Request::CopyData(_)
                | Request::CopyDone
                | Request::CopyFail(_)
                | Request::Other(..) => {
                    let what = "a read-only session sends statements only";
                    return Err(Error::new(ErrorKind::ReadOnly, what));
                }
            }
            out.extend_from_slice(message);
        }
        Ok((out, answers))
    }
}

/// Takes the answers of checks out of what the server sends.
#[derive(Default)]
pub(super) struct Answers {
    /// Whether a text was sent as one statement: the messages of that are taken out too.
    is_text: bool,
    /// How often the server has to say that it is ready.
    syncs: usize,
    /// The start of the current message, or all of it if it is read.
    message: Vec<u8>,
    /// Bytes of the current message that are still to come, and pass on.
    left: usize,
    /// Messages that may be the answer of a check, and how many they are.
    held: Vec<u8>,
    matched: usize,
    /// Whether a check has failed, or the server has reported another setting.
    pub(super) has_written: bool,
}

impl Answers {
    /// Whether the server is ready again.
    pub(super) fn is_complete(&self) -> bool {
        self.syncs == 0
    }

    /// Appends to `out` what is no answer of a check.
    pub(super) fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let (here, rest) = bytes.split_at(self.left.min(bytes.len()));
                out.extend_from_slice(here);
                (self.left, bytes) = (self.left - here.len(), rest);
                continue;
            }
            let wanted = match Tagged::find(&self.message) {
                Found::Header(header) => Tagged::LENGTH + header.length,
                Found::Need(length) => length,
                Found::Invalid(length) => {
                    return Err(crate::wire::malformed(format!("a message of {length} bytes")));
                }
            };
            let (here, rest) = bytes.split_at((wanted - self.message.len()).min(bytes.len()));
            self.message.extend_from_slice(here);
            bytes = rest;
            if let Found::Header(header) = Tagged::find(&self.message) {
                self.begun(header, out);
            }
        }
        Ok(())
    }

    /// The header of the current message is there, and perhaps more.
    fn begun(&mut self, header: Tagged, out: &mut Vec<u8>) {
        let (length, own) = (Tagged::LENGTH + header.length, row());
        let may_match = match self.matched {
            0 => header.tag == backend::BIND_COMPLETE,
            1 => header.tag == backend::DATA_ROW && length == own.len(),
            _ => header.tag == backend::COMMAND_COMPLETE,
        };
        let is_read = matches!(
            header.tag,
            backend::ERROR_RESPONSE | backend::PARAMETER_STATUS | backend::READY_FOR_QUERY
        );
        if (may_match || is_read) && header.length <= LONGEST && self.message.len() < length {
            return;
        }
        let message = std::mem::take(&mut self.message);
        let body = message.get(Tagged::LENGTH..).unwrap_or_default();
        if may_match && message.len() == length && (self.matched != 1 || message == own) {
            self.held.extend_from_slice(&message);
            self.matched += 1;
            if self.matched == 3 {
                (self.held, self.matched) = (Vec::new(), 0);
            }
            return;
        }
        self.release(out);
        if header.tag == backend::BIND_COMPLETE {
            // The one before was not that of a check.
            (self.held, self.matched) = (message, 1);
            return;
        }
        self.has_written |= match header.tag {
            backend::ERROR_RESPONSE => read_only::has_failed(body),
            backend::PARAMETER_STATUS => read_only::reported(body) == Some(false),
            _ => false,
        };
        if header.tag == backend::READY_FOR_QUERY {
            self.syncs = self.syncs.saturating_sub(1);
        }
        let is_of_statement = matches!(header.tag, backend::PARSE_COMPLETE | backend::NO_DATA);
        if !(self.is_text && is_of_statement) {
            out.extend_from_slice(&message);
        }
        self.left = length - message.len();
    }

    /// Passes on what was held.
    fn release(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.matched = 0;
        let is_of_statement = held.first() == Some(&backend::BIND_COMPLETE) && self.is_text;
        out.extend_from_slice(held.get(if is_of_statement { 5 } else { 0 }..).unwrap_or_default());
    }
}

/// The row of a check.
fn row() -> Vec<u8> {
    let length = PASSED.len() as u32;
    let body = [&[0, 1][..], &length.to_be_bytes(), PASSED.as_bytes()].concat();
    [&[backend::DATA_ROW][..], &(body.len() as u32 + 4).to_be_bytes(), &body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    }

    fn bound(rows: &[&str]) -> Vec<u8> {
        let row = |text: &&str| {
            message(b'D', &[&[0, 1][..], &(text.len() as u32).to_be_bytes(), text.as_bytes()].concat())
        };
        let rows: Vec<u8> = rows.iter().flat_map(row).collect();
        [message(b'2', b""), rows, message(b'C', b"SELECT 1\0")].concat()
    }

    #[test]
    fn answers_of_checks_are_taken_out_wherever_pieces_end() {
        let (check, ready) = (bound(&[PASSED]), message(b'Z', b"I"));
        let error = message(b'E', b"C42P01\0\0");
        let written = message(b'E', format!("M\"{PASSED} no more, on\"\0\0").as_bytes());
        for (is_text, sent, expected, has_written) in [
            (
                true,
                [message(b'1', b""), bound(&["a", "b"]), check.clone()],
                bound(&["a", "b"])[5..].to_vec(),
                false,
            ),
            (false, [bound(&["a"]), check.clone(), bound(&[])], [bound(&["a"]), bound(&[])].concat(), false),
            (
                false,
                [bound(&[&PASSED[1..]]), bound(&[PASSED, "x"]), vec![]],
                [bound(&[&PASSED[1..]]), bound(&[PASSED, "x"])].concat(),
                false,
            ),
            (true, [error.clone(), vec![], vec![]], error, false),
            (false, [bound(&["a"]), written.clone(), vec![]], [bound(&["a"]), written].concat(), true),
            (
                false,
                [bound(&["a"]), message(b'S', b"default_transaction_read_only\0off\0"), check],
                [bound(&["a"]), message(b'S', b"default_transaction_read_only\0off\0")].concat(),
                true,
            ),
        ] {
            let (sent, expected) =
                ([sent.concat(), ready.clone()].concat(), [expected, ready.clone()].concat());
            for piece in 1..=sent.len() {
                let (mut answers, mut out) =
                    (Answers { is_text, syncs: 1, ..Answers::default() }, Vec::new());
                for part in sent.chunks(piece) {
                    assert!(!answers.is_complete());
                    answers.take(part, &mut out).unwrap();
                }
                assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{piece}");
                assert_eq!((answers.is_complete(), answers.has_written), (true, has_written), "{piece}");
            }
        }
    }

    #[test]
    fn what_is_no_statement_is_not_sent() {
        for messages in [message(b'F', &[0; 12]), message(b'd', b"x"), message(b'?', b""), b"Q\0".to_vec()] {
            assert!(Guard::default().wrap(&messages).is_err(), "{}", messages.escape_ascii());
        }
        let several = [message(b'Q', b"SELECT 1\0"), message(b'Q', b"SELECT 2\0")].concat();
        assert!(Guard::default().wrap(&several).is_err());
    }
}
