//! One request on its way: short parts are copied together, a long value is sent from where it stands.

use super::{LONG, Peer, Wire};
use kurabe_core::Result;

/// A request under way. `text` holds what was copied together; its start may hold bytes already.
pub struct Outbox<'w, 'v, S> {
    wire: &'w mut Wire<S>,
    /// The request's bytes so far, but for long values.
    pub text: &'w mut Vec<u8>,
    /// A long value, and after how many bytes of `text` it comes.
    long: Option<(usize, &'v [u8])>,
    begun: bool,
}

impl<'w, 'v, S: Peer> Outbox<'w, 'v, S> {
    /// A request that is written by `wire`.
    pub fn new(wire: &'w mut Wire<S>, text: &'w mut Vec<u8>) -> Self {
        Self { wire, text, long: None, begun: false }
    }

    /// Appends a value. Lengths that stand before it in the request must be there already.
    pub fn value(&mut self, value: &'v [u8]) -> Result<()> {
        if value.len() < LONG {
            self.text.extend_from_slice(value);
            return Ok(());
        }
        if self.long.is_some() {
            self.flush()?;
            self.text.clear();
        }
        self.long = Some((self.text.len(), value));
        Ok(())
    }

    /// Sends what is left: everything in one write, unless there is more than one long value.
    pub fn flush(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.begun, true) {
            self.wire.begin()?;
        }
        match self.long.take() {
            None => self.wire.push(self.text),
            Some((at, value)) => self.wire.push_parts([&self.text[..at], value, &self.text[at..]]),
        }
    }
}
