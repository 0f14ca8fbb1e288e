//! RESP2 and RESP3: Redis and Valkey.

use crate::relay::peer::{Peer, number};
use crate::relay::protocol::{Kind, Protocol, Request, without_numbers};
use std::io;

/// A connection to a Redis or a Valkey.
pub struct Resp;

impl Protocol for Resp {
    fn request(&mut self, client: &mut Peer) -> io::Result<Option<Request>> {
        let mut bytes = Vec::new();
        value(client, &mut bytes)?;
        let words = words(&bytes);
        let command =
            words.first().map(|word| String::from_utf8_lossy(word).to_uppercase()).unwrap_or_default();
        let kind = match command.as_str() {
            "GET" | "HGET" | "HGETALL" | "HMGET" | "MGET" | "HSTRLEN" | "STRLEN" | "EVALSHA_RO" => Kind::Read,
            "SET" | "HSET" | "HMSET" | "HSETNX" | "SETNX" | "DEL" | "EVALSHA" | "HINCRBY" | "INCR"
            | "HDEL" | "MSET" | "MSETNX" | "FCALL" => Kind::Write,
            // UNLINK removes what SCAN listed: old values, which no result depends on.
            _ => Kind::Other,
        };
        let key = words.get(1).map(|word| String::from_utf8_lossy(word).into_owned()).unwrap_or_default();
        let ours = key.contains("marker") || key.contains("claim");
        let kind = if ours { Kind::Other } else { kind };
        // The record follows the colon.
        let collection = key.split(':').next().unwrap_or_default();
        let class = format!("{command}/{} {}", words.len(), without_numbers(collection));
        Ok(Some(Request { bytes, class, kind, answered: true }))
    }

    fn answer(&mut self, _: &Request, _: &mut Peer, server: &mut Peer) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Push messages of the server precede the answer.
        while server.peek(1)?.is_some_and(|first| first == b">") {
            value(server, &mut bytes)?;
        }
        value(server, &mut bytes)?;
        Ok(bytes)
    }
}

/// Reads one value with its nested values.
fn value(from: &mut Peer, out: &mut Vec<u8>) -> io::Result<()> {
    let mut left = 1_i64;
    while left > 0 {
        left -= 1;
        let start = from.line(out)?;
        let length = number(out.get(start + 1..).unwrap_or_default());
        match out.get(start) {
            Some(b'$' | b'!' | b'=') if length >= 0 => from.take(length as usize + 2, out)?,
            Some(b'*' | b'~' | b'>') => left += length.max(0),
            Some(b'%') => left += 2 * length.max(0),
            Some(b'|') => left += 2 * length.max(0) + 1,
            _ => {}
        }
    }
    Ok(())
}

fn words(request: &[u8]) -> Vec<&[u8]> {
    let mut words = Vec::new();
    let mut rest = request;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = rest.split_at(end + 1);
        rest = after;
        if line.first() == Some(&b'$') {
            let length = number(&line[1..]).max(0) as usize;
            let Some(word) = rest.get(..length) else { break };
            words.push(word);
            rest = rest.get(length + 2..).unwrap_or_default();
        }
    }
    words
}
