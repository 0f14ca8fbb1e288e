//! What a recorder learns from RESP (versions 2 and 3), of Redis and Valkey: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.
//!
//! A request is its command, whose text has a `?` for the words that follow; these are its parameters. Of an answer, the elements
//! of the outermost array, set or map are its rows, and a number is how many it has affected.

use super::redis::{CONTAINERS, NOT_REDIS, Next, Requests};
use crate::view::{Digest, Event, Exchange, KEPT, Parameter, TOO_MANY, Transaction, View, Waiting};
use std::time::Instant;

/// The maximum number of words of a request that are kept.
const WORDS: usize = 100_000;
/// The longest line of an answer, in bytes.
const LINE: usize = 64 << 10;
/// The maximum depth of an answer.
const DEPTH: usize = 64;

/// Commands after which answers do not follow requests one by one.
const ONE_WAY: [&str; 7] = ["MONITOR", "PSUBSCRIBE", "PSYNC", "SSUBSCRIBE", "SUBSCRIBE", "SYNC", "REPLCONF"];
/// Commands whose words may be passwords.
const SECRET: [&str; 5] = ["AUTH", "ACL", "CONFIG", "MIGRATE", "SENTINEL"];
/// Commands whose answers have no order.
const UNORDERED: [&str; 11] =
    ["HGETALL", "HKEYS", "HVALS", "KEYS", "SDIFF", "SINTER", "SMEMBERS", "SPOP", "SSCAN", "SUNION", "SCAN"];

/// The view.
pub(crate) struct Redis {
    requests: Requests,
    waiting: Waiting,
    /// Whether a request of `MULTI` was answered, and not yet what ends it.
    in_transaction: bool,
    answer: Answer,
    has_begun: bool,
    closed: bool,
}

impl Default for Redis {
    fn default() -> Self {
        Self {
            requests: Requests::new(WORDS, KEPT),
            waiting: Waiting::default(),
            in_transaction: false,
            answer: Answer::default(),
            has_begun: false,
            closed: false,
        }
    }
}

impl View for Redis {
    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        if self.closed {
            return;
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            events.push(Event::Client(Vec::new()));
        }
        self.requests.push(bytes);
        while let Some(next) = self.requests.next() {
            match next {
                Next::Command(request) if request.words.is_empty() => {}
                Next::Command(request) => self.request(&request.words, request.cut, now, events),
                Next::Encrypted => self.give_up("the connection is encrypted", events),
                Next::Unreadable => self.give_up(NOT_REDIS, events),
            }
            if self.closed {
                return;
            }
        }
    }

    fn received(&mut self, mut bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        while !self.closed && !bytes.is_empty() {
            let Some(request) = self.waiting.first() else {
                // What a server says unasked: of RESP3, `>`.
                match self.answer.read(&mut bytes, true) {
                    Ok(Some(true)) => self.answer = Answer::default(),
                    Ok(None) => {}
                    _ => self.give_up("the server answered without a request", events),
                }
                continue;
            };
            if self.answer.is_new {
                let command = request.text.split(' ').next().unwrap_or_default();
                self.answer =
                    Answer { digest: Digest::new(!UNORDERED.contains(&command)), ..Answer::default() };
            }
            match self.answer.read(&mut bytes, false) {
                Ok(None) => {}
                Ok(Some(true)) => self.answer = Answer::default(),
                Ok(Some(false)) => self.answered(now, events),
                Err(()) => self.give_up("the server does not speak the protocol of Redis", events),
            }
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        self.waiting.end(events);
    }
}

impl Redis {
    fn request(&mut self, words: &[Vec<u8>], cut: bool, now: Instant, events: &mut Vec<Event>) {
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
        if ONE_WAY.contains(&command.as_str()) || command == "CLIENT" && second == "REPLY" {
            return self.give_up("it subscribes, or gets no answers, which is not recorded", events);
        }
        let verbs = usize::from(words.len() > 1 && CONTAINERS.contains(&command.as_str()));
        let mut text = if verbs == 1 { format!("{command} {second}") } else { command.clone() };
        let mut given = words.get(1 + verbs..).unwrap_or_default();
        let is_secret = SECRET.contains(&command.as_str());
        if is_secret {
            given = &[];
        } else if command == "HELLO" {
            // The version; a password may follow.
            given = given.get(..1).unwrap_or_default();
        }
        if !given.is_empty() {
            text.push_str(" ?");
        }
        let parameter = |word: &Vec<u8>| Parameter { value: Some(word.clone()), ..Parameter::default() };
        let request = Exchange {
            text,
            parameters: given.iter().map(parameter).collect(),
            cut: cut || is_secret,
            pipelined: self.waiting.first().is_some(),
            began: Some(now),
            ..Exchange::default()
        };
        self.waiting.push(request);
        if self.waiting.is_full() {
            self.give_up(TOO_MANY, events);
        }
    }

