//! Packets: the length of the payload (3 bytes), a sequence number, and the payload ("MySQL Packets"); and the frames around
//! compressed ones ("Compressed Packet").

use crate::{Found, Header};

/// The longest payload. Another packet continues one of this length.
pub const MAX: usize = 0xff_ffff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub length: usize,
    pub sequence: u8,
}

impl Packet {
    #[inline]
    pub fn bytes(self) -> [u8; Self::LENGTH] {
        let [a, b, c, ..] = self.length.to_le_bytes();
        [a, b, c, self.sequence]
    }
}

impl Header for Packet {
    const LENGTH: usize = 4;

    #[inline]
    fn find(bytes: &[u8]) -> Found<Self> {
        match bytes.first_chunk() {
            Some(&[a, b, c, sequence]) => Found::Header(Self { length: length([a, b, c]), sequence }),
            None => Found::Need(Self::LENGTH),
        }
    }

    #[inline]
    fn body(self) -> u64 {
        self.length as u64
    }

    #[inline]
    fn continues(self) -> bool {
        self.length == MAX
    }
}

/// Appends a payload in as many packets as it needs, the first of which has this number.
pub fn push(out: &mut Vec<u8>, mut sequence: u8, payload: &[u8]) {
    let mut pieces = payload.chunks(MAX);
    loop {
        let piece = pieces.next().unwrap_or_default();
        out.extend_from_slice(&Packet { length: piece.len(), sequence }.bytes());
        out.extend_from_slice(piece);
        sequence = sequence.wrapping_add(1);
        if piece.len() < MAX {
            return;
        }
    }
}

/// The header of a frame around packets that may be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// The length of the content, as it is sent.
    pub length: usize,
    pub sequence: u8,
    /// The length of the content before compression; 0 if it is not compressed.
    pub content: usize,
}

impl Compressed {
    pub fn bytes(self) -> [u8; Self::LENGTH] {
        let (length, content) = (self.length.to_le_bytes(), self.content.to_le_bytes());
        [length[0], length[1], length[2], self.sequence, content[0], content[1], content[2]]
    }
}

impl Header for Compressed {
    const LENGTH: usize = 7;

    fn find(bytes: &[u8]) -> Found<Self> {
        match bytes.first_chunk::<{ Self::LENGTH }>() {
            Some(&[_, _, _, sequence, ..]) => Found::Header(Self {
                length: length([bytes[0], bytes[1], bytes[2]]),
                sequence,
                content: length([bytes[4], bytes[5], bytes[6]]),
            }),
            None => Found::Need(Self::LENGTH),
        }
    }

    #[inline]
    fn body(self) -> u64 {
        self.length as u64
    }
}

fn length([a, b, c]: [u8; 3]) -> usize {
    u32::from_le_bytes([a, b, c, 0]) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_that_was_written_is_found() {
        let packet = Packet { length: 0x01_0203, sequence: 7 };
        assert_eq!(packet.bytes(), [3, 2, 1, 7]);
        assert_eq!(Packet::find(&packet.bytes()), Found::Header(packet));
        assert_eq!(Packet::find(&packet.bytes()[..3]), Found::Need(4));
        let compressed = Compressed { length: 260, sequence: 1, content: 10_000 };
        assert_eq!(compressed.bytes(), [4, 1, 0, 1, 0x10, 0x27, 0]);
        assert_eq!(Compressed::find(&compressed.bytes()), Found::Header(compressed));
    }
}
