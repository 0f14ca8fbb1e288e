//! A TCP segment in a packet: headers of links (<https://www.tcpdump.org/linktypes.html>), IP (RFC 791, RFC 8200) and TCP (RFC 9293).

use super::file::Packet;
use std::net::{IpAddr, SocketAddr};

const TCP: u8 = 6;
/// Flags: the last and the first segment of a direction, the end of both, and an acknowledgement.
pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;
pub(super) const ACK: u8 = 16;

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
            let is_fragment = short(bytes, 6)? & 0x3fff != 0;
            let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?));
            // Segments that the network card divides have no length yet.
            let length = Some(usize::from(short(bytes, 2)?)).filter(|length| *length > 0);
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
            let length = Some(usize::from(short(bytes, 4)?)).filter(|length| *length > 0);
            let length = length.map(|length| (length + 40).saturating_sub(at));
            (next == TCP).then(|| tcp(bytes.get(at..)?, length, [address(8)?, address(24)?]))?
        }
        _ => None,
    }
}

/// The length of Ethernet's header, with tags of virtual networks.
fn ethernet(bytes: &[u8]) -> Option<usize> {
    let mut at = 12;
    while matches!(short(bytes, at)?, 0x8100 | 0x88a8 | 0x9100) {
        at += 4;
    }
    matches!(short(bytes, at)?, 0x0800 | 0x86dd).then_some(at + 2)
}

fn tcp(bytes: &[u8], length: Option<usize>, [from, to]: [IpAddr; 2]) -> Option<Segment<'_>> {
    let header = usize::from(bytes.get(12)? >> 4) * 4;
    let flags = *bytes.get(13)?;
    let rest = bytes.get(header..)?;
    let length = length.map_or(rest.len(), |length| length.saturating_sub(header));
    let payload = rest.get(..length.min(rest.len()))?;
    let sequence = bytes.get(4..8)?.try_into().ok().map(u32::from_be_bytes)?;
    Some(Segment {
        from: SocketAddr::new(from, short(bytes, 0)?),
        to: SocketAddr::new(to, short(bytes, 2)?),
        sequence,
        flags,
        payload,
        is_cut: payload.len() < length,
    })
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).and_then(|two| two.try_into().ok()).map(u16::from_be_bytes)
}
