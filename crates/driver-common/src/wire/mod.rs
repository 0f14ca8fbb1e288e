//! What the lean clients share: a connection with one reused receive buffer, over TCP, a Unix socket or TLS.
//!
//! One operation is one write and, as a rule, one read: an answer arrives whole in the buffer and is decoded in
//! place. A long value is received straight into the reply, past the buffer. Nothing is allocated per operation.
//!
//! A request and its answer have one deadline, and an answer has a limit ([`MOST`]).

mod deadline;
mod digits;
mod laps;
pub mod link;
mod outbox;
mod place;
mod resolve;
mod socket;
mod stream;
pub mod tls;

pub use digits::{UNRESERVED, hex, percent, push_number, unhex, version};
pub use laps::Laps;
pub use outbox::Outbox;
pub use place::Place;
pub use socket::{End, Socket};
pub use stream::Stream;

use crate::cancel;
use kurabe_core::value::Reply;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::io::{self, IoSlice, Read, Write};

/// Receive buffer per connection. A thousand clients hold 16 MB of it.
const INBOX: usize = 16 * 1024;

/// The most that is set aside for a value at once: a length is the peer's claim until its bytes are there.
const STEP: usize = 1024 * 1024;

/// The most bytes that one answer may have beyond the largest that was asked for. Half of the 64 MB by which no server
/// makes the client grow: a vector that grows holds up to twice what is in it.
pub const MOST: u64 = 32 << 20;

/// A parameter this long is written from where it stands instead of being copied behind its request.
pub const LONG: usize = 16 * 1024;

/// What a [`Wire`] reads from and writes to.
pub trait Peer: Read + Write {
    /// Receives once, appended to `out`, about `most` bytes at most; gives how many came.
    fn receive(&mut self, most: usize, out: &mut Vec<u8>) -> io::Result<usize>
    where
        Self: Sized,
    {
        receive_by_read(self, most, out)
    }

    /// A request begins: it and its answer have the time allowed from now on.
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Connecting is over: until then all requests share the time allowed.
    fn ready(&mut self) {}

    /// The most bytes that one answer may have.
    fn most(&self) -> u64 {
        MOST
    }
}

/// Receives once into memory that is set to zero first.
fn receive_by_read(from: &mut impl Read, most: usize, out: &mut Vec<u8>) -> io::Result<usize> {
    let before = out.len();
    out.resize(before + most.min(INBOX), 0);
    let got = from.read(&mut out[before..]);
    out.truncate(before + got.as_ref().map_or(0, |got| *got));
    got
}

/// A stream with a receive buffer.
pub struct Wire<S> {
    stream: S,
    inbox: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes received of the present answer, and the most that there may be.
    received: u64,
    most: u64,
    /// Set once receiving or sending failed: what comes next would be the answer to an earlier request.
    failed: bool,
}

impl<S: Peer> Wire<S> {
    /// Puts a receive buffer before a stream.
    pub fn new(stream: S) -> Self {
        let most = stream.most();
        Self { stream, inbox: vec![0; INBOX], start: 0, end: 0, received: 0, most, failed: false }
    }

    /// Takes the stream out, to put TLS around it. What was received and not read is an error: it came in plain
    /// text before the handshake and must not be taken for part of the encrypted conversation (CVE-2021-23222).
    pub fn into_stream(self) -> Result<S> {
        if self.start == self.end {
            Ok(self.stream)
        } else {
            Err(malformed("the server sent unencrypted data before the TLS handshake"))
        }
    }

    /// The stream.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// The stream, to be changed.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Connecting is over: each request has its own time from now on.
    pub fn ready(&mut self) {
        self.stream.ready();
    }

    /// A request begins: its time does, and no answer is there.
    #[inline]
    pub fn begin(&mut self) -> Result<()> {
        if self.failed {
            return Err(failed_before());
        }
        self.received = 0;
        self.stream.begin().map_err(|e| self.fail(&e))
    }

    /// Remembers that the connection is of no more use.
    #[cold]
    fn fail(&mut self, error: &io::Error) -> Error {
        self.failed = true;
        lost(error)
    }

