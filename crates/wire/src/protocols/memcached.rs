//! memcached: the text and meta commands (`protocol.txt`), and the requests of the binary protocol.

use crate::decoder::{Decoder, Request, Seen, Step};
use crate::input::{Input, begins_with_tls, word_be};

/// The first byte of a request of the binary protocol.
const BINARY: u8 = 0x80;
/// The length of its header, in bytes.
const HEADER: usize = 24;
/// The longest key, in bytes.
const KEY: usize = 250;

/// The decoder.
#[derive(Default)]
pub(crate) struct Memcached {
    client: Input,
}

impl Decoder for Memcached {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        self.client.push(bytes);
        while self.next(seen).is_some() {}
    }
}

impl Memcached {
    /// Reads the next request; `None` if it is not complete.
    fn next(&mut self, seen: &mut Vec<Seen>) -> Option<()> {
        let waiting = self.client.waiting();
        if *waiting.first()? == BINARY {
            return self.binary(seen);
        }
        if self.client.position() == 0 && begins_with_tls(waiting)? {
            seen.push(Seen::Encrypted);
            self.client.close();
            return None;
        }
        let Ok(line) = self.client.line() else { return self.give_up(seen) };
        let line = line?;
        let text = line.text();
        let mut words = text.split_whitespace();
        let Some(command) = words.next() else { return Some(()) };
        if !command.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            return self.give_up(seen);
        }
        let words: Vec<&str> = words.collect();
        let size = match command {
            "ms" => words.get(1),
            "set" | "add" | "replace" | "append" | "prepend" | "cas" => words.get(3),
            _ => None,
        };
        if let Some(size) = size {
            // The value with its end of line; the first versions of `ms` wrote S before its size.
            let Ok(size) = size.trim_start_matches('S').parse::<u64>() else { return self.give_up(seen) };
            self.client.pass(size.saturating_add(2));
        }
        let is_setup = matches!(
            command,
            "version" | "verbosity" | "stats" | "mn" | "quit" | "watch" | "refresh_certs" | "shutdown"
        );
        let shown = words.first().map_or_else(String::new, |word| format!(" {word}"));
        let text = format!("{command}{shown}");
        seen.push(Seen::Request(Request { at: line.at, text, step: Step::Text, is_setup }));
        Some(())
    }

    fn binary(&mut self, seen: &mut Vec<Seen>) -> Option<()> {
        let header = self.client.waiting().get(..HEADER)?;
        let (code, key) = (header[1], usize::from(u16::from_be_bytes([header[2], header[3]])));
        let (extras, body) = (usize::from(header[4]), u64::from(word_be(header, 8)));
        if (key + extras) as u64 > body {
            return self.give_up(seen);
        }
        let message = self.client.take(HEADER as u64 + body, HEADER + extras + key.min(KEY))?;
        let (name, is_setup) = opcode(code);
        let key = message.bytes.get(HEADER + extras..).unwrap_or_default();
        let text =
            if key.is_empty() { name.to_owned() } else { format!("{name} {}", String::from_utf8_lossy(key)) };
        seen.push(Seen::Request(Request { at: message.at, text, step: Step::Text, is_setup }));
        Some(())
    }

    fn give_up(&mut self, seen: &mut Vec<Seen>) -> Option<()> {
        seen.push(Seen::Unreadable("the client does not speak the protocol of memcached"));
        self.client.close();
        None
    }
}

/// The name of a binary request, and whether it sets up the connection or asks about the server.
fn opcode(code: u8) -> (&'static str, bool) {
    match code {
        0x00 | 0x09 | 0x0c | 0x0d => ("get", false),
        0x01 | 0x11 => ("set", false),
        0x02 | 0x12 => ("add", false),
        0x03 | 0x13 => ("replace", false),
        0x04 | 0x14 => ("delete", false),
        0x05 | 0x15 => ("incr", false),
        0x06 | 0x16 => ("decr", false),
        0x07 | 0x17 => ("quit", true),
        0x08 | 0x18 => ("flush_all", false),
        0x0a => ("no-op", true),
        0x0b => ("version", true),
        0x0e | 0x19 => ("append", false),
        0x0f | 0x1a => ("prepend", false),
        0x10 => ("stats", true),
        0x1b => ("verbosity", true),
        0x1c => ("touch", false),
        0x1d | 0x1e => ("gat", false),
        // Its body, the password, is not read; the key is the method's name.
        0x20..=0x22 => ("sasl", true),
        _ => ("another request", false),
    }
}
