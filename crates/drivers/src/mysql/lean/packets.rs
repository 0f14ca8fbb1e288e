//! A connection that reads and writes packets.

use super::read_only::SessionState;
use crate::wire::{Peer, Wire, malformed};
use kurabe_core::Result;
use kurabe_protocol::Header as _;
use kurabe_protocol::mysql::frame::Packet;
use kurabe_protocol::mysql::message::answer;

/// Agreed capabilities that affect the format of replies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    /// No EOF packet follows the columns, and an OK packet ends the rows (`CLIENT_DEPRECATE_EOF`).
    pub(super) no_eof: bool,
    /// A byte after the column count shows whether definitions follow (`MARIADB_CLIENT_CACHE_METADATA`).
    pub(super) cached_columns: bool,
    /// Packets are within compressed frames.
    pub(super) compressed: bool,
}

/// A connection that reads packets. The packet being read is the current one.
pub(super) struct Packets<S> {
    pub(super) wire: Wire<S>,
    /// Sequence number expected of the next packet.
    number: u8,
    /// Unread bytes of the current packet.
    left: usize,
    /// Whether the next packet continues the current one.
    continued: bool,
    pub(super) agreed: Agreed,
    pub(super) state: SessionState,
}

impl<S: Peer> Packets<S> {
    pub(super) fn new(wire: Wire<S>) -> Self {
        let (agreed, state) = (Agreed::default(), SessionState::default());
        Self { wire, number: 0, left: 0, continued: false, agreed, state }
    }

    /// Replaces the stream, to add TLS.
    pub(super) fn rewire<T: Peer>(self, change: impl FnOnce(S) -> Result<T>) -> Result<Packets<T>> {
        Ok(Packets {
            wire: Wire::new(change(self.wire.into_stream()?)?),
            number: self.number,
            left: self.left,
            continued: self.continued,
            agreed: self.agreed,
            state: self.state,
        })
    }

    /// Sends a packet while connecting.
    pub(super) fn send(&mut self, payload: &[u8]) -> Result<()> {
        let mut out = Vec::with_capacity(payload.len() + 4);
        out.extend_from_slice(&Packet { length: payload.len(), sequence: self.number }.bytes());
        self.number = self.number.wrapping_add(1);
        out.extend_from_slice(payload);
        self.wire.send(&out)
    }

    /// Sends one of several packets.
    pub(super) fn push(&mut self, payload: &[u8], sequence: u8) -> Result<()> {
        self.wire.push_parts([&Packet { length: payload.len(), sequence }.bytes(), payload, &[]])
    }

    /// Prepares for the reply to a command of `sent` packets, whose numbers continue from there.
    pub(super) fn expect_answer(&mut self, sent: usize) {
        self.number = sent as u8;
        self.left = 0;
        self.continued = false;
    }

    /// Skips the rest of the current packet and starts the next one.
    pub(super) fn next(&mut self) -> Result<()> {
        self.skip_rest()?;
        self.header()
    }

    fn header(&mut self) -> Result<()> {
        let header: Packet = self.wire.header()?;
        let number = header.sequence;
        self.left = header.length;
        // When a server closes an idle connection, it sends an unsolicited ERR packet with sequence number 0.
        let unsolicited = number == 0 && self.left > 0 && self.wire.peek(1)?[0] == answer::ERR;
        // Compressed packets have the number of a frame, or of none: both ends check those of frames instead.
        if number != self.number && !unsolicited && !self.agreed.compressed {
            let what = format!("MySQL packet out of order: sequence {number}, expected {}", self.number);
            return Err(malformed(what));
        }
        self.number = number.wrapping_add(1);
        self.continued = header.continues();
        Ok(())
    }

    /// Unread bytes of the current packet, without packets that continue it.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Peeks at the next byte of the current packet.
    pub(super) fn first(&mut self) -> Result<u8> {
        if self.left == 0 {
            return Err(malformed("an empty packet"));
        }
        Ok(self.wire.peek(1)?[0])
    }

    /// The rest of the current packet. It must not continue in another packet.
    pub(super) fn rest(&mut self) -> Result<&[u8]> {
        if self.continued {
            return Err(malformed("a packet of 16 MB outside a row"));
        }
        self.wire.peek(self.left)
    }

    /// Skips the rest of the current packet, including packets that continue it.
    pub(super) fn skip_rest(&mut self) -> Result<()> {
        loop {
            self.wire.skip(std::mem::take(&mut self.left))?;
            if !self.continued {
                return Ok(());
            }
            self.header()?;
        }
    }

    /// Reads a little-endian integer of `n` bytes, at most 8.
    pub(super) fn int(&mut self, n: usize) -> Result<u64> {
        let mut bytes = [0; 8];
        if n <= self.left {
            bytes[..n].copy_from_slice(self.wire.peek(n)?);
            self.wire.consume(n);
            self.left -= n;
            return Ok(u64::from_le_bytes(bytes));
        }
        // The integer spans two packets.
        for byte in &mut bytes[..n] {
            self.continue_packet()?;
            *byte = self.wire.peek(1)?[0];
            self.wire.consume(1);
            self.left -= 1;
        }
        Ok(u64::from_le_bytes(bytes))
    }

    /// Ensures that the current packet has a byte to read; starts the packet that continues it if needed.
    fn continue_packet(&mut self) -> Result<()> {
        while self.left == 0 {
            if !self.continued {
                return Err(malformed("a packet shorter than its content"));
            }
            self.header()?;
        }
        Ok(())
    }

    pub(super) fn take_into(&mut self, mut n: usize, out: &mut Vec<u8>) -> Result<()> {
        while n > 0 {
            self.continue_packet()?;
            let here = n.min(self.left);
            self.wire.take_into(here, out)?;
            self.left -= here;
            n -= here;
        }
        Ok(())
    }

    /// Reads a length-encoded integer; `None` for NULL in a text row (`Protocol::LengthEncodedInteger`).
    pub(super) fn length(&mut self) -> Result<Option<u64>> {
        length(|bytes| self.int(bytes))
    }
}

/// Reads a length-encoded integer by `int`, which reads integers of so many bytes.
#[inline]
pub(super) fn length(mut int: impl FnMut(usize) -> Result<u64>) -> Result<Option<u64>> {
    Ok(Some(match int(1)? {
        0xfb => return Ok(None),
        0xfc => int(2)?,
        0xfd => int(3)?,
        0xfe => int(8)?,
        0xff => return Err(malformed("an invalid length")),
        short => short,
    }))
}
