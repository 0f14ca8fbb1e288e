//! RESP, of Redis and Valkey: what clients send is arrays of texts, or lines.

use crate::decoder::{Decoder, Request, Seen, Step};
use crate::input::{Input, begins_with_tls};

/// Words of a request that are read.
const WORDS: usize = 4;
/// The part of a word that is read, in bytes.
const WORD: usize = 512;

/// Commands that name what they do in their second word.
const CONTAINERS: [&str; 16] = [
    "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DEBUG", "FUNCTION", "LATENCY", "MEMORY", "MODULE",
    "OBJECT", "PUBSUB", "SCRIPT", "SENTINEL", "SLOWLOG", "XINFO",
];
/// Commands by which drivers set up a connection or ask about the server.
const SETUP: [&str; 17] = [
    "ACL", "ASKING", "AUTH", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "ECHO", "HELLO", "INFO", "PING",
    "QUIT", "READONLY", "RESET", "ROLE", "SELECT", "SENTINEL",
];

/// The decoder.
#[derive(Default)]
pub(crate) struct Redis {
    client: Input,
    /// The request that is being read.
    request: Option<Partial>,
}

struct Partial {
    at: u64,
    /// Words that have not arrived.
    left: u64,
    /// The length of the word that follows.
    length: Option<u64>,
    words: Vec<Vec<u8>>,
}

impl Decoder for Redis {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        self.client.push(bytes);
        while self.next(seen).is_some() {}
    }
}

impl Redis {
    /// Reads the next line or word; `None` if it is not complete.
    fn next(&mut self, seen: &mut Vec<Seen>) -> Option<()> {
        if let Some(request) = &mut self.request
            && let Some(length) = request.length
        {
            let word = self.client.take(length.saturating_add(2), WORD)?;
            request.length = None;
            request.left -= 1;
            if request.words.len() < WORDS {
                let end = usize::try_from(length).unwrap_or(usize::MAX).min(word.bytes.len());
                request.words.push(word.bytes.get(..end).unwrap_or_default().to_vec());
            }
            self.complete(seen);
            return Some(());
        }
        if self.client.position() == 0 && begins_with_tls(self.client.waiting())? {
            seen.push(Seen::Encrypted);
            self.client.close();
            return None;
        }
        let Ok(line) = self.client.line() else { return self.give_up(seen) };
        let line = line?;
        let text = line.text();
        let number = |text: &str| text.get(1..).and_then(|digits| digits.parse::<i64>().ok());
        match (text.bytes().next(), &mut self.request) {
            (Some(b'$'), Some(request)) => match number(&text) {
                Some(length) => request.length = Some(length.max(0).unsigned_abs()),
                None => return self.give_up(seen),
            },
            (Some(b'*'), None) => {
                let Some(count) = number(&text) else { return self.give_up(seen) };
                if count > 0 {
                    let left = count.unsigned_abs();
                    self.request = Some(Partial { at: line.at, left, length: None, words: Vec::new() });
                }
            }
            // A command in one line, as by telnet.
            (Some(first), None) if first.is_ascii_alphabetic() => {
                let words =
                    text.split_whitespace().take(WORDS).map(|word| word.as_bytes().to_vec()).collect();
                self.request = Some(Partial { at: line.at, left: 0, length: None, words });
                self.complete(seen);
            }
            (None, None) => {}
            // No word of an array, or no request.
            _ => return self.give_up(seen),
        }
        Some(())
    }

    /// Tells of the request if all its words have arrived.
    fn complete(&mut self, seen: &mut Vec<Seen>) {
        if let Some(request) = self.request.take_if(|request| request.left == 0) {
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
    }

    fn give_up(&mut self, seen: &mut Vec<Seen>) -> Option<()> {
        seen.push(Seen::Unreadable("the client does not speak the protocol of Redis"));
        self.client.close();
        None
    }
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
