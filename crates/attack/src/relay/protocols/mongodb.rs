//! `MongoDB`'s wire protocol; each message begins with its length.

use crate::relay::peer::Peer;
use crate::relay::protocol::{Kind, Protocol, Request, word};
use std::io;

/// A connection to a `MongoDB`.
pub struct Mongodb;

/// Length, request number, number of the answered request, and opcode.
const HEADER: usize = 16;
/// The opcode of `OP_MSG`.
const OP_MSG: u32 = 2013;
/// The flag of a message that is followed by another and not answered.
const MORE_TO_COME: u32 = 2;

impl Protocol for Mongodb {
    fn request(&mut self, client: &mut Peer) -> io::Result<Option<Request>> {
        let bytes = message(client)?;
        let (mut class, mut kind, mut answered) = ("legacy".to_owned(), Kind::Other, true);
        if word(&bytes, 12) == OP_MSG {
            answered = word(&bytes, 16) & MORE_TO_COME == 0;
            // Flags, the kind of the first section, its document's length and its first field: the command and its
            // collection.
            let name = text(&bytes, 26);
            let collection = text(&bytes, 26 + name.len() + 1 + 4);
            kind = match name.as_str() {
                _ if collection.contains("marker") || collection.contains("claim") => Kind::Other,
                "find" | "aggregate" | "count" | "getMore" => Kind::Read,
                "insert" | "update" | "delete" | "findAndModify" => Kind::Write,
                _ => Kind::Other,
            };
            class = format!("{name} {collection}");
        }
        Ok(Some(Request { bytes, class, kind, answered }))
    }

    fn answer(&mut self, _: &Request, _: &mut Peer, server: &mut Peer) -> io::Result<Vec<u8>> {
        message(server)
    }

    fn essence<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        message.get(HEADER..).unwrap_or(message)
    }

    fn readdress(&self, answer: &[u8], _: &Request, to: &Request) -> Vec<u8> {
        let mut out = answer.to_vec();
        if let (Some(place), Some(id)) = (out.get_mut(8..12), to.bytes.get(4..8)) {
            place.copy_from_slice(id);
        }
        out
    }
}

fn message(from: &mut Peer) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(4, &mut bytes)?;
    let length = (word(&bytes, 0) as usize).max(16);
    from.take(length - 4, &mut bytes)?;
    Ok(bytes)
}

fn text(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&rest[..end]).into_owned()
}
