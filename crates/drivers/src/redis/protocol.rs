//! A connection that speaks RESP3.

use super::errors;
use crate::prelude::*;
use crate::wire::{Peer, Wire, malformed, push_number};
use kurabe_protocol::resp::Line;

/// Length limit of a line, in bytes: errors are the longest lines, and far shorter.
const LINE: usize = 4_096;

/// Maximum nesting of arrays: `EXEC` has two levels, `HELLO` three.
const DEPTH: usize = 8;

/// Approximate memory of a node, in bytes: the node, a minimal allocation, and spare capacity of a list.
const NODE: usize = 4 * size_of::<Node>();

/// The first line of an answer.
#[derive(Debug)]
pub(super) enum Head {
    /// A simple value, such as `OK`.
    Simple,
    Int(i64),
    /// A string of this length in bytes follows, then the end of a line.
    Bulk(usize),
    Null,
    /// This many answers follow; two for each pair of a map.
    Items(usize),
    Refused(Box<Error>),
    /// An error of this length in bytes follows, as a string.
    LongRefused(usize),
    /// This many answers follow that nobody asked for, before the answer: attributes of it, or a push message.
    Unasked(usize),
}

impl Head {
    /// Parses a line, without its end.
    fn parse(line: &[u8]) -> Result<Self> {
        Ok(match Line::read(line).ok_or_else(|| strange(line))? {
            Line::Simple => Self::Simple,
            Line::Int(number) => Self::Int(number),
            Line::Error(text) => Self::Refused(Box::new(errors::of(text))),
            Line::Null => Self::Null,
            Line::Text(length) => Self::Bulk(length as usize),
            Line::LongError(length) if length > LINE as u64 => return Err(strange(line)),
            Line::LongError(length) => Self::LongRefused(length as usize),
            Line::Items(count) => Self::Items(count as usize),
            Line::Pairs(count) => Self::Items(2 * count as usize),
            Line::Push(count) => Self::Unasked(count as usize),
            Line::Attributes(count) => Self::Unasked(2 * count as usize),
        })
    }
}

/// A complete answer, for requests whose cost does not matter.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Int(i64),
    Text(Vec<u8>),
    /// An array, a set, or a map as alternating keys and values.
    List(Vec<Node>),
    Refused(Box<Error>),
}

impl Node {
    /// The text of a string or a number; empty for anything else.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Int(number) => number.to_string(),
            _ => String::new(),
        }
    }

    /// The elements of an array or a map; empty for anything else.
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

fn strange(line: &[u8]) -> Error {
    let shown: String = String::from_utf8_lossy(line).chars().take(60).collect();
    malformed(format!("the server answered '{}', which is not Redis's protocol", shown.escape_default()))
}

/// The error of a valid answer that does not match the request.
pub(super) fn unexpected(head: &Head) -> Error {
    malformed(format!("the server answered {head:?}, which does not match the request"))
}

/// A connection that sends requests and reads answers. After [`Head::Bulk`] the caller must read that many bytes and
/// then call [`Client::end_value`].
pub(super) struct Client<S> {
    pub(super) wire: Wire<S>,
    pub(super) request: Vec<u8>,
    /// Memory of the current answer's nodes, in bytes.
    held: usize,
    pub(super) times: Option<ConnectTimes>,
}

