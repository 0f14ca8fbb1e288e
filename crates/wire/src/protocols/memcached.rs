//! What a recorder learns from memcached's text and meta commands: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.
//!
//! The parts of a request are its command and the words that follow, without the size of a value, which is the last part. The values
//! of an answer are its rows. A change that was made is an affected row.

use crate::input::{Input, Message};
use crate::view::{Digest, Event, Exchange, KEPT, ReadExchanges, Stop, Transaction, Waiting};
use kurabe_protocol::command::{Command, parts};
use kurabe_protocol::memcached::{length, place_of_size, size};
use std::time::Instant;

/// Commands of administrators, whose answer is one line of any words.
const LINES: [&str; 8] =
    ["cache_memlimit", "debugtime", "extstore", "lru", "misbehave", "refresh_certs", "shutdown", "slabs"];

/// Commands beside those with a value that take `noreply`.
const QUIET: [&str; 10] = [
    "cache_memlimit", "decr", "delete", "flush_all", "incr", "lru", "refresh_certs", "slabs", "touch",
    "verbosity",
];

/// The first byte of a request of the binary protocol.
const BINARY: u8 = 0x80;
const NOT_MEMCACHED: &str = "the client does not speak the protocol of memcached";
const NO_SERVER: &str =
    "the server does not speak the protocol of memcached, or the answer to a command is not known";

/// The value of a request; `None` if it is longer than [`KEPT`], which is not kept.
type Value = Option<Vec<u8>>;

#[derive(Default)]
pub(crate) struct Memcached {
    client: Input,
    /// A request whose value has not arrived: its line, and the size of the value.
    stored: Option<(Message, u64)>,
    /// Whether the client has said that nothing follows.
    has_quit: bool,
    waiting: Waiting,
    server: Input,
    answer: Answer,
    /// Whether the server answered a request other than with a refusal: a login is over.
    is_let_in: bool,
}

impl ReadExchanges for Memcached {
    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        if self.has_quit {
            return Ok(());
        }
        self.client.push(bytes);
        while !self.has_quit
            && let Some((line, value)) = self.next()?
        {
            self.command(&line, value, now, events)?;
        }
        Ok(())
    }

    fn received(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.server.push(bytes);
        while !self.server.waiting().is_empty() {
            let request = self.waiting.first().ok_or("the server answered without a request")?;
            let command = Command::read(&request.parameters).map_or("", Command::name);
            match self.answer.read(&mut self.server, command)? {
                None => return Ok(()),
                Some(false) => {}
                Some(true) => self.answered(now, events),
            }
        }
        Ok(())
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        self.waiting.end(|()| true, events);
    }
}

impl Memcached {
    /// The next request; `None` if it has not arrived.
    fn next(&mut self) -> Result<Option<(Message, Option<Value>)>, Stop> {
        loop {
            if let Some((line, size)) = self.stored.take() {
                let kept = if size <= KEPT as u64 { size } else { 0 };
                // The value, and the end of its line.
                let Some(value) = self.client.take(size + 2, usize::try_from(kept).unwrap_or_default())
                else {
                    self.stored = Some((line, size));
                    return Ok(None);
                };
                let value = (size == kept).then_some(value.bytes);
                return Ok(Some((line, Some(value))));
            }
            if self.client.waiting().first() == Some(&BINARY) {
                return Err("it speaks the binary protocol of memcached, which is not read".into());
            }
            let Some(line) = self.client.line(NOT_MEMCACHED)? else { return Ok(None) };
            let words: Vec<_> = words(&line.bytes).collect();
            let Some((command, words)) = words.split_first() else { continue };
            if !command.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_') {
                return Err(NOT_MEMCACHED.into());
            }
            let Some(place) = place_of_size(command) else {
                return Ok(Some((line, None)));
            };
            let size = words.get(place).and_then(|word| size(word)).ok_or(NOT_MEMCACHED)?;
            self.stored = Some((line, size));
        }
    }

    fn command(
        &mut self,
        line: &Message,
        value: Option<Value>,
        now: Instant,
        events: &mut Vec<Event>,
    ) -> Result<(), Stop> {
        let mut words: Vec<&[u8]> = words(&line.bytes).collect();
        if words.is_empty() {
            return Ok(());
        }
        let command = String::from_utf8_lossy(words.remove(0)).into_owned();
        if command == "quit" {
            // What follows has no answer.
            self.has_quit = true;
            return Ok(());
        }
        let place = place_of_size(command.as_bytes());
        if command == "watch" {
            return Err("it watches the server's log, which is not recorded".into());
        }
        let is_meta = matches!(&*command, "mg" | "ms" | "md" | "ma");
        if is_meta && words.iter().skip(1).any(|word| *word == b"q") {
            return Err("it gets no answers to meta commands, which is not recorded".into());
        }
        let takes_noreply = place.is_some() && !is_meta || QUIET.contains(&&*command);
        let is_quiet = takes_noreply && words.pop_if(|word| *word == b"noreply").is_some();
        if let Some(place) = place {
            words.remove(place);
        }
        let ended = is_quiet.then_some(now);
        let value = value.map(|value| value.filter(|value| !self.is_secret(value)));
        let cut = value == Some(None);
        let values = words.into_iter().map(<[u8]>::to_vec).chain(value.flatten());
        let parts = parts([command.as_str()], values, is_quiet);
        let request = Exchange {
            text: Command::read(&parts).map(Command::text).unwrap_or_default(),
            parameters: parts,
            cut,
            pipelined: !self.waiting.is_empty(),
            at: line.at,
            began: Some(now),
            ended,
            transaction: if is_quiet { Transaction::None } else { Transaction::Unknown },
            ..Exchange::default()
        };
        self.waiting.push((), request, Exchange::cut_values)?;
        self.give_quiet(events);
        Ok(())
    }

    /// Whether a value may be a login: a server with `-Y` takes user and password as the value of the first request that it does not refuse.
    fn is_secret(&self, value: &[u8]) -> bool {
        let is_pair = value.len() <= 512 && value.split(|byte| *byte == b' ').count() == 2;
        !self.is_let_in && is_pair
    }

    /// Gives the requests that have no answer, once all before them have theirs.
    fn give_quiet(&mut self, events: &mut Vec<Event>) {
        while self.waiting.first().is_some_and(|request| request.ended.is_some()) {
            let Some(((), request)) = self.waiting.pop() else { return };
            events.push(Event::Exchange(Box::new(request)));
        }
    }

    fn answered(&mut self, now: Instant, events: &mut Vec<Event>) {
        let answer = std::mem::take(&mut self.answer);
        self.is_let_in |= answer.error.is_none();
        let Some(((), mut request)) = self.waiting.pop() else { return };
        (request.ended, request.transaction) = (Some(now), Transaction::None);
        (request.rows, request.affected) = (answer.rows, answer.affected);
        (request.error, request.digest) = (answer.error, answer.digest.value());
        events.push(Event::Exchange(Box::new(request)));
        self.give_quiet(events);
    }
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

