//! A transport for tests, with fixed answers.

use std::io::{self, Read, Write};

/// A transport that reads from `answers`, at most `piece` bytes at a time, then ends, and records written bytes.
pub struct Script {
    /// The bytes to read.
    pub answers: io::Cursor<Vec<u8>>,
    /// Maximum bytes of one read or write.
    pub piece: usize,
    /// The written bytes.
    pub sent: Vec<u8>,
}

impl Script {
    /// Creates a transport with these answers.
    pub fn new(answers: Vec<u8>) -> Self {
        Self { answers: io::Cursor::new(answers), piece: usize::MAX, sent: Vec::new() }
    }

    /// Like [`Self::new`], in pieces of at most `piece` bytes.
    pub fn in_pieces(answers: Vec<u8>, piece: usize) -> Self {
        Self { piece: piece.max(1), ..Self::new(answers) }
    }
}

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.piece);
        self.answers.read(&mut buffer[..most])
    }
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = bytes.len().min(self.piece);
        self.sent.extend_from_slice(&bytes[..most]);
        Ok(most)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl super::Peer for Script {
    /// More than any script sends.
    fn most(&self) -> u64 {
        1 << 30
    }
}
