//! What a recorder learns from MongoDB's protocol: <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>.
//!
//! A request is a command, whose text has its collection and the names of its fields, with `?` in place of values; these are its
//! parameters. Of an answer, the documents of a cursor are its rows.

use super::bson::{self, INT64};
use super::mongodb::{
    COMPRESSED, HEADER, LONGEST, NOT_MONGODB, OP_COMPRESSED, OP_MSG, OP_QUERY, SETUP, driver, queried,
};
use super::mongodb_answer::{Answer, CHECKSUM, MORE_TO_COME, REQUIRED};
use super::mongodb_message::{Field, fields};
use super::mongodb_shape::{CURSOR, QUIET, Shape};
use crate::input::{Input, begins_with_tls, until_zero, word};
use crate::view::{Digest, Event, Exchange, KEPT, Parameter, TOO_MANY, Transaction, View, Waiting};
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// The maximum number of open cursors whose order is remembered.
const CURSORS: usize = 10_000;

/// Fields of a command whose answer is some of the documents, or differs each time.
const PARTIAL: [&str; 9] =
    ["limit", "skip", "$collStats", "$currentDate", "$indexStats", "$limit", "$rand", "$sample", "$skip"];

/// The view.
#[derive(Default)]
pub(crate) struct Mongodb {
    client: Input,
    /// When the first byte of the next request was seen.
    began: Option<Instant>,
    waiting: Waiting,
    /// For each of these, what its answer needs.
    asked: VecDeque<Asked>,
    answer: Option<Answer>,
    /// Whether answers follow that no request asks for any more.
    streams: bool,
    /// Cursors that are open, with the checksum of all documents so far.
    cursors: HashMap<i64, (Documents, Digest)>,
    has_begun: bool,
    closed: bool,
}

/// Which documents a cursor gives.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Documents {
    /// All that there are, in any order.
    #[default]
    All,
    /// In an order.
    Ordered,
    /// Some of them, or others each time.
    Some,
}

/// What is known of a request while it waits.
#[derive(Default)]
struct Asked {
    number: u32,
    /// Whether it is an `OP_QUERY`.
    is_old: bool,
    documents: Documents,
    in_transaction: bool,
    /// The cursor that it goes on with.
    cursor: Option<i64>,
}

impl View for Mongodb {
    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        if self.closed {
            return;
        }
        self.client.push(bytes);
        loop {
            if !self.client.waiting().is_empty() {
                self.began.get_or_insert(now);
            }
            if self.next(now, events).is_none() || self.closed {
                return;
            }
        }
    }

    fn received(&mut self, mut bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        while !self.closed && !bytes.is_empty() {
            if self.asked.is_empty() && !self.streams {
                return self.give_up("the server answered without a request", events);
            }
            let asked = self.asked.front();
            let cursor = asked.and_then(|asked| self.cursors.get(&asked.cursor?));
            let documents = asked.map_or(Documents::All, |asked| asked.documents);
            let answer = self.answer.get_or_insert_with(Answer::new);
            if answer.is_new() {
                // Of a cursor without an order no answer has the same documents again, and only all of them are the same.
                answer.digest = match cursor {
                    Some((Documents::All, so_far)) => *so_far,
                    Some((documents, _)) => Digest::new(*documents == Documents::Ordered),
                    None => Digest::new(documents == Documents::Ordered),
                };
            }
            match answer.read(&mut bytes) {
                Ok(false) => {}
                Ok(true) => self.answered(now, events),
                Err(why) => self.give_up(why, events),
            }
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        self.waiting.end(events);
        self.asked.clear();
    }
}

impl Mongodb {
    /// Reads the next request; `None` if it is not complete.
    fn next(&mut self, now: Instant, events: &mut Vec<Event>) -> Option<()> {
        let waiting = self.client.waiting();
        if self.client.position() == 0 && begins_with_tls(waiting)? {
            self.give_up("the connection is encrypted", events);
            return None;
        }
        let header = waiting.get(..HEADER)?;
        let (length, number, opcode) = (word(header, 0), word(header, 4), word(header, 12));
        if !(HEADER as u32..=LONGEST).contains(&length) {
            self.give_up(NOT_MONGODB, events);
            return None;
        }
        let message = self.client.take(length.into(), KEPT)?.bytes;
        let began = self.began.take().unwrap_or(now);
        let is_cut = (message.len() as u64) < u64::from(length);
        match opcode {
            OP_MSG => self.command(&message, is_cut, number, [began, now], events),
            OP_QUERY => self.old(&message, number, began, events),
            OP_COMPRESSED => self.give_up(COMPRESSED, events),
            _ => self.give_up("it sends messages of MongoDB before 3.6, which are not recorded", events),
        }
        Some(())
    }

