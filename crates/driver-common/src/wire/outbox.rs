//! A request under construction: short parts are copied together, a long value is sent without copying.

use super::{LONG, Peer, Wire};
use kurabe_core::Result;

/// A request under construction. `text` may have contents at the start.
pub struct Outbox<'w, 'v, S> {
    /// `None`: values are copied, and nothing is sent.
    wire: Option<&'w mut Wire<S>>,
    /// The request's bytes so far, without long values.
    pub text: &'w mut Vec<u8>,
    /// A long value, and its offset in `text`.
    long: Option<(usize, &'v [u8])>,
    begun: bool,
}

impl<'w, 'v, S: Peer> Outbox<'w, 'v, S> {
    /// Creates a request for `wire`.
    pub fn new(wire: &'w mut Wire<S>, text: &'w mut Vec<u8>) -> Self {
        Self { wire: Some(wire), text, long: None, begun: false }
    }

    /// Creates a request that its caller sends: all values are copied into `text`.
    pub fn copying(text: &'w mut Vec<u8>) -> Self {
        Self { wire: None, text, long: None, begun: false }
    }

    /// Appends a value. The lengths before it must have been appended already.
    pub fn value(&mut self, value: &'v [u8]) -> Result<()> {
        if value.len() < LONG || self.wire.is_none() {
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

    /// Sends the rest: everything in one write, unless there is more than one long value.
    pub fn flush(&mut self) -> Result<()> {
        let Some(wire) = &mut self.wire else { return Ok(()) };
        if !std::mem::replace(&mut self.begun, true) {
            wire.begin()?;
        }
        match self.long.take() {
            None => wire.push(self.text),
            Some((at, value)) => wire.push_parts([&self.text[..at], value, &self.text[at..]]),
        }
    }
}
