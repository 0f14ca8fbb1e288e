//! Requests and answers of PostgreSQL's protocol, version 3 (manual, "Frontend/Backend Protocol: Message Formats").

use crate::bounded::{Size, Texts};
use crate::input::{Framed, Frames, Piece};
use crate::rows::Layout;
use crate::view::{
    Digest, Event, Exchange, KEPT, Parameter, ReadExchanges, Step, Stop, Transaction, UNKNOWN, Waiting,
    Watch, push_data,
};
use kurabe_protocol::postgres::frame::{
    CANCEL_REQUEST, GSS_REQUEST, SSL_REQUEST, Start, Tagged, VERSION, backend, frontend,
};
use kurabe_protocol::postgres::message::{self, Bind, Request, Target, Types};
use kurabe_protocol::sql::{Dialect, Order, order};
use std::time::Instant;

/// The part of a server's message that is kept, in bytes; rows are read as they arrive.
const ANSWER: usize = 4_096;
const NOT_POSTGRES: &str = "the client does not speak PostgreSQL's protocol";
const NO_SERVER: &str = "the server does not speak PostgreSQL's protocol";
const NO_REQUEST: &str = "an answer has no request";
/// The text of a call of a function.
const FUNCTION_CALL: &str = "a function call";

#[derive(Default)]
pub(crate) struct Postgres {
    /// What the client sends before the first message that has a tag, and after it.
    first: Frames<Start, KEPT>,
    client: Frames<Tagged, KEPT>,
    /// Whether the server has to say whether it encrypts.
    has_asked: bool,
    server: Frames<Tagged, ANSWER>,
    has_started: bool,
    statements: Texts<Vec<u8>, Statement>,
    portals: Texts<Vec<u8>, Exchange>,
    /// When and where the first message of the next execution began.
    began: Option<(Instant, u64)>,
    waiting: Waiting<Expected>,
    /// The last answered request, until the server says whether a transaction is open, or that what Sync commits failed.
    done: Option<Box<Exchange>>,
    digest: Option<Digest>,
    watch: Option<Watch>,
    /// How the session reads SQL.
    dialect: Dialect,
    /// The names of the columns of answers that have an order, by statement.
    columns: Texts<Vec<u8>, Vec<String>>,
    /// Whether the client has sent all data of a COPY whose answer has not begun.
    has_copied: bool,
}

#[derive(Clone, Default)]
struct Statement {
    text: String,
    /// The types of its parameters as the client said them, and as the server described them.
    kinds: Vec<u32>,
    described: Vec<u32>,
    cut: bool,
}

/// A statement as it was before a message that the server may refuse or pass over.
type Before = (Vec<u8>, Option<Statement>);

/// What the server has to answer.
enum Expected {
    /// Parse without a record of its own, Bind, Close: one message.
    Short(Option<Box<Before>>),
    /// Describe of the statement with this name, or of a portal: its columns.
    Describe(Option<Vec<u8>>),
    Request,
    /// Parse of a named statement.
    Prepare(Box<Before>),
    Sync,
}

impl Expected {
    fn is_request(&self) -> bool {
        matches!(self, Self::Request | Self::Prepare(_))
    }
}

impl ReadExchanges for Postgres {
    fn begins(&mut self, _: &mut Vec<Event>) {}

    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        if self.has_started {
            self.client.push(bytes);
        } else {
            self.first.push(bytes);
        }
        while !self.has_started {
            let Some(Piece::Message(first)) = self.first.next(NOT_POSTGRES, |_, _| false)? else {
                return Ok(());
            };
            match first.header.code {
                SSL_REQUEST | GSS_REQUEST => self.has_asked = true,
                // Nothing follows.
                CANCEL_REQUEST => {
                    events.push(Event::Note("it cancels a request of another connection".to_owned()));
                }
                _ => self.start(&first, events)?,
            }
        }
        let is_data = |header: Tagged, _| header.tag == frontend::COPY_DATA;
        loop {
            self.began = self.began.or_else(|| Some((now, self.client.begins()?)));
            match self.client.next("a message's length is wrong", is_data)? {
                None => return Ok(()),
                Some(Piece::Part(_, data)) => {
                    // What was answered before belongs before it.
                    events.extend(self.done.take().map(Event::Exchange));
                    push_data(data, self.waiting.last(Expected::is_request), events);
                }
                Some(Piece::PartsEnd(_)) => {}
                Some(Piece::Message(message)) => self.message(&message, now)?,
            }
        }
    }

    fn received(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        if !self.has_started {
            let has_agreed =
                std::mem::take(&mut self.has_asked) && matches!(bytes.first(), Some(b'S' | b'G'));
            return if has_agreed { Err(Stop::Encrypted) } else { Ok(()) };
        }
        self.server.push(bytes);
        let is_row = |header: Tagged, _| matches!(header.tag, backend::DATA_ROW | backend::COPY_DATA);
        while let Some(piece) = self.server.next(NO_SERVER, is_row)? {
            let (tag, row) = match piece {
                Piece::Message(message) => {
                    self.answer(message.header.tag, &message.body, now, events)?;
                    continue;
                }
                Piece::Part(header, row) => (header.tag, Some(row)),
                Piece::PartsEnd(header) => (header.tag, None),
            };
            // A row of an answer, or data that is copied out.
            let Some((Expected::Request, request)) = self.waiting.first_mut() else { continue };
            let digest = self.digest.get_or_insert_with(|| {
                let layout = if tag == backend::DATA_ROW { Layout::Postgres } else { Layout::Whole };
                let columns = self.columns.get(&request.text.as_bytes().to_vec());
                Digest::for_answer(
                    request,
                    self.dialect,
                    layout,
                    columns.map_or(&[], Vec::as_slice),
                    self.watch,
                )
            });
            if let Some(row) = row {
                digest.push(row);
            } else {
                digest.end_row();
                request.rows += u64::from(tag == backend::DATA_ROW);
            }
        }
        Ok(())
    }

    fn watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    fn let_in(&mut self, _: u32) {
        self.has_started = true;
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        self.give(events);
        self.waiting.end(Expected::is_request, events);
    }
}

