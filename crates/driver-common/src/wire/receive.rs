//! Receiving into the buffer of a [`Wire`], and from there.

use super::{INBOX, Peer, STEP, Wire, too_much};
use kurabe_core::driver::Receive;
use kurabe_core::value::Reply;
use kurabe_core::{Error, Result};
use std::io;

impl<S: Peer> Wire<S> {
    /// The received bytes that are not consumed yet.
    pub fn buffered(&self) -> &[u8] {
        &self.inbox[self.start..self.end]
    }

    /// The next `n` bytes, received if needed. The caller limits `n`.
    pub fn peek(&mut self, n: usize) -> Result<&[u8]> {
        while self.end - self.start < n {
            if self.start + n > self.inbox.len() {
                self.inbox.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
                if self.end == self.inbox.len() {
                    // Grow by what was received, not by what was announced.
                    self.inbox.resize(n.min(2 * self.end), 0);
                }
            }
            self.fill()?;
        }
        Ok(&self.inbox[self.start..self.start + n])
    }

    /// Consumes the next `n` bytes, which must be buffered.
    pub fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
    }

    /// Passes on what arrives until `receive` says that the answer is complete, and sends what it writes. Nothing of it is
    /// kept, so that only the time of the answer is limited.
    pub fn pass_on(&mut self, receive: &mut Receive<'_>) -> Result<()> {
        let mut more = Vec::new();
        loop {
            self.received = 0;
            self.peek(1)?;
            let is_complete = receive(self.buffered(), &mut more)?;
            (self.start, self.end) = (0, 0);
            if !more.is_empty() {
                self.push(&more)?;
                more.clear();
            }
            if is_complete {
                return Ok(());
            }
        }
    }

    /// Skips the next `n` bytes, received or not.
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

    /// Appends the next `n` bytes to `out`, copying each once: from the buffer or by the kernel.
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
            if n > INBOX && self.sent == self.pipeline.len() {
                let got = self.receive(n.min(STEP), out)?;
                // The spare capacity may be larger than the requested length.
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

    /// Moves surplus bytes into the empty buffer.
    fn put_back(&mut self, bytes: &[u8]) {
        if self.inbox.len() < bytes.len() {
            self.inbox.resize(bytes.len(), 0);
        }
        self.inbox[..bytes.len()].copy_from_slice(bytes);
        (self.start, self.end) = (0, bytes.len());
    }

    /// Counts received bytes; none means the end of the connection.
    #[inline]
    fn arrived(&mut self, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Err(self.fail(&io::ErrorKind::UnexpectedEof.into()));
        }
        self.received += bytes as u64;
        if self.received > self.most { Err(self.too_much()) } else { Ok(()) }
    }

    /// Returns an error if an answer takes more memory than the limit: small fields take more memory than bytes on the
    /// wire.
    #[inline]
    pub fn check_held(&mut self, bytes: usize) -> Result<()> {
        if bytes as u64 > self.most { Err(self.too_much()) } else { Ok(()) }
    }

    /// Returns an error if a reply takes more memory than the limit.
    #[inline]
    pub fn check_reply(&mut self, reply: &Reply) -> Result<()> {
        self.check_held(reply.held())
    }

    #[cold]
    fn too_much(&mut self) -> Error {
        self.failed = true;
        too_much(self.most)
    }

    pub(super) fn fill(&mut self) -> Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.inbox.len() {
            self.inbox.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            let received = if self.sent < self.pipeline.len() {
                match self.stream.exchange(&self.pipeline[self.sent..], &mut self.inbox[self.end..]) {
                    Ok((0, 0)) => Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok((sent, 0)) => {
                        self.sent += sent;
                        continue;
                    }
                    Ok((sent, got)) => {
                        self.sent += sent;
                        Ok(got)
                    }
                    Err(error) => Err(error),
                }
            } else {
                self.stream.read(&mut self.inbox[self.end..])
            };
            match received {
                Ok(got) => {
                    self.end += got;
                    if self.end == self.inbox.len() && self.end < INBOX {
                        // Answers are longer than the buffer.
                        self.inbox.resize((2 * self.end).min(INBOX), 0);
                    }
                    return self.arrived(got);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.fail(&e)),
            }
        }
    }
}
