//! What a server reports of a session: whether a transaction is open, and whether the session still only reads ("`OK_Packet`",
//! "Session State Information").
//!
//! A stored function can make the transactions after it writable. The session has the server report changes of that setting. Since a
//! function can end that too, or change the next transaction alone, the setting is sent again before each request, where a database
//! has functions: with the request, in one round trip.

use super::packets::length;
use crate::prelude::*;
use crate::wire::link::{Query, value};
use kurabe_core::driver::Access;
use kurabe_protocol::mysql::frame::{MAX, Packet};
use kurabe_protocol::mysql::message::{answer, status};
use kurabe_protocol::{Found, Header as _};

/// Makes every transaction of the session read-only, also those of single statements (manual, "SET TRANSACTION").
pub(super) const READ_ONLY: &str = "SET SESSION TRANSACTION READ ONLY";

/// Whether the server has code of its own, which only the server sees: a function, or a view of the database. Without any, the text
/// of a statement says what it calls.
const HAS_CODE: &str = "SELECT EXISTS (SELECT 1 FROM information_schema.routines WHERE routine_schema NOT IN ('mysql', 'sys')) \
     OR EXISTS (SELECT 1 FROM information_schema.views WHERE table_schema = DATABASE())";

/// Whether there is code, as [`HAS_CODE`] says, and the first thing that the session does not hold back.
pub(in crate::mysql) fn ask(link: &mut dyn Query) -> Result<(bool, Option<String>)> {
    let has_code = value(link, HAS_CODE)?.as_deref() != Some("0");
    for query in include_str!("../not_held.sql").lines().filter(|line| !line.starts_with("--")) {
        match value(link, query) {
            // What this user may not see, or this product does not have.
            Err(error) if error.server_code().is_some() => {}
            found => {
                if let Some(found) = found? {
                    return Ok((has_code, Some(found)));
                }
            }
        }
    }
    Ok((has_code, None))
}

/// Has the server report changes of all settings: this one's name differs between versions.
pub(super) const TRACKING: &str = "SET SESSION session_track_system_variables = '*'";

/// The kind of a change that is one of a setting.
const SETTING: u8 = 0;

/// The longest OK packet that is read.
const LONGEST: usize = 1 << 16;

/// What is known of a session, and what the server reports of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionState {
    /// What its statements may do.
    pub(super) access: Access,
    /// Whether a transaction is open.
    pub(super) in_transaction: bool,
    /// Whether a read-only session may write since the last statement.
    pub(super) may_write: bool,
}

impl SessionState {
    /// Enters the status of an answer, and what follows it in its packet.
    pub(super) fn ended(&mut self, status: u16, rest: &[u8]) {
        self.in_transaction = status & status::IN_TRANSACTION != 0;
        if self.access == Access::ReadOnly && status & status::SESSION_CHANGED != 0 {
            self.may_write |= makes_writable(rest).unwrap_or(true);
        }
    }

    /// The error of a statement that made the transactions after it writable.
    pub(super) fn checked(self) -> Result<()> {
        if !self.may_write {
            return Ok(());
        }
        let what = "the statement lets later transactions of a read-only session write";
        Err(Error::new(ErrorKind::ReadOnly, what).code("1792"))
    }
}

/// Reads a number or a text with its length before it.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        let short = || malformed_number();
        let read = |count: usize| {
            let mut bytes = [0; 8];
            bytes[..count].copy_from_slice(self.bytes(count).ok_or_else(short)?);
            Ok(u64::from_le_bytes(bytes))
        };
        length(read).ok().flatten()
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.bytes(count)
    }
}

#[cold]
fn malformed_number() -> Error {
    crate::wire::malformed("a truncated OK packet")
}

/// Whether the changes that an OK packet reports let the session write, or may hide that; the number of warnings is first. `None` if
/// they cannot be read.
fn makes_writable(rest: &[u8]) -> Option<bool> {
    let mut rest = Rest(rest);
    rest.bytes(2)?;
    rest.text()?;
    let mut changes = Rest(rest.text()?);
    while let Some(kind) = changes.bytes(1) {
        let mut change = Rest(changes.text()?);
        if kind[0] != SETTING {
            continue;
        }
        while !change.0.is_empty() {
            let (name, value) = (change.text()?, change.text()?);
            let is_access = name.ends_with(b"_read_only");
            if name.eq_ignore_ascii_case(b"session_track_system_variables")
                || is_access && !(value.eq_ignore_ascii_case(b"on") || value == b"1")
            {
                return Some(true);
            }
        }
    }
    Some(false)
}

