//! PostgreSQL's protocol, version 3 (manual, "Frontend/Backend Protocol").

use crate::bounded::Texts;
use crate::conceal;
use crate::decoder::{Decoder, Request, Seen, Step};
use crate::input::{Input, KEPT, begins_with_tls, until_zero, word_be};
use crate::sql;

/// Codes in place of the protocol's version.
pub(super) const CANCEL: u32 = 80_877_102;
pub(super) const SSL_REQUEST: u32 = 80_877_103;
pub(super) const GSS_REQUEST: u32 = 80_877_104;
/// The longest message before the server knows the client, in bytes (`MAX_STARTUP_PACKET_LENGTH`).
const LONGEST_START: u32 = 10_000;

/// The decoder.
#[derive(Default)]
pub(crate) struct Postgres {
    client: Input,
    phase: Phase,
    statements: Texts<Vec<u8>>,
    /// The statement of each portal.
    portals: Texts<Vec<u8>>,
    /// Portals of the unnamed statement.
    unnamed: bool,
    /// Where the messages of the statement that is bound now begin.
    begins: Option<u64>,
}

/// Where the conversation is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// Before the first message that has a kind.
    #[default]
    Starts,
    /// There, and the server has to say whether it encrypts.
    Asked,
    Started,
    /// The rest cannot be read.
    Over,
}

impl Decoder for Postgres {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        if self.phase == Phase::Over {
            return;
        }
        self.client.push(bytes);
        while self.phase != Phase::Over && self.next(seen).is_some() {}
        if self.phase == Phase::Over {
            self.client.close();
        }
    }

    fn received(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        if self.phase == Phase::Asked {
            self.phase = Phase::Starts;
            if matches!(bytes.first(), Some(b'S' | b'G')) {
                seen.push(Seen::Encrypted);
                self.phase = Phase::Over;
            }
        }
    }
}

impl Postgres {
    /// Reads the next message; `None` if it is not complete.
    fn next(&mut self, seen: &mut Vec<Seen>) -> Option<()> {
        if self.phase != Phase::Started {
            return self.start(seen);
        }
        let waiting = self.client.waiting();
        let kind = *waiting.first()?;
        let length = word_be(waiting.get(..5)?, 1);
        if length < 4 {
            self.give_up("a message's length is wrong", seen);
            return None;
        }
        let message = self.client.take(u64::from(length) + 1, KEPT)?;
        self.message(kind, message.at, message.bytes.get(5..).unwrap_or_default(), seen);
        Some(())
    }

    /// The messages before the first one that has a kind.
    fn start(&mut self, seen: &mut Vec<Seen>) -> Option<()> {
        let waiting = self.client.waiting();
        if begins_with_tls(waiting)? {
            seen.push(Seen::Encrypted);
            self.phase = Phase::Over;
            return None;
        }
        let length = word_be(waiting.get(..4)?, 0);
        if !(8..=LONGEST_START).contains(&length) {
            self.give_up("the client does not speak PostgreSQL's protocol", seen);
            return None;
        }
        let message = self.client.take(length.into(), KEPT)?;
        match word_be(&message.bytes, 4) {
            SSL_REQUEST | GSS_REQUEST => self.phase = Phase::Asked,
            CANCEL => {
                seen.push(Seen::Note("it cancels a request of another connection".to_owned()));
                self.phase = Phase::Started;
            }
            _ => {
                self.phase = Phase::Started;
                parameters(&message.bytes, seen);
            }
        }
        Some(())
    }

    fn message(&mut self, kind: u8, at: u64, body: &[u8], seen: &mut Vec<Seen>) {
        let mut request = |at: u64, text: String, step: Step, is_setup: bool| {
            seen.push(Seen::Request(Request { at, text, step, is_setup }));
        };
        match kind {
            b'Q' => {
                let text = String::from_utf8_lossy(until_zero(body, 0).0);
                request(at, conceal::sql(&text), Step::Text, sql::is_setup(&text));
            }
            // Parse: the statement's name and text.
            b'P' => {
                let (name, next) = until_zero(body, 0);
                let text = String::from_utf8_lossy(until_zero(body, next).0);
                let shown = conceal::sql(&text);
                self.statements.insert(name.to_vec(), shown.as_str());
                if name.is_empty() {
                    self.begins = Some(at);
                } else {
                    request(at, shown, Step::Prepare, sql::is_setup(&text));
                }
            }
            // Bind: the portal's name and the statement's.
            b'B' => {
                let (portal, next) = until_zero(body, 0);
                let (statement, _) = until_zero(body, next);
                let text = self.statements.get(&statement.to_vec()).cloned();
                self.portals.insert(portal.to_vec(), text.as_deref().unwrap_or("a prepared statement"));
                self.unnamed = statement.is_empty();
                self.begins = self.begins.or(Some(at));
            }
            // Execute: the portal's name.
            b'E' => {
                let (portal, _) = until_zero(body, 0);
                let text = self.portals.get(&portal.to_vec()).cloned();
                let text = text.unwrap_or_else(|| "a prepared statement".to_owned());
                let is_setup = sql::is_setup(&text);
                let step = if self.unnamed { Step::Bound } else { Step::Execute };
                request(self.begins.take().unwrap_or(at), text, step, is_setup);
            }
            // Close: of a statement or a portal.
            b'C' => {
                let (name, _) = until_zero(body, 1);
                let texts =
                    if body.first() == Some(&b'S') { &mut self.statements } else { &mut self.portals };
                texts.remove(&name.to_vec());
            }
            b'F' => request(at, "a function call".to_owned(), Step::Text, false),
            b'S' => self.begins = None,
            // COPY's data, passwords, Describe, Flush, Terminate.
            b'd' | b'c' | b'f' | b'p' | b'D' | b'H' | b'X' => {}
            _ => self.give_up("the client does not speak PostgreSQL's protocol", seen),
        }
    }

    fn give_up(&mut self, why: &'static str, seen: &mut Vec<Seen>) {
        seen.push(Seen::Unreadable(why));
        self.phase = Phase::Over;
    }
}

/// The client's name, and what else it sets in its first message.
fn parameters(message: &[u8], seen: &mut Vec<Seen>) {
    let mut at = 8;
    let mut names = Vec::new();
    loop {
        let (name, next) = until_zero(message, at);
        let (value, next) = until_zero(message, next);
        if name.is_empty() {
            break;
        }
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        match &*name {
            "application_name" => seen.push(Seen::Client(value.into_owned())),
            "user" | "database" => {}
            // Settings that others send as statements.
            _ => names.push(name.into_owned()),
        }
        at = next;
    }
    if !names.is_empty() {
        seen.push(Seen::Note(format!("its start-up message sets {}", names.join(", "))));
    }
}