impl Postgres {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    fn start(&mut self, first: &Framed<Start>, events: &mut Vec<Event>) -> Result<(), Stop> {
        // The server may agree to a code that is no version: what follows is not read.
        if first.header.code >> 16 != VERSION >> 16 {
            return Err("the connection may be encrypted".into());
        }
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let settings = message::settings(&first.body).map(|(name, value)| (text(name), text(value)));
        events.push(Event::Client(settings.collect()));
        (self.client, self.has_started) = (self.first.rest(), true);
        Ok(())
    }

    fn message(&mut self, message: &Framed<Tagged>, now: Instant) -> Result<(), Stop> {
        let cut = message.is_cut;
        match Request::read(message.header.tag, &message.body).ok_or(NOT_POSTGRES)? {
            Request::Query(text) => {
                let text = String::from_utf8_lossy(text).into_owned();
                self.enter(Expected::Request, Exchange { text, cut, ..Exchange::default() }, now)
            }
            Request::Parse { name, text, types } => {
                let text = String::from_utf8_lossy(text).into_owned();
                let kinds = types.numbers().collect();
                let before = self.before(name);
                let statement = Statement { text: text.clone(), kinds, cut, ..Statement::default() };
                self.statements.insert(name.to_vec(), statement);
                if name.is_empty() {
                    return self.expect(Expected::Short(None));
                }
                let exchange = Exchange { text, step: Step::Prepare, cut, ..Exchange::default() };
                self.enter(Expected::Prepare(Box::new(before)), exchange, now)
            }
            Request::Bind(bind) => {
                let bound = self.bound(bind, cut);
                self.portals.insert(bind.portal.to_vec(), bound);
                self.expect(Expected::Short(None))
            }
            Request::Describe(Target::Statement(name)) => {
                self.expect(Expected::Describe(Some(name.to_vec())))
            }
            Request::Describe(Target::Portal(_)) => self.expect(Expected::Describe(None)),
            Request::Execute { portal, limit } => {
                let portal = portal.to_vec();
                let text = || UNKNOWN.to_owned();
                let unknown =
                    || Exchange { text: text(), step: Step::Execute, cut: true, ..Exchange::default() };
                let mut exchange = self.portals.get(&portal).cloned().unwrap_or_else(unknown);
                exchange.limit = limit;
                if limit > 0 && !exchange.goes_on {
                    self.portals.insert(portal, Exchange { goes_on: true, ..exchange.clone() });
                }
                self.enter(Expected::Request, exchange, now)
            }
            Request::Close(target) => {
                let before = match target {
                    Target::Statement(name) => {
                        let before = self.before(name);
                        self.statements.remove(&name.to_vec());
                        Some(Box::new(before))
                    }
                    Target::Portal(name) => {
                        self.portals.remove(&name.to_vec());
                        None
                    }
                };
                self.expect(Expected::Short(before))
            }
            Request::FunctionCall(_) => {
                let exchange = Exchange { text: FUNCTION_CALL.to_owned(), ..Exchange::default() };
                self.enter(Expected::Request, exchange, now)
            }
            Request::Sync => {
                self.began = None;
                self.expect(Expected::Sync)
            }
            Request::CopyDone | Request::CopyFail(_) => {
                // While it copies in, the server passes over Sync.
                while self.waiting.pop_last(|one| matches!(one, Expected::Sync)).is_some() {}
                self.has_copied = true;
                self.began = None;
                Ok(())
            }
            Request::CopyData(_) | Request::Other(..) => {
                self.began = None;
                Ok(())
            }
        }
    }

