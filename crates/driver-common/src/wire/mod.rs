//! Shared code of the native clients: a connection with one reused receive buffer, over TCP, a Unix socket or TLS.
//!
//! One operation is one write and usually one read: the answer is decoded in the buffer. A long value is received
//! directly into the reply. There are no allocations per operation.
//!
//! A request and its answer have one deadline, and an answer has a size limit ([`MAX`]).

mod connect;
mod deadline;
mod digits;
mod errors;
mod exchanges;
mod frame;
mod laps;
pub mod link;
mod outbox;
mod peer;
mod place;
mod receive;
mod resolve;
mod socket;
mod stream;
pub mod tls;

pub use digits::{UNRESERVED, hex, percent, push_number, unhex, version};
pub use errors::{lost, malformed, offers_no_tls, too_much};
pub use exchanges::Exchanges;
pub use laps::Laps;
pub use outbox::Outbox;
pub use peer::{Peer, receive_by_read};
pub use place::Place;
pub use socket::Socket;
pub use stream::Stream;

use errors::failed_before;
use kurabe_core::driver::{RawMessages, Receive};
use kurabe_core::{Error, ErrorKind, Result};
use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

/// Size of a connection's receive buffer, in bytes: 16 MB for a thousand clients.
const INBOX: usize = 16 * 1024;

/// Its size at first where many connections share a thread. Answers that fill it double it.
const SMALL: usize = 512;

/// Size of the receive buffer while many rows are read, in bytes: few receives, and it stays in the processor's cache.
const WIDE: usize = 128 * 1024;

/// Maximum memory reserved for a value at once, since an announced length may be false.
const STEP: usize = 1024 * 1024;

/// Bytes that an answer may have beyond the largest expected one. A server may make the client grow by 64 MB. A growing
/// vector may allocate twice its length, and is copied when it grows.
pub const MAX: u64 = 24 << 20;

/// Length from which a parameter is sent without copying it into the request.
pub const LONG: usize = 16 * 1024;

/// A stream with a receive buffer.
pub struct Wire<S> {
    stream: S,
    inbox: Vec<u8>,
    start: usize,
    end: usize,
    /// Requests of a pipeline, sent up to `sent`. The rest follows while answers are received.
    pipeline: Vec<u8>,
    sent: usize,
    /// Bytes received of the current answer, and the limit.
    received: u64,
    most: u64,
    /// Set once receiving or sending failed: the next bytes could belong to an earlier request.
    failed: bool,
}

impl<S: Peer> RawMessages for Wire<S> {
    fn exchange_raw(&mut self, messages: &[u8], receive: &mut Receive<'_>) -> Result<()> {
        let done = self.send(messages).and_then(|()| self.pass_on(receive));
        self.settle(done)
    }

    fn flags(&mut self) -> u32 {
        0
    }

    fn database(&mut self) -> Option<&str> {
        None
    }
}

impl<S: Peer> Wire<S> {
    /// Adds a receive buffer to a stream.
    pub fn new(stream: S) -> Self {
        let most = stream.most();
        // Ten thousand clients of a thread would take 160 MB.
        let size = if kurabe_reactor::current() == 0 { INBOX } else { SMALL };
        Self {
            stream,
            inbox: vec![0; size],
            start: 0,
            end: 0,
            pipeline: Vec::new(),
            sent: 0,
            received: 0,
            most,
            failed: false,
        }
    }

    /// Returns the stream, to start TLS on it. Unread data is an error: it was sent in plain text before the handshake
    /// and must not be taken for part of the encrypted data (CVE-2021-23222).
    pub fn into_stream(self) -> Result<S> {
        if self.start == self.end {
            Ok(self.stream)
        } else {
            Err(malformed("the server sent unencrypted data before the TLS handshake"))
        }
    }

    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// The stream, mutable.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Ends connecting: from now on each request has its own deadline.
    pub fn ready(&mut self) {
        self.stream.ready();
    }

    /// Starts a request: its deadline, and the count of its answer's bytes.
    #[inline]
    pub fn begin(&mut self) -> Result<()> {
        if self.failed || self.sent < self.pipeline.len() {
            return Err(failed_before());
        }
        self.received = 0;
        self.stream.begin().map_err(|e| self.fail(&e))
    }

    /// Enlarges the receive buffer, to read many rows.
    pub fn widen(&mut self) {
        if self.inbox.len() < WIDE {
            self.inbox.resize(WIDE, 0);
        }
    }

    /// Sends a last message, even after a failure, then receives and discards what the server still sends, until it closes
    /// the connection or the time is over.
    pub fn drain(&mut self, last: &[u8], limit: Duration) {
        let until = Instant::now() + limit;
        self.failed = true;
        self.stream.limit(limit);
        if self.stream.begin().and_then(|()| self.stream.write_all(last)).is_err() {
            return;
        }
        loop {
            self.stream.limit(until.saturating_duration_since(Instant::now()));
            if self.stream.begin().is_err() {
                return;
            }
            match self.stream.read(&mut self.inbox) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(1..) if Instant::now() < until => {}
                _ => return,
            }
        }
    }

    /// Marks the connection as unusable.
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

    /// Starts a pipeline. Its requests are taken from `requests` and sent while its answers are received: a server that
    /// cannot send its answers stops receiving, whatever the length of either.
    pub fn send_pipeline(&mut self, requests: &mut Vec<u8>) -> Result<()> {
        self.begin()?;
        std::mem::swap(&mut self.pipeline, requests);
        self.sent = 0;
        Ok(())
    }

    /// Starts the next answer of a pipeline: the size limit is that of one answer.
    pub fn next_answer(&mut self) {
        self.received = 0;
    }

    /// Sends a part of a [started](Wire::begin) request.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).map_err(|e| self.fail(&e))
    }

    /// Sends three parts of a started request as one, without copying them together.
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

    /// Waits until the server closes the connection or sends data; returns whether it closed the connection.
    ///
    /// # Errors
    /// [`Timeout`](ErrorKind::Timeout) if neither happens.
    pub fn has_ended(&mut self) -> Result<bool> {
        if self.start < self.end {
            return Ok(false);
        }
        match self.fill() {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == ErrorKind::ConnectionLost => Ok(true),
            Err(error) if error.kind() == ErrorKind::Timeout => {
                Err(Error::new(ErrorKind::Timeout, "the server did not close the connection when asked to"))
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for the end of the connection; data before it is an error.
    pub fn expect_end(&mut self) -> Result<()> {
        if self.has_ended()? { Ok(()) } else { Err(self.surplus()) }
    }

    /// The error of unrequested data.
    pub fn surplus(&self) -> Error {
        let shown: String = String::from_utf8_lossy(self.buffered()).chars().take(40).collect();
        let shown = shown.escape_default();
        malformed(format!("the server sent more than was asked for: '{shown}' after the last answer"))
            .hint("the results of such a trial are unreliable: check for a proxy between client and server")
    }

    /// Marks the connection as unusable after an error that leaves its state unknown.
    #[cold]
    pub fn note(&mut self, error: &Error) {
        use ErrorKind::{ConnectionLost, Interrupted, Protocol, Timeout};
        self.failed |= matches!(error.kind(), ConnectionLost | Interrupted | Protocol | Timeout);
    }

    /// Returns the result, and [notes](Wire::note) its error.
    #[inline]
    pub fn settle<T>(&mut self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.note(error))
    }

    /// Whether the connection is unusable.
    pub fn has_failed(&self) -> bool {
        self.failed
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod script;

#[cfg(test)]
mod tests;
