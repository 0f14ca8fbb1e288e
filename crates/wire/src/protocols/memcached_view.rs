//! What a recorder learns from memcached's text and meta commands: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.
//!
//! A request is its command, whose text has a `?` for the words that follow; these are its parameters, without the size of a value,
//! which is the last one. Of an answer, its values are its rows, and a change that was made is one that is affected.

use crate::input::{Input, begins_with_tls};
use crate::view::{Digest, Event, Exchange, KEPT, Parameter, TOO_MANY, Transaction, View, Waiting};
use std::time::Instant;

/// The longest line of an answer, in bytes.
const LINE: usize = 64 << 10;
/// The largest value that a server can be set to take, in bytes.
const VALUE: u64 = 1 << 30;

/// Commands with a value: the place of its size among the words.
const STORES: [(&str, usize); 7] =
    [("set", 3), ("add", 3), ("replace", 3), ("append", 3), ("prepend", 3), ("cas", 3), ("ms", 1)];
/// Other commands that are known, each of which has one answer.
const OTHERS: [&str; 17] = [
    "get", "gets", "gat", "gats", "delete", "incr", "decr", "touch", "mg", "md", "ma", "mn", "me", "version",
    "verbosity", "flush_all", "stats",
];

/// Commands beside those with a value that take `noreply`.
const QUIET: [&str; 6] = ["delete", "incr", "decr", "touch", "flush_all", "verbosity"];

/// The view.
#[derive(Default)]
pub(crate) struct Memcached {
    client: Input,
    /// A request whose value has not arrived: itself, and the size of the value.
    stored: Option<(Exchange, u64)>,
    waiting: Waiting,
    answer: Answer,
    has_begun: bool,
    /// Whether the server answered a request other than with a refusal: a login is over.
    is_let_in: bool,
    closed: bool,
}

impl View for Memcached {
    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        if self.closed {
            return;
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            events.push(Event::Client(Vec::new()));
        }
        self.client.push(bytes);
        while !self.closed && self.next(now, events).is_some() {}
    }

    fn received(&mut self, mut bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        while !self.closed && !bytes.is_empty() {
            let Some(request) = self.waiting.first() else {
                return self.give_up("the server answered without a request", events);
            };
            match self.answer.read(&mut bytes, &request.text) {
                Ok(false) => {}
                Ok(true) => self.answered(now, events),
                Err(()) => self.give_up("the server does not speak the protocol of memcached", events),
            }
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        self.waiting.end(events);
    }
}

impl Memcached {
    /// Reads the next request; `None` if it is not complete.
    fn next(&mut self, now: Instant, events: &mut Vec<Event>) -> Option<()> {
        if let Some((_, size)) = &self.stored {
            let (whole, kept) = (size + 2, if *size <= KEPT as u64 { *size } else { 0 });
            let value = self.client.take(whole, usize::try_from(kept).unwrap_or_default())?.bytes;
            let (mut request, size) = self.stored.take()?;
            request.cut |= size != kept || self.is_secret(&value);
            if !request.cut {
                request.parameters.push(Parameter { value: Some(value), ..Parameter::default() });
            }
            self.request(request, now, events);
            return Some(());
        }
        if self.client.position() == 0 && begins_with_tls(self.client.waiting())? {
            self.give_up("the connection is encrypted", events);
            return None;
        }
        if self.client.waiting().first()? & 0x80 != 0 {
            self.give_up("it speaks the binary protocol of memcached, which is not recorded", events);
            return None;
        }
        let Ok(line) = self.client.line() else {
            self.give_up("the client does not speak the protocol of memcached", events);
            return None;
        };
        let line = line?;
        let mut words = line.bytes.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        if let Some(command) = words.next() {
            let command = String::from_utf8_lossy(command);
            self.line(&command, words.map(<[u8]>::to_vec).collect(), now, events);
        }
        Some(())
    }

