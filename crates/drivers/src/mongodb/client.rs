//! A connection that executes commands: one write and usually one read for each, without allocation.
//!
//! Answers are matched to requests by their numbers. A long answer, or a compressed one, is received into a buffer of its
//! own; a short one is read where it arrived.

use super::bson::{Document, Element, Raw};
use super::config::Config;
use super::errors;
use super::frame::{self, HEAD, HEADER};
use super::hello::Hello;
use super::tail::{Lsid, Tail, Tails};
use super::writer::Writer;
use crate::cancel;
use crate::compression::Compressor;
use crate::prelude::*;
use crate::wire::{Exchanges, LONG, Peer, Stream, Wire};
use kurabe_core::compression::Compression;
use kurabe_protocol::mongodb::frame::{Message, OP_COMPRESSED, OP_MSG};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long an operation that was killed may take to end.
const ENDS: Duration = Duration::from_secs(5);

/// Where the document of the last answer is.
#[derive(Debug)]
enum Held {
    Nothing,
    /// In the receive buffer: the document, and the length of the message behind its header.
    Inbox(Range<usize>, usize),
    /// In the buffer of long answers.
    Long(Range<usize>),
}

/// A connection to a server.
pub(super) type Link = Client<Stream>;

/// A connection.
pub(super) struct Client<S> {
    pub(super) wire: Wire<S>,
    pub(super) hello: Hello,
    /// The command under construction, reused.
    pub(super) out: Writer,
    /// What its commands end with.
    tails: Tails,
    /// The session of this connection on the server, if it has sessions.
    pub(super) session: Option<Lsid>,
    /// The compression that was asked for, beside that of the URL.
    pub(super) offered: Compression,
    pub(super) compressor: Option<Compressor>,
    packed: Vec<u8>,
    /// The number of the last request.
    number: i32,
    held: Held,
    long: Vec<u8>,
    pub(super) exchanges: Exchanges,
    pub(super) times: Option<ConnectTimes>,
    /// Whether the server was told to kill what this connection executes.
    pub(super) has_killed: Arc<AtomicBool>,
}

impl<S: Peer> Client<S> {
    pub(super) fn new(wire: Wire<S>) -> Self {
        Self {
            wire,
            hello: Hello::default(),
            out: Writer::default(),
            tails: Tails::default(),
            session: None,
            offered: Compression::Off,
            compressor: None,
            packed: Vec::new(),
            number: 0,
            held: Held::Nothing,
            long: Vec::new(),
            exchanges: Exchanges::default(),
            times: None,
            has_killed: Arc::default(),
        }
    }

    /// Sets what commands end with.
    pub(super) fn set_tails(&mut self, config: &Config) {
        self.tails = Tails::new(config, &self.hello, self.session);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.exchanges.is_broken() || self.wire.has_failed()
    }