    /// Sends a request.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.begin()?;
        self.push(bytes)
    }

    /// Sends a part of a request that was [begun](Wire::begin).
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).map_err(|e| self.fail(&e))
    }

    /// Sends three parts of a request that was begun as if they were one, without putting them together first.
    pub fn push_parts(&mut self, parts: [&[u8]; 3]) -> Result<()> {
        let mut slices = parts.map(IoSlice::new);
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match self.stream.write_vectored(rest) {
                Ok(0) => return Err(self.fail(&io::ErrorKind::WriteZero.into())),
                Ok(sent) => IoSlice::advance_slices(&mut rest, sent),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.fail(&e)),
            }
        }
        self.stream.flush().map_err(|e| self.fail(&e))
    }

    /// What was received and not consumed.
    pub fn buffered(&self) -> &[u8] {
        &self.inbox[self.start..self.end]
    }

    /// The next `n` bytes, received first where they are not there yet. `n` is bounded by the caller.
    pub fn peek(&mut self, n: usize) -> Result<&[u8]> {
        while self.end - self.start < n {
            if self.start + n > self.inbox.len() {
                self.inbox.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
                if self.end == self.inbox.len() {
                    // By what has arrived, not by what was announced.
                    self.inbox.resize(n.min(2 * self.end), 0);
                }
            }
            self.fill()?;
        }
        Ok(&self.inbox[self.start..self.start + n])
    }

    /// Forgets the next `n` bytes, which must be buffered.
    pub fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
    }

    /// Forgets the next `n` bytes, received or not.
    pub fn skip(&mut self, mut n: usize) -> Result<()> {
        loop {
            let here = n.min(self.end - self.start);
            self.consume(here);
            n -= here;
            if n == 0 {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Appends the next `n` bytes to `out`: each is copied once, from the buffer or by the kernel.
    pub fn take_into(&mut self, mut n: usize, out: &mut Vec<u8>) -> Result<()> {
        let buffered = (self.end - self.start) as u64;
        if n as u64 > buffered + self.most.saturating_sub(self.received) {
            return Err(self.too_much());
        }
        out.reserve(n.min(STEP));
        loop {
            let here = n.min(self.end - self.start);
            out.extend_from_slice(&self.inbox[self.start..self.start + here]);
            self.consume(here);
            n -= here;
            if n == 0 {
                return Ok(());
            }
            if n > INBOX {
                let got = self.receive(n.min(STEP), out)?;
                // What there was room for may be more than what was asked for.
                let over = got.saturating_sub(n);
                self.put_back(&out[out.len() - over..]);
                out.truncate(out.len() - over);
                n -= got - over;
            } else {
                self.fill()?;
            }
        }
    }

    fn receive(&mut self, most: usize, out: &mut Vec<u8>) -> Result<usize> {
        loop {
            match self.stream.receive(most, out) {
                Ok(got) => return self.arrived(got).map(|()| got),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.fail(&e)),
            }
        }
    }

    /// Puts bytes that were received past the empty buffer into it.
    fn put_back(&mut self, bytes: &[u8]) {
        if self.inbox.len() < bytes.len() {
            self.inbox.resize(bytes.len(), 0);
        }
        self.inbox[..bytes.len()].copy_from_slice(bytes);
        (self.start, self.end) = (0, bytes.len());
    }

    /// So many bytes arrived; none at the end of the connection.
    #[inline]
    fn arrived(&mut self, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Err(self.fail(&io::ErrorKind::UnexpectedEof.into()));
        }
        self.received += bytes as u64;
        if self.received > self.most { Err(self.too_much()) } else { Ok(()) }
    }

    /// Fails where the client holds more of an answer than it may have: small fields take more memory than bytes on
    /// the wire.
    #[inline]
    pub fn check_held(&mut self, bytes: usize) -> Result<()> {
        if bytes as u64 > self.most { Err(self.too_much()) } else { Ok(()) }
    }

    /// Fails where a reply holds more than it may.
    #[inline]
    pub fn check_reply(&mut self, reply: &Reply) -> Result<()> {
        self.check_held(reply.held())
    }

    #[cold]
    fn too_much(&mut self) -> Error {
        self.failed = true;
        too_much(self.most)
    }

    /// Whether the server has ended the connection: waits until it has, or something arrives.
    ///
    /// # Errors
    /// [`Timeout`](ErrorKind::Timeout) where neither happens.
    pub fn has_ended(&mut self) -> Result<bool> {
        if self.start < self.end {
            return Ok(false);
        }
        match self.fill() {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == ErrorKind::ConnectionLost => Ok(true),
            Err(error) if error.kind() == ErrorKind::Timeout => {
                Err(Error::new(ErrorKind::Timeout, "the server did not end the connection after the goodbye"))
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for the end of the connection, before which nothing may come.
    pub fn expect_end(&mut self) -> Result<()> {
        if self.has_ended()? { Ok(()) } else { Err(self.surplus()) }
    }

    /// What came was not asked for.
    pub fn surplus(&self) -> Error {
        let shown: String = String::from_utf8_lossy(self.buffered()).chars().take(40).collect();
        let shown = shown.escape_default();
        malformed(format!("the server sent more than was asked for: '{shown}' after the last answer")).hint(
            "the figures of such a trial cannot be relied on: look at what is between client and server",
        )
    }

    /// Remembers an error after which nobody knows which answer comes next.
    #[cold]
    pub fn note(&mut self, error: &Error) {
        use ErrorKind::{ConnectionLost, Interrupted, Protocol, Timeout};
        self.failed |= matches!(error.kind(), ConnectionLost | Interrupted | Protocol | Timeout);
    }

    /// The result, its error [noted](Wire::note).
    #[inline]
    pub fn settle<T>(&mut self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.note(error))
    }

    /// Whether the connection is of no more use.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    fn fill(&mut self) -> Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.inbox.len() {
            self.inbox.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            match self.stream.read(&mut self.inbox[self.end..]) {
                Ok(got) => {
                    self.end += got;
                    return self.arrived(got);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.fail(&e)),
            }
        }
    }
}

/// An answer that is not the protocol.
pub fn malformed(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Protocol, what)
}

/// An answer that is larger than it may be.
pub fn too_much(most: u64) -> Error {
    let most = units::size(most);
    malformed(format!("the server's answer is larger than {most}, which is more than was asked for"))
        .hint("it may be no server of this kind, or the statement asks for too much")
}

/// Why a connection is not used again.
#[cold]
fn failed_before() -> Error {
    if cancel::is_cut() {
        return cancel::error();
    }
    let what = "the connection failed in an earlier operation and is not used again";
    Error::new(ErrorKind::ConnectionLost, what)
}

/// An error of the socket, once there was a connection.
pub fn lost(error: &io::Error) -> Error {
    if cancel::is_cut() {
        return cancel::error();
    }
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls::failed(error);
    }
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Error::new(ErrorKind::Timeout, "the server did not send its whole answer within the time allowed")
                .hint("--timeout allows more")
        }
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::WriteZero => {
            Error::new(ErrorKind::ConnectionLost, "the server closed the connection")
        }
        _ => Error::new(ErrorKind::ConnectionLost, format!("the connection failed: {error}")),
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod script;

#[cfg(test)]
mod tests;
