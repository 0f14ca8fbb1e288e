//! What a [`Wire`](super::Wire) sends and receives by.

use super::{INBOX, MAX};
use std::io::{self, Read, Write};
use std::time::Duration;

/// The transport of a [`Wire`](super::Wire).
pub trait Peer: Read + Write {
    /// Receives once and appends to `out`, at most about `most` bytes; returns the number of bytes.
    fn receive(&mut self, most: usize, out: &mut Vec<u8>) -> io::Result<usize>
    where
        Self: Sized,
    {
        receive_by_read(self, most, out)
    }

    /// Sends some of `out` or receives into `inbox`, whichever is possible first; returns the numbers of bytes. A peer
    /// without buffers that fill up may only send.
    fn exchange(&mut self, out: &[u8], inbox: &mut [u8]) -> io::Result<(usize, usize)> {
        let _ = inbox;
        self.write(out).map(|sent| (sent, 0))
    }

    /// Starts the deadline of a request and its answer.
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Ends connecting, whose requests share one deadline.
    fn ready(&mut self) {}

    /// Limits the time of each further exchange.
    fn limit(&mut self, _allowed: Duration) {}

    /// Starts a command of a protocol that counts what it sends from each command.
    fn begin_command(&mut self) {}

    /// Size limit of an answer, in bytes.
    fn most(&self) -> u64 {
        MAX
    }

    /// The transport to the server, for [`kurabe_core::facts::ServerFacts`].
    fn transport(&self) -> String {
        String::new()
    }
}

/// Receives once into zeroed memory, as [`Peer::receive`] does.
pub fn receive_by_read(from: &mut impl Read, most: usize, out: &mut Vec<u8>) -> io::Result<usize> {
    let before = out.len();
    out.resize(before + most.min(INBOX), 0);
    let got = from.read(&mut out[before..]);
    out.truncate(before + got.as_ref().map_or(0, |got| *got));
    got
}
