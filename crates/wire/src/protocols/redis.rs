//! What a recorder learns from RESP (versions 2 and 3), of Redis and Valkey: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.
//!
//! The parts of a request are the name of its command and the words that follow. Of an answer, the elements
//! of the outermost array, set or map are its rows, and a number is how many it has affected.

use crate::input::Input;
use crate::view::{
    Digest, Event, Exchange, KEPT, ReadExchanges, Spans, Stop, Transaction, WAITING, Waiting, Watch,
};
use kurabe_protocol::command::{Command, parts};
use kurabe_protocol::resp::{Line, number};
use std::time::Instant;

/// The maximum number of words of a request that are kept.
const WORDS: usize = 100_000;
const DEPTH: usize = 64;

/// The longest text that may be a moment, and its end.
const SHORT: u64 = 42;

/// Commands that name what they do in their second word.
const CONTAINERS: [&str; 16] = [
    "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DEBUG", "FUNCTION", "LATENCY", "MEMORY", "MODULE",
    "OBJECT", "PUBSUB", "SCRIPT", "SENTINEL", "SLOWLOG", "XINFO",
];
/// Commands after which answers do not follow requests one by one.
const ONE_WAY: [&str; 7] = ["MONITOR", "PSUBSCRIBE", "PSYNC", "SSUBSCRIBE", "SUBSCRIBE", "SYNC", "REPLCONF"];
/// Commands whose words may be passwords.
const SECRET: [&str; 5] = ["AUTH", "ACL", "CONFIG", "MIGRATE", "SENTINEL"];
/// Commands whose answers have no order.
const UNORDERED: [&str; 11] =
    ["HGETALL", "HKEYS", "HVALS", "KEYS", "SDIFF", "SINTER", "SMEMBERS", "SPOP", "SSCAN", "SUNION", "SCAN"];

const NOT_REDIS: &str = "the client does not speak the protocol of Redis";
const NO_SERVER: &str = "the server does not speak the protocol of Redis";

#[derive(Default)]
pub(crate) struct Redis {
    client: Input,
    arriving: Option<Arriving>,
    waiting: Waiting,
    /// Whether a request of `MULTI` was answered, and not yet what ends it.
    in_transaction: bool,
    server: Input,
    answer: Option<Answer>,
    watch: Option<Watch>,
}

impl ReadExchanges for Redis {
    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.client.push(bytes);
        loop {
            if let Some(request) = self.arriving.take_if(|request| request.left == 0) {
                if !request.words.is_empty() {
                    self.request(&request, now, events)?;
                }
            } else if !self.read()? {
                return Ok(());
            }
        }
    }

    fn received(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.server.push(bytes);
        while !self.server.waiting().is_empty() {
            let request = self.waiting.first();
            let answer = self.answer.get_or_insert_with(|| {
                let command = request.and_then(|request| Command::read(&request.parameters));
                let is_ordered = !command.is_some_and(|command| UNORDERED.contains(&command.name()));
                let began = request.and_then(|request| request.began);
                Answer::new(is_ordered, self.watch.map(|watch| watch.spans(began)).unwrap_or_default())
            });
            let is_complete = if answer.text > 0 {
                answer.text(&mut self.server)
            } else {
                let Some(line) = self.server.line(NO_SERVER)? else { return Ok(()) };
                // What a server says unasked: of RESP3, `>`.
                if request.is_none() && answer.around.is_empty() && line.bytes.first() != Some(&b'>') {
                    return Err("the server answered without a request".into());
                }
                answer.line(&line.bytes).ok_or(NO_SERVER)?
            };
            if is_complete
                && let Some(answer) = self.answer.take()
                && !answer.is_push
            {
                self.answered(answer, now, events);
            }
        }
        Ok(())
    }

    fn watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        self.waiting.end(|()| true, events);
    }
}

