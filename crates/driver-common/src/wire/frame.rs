//! Headers of frames, and lines in protocols of text.

use super::{Peer, Wire, malformed};
use kurabe_core::Result;
use kurabe_protocol::{Found, Header};

impl<S: Peer> Wire<S> {
    /// Receives the header of the next frame, and consumes it.
    #[inline]
    pub fn header<H: Header>(&mut self) -> Result<H> {
        loop {
            match H::find(self.buffered()) {
                Found::Header(header) => {
                    self.consume(H::LENGTH);
                    return Ok(header);
                }
                Found::Need(length) => self.peek(length).map(drop)?,
                Found::Invalid(length) => {
                    let what =
                        format!("a message of {length} bytes, which the server's protocol does not have");
                    return Err(malformed(what));
                }
            }
        }
    }

    /// Receives the next line, without consuming it, and returns its length with its end; `None` if it is longer than
    /// `most` bytes.
    #[inline]
    pub fn line(&mut self, most: usize) -> Result<Option<usize>> {
        let mut seen = 0;
        loop {
            let here = self.buffered();
            if let Some(end) = here[seen..].iter().position(|byte| *byte == b'\n') {
                return Ok(Some(seen + end + 1));
            }
            seen = here.len();
            if seen > most {
                return Ok(None);
            }
            self.peek(seen + 1)?;
        }
    }

    /// Consumes the end of the line after a value of an announced length; `wrong`: the error if there is none.
    #[inline]
    pub fn end_value(&mut self, wrong: &str) -> Result<()> {
        if self.peek(2)? != b"\r\n" {
            return Err(malformed(wrong));
        }
        self.consume(2);
        Ok(())
    }
}
