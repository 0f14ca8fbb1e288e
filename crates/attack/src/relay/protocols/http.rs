//! HTTP/1.1: `CouchDB` and `kurabe up app`.

use crate::relay::hostile::replaced;
use crate::relay::peer::{Peer, number};
use crate::relay::protocol::{Kind, Protocol, Request, longest, without_numbers};
use std::io;

/// A connection to an HTTP server.
pub struct Http;

impl Protocol for Http {
    fn request(&mut self, client: &mut Peer) -> io::Result<Option<Request>> {
        let mut bytes = Vec::new();
        let head = head(client, &mut bytes)?;
        if head.length().is_some() || head.chunked() {
            body(&head, client, &mut bytes)?;
        }
        let mut words = head.first.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let asks = ["_find", "_all_docs", "_view", "_bulk_get"].iter().any(|word| path.contains(word));
        let kind = match method {
            _ if path.contains("marker") || path.contains("claim") => Kind::Other,
            "GET" if path.contains("/write") => Kind::Write,
            "GET" if path.contains("/read") || path.matches('/').count() > 1 => Kind::Read,
            "POST" if asks => Kind::Read,
            "PUT" | "POST" | "DELETE" if path.matches('/').count() > 1 => Kind::Write,
            _ => Kind::Other,
        };
        let place: String = path.split(['?']).next().unwrap_or_default().to_owned();
        let folder = place.rsplit_once('/').map_or("", |(folder, _)| folder);
        let last = if kind == Kind::Other || asks { place.as_str() } else { folder };
        Ok(Some(Request {
            bytes,
            class: format!("{method} {}", without_numbers(last)),
            kind,
            answered: true,
        }))
    }

    fn answer(&mut self, request: &Request, _: &mut Peer, server: &mut Peer) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let start = bytes.len();
            let head = head(server, &mut bytes)?;
            let status = number(head.first.split(' ').nth(1).unwrap_or_default().as_bytes());
            if (100..200).contains(&status) {
                continue;
            }
            if !(request.bytes.starts_with(b"HEAD ") || status == 204 || status == 304) {
                body(&head, server, &mut bytes)?;
            }
            bytes.drain(..start);
            return Ok(bytes);
        }
    }

    fn readdress(&self, answer: &[u8], from: &Request, to: &Request) -> Vec<u8> {
        let (old, new) = (last_segment(&from.bytes), last_segment(&to.bytes));
        if old.len() != new.len() || old.len() < 4 {
            return answer.to_vec();
        }
        replaced(answer, &old, &new).0
    }

    fn value(&self, message: &[u8]) -> std::ops::Range<usize> {
        let body = message.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4);
        // The longest string of the JSON: revisions and identifiers are shorter than a record.
        let found = longest(message, body, |byte| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte));
        if found.len() < 40 { body..body } else { found }
    }
}

/// The last segment of a request's path.
fn last_segment(request: &[u8]) -> Vec<u8> {
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let path = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec()
}

/// The first line and the header fields of a message.
struct Head {
    first: String,
    fields: Vec<(String, String)>,
}

impl Head {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn length(&self) -> Option<usize> {
        self.field("content-length").and_then(|text| text.parse().ok())
    }

    fn chunked(&self) -> bool {
        self.field("transfer-encoding").is_some_and(|text| text.contains("chunked"))
    }
}

fn head(from: &mut Peer, out: &mut Vec<u8>) -> io::Result<Head> {
    let start = from.line(out)?;
    let first = String::from_utf8_lossy(&out[start..]).trim_end().to_owned();
    let mut fields = Vec::new();
    loop {
        let start = from.line(out)?;
        let line = String::from_utf8_lossy(&out[start..]).trim_end().to_owned();
        let Some((name, value)) = line.split_once(':') else { return Ok(Head { first, fields }) };
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn body(head: &Head, from: &mut Peer, out: &mut Vec<u8>) -> io::Result<()> {
    if head.chunked() {
        loop {
            let start = from.line(out)?;
            let text = String::from_utf8_lossy(&out[start..]).trim_end().to_owned();
            let size = usize::from_str_radix(text.split(';').next().unwrap_or_default(), 16).unwrap_or(0);
            if size == 0 {
                // Trailers, and the line that ends them.
                while {
                    let start = from.line(out)?;
                    out[start..].len() > 2
                } {}
                return Ok(());
            }
            from.take(size + 2, out)?;
        }
    }
    if let Some(length) = head.length() {
        return from.take(length, out);
    }
    // The body ends with the connection.
    while from.peek(1)?.is_some() {
        from.take(1, out)?;
    }
    Ok(())
}
