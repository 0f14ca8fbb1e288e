//! One end of a relayed connection: a buffered reader of whole messages.

use kurabe_relay::Socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;

/// The maximum message size.
const LIMIT: usize = 256 * 1024 * 1024;

/// One end of a relayed connection.
pub struct Peer {
    stream: Socket,
    buffer: Vec<u8>,
    at: usize,
}

impl Peer {
    /// The end behind this stream.
    pub fn new(stream: Socket) -> Self {
        Self { stream, buffer: Vec::new(), at: 0 }
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.stream.shutdown(Shutdown::Both);
    }

    /// Received bytes that were not taken yet.
    fn waiting(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Waits for this many bytes. `false` if the stream ended before the first of them.
    ///
    /// # Errors
    /// If the stream failed, or ended before the last of them.
    pub fn await_bytes(&mut self, count: usize) -> io::Result<bool> {
        if count > LIMIT {
            return Err(io::Error::new(ErrorKind::InvalidData, "message too long for the relay"));
        }
        while self.waiting().len() < count {
            let mut piece = [0; 16 * 1024];
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                let nothing = self.waiting().is_empty();
                return if nothing { Ok(false) } else { Err(ErrorKind::UnexpectedEof.into()) };
            }
            if self.at > 0 {
                self.buffer.drain(..self.at);
                self.at = 0;
            }
            self.buffer.extend_from_slice(&piece[..read]);
        }
        Ok(true)
    }

    /// Waits until this end has sent something. `false` if it or the other one ended first: a server closes connections
    /// that are idle for long, and the client must see that before its next request.
    ///
    /// # Errors
    /// If polling the connections fails.
    pub fn await_turn(&self, other: &Self) -> io::Result<bool> {
        if !self.waiting().is_empty() {
            return Ok(true);
        }
        let mut both = [PollFd::new(&self.stream, PollFlags::IN), PollFd::new(&other.stream, PollFlags::IN)];
        poll(&mut both, None)?;
        Ok(both[0].revents().intersects(PollFlags::IN | PollFlags::HUP))
    }

    /// Whether all received bytes were taken.
    pub fn is_idle(&self) -> bool {
        let mut one = [PollFd::new(&self.stream, PollFlags::IN)];
        self.waiting().is_empty() && matches!(poll(&mut one, Some(&Timespec::default())), Ok(0))
    }

    /// The next bytes, without taking them.
    ///
    /// # Errors
    /// As [`Peer::await_bytes`].
    pub fn peek(&mut self, count: usize) -> io::Result<Option<&[u8]>> {
        Ok(if self.await_bytes(count)? { Some(&self.waiting()[..count]) } else { None })
    }

    /// Appends the next bytes to `out`.
    ///
    /// # Errors
    /// If the stream failed or ended.
    pub fn take(&mut self, count: usize, out: &mut Vec<u8>) -> io::Result<()> {
        if count > 0 && !self.await_bytes(count)? {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        out.extend_from_slice(&self.buffer[self.at..self.at + count]);
        self.at += count;
        Ok(())
    }

    /// Appends the next line, with its line end, to `out`; returns its position there.
    ///
    /// # Errors
    /// If the stream failed or ended.
    pub fn line(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        let mut known = 0;
        loop {
            if let Some(end) = self.waiting()[known..].iter().position(|byte| *byte == b'\n') {
                let start = out.len();
                self.take(known + end + 1, out)?;
                return Ok(start);
            }
            known = self.waiting().len();
            if !self.await_bytes(known + 1)? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The stream failed.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }
}

/// The number in a line, after its first byte: `$12\r\n` is 12.
pub fn number(line: &[u8]) -> i64 {
    std::str::from_utf8(line).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
