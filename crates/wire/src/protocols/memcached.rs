//! memcached: the text and meta commands (`protocol.txt`), and the requests of the binary protocol.

use crate::decoder::{Decode, Request, Seen};
use crate::input::{Input, Message};
use crate::reader::Stop;
use crate::view::Step;
use kurabe_protocol::memcached::{Binary, place_of_size, size};
use kurabe_protocol::{Found, Header as _};

/// The longest key, in bytes.
const KEY: usize = 250;
/// Why a stream cannot be read.
pub(super) const NOT_MEMCACHED: &str = "the client does not speak the protocol of memcached";

/// Reads what a client sends, and keeps values of at most `MAX` bytes. Longer values are not kept.
#[derive(Default)]
pub(super) struct Requests<const MAX: usize> {
    input: Input,
    /// A request whose value has not arrived: its line, and the size of the value.
    stored: Option<(Message, u64)>,
}

/// What follows in the stream.
pub(super) enum Next {
    /// A request: its line, and its value, if it has one.
    Command { line: Message, value: Option<Value> },
    /// A request of the binary protocol, which [`Requests::binary`] reads.
    Binary,
}

/// The value of a request; `None` if it is too long to be kept.
pub(super) type Value = Option<Vec<u8>>;

impl<const MAX: usize> Requests<MAX> {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.input.push(bytes);
    }

    /// The number of bytes that wait to be read.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.input.waiting().len()
    }

    /// What follows; `None` if it has not arrived.
    pub(super) fn next(&mut self) -> Result<Option<Next>, Stop> {
        loop {
            if let Some((line, size)) = self.stored.take() {
                let kept = if size <= MAX as u64 { size } else { 0 };
                // The value, and the end of its line.
                let Some(value) = self.input.take(size + 2, usize::try_from(kept).unwrap_or_default()) else {
                    self.stored = Some((line, size));
                    return Ok(None);
                };
                let value = (size == kept).then_some(value.bytes);
                return Ok(Some(Next::Command { line, value: Some(value) }));
            }
            if self.input.waiting().first() == Some(&Binary::MAGIC) {
                return Ok(Some(Next::Binary));
            }
            let Some(line) = self.input.line().map_err(|_| NOT_MEMCACHED)? else { return Ok(None) };
            let words: Vec<_> = words(&line.bytes).collect();
            let Some((command, words)) = words.split_first() else { continue };
            if !command.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_') {
                return Err(NOT_MEMCACHED.into());
            }
            let Some(place) = place_of_size(command) else {
                return Ok(Some(Next::Command { line, value: None }));
            };
            let size = words.get(place).and_then(|word| size(word)).ok_or(NOT_MEMCACHED)?;
            self.stored = Some((line, size));
        }
    }

    /// Reads a request of the binary protocol, without its value; `None` if it has not arrived.
    fn binary(&mut self) -> Result<Option<(Binary, Message)>, Stop> {
        let header = match Binary::find(self.input.waiting()) {
            Found::Need(_) => return Ok(None),
            Found::Invalid(_) => return Err(NOT_MEMCACHED.into()),
            Found::Header(header) => header,
        };
        let kept = Binary::LENGTH + header.extras + header.key.min(KEY);
        let message = self.input.take(Binary::LENGTH as u64 + header.body(), kept);
        Ok(message.map(|message| (header, message)))
    }
}

/// The words of a line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

/// The decoder.
#[derive(Default)]
pub(crate) struct Memcached(Requests<0>);

impl Decode for Memcached {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) -> Result<(), Stop> {
        self.0.push(bytes);
        while let Some(next) = self.0.next()? {
            let (at, text, is_setup) = match next {
                Next::Command { line, .. } => {
                    let shown: Vec<_> = words(&line.bytes).take(2).map(String::from_utf8_lossy).collect();
                    (line.at, shown.join(" "), shown.first().is_some_and(|name| SETUP.contains(&&**name)))
                }
                Next::Binary => {
                    let Some((header, message)) = self.0.binary()? else { return Ok(()) };
                    let (name, is_setup) = opcode(header.code);
                    let key = message.bytes.get(Binary::LENGTH + header.extras..).unwrap_or_default();
                    let text = [name.as_bytes(), key].join(&b' ');
                    let text = String::from_utf8_lossy(&text).trim_end().to_owned();
                    (message.at, text, is_setup)
                }
            };
            seen.push(Seen::Request(Request { at, text, step: Step::Text, is_setup }));
        }
        Ok(())
    }
}

/// Commands by which clients set up a connection or ask about the server.
const SETUP: [&str; 8] =
    ["version", "verbosity", "stats", "mn", "quit", "watch", "refresh_certs", "shutdown"];

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
