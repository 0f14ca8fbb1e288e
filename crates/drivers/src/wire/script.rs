//! A peer for tests: its answers are fixed, and it ends where they end.

use std::io::{self, Read, Write};

/// Reads from `answers`, at most `piece` bytes at a time, then ends; keeps what is written.
pub(crate) struct Script {
    pub(crate) answers: io::Cursor<Vec<u8>>,
    pub(crate) piece: usize,
    pub(crate) sent: Vec<u8>,
}

impl Script {
    pub(crate) fn new(answers: Vec<u8>) -> Self {
        Self { answers: io::Cursor::new(answers), piece: usize::MAX, sent: Vec::new() }
    }

    pub(crate) fn in_pieces(answers: Vec<u8>, piece: usize) -> Self {
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
    /// More than what any script sends.
    fn most(&self) -> u64 {
        1 << 30
    }
}
