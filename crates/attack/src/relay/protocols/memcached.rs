//! memcached: the meta commands, and the classic commands that answer with lines.

use crate::relay::peer::{Peer, number};
use crate::relay::protocol::{Kind, Protocol, Request, without_numbers};
use std::io;

/// A connection to a memcached.
#[derive(Default)]
pub struct Memcached {
    /// Whether it has listed keys. What it deletes afterwards are old values, which no result depends on.
    has_listed: bool,
}

impl Protocol for Memcached {
    fn request(&mut self, client: &mut Peer) -> io::Result<Option<Request>> {
        let mut bytes = Vec::new();
        client.line(&mut bytes)?;
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let size = match words[0] {
            "ms" => words.get(2),
            "set" | "add" | "replace" | "append" | "prepend" | "cas" => words.get(4),
            _ => None,
        };
        if let Some(size) = size {
            client.take(number(size.as_bytes()).max(0) as usize + 2, &mut bytes)?;
        }
        let key = words.get(1).copied().unwrap_or_default();
        self.has_listed |= words[0] == "lru_crawler";
        let kind = match words[0] {
            _ if key.contains("marker") || key.contains("claim") => Kind::Other,
            "md" if self.has_listed => Kind::Other,
            "mg" | "get" | "gets" => Kind::Read,
            "ms" | "md" | "ma" | "set" | "add" | "replace" | "delete" => Kind::Write,
            _ => Kind::Other,
        };
        let collection = key.split(':').next().unwrap_or_default();
        let class = format!("{} {}", words[0], without_numbers(collection));
        Ok(Some(Request { bytes, class, kind, answered: !words.contains(&"noreply") }))
    }

    fn answer(&mut self, request: &Request, _: &mut Peer, server: &mut Peer) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let lines = ["get ", "gets ", "stats", "lru_crawler metadump", "config get"];
        let until_end = lines.iter().any(|start| request.bytes.starts_with(start.as_bytes()));
        loop {
            let start = server.line(&mut bytes)?;
            let line = String::from_utf8_lossy(&bytes[start..]).trim_end().to_owned();
            let words: Vec<&str> = line.split(' ').collect();
            let at = match words[0] {
                "VA" => Some(1),
                "VALUE" => Some(3),
                _ => None,
            };
            if let Some(at) = at {
                let size = words.get(at).copied().unwrap_or_default();
                server.take(number(size.as_bytes()).max(0) as usize + 2, &mut bytes)?;
            }
            let refused =
                ["END", "ERROR", "RESET", "OK", "BUSY"].contains(&words[0]) || words[0].ends_with("_ERROR");
            if !until_end || refused {
                return Ok(bytes);
            }
        }
    }

    fn value(&self, message: &[u8]) -> std::ops::Range<usize> {
        // After the first line, which is framing.
        let line = message.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if line + 2 < message.len() { line..message.len() - 2 } else { 0..0 }
    }
}
