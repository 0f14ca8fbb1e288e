//! The bytes of one direction of a connection, in order: segments may come twice, overlap, or come late.

use super::file::Packet;
use kurabe_protocol::bytes::short_be;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The maximum size of what waits for earlier bytes. What is missing by then was not captured.
const WAITING: usize = 4 << 20;

#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The number of the next byte, once the first one is known.
    next: Option<u32>,
    /// Bytes so far.
    position: u64,
    /// Pieces behind a gap, by position, and their size.
    waiting: BTreeMap<u64, Vec<u8>>,
    size: usize,
    /// The position of the end.
    end: Option<u64>,
}

impl Stream {
    /// Takes a segment, and gives the bytes that follow in order.
    ///
    /// # Errors
    /// If packets are missing.
    pub(super) fn push(&mut self, segment: &Segment<'_>, each: &mut dyn FnMut(&[u8])) -> Result<(), ()> {
        let mut first = segment.sequence;
        if segment.has(SYN) {
            first = first.wrapping_add(1);
            self.next.get_or_insert(first);
        }
        let Some(next) = self.next else {
            return if segment.payload.is_empty() { Ok(()) } else { Err(()) };
        };
        // Numbers go round: what is less than half of it ahead comes later.
        let ahead = i64::from(first.wrapping_sub(next).cast_signed());
        let Some(at) = self.position.checked_add_signed(ahead) else { return Ok(()) };
        if segment.has(FIN) {
            self.end = Some(at + segment.payload.len() as u64);
        }
        // Behind the end there are empty ones, with the number after it.
        if segment.payload.is_empty() {
            return Ok(());
        }
        if at > self.position {
            let known = self.waiting.entry(at).or_default();
            if known.len() < segment.payload.len() {
                self.size += segment.payload.len() - known.len();
                *known = segment.payload.to_vec();
            }
            return if self.size > WAITING { Err(()) } else { Ok(()) };
        }
        self.give(at, segment.payload, each);
        while let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() <= self.position) {
            let (at, bytes) = entry.remove_entry();
            self.size -= bytes.len();
            self.give(at, &bytes, each);
        }
        Ok(())
    }

    /// Gives what is new of bytes at or before the position.
    fn give(&mut self, at: u64, bytes: &[u8], each: &mut dyn FnMut(&[u8])) {
        let known = usize::try_from(self.position - at).unwrap_or(usize::MAX);
        let Some(new) = bytes.get(known..).filter(|new| !new.is_empty()) else { return };
        self.position += new.len() as u64;
        self.next = self.next.map(|next| next.wrapping_add(new.len() as u32));
        each(new);
    }

    /// Whether bytes are missing before others that are there.
    pub(super) fn has_gap(&self) -> bool {
        !self.waiting.is_empty() || self.end.is_some_and(|end| end > self.position)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some_and(|end| end <= self.position)
    }
}

const TCP: u8 = 6;
/// Flags: the last and the first segment of a direction, the end of both, and an acknowledgement.
pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;

/// A TCP segment in a packet: headers of links (<https://www.tcpdump.org/linktypes.html>), IP (RFC 791, RFC 8200) and TCP (RFC 9293).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) sequence: u32,
    pub(super) flags: u8,
    pub(super) payload: &'a [u8],
    /// Whether bytes of the payload were not captured.
    pub(super) is_cut: bool,
}

impl Segment<'_> {
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The segment of a packet; `None` if it is none of TCP, or a fragment.
pub(super) fn segment(packet: &Packet) -> Option<Segment<'_>> {
    let bytes = packet.bytes.as_slice();
    let skip = match packet.link {
        // Loopback of BSD.
        0 | 108 => 4,
        1 => ethernet(bytes)?,
        12 | 14 | 101 | 228 | 229 => 0,
        // "Cooked" captures of Linux, as of '-i any'.
        113 => 16,
        276 => 20,
        _ => return None,
    };
    let bytes = bytes.get(skip..)?;
    match bytes.first()? >> 4 {
        4 => {
            let header = usize::from(bytes[0] & 15) * 4;
            let is_fragment = short_be(bytes, 6)? & 0x3fff != 0;
            let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?));
            // Segments that the network card divides have no length yet.
            let length = Some(usize::from(short_be(bytes, 2)?)).filter(|length| *length > 0);
            if is_fragment || *bytes.get(9)? != TCP {
                return None;
            }
            let length = length.map(|length| length.saturating_sub(header));
            tcp(bytes.get(header..)?, length, [address(12)?, address(16)?])
        }
        6 => {
            let address = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?));
            let (mut next, mut at) = (*bytes.get(6)?, 40);
            // Options of hops, of the destination, and routing.
            while matches!(next, 0 | 43 | 60) {
                (next, at) = (*bytes.get(at)?, at + (usize::from(*bytes.get(at + 1)?) + 1) * 8);
            }
            let length = Some(usize::from(short_be(bytes, 4)?)).filter(|length| *length > 0);
            let length = length.map(|length| (length + 40).saturating_sub(at));
            (next == TCP).then(|| tcp(bytes.get(at..)?, length, [address(8)?, address(24)?]))?
        }
        _ => None,
    }
}