    /// A statement with the parameters that it is bound to.
    fn bound(&self, bind: Bind<'_>, cut: bool) -> Exchange {
        let unknown = Statement { text: UNKNOWN.to_owned(), cut: true, ..Statement::default() };
        let Statement { text, kinds, described, cut: text_cut } =
            self.statements.get(&bind.statement.to_vec()).unwrap_or(&unknown).clone();
        let step = if bind.statement.is_empty() { Step::Bound } else { Step::Execute };
        let mut bound = Exchange { text, step, cut: cut || text_cut, ..Exchange::default() };
        let parameters = &mut bound.parameters;
        let columns = bind.parameters(|binary, value| {
            let kind = |kinds: &[u32]| kinds.get(parameters.len()).copied().unwrap_or(0);
            let (kind, chosen) = match kind(&kinds) {
                0 => (kind(&described), true),
                said => (said, false),
            };
            parameters.push(Parameter { chosen, ..Parameter::new(kind, binary, value.map(<[u8]>::to_vec)) });
        });
        bound.cut |= columns.is_none();
        bound.formats = columns.into_iter().flatten().map(|format| *format == [0, 1]).collect();
        if !bound.formats.contains(&true) {
            bound.formats.clear();
        }
        bound
    }

    /// Enters a message that is no request of its own.
    fn expect(&mut self, expected: Expected) -> Result<(), Stop> {
        self.waiting.push(expected, Exchange::default(), Exchange::cut_values)
    }

    /// A statement of this name as it is now.
    fn before(&self, name: &[u8]) -> Before {
        (name.to_vec(), self.statements.get(&name.to_vec()).cloned())
    }

    fn enter(&mut self, expected: Expected, mut exchange: Exchange, now: Instant) -> Result<(), Stop> {
        let (began, at) = self.began.take().unwrap_or((now, exchange.at));
        (exchange.began, exchange.at) = (Some(began), at);
        // From the last one on: a request ends the search of the next.
        exchange.pipelined = self.waiting.known().rev().any(Expected::is_request);
        self.waiting.push(expected, exchange, Exchange::cut_values)
    }

    fn answer(&mut self, tag: u8, body: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        use Expected::{Describe, Prepare, Request, Short};
        let is_text = |exchange: &Exchange| exchange.step == Step::Text;
        if tag == backend::ROW_DESCRIPTION {
            self.described(body);
        }
        match (tag, self.waiting.first_mut()) {
            // Of a text there may be several before ReadyForQuery.
            (backend::COMMAND_COMPLETE, Some((Request, exchange))) => {
                // `SELECT 3` counts rows that were seen.
                let (command, count) = message::command_complete(body);
                if !matches!(command, b"SELECT" | b"FETCH") {
                    exchange.affected += count.unwrap_or(0);
                }
                if is_text(exchange) {
                    exchange.ended = Some(now);
                } else {
                    drop(self.complete(now, events));
                }
            }
            (backend::EMPTY_QUERY_RESPONSE | backend::PORTAL_SUSPENDED, Some((Request, exchange)))
                if !is_text(exchange) =>
            {
                drop(self.complete(now, events));
            }
            // Of a named statement.
            (backend::PARSE_COMPLETE, Some((Prepare(_), _))) => drop(self.complete(now, events)),
            // The types that the server has chosen.
            (backend::PARAMETER_DESCRIPTION, Some((Describe(Some(name)), _))) => {
                if let Some(statement) = self.statements.get(name) {
                    let described = Types::after_count(body).numbers().collect();
                    let statement = Statement { described, ..statement.clone() };
                    self.statements.insert(name.clone(), statement);
                }
            }
            (backend::PARSE_COMPLETE | backend::BIND_COMPLETE | backend::CLOSE_COMPLETE, Some((Short(_), _)))
            | (backend::ROW_DESCRIPTION | backend::NO_DATA, Some((Describe(_), _))) => {
                self.waiting.pop();
            }
            (backend::ERROR_RESPONSE, Some(_)) => self.failed(body, now, events),
            (backend::READY_FOR_QUERY, _) => self.ready(body, now, events)?,
            // The server passes over what was sent with it to end it.
            (backend::COPY_IN_RESPONSE, Some((Request, exchange))) => {
                let was_sent = std::mem::take(&mut self.has_copied);
                if !is_text(exchange) && !was_sent {
                    while self.waiting.pop_last(|one| matches!(one, Expected::Sync)).is_some() {}
                }
            }
            (
                backend::AUTHENTICATION
                | backend::PARAMETER_STATUS
                | backend::BACKEND_KEY_DATA
                | backend::NOTICE_RESPONSE
                | backend::NOTIFICATION_RESPONSE
                | backend::NEGOTIATE_PROTOCOL_VERSION
                | backend::ERROR_RESPONSE,
                _,
            )
            // The rest of a text's answers.
            | (
                backend::ROW_DESCRIPTION
                | backend::COPY_OUT_RESPONSE
                | backend::COPY_BOTH_RESPONSE
                | backend::COPY_DONE
                | backend::FUNCTION_CALL_RESPONSE
                | backend::EMPTY_QUERY_RESPONSE,
                Some((Request, _)),
            ) => {}
            _ => return Err(NO_REQUEST.into()),
        }
        Ok(())
    }