    /// An `OP_QUERY`, by which older drivers begin.
    fn old(&mut self, message: &[u8], number: u32, began: Instant, events: &mut Vec<Event>) {
        let (collection, document) = queried(message);
        // With a read preference, the command is within.
        let inner = document.and_then(|document| bson::element(document, "$query")?.document());
        let document = inner.or(document);
        let shape = document.filter(|_| collection.ends_with(b".$cmd"));
        let shape = shape.and_then(|document| Shape::of(document, &[]));
        let Some(shape) = shape.filter(|shape| SETUP.contains(&shape.text.as_str())) else {
            return self.give_up("it sends messages of MongoDB before 3.6, which are not recorded", events);
        };
        self.begin(document, events);
        let asked = Asked { number, is_old: true, ..Asked::default() };
        self.request(shape, asked, began, events);
    }

    /// An `OP_MSG`.
    fn command(
        &mut self,
        message: &[u8],
        is_cut: bool,
        number: u32,
        [began, now]: [Instant; 2],
        events: &mut Vec<Event>,
    ) {
        let flags = word(message, HEADER);
        let end = message.len() - if flags & CHECKSUM != 0 && !is_cut { 4 } else { 0 };
        let parts = message.get(HEADER + 4..end).and_then(sections);
        let is_known = flags & REQUIRED & !(CHECKSUM | MORE_TO_COME) == 0;
        let Some((document, sequences)) = parts.filter(|_| is_known) else {
            return self.give_up(NOT_MONGODB, events);
        };
        // What is cut off may be the command itself, if documents precede it.
        let Some(mut shape) = document.and_then(|document| Shape::of(document, &sequences)) else {
            return self.give_up(if is_cut { "a request is too long" } else { NOT_MONGODB }, events);
        };
        self.begin(document, events);
        shape.cut |= is_cut;
        let (command, _, named) = fields(&shape.text);
        let has = |name: &str| named.iter().any(|field| field.depth == 1 && field.name == name);
        let is_part = |field: &Field<'_>| PARTIAL.contains(&field.name.as_ref());
        let documents = if has("sort") || named.iter().any(|field| field.name == "$sort") {
            Documents::Ordered
        } else if !["find", "aggregate"].contains(&command) || named.iter().any(is_part) {
            Documents::Some
        } else {
            Documents::All
        };
        let mut asked =
            Asked { number, is_old: false, documents, in_transaction: has("autocommit"), cursor: None };
        if command == "getMore" {
            let first = document.and_then(|document| bson::elements(document).next());
            asked.cursor = first.filter(|first| first.kind == INT64).and_then(|first| first.number());
        }
        if flags & MORE_TO_COME != 0 {
            shape.text.push_str(QUIET);
        }
        self.request(shape, asked, began, events);
        self.give_quiet(now, events);
    }

    /// Says who the client is, before its first request.
    fn begin(&mut self, document: Option<&[u8]>, events: &mut Vec<Event>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let name = document.and_then(driver).map(|name| ("driver".to_owned(), name));
        events.push(Event::Client(name.into_iter().collect()));
    }

    fn request(&mut self, mut shape: Shape, asked: Asked, began: Instant, events: &mut Vec<Event>) {
        let request = Exchange {
            parameters: shape.parameters(),
            text: shape.text,
            cut: shape.cut,
            pipelined: self.waiting.first().is_some(),
            began: Some(began),
            ..Exchange::default()
        };
        self.waiting.push(request);
        self.asked.push_back(asked);
        if self.waiting.is_full() {
            self.give_up(TOO_MANY, events);
        }
    }

    /// Gives the requests that have no answer, once all before them have theirs.
    fn give_quiet(&mut self, now: Instant, events: &mut Vec<Event>) {
        while self.waiting.first().is_some_and(|request| request.text.ends_with(QUIET)) {
            self.asked.pop_front();
            let Some(mut request) = self.waiting.pop() else { return };
            (request.ended, request.transaction) = (Some(now), Transaction::None);
            events.push(Event::Exchange(Box::new(request)));
        }
    }