impl<S: Peer> Client<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { wire: Wire::new(stream), request: Vec::new(), held: 0, times: None }
    }

    /// Reads the first line of the next answer. Attributes and push messages are skipped.
    #[inline]
    pub(super) fn answer(&mut self) -> Result<Head> {
        loop {
            let length = self.line()?;
            let head = Head::parse(&self.wire.peek(length)?[..length - 2]);
            self.wire.consume(length);
            match head? {
                Head::Unasked(nodes) => self.skip_nodes(nodes)?,
                Head::LongRefused(bytes) => {
                    let text = self.bulk(bytes)?;
                    return Ok(Head::Refused(Box::new(errors::of(&text))));
                }
                head => return Ok(head),
            }
        }
    }

    #[cold]
    fn skip_nodes(&mut self, nodes: usize) -> Result<()> {
        self.held = 0;
        for _ in 0..nodes {
            self.node(DEPTH)?;
        }
        Ok(())
    }

    /// Reads a complete answer; an error answer is an error.
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
                    // The prefix of a verbatim string is three letters and a colon: `txt:` or `mkd:`.
                    text.drain(..text.len().min(4));
                }
                Node::Text(text)
            }
            Head::Items(count) => Node::List(self.nodes(count, depth)?),
            Head::Refused(error) => Node::Refused(error),
            Head::LongRefused(bytes) => Node::Refused(Box::new(errors::of(&self.bulk(bytes)?))),
            Head::Unasked(count) => {
                self.nodes(count, depth)?;
                self.node(depth)?
            }
        })
    }

    /// Reads `count` nodes. Memory is not reserved in advance, since the count may be false.
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

    /// Reads the next answer, which must be a string, and appends it to `out`.
    pub(super) fn bulk_into(&mut self, out: &mut Vec<u8>) -> Result<()> {
        match self.answer()? {
            Head::Bulk(bytes) => {
                self.wire.take_into(bytes, out)?;
                self.end_value()
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Reads the end of the line after a string.
    #[inline]
    pub(super) fn end_value(&mut self) -> Result<()> {
        self.wire.end_value("the server sent a string of a different length than announced")
    }

    /// Sends `QUIT` and checks that the server sent nothing but its answer and push messages.
    pub(super) fn quit_checked(&mut self) -> Result<()> {
        if self.wire.has_failed() {
            return Ok(());
        }
        let sent = self.wire.send(b"*1\r\n$4\r\nQUIT\r\n");
        if sent.is_err() || self.wire.has_ended()? {
            // The server had closed the connection already.
            return Ok(());
        }
        let answer = self.answer();
        match self.wire.settle(answer)? {
            Head::Simple => self.wire.expect_end(),
            // A server without `QUIT` leaves the connection open.
            Head::Refused(_) => Ok(()),
            other => Err(unexpected(&other).context("the server sent more than was asked for")),
        }
    }

    /// Sends a request and reads the complete answer.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Node> {
        self.request.clear();
        push_request(&mut self.request, words);
        self.wire.send(&self.request)?;
        self.whole()
    }

    /// Like [`Client::ask`], with words of text.
    /// Why the user may not ask for one of these; `None` if all are allowed. None is executed: the server decides when it takes them
    /// into a transaction, which is then discarded.
    pub(super) fn refused(&mut self, requests: &[Vec<&str>]) -> Result<Option<String>> {
        let mut sent = Vec::new();
        for words in [vec!["MULTI"]].iter().chain(requests).chain(&[vec!["DISCARD"]]) {
            push_request(&mut sent, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        }
        self.wire.send(&sent)?;
        let mut first = None;
        for _ in 0..requests.len() + 2 {
            match self.whole() {
                Err(error) if error.server_code() == Some("NOPERM") => {
                    first = first.or_else(|| Some(error.to_string()));
                }
                Err(error) if error.server_code().is_none() => return Err(error),
                _ => {}
            }
        }
        Ok(first)
    }

    pub(super) fn ask_text(&mut self, words: &[&str]) -> Result<Node> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.ask(&words)
    }

    /// Receives the next line, and returns its length including the line end.
    #[inline]
    fn line(&mut self) -> Result<usize> {
        let found = self.wire.line(LINE)?;
        let here = self.wire.buffered();
        match found {
            Some(length) if here[..length].ends_with(b"\r\n") => Ok(length),
            Some(length) => Err(strange(&here[..length - 1])),
            None => Err(strange(here)),
        }
    }
}

pub(super) fn push_request(out: &mut Vec<u8>, words: &[&[u8]]) {
    push_count(out, words.len());
    for word in words {
        push_word(out, word);
    }
}

/// Appends the start of a request: its number of words.
pub(super) fn push_count(out: &mut Vec<u8>, words: usize) {
    push_line(out, b'*', words);
}

/// Appends a word of a request.
#[inline]
pub(super) fn push_word(out: &mut Vec<u8>, word: &[u8]) {
    push_length(out, word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Appends the length line before a word.
#[inline]
pub(super) fn push_length(out: &mut Vec<u8>, bytes: usize) {
    push_line(out, b'$', bytes);
}

#[inline]
fn push_line(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    push_number(out, number as u64);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
