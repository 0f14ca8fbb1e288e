//! The messages of one direction of a connection, whose bodies are read as they arrive.

/// Splits a stream into messages that begin with `H` bytes.
#[derive(Debug)]
pub(crate) struct Frames<const H: usize> {
    header: [u8; H],
    have: usize,
    /// The bytes of the body that have not arrived.
    left: u64,
}

/// A piece of a message's body.
pub(crate) struct Part<'a, const H: usize> {
    pub(crate) header: [u8; H],
    pub(crate) bytes: &'a [u8],
    /// Whether the message is complete.
    pub(crate) ends: bool,
}

impl<const H: usize> Default for Frames<H> {
    fn default() -> Self {
        Self { header: [0; H], have: 0, left: 0 }
    }
}

impl<const H: usize> Frames<H> {
    /// Takes the next part from `bytes`; `None` if it needs more. `length` reads the length of the body from a header.
    pub(crate) fn next<'a>(
        &mut self,
        bytes: &mut &'a [u8],
        length: impl Fn(&[u8; H]) -> Option<u64>,
    ) -> Result<Option<Part<'a, H>>, WrongLength> {
        if self.have < H {
            while self.have < H {
                let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
                self.header[self.have] = *first;
                self.have += 1;
                *bytes = rest;
            }
            self.left = length(&self.header).ok_or(WrongLength)?;
        } else if bytes.is_empty() {
            return Ok(None);
        }
        let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let (piece, rest) = bytes.split_at(taken);
        *bytes = rest;
        self.left -= taken as u64;
        if self.left == 0 {
            self.have = 0;
        }
        Ok(Some(Part { header: self.header, bytes: piece, ends: self.left == 0 }))
    }
}

/// A length that no message has.
#[derive(Debug)]
pub(crate) struct WrongLength;