/// The length of Ethernet's header, with tags of virtual networks.
fn ethernet(bytes: &[u8]) -> Option<usize> {
    let mut at = 12;
    while matches!(short_be(bytes, at)?, 0x8100 | 0x88a8 | 0x9100) {
        at += 4;
    }
    matches!(short_be(bytes, at)?, 0x0800 | 0x86dd).then_some(at + 2)
}

fn tcp(bytes: &[u8], length: Option<usize>, [from, to]: [IpAddr; 2]) -> Option<Segment<'_>> {
    let header = usize::from(bytes.get(12)? >> 4) * 4;
    let flags = *bytes.get(13)?;
    let rest = bytes.get(header..)?;
    let length = length.map_or(rest.len(), |length| length.saturating_sub(header));
    let payload = rest.get(..length.min(rest.len()))?;
    let sequence = bytes.get(4..8)?.try_into().ok().map(u32::from_be_bytes)?;
    Some(Segment {
        from: SocketAddr::new(from, short_be(bytes, 0)?),
        to: SocketAddr::new(to, short_be(bytes, 2)?),
        sequence,
        flags,
        payload,
        is_cut: payload.len() < length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_stats::Rng;
    use proptest::prelude::*;
    use std::net::SocketAddr;

    fn segment(sequence: u32, payload: &[u8]) -> Segment<'_> {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        Segment { from: address, to: address, sequence, flags: ACK, payload, is_cut: false }
    }

    fn begun(first: u32) -> Stream {
        let mut stream = Stream::default();
        stream.push(&Segment { flags: SYN, ..segment(first, b"") }, &mut |_| ()).unwrap();
        stream
    }

    proptest! {
        /// Segments as TCP may deliver them: of any size, overlapping, several times, late, around the end of the numbers.
        #[test]
        fn bytes_do_not_depend_on_segments_and_their_order(
            text in prop::collection::vec(any::<u8>(), 1..200),
            cuts in prop::collection::vec((0_usize..200, 1_usize..40), 0..30),
            order in any::<u64>(),
            first in prop_oneof![any::<u32>(), Just(u32::MAX - 20)],
        ) {
            let mut pieces: Vec<(usize, usize)> =
                cuts.into_iter().map(|(at, length)| (at.min(text.len()), (at + length).min(text.len()))).collect();
            // Each byte is in one of them.
            pieces.extend((0..text.len()).step_by(7).map(|at| (at, (at + 7).min(text.len()))));
            Rng::new(order).shuffle(&mut pieces);
            let (mut stream, mut given) = (begun(first), Vec::new());
            for (from, to) in pieces {
                let sequence = first.wrapping_add(1).wrapping_add(from as u32);
                let segment = Segment { flags: u8::from(to == text.len()), ..segment(sequence, &text[from..to]) };
                stream.push(&segment, &mut |bytes| given.extend_from_slice(bytes)).unwrap();
            }
            prop_assert_eq!(&given, &text);
            prop_assert!(stream.has_ended() && !stream.has_gap());
        }
    }

    #[test]
    fn missing_bytes_are_a_gap_and_too_many_behind_it_an_error() {
        let mut stream = begun(9);
        let mut given = 0;
        stream.push(&segment(20, b"behind"), &mut |bytes| given += bytes.len()).unwrap();
        assert!(stream.has_gap() && given == 0 && !stream.has_ended());
        // A probe that the other end is there.
        stream.push(&segment(9, b""), &mut |bytes| given += bytes.len()).unwrap();
        let much = vec![0; WAITING];
        assert!(stream.push(&segment(40, &much), &mut |_| ()).is_err());
        assert!(Stream::default().push(&segment(9, b"x"), &mut |_| ()).is_err(), "its beginning is missing");
    }
}
