//! The client/server protocol of MySQL and MariaDB.

use crate::relay::peer::Peer;
use crate::relay::protocol::{Kind, Protocol, Request, of_sql, without_numbers, word};
use std::collections::HashMap;
use std::io;

const DEPRECATE_EOF: u32 = 1 << 24;
/// The flag of MySQL's own clients; without it, MariaDB's extended flags follow.
const CLIENT_MYSQL: u32 = 1;
/// MariaDB's extended flag for omitting column definitions.
const CACHE_METADATA: u32 = 1 << 4;
const MORE_RESULTS: u16 = 8;

/// A connection to a MySQL or a MariaDB.
#[derive(Default)]
pub struct Mysql {
    deprecate_eof: bool,
    cache_metadata: bool,
    statements: HashMap<u32, String>,
}

impl Protocol for Mysql {
    fn handshake(&mut self, client: &mut Peer, server: &mut Peer) -> io::Result<()> {
        // The server's capabilities are unchanged except TLS, since the relay must read the traffic.
        let (_, mut greeting) = packet(server)?;
        if let Some(at) = greeting.get(5..).and_then(|rest| rest.iter().position(|byte| *byte == 0)) {
            // After the version: connection 4, scramble 8, filler 1, then the lower flags.
            if let Some(flags) = greeting.get_mut(5 + at + 1 + 13 + 1) {
                *flags &= !0x08;
            }
        }
        client.send(&greeting)?;
        let (_, response) = packet(client)?;
        let flags = word(&response, 4);
        self.deprecate_eof = flags & DEPRECATE_EOF != 0;
        self.cache_metadata = flags & CLIENT_MYSQL == 0 && word(&response, 32) & CACHE_METADATA != 0;
        server.send(&response)?;
        loop {
            let (first, bytes) = packet(server)?;
            client.send(&bytes)?;
            let more = match first {
                0x00 | 0xff => return Ok(()),
                // In caching_sha2_password, 3 means fast authentication: OK follows.
                0x01 => bytes.get(5) != Some(&3),
                _ => true,
            };
            if more {
                let (_, bytes) = packet(client)?;
                server.send(&bytes)?;
            }
        }
    }

    fn request(&mut self, client: &mut Peer) -> io::Result<Option<Request>> {
        let (command, bytes) = packet(client)?;
        let text = || String::from_utf8_lossy(bytes.get(5..).unwrap_or_default()).into_owned();
        let (class, kind) = match command {
            3 => (text(), of_sql(&text())),
            0x16 => (format!("prepare {}", text()), Kind::Other),
            0x17 => {
                let text = self.statements.get(&word(&bytes, 5)).cloned().unwrap_or_default();
                let kind = of_sql(&text);
                (text, kind)
            }
            other => (format!("command {other}"), Kind::Other),
        };
        // COM_QUIT, COM_STMT_SEND_LONG_DATA and COM_STMT_CLOSE are not answered.
        let answered = !matches!(command, 1 | 0x18 | 0x19);
        Ok(Some(Request { bytes, class: without_numbers(&class), kind, answered }))
    }

    fn essence<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        // A prepared statement has another number on another connection.
        if message.get(4) == Some(&0x17) { message.get(9..).unwrap_or(message) } else { message }
    }

    fn answer(&mut self, request: &Request, _: &mut Peer, server: &mut Peer) -> io::Result<Vec<u8>> {
        let (mut first, mut bytes) = packet(server)?;
        if first == 0xff {
            return Ok(bytes);
        }
        match request.bytes.get(4) {
            Some(0x16) => {
                let text = String::from_utf8_lossy(request.bytes.get(5..).unwrap_or_default()).into_owned();
                self.statements.insert(word(&bytes, 5), text);
                let (columns, parameters) = (short(&bytes, 9), short(&bytes, 11));
                for count in [parameters, columns] {
                    let end = usize::from(count > 0 && !self.deprecate_eof);
                    for _ in 0..usize::from(count) + end {
                        bytes.extend(packet(server)?.1);
                    }
                }
                return Ok(bytes);
            }
            Some(3 | 0x17) => {}
            _ => return Ok(bytes),
        }
        let mut at = 0;
        loop {
            let more = if first == 0x00 || first == 0xff {
                first == 0 && ok_status(&bytes[at + 4..]) & MORE_RESULTS != 0
            } else {
                let header = bytes[at + 4..].to_vec();
                self.rows(&header, server, &mut bytes)?
            };
            if !more {
                return Ok(bytes);
            }
            at = bytes.len();
            let (next, packet) = packet(server)?;
            bytes.extend(packet);
            first = next;
        }
    }
}

impl Mysql {
    /// Reads the columns and rows after the packet that announces them; returns whether more results follow.
    fn rows(&self, header: &[u8], server: &mut Peer, out: &mut Vec<u8>) -> io::Result<bool> {
        let (columns, used) = length(header);
        let defined = !self.cache_metadata || header.get(used) != Some(&0);
        if defined {
            for _ in 0..columns {
                out.extend(packet(server)?.1);
            }
        }
        if !self.deprecate_eof {
            out.extend(packet(server)?.1);
        }
        loop {
            let (first, bytes) = packet(server)?;
            let payload = bytes.len() - 4;
            let status = match first {
                0xff => Some(0),
                0xfe if self.deprecate_eof && payload < 0xff_ffff => Some(ok_status(&bytes[4..])),
                0xfe if !self.deprecate_eof && payload < 9 => Some(short(&bytes, 7)),
                _ => None,
            };
            out.extend(bytes);
            if let Some(status) = status {
                return Ok(status & MORE_RESULTS != 0);
            }
        }
    }
}

/// Reads one packet with all its parts; returns its first byte, and all bytes.
fn packet(from: &mut Peer) -> io::Result<(u8, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let start = bytes.len();
        from.take(4, &mut bytes)?;
        let size = usize::from(bytes[start])
            | usize::from(bytes[start + 1]) << 8
            | usize::from(bytes[start + 2]) << 16;
        from.take(size, &mut bytes)?;
        if size < 0xff_ffff {
            return Ok((bytes.get(4).copied().unwrap_or_default(), bytes));
        }
    }
}

/// The status flags of an OK packet.
fn ok_status(payload: &[u8]) -> u16 {
    let mut at = 1;
    for _ in 0..2 {
        at += length(payload.get(at..).unwrap_or_default()).1;
    }
    short(payload, at)
}

/// A length-encoded number, and its size in bytes.
fn length(bytes: &[u8]) -> (u64, usize) {
    let size = match bytes.first() {
        None => return (0, 0),
        Some(0xfc) => 2,
        Some(0xfd) => 3,
        Some(0xfe) => 8,
        Some(small) => return (u64::from(*small), 1),
    };
    let number = bytes.iter().skip(1).take(size).rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    (number, size + 1)
}

fn short(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|two| two.try_into().ok()).map_or(0, u16::from_le_bytes)
}