    /// Executes a command on the target's database, and returns its answer.
    pub(super) fn run(&mut self, fill: impl FnOnce(&mut Writer)) -> Result<Raw<'_>> {
        self.out.restart(HEAD);
        fill(&mut self.out);
        self.complete(Tail::Plain);
        self.exchange()
    }

    /// Ends the command in `out`.
    #[inline]
    pub(super) fn complete(&mut self, tail: Tail) {
        self.tails.append(tail, &mut self.out);
    }

    /// Executes a command on the database `admin`, and returns its answer.
    pub(super) fn administer(&mut self, fill: impl FnOnce(&mut Writer)) -> Result<Raw<'_>> {
        self.out.restart(HEAD);
        fill(&mut self.out);
        self.out.text("$db", "admin");
        if let Some(session) = &self.session {
            session.write(&mut self.out);
        }
        self.exchange()
    }

    /// As [`Client::administer`], of which the answer is kept.
    pub(super) fn ask(&mut self, fill: impl FnOnce(&mut Writer)) -> Result<Document> {
        self.administer(fill).map(Raw::to_owned)
    }

    /// Sends the command in `out`, and returns its answer.
    #[inline]
    pub(super) fn exchange(&mut self) -> Result<Raw<'_>> {
        self.seal()?;
        self.begin()?;
        let message = if self.compressor.is_some() { &*self.packed } else { self.out.bytes() };
        let done = self.wire.send(message).and_then(|()| self.receive());
        self.end(done)?;
        self.accepted()
    }

    /// Sends messages as they are ([`RawMessages`]).
    pub(super) fn exchange_raw(&mut self, messages: &[u8], receive: &mut Receive<'_>) -> Result<()> {
        self.begin()?;
        let done = self.wire.exchange_raw(messages, receive);
        self.end(done)
    }

    fn begin(&mut self) -> Result<()> {
        self.exchanges.begin()?;
        self.release();
        Ok(())
    }

    fn end(&mut self, done: Result<()>) -> Result<()> {
        done.map_err(|error| self.leave(error))?;
        self.exchanges.end(Ok(()))?;
        if self.exchanges.was_ended() { Err(cancel::error()) } else { Ok(()) }
    }

    /// Ends the operation on the server if its answer was not awaited, and waits until it has ended.
    #[cold]
    fn leave(&mut self, error: Error) -> Error {
        let (is_ending, error) = self.exchanges.leave(error);
        if is_ending && self.has_killed.load(Ordering::SeqCst) {
            self.wire.stream_mut().limit(ENDS);
            let _ = self.wire.stream_mut().begin();
            // Its answer is the error that it was killed.
            let _ = self.wire.peek(HEADER);
        }
        error
    }

    /// Forgets the last answer.
    #[inline]
    fn release(&mut self) {
        if let Held::Inbox(_, length) = std::mem::replace(&mut self.held, Held::Nothing) {
            self.wire.consume(length);
        }
    }

    /// Frees the memory of long answers.
    pub(super) fn shrink(&mut self) {
        self.release();
        (self.long, self.packed) = (Vec::new(), Vec::new());
    }

    /// Sends the command in `out`, which makes a cursor, and passes on the documents of all its answers.
    #[inline]
    pub(super) fn read(
        &mut self,
        collection: &str,
        batch: i32,
        tail: Tail,
        mut row: impl FnMut(Raw<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut answer = self.exchange()?;
        let mut name = "firstBatch";
        loop {
            let (cursor, result) = documents(answer, name, &mut row);
            let result = result.inspect_err(|error| self.wire.note(error));
            if cursor == 0 {
                return result;
            }
            if result.is_err() {
                let kill = |out: &mut Writer| {
                    out.text("killCursors", collection).begin_array("cursors").long("0", cursor).end();
                };
                let _ = self.run(kill);
                return result;
            }
            name = "nextBatch";
            self.out.restart(HEAD);
            self.out.long("getMore", cursor).text("collection", collection).int("batchSize", batch);
            self.complete(tail);
            answer = self.exchange()?;
        }
    }

    /// Makes the command in `out` a message with a new number, compressed where that was agreed.
    #[inline]
    fn seal(&mut self) -> Result<()> {
        let message = self.out.finish()?;
        self.number = self.number.wrapping_add(1);
        frame::seal(message, self.number);
        match &mut self.compressor {
            None => Ok(()),
            Some(compressor) => frame::compress(compressor, message, &mut self.packed),
        }
    }

    /// Receives the answer to the last request.
    #[inline]
    fn receive(&mut self) -> Result<()> {
        let received = self.receive_whole();
        self.wire.settle(received)
    }

    #[inline]
    fn receive_whole(&mut self) -> Result<()> {
        let header: Message = self.wire.header()?;
        if !matches!((header.rest, header.opcode), (5.., OP_MSG | OP_COMPRESSED)) {
            return Err(malformed("the server sent a message that is not MongoDB's protocol"));
        }
        if header.answers != self.number as u32 {
            let what =
                "the server sent the answer to another request, or more answers than there were requests";
            return Err(malformed(what).hint(
                "the results of such a trial are unreliable: check for a proxy between client and server",
            ));
        }
        if header.rest <= LONG && header.opcode == OP_MSG {
            let document = frame::document(self.wire.peek(header.rest)?)?;
            self.held = Held::Inbox(document, header.rest);
        } else {
            self.receive_long(header)?;
        }
        self.document().map(drop)
    }

    fn receive_long(&mut self, header: Message) -> Result<()> {
        let mut content = std::mem::take(&mut self.long);
        content.clear();
        self.wire.take_into(header.rest, &mut content)?;
        if header.opcode == OP_COMPRESSED {
            let length = frame::content_length(&content)?;
            self.wire.check_held(length)?;
            frame::decompress(&content, length, &mut self.packed)?;
            std::mem::swap(&mut content, &mut self.packed);
        }
        self.held = Held::Long(frame::document(&content)?);
        self.long = content;
        Ok(())
    }

    /// The document of the last answer.
    #[inline]
    pub(super) fn document(&self) -> Result<Raw<'_>> {
        Raw::new(match &self.held {
            Held::Nothing => &[],
            Held::Inbox(document, _) => &self.wire.buffered()[document.clone()],
            Held::Long(document) => &self.long[document.clone()],
        })
    }

    /// The document of the last answer, unless it is an error.
    #[inline]
    fn accepted(&self) -> Result<Raw<'_>> {
        let answer = self.document()?;
        match answer.get("ok")?.and_then(|ok| ok.number()) {
            Some(1) => Ok(answer),
            _ => Err(errors::of_answer(answer)),
        }
    }

    /// Whether the answer that has failed says that the write may be sent again.
    pub(super) fn may_be_retried(&self) -> bool {
        let labels = self.document().map(|answer| answer.texts("errorLabels"));
        labels.is_ok_and(|labels| labels.iter().any(|label| label == "RetryableWriteError"))
    }
}

impl Client<Stream> {
    /// The local port; `None` on a Unix socket.
    pub(super) fn port(&self) -> Option<u16> {
        self.wire.stream().port()
    }

    /// Checks that the server sent nothing that was not asked for: the protocol has no message that ends a connection.
    pub(super) fn close_checked(&mut self) -> Result<()> {
        if self.is_broken() {
            return Ok(());
        }
        // The answer comes after everything that was sent before it.
        self.run(|out| {
            out.int("ping", 1);
        })?;
        self.release();
        let is_quiet = self.wire.buffered().is_empty() && !self.wire.stream_mut().stirred();
        if is_quiet || self.wire.has_ended()? { Ok(()) } else { Err(self.wire.surplus()) }
    }
}

/// Passes on the documents of a cursor's answer. Returns the number of the cursor too, 0 if there are no more.
#[inline]
fn documents(answer: Raw<'_>, name: &str, row: &mut impl FnMut(Raw<'_>) -> Result<()>) -> (i64, Result<()>) {
    let missing = || malformed("the server's answer to a query has no cursor");
    let Some(cursor) = answer.document("cursor") else { return (0, Err(missing())) };
    let Some(number) = cursor.number("id") else { return (0, Err(missing())) };
    let Some(batch) = cursor.array(name) else { return (number, Err(missing())) };
    let documents = batch.elements().try_for_each(|element| match element? {
        (_, Element::Document(document)) => row(document),
        _ => Err(malformed("the server's answer to a query has rows that are no documents")),
    });
    (number, documents)
}

#[cfg(test)]
mod tests;
