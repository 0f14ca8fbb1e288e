//! Requests and answers of PostgreSQL's protocol, version 3 (manual, "Frontend/Backend Protocol: Message Formats").

use super::postgres::CANCEL;
use crate::bounded::{Size, Texts};
use crate::frames::Frames;
use crate::input::{begins_with_tls, until_zero, word_be};
use crate::view::{Digest, Event, Exchange, KEPT, Parameter, Step, TOO_MANY, Transaction, View, WAITING};
use std::collections::VecDeque;
use std::time::Instant;

/// The longest message before the server knows the client, in bytes (`MAX_STARTUP_PACKET_LENGTH`).
const LONGEST_START: usize = 10_000;
/// The part of a server's message that is kept, in bytes; rows are read as they arrive.
const ANSWER: usize = 4_096;

/// The view.
#[derive(Default)]
pub(crate) struct Postgres {
    client: Frames<5>,
    server: Frames<5>,
    /// The first message, until it is complete.
    start: Vec<u8>,
    started: bool,
    over: bool,
    /// The body of the message that arrives: of the client, and of the server.
    bodies: [Vec<u8>; 2],
    /// Whether that body is longer than what is kept.
    cut: bool,
    statements: Texts<Vec<u8>, Statement>,
    portals: Texts<Vec<u8>, Exchange>,
    /// When the first message of the next execution was seen.
    began: Option<Instant>,
    waiting: VecDeque<Waiting>,
    /// The size of the requests in `waiting`.
    size: usize,
    /// Answered requests until the server says whether a transaction is open.
    done: Vec<Event>,
    digest: Option<Digest>,
}

#[derive(Clone, Default)]
struct Statement {
    text: String,
    kinds: Vec<u32>,
    cut: bool,
}

/// What the server has to answer.
enum Waiting {
    /// Parse without a record of its own, Bind, Close: one message.
    Short,
    /// Describe of the statement with this name, or of a portal: its columns.
    Describe(Option<Vec<u8>>),
    Request(Box<Exchange>),
    Sync,
}

impl View for Postgres {
    fn sent(&mut self, mut bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        if !self.started && !self.over {
            bytes = self.start(bytes, events);
        }
        while self.started && !self.over {
            let part = match self.client.next(&mut bytes, body) {
                Ok(Some(part)) => part,
                Ok(None) => return,
                Err(_) => return self.give_up("a message's length is wrong", events),
            };
            let kind = part.header[0];
            if kind == b'd' {
                // COPY's data, of which there may be any amount.
                self.data(part.bytes, events);
                continue;
            }
            self.began = self.began.or(Some(now));
            let kept = &mut self.bodies[0];
            let room = KEPT - kept.len();
            self.cut |= part.bytes.len() > room;
            kept.extend_from_slice(part.bytes.get(..room).unwrap_or(part.bytes));
            if part.ends {
                let message = std::mem::take(kept);
                let cut = std::mem::take(&mut self.cut);
                self.message(kind, &message, cut, now, events);
            }
        }
    }

    fn received(&mut self, mut bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        while self.started && !self.over {
            let part = match self.server.next(&mut bytes, body) {
                Ok(Some(part)) => part,
                Ok(None) => return,
                Err(_) => return self.give_up("the server does not speak PostgreSQL's protocol", events),
            };
            let kind = part.header[0];
            if kind == b'D' || kind == b'd' {
                self.row(kind, part.bytes, part.ends);
                continue;
            }
            let kept = &mut self.bodies[1];
            let room = ANSWER - kept.len();
            kept.extend_from_slice(part.bytes.get(..room).unwrap_or(part.bytes));
            if part.ends {
                let message = std::mem::take(kept);
                self.answer(kind, &message, now, events);
            }
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.done);
        for waiting in std::mem::take(&mut self.waiting) {
            if let Waiting::Request(exchange) = waiting {
                events.push(Event::Exchange(exchange));
            }
        }
        self.over = true;
    }
}

/// The length of a message's body.
fn body(header: [u8; 5]) -> Option<u64> {
    u64::from(word_be(&header, 1)).checked_sub(4)
}

