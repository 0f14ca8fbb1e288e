//! What a recorder learns from MongoDB's protocol: <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>.
//!
//! A request is a command, whose document is its first part; its text is for people. Of an answer, the documents of a cursor are
//! its rows.

use super::mongodb_answer::{Answer, COMPRESSED, NO_SERVER};
use crate::input::{Framed, Frames, Piece};
use crate::view::{Digest, Event, Exchange, KEPT, Parameter, ReadExchanges, Stop, Transaction, Waiting};
use kurabe_protocol::call::{CURSOR, QUIET, document};
use kurabe_protocol::mongodb::bson::{self, DOCUMENT};
use kurabe_protocol::mongodb::command::{Command, is_setup, merged, plain};
use kurabe_protocol::mongodb::frame::{Message, Msg, OP_COMPRESSED, OP_MSG, OP_QUERY, driver, flag, query};
use std::collections::HashMap;
use std::time::Instant;

/// The maximum number of open cursors whose order is remembered.
const CURSORS: usize = 10_000;

/// Fields of a command whose answer is some of the documents, or differs each time.
const PARTIAL: [&str; 9] =
    ["limit", "skip", "$collStats", "$currentDate", "$indexStats", "$limit", "$rand", "$sample", "$skip"];

/// Commands whose values may be passwords, beside those that set up a connection.
const SECRET: [&[u8]; 6] =
    [b"copydb", b"copydbgetnonce", b"copydbsaslstart", b"createUser", b"setParameter", b"updateUser"];

/// What ends the text of a request that has no answer.
const NO_REPLY: &str = " noreply";

const NOT_MONGODB: &str = "the client does not speak MongoDB's protocol";
/// Why requests of older drivers are not recorded.
const TOO_OLD: &str = "it sends messages of MongoDB before 3.6, which are not recorded";

#[derive(Default)]
pub(crate) struct Mongodb {
    client: Frames<Message, KEPT>,
    /// When the first byte of the next request was seen.
    began: Option<Instant>,
    /// With what the answer to each needs.
    waiting: Waiting<Pending>,
    server: Frames<Message, KEPT>,
    answer: Option<Answer>,
    /// Whether answers follow that no request asks for any more.
    streams: bool,
    /// Cursors that are open, with the checksum of all documents so far.
    cursors: HashMap<i64, (Documents, Digest)>,
    has_begun: bool,
}

/// Which documents a cursor gives.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Documents {
    /// All that there are, in any order.
    #[default]
    All,
    Ordered,
    /// Some of them, or others each time.
    Some,
}

/// What is known of a request while it waits.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Pending {
    number: u32,
    /// Whether it is an `OP_QUERY`.
    is_old: bool,
    documents: Documents,
    in_transaction: bool,
    /// Whether it ends a transaction, sets up a connection, counts documents, or has no answer.
    ends: bool,
    is_setup: bool,
    is_count: bool,
    is_quiet: bool,
    /// The cursor that it goes on with.
    cursor: Option<i64>,
}

impl ReadExchanges for Mongodb {
    fn begins(&mut self, _: &mut Vec<Event>) {}

    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.client.push(bytes);
        loop {
            self.began = self.began.or_else(|| self.client.begins().map(|_| now));
            let Some(Piece::Message(message)) = self.client.next(NOT_MONGODB, |_, _| false)? else {
                return Ok(());
            };
            let began = self.began.take().unwrap_or(now);
            match message.header.opcode {
                OP_MSG => self.command(&message, [began, now], events)?,
                OP_QUERY => self.old(&message, began, events)?,
                OP_COMPRESSED => return Err(COMPRESSED.into()),
                _ => return Err(TOO_OLD.into()),
            }
        }
    }

    fn received(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.server.push(bytes);
        loop {
            let asked = self.waiting.known().next();
            if asked.is_none() && !self.streams && self.server.begins().is_some() {
                return Err("the server answered without a request".into());
            }
            let cursor = asked.and_then(|asked| self.cursors.get(&asked.cursor?));
            // Of a cursor without an order no answer has the same documents again, and only all of them are the same.
            let digest = match (cursor, asked) {
                (Some((Documents::All, so_far)), _) => so_far.clone(),
                (Some((documents, _)), _) | (None, Some(Pending { documents, .. })) => {
                    Digest::new(*documents == Documents::Ordered)
                }
                (None, None) => Digest::new(false),
            };
            let (header, part) = match self.server.next(NO_SERVER, |_, _| true)? {
                Some(Piece::Part(header, part)) => (header, Some(part)),
                Some(Piece::PartsEnd(header)) => (header, None),
                _ => return Ok(()),
            };
            let answer = self.answer.get_or_insert_with(|| Answer::new(header, digest));
            if let Some(part) = part {
                answer.read(part)?;
            } else {
                answer.end()?;
                self.answered(now, events)?;
            }
        }
    }

    fn stopped(&mut self, events: &mut Vec<Event>) {
        self.begin(None, events);
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        self.waiting.end(|_| true, events);
    }
}

