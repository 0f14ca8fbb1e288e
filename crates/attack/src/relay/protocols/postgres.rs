//! PostgreSQL's protocol, version 3. A request is what a client sends up to `Sync` or a simple query.

use crate::relay::peer::Peer;
use crate::relay::protocol::{Kind, Protocol, Request, of_sql, without_numbers};
use std::collections::HashMap;
use std::io;

/// The request code for TLS.
const SSL_REQUEST: u32 = 80_877_103;
/// The request code for GSSAPI encryption.
const GSS_REQUEST: u32 = 80_877_104;

/// A connection to a PostgreSQL.
#[derive(Default)]
pub struct Postgres {
    statements: HashMap<Vec<u8>, String>,
}

impl Protocol for Postgres {
    fn handshake(&mut self, client: &mut Peer, server: &mut Peer) -> io::Result<()> {
        loop {
            let mut bytes = Vec::new();
            client.take(4, &mut bytes)?;
            let length = word(&bytes) as usize;
            client.take(length.saturating_sub(4), &mut bytes)?;
            let code = word(bytes.get(4..).unwrap_or_default());
            if code == SSL_REQUEST || code == GSS_REQUEST {
                client.send(b"N")?;
                continue;
            }
            server.send(&bytes)?;
            break;
        }
        loop {
            let mut bytes = Vec::new();
            let kind = message(server, &mut bytes)?;
            client.send(&bytes)?;
            match kind {
                b'Z' => return Ok(()),
                // The client answers all except "ok" and the end of a SASL exchange.
                b'R' if !matches!(word(&bytes[5..]), 0 | 12) => {
                    let mut bytes = Vec::new();
                    message(client, &mut bytes)?;
                    server.send(&bytes)?;
                }
                _ => {}
            }
        }
    }

    fn request(&mut self, client: &mut Peer) -> io::Result<Option<Request>> {
        let (mut bytes, mut class) = (Vec::new(), String::new());
        let mut prepares = false;
        loop {
            if client.peek(1)?.is_none() {
                return Ok(None);
            }
            let start = bytes.len();
            let kind = message(client, &mut bytes)?;
            let body = &bytes[start + 5..];
            match kind {
                b'P' => {
                    let (name, rest) = until_zero(body);
                    let text = String::from_utf8_lossy(until_zero(rest).0).into_owned();
                    self.statements.insert(name.to_vec(), text.clone());
                    prepares = true;
                    class = text;
                }
                b'B' => {
                    let (_, rest) = until_zero(body);
                    prepares = false;
                    class = self.statements.get(until_zero(rest).0).cloned().unwrap_or_default();
                }
                b'Q' => class = String::from_utf8_lossy(until_zero(body).0).into_owned(),
                _ => {}
            }
            if matches!(kind, b'S' | b'Q' | b'X') {
                let answered = kind != b'X';
                let kind = if prepares || !answered { Kind::Other } else { of_sql(&class) };
                return Ok(Some(Request { bytes, class: without_numbers(&class), kind, answered }));
            }
        }
    }

    fn essence<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        // Each preparation uses another statement name.
        if message.first() != Some(&b'B') {
            return message;
        }
        let (_, rest) = until_zero(message.get(5..).unwrap_or_default());
        until_zero(rest).1
    }

    fn answer(&mut self, _: &Request, client: &mut Peer, server: &mut Peer) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let kind = message(server, &mut bytes)?;
            match kind {
                b'Z' => return Ok(bytes),
                // COPY FROM STDIN: the client sends the data.
                b'G' => {
                    client.send(&bytes)?;
                    bytes.clear();
                    loop {
                        let mut data = Vec::new();
                        let kind = message(client, &mut data)?;
                        server.send(&data)?;
                        if matches!(kind, b'c' | b'f') {
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Reads one message and returns its kind.
fn message(from: &mut Peer, out: &mut Vec<u8>) -> io::Result<u8> {
    let start = out.len();
    from.take(5, out)?;
    let length = word(&out[start + 1..]) as usize;
    from.take(length.saturating_sub(4), out)?;
    Ok(out[start])
}

fn word(bytes: &[u8]) -> u32 {
    bytes.get(..4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

fn until_zero(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}
