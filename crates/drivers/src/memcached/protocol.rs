//! The meta protocol: a request line and an answer line, one of which may be followed by a data block.

use crate::prelude::*;
use crate::reported::Reported;
use crate::wire::{LONG, Peer, Wire, malformed, push_number};
use kurabe_protocol::memcached::length;
use percent_encoding::percent_decode_str;

/// Maximum number of lines of statistics; servers send some hundreds.
const LINES: usize = 10_000;

/// Length limit of a line, in bytes (`stats` and errors are far shorter).
const LINE: usize = 2_048;

/// Removals that are sent together.
const TOGETHER: usize = 200;

/// An answer's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// `HD`: done.
    Done,
    /// `EN`: a read found nothing.
    Miss,
    /// `NS`: not stored, since the key exists (add) or does not (replace).
    NotStored,
    /// `NF`: not found.
    NotFound,
    /// `EX`: not done, since the value has changed (CAS).
    Changed,
    /// `MN`: the answer to a ping.
    Pong,
    /// `VA`: a value of this length in bytes follows, then the end of a line.
    Value(u64),
}

impl Answer {
    /// Parses a line, without its end.
    pub(super) fn parse(line: &[u8]) -> Result<Self> {
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        Ok(match words.next().unwrap_or_default() {
            b"HD" => Self::Done,
            b"EN" => Self::Miss,
            b"NS" => Self::NotStored,
            b"NF" => Self::NotFound,
            b"EX" => Self::Changed,
            b"MN" => Self::Pong,
            b"VA" => Self::Value(words.next().and_then(length).ok_or_else(|| strange(line))?),
            _ => return Err(refusal(line)),
        })
    }
}

fn refusal(line: &[u8]) -> Error {
    let text = String::from_utf8_lossy(line);
    let (code, message) = text.split_once(' ').unwrap_or((&text, ""));
    match code {
        "SERVER_ERROR" if message.contains("too large") => {
            Error::new(ErrorKind::Limit, format!("memcached: {message}"))
                .code(code)
                .hint("its limit is -I (item size)")
        }
        "CLIENT_ERROR" if message == "unauthenticated" => {
            Error::new(ErrorKind::Denied, "memcached: the server requires a user and a password")
                .code(code)
                .hint("write memcached://user:password@host")
        }
        "SERVER_ERROR" | "CLIENT_ERROR" => {
            Error::new(ErrorKind::Server, format!("memcached: {message}")).code(code)
        }
        "ERROR" if message.contains("connections") => {
            Error::new(ErrorKind::Limit, format!("memcached: {message}"))
                .code(code)
                .hint("its limit is -c (maxconns)")
        }
        "ERROR" => Error::new(ErrorKind::Protocol, "memcached does not know the request").code(code),
        _ => strange(line),
    }
}

fn strange(line: &[u8]) -> Error {
    let shown: String = String::from_utf8_lossy(line).chars().take(60).collect();
    malformed(format!("memcached answered '{}', which is not its protocol", shown.escape_default()))
}

/// How a listing of keys ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// The server listed what its walk found.
    Ended,
    /// Another walk is under way.
    Busy,
    /// The server does not know this walk, or its crawler is off.
    Refused,
}

/// A connection that sends requests and reads answers. After [`Answer::Value`] the caller must read that many bytes and
/// then call [`Client::end_value`].
pub(super) struct Client<S> {
    pub(super) wire: Wire<S>,
    request: Vec<u8>,
    pub(super) times: Option<ConnectTimes>,
}

