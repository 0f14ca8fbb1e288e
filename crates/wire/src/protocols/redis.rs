//! RESP, of Redis and Valkey: what clients send is arrays of texts, or lines.

use crate::decoder::{Decode, Request, Seen};
use crate::input::Input;
use crate::reader::Stop;
use crate::view::Step;
use kurabe_protocol::resp::{Line, number};

/// Words of a request that are read.
const WORDS: usize = 4;
/// The part of a word that is read, in bytes.
const WORD: usize = 512;

/// Commands that name what they do in their second word.
pub(super) const CONTAINERS: [&str; 16] = [
    "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DEBUG", "FUNCTION", "LATENCY", "MEMORY", "MODULE",
    "OBJECT", "PUBSUB", "SCRIPT", "SENTINEL", "SLOWLOG", "XINFO",
];
/// Commands by which drivers set up a connection or ask about the server.
const SETUP: [&str; 17] = [
    "ACL", "ASKING", "AUTH", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "ECHO", "HELLO", "INFO", "PING",
    "QUIT", "READONLY", "RESET", "ROLE", "SELECT", "SENTINEL",
];

/// Why a stream cannot be read.
const NOT_REDIS: &str = "the client does not speak the protocol of Redis";

/// The decoder.
#[derive(Default)]
pub(crate) struct Redis(Requests<WORDS, WORD>);

impl Decode for Redis {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) -> Result<(), Stop> {
        self.0.push(bytes);
        while let Some(request) = self.0.next()? {
            tell(&request, seen);
        }
        Ok(())
    }
}

/// Reads requests from what a client sends, and keeps at most `WORDS` words of each, and `WORD` bytes of each word.
#[derive(Default)]
pub(super) struct Requests<const WORDS: usize, const WORD: usize> {
    client: Input,
    /// The request that is being read.
    request: Option<Command>,
}

/// A request.
#[derive(Default)]
pub(super) struct Command {
    at: u64,
    /// Words that have not arrived.
    left: u64,
    /// The length of the word that follows.
    length: Option<u64>,
    pub(super) words: Vec<Vec<u8>>,
    /// Whether words, or the ends of some, were not kept.
    pub(super) cut: bool,
}

impl<const WORDS: usize, const WORD: usize> Requests<WORDS, WORD> {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.client.push(bytes);
    }

    /// The next request; `None` if it has not arrived.
    pub(super) fn next(&mut self) -> Result<Option<Command>, Stop> {
        loop {
            if let Some(request) = self.request.take_if(|request| request.left == 0) {
                return Ok(Some(request));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
    }

    /// Reads the next line or word. Returns whether it was complete.
    fn read(&mut self) -> Result<bool, Stop> {
        if let Some(request) = &mut self.request
            && let Some(length) = request.length
        {
            let Some(word) = self.client.take(length + 2, WORD) else { return Ok(false) };
            request.length = None;
            request.left -= 1;
            let end = usize::try_from(length).unwrap_or(usize::MAX).min(word.bytes.len());
            if request.words.len() < WORDS {
                request.cut |= (end as u64) < length;
                request.words.push(word.bytes.get(..end).unwrap_or_default().to_vec());
            } else {
                request.cut = true;
            }
            return Ok(true);
        }
        let Some(line) = self.client.line().map_err(|_| NOT_REDIS)? else { return Ok(false) };
        match (line.bytes.first(), &mut self.request) {
            (Some(b'$'), Some(request)) => {
                request.length = Some(match Line::read(&line.bytes) {
                    Some(Line::Text(length)) => length,
                    Some(Line::Null) => 0,
                    _ => return Err(NOT_REDIS.into()),
                });
            }
            (Some(b'*'), None) => {
                let count = number(&line.bytes[1..]).ok_or(NOT_REDIS)?;
                if count > 0 {
                    self.request =
                        Some(Command { at: line.at, left: count.unsigned_abs(), ..Command::default() });
                }
            }
            // A command in one line, as by telnet.
            (Some(first), None) if first.is_ascii_alphabetic() => {
                let text = line.text();
                let words = text.split_whitespace().take(WORDS);
                let words = words.map(|word| word.as_bytes().to_vec()).collect();
                self.request = Some(Command { at: line.at, words, ..Command::default() });
            }
            (None, None) => {}
            // No word of an array, or no request.
            _ => return Err(NOT_REDIS.into()),
        }
        Ok(true)
    }
}

/// Tells of a request.
fn tell(request: &Command, seen: &mut Vec<Seen>) {
    let words: Vec<String> =
        request.words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let command = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    if let [_, verb, name, value, ..] = words.as_slice()
        && command == "CLIENT"
        && verb.eq_ignore_ascii_case("SETINFO")
        && name.eq_ignore_ascii_case("LIB-NAME")
    {
        seen.push(Seen::Client(value.clone()));
    }
    let is_setup = SETUP.contains(&command.as_str());
    let text = shown(&command, &words);
    seen.push(Seen::Request(Request { at: request.at, text, step: Step::Text, is_setup }));
}

/// The command with the words that say what it does: values, and passwords among them, are left out.
fn shown(command: &str, words: &[String]) -> String {
    let count = match command {
        "AUTH" => 1,
        "ACL" => 2,
        "CLIENT" if words.get(1).is_some_and(|verb| verb.eq_ignore_ascii_case("SETINFO")) => 4,
        _ if CONTAINERS.contains(&command) => 3,
        _ => 2,
    };
    // `CONFIG SET requirepass …` has its name, and no value.
    let mut text = command.to_owned();
    for word in words.iter().take(count).skip(1) {
        text.push(' ');
        text.push_str(word);
    }
    text
}