#[derive(Default)]
struct Answer {
    /// Bytes of a value that have not arrived; then the end of its line follows.
    value: Option<u64>,
    /// Whether nothing follows the value.
    is_last: bool,
    rows: u64,
    affected: u64,
    error: Option<String>,
    digest: Digest,
}

impl Answer {
    /// Reads on in the answer to a request. Returns whether it is complete; `None` if more has to arrive.
    fn read(&mut self, server: &mut Input, command: &str) -> Result<Option<bool>, &'static str> {
        if let Some(left) = self.value.as_mut().filter(|left| **left > 0) {
            self.digest.push(server.part(left).unwrap_or_default());
            return Ok(Some(false));
        }
        if self.value.is_none() {
            let Some(line) = server.line(NO_SERVER)? else { return Ok(None) };
            return self.line(&line.bytes, command).map(Some);
        }
        match server.waiting() {
            [b'\r', b'\n', ..] => server.pass(2),
            [b'\r'] => return Ok(None),
            _ => return Err(NO_SERVER),
        }
        self.value = None;
        self.digest.end_row();
        Ok(Some(self.is_last))
    }

    /// Reads a line. Returns whether the answer is complete.
    fn line(&mut self, line: &[u8], command: &str) -> Result<bool, &'static str> {
        // A key may have any bytes.
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        let mut words = text.split(' ');
        let first = words.next().unwrap_or_default();
        match first {
            "ERROR" | "ERROR:" | "CLIENT_ERROR" | "SERVER_ERROR" => {
                self.error = Some(first.trim_end_matches(':').to_owned());
                return Ok(true);
            }
            _ if LINES.contains(&command) => {}
            // Key, flags, size, and of `gets` a number that differs from server to server.
            "VALUE" if matches!(command, "get" | "gets" | "gat" | "gats") => {
                let (key, flags, size) = (words.next(), words.next(), words.next());
                for word in [key, flags] {
                    self.digest.push(word.ok_or(NO_SERVER)?.as_bytes());
                    self.digest.push(b" ");
                }
                return self.begin_value(size, false);
            }
            // Flags that were asked for may be times and numbers of the server.
            "VA" if matches!(command, "mg" | "ma") => return self.begin_value(words.next(), true),
            // Of a dump, a line for each key.
            word if command == "lru_crawler" && (word.starts_with("key=") || word == "mg") => {
                self.rows += 1;
                return Ok(false);
            }
            "BUSY" | "BADCLASS" if command == "lru_crawler" => {}
            "STAT" | "ITEM" | "PREFIX" if command == "stats" => {
                self.rows += 1;
                return Ok(false);
            }
            "END" if matches!(command, "get" | "gets" | "gat" | "gats" | "stats" | "lru_crawler") => {
                return Ok(true);
            }
            "HD" | "STORED" | "DELETED" | "TOUCHED" | "OK" => self.affected = 1,
            "NS" | "NF" | "EX" | "EN" | "MN" | "ME" | "NOT_STORED" | "NOT_FOUND" | "EXISTS" | "RESET" => {}
            "VERSION" if command == "version" => return Ok(true),
            number if matches!(command, "incr" | "decr") => {
                number.parse::<u64>().map_err(|_| NO_SERVER)?;
                self.affected = 1;
            }
            _ => return Err(NO_SERVER),
        }
        self.digest.push(first.as_bytes());
        self.digest.end_row();
        Ok(true)
    }

    fn begin_value(&mut self, size: Option<&str>, is_last: bool) -> Result<bool, &'static str> {
        self.value = Some(size.and_then(|size| length(size.as_bytes())).ok_or(NO_SERVER)?);
        self.is_last = is_last;
        self.rows += 1;
        Ok(false)
    }
}

#[cfg(test)]
pub(super) mod tests;