impl Redis {
    /// Reads the next line or word. Returns whether it was complete.
    fn read(&mut self) -> Result<bool, Stop> {
        if let Some(request) = &mut self.arriving
            && let Some(length) = request.length
        {
            let Some(word) = self.client.take(length + 2, KEPT) else { return Ok(false) };
            request.length = None;
            request.left -= 1;
            let end = usize::try_from(length).unwrap_or(usize::MAX).min(word.bytes.len());
            if request.words.len() < WORDS && request.kept + end <= WAITING {
                request.kept += end;
                request.cut |= (end as u64) < length;
                request.words.push(word.bytes.get(..end).unwrap_or_default().to_vec());
            } else {
                request.cut = true;
            }
            return Ok(true);
        }
        let Some(line) = self.client.line(NOT_REDIS)? else { return Ok(false) };
        match (line.bytes.first(), &mut self.arriving) {
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
                    self.arriving =
                        Some(Arriving { at: line.at, left: count.unsigned_abs(), ..Arriving::default() });
                }
            }
            // A command in one line, as by telnet.
            (Some(first), None) if first.is_ascii_alphabetic() => {
                let text = line.text();
                let words = text.split_whitespace().take(WORDS);
                let words = words.map(|word| word.as_bytes().to_vec()).collect();
                self.arriving = Some(Arriving { at: line.at, words, ..Arriving::default() });
            }
            (None, None) => {}
            // No word of an array, or no request.
            _ => return Err(NOT_REDIS.into()),
        }
        Ok(true)
    }

    fn request(&mut self, command: &Arriving, now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        let (at, words, is_cut) = (command.at, command.words.as_slice(), command.cut);
        let word = |at: usize| -> String {
            let bytes = words.get(at).map(Vec::as_slice).unwrap_or_default();
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            bytes
                .iter()
                .map(|b| if known(*b) { char::from(b.to_ascii_uppercase()) } else { '_' })
                .take(40)
                .collect()
        };
        let (command, second) = (word(0), word(1));
        if command == "CLIENT" && second == "SETINFO" && word(2) == "LIB-NAME" {
            events.extend(words.get(3).map(|name| Event::Named(String::from_utf8_lossy(name).into_owned())));
        }
        let verbs = usize::from(words.len() > 1 && CONTAINERS.contains(&command.as_str()));
        let mut given = words.get(1 + verbs..).unwrap_or_default();
        let is_secret = SECRET.contains(&command.as_str());
        if is_secret && command != "CONFIG" {
            given = &[];
        } else if is_secret || command == "HELLO" {
            // The name of a setting, or the version; a password may follow.
            given = given.get(..1).unwrap_or_default();
        }
        let name = [command.as_str(), second.as_str()].into_iter().take(1 + verbs);
        let parts = parts(name, given.iter().cloned(), false);
        let request = Exchange {
            text: Command::read(&parts).map(Command::text).unwrap_or_default(),
            parameters: parts,
            cut: is_cut || is_secret,
            pipelined: !self.waiting.is_empty(),
            at,
            began: Some(now),
            ..Exchange::default()
        };
        self.waiting.push((), request, Exchange::cut_values)?;
        let is_one_way = ONE_WAY.contains(&command.as_str()) || command == "CLIENT" && second == "REPLY";
        let why = "it subscribes, or gets no answers, which is not recorded";
        if is_one_way { Err(why.into()) } else { Ok(()) }
    }

    fn answered(&mut self, answer: Answer, now: Instant, events: &mut Vec<Event>) {
        let Some(((), mut request)) = self.waiting.pop() else { return };
        match Command::read(&request.parameters).map_or("", Command::name) {
            "MULTI" => self.in_transaction |= answer.error.is_none(),
            "EXEC" | "DISCARD" | "RESET" => self.in_transaction = false,
            _ => {}
        }
        request.ended = Some(now);
        request.transaction = match (self.in_transaction, &answer.error) {
            (false, _) => Transaction::None,
            (true, None) => Transaction::Open,
            (true, Some(_)) => Transaction::Failed,
        };
        (request.rows, request.affected) = (answer.rows, answer.affected);
        request.error = answer.error;
        answer.digest.end(&mut request);
        events.push(Event::Exchange(Box::new(request)));
    }
}

#[derive(Default)]
struct Arriving {
    at: u64,
    /// Words that have not arrived.
    left: u64,
    /// The length of the word that follows.
    length: Option<u64>,
    words: Vec<Vec<u8>>,
    /// The bytes of these.
    kept: usize,
    /// Whether words, or the ends of some, were not kept.
    cut: bool,
}

