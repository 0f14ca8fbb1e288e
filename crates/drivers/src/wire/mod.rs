//! What the lean clients share: a connection with one reused receive buffer, over TCP, a Unix socket or TLS.
//!
//! One operation is one write and, as a rule, one read: an answer arrives whole in the buffer and is decoded in
//! place. A long value is received straight into the reply, past the buffer. Nothing is allocated per operation.

mod digits;
mod laps;
pub(crate) mod link;
mod outbox;
mod place;
mod stream;
pub(crate) mod tls;

pub(crate) use digits::push_number;
pub(crate) use laps::Laps;
pub(crate) use outbox::Outbox;
pub(crate) use place::Place;
pub(crate) use stream::Stream;

use kurabe_core::{Error, ErrorKind, Result};
use std::io::{self, IoSlice, Read, Write};

/// Receive buffer per connection. A thousand clients hold 16 MB of it.
const INBOX: usize = 16 * 1024;

/// The end of a long value goes through the buffer, so that the messages that follow come with the same read.
const TAIL: usize = 4 * 1024;

/// The most that is set aside for a value at once: a length is the peer's claim until its bytes are there.
const STEP: usize = 16 * 1024 * 1024;

/// A parameter this long is written from where it stands instead of being copied behind its request.
pub(crate) const LONG: usize = 16 * 1024;

/// What a [`Wire`] reads from and writes to.
pub(crate) trait Peer: Read + Write {
    /// Receives exactly `n` bytes, appended to `out`, unless the peer ends; gives how many came.
    fn receive(&mut self, n: u64, out: &mut Vec<u8>) -> io::Result<usize>
    where
        Self: Sized,
    {
        self.take(n).read_to_end(out)
    }
}

/// A stream with a receive buffer.
pub(crate) struct Wire<S> {
    stream: S,
    inbox: Vec<u8>,
    start: usize,
    end: usize,
}

impl<S: Peer> Wire<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, inbox: vec![0; INBOX], start: 0, end: 0 }
    }

    /// Takes the stream out, to put TLS around it. What was received and not read is an error: it came in plain
    /// text before the handshake and must not be taken for part of the encrypted conversation (CVE-2021-23222).
    pub(crate) fn into_stream(self) -> Result<S> {
        if self.start == self.end {
            Ok(self.stream)
        } else {
            Err(malformed("the server sent unencrypted data before the TLS handshake"))
        }
    }

    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).map_err(|e| lost(&e))
    }

    /// Sends three parts as if they were one, without putting them together first.
    pub(crate) fn send_parts(&mut self, parts: [&[u8]; 3]) -> Result<()> {
        let mut slices = parts.map(IoSlice::new);
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match self.stream.write_vectored(rest) {
                Ok(0) => return Err(lost(&io::ErrorKind::WriteZero.into())),
                Ok(sent) => IoSlice::advance_slices(&mut rest, sent),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(lost(&e)),
            }
        }
        self.stream.flush().map_err(|e| lost(&e))
    }

    /// What was received and not consumed.
    pub(crate) fn buffered(&self) -> &[u8] {
        &self.inbox[self.start..self.end]
    }

    /// The next `n` bytes, received first where they are not there yet. `n` is bounded by the caller.
    pub(crate) fn peek(&mut self, n: usize) -> Result<&[u8]> {
        while self.end - self.start < n {
            if self.start + n > self.inbox.len() {
                self.inbox.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
                if n > self.inbox.len() {
                    self.inbox.resize(n, 0);
                }
            }
            self.fill()?;
        }
        Ok(&self.inbox[self.start..self.start + n])
    }

    /// Forgets the next `n` bytes, which must be buffered.
    pub(crate) fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
    }

    /// Forgets the next `n` bytes, received or not.
    pub(crate) fn skip(&mut self, mut n: usize) -> Result<()> {
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
    pub(crate) fn take_into(&mut self, mut n: usize, out: &mut Vec<u8>) -> Result<()> {
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
                let straight = (n - TAIL).min(STEP);
                out.reserve(straight);
                let got = self.stream.receive(straight as u64, out).map_err(|e| lost(&e))?;
                if got < straight {
                    return Err(lost(&io::ErrorKind::UnexpectedEof.into()));
                }
                n -= straight;
            } else {
                self.fill()?;
            }
        }
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
                Ok(0) => return Err(lost(&io::ErrorKind::UnexpectedEof.into())),
                Ok(got) => {
                    self.end += got;
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(lost(&e)),
            }
        }
    }
}

/// An answer that is not the protocol.
pub(crate) fn malformed(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Protocol, what)
}

/// An error of the socket, once there was a connection.
pub(crate) fn lost(error: &io::Error) -> Error {
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls::failed(error);
    }
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Error::new(ErrorKind::Timeout, "the server did not answer within the time allowed")
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

#[cfg(test)]
pub(crate) mod script;

#[cfg(test)]
mod tests;