    fn answered(&mut self, now: Instant, events: &mut Vec<Event>) {
        let answer = std::mem::take(&mut self.answer);
        let Some(mut request) = self.waiting.pop() else { return };
        match request.text.as_str() {
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
        (request.error, request.digest) = (answer.error, answer.digest.value());
        events.push(Event::Exchange(Box::new(request)));
    }

    fn give_up(&mut self, why: &'static str, events: &mut Vec<Event>) {
        self.closed = true;
        self.end(events);
        events.push(Event::Unreadable(why));
    }
}

/// An answer that is being read.
struct Answer {
    is_new: bool,
    line: Vec<u8>,
    /// Bytes of a text that have not arrived, its line end included.
    text: u64,
    /// The arrays around the next value: how many values are left, and whether they are attributes.
    around: Vec<(u64, bool)>,
    is_push: bool,
    rows: u64,
    affected: u64,
    error: Option<String>,
    digest: Digest,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            is_new: true,
            line: Vec::new(),
            text: 0,
            around: Vec::new(),
            is_push: false,
            rows: 0,
            affected: 0,
            error: None,
            digest: Digest::new(true),
        }
    }
}

impl Answer {
    /// Reads on; `None` if more has to arrive, otherwise whether it was said unasked. `unasked`: nothing else is expected.
    fn read(&mut self, bytes: &mut &[u8], unasked: bool) -> Result<Option<bool>, ()> {
        while !bytes.is_empty() {
            self.is_new = false;
            if self.text > 0 {
                let here = usize::try_from(self.text).unwrap_or(usize::MAX).min(bytes.len());
                let (piece, rest) = bytes.split_at(here);
                self.digest.push(piece);
                *bytes = rest;
                self.text -= here as u64;
                if self.text == 0 && self.value() {
                    return Ok(Some(self.is_push));
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
            if end.is_none() {
                return Ok(None);
            }
            let line = std::mem::take(&mut self.line);
            if unasked && self.around.is_empty() && line.first() != Some(&b'>') {
                return Err(());
            }
            if self.line(&line)? {
                return Ok(Some(self.is_push));
            }
        }
        Ok(None)
    }

    /// Reads a line. Returns whether the answer is complete.
    fn line(&mut self, line: &[u8]) -> Result<bool, ()> {
        let text = std::str::from_utf8(line.trim_ascii_end()).map_err(|_| ())?;
        let (kind, rest) = (line.first().copied().ok_or(())?, text.get(1..).ok_or(())?);
        let outermost = self.around.is_empty();
        let number = || rest.parse::<i64>().map_err(|_| ());
        // The number of rows is known besides, and is not part of the first one.
        if !(outermost && b"*~%>|".contains(&kind)) {
            self.digest.push(line);
        }
        match kind {
            b':' if outermost => self.affected = number()?.max(0).unsigned_abs(),
            b':' => {
                number()?;
            }
            b'-' if outermost => self.error = Some(code(rest)),
            b'$' | b'=' | b'!' => {
                let length = number()?;
                if length >= 0 {
                    self.rows += u64::from(outermost);
                    self.error = (kind == b'!' && outermost).then(|| "ERR".to_owned());
                    self.text = length.unsigned_abs().saturating_add(2);
                    return Ok(false);
                }
            }
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                let count = number()?.max(0).unsigned_abs();
                self.is_push |= outermost && kind == b'>';
                if outermost && kind != b'|' {
                    self.rows = count;
                }
                let values = if b"%|".contains(&kind) { count.saturating_mul(2) } else { count };
                if values > 0 {
                    if self.around.len() >= DEPTH {
                        return Err(());
                    }
                    self.around.push((values, kind == b'|'));
                    return Ok(false);
                }
                if kind == b'|' {
                    return Ok(false);
                }
            }
            b'+' | b'-' | b'_' | b'#' | b',' | b'(' => {}
            _ => return Err(()),
        }
        Ok(self.value())
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

/// The code of an error: its first word, if it is in capitals.
fn code(text: &str) -> String {
    let word = text.split(' ').next().unwrap_or_default();
    let is_code = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if is_code { word.to_owned() } else { "ERR".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::WAITING;
    use crate::view::tests::{exchanges, seen_of};

    fn asked(words: &[&str]) -> (bool, Vec<u8>) {
        let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let words: Vec<String> = std::iter::once(format!("*{}\r\n", words.len())).chain(words).collect();
        (true, words.concat().into_bytes())
    }

    fn told(text: &str) -> (bool, Vec<u8>) {
        (false, text.as_bytes().to_vec())
    }

    #[test]
    fn requests_have_their_words_and_answers_their_shape_in_pieces_of_any_size() {
        let conversation = [
            asked(&["hello", "3", "AUTH", "bob", "hunter2"]),
            told("%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"),
            asked(&["SET", "a", "1"]),
            asked(&["MGET", "a", "b", "c", "d", "e"]),
            told("+OK\r\n|1\r\n+ttl\r\n:3\r\n*5\r\n$1\r\n1\r\n_\r\n$-1\r\n$0\r\n\r\n*2\r\n:1\r\n:2\r\n"),
            told(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n"),
            asked(&["MULTI"]),
            asked(&["INCRBY", "a", "4"]),
            asked(&["EXEC"]),
            told("+OK\r\n+QUEUED\r\n*1\r\n:5\r\n"),
            asked(&["LPUSH", "a", "x"]),
            told("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
            asked(&["config", "set", "requirepass", "hunter2"]),
            told("+OK\r\n"),
            (true, b"PING\r\n".to_vec()),
            told("+PONG\r\n"),
            asked(&["DEL", "a"]),
            told(":1\r\n"),
            asked(&["GET", "a"]),
        ];
        let whole = seen_of(&mut Redis::default(), &conversation, usize::MAX >> 1);
        assert!(!format!("{whole:?}").contains("hunter2"));
        for piece in [1, 2, 3, 7] {
            assert_eq!(seen_of(&mut Redis::default(), &conversation, piece), whole);
        }
        let all = exchanges(&whole);
        let shown: Vec<_> =
            all.iter().map(|one| (one.text.as_str(), one.parameters.len(), one.rows)).collect();
        let expected = [
            ("HELLO ?", 1, 2),
            ("SET ?", 2, 0),
            ("MGET ?", 5, 5),
            ("MULTI", 0, 0),
            ("INCRBY ?", 2, 0),
            ("EXEC", 0, 1),
            ("LPUSH ?", 2, 0),
            ("CONFIG SET", 0, 0),
            ("PING", 0, 0),
            ("DEL ?", 1, 0),
            ("GET ?", 1, 0),
        ];
        assert_eq!(shown, expected);
        let states: Vec<_> = all[3..6].iter().map(|one| one.transaction).collect();
        assert_eq!(states, [Transaction::Open, Transaction::Open, Transaction::None]);
        assert_eq!((all[6].error.as_deref(), all[9].affected), (Some("WRONGTYPE"), 1));
        assert!(all[2].pipelined && !all[1].pipelined && all[7].cut && all[10].ended.is_none());
    }

    #[test]
    fn answers_of_other_order_have_equal_sums_only_where_order_means_nothing() {
        let of = |command: &str, first: &str, second: &str| {
            let answer = told(&format!("*2\r\n$1\r\n{first}\r\n$1\r\n{second}\r\n"));
            let events = seen_of(&mut Redis::default(), &[asked(&[command, "k"]), answer], 5);
            exchanges(&events)[0].digest
        };
        assert_eq!(of("SMEMBERS", "a", "b"), of("SMEMBERS", "b", "a"));
        assert_ne!(of("SMEMBERS", "a", "b"), of("SMEMBERS", "a", "c"));
        assert_ne!(of("LRANGE", "a", "b"), of("LRANGE", "b", "a"));
    }

    #[test]
    fn stream_that_cannot_be_read_is_said_once_and_ends_the_recording() {
        let ends = [
            vec![asked(&["SUBSCRIBE", "news"]), told("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")],
            vec![asked(&["GET", "a"]), told("HTTP/1.1 400 Bad Request\r\n\r\n")],
            vec![(true, b"*x\r\n".to_vec())],
            vec![told("+OK\r\n")],
            vec![asked(&["GET", "a"]), told("$x\r\n"), asked(&["GET", "b"])],
        ];
        for conversation in ends {
            let events = seen_of(&mut Redis::default(), &conversation, 4);
            let unreadable = events.iter().filter(|event| matches!(event, Event::Unreadable(_))).count();
            assert_eq!(unreadable, 1, "{events:?}");
        }
    }

    #[test]
    fn requests_that_are_never_answered_are_kept_up_to_a_limit() {
        let many = (0..300_000).map(|_| &b"PING\r\n"[..]).collect::<Vec<_>>().concat();
        let events = seen_of(&mut Redis::default(), &[(true, many)], 1 << 16);
        let kept = exchanges(&events).len();
        assert!(matches!(events.last(), Some(Event::Unreadable(_))) && kept < 263_000, "{kept}");
        let large = [&b"*2\r\n$3\r\nGET\r\n$1000000\r\n"[..], &vec![b'x'; 1_000_000], b"\r\n"].concat();
        let events = seen_of(&mut Redis::default(), &[(true, large.repeat(40))], 1 << 16);
        let bytes: usize = exchanges(&events)
            .iter()
            .flat_map(|one| &one.parameters)
            .map(|one| one.value.as_ref().unwrap().len())
            .sum();
        assert!(exchanges(&events).len() == 40 && (10_000_000..=WAITING).contains(&bytes), "{bytes}");
    }

    #[test]
    fn random_bytes_never_panic_and_stay_bounded() {
        let mut state = 7_u64;
        for _ in 0..300 {
            let mut view = Redis::default();
            let mut conversation = Vec::new();
            for turn in 0..20 {
                let piece = (0..40)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                        let bytes = b"*$:+->%|_1239\r\n\r\nGET";
                        bytes[(state >> 33) as usize % bytes.len()]
                    })
                    .collect();
                conversation.push((turn % 2 == 0, piece));
            }
            let events = seen_of(&mut view, &conversation, 9);
            assert!(events.iter().filter(|event| matches!(event, Event::Unreadable(_))).count() <= 1);
        }
    }
}