#[derive(Default)]
struct Answer {
    /// Bytes of a text that have not arrived, its line end included.
    text: u64,
    /// The arrays around the next value: how many values are left, and whether they are attributes.
    around: Vec<(u64, bool)>,
    is_push: bool,
    rows: u64,
    affected: u64,
    error: Option<String>,
    digest: Digest,
    /// A text of which it is not known yet whether it is a moment.
    short: Vec<u8>,
    spans: Spans,
}

impl Answer {
    fn new(is_ordered: bool, spans: Spans) -> Self {
        Self { digest: Digest::new(is_ordered), spans, ..Self::default() }
    }

    /// Reads what has arrived of a text. Returns whether the answer is complete.
    fn text(&mut self, server: &mut Input) -> bool {
        let part = server.part(&mut self.text).unwrap_or_default();
        if self.text + (self.short.len() + part.len()) as u64 > SHORT {
            self.digest.push(&std::mem::take(&mut self.short));
            self.digest.push(part);
            return self.text == 0 && self.value();
        }
        self.short.extend_from_slice(part);
        if self.text > 0 {
            return false;
        }
        let text = std::mem::take(&mut self.short);
        self.digest.push_text(&text, self.spans);
        self.value()
    }

    /// Reads a line. Returns whether the answer is complete; `None` if it is none.
    fn line(&mut self, bytes: &[u8]) -> Option<bool> {
        let outermost = self.around.is_empty();
        let line = Line::read(bytes)?;
        let (values, is_attribute) = match line {
            Line::Items(count) | Line::Push(count) => (Some(count), false),
            Line::Pairs(count) => (Some(count * 2), false),
            Line::Attributes(count) => (Some(count * 2), true),
            _ => (None, false),
        };
        // The number of rows is known besides, and is not part of the first one; a nil list has none.
        // Nor is the length of a text, which the clock may change.
        if !(outermost && values.is_some() && bytes.first().is_some_and(|kind| b"*~%>|".contains(kind))
            || bytes.first() == Some(&b'$') && matches!(line, Line::Text(_)))
        {
            self.digest.push(bytes);
            self.digest.push(b"\r\n");
        }
        match line {
            Line::Int(number) if outermost => self.affected = number.max(0).unsigned_abs(),
            Line::Error(text) if outermost => self.error = Some(code(text)),
            Line::Text(length) | Line::LongError(length) => {
                self.rows += u64::from(outermost);
                self.error = (matches!(line, Line::LongError(_)) && outermost).then(|| "ERR".to_owned());
                self.text = length + 2;
                return Some(false);
            }
            Line::Items(count) | Line::Pairs(count) | Line::Push(count) if outermost => {
                self.rows = count;
                self.is_push |= matches!(line, Line::Push(_));
            }
            _ => {}
        }
        match values {
            Some(0) if is_attribute => Some(false),
            Some(values @ 1..) => {
                if self.around.len() >= DEPTH {
                    return None;
                }
                self.around.push((values, is_attribute));
                Some(false)
            }
            _ => Some(self.value()),
        }
    }

    /// A value is complete. Returns whether the answer is.
    fn value(&mut self) -> bool {
        loop {
            if self.around.len() <= 1 {
                self.digest.end_row();
            }
            let Some((left, is_attribute)) = self.around.last_mut() else { return true };
            *left -= 1;
            if *left > 0 {
                return false;
            }
            let was_attribute = *is_attribute;
            self.around.pop();
            // The value that has the attributes follows.
            if was_attribute {
                return false;
            }
        }
    }
}

/// The checksums of an empty list and of a nil one, as the whole answer.
pub fn lists_without_rows() -> [u64; 2] {
    [&b"*0"[..], b"*-1"].map(|line| {
        let mut answer = Answer::new(true, Spans::default());
        answer.line(line);
        answer.digest.value()
    })
}

/// The code of an error: its first word, if it is in capitals.
fn code(text: &[u8]) -> String {
    let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    let is_code = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    if is_code { String::from_utf8_lossy(word).into_owned() } else { "ERR".to_owned() }
}

#[cfg(test)]
pub(super) mod tests;