impl Postgres {
    /// Reads the first message, which has no kind; gives the bytes behind it.
    fn start<'a>(&mut self, bytes: &'a [u8], events: &mut Vec<Event>) -> &'a [u8] {
        let before = self.start.len();
        self.start.extend_from_slice(bytes);
        let length = word_be(&self.start, 0) as usize;
        if begins_with_tls(&self.start) == Some(true) {
            self.give_up("the connection is encrypted", events);
        } else if self.start.len() >= 4 && !(8..=LONGEST_START).contains(&length) {
            self.give_up("the client does not speak PostgreSQL's protocol", events);
        }
        if self.over || self.start.len() < length.max(8) {
            return &[];
        }
        let message = std::mem::take(&mut self.start);
        match word_be(&message, 4) {
            CANCEL => self.give_up("it cancels a request of another connection", events),
            // The server may agree to it: what follows is not read.
            code if code >> 16 != 3 => self.give_up("the connection may be encrypted", events),
            _ => self.started = true,
        }
        let mut said = Vec::new();
        let (mut at, end) = (8, length);
        while at < end {
            let (name, next) = until_zero(&message[..end], at);
            let (value, next) = until_zero(&message[..end], next);
            if name.is_empty() {
                break;
            }
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            said.push((text(name), text(value)));
            at = next;
        }
        if self.started {
            events.push(Event::Client(said));
        }
        bytes.get(length - before..).unwrap_or_default()
    }

    fn message(&mut self, kind: u8, body: &[u8], cut: bool, now: Instant, events: &mut Vec<Event>) {
        match kind {
            b'Q' => {
                let text = String::from_utf8_lossy(until_zero(body, 0).0).into_owned();
                self.ask(Exchange { text, cut, ..Exchange::default() }, now, events);
            }
            // Parse: name, text, types of parameters.
            b'P' => {
                let (name, next) = until_zero(body, 0);
                let (text, next) = until_zero(body, next);
                let text = String::from_utf8_lossy(text).into_owned();
                let kinds = body.get(next + 2..).unwrap_or_default();
                let kinds = kinds.chunks_exact(4).map(|kind| word_be(kind, 0)).collect();
                self.statements.insert(name.to_vec(), Statement { text: text.clone(), kinds, cut });
                if name.is_empty() {
                    self.waiting.push_back(Waiting::Short);
                } else {
                    let step = Step::Prepare;
                    self.ask(Exchange { text, step, cut, ..Exchange::default() }, now, events);
                }
            }
            b'B' => {
                self.waiting.push_back(Waiting::Short);
                let (portal, bound) = self.bound(body, cut);
                self.portals.insert(portal, bound);
            }
            b'D' => {
                let name = until_zero(body, 1).0.to_vec();
                self.waiting.push_back(Waiting::Describe((body.first() == Some(&b'S')).then_some(name)));
            }
            b'E' => {
                let (portal, at) = until_zero(body, 0);
                let (portal, limit) = (portal.to_vec(), word_be(body, at));
                let unknown = || Exchange { step: Step::Execute, cut: true, ..Exchange::default() };
                let mut exchange = self.portals.get(&portal).cloned().unwrap_or_else(unknown);
                exchange.limit = limit;
                if limit > 0 && !exchange.goes_on {
                    self.portals.insert(portal, Exchange { goes_on: true, ..exchange.clone() });
                }
                self.ask(exchange, now, events);
            }
            b'C' => {
                let name = until_zero(body, 1).0.to_vec();
                if body.first() == Some(&b'S') {
                    self.statements.remove(&name);
                } else {
                    self.portals.remove(&name);
                }
                self.waiting.push_back(Waiting::Short);
            }
            b'F' => {
                let exchange = Exchange { text: "a function call".to_owned(), ..Exchange::default() };
                self.ask(exchange, now, events);
            }
            b'S' => {
                self.waiting.push_back(Waiting::Sync);
                self.began = None;
            }
            // The end of COPY's data, passwords, Flush, Terminate.
            b'c' | b'f' | b'p' | b'H' | b'X' => self.began = None,
            _ => self.give_up("the client does not speak PostgreSQL's protocol", events),
        }
        if self.waiting.len() > WAITING / 64 {
            self.give_up(TOO_MANY, events);
        }
    }

    /// Bind: portal, statement, formats and values of parameters.
    fn bound(&self, body: &[u8], cut: bool) -> (Vec<u8>, Exchange) {
        let (portal, next) = until_zero(body, 0);
        let (name, at) = until_zero(body, next);
        let two = |at: usize| body.get(at..at + 2).map(|two| u16::from(two[0]) << 8 | u16::from(two[1]));
        let unknown = Statement { cut: true, ..Statement::default() };
        let Statement { text, kinds, cut: text_cut } =
            self.statements.get(&name.to_vec()).unwrap_or(&unknown).clone();
        let step = if name.is_empty() { Step::Bound } else { Step::Execute };
        let mut bound = Exchange { text, step, cut: cut || text_cut, ..Exchange::default() };
        let mut read = || {
            let formats = usize::from(two(at)?);
            let mut next = at + 2 + 2 * formats;
            let count = usize::from(two(next)?);
            next += 2;
            for n in 0..count {
                let length = word_be(body.get(next..next + 4)?, 0) as i32;
                next += 4;
                let value = match usize::try_from(length) {
                    Ok(length) => {
                        let value = body.get(next..next.checked_add(length)?)?.to_vec();
                        next += length;
                        Some(value)
                    }
                    Err(_) => None,
                };
                // No format means text, one is that of all.
                let format = match formats {
                    0 => 0,
                    1 => two(at + 2)?,
                    _ => two(at + 2 + 2 * n)?,
                };
                let kind = kinds.get(n).copied().unwrap_or(0);
                bound.parameters.push(Parameter { kind, binary: format == 1, value });
            }
            for n in 0..usize::from(two(next)?) {
                bound.formats.push(two(next + 2 + 2 * n)? == 1);
            }
            if !bound.formats.contains(&true) {
                bound.formats.clear();
            }
            Some(())
        };
        if read().is_none() {
            bound.cut = true;
        }
        (portal.to_vec(), bound)
    }

    /// Data of COPY. Clients send a message for each line.
    fn data(&mut self, piece: &[u8], events: &mut Vec<Event>) {
        if let Some(Event::Data { bytes, .. }) = events.last_mut() {
            bytes.extend_from_slice(piece);
        } else if !piece.is_empty() {
            let of = match self.waiting.front() {
                Some(Waiting::Request(exchange)) => exchange.text.clone(),
                _ => String::new(),
            };
            events.push(Event::Data { bytes: piece.to_vec(), of });
        }
    }

    /// Enters a request.
    fn ask(&mut self, mut exchange: Exchange, now: Instant, events: &mut Vec<Event>) {
        exchange.began = Some(self.began.take().unwrap_or(now));
        exchange.pipelined = self.waiting.iter().any(|waiting| matches!(waiting, Waiting::Request(_)));
        self.size += exchange.size();
        self.waiting.push_back(Waiting::Request(Box::new(exchange)));
        if self.size > WAITING {
            self.give_up("too many requests wait for answers", events);
        }
    }

    /// A row of an answer, or data that is copied out.
    fn row(&mut self, kind: u8, bytes: &[u8], ends: bool) {
        let Some(Waiting::Request(exchange)) = self.waiting.front_mut() else { return };
        let digest = self.digest.get_or_insert_with(|| Digest::of(&exchange.text));
        digest.push(bytes);
        if ends {
            digest.end_row();
            exchange.rows += u64::from(kind == b'D');
        }
    }

    fn answer(&mut self, kind: u8, body: &[u8], now: Instant, events: &mut Vec<Event>) {
        let front = self.waiting.front();
        let simple = |exchange: &Exchange| exchange.step == Step::Text;
        match (kind, front) {
            // CommandComplete; of a text there may be several before ReadyForQuery.
            (b'C', Some(Waiting::Request(_))) => {
                let Some(Waiting::Request(exchange)) = self.waiting.front_mut() else { return };
                // `INSERT 0 3`, `UPDATE 3`, `COPY 3`; `SELECT 3` counts rows that were seen.
                let tag = String::from_utf8_lossy(until_zero(body, 0).0);
                let count = tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
                if !tag.starts_with("SELECT") && !tag.starts_with("FETCH") {
                    exchange.affected += count;
                }
                if simple(exchange) {
                    exchange.ended = Some(now);
                } else {
                    self.complete(now);
                }
            }
            // EmptyQueryResponse, PortalSuspended; ParseComplete of a named statement.
            (b'I' | b's', Some(Waiting::Request(exchange))) if !simple(exchange) => self.complete(now),
            (b'1', Some(Waiting::Request(_))) => self.complete(now),
            // ParameterDescription: the types that the server has chosen.
            (b't', Some(Waiting::Describe(Some(name)))) => {
                if let Some(mut statement) = self.statements.get(name).cloned() {
                    let kinds = body.get(2..).unwrap_or_default().chunks_exact(4);
                    statement.kinds = kinds.map(|kind| word_be(kind, 0)).collect();
                    self.statements.insert(name.clone(), statement);
                }
            }
            // RowDescription, NoData.
            (b'1' | b'2' | b'3', Some(Waiting::Short)) | (b'T' | b'n', Some(Waiting::Describe(_))) => {
                self.waiting.pop_front();
            }
            (b'E', Some(_)) => self.failed(body, now),
            (b'Z', _) => self.ready(body, now, events),
            // Authentication, settings, keys, notices, notifications, the rest of a text's answers.
            (b'R' | b'S' | b'K' | b'N' | b'A' | b'v' | b'E', _)
            | (b'T' | b'G' | b'H' | b'W' | b'c' | b'V' | b'I', Some(Waiting::Request(_))) => {}
            _ => self.give_up("an answer has no request", events),
        }
    }

    /// The oldest request has its answer.
    fn complete(&mut self, now: Instant) {
        let digest = self.digest.take();
        if let Some(Waiting::Request(mut exchange)) = self.waiting.pop_front() {
            self.size -= exchange.size();
            exchange.ended = Some(now);
            exchange.digest = digest.map_or(0, Digest::value);
            self.done.push(Event::Exchange(exchange));
        }
    }

    /// An error. The server passes over all messages until Sync, unless they are one text.
    fn failed(&mut self, body: &[u8], now: Instant) {
        let fields = body.split(|byte| *byte == 0);
        let code = fields.into_iter().find_map(|field| field.strip_prefix(b"C"));
        let code = code.map_or_else(|| "?".to_owned(), |code| String::from_utf8_lossy(code).into_owned());
        if let Some(Waiting::Request(exchange)) = self.waiting.front_mut()
            && exchange.step == Step::Text
        {
            exchange.error = Some(code);
            return;
        }
        let mut code = Some(code);
        while let Some(waiting) = self.waiting.front_mut().filter(|one| !matches!(one, Waiting::Sync)) {
            if let Waiting::Request(exchange) = waiting {
                // What is passed over has the code of no SQLSTATE.
                exchange.error = Some(code.take().unwrap_or_else(|| "skipped".to_owned()));
                self.complete(now);
            } else {
                self.waiting.pop_front();
            }
        }
    }

    /// `ReadyForQuery`: the end of a text, or of what Sync ends.
    fn ready(&mut self, body: &[u8], now: Instant, events: &mut Vec<Event>) {
        match self.waiting.front() {
            Some(Waiting::Request(exchange)) if exchange.step == Step::Text => self.complete(now),
            Some(Waiting::Sync) => drop(self.waiting.pop_front()),
            // After the login.
            None => {}
            Some(_) => return self.give_up("an answer has no request", events),
        }
        if let Some(Event::Exchange(last)) = self.done.last_mut() {
            last.transaction = match body.first() {
                Some(b'I') => Transaction::None,
                Some(b'T') => Transaction::Open,
                _ => Transaction::Failed,
            };
        }
        events.append(&mut self.done);
    }

    fn give_up(&mut self, why: &'static str, events: &mut Vec<Event>) {
        self.end(events);
        events.push(Event::Unreadable(why));
        *self = Self { over: true, ..Self::default() };
    }
}

impl Size for Exchange {
    fn size(&self) -> usize {
        let values = self.parameters.iter().map(|one| 32 + one.value.as_ref().map_or(0, Vec::len));
        200 + self.text.len() + values.sum::<usize>()
    }
}

impl Size for Statement {
    fn size(&self) -> usize {
        64 + self.text.len() + 4 * self.kinds.len()
    }
}

#[cfg(test)]
mod tests;