impl<S: Peer> Client<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { wire: Wire::new(stream), request: Vec::new(), times: None }
    }

    /// `mn`: the smallest request.
    pub(super) fn ping(&mut self) -> Result<()> {
        self.wire.send(b"mn\r\n")?;
        match self.answer()? {
            Answer::Pong => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Starts a new request, or the first of several that are sent together.
    pub(super) fn begin(&mut self) {
        self.request.clear();
    }

    /// `mg`: requests a value; `flags` start with a space.
    pub(super) fn put_get(&mut self, key: &[u8], flags: &str) {
        self.line_of(b"mg ", key, flags);
    }

    /// `ms`: writes a value of three parts.
    pub(super) fn put_set(&mut self, key: &[u8], flags: &str, [head, middle, tail]: [&[u8]; 3]) {
        self.line_of_set(key, flags, head.len() + middle.len() + tail.len());
        for part in [head, middle, tail, b"\r\n"] {
            self.request.extend_from_slice(part);
        }
    }

    /// `md`: removes a value.
    pub(super) fn put_delete(&mut self, key: &[u8], flags: &str) {
        self.line_of(b"md ", key, flags);
    }

    /// Sends several requests while their answers are received.
    pub(super) fn send_pipeline(&mut self) -> Result<()> {
        self.wire.send_pipeline(&mut self.request)
    }

    pub(super) fn send(&mut self) -> Result<()> {
        self.wire.send(&self.request)
    }

    /// Sends one `ms`. A long middle part is not copied.
    pub(super) fn send_set(
        &mut self,
        key: &[u8],
        flags: &str,
        [head, middle, tail]: [&[u8]; 3],
    ) -> Result<()> {
        self.begin();
        if middle.len() < LONG {
            self.put_set(key, flags, [head, middle, tail]);
            return self.send();
        }
        self.line_of_set(key, flags, head.len() + middle.len() + tail.len());
        self.request.extend_from_slice(head);
        let middle_at = self.request.len();
        self.request.extend_from_slice(tail);
        self.request.extend_from_slice(b"\r\n");
        let (first, last) = self.request.split_at(middle_at);
        self.wire.begin()?;
        self.wire.push_parts([first, middle, last])
    }

    /// Reads the answer to `mg`: the length of the value that follows.
    pub(super) fn got(&mut self) -> Result<Option<u64>> {
        match self.answer()? {
            Answer::Value(bytes) => Ok(Some(bytes)),
            Answer::Miss => Ok(None),
            other => Err(unexpected(other)),
        }
    }

    /// Reads the answer to `ms` or `md`: whether anything was stored or removed.
    pub(super) fn done(&mut self) -> Result<bool> {
        match self.answer()? {
            Answer::Done => Ok(true),
            Answer::NotStored | Answer::NotFound | Answer::Changed => Ok(false),
            other => Err(unexpected(other)),
        }
    }

    pub(super) fn get(&mut self, key: &[u8], flags: &str) -> Result<Option<u64>> {
        self.begin();
        self.put_get(key, flags);
        self.send()?;
        self.got()
    }

    /// Requests a value with its CAS number, for a conditional change.
    pub(super) fn get_with_cas(&mut self, key: &[u8]) -> Result<Option<(Vec<u8>, u64)>> {
        self.begin();
        self.put_get(key, " v c");
        self.send()?;
        let (answer, cas) = self.line(|line| {
            let cas = line.split(|byte| *byte == b' ').find_map(|word| word.strip_prefix(b"c"));
            (Answer::parse(line), cas.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()))
        })?;
        match answer? {
            Answer::Value(bytes) => {
                let value = self.whole_value(bytes)?;
                let cas = cas.ok_or_else(|| malformed("memcached sent a value without its CAS number"))?;
                Ok(Some((value, cas)))
            }
            Answer::Miss => Ok(None),
            other => Err(unexpected(other)),
        }
    }

    /// Writes one value of three parts.
    pub(super) fn set(&mut self, key: &[u8], flags: &str, parts: [&[u8]; 3]) -> Result<bool> {
        self.send_set(key, flags, parts)?;
        self.done()
    }

    /// Removes one value; returns whether it existed.
    pub(super) fn delete(&mut self, key: &[u8], flags: &str) -> Result<bool> {
        self.begin();
        self.put_delete(key, flags);
        self.send()?;
        self.done()
    }

    /// Says who it is, as a write of any key (memcached's `protocol.txt`, "Authentication").
    pub(super) fn log_in(&mut self, user: &str, password: &str) -> Result<()> {
        let secret = format!("{user} {password}");
        self.wire.send(format!("set kurabe 0 0 {}\r\n{secret}\r\n", secret.len()).as_bytes())?;
        let stored = self.line(|line| match line {
            b"STORED" => Ok(()),
            _ => Err(refusal(line)),
        })?;
        stored.map_err(|error| match error.server_code() {
            Some("CLIENT_ERROR") => Error::new(ErrorKind::Denied, error.to_string())
                .hint("check the user and the password, and that the server has a file of users (-Y)"),
            _ => error,
        })
    }

    /// Asks for the version, in more bytes than a header of the binary protocol has: a server that speaks only that waits for all of
    /// those, and closes the connection then.
    pub(super) fn version(&mut self) -> Result<String> {
        self.wire.send(b"version                 \r\n")?;
        self.line(|line| match line.strip_prefix(b"VERSION ") {
            Some(version) => Ok(String::from_utf8_lossy(version).into_owned()),
            None => Err(refusal(line)),
        })?
    }

    /// The lines of a `stats` command: names and values.
    pub(super) fn stats(&mut self, command: &str) -> Result<Reported> {
        self.wire.send(format!("{command}\r\n").as_bytes())?;
        let mut all = Reported::default();
        for _ in 0..=LINES {
            let pair = self.line(|line| -> Result<_> {
                if line == b"END" {
                    return Ok(None);
                }
                let text = String::from_utf8_lossy(line);
                let pair = text.strip_prefix("STAT ").ok_or_else(|| refusal(line))?;
                let (name, value) = pair.split_once(' ').unwrap_or((pair, ""));
                Ok(Some((name.to_owned(), value.to_owned())))
            })??;
            match pair {
                Some(pair) => all.extend([pair]),
                None => return Ok(all),
            }
        }
        let what = format!("memcached answered '{command}' with more than {LINES} lines");
        self.wire.settle(Err(malformed(what)))
    }

    /// Calls `work` with the key of each item on the server, by a walk of all lists (`all`) or of the hash table (`hash`).
    pub(super) fn each_key(&mut self, walk: &str, mut work: impl FnMut(&str)) -> Result<Listing> {
        self.wire.send(format!("lru_crawler metadump {walk}\r\n").as_bytes())?;
        loop {
            // The listing of a large server is longer than an answer may be. The request's deadline limits it.
            self.wire.next_answer();
            // Keys are written as in URLs.
            let found = self.line(|line| {
                let text = String::from_utf8_lossy(line);
                match text.strip_prefix("key=") {
                    Some(rest) => {
                        let key = rest.split(' ').next().unwrap_or_default();
                        Ok(percent_decode_str(key).decode_utf8_lossy().into_owned())
                    }
                    None => Err(match line {
                        b"END" => Listing::Ended,
                        _ if line.starts_with(b"BUSY") => Listing::Busy,
                        _ => Listing::Refused,
                    }),
                }
            })?;
            match found {
                Ok(key) => work(&key),
                Err(end) => return Ok(end),
            }
        }
    }

    /// Removes values. It does not matter which of them still exist.
    pub(super) fn delete_all(&mut self, keys: &[String]) -> Result<()> {
        for keys in keys.chunks(TOGETHER) {
            self.begin();
            for key in keys {
                self.put_delete(key.as_bytes(), "");
            }
            self.send()?;
            for _ in keys {
                self.done()?;
            }
        }
        Ok(())
    }

    /// Reads the announced value.
    pub(super) fn whole_value(&mut self, bytes: u64) -> Result<Vec<u8>> {
        let mut value = Vec::new();
        self.wire.take_into(bytes as usize, &mut value)?;
        self.end_value()?;
        Ok(value)
    }

    /// Reads the end of the line after a value.
    pub(super) fn end_value(&mut self) -> Result<()> {
        self.wire.end_value("memcached sent a value of a different length than announced")
    }

    /// Sends `quit`, after which the server closes the connection. Errors do not matter.
    pub(super) fn quit(&mut self) {
        let _ = self.wire.send(b"quit\r\n");
    }

    /// Sends `quit` and checks that the server sent nothing more.
    pub(super) fn quit_checked(&mut self) -> Result<()> {
        if self.wire.has_failed() {
            return Ok(());
        }
        // This has no effect if the server has closed the connection.
        self.quit();
        self.wire.expect_end()
    }

    fn line_of(&mut self, command: &[u8], key: &[u8], flags: &str) {
        for part in [command, key, flags.as_bytes(), b"\r\n"] {
            self.request.extend_from_slice(part);
        }
    }

    fn line_of_set(&mut self, key: &[u8], flags: &str, length: usize) {
        self.request.extend_from_slice(b"ms ");
        self.request.extend_from_slice(key);
        self.request.push(b' ');
        push_number(&mut self.request, length as u64);
        self.line_of(b"", b"", flags);
    }

    fn answer(&mut self) -> Result<Answer> {
        self.line(Answer::parse)?
    }

    /// Receives, reads and consumes the next line, without its end.
    fn line<T>(&mut self, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let Some(length) = self.wire.line(LINE)? else { return Err(strange(self.wire.buffered())) };
        let line = &self.wire.buffered()[..length];
        let value = read(line.strip_suffix(b"\r\n").or_else(|| line.strip_suffix(b"\n")).unwrap_or(line));
        self.wire.consume(length);
        Ok(value)
    }
}

fn unexpected(answer: Answer) -> Error {
    malformed(format!("memcached answered {answer:?}, which does not match the request"))
}

#[cfg(test)]
mod tests;