    /// A request's line: its command and its other words.
    fn line(&mut self, command: &str, mut words: Vec<Vec<u8>>, now: Instant, events: &mut Vec<Event>) {
        let store = STORES.iter().find(|(name, _)| *name == command);
        if command == "quit" {
            // What follows has no answer.
            self.client.close();
            return;
        }
        if store.is_none() && !OTHERS.contains(&command) {
            return self.give_up("a command of memcached that is not recorded", events);
        }
        let is_meta = matches!(command, "mg" | "ms" | "md" | "ma");
        if is_meta && words.iter().skip(1).any(|word| word == b"q") {
            return self.give_up("it gets no answers to meta commands, which is not recorded", events);
        }
        let mut text = command.to_owned();
        let takes_noreply = store.is_some() && !is_meta || QUIET.contains(&command);
        let is_quiet = takes_noreply && words.last().is_some_and(|word| word == b"noreply");
        if is_quiet {
            words.pop();
        }
        let size = match store {
            Some((_, place)) if *place < words.len() => {
                let size = words.remove(*place);
                // The first versions of `ms` wrote S before its size.
                let digits = size.strip_prefix(b"S").unwrap_or(&size);
                let size = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
                Some(size.filter(|size| *size <= VALUE))
            }
            Some(_) => Some(None),
            None => None,
        };
        if !words.is_empty() || store.is_some() {
            text.push_str(" ?");
        }
        if is_quiet {
            text.push_str(" noreply");
        }
        let parameter = |word| Parameter { value: Some(word), ..Parameter::default() };
        let parameters = words.into_iter().map(parameter).collect();
        let request = Exchange {
            text,
            parameters,
            pipelined: self.waiting.first().is_some(),
            began: Some(now),
            ..Exchange::default()
        };
        match size {
            Some(Some(size)) => self.stored = Some((request, size)),
            Some(None) => self.give_up("the client does not speak the protocol of memcached", events),
            None => self.request(request, now, events),
        }
    }

    /// Whether a value may be a login: a server with `-Y` takes user and password as the value of the first request that it does not refuse.
    fn is_secret(&self, value: &[u8]) -> bool {
        let is_pair = value.len() <= 512 && value.split(|byte| *byte == b' ').count() == 2;
        !self.is_let_in && is_pair
    }

    /// A request is complete.
    fn request(&mut self, mut request: Exchange, now: Instant, events: &mut Vec<Event>) {
        if request.text.ends_with(" noreply") {
            (request.ended, request.transaction) = (Some(now), Transaction::None);
        }
        self.waiting.push(request);
        if self.waiting.is_full() {
            return self.give_up(TOO_MANY, events);
        }
        self.give_quiet(events);
    }

    /// Gives the requests that have no answer, once all before them have theirs.
    fn give_quiet(&mut self, events: &mut Vec<Event>) {
        while self.waiting.first().is_some_and(|request| request.ended.is_some()) {
            let Some(request) = self.waiting.pop() else { return };
            events.push(Event::Exchange(Box::new(request)));
        }
    }

    fn answered(&mut self, now: Instant, events: &mut Vec<Event>) {
        let answer = std::mem::take(&mut self.answer);
        self.is_let_in |= answer.error.is_none();
        let Some(mut request) = self.waiting.pop() else { return };
        (request.ended, request.transaction) = (Some(now), Transaction::None);
        (request.rows, request.affected) = (answer.rows, answer.affected);
        (request.error, request.digest) = (answer.error, answer.digest.value());
        events.push(Event::Exchange(Box::new(request)));
        self.give_quiet(events);
    }

    fn give_up(&mut self, why: &'static str, events: &mut Vec<Event>) {
        self.closed = true;
        self.end(events);
        events.push(Event::Unreadable(why));
    }
}

/// An answer that is being read.
struct Answer {
    line: Vec<u8>,
    /// Bytes of a value that have not arrived, and those of its line end.
    value: u64,
    line_end: u8,
    /// Whether nothing follows the value.
    is_last: bool,
    rows: u64,
    affected: u64,
    error: Option<String>,
    digest: Digest,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            line: Vec::new(),
            value: 0,
            line_end: 0,
            is_last: false,
            rows: 0,
            affected: 0,
            error: None,
            digest: Digest::new(true),
        }
    }
}

