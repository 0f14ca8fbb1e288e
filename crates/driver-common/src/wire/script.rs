//! A transport for tests, with fixed answers, and the inputs of fuzz targets.

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

/// The parts of a fuzz target's input, read from its front. A part that the input does not have is zero or empty.
#[derive(Debug)]
pub struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    /// Starts at the first byte of an input.
    pub fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// The next two bytes, the high one first.
    pub fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// How the rest of the input is to be used, from one byte: the size of the pieces in which it arrives (the byte's
    /// lower six bits and one more), and whether it describes well-formed messages (its highest bit) or is sent as it
    /// is.
    pub fn head(&mut self) -> (usize, bool) {
        let byte = self.byte();
        (usize::from(byte % 64) + 1, byte >= 128)
    }

    /// The next bytes: their number, below 64, is in the byte before them.
    pub fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte() % 64).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    /// All remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// The remaining bytes, in which each byte above 127 stands for one of these words.
    pub fn words(&mut self, words: &[&str]) -> Vec<u8> {
        let spelled = |byte: &'a u8| match usize::from(*byte).checked_sub(128) {
            Some(number) => words[number % words.len()].as_bytes(),
            None => std::slice::from_ref(byte),
        };
        self.rest().iter().flat_map(spelled).copied().collect()
    }
}
