//! A capture of loopback's packets by tcpdump, and its file (`pcap-savefile(5)`).

use crate::support::eventually;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use tempfile::NamedTempFile;

/// Ethernet's header, which tcpdump adds to loopback's packets.
const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A running capture.
pub(super) struct Running {
    child: Child,
    said: BufReader<ChildStderr>,
    file: NamedTempFile,
    port: u16,
}

/// Captures the traffic of a TCP port and a UDP port on loopback; `None` if that is impossible.
pub(super) fn start(port: u16, marks: u16) -> Option<Running> {
    let file = NamedTempFile::new().unwrap();
    let filter = format!("tcp port {port} or udp port {marks}");
    let mut child = Command::new("tcpdump")
        .args(["-i", "lo", "-n", "-U", "--immediate-mode", "-B", "65536", "-s", "160", "-w", "-"])
        .arg(filter)
        .stdin(Stdio::null())
        .stdout(file.reopen().unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        if said.read_line(&mut line).unwrap() == 0 {
            child.wait().unwrap();
            return None;
        }
    }
    Some(Running { child, said, file, port })
}

impl Running {
    /// Ends once the datagram with this text was captured.
    pub(super) fn stop(mut self, last: &str) -> Capture {
        let whole = || {
            let capture = Capture::read(self.file.reopen().unwrap(), self.port);
            capture.packets.iter().any(|packet| packet.is_mark(last)).then_some(capture)
        };
        let capture = eventually(60, whole);
        crate::support::signal(&self.child, "-INT");
        let mut said = String::new();
        self.said.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        assert!(said.contains("\n0 packets dropped by kernel"), "{said}");
        capture.unwrap_or_else(|| panic!("'{last}' was not captured: {said}"))
    }
}

/// Packets in the order in which they were sent.
pub(super) struct Capture {
    packets: Vec<Packet>,
}

enum Packet {
    /// A datagram of the test's own.
    Mark(Vec<u8>),
    Segment(Segment),
}

struct Segment {
    /// The client's port.
    client: u16,
    to_server: bool,
    sequence: u32,
    /// Bytes of payload.
    length: u32,
    /// FIN or RST: one side ends the connection.
    ends: bool,
}

impl Packet {
    fn is_mark(&self, text: &str) -> bool {
        matches!(self, Self::Mark(bytes) if bytes == text.as_bytes())
    }
}

/// The traffic of the connections that stayed open.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) packets: u64,
    /// Connections with data.
    pub(super) connections: u64,
    /// Payload without retransmissions.
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) segments_out: u64,
    pub(super) segments_in: u64,
    /// Bytes that the client retransmitted.
    pub(super) again: u64,
}

impl Capture {
    fn read(mut file: File, port: u16) -> Self {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().unwrap()));
        let mut packets = Vec::new();
        if let (Some(magic), Some(link)) = (word(0), word(20)) {
            assert_eq!((magic, link), (0xa1b2_c3d4, 1), "another file format or link type");
        }
        let mut at = 24;
        while let Some(length) = word(at + 8) {
            let begin = at + 16;
            let Some(packet) = bytes.get(begin..begin + length as usize) else { break };
            packets.push(packet_of(&packet[ETHERNET..], port));
            at = begin + length as usize;
        }
        Self { packets }
    }

    /// The traffic between two datagrams.
    pub(super) fn between(&self, from: &str, to: &str) -> Traffic {
        let place = |text: &str| self.packets.iter().position(|packet| packet.is_mark(text)).unwrap();
        let (from, to) = (place(from), place(to));
        let within = &self.packets[from..to];
        let ended: BTreeSet<u16> = within
            .iter()
            .filter_map(|packet| match packet {
                Packet::Segment(segment) if segment.ends => Some(segment.client),
                _ => None,
            })
            .collect();
        let mut packets = 0;
        let mut each: BTreeMap<u16, Traffic> = BTreeMap::new();
        // The progress of each direction of each connection, so that a retransmitted byte is known.
        let mut reached: BTreeMap<(u16, bool), u32> = BTreeMap::new();
        for (number, packet) in self.packets.iter().enumerate().take(to) {
            let Packet::Segment(segment) = packet else { continue };
            let end = segment.sequence.wrapping_add(segment.length);
            let before = reached.entry((segment.client, segment.to_server)).or_insert(segment.sequence);
            let fresh = end.wrapping_sub(*before) as i32;
            let fresh = u64::from(fresh.max(0).unsigned_abs());
            if fresh > 0 {
                *before = end;
            }
            if number < from || ended.contains(&segment.client) {
                continue;
            }
            packets += 1;
            let traffic = each.entry(segment.client).or_default();
            let (bytes, segments) = if segment.to_server {
                (&mut traffic.sent, &mut traffic.segments_out)
            } else {
                (&mut traffic.received, &mut traffic.segments_in)
            };
            *bytes += fresh;
            *segments += 1;
            // First all sent bytes; the bytes that were sent once are subtracted at the end rather than packet by
            // packet, because two processors may have reordered two packets.
            traffic.again += if segment.to_server { u64::from(segment.length) } else { 0 };
        }
        // An idle connection may still carry keep-alive probes, which are not part of the trial.
        let used = each.into_values().filter(|traffic| traffic.again + traffic.received > 0);
        used.fold(Traffic { packets, ..Traffic::default() }, |sum, one| Traffic {
            packets,
            connections: sum.connections + 1,
            sent: sum.sent + one.sent,
            received: sum.received + one.received,
            segments_out: sum.segments_out + one.segments_out,
            segments_in: sum.segments_in + one.segments_in,
            again: sum.again + one.again - one.sent,
        })
    }
}

/// From the header of IPv4 on (RFC 791, 768, 9293).
fn packet_of(ip: &[u8], port: u16) -> Packet {
    assert_eq!(ip[0] >> 4, 4, "not an IPv4 packet");
    let header = usize::from(ip[0] & 15) * 4;
    let short = |at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    let total = usize::from(short(2));
    match ip[9] {
        UDP => Packet::Mark(ip[header + 8..total].to_vec()),
        TCP => {
            let sequence = ip[header + 4..header + 8].try_into().unwrap();
            let own = usize::from(ip[header + 12] >> 4) * 4;
            let to_server = short(header + 2) == port;
            Packet::Segment(Segment {
                client: short(if to_server { header } else { header + 2 }),
                to_server,
                // A SYN uses one sequence number.
                sequence: u32::from_be_bytes(sequence).wrapping_add(u32::from(ip[header + 13] >> 1 & 1)),
                length: (total - header - own) as u32,
                ends: ip[header + 13] & 5 != 0,
            })
        }
        other => panic!("unexpected protocol {other}"),
    }
}