    fn answered(&mut self, now: Instant, events: &mut Vec<Event>) {
        let Some(mut answer) = self.answer.take() else { return };
        if std::mem::replace(&mut self.streams, answer.more_to_come) {
            // Another answer to `hello`, whose request has its first one.
            return;
        }
        let is_wanted = |asked: &Asked| answer.answers == asked.number && answer.is_old == asked.is_old;
        if !self.asked.front().is_some_and(is_wanted) {
            return self.give_up("the server answered another request", events);
        }
        let (Some(asked), Some(mut request)) = (self.asked.pop_front(), self.waiting.pop()) else { return };
        let command = request.text.split(' ').next().unwrap_or_default();
        let is_setup = SETUP.contains(&command);
        if command == "count" {
            answer.digest.push(&answer.found.take().unwrap_or(0).to_le_bytes());
            answer.digest.end_row();
        } else if let (Some(found), Some(_)) = (answer.found, answer.modified) {
            answer.digest.push(&found.to_le_bytes());
            answer.digest.end_row();
        }
        let cursor = asked.cursor.and_then(|cursor| self.cursors.get(&cursor));
        let is_whole = cursor.is_some_and(|(documents, _)| *documents == Documents::All);
        if is_whole && answer.cursor == 0 && answer.error().is_none() {
            answer.digest.complete();
        }
        if !is_setup {
            let affected = answer.modified.map_or(answer.found, |modified| Some(modified + answer.upserted));
            request.affected = affected.unwrap_or(0).max(0).unsigned_abs();
            (request.rows, request.digest) = (answer.rows, answer.digest.value());
            self.opened(&asked, &answer, &mut request);
        }
        request.ended = Some(now);
        request.error = answer.error();
        request.transaction = match (asked.in_transaction, &request.error) {
            (true, _) if is_end(&request.text) => Transaction::None,
            (true, None) => Transaction::Open,
            (true, Some(_)) => Transaction::Failed,
            (false, _) => Transaction::None,
        };
        events.push(Event::Exchange(Box::new(request)));
        if self.streams && !is_setup {
            return self
                .give_up("it reads a cursor without asking for each part, which is not recorded", events);
        }
        self.give_quiet(now, events);
    }

    /// Notes the cursor that an answer opened or closed.
    fn opened(&mut self, asked: &Asked, answer: &Answer, request: &mut Exchange) {
        if let Some(cursor) = asked.cursor {
            if answer.cursor == 0 {
                self.cursors.remove(&cursor);
            } else if let Some((_, so_far)) = self.cursors.get_mut(&cursor) {
                *so_far = answer.digest;
            }
        }
        if answer.cursor == 0 || asked.cursor.is_some() {
            return;
        }
        if self.cursors.len() >= CURSORS {
            self.cursors.clear();
        }
        self.cursors.insert(answer.cursor, (asked.documents, answer.digest));
        let value = Some(answer.cursor.to_le_bytes().to_vec());
        request.parameters.push(Parameter { kind: CURSOR, binary: true, value });
    }

    fn give_up(&mut self, why: &'static str, events: &mut Vec<Event>) {
        self.begin(None, events);
        self.closed = true;
        self.client.close();
        self.end(events);
        events.push(Event::Unreadable(why));
    }
}

/// Whether a command ends a transaction.
fn is_end(text: &str) -> bool {
    ["commitTransaction", "abortTransaction"].contains(&text.split(' ').next().unwrap_or_default())
}

/// Sequences of documents, by name.
type Sequences<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The document and the sequences of a message, as far as they are there; `None` if it has other parts.
fn sections(message: &[u8]) -> Option<(Option<&[u8]>, Sequences<'_>)> {
    let (mut document, mut sequences, mut rest) = (None, Vec::new(), message);
    while let Some((kind, section)) = rest.split_first() {
        let length = (word(section, 0) as usize).max(4);
        let own = section.get(..length.min(section.len()))?;
        rest = section.get(own.len()..)?;
        match kind {
            0 if document.is_none() => document = Some(own),
            1 => {
                let (name, at) = until_zero(own, 4);
                sequences.push((name, own.get(at..).unwrap_or_default()));
            }
            _ => return None,
        }
    }
    Some((document, sequences))
}

#[cfg(test)]
mod any;
#[cfg(test)]
mod tests;
