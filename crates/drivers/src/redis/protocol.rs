//! RESP3: requests are arrays of strings, answers begin with a line that says what they are. Source:
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

use super::errors;
use crate::prelude::*;
use crate::wire::{Peer, Wire, malformed, push_number};

/// The longest line: errors are the longest there are, and stay far below.
const LINE: usize = 4_096;

/// The longest string that is believed: greater lengths can be set on a server, but nobody sends such an answer.
const MOST: i64 = 1 << 34;

/// Arrays within arrays: `EXEC` has two levels, `HELLO` three.
const DEPTH: usize = 8;

/// The memory that a node takes, roughly: its own, that of the least allocation, and room that a list has to spare.
const NODE: usize = 4 * size_of::<Node>();

/// What an answer begins with.
#[derive(Debug)]
pub(super) enum Head {
    /// A word that says no more than that it is done.
    Simple,
    /// A whole number.
    Int(i64),
    /// A string of so many bytes follows, then the end of a line.
    Bulk(usize),
    /// Nothing.
    Null,
    /// So many answers follow.
    Items(usize),
    /// So many pairs of answers follow.
    Pairs(usize),
    /// An error.
    Refused(Box<Error>),
    /// An error of so many bytes follows, as a string does.
    LongRefused(usize),
    /// Remarks on the answer that comes after them, as pairs.
    Remarks(usize),
    /// Something nobody asked for, as items.
    Push(usize),
}

impl Head {
    /// Reads a line, given without its end.
    fn parse(line: &[u8]) -> Result<Self> {
        let Some((kind, rest)) = line.split_first() else { return Err(strange(line)) };
        let length = |most: i64| match number(rest) {
            Some(n) if (0..=most).contains(&n) => Ok(n as usize),
            _ => Err(strange(line)),
        };
        Ok(match kind {
            b'+' | b',' | b'#' | b'(' => Self::Simple,
            b'-' => Self::Refused(Box::new(errors::of(rest))),
            b':' => Self::Int(number(rest).ok_or_else(|| strange(line))?),
            // What RESP2 says where there is nothing; some servers keep to it here and there.
            b'$' | b'*' if rest == b"-1" => Self::Null,
            b'_' if rest.is_empty() => Self::Null,
            b'$' | b'=' => Self::Bulk(length(MOST)?),
            b'!' => Self::LongRefused(length(LINE as i64)?),
            b'*' | b'~' => Self::Items(length(MOST)?),
            b'%' => Self::Pairs(length(MOST)?),
            b'|' => Self::Remarks(length(MOST)?),
            b'>' => Self::Push(length(MOST)?),
            _ => return Err(strange(line)),
        })
    }
}

/// An answer as a whole, where its cost does not matter.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Int(i64),
    Text(Vec<u8>),
    /// Arrays, sets, and maps one key and value after the other.
    List(Vec<Node>),
    Refused(Box<Error>),
}

impl Node {
    /// The text of a string or a word; empty for anything else.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Int(number) => number.to_string(),
            _ => String::new(),
        }
    }

    /// The parts of an array or a map; none of anything else.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// The pairs of a map, as text.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.items().chunks_exact(2).map(|pair| (pair[0].text(), pair[1].text()))
    }
}

/// The number that a word is.
pub(super) fn number(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, word),
    };
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    // Built below zero, where there is one number more.
    let below = digits.iter().try_fold(0i64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_sub(digit)
    })?;
    if negative { Some(below) } else { below.checked_neg() }
}

fn strange(line: &[u8]) -> Error {
    let shown: String = String::from_utf8_lossy(line).chars().take(60).collect();
    malformed(format!("the server answered '{}', which is not the protocol of Redis", shown.escape_default()))
}

/// An answer that is right in itself and not one to the request.
pub(super) fn unexpected(head: &Head) -> Error {
    malformed(format!("the server answered {head:?}, which does not belong to the request"))
}

/// A connection: requests out, answers in. Whoever gets [`Head::Bulk`] must read that many bytes and then call
/// [`Client::end_value`].
pub(super) struct Client<S> {
    pub(super) wire: Wire<S>,
    /// Requests under construction.
    pub(super) request: Vec<u8>,
    /// Bytes that the nodes of the present answer hold.
    held: usize,
    /// How long the parts of connecting took.
    pub(super) times: Option<ConnectTimes>,
}