    /// Remembers the names of columns where the rows of a statement have an order.
    fn described(&mut self, body: &[u8]) {
        let name = match self.waiting.known().next() {
            Some(Expected::Describe(Some(name))) => Some(name.clone()),
            _ => None,
        };
        let text = match name {
            Some(name) => self.statements.get(&name).map(|statement| statement.text.clone()),
            None => self.waiting.oldest(Expected::is_request).map(|request| request.text.clone()),
        };
        if let Some(text) = text.filter(|text| matches!(order(text, self.dialect), Order::By(_))) {
            let name = |bytes| String::from_utf8_lossy(bytes).into_owned();
            let names: Vec<String> = message::columns(body).map(name).collect();
            self.columns.insert(text.into_bytes(), names);
        }
    }

    /// Gives the last answered request.
    fn give(&mut self, events: &mut Vec<Event>) {
        events.extend(self.done.take().map(Event::Exchange));
    }

    /// The oldest request has its answer.
    fn complete(&mut self, now: Instant, events: &mut Vec<Event>) -> Option<Expected> {
        let digest = self.digest.take();
        let (expected, mut exchange) = self.waiting.pop()?;
        exchange.ended = Some(now);
        if let Some(digest) = digest {
            digest.end(&mut exchange);
        }
        self.give(events);
        self.done = Some(Box::new(exchange));
        Some(expected)
    }

    /// An error. The server passes over all messages until Sync, unless they are one text.
    fn failed(&mut self, body: &[u8], now: Instant, events: &mut Vec<Event>) {
        let code = message::error_field(body, b'C').unwrap_or(b"?");
        let mut code = Some(String::from_utf8_lossy(code).into_owned());
        if let Some((Expected::Request, exchange)) = self.waiting.first_mut()
            && exchange.step == Step::Text
        {
            exchange.error = code;
            return;
        }
        if let (Some((Expected::Sync, _)), Some(last)) = (self.waiting.first_mut(), &mut self.done) {
            // Sync commits what was executed before it.
            last.error = last.error.take().or(code.take());
        }
        let mut undone = Vec::new();
        while let Some((expected, exchange)) = self.waiting.first_mut() {
            match expected {
                Expected::Sync => break,
                Expected::Request | Expected::Prepare(_) => {
                    // What is passed over has the code of no SQLSTATE.
                    exchange.error = Some(code.take().unwrap_or_else(|| "skipped".to_owned()));
                    if let Some(Expected::Prepare(before)) = self.complete(now, events) {
                        undone.push(before);
                    }
                }
                _ => {
                    if let Some((Expected::Short(Some(before)), _)) = self.waiting.pop() {
                        undone.push(before);
                    }
                }
            }
        }
        for before in undone.into_iter().rev() {
            let (name, statement) = *before;
            match statement {
                Some(statement) => self.statements.insert(name, statement),
                None => self.statements.remove(&name),
            }
        }
    }

    /// `ReadyForQuery`: the end of a text, or of what Sync ends.
    fn ready(&mut self, body: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        match self.waiting.first_mut() {
            Some((Expected::Request, exchange)) if exchange.step == Step::Text => {
                drop(self.complete(now, events));
            }
            Some((Expected::Sync, _)) => drop(self.waiting.pop()),
            // After the login.
            None => {}
            Some(_) => return Err(NO_REQUEST.into()),
        }
        if let Some(last) = &mut self.done {
            last.transaction = match body.first() {
                Some(b'I') => Transaction::None,
                Some(b'T') => Transaction::Open,
                _ => Transaction::Failed,
            };
        }
        self.give(events);
        Ok(())
    }
}

impl Size for Vec<String> {
    fn size(&self) -> usize {
        64 + self.iter().map(|name| 32 + name.len()).sum::<usize>()
    }
}

impl Size for Statement {
    fn size(&self) -> usize {
        64 + self.text.len() + 4 * (self.kinds.len() + self.described.len())
    }
}

#[cfg(test)]
pub(super) mod tests;
