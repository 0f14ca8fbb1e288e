//! Bytes of one direction of a connection that were not decoded yet; and its messages, of protocols whose messages begin with their length.

use crate::view::Stop;
use kurabe_protocol::{Found, Header};
use std::borrow::Cow;

/// The part of a message that is kept, in bytes. Longer messages are read up to here.
pub(crate) const KEPT: usize = 64 * 1024;

/// Bytes that were not decoded yet. It holds at most [`KEPT`] bytes more than one piece of the stream.
#[derive(Debug, Default)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    /// The part of the buffer that was taken.
    taken: usize,
    /// The part of the rest that has no end of line.
    searched: usize,
    /// Bytes of the stream that are passed over when they arrive.
    skip: u64,
    /// The position in the stream of the first byte that was not taken.
    position: u64,
}

/// A message, or its first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The position of its first byte in the stream.
    pub(crate) at: u64,
    /// Its first bytes, at most [`KEPT`].
    pub(crate) bytes: Vec<u8>,
}

impl Message {
    /// Its text. Bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

impl Input {
    /// Appends the next piece of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        self.skip -= skipped as u64;
        self.position += skipped as u64;
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(&bytes[skipped..]);
    }

    pub(crate) fn waiting(&self) -> &[u8] {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// Takes a message of this many bytes, and keeps its first ones; `None` until those that are kept have arrived.
    pub(crate) fn take(&mut self, length: u64, kept: usize) -> Option<Message> {
        let kept = usize::try_from(length).unwrap_or(usize::MAX).min(kept);
        let bytes = self.waiting().get(..kept)?.to_vec();
        let at = self.position;
        self.pass(length);
        Some(Message { at, bytes })
    }

    /// Passes over bytes, those that have not arrived included.
    pub(crate) fn pass(&mut self, length: u64) {
        let there = usize::try_from(length).unwrap_or(usize::MAX).min(self.waiting().len());
        self.taken += there;
        self.position += there as u64;
        self.searched = 0;
        self.skip = length - there as u64;
    }

    /// Takes a line without its end (LF or CR LF); `None` until it is complete.
    ///
    /// # Errors
    /// With `too_long` if it is longer than [`KEPT`], as no line of a protocol is.
    pub(crate) fn line(&mut self, too_long: &'static str) -> Result<Option<Message>, &'static str> {
        let found = self.waiting().iter().skip(self.searched).position(|byte| *byte == b'\n');
        let Some(found) = found else {
            self.searched = self.waiting().len();
            return if self.searched > KEPT { Err(too_long) } else { Ok(None) };
        };
        let end = self.searched + found;
        let line = self.waiting().get(..end).unwrap_or_default();
        let bytes = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
        let at = self.position;
        self.pass(end as u64 + 1);
        Ok(Some(Message { at, bytes }))
    }

    /// Takes what has arrived of so many bytes, and lowers their number; `None` if nothing has.
    pub(crate) fn part(&mut self, left: &mut u64) -> Option<&[u8]> {
        let start = self.taken;
        let there = usize::try_from(*left).unwrap_or(usize::MAX).min(self.waiting().len());
        self.pass(there as u64);
        *left -= there as u64;
        self.buffer.get(start..start + there).filter(|part| !part.is_empty())
    }
}

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
        let next = || Some(self.input.position).filter(|_| !self.input.waiting().is_empty());
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
                let at = self.input.position;
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_message_is_taken_early_and_its_rest_is_passed_over() {
        let mut input = Input::default();
        input.push(&[7; 10]);
        assert_eq!(input.take(1_000_000, 12), None);
        input.push(&[7; 10]);
        assert_eq!(input.take(1_000_000, 12), Some(Message { at: 0, bytes: vec![7; 12] }));
        for _ in 0..998 {
            input.push(&[7; 1_000]);
            assert!(input.waiting().is_empty());
        }
        input.push(&[[7; 1_000].as_slice(), &[7; 980], b"end"].concat());
        assert_eq!((input.waiting(), input.position), (b"end".as_slice(), 1_000_000));
    }

    #[test]
    fn line_without_end_is_too_long() {
        let mut input = Input::default();
        input.push(&vec![b'x'; KEPT]);
        assert_eq!(input.line("long"), Ok(None));
        input.push(b"x");
        assert_eq!(input.line("long"), Err("long"));
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_pieces(text in "[a-c\r\n]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..8)) {
            let read = |pieces: &[&[u8]]| {
                let mut input = Input::default();
                let mut lines = Vec::new();
                for piece in pieces {
                    input.push(piece);
                    while let Ok(Some(line)) = input.line("") {
                        lines.push(line);
                    }
                }
                lines
            };
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &text.as_bytes()[two[0]..two[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[text.as_bytes()]));
        }
    }
}