/// Reads the last packet of an answer that passes by in pieces.
#[derive(Default)]
pub(super) struct LastPacket {
    /// The header and the payload of the current packet, as far as it is read.
    packet: Vec<u8>,
    /// Bytes of it that are still to come and not read.
    left: usize,
    /// Whether the current packet continues another one.
    continues: bool,
}

fn header(packet: &[u8]) -> Option<Packet> {
    if let Found::Header(header) = Packet::find(packet) { Some(header) } else { None }
}

impl LastPacket {
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let packet = header(&self.packet);
            if let Some(header) = packet
                && self.left == 0
                && self.packet.len() >= Packet::LENGTH + header.length.min(LONGEST)
            {
                self.continues = header.length == MAX;
                self.packet.clear();
                continue;
            }
            let here = match packet {
                _ if self.left > 0 => self.left.min(bytes.len()),
                None => Packet::LENGTH - self.packet.len(),
                Some(header) => Packet::LENGTH + header.length.min(LONGEST) - self.packet.len(),
            };
            let (here, rest) = bytes.split_at(here.min(bytes.len()));
            bytes = rest;
            if self.left > 0 {
                self.left -= here.len();
                continue;
            }
            self.packet.extend_from_slice(here);
            if let Some(header) = header(&self.packet)
                && self.packet.len() == Packet::LENGTH + header.length.min(LONGEST)
            {
                self.left = header.length - header.length.min(LONGEST);
            }
        }
    }

    /// Enters what the last packet reports.
    pub(super) fn end(&self, state: &mut SessionState) {
        let payload = self.packet.get(Packet::LENGTH..).unwrap_or_default();
        // An error may have ended the transaction.
        state.in_transaction = false;
        let Some((answer::OK | answer::EOF, rest)) =
            payload.split_first().filter(|_| !self.continues).map(|(first, rest)| (*first, rest))
        else {
            return;
        };
        let mut rest = Rest(rest);
        let status = |rest: &mut Rest<'_>| {
            rest.number()?;
            rest.number()?;
            rest.bytes(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
        };
        if let Some(status) = status(&mut rest) {
            state.ended(status, rest.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(payload: &[u8]) -> Vec<u8> {
        [&(payload.len() as u32).to_le_bytes()[..3], &[1], payload].concat()
    }

    /// An OK packet, or one in place of EOF, that reports a change.
    fn ok(first: u8, name: &str, value: &str) -> Vec<u8> {
        let text = |text: &[u8]| [&[text.len() as u8], text].concat();
        let change = [text(name.as_bytes()), text(value.as_bytes())].concat();
        let changes = [&[SETTING][..], &text(&change)].concat();
        let status = (status::IN_TRANSACTION | status::SESSION_CHANGED).to_le_bytes();
        packet(&[&[first, 0, 0][..], &status, &[0, 0, 0], &text(&changes)].concat())
    }

    #[test]
    fn last_packet_says_whether_the_session_may_write_wherever_pieces_end() {
        let rows = [packet(b"\x01"), packet(b"\x03def"), packet(&[0xfb; 90]), packet(b"\xfe\0\0")].concat();
        for (name, value, may_write) in [
            ("tx_read_only", "OFF", true),
            ("transaction_read_only", "0", true),
            ("tx_read_only", "ON", false),
            ("sort_buffer_size", "0", false),
            ("session_track_system_variables", "", true),
        ] {
            for first in [answer::OK, answer::EOF] {
                let bytes = [rows.clone(), ok(first, name, value)].concat();
                for piece in 1..=bytes.len() {
                    let (mut last, mut state) = (
                        LastPacket::default(),
                        SessionState { access: Access::ReadOnly, ..SessionState::default() },
                    );
                    bytes.chunks(piece).for_each(|part| last.take(part));
                    last.end(&mut state);
                    assert_eq!(
                        (state.may_write, state.in_transaction),
                        (may_write, true),
                        "{name} {value} {piece}"
                    );
                }
            }
        }
        let mut state = SessionState { access: Access::ReadOnly, ..SessionState::default() };
        state.ended(status::SESSION_CHANGED, b"\0\0\0\x09\0");
        assert!(state.may_write, "what cannot be read may be anything");
    }
}