impl Answer {
    /// Reads on in the answer to a request. Returns whether it is complete.
    fn read(&mut self, bytes: &mut &[u8], request: &str) -> Result<bool, ()> {
        while !bytes.is_empty() {
            if self.value > 0 {
                let here = usize::try_from(self.value).unwrap_or(usize::MAX).min(bytes.len());
                let (piece, rest) = bytes.split_at(here);
                self.digest.push(piece);
                *bytes = rest;
                self.value -= here as u64;
                continue;
            }
            if self.line_end > 0 {
                let (first, rest) = bytes.split_first().ok_or(())?;
                if *first != [b'\n', b'\r'][usize::from(self.line_end - 1)] {
                    return Err(());
                }
                *bytes = rest;
                self.line_end -= 1;
                if self.line_end == 0 {
                    self.digest.end_row();
                    if self.is_last {
                        return Ok(true);
                    }
                }
                continue;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            self.line.extend_from_slice(piece);
            *bytes = rest;
            if self.line.len() > LINE {
                return Err(());
            }
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                if self.line(&line, request)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Reads a line. Returns whether the answer is complete.
    fn line(&mut self, line: &[u8], request: &str) -> Result<bool, ()> {
        let text = std::str::from_utf8(line.trim_ascii_end()).map_err(|_| ())?;
        let mut words = text.split(' ');
        let first = words.next().unwrap_or_default();
        let command = request.split(' ').next().unwrap_or_default();
        match first {
            "ERROR" | "CLIENT_ERROR" | "SERVER_ERROR" => {
                self.error = Some(first.to_owned());
                return Ok(true);
            }
            // Key, flags, size, and of `gets` a number that differs from server to server.
            "VALUE" if matches!(command, "get" | "gets" | "gat" | "gats") => {
                let (key, flags, size) = (words.next(), words.next(), words.next());
                for word in [key, flags] {
                    self.digest.push(word.ok_or(())?.as_bytes());
                    self.digest.push(b" ");
                }
                return self.begin_value(size, false);
            }
            // Flags that were asked for may be times and numbers of the server.
            "VA" if matches!(command, "mg" | "ma") => return self.begin_value(words.next(), true),
            "STAT" if command == "stats" => {
                self.rows += 1;
                return Ok(false);
            }
            "END" if matches!(command, "get" | "gets" | "gat" | "gats" | "stats") => return Ok(true),
            "HD" | "STORED" | "DELETED" | "TOUCHED" | "OK" => self.affected = 1,
            "NS" | "NF" | "EX" | "EN" | "MN" | "ME" | "NOT_STORED" | "NOT_FOUND" | "EXISTS" | "RESET" => {}
            "VERSION" if command == "version" => return Ok(true),
            number if matches!(command, "incr" | "decr") => {
                number.parse::<u64>().map_err(|_| ())?;
                self.affected = 1;
            }
            _ => return Err(()),
        }
        self.digest.push(first.as_bytes());
        self.digest.end_row();
        Ok(true)
    }

    fn begin_value(&mut self, size: Option<&str>, is_last: bool) -> Result<bool, ()> {
        self.value = size.and_then(|size| size.parse().ok()).filter(|size| *size <= VALUE).ok_or(())?;
        (self.line_end, self.is_last) = (2, is_last);
        self.rows += 1;
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{exchanges, seen_of};

    fn asked(text: &str) -> (bool, Vec<u8>) {
        (true, text.as_bytes().to_vec())
    }

    fn told(text: &str) -> (bool, Vec<u8>) {
        (false, text.as_bytes().to_vec())
    }

    fn seen(conversation: &[(bool, Vec<u8>)], piece: usize) -> Vec<Event> {
        seen_of(&mut Memcached::default(), conversation, piece)
    }

    #[test]
    fn requests_have_their_words_and_answers_their_shape_in_pieces_of_any_size() {
        let conversation = [
            asked("set login 0 0 12\r\nbob hunter22\r\n"),
            told("CLIENT_ERROR authentication failure\r\n"),
            asked("set login 0 0 11\r\nbob hunter2\r\n"),
            told("STORED\r\n"),
            asked("set a 5 0 4\r\n1\r\n2\r\n"),
            told("STORED\r\n"),
            asked("get a b c\r\nadd a 0 0 1 noreply\r\nx\r\nincr n 2\r\n"),
            told("VALUE a 5 4\r\n1\r\n2\r\nVALUE c 0 0\r\n\r\nEND\r\n7\r\n"),
            asked("cas a 0 60 2 99\r\nok\r\n"),
            told("EXISTS\r\n"),
            asked("mg a v t\r\nms b 3 T9\r\nabc\r\nmn\r\n"),
            told("VA 4 t-1\r\n1\r\n2\r\nHD\r\nMN\r\n"),
            asked("delete a\r\nstats\r\n"),
            told("NOT_FOUND\r\nSTAT pid 1\r\nSTAT uptime 2\r\nEND\r\n"),
            asked("set long 0 0 x\r\n"),
        ];
        let whole = seen(&conversation, usize::MAX >> 1);
        assert!(!format!("{whole:?}").contains("hunter2"));
        for piece in [1, 2, 3, 7] {
            assert_eq!(seen(&conversation, piece), whole);
        }
        let all = exchanges(&whole);
        let shown: Vec<_> =
            all.iter().map(|one| (one.text.as_str(), one.parameters.len(), one.rows, one.affected)).collect();
        let expected = [
            ("set ?", 3, 0, 0),
            ("set ?", 3, 0, 1),
            ("set ?", 4, 0, 1),
            ("get ?", 3, 2, 0),
            ("add ? noreply", 4, 0, 0),
            ("incr ?", 2, 0, 1),
            ("cas ?", 5, 0, 0),
            ("mg ?", 3, 1, 0),
            ("ms ?", 3, 0, 1),
            ("mn", 0, 0, 0),
            ("delete ?", 1, 0, 0),
            ("stats", 0, 2, 0),
        ];
        assert_eq!(shown, expected);
        assert!(all[0].cut && all[1].cut && !all[2].cut);
        assert!(all[4].pipelined && all[5].pipelined && !all[3].pipelined);
        assert_eq!(all[2].parameters[3].value.as_deref(), Some(&b"1\r\n2"[..]));
        assert!(matches!(whole.last(), Some(Event::Unreadable(_))), "{whole:?}");
    }

    #[test]
    fn values_flags_and_keys_make_the_digest_and_numbers_of_the_server_do_not() {
        let of = |command: &str, answer: &str| exchanges(&seen(&[asked(command), told(answer)], 3))[0].digest;
        let gets = |flags: u8, cas: u8, value: &str| {
            of("gets a\r\n", &format!("VALUE a {flags} 1 {cas}\r\n{value}\r\nEND\r\n"))
        };
        assert_eq!(gets(0, 1, "x"), gets(0, 2, "x"));
        assert_ne!(gets(0, 1, "x"), gets(0, 1, "y"));
        assert_ne!(gets(0, 1, "x"), gets(1, 1, "x"));
        let mg = |flags: &str, value: &str| of("mg a v t\r\n", &format!("VA 1 {flags}\r\n{value}\r\n"));
        assert_eq!(mg("t-1", "x"), mg("t7", "x"));
        assert_ne!(mg("t-1", "x"), mg("t-1", "y"));
        assert_ne!(of("delete a\r\n", "DELETED\r\n"), of("delete a\r\n", "NOT_FOUND\r\n"));
    }

    #[test]
    fn stream_that_cannot_be_read_is_said_once_and_ends_the_recording() {
        for conversation in [
            vec![asked("watch\r\n"), told("OK\r\n")],
            vec![asked("get a\r\n"), told("HTTP/1.1 400 Bad Request\r\n\r\n")],
            vec![(true, vec![0x80, 0, 0, 1])],
            vec![asked("mg a v q\r\nmn\r\n"), told("MN\r\n")],
            vec![asked("get a\r\n"), told("VALUE a 0 2\r\nabcd\r\nEND\r\n")],
            vec![asked("get a\r\n"), told("VALUE a 0 -2\r\n")],
            vec![told("STORED\r\n")],
            vec![asked("set a 0 0 99999999999\r\n")],
        ] {
            let events = seen(&conversation, 4);
            let unreadable = events.iter().filter(|event| matches!(event, Event::Unreadable(_))).count();
            assert_eq!(unreadable, 1, "{events:?}");
        }
    }

    #[test]
    fn random_bytes_never_panic_and_stay_bounded() {
        let mut state = 7_u64;
        for _ in 0..300 {
            let mut conversation = Vec::new();
            for turn in 0..20 {
                let words: [&[u8]; 12] = [
                    b"set", b" ", b"\r\n", b"get", b"mg", b"VALUE", b"2", b"-1", b"END", b"HD", b"noreply",
                    b"q",
                ];
                let piece = (0..9).flat_map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                    words[(state >> 33) as usize % words.len()].to_vec()
                });
                conversation.push((turn % 2 == 0, piece.collect()));
            }
            let events = seen(&conversation, 9);
            assert!(events.iter().filter(|event| matches!(event, Event::Unreadable(_))).count() <= 1);
        }
    }
}
