//! Files of packets: those of libpcap (<https://ietf-opsawg-wg.github.io/draft-ietf-opsawg-pcap/draft-ietf-opsawg-pcap.html>) and pcapng
//! (<https://ietf-opsawg-wg.github.io/draft-ietf-opsawg-pcap/draft-ietf-opsawg-pcapng.html>).

use crate::file::fill;
use crate::input::Input;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_protocol::bytes::{short, word};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// How a file of packets begins; of pcap also whether numbers are big-endian, and the nanoseconds of the second part of a time.
type Magic = ([u8; 4], Option<(bool, u64)>);

/// Of pcapng, and of pcap.
pub(super) const MAGIC: [Magic; 5] = [
    ([0x0a, 0x0d, 0x0d, 0x0a], None),
    ([0xd4, 0xc3, 0xb2, 0xa1], Some((false, 1_000))),
    ([0x4d, 0x3c, 0xb2, 0xa1], Some((false, 1))),
    ([0xa1, 0xb2, 0xc3, 0xd4], Some((true, 1_000))),
    ([0xa1, 0xb2, 0x3c, 0x4d], Some((true, 1))),
];
/// The maximum size of a packet or block, in bytes: more than any that tcpdump or Wireshark writes.
const LARGEST: u32 = 16 << 20;
/// The blocks of pcapng that are read.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Packet {
    /// When it was captured, in nanoseconds since 1970.
    pub(super) at: u64,
    /// The type of its link's header.
    pub(super) link: u32,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct Packets {
    file: BufReader<File>,
    path: PathBuf,
    format: Format,
    is_big_endian: bool,
    /// Whether the file ends within a packet.
    pub(super) is_cut: bool,
}

enum Format {
    /// Nanoseconds of the second part of a time, and the link.
    Pcap(u64, u32),
    /// The interfaces of the section.
    PcapNg(Vec<Interface>),
}

struct Interface {
    link: u32,
    /// Units of its times in a second.
    units: u64,
}

impl Packets {
    /// # Errors
    /// If it cannot be read, or is no file of packets.
    pub(super) fn new(input: Input) -> Result<Self> {
        let Input { mut file, path } = input;
        let mut magic = [0; 4];
        fill(&mut file, &mut magic)
            .map_err(|error| Error::usage(format!("{} cannot be read: {error}", path.display())))?;
        let Some((_, pcap)) = MAGIC.iter().find(|(known, _)| *known == magic) else {
            let what = format!("{} is no file of packets (pcap or pcapng)", path.display());
            return Err(Error::usage(what).hint("'tcpdump -w FILE -s 0 port 5432' writes one"));
        };
        let Some((is_big_endian, nanoseconds)) = *pcap else {
            let format = Format::PcapNg(Vec::new());
            let mut packets = Self { file, path, format, is_big_endian: false, is_cut: false };
            packets.section()?;
            return Ok(packets);
        };
        let mut packets =
            Self { file, path, format: Format::Pcap(nanoseconds, 0), is_big_endian, is_cut: false };
        let mut rest = [0; 20];
        if !packets.whole(&mut rest)? {
            return Err(packets.wrong("its first header is cut off"));
        }
        // The upper bits say how long a checksum at the end of each packet is.
        packets.format = Format::Pcap(nanoseconds, packets.number(&rest, 16) & 0x0fff_ffff);
        Ok(packets)
    }