impl<S: Peer> Client<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { wire: Wire::new(stream), request: Vec::new(), held: 0, times: None }
    }

    /// What the next answer begins with. What nobody asked for is passed over.
    #[inline]
    pub(super) fn answer(&mut self) -> Result<Head> {
        loop {
            let length = self.line()?;
            let head = Head::parse(&self.wire.peek(length)?[..length - 2]);
            self.wire.consume(length);
            match head? {
                Head::Remarks(pairs) => self.pass_over(pairs.saturating_mul(2))?,
                Head::Push(items) => self.pass_over(items)?,
                Head::LongRefused(bytes) => {
                    let text = self.bulk(bytes)?;
                    return Ok(Head::Refused(Box::new(errors::of(&text))));
                }
                head => return Ok(head),
            }
        }
    }

    #[cold]
    fn pass_over(&mut self, nodes: usize) -> Result<()> {
        self.held = 0;
        for _ in 0..nodes {
            self.node(DEPTH)?;
        }
        Ok(())
    }

    /// An answer as a whole; an error answer is an error.
    pub(super) fn whole(&mut self) -> Result<Node> {
        self.held = 0;
        let node = self.node(DEPTH);
        match self.wire.settle(node)? {
            Node::Refused(error) => Err(*error),
            node => Ok(node),
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(malformed("the server's answer is nested too deeply"));
        };
        let length = self.line()?;
        let line = &self.wire.peek(length)?[..length - 2];
        let (head, word, marked) =
            (Head::parse(line)?, line.get(1..).unwrap_or_default().to_vec(), line.first() == Some(&b'='));
        self.wire.consume(length);
        self.held += NODE + word.len();
        self.wire.check_held(self.held)?;
        Ok(match head {
            Head::Simple => Node::Text(word),
            Head::Int(number) => Node::Int(number),
            Head::Null => Node::Null,
            Head::Bulk(bytes) => {
                let mut text = self.bulk(bytes)?;
                if marked {
                    // Three letters and a colon, which tell plain text from Markdown.
                    text.drain(..text.len().min(4));
                }
                Node::Text(text)
            }
            Head::Items(count) => Node::List(self.nodes(count, depth)?),
            Head::Pairs(count) => Node::List(self.nodes(count.saturating_mul(2), depth)?),
            Head::Refused(error) => Node::Refused(error),
            Head::LongRefused(bytes) => Node::Refused(Box::new(errors::of(&self.bulk(bytes)?))),
            Head::Remarks(count) => {
                self.nodes(count.saturating_mul(2), depth)?;
                self.node(depth)?
            }
            Head::Push(count) => {
                self.nodes(count, depth)?;
                self.node(depth)?
            }
        })
    }

    /// So many nodes. No room is set aside for them before they are there: a count is the peer's claim.
    fn nodes(&mut self, count: usize, depth: usize) -> Result<Vec<Node>> {
        let mut nodes = Vec::new();
        for _ in 0..count {
            nodes.push(self.node(depth)?);
        }
        Ok(nodes)
    }

    fn bulk(&mut self, bytes: usize) -> Result<Vec<u8>> {
        self.held += bytes;
        let mut text = Vec::new();
        self.wire.take_into(bytes, &mut text)?;
        self.end_value()?;
        Ok(text)
    }

    /// Appends a string that must come next to `out`.
    pub(super) fn bulk_into(&mut self, out: &mut Vec<u8>) -> Result<()> {
        match self.answer()? {
            Head::Bulk(bytes) => {
                self.wire.take_into(bytes, out)?;
                self.end_value()
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Reads the end of the line behind a string.
    #[inline]
    pub(super) fn end_value(&mut self) -> Result<()> {
        if self.wire.peek(2)? != b"\r\n" {
            return Err(malformed("the server sent another length than it announced"));
        }
        self.wire.consume(2);
        Ok(())
    }

    /// Says goodbye and checks that nothing came but its answer, and what servers may send unasked.
    pub(super) fn quit_checked(&mut self) -> Result<()> {
        if self.wire.has_failed() {
            return Ok(());
        }
        let told = self.wire.send(b"*1\r\n$4\r\nQUIT\r\n");
        if told.is_err() || self.wire.has_ended()? {
            // It had closed the connection before.
            return Ok(());
        }
        let answer = self.answer();
        match self.wire.settle(answer)? {
            Head::Simple => self.wire.expect_end(),
            // One that does not know the word leaves the connection open.
            Head::Refused(_) => Ok(()),
            other => Err(unexpected(&other).context("the server sent more than was asked for")),
        }
    }

    /// Sends a request and reads the answer as a whole.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Node> {
        self.request.clear();
        push_request(&mut self.request, words);
        self.wire.send(&self.request)?;
        self.whole()
    }

    /// As [`Client::ask`], where all words are plain text.
    pub(super) fn ask_text(&mut self, words: &[&str]) -> Result<Node> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.ask(&words)
    }

    /// The length of the next line with its end, all of it received.
    #[inline]
    fn line(&mut self) -> Result<usize> {
        let mut seen = 0;
        loop {
            let here = self.wire.buffered();
            if let Some(end) = here[seen..].iter().position(|byte| *byte == b'\n') {
                let length = seen + end + 1;
                if length < 2 || here[length - 2] != b'\r' {
                    return Err(strange(&here[..length - 1]));
                }
                return Ok(length);
            }
            seen = here.len();
            if seen > LINE {
                return Err(strange(here));
            }
            self.wire.peek(seen + 1)?;
        }
    }
}

/// Appends a request of so many words.
pub(super) fn push_request(out: &mut Vec<u8>, words: &[&[u8]]) {
    push_count(out, words.len());
    for word in words {
        push_word(out, word);
    }
}

/// Appends the beginning of a request: how many words follow.
pub(super) fn push_count(out: &mut Vec<u8>, words: usize) {
    out.push(b'*');
    push_number(out, words as u64);
    out.extend_from_slice(b"\r\n");
}

/// Appends a word of a request.
#[inline]
pub(super) fn push_word(out: &mut Vec<u8>, word: &[u8]) {
    push_length(out, word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Appends what stands before a word.
#[inline]
pub(super) fn push_length(out: &mut Vec<u8>, bytes: usize) {
    out.push(b'$');
    push_number(out, bytes as u64);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