impl Mongodb {
    /// An `OP_QUERY`, by which older drivers begin.
    fn old(
        &mut self,
        message: &Framed<Message>,
        began: Instant,
        events: &mut Vec<Event>,
    ) -> Result<(), Stop> {
        let (collection, document) = query(&message.body);
        // With a read preference, the command is within.
        let inner = document.and_then(|document| bson::element(document, "$query")?.document());
        let document = inner.or(document);
        let name = document.filter(|_| collection.ends_with(b".$cmd")).and_then(name);
        let name = name.filter(|name| is_setup(name)).ok_or(TOO_OLD)?;
        self.begin(document, events);
        let number = message.header.number;
        let asked = Pending { number, is_old: true, is_setup: true, ..Pending::default() };
        let (at, began) = (message.at, Some(began));
        let parameters = vec![Parameter::new(DOCUMENT.into(), true, plain(name, None))];
        let text = String::from_utf8_lossy(name).into_owned();
        self.request(asked, Exchange { text, parameters, at, began, ..Exchange::default() })
    }

    fn command(
        &mut self,
        message: &Framed<Message>,
        [began, now]: [Instant; 2],
        events: &mut Vec<Event>,
    ) -> Result<(), Stop> {
        let (number, is_cut) = (message.header.number, message.is_cut);
        let content = Msg::read(&message.body, is_cut);
        let content = content.filter(|content| content.is_known(flag::MORE_TO_COME)).ok_or(NOT_MONGODB)?;
        let (document, sequences) = content.parts().ok_or(NOT_MONGODB)?;
        // What is cut off may be the command itself, if documents precede it.
        let why = if is_cut { "a request is too long" } else { NOT_MONGODB };
        let (own, is_whole) = merged(document.ok_or(why)?, &sequences);
        let name = name(&own).ok_or(why)?;
        self.begin(document, events);
        let is_quiet = content.flags & flag::MORE_TO_COME != 0;
        let is_setup = is_setup(name);
        let mut asked = Pending { number, is_setup, is_quiet, ..Pending::default() };
        let (at, began) = (message.at, Some(began));
        let mut request = Exchange { at, began, cut: SECRET.contains(&name), ..Exchange::default() };
        if let Some(command) = Command::read(&own).filter(|_| !is_setup && !request.cut) {
            asked.know(name, &command);
            request.text = command.text();
            request.cut = is_cut || !is_whole;
        } else {
            request.text = String::from_utf8_lossy(name).into_owned();
            request.cut |= !is_setup;
        }
        // Of what may hold a password its name is kept.
        let own = if request.cut || is_setup { plain(name, None) } else { own };
        request.parameters.push(Parameter::new(DOCUMENT.into(), true, own));
        if is_quiet {
            request.text.push_str(NO_REPLY);
            request.parameters.push(Parameter { kind: QUIET, ..Parameter::default() });
        }
        self.request(asked, request)?;
        self.give_quiet(now, events);
        Ok(())
    }

    /// Says who the client is, before its first request.
    fn begin(&mut self, document: Option<&[u8]>, events: &mut Vec<Event>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let name = document.and_then(driver).map(|name| ("driver".to_owned(), name));
        events.push(Event::Client(name.into_iter().collect()));
    }

