//! The messages of one direction of a connection, of protocols whose messages begin with their length.

use crate::input::Input;
use crate::view::Stop;
use kurabe_protocol::{Found, Header};

/// Splits a stream into messages, and keeps at most the first `MAX` bytes of each.
#[derive(Debug)]
pub(crate) struct Frames<H, const MAX: usize> {
    input: Input,
    arriving: Option<Arriving<H>>,
}

impl<H, const MAX: usize> Default for Frames<H, MAX> {
    fn default() -> Self {
        Self { input: Input::default(), arriving: None }
    }
}

#[derive(Debug)]
struct Arriving<H> {
    message: Framed<H>,
    /// The bytes of its frame that have not arrived.
    left: u64,
    continues: bool,
    /// Whether its body is passed on in parts, and not kept.
    is_passed_on: Option<bool>,
}

#[derive(Debug)]
pub(crate) struct Framed<H> {
    /// The position of its first byte in the stream.
    pub(crate) at: u64,
    /// The header of its first frame.
    pub(crate) header: H,
    /// The bytes that were kept.
    pub(crate) body: Vec<u8>,
    /// Whether others were not.
    pub(crate) is_cut: bool,
}

pub(crate) enum Piece<'a, H> {
    /// A part of a message that is passed on.
    Part(H, &'a [u8]),
    /// Such a message is complete.
    PartsEnd(H),
    Message(Framed<H>),
}

impl<H: Header, const MAX: usize> Frames<H, MAX> {
    /// The rest of the stream, whose messages have another header.
    pub(crate) fn rest<T: Header>(&mut self) -> Frames<T, MAX> {
        Frames { input: std::mem::take(&mut self.input), arriving: None }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.input.push(bytes);
    }

    /// Where the message begins that has begun to arrive.
    pub(crate) fn begins(&self) -> Option<u64> {
        let next = || Some(self.input.position()).filter(|_| !self.input.waiting().is_empty());
        self.arriving.as_ref().map(|one| one.message.at).or_else(next)
    }

    /// What follows; `None` if it has not arrived. `is_passed_on`: of a message with this header and this first byte of its
    /// body, whether its parts are passed on.
    ///
    /// # Errors
    /// With `invalid` if no message has such a header.
    pub(crate) fn next(
        &mut self,
        invalid: &'static str,
        is_passed_on: impl Fn(H, Option<u8>) -> bool,
    ) -> Result<Option<Piece<'_, H>>, Stop> {
        loop {
            let waiting = self.input.waiting();
            let has_header = self.arriving.as_ref().is_some_and(|one| one.left > 0 || !one.continues);
            if !has_header {
                let header = match H::find(waiting) {
                    Found::Need(_) => return Ok(None),
                    Found::Invalid(_) => return Err(Stop::Unreadable(invalid)),
                    Found::Header(header) => header,
                };
                let at = self.input.position();
                let new = || Arriving {
                    message: Framed { at, header, body: Vec::new(), is_cut: false },
                    left: 0,
                    continues: false,
                    is_passed_on: None,
                };
                let arriving = self.arriving.get_or_insert_with(new);
                (arriving.left, arriving.continues) = (header.body(), header.continues());
                self.input.pass(H::LENGTH as u64);
                continue;
            }
            let Some(arriving) = &mut self.arriving else { return Ok(None) };
            let header = arriving.message.header;
            if arriving.left == 0 {
                let is_passed_on = arriving.is_passed_on.unwrap_or_else(|| is_passed_on(header, None));
                let message = self.arriving.take().map(|one| one.message);
                return Ok(message.map(|message| {
                    if is_passed_on { Piece::PartsEnd(header) } else { Piece::Message(message) }
                }));
            }
            let Some(first) = waiting.first().copied() else { return Ok(None) };
            if *arriving.is_passed_on.get_or_insert_with(|| is_passed_on(header, Some(first))) {
                return Ok(self.input.part(&mut arriving.left).map(|part| Piece::Part(header, part)));
            }
            let message = &mut arriving.message;
            let part = self.input.part(&mut arriving.left).unwrap_or_default();
            let kept = part.get(..MAX - message.body.len()).unwrap_or(part);
            message.is_cut |= kept.len() < part.len();
            message.body.extend_from_slice(kept);
        }
    }
}