    /// The next packet; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Packet>> {
        match self.format {
            Format::Pcap(nanoseconds, link) => {
                let mut header = [0; 16];
                if !self.whole(&mut header)? {
                    return Ok(None);
                }
                let [seconds, part, length] = [0, 4, 8].map(|at| self.number(&header, at));
                let bytes = self.bytes(length)?;
                let at = u64::from(seconds) * 1_000_000_000 + u64::from(part) * nanoseconds;
                Ok(bytes.map(|bytes| Packet { at, link, bytes }))
            }
            Format::PcapNg(_) => self.next_block(),
        }
    }

    fn next_block(&mut self) -> Result<Option<Packet>> {
        loop {
            let mut kind = [0; 4];
            if !self.whole(&mut kind)? {
                return Ok(None);
            }
            let kind = self.number(&kind, 0);
            // The same in both orders of bytes.
            if kind == SECTION {
                self.section()?;
                continue;
            }
            let mut length = [0; 4];
            if !self.whole(&mut length)? {
                return Ok(None);
            }
            let length = self.number(&length, 0);
            let Some(body) =
                self.bytes(length.checked_sub(8).ok_or_else(|| self.wrong("a block is damaged"))?)?
            else {
                return Ok(None);
            };
            match kind {
                INTERFACE => {
                    let (link, units) = (u32::from(self.short(&body, 0)), self.units(&body));
                    if let Format::PcapNg(interfaces) = &mut self.format {
                        interfaces.push(Interface { link, units });
                    }
                }
                PACKET => return self.packet(&body).map(Some),
                _ => {}
            }
        }
    }

    /// Begins a section, whose block's type was read.
    fn section(&mut self) -> Result<()> {
        let mut head = [0; 8];
        if !self.whole(&mut head)? {
            return Err(self.wrong("its first header is cut off"));
        }
        self.is_big_endian = match head {
            [.., 0x1a, 0x2b, 0x3c, 0x4d] => true,
            [.., 0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => return Err(self.wrong("a section has no order of bytes")),
        };
        let length = self.number(&head, 0);
        self.bytes(length.checked_sub(12).ok_or_else(|| self.wrong("a section is damaged"))?)?;
        self.format = Format::PcapNg(Vec::new());
        Ok(())
    }

    /// The packet of an enhanced packet block.
    fn packet(&self, body: &[u8]) -> Result<Packet> {
        let [number, high, low, length] = [0, 4, 8, 12].map(|at| self.number(body, at));
        let Format::PcapNg(interfaces) = &self.format else { return Ok(Packet::default()) };
        let interface = interfaces.get(number as usize);
        let bytes = body.get(20..).and_then(|rest| rest.get(..length as usize));
        let (Some(Interface { link, units }), Some(bytes)) = (interface, bytes) else {
            return Err(self.wrong("a packet is damaged"));
        };
        let time = u128::from(u64::from(high) << 32 | u64::from(low)) * 1_000_000_000 / u128::from(*units);
        Ok(Packet { at: u64::try_from(time).unwrap_or(u64::MAX), link: *link, bytes: bytes.to_vec() })
    }

    /// Units of times in a second: those of option 9, or microseconds.
    fn units(&self, body: &[u8]) -> u64 {
        let mut at = 8;
        while let Some(rest) = body.get(at..).filter(|rest| rest.len() >= 4) {
            let (code, length) = (self.short(rest, 0), usize::from(self.short(rest, 2)));
            match (code, rest.get(4)) {
                (0, _) => break,
                (9, Some(power)) => {
                    let base: u64 = if power & 0x80 == 0 { 10 } else { 2 };
                    return base.checked_pow(u32::from(power & 0x7f)).unwrap_or(1_000_000);
                }
                _ => at += 4 + length.next_multiple_of(4),
            }
        }
        1_000_000
    }

    fn number(&self, bytes: &[u8], at: usize) -> u32 {
        let number = word(bytes, at);
        if self.is_big_endian { number.swap_bytes() } else { number }
    }

    fn short(&self, bytes: &[u8], at: usize) -> u16 {
        let number = short(bytes, at);
        if self.is_big_endian { number.swap_bytes() } else { number }
    }

    /// The next bytes; `None` if the file ends before.
    fn bytes(&mut self, length: u32) -> Result<Option<Vec<u8>>> {
        if length > LARGEST {
            return Err(self.wrong("it is damaged: a packet is longer than any"));
        }
        let mut bytes = vec![0; length as usize];
        Ok(self.whole(&mut bytes)?.then_some(bytes))
    }

    /// Fills a buffer; false if the file ends before.
    fn whole(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let got = fill(&mut self.file, buffer)
            .map_err(|error| self.wrong(&format!("it cannot be read: {error}")))?;
        self.is_cut |= got > 0 && got < buffer.len();
        Ok(got == buffer.len())
    }

    fn wrong(&self, why: &str) -> Error {
        Error::new(ErrorKind::Damaged, format!("{}: {why}", self.path.display()))
    }
}