    fn request(&mut self, asked: Pending, mut request: Exchange) -> Result<(), Stop> {
        request.pipelined = !self.waiting.is_empty();
        self.waiting.push(asked, request, cut_values)
    }

    /// Gives the requests that have no answer, once all before them have theirs.
    fn give_quiet(&mut self, now: Instant, events: &mut Vec<Event>) {
        while self.waiting.known().next().is_some_and(|asked| asked.is_quiet) {
            let Some((_, mut request)) = self.waiting.pop() else { return };
            (request.ended, request.transaction) = (Some(now), Transaction::None);
            events.push(Event::Exchange(Box::new(request)));
        }
    }

    fn answered(&mut self, now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        let Some(mut answer) = self.answer.take() else { return Ok(()) };
        if std::mem::replace(&mut self.streams, answer.more_to_come) {
            // Another answer to `hello`, whose request has its first one.
            return Ok(());
        }
        let is_wanted =
            |asked: &Pending| answer.header.answers == asked.number && answer.is_old() == asked.is_old;
        if !self.waiting.known().next().is_some_and(is_wanted) {
            return Err("the server answered another request".into());
        }
        let Some((asked, mut request)) = self.waiting.pop() else { return Ok(()) };
        if asked.is_count {
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
        if !asked.is_setup {
            let affected = answer.modified.map_or(answer.found, |modified| Some(modified + answer.upserted));
            request.affected = affected.unwrap_or(0).max(0).unsigned_abs();
            (request.rows, request.digest) = (answer.rows, answer.digest.value());
            self.opened(&asked, &answer, &mut request);
        }
        request.ended = Some(now);
        request.error = answer.error();
        request.transaction = match (asked.in_transaction, &request.error) {
            (true, _) if asked.ends => Transaction::None,
            (true, None) => Transaction::Open,
            (true, Some(_)) => Transaction::Failed,
            (false, _) => Transaction::None,
        };
        events.push(Event::Exchange(Box::new(request)));
        if self.streams && !asked.is_setup {
            return Err("it reads a cursor without asking for each part, which is not recorded".into());
        }
        self.give_quiet(now, events);
        Ok(())
    }

    /// Notes the cursor that an answer opened or closed.
    fn opened(&mut self, asked: &Pending, answer: &Answer, request: &mut Exchange) {
        if let Some(cursor) = asked.cursor {
            if answer.cursor == 0 {
                self.cursors.remove(&cursor);
            } else if let Some((_, so_far)) = self.cursors.get_mut(&cursor) {
                so_far.clone_from(&answer.digest);
            }
        }
        if answer.cursor == 0 || asked.cursor.is_some() {
            return;
        }
        if self.cursors.len() >= CURSORS {
            self.cursors.clear();
        }
        self.cursors.insert(answer.cursor, (asked.documents, answer.digest.clone()));
        request.parameters.push(Parameter::new(CURSOR, true, &answer.cursor.to_le_bytes()[..]));
    }
}

impl Pending {
    /// Learns from a command what its answer has.
    fn know(&mut self, name: &[u8], command: &Command<'_>) {
        let has =
            |names: &[&str]| command.any(&mut |field| names.iter().any(|one| field.name == one.as_bytes()));
        self.documents = if command.field("sort").is_some() || has(&["$sort"]) {
            Documents::Ordered
        } else if ![&b"find"[..], b"aggregate"].contains(&name) || has(&PARTIAL) {
            Documents::Some
        } else {
            Documents::All
        };
        self.in_transaction = command.field("autocommit").is_some();
        self.ends = command.ends_transaction();
        self.is_count = name == b"count";
        self.cursor = command.cursors().first().copied().filter(|_| name == b"getMore");
    }
}

fn name(document: &[u8]) -> Option<&[u8]> {
    bson::elements(document).next().map(|first| first.name)
}

/// Leaves out all of a command but its name.
fn cut_values(request: &mut Exchange) {
    let name = document(&request.parameters).map(|command| plain(command.name().as_bytes(), None));
    if let (Some(first), Some(name)) = (request.parameters.first_mut(), name) {
        first.value = name.into();
    }
    request.cut = true;
}

#[cfg(test)]
mod any;
#[cfg(test)]
pub(super) mod tests;
