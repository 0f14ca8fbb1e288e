//! MongoDB's wire protocol: `OP_MSG`, and `OP_QUERY`, by which older drivers begin.

use super::bson;
use crate::decoder::{Decoder, Request, Seen, Step};
use crate::input::{Input, KEPT, begins_with_tls, until_zero, word};

/// Length, request number, number of the answered request, opcode: four bytes each.
pub(super) const HEADER: usize = 16;
pub(super) const OP_QUERY: u32 = 2004;
pub(super) const OP_COMPRESSED: u32 = 2012;
pub(super) const OP_MSG: u32 = 2013;
/// The longest message (`maxMessageSizeBytes`).
pub(super) const LONGEST: u32 = 48_000_000;
/// Commands by which drivers set up a connection or ask about the server.
pub(crate) const SETUP: [&str; 18] = [
    "authenticate", "atlasVersion", "buildInfo", "buildinfo", "connectionStatus", "endSessions",
    "getCmdLineOpts", "getLog", "getParameter", "getnonce", "hello", "hostInfo", "isMaster", "ismaster",
    "logout", "ping", "saslContinue", "saslStart",
];

/// Why a stream cannot be read.
pub(super) const NOT_MONGODB: &str = "the client does not speak MongoDB's protocol";
pub(super) const COMPRESSED: &str = "its messages are compressed";

/// The decoder.
#[derive(Default)]
pub(crate) struct Mongodb {
    client: Input,
}

impl Decoder for Mongodb {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        self.client.push(bytes);
        while self.next(seen).is_some() {}
    }
}

impl Mongodb {
    /// Reads the next message; `None` if it is not complete.
    fn next(&mut self, seen: &mut Vec<Seen>) -> Option<()> {
        let waiting = self.client.waiting();
        if self.client.position() == 0 && begins_with_tls(waiting)? {
            seen.push(Seen::Encrypted);
            self.client.close();
            return None;
        }
        let header = waiting.get(..HEADER)?;
        let (length, opcode) = (word(header, 0), word(header, 12));
        if !(HEADER as u32..=LONGEST).contains(&length) {
            return self.give_up(NOT_MONGODB, seen);
        }
        let message = self.client.take(length.into(), KEPT)?;
        let document = match opcode {
            OP_MSG => document(&message.bytes),
            OP_QUERY => queried(&message.bytes).1,
            OP_COMPRESSED => return self.give_up(COMPRESSED, seen),
            _ => return self.give_up("the client sends an unknown message of MongoDB's protocol", seen),
        };
        let Some(document) = document else { return Some(()) };
        let Some(first) = bson::elements(document).next() else { return Some(()) };
        let command = String::from_utf8_lossy(first.name).into_owned();
        if let Some(name) = driver(document) {
            seen.push(Seen::Client(name));
        }
        let text =
            first.text().map_or_else(|| command.clone(), |collection| format!("{command} {collection}"));
        let is_setup = SETUP.contains(&command.as_str());
        seen.push(Seen::Request(Request { at: message.at, text, step: Step::Text, is_setup }));
        Some(())
    }

    fn give_up(&mut self, why: &'static str, seen: &mut Vec<Seen>) -> Option<()> {
        seen.push(Seen::Unreadable(why));
        self.client.close();
        None
    }
}

/// The command's document of an `OP_MSG`: its section of kind 0.
fn document(message: &[u8]) -> Option<&[u8]> {
    let mut at = HEADER + 4;
    loop {
        match *message.get(at)? {
            0 => return message.get(at + 1..),
            1 => at = at.checked_add(1)?.checked_add((word(message, at + 1) as usize).max(4))?,
            _ => return None,
        }
    }
}

/// The collection's name and the document of an `OP_QUERY`: flags, the name, two numbers, the document.
pub(super) fn queried(message: &[u8]) -> (&[u8], Option<&[u8]>) {
    let (name, at) = until_zero(message, HEADER + 4);
    (name, message.get(at.saturating_add(8)..))
}

/// Name and version of the driver, which the first command contains.
pub(super) fn driver(document: &[u8]) -> Option<String> {
    let client = bson::element(document, "client")?;
    let driver = bson::element(client.document()?, "driver")?;
    let part = |name: &str| bson::element(driver.document()?, name)?.text();
    let name = part("name")?;
    Some(part("version").map_or(name.clone(), |version| format!("{name} {version}")))
}
