//! Requests and answers of the protocol of MySQL and MariaDB.

use super::mysql::{Next, Requests, client_name, field_list, init_db, name};
use crate::bounded::{Size, Texts};
use crate::frames::{Framed, Frames, Piece};
use crate::reader::Stop;
use crate::view::{
    Digest, Event, Exchange, KEPT, Parameter, ReadExchanges, Step, Transaction, Waiting, push_data,
};
use kurabe_protocol::bytes::short;
use kurabe_protocol::mysql::capability;
use kurabe_protocol::mysql::frame::{MAX, Packet};
use kurabe_protocol::mysql::handshake::{Greeting, HandshakeResponse};
use kurabe_protocol::mysql::message::{
    Command, Execution, LAST_STATEMENT, PrepareOk, answer, command, number, status,
};
use kurabe_protocol::sql::Dialect;
use std::collections::HashMap;
use std::time::Instant;

/// The part of a server's packet that is kept, in bytes; rows are read as they arrive.
const ANSWER: usize = 512;

/// The view.
#[derive(Default)]
pub(crate) struct Mysql {
    requests: Requests<KEPT>,
    server: Frames<Packet, ANSWER>,
    began: Option<Instant>,
    has_greeted: bool,
    /// Whether the server has let the client in.
    has_started: bool,
    statements: Texts<u32, Statement>,
    /// With the code of each command.
    waiting: Waiting<u8>,
    stage: Stage,
    digest: Option<Digest>,
}

#[derive(Clone, Default)]
struct Statement {
    text: String,
    /// `None` where its answer was not seen yet.
    parameters: Option<usize>,
    kinds: Vec<u16>,
    long: HashMap<u16, Vec<u8>>,
}

/// Where the answer to the oldest command is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    First,
    /// Definitions of parameters or columns, and whether rows follow.
    Definitions {
        left: u64,
        rows: bool,
    },
    Rows,
}

impl ReadExchanges for Mysql {
    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.requests.push(bytes);
        loop {
            if self.requests.has_begun() {
                self.began = self.began.or(Some(now));
            }
            match self.requests.next()? {
                None => return Ok(()),
                Some(Next::Response(payload)) => self.response(&payload, events)?,
                Some(Next::Data(data)) => {
                    push_data(data, self.waiting.first(), events);
                    continue;
                }
                Some(Next::Command(message)) if self.has_started => self.command(&message, now)?,
                Some(Next::Command(_) | Next::Other) => {}
            }
            self.began = None;
        }
    }

    fn received(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.server.push(bytes);
        loop {
            // Rows of a cursor, and columns of COM_FIELD_LIST, come at once.
            let at_once =
                matches!(self.waiting.known().next(), Some(&(command::FIELD_LIST | command::STMT_FETCH)));
            if at_once && self.stage == Stage::First {
                self.stage = Stage::Rows;
            }
            let are_rows = self.stage == Stage::Rows;
            let is_row = |packet: Packet, first: Option<u8>| {
                let ends = first == Some(answer::ERR) || first == Some(answer::EOF) && packet.length < MAX;
                are_rows && !ends
            };
            let Some(piece) = self.server.next("", is_row)? else { return Ok(()) };
            if let Piece::Message(message) = piece {
                self.packet(&message.body, now, events)?;
                continue;
            }
            let Some((_, request)) = self.waiting.first_mut() else { continue };
            let digest = self.digest.get_or_insert_with(|| Digest::of(&request.text, Dialect::MYSQL));
            if let Piece::Part(_, bytes) = piece {
                digest.push(bytes);
            } else {
                digest.end_row();
                request.rows += 1;
            }
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        self.waiting.end(|_| true, events);
    }
}

impl Mysql {
    /// A packet of the server that is no row.
    fn packet(&mut self, payload: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        if self.has_started {
            return self.answer(payload, now, events);
        }
        if std::mem::replace(&mut self.has_greeted, true) {
            self.has_started = payload.first() == Some(&answer::OK);
            return Ok(());
        }
        let greeting = Some(payload).filter(|payload| payload.first() == Some(&Greeting::VERSION));
        let greeting = greeting.and_then(Greeting::read);
        let refused = "the server refused the connection, or does not speak MySQL's protocol";
        self.requests.offered = greeting.ok_or(refused)?.capabilities;
        Ok(())
    }

    /// The client's first packet. The password in it is not read.
    fn response(&mut self, payload: &[u8], events: &mut Vec<Event>) -> Result<(), Stop> {
        if self.has(capability::OPTIONAL_METADATA) {
            return Err("the client may leave out the columns of answers".into());
        }
        let user = String::from_utf8_lossy(HandshakeResponse::read(payload).user).into_owned();
        let program = client_name(payload).map(|name| ("program_name".to_owned(), name));
        let found = self.has(capability::FOUND_ROWS).then(|| ("found_rows".to_owned(), "on".to_owned()));
        let said = [Some(("user".to_owned(), user)), program, found];
        events.push(Event::Client(said.into_iter().flatten().collect()));
        Ok(())
    }

    fn has(&self, flag: u32) -> bool {
        self.requests.agreed() & flag != 0
    }

    fn command(&mut self, message: &Framed<Packet>, now: Instant) -> Result<(), Stop> {
        let Some(command) = Command::read(&message.body, self.requests.agreed()) else { return Ok(()) };
        let began = Some(self.began.take().unwrap_or(now));
        let mut exchange = Exchange { cut: message.is_cut, began, ..Exchange::default() };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match command {
            Command::Quit => return Ok(()),
            Command::LongData { statement: id, parameter, data } => {
                if let Some(mut statement) = self.statements.get(&id).cloned() {
                    statement.long.entry(parameter).or_default().extend_from_slice(data);
                    self.statements.insert(id, statement);
                }
                return Ok(());
            }
            Command::CloseStatement(id) => {
                self.statements.remove(&id);
                return Ok(());
            }
            Command::InitDb(name) => exchange.text = init_db(name),
            Command::FieldList(table) => exchange.text = field_list(table),
            Command::Query(statement) => {
                exchange.cut |= statement.is_none();
                exchange.text = text(statement.unwrap_or_default());
            }
            Command::Prepare(statement) => (exchange.text, exchange.step) = (text(statement), Step::Prepare),
            Command::Execute { statement, is_bulk } => {
                self.execution(statement, is_bulk, &message.body, &mut exchange);
            }
            Command::Other(code) => exchange.text = name(code).0,
        }
        exchange.pipelined = !self.waiting.is_empty();
        self.waiting.push(message.body.first().copied().unwrap_or_default(), exchange)
    }

    fn execution(&mut self, id: u32, is_bulk: bool, payload: &[u8], exchange: &mut Exchange) {
        exchange.step = Step::Execute;
        let mut statement = self.statements.get(&id).cloned().unwrap_or_else(|| {
            // One that was just prepared.
            let last = self.waiting.last(|code| *code == command::STMT_PREPARE);
            Statement { text: last.map(|last| last.text.clone()).unwrap_or_default(), ..Statement::default() }
        });
        exchange.text.clone_from(&statement.text);
        let Statement { parameters, kinds, long, .. } = &mut statement;
        let count = parameters.filter(|_| !is_bulk && id != LAST_STATEMENT);
        let read = count.and_then(|count| {
            let is_sent = |place: usize| long.contains_key(&(place as u16));
            let execution = Execution::of(payload, self.requests.agreed());
            execution.parameters(count, kinds, is_sent, |place, kind, binary, bytes| {
                let value = long.get(&(place as u16)).cloned().or_else(|| bytes.map(<[u8]>::to_vec));
                exchange.parameters.push(Parameter { kind: kind.into(), binary, value });
            })
        });
        exchange.cut |= read.is_none();
        if count.is_some() && !statement.text.is_empty() && self.statements.get(&id).is_some() {
            statement.long.clear();
            self.statements.insert(id, statement);
        }
    }

    fn answer(&mut self, payload: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        let deprecates = self.has(capability::DEPRECATE_EOF);
        let first = payload.first().copied().unwrap_or_default();
        let Some((code, request)) = self.waiting.first_mut() else {
            // The server ends the connection.
            return if first == answer::ERR { Ok(()) } else { Err("an answer has no request".into()) };
        };
        // The state behind an EOF packet: warnings 2, status 2.
        let eof = (first == answer::EOF && payload.len() < 9).then(|| short(payload, 3));
        match self.stage {
            _ if first == answer::ERR => {
                request.error = Some(short(payload, 1).to_string());
                self.complete(None, now, events);
            }
            // The login goes on.
            Stage::First if *code == command::CHANGE_USER && first != answer::OK => {}
            // A text.
            Stage::First if *code == command::STATISTICS => self.complete(None, now, events),
            Stage::First if *code == command::STMT_PREPARE && first == answer::OK => {
                let Some(prepared) = PrepareOk::read(payload) else { return Err(NO_ANSWER.into()) };
                let statement = Statement {
                    text: request.text.clone(),
                    parameters: Some(prepared.parameters.into()),
                    ..Statement::default()
                };
                self.statements.insert(prepared.statement, statement);
                let ends = |count: u16| u64::from(count) + u64::from(count > 0 && !deprecates);
                let left = ends(prepared.columns) + ends(prepared.parameters);
                self.definitions(left, false, now, events);
            }
            Stage::First if first == answer::OK || first == answer::EOF => {
                let status = if let Some(status) = eof.filter(|_| !deprecates) {
                    status
                } else {
                    request.affected += number(payload, 1).map_or(0, |(affected, _)| affected);
                    ok_status(payload)
                };
                self.complete(Some(status), now, events);
            }
            Stage::First if first == answer::LOCAL_INFILE => self.requests.sends_file = true,
            Stage::First => {
                let (columns, at) = number(payload, 0).ok_or(NO_ANSWER)?;
                // MariaDB may leave out definitions that the client knows.
                let left = if payload.get(at) == Some(&0) { 0 } else { columns };
                self.definitions(left + u64::from(!deprecates), true, now, events);
            }
            Stage::Definitions { left, rows } => match eof {
                Some(status) if rows && status & status::CURSOR != 0 => {
                    self.complete(Some(status), now, events);
                }
                _ => self.definitions(left - 1, rows, now, events),
            },
            // The end of rows.
            Stage::Rows if first == answer::EOF => {
                let status = if deprecates { ok_status(payload) } else { eof.unwrap_or(0) };
                self.complete(Some(status), now, events);
            }
            Stage::Rows => {}
        }
        Ok(())
    }

    fn definitions(&mut self, left: u64, rows: bool, now: Instant, events: &mut Vec<Event>) {
        match (left, rows) {
            (0, true) => self.stage = Stage::Rows,
            (0, false) => self.complete(None, now, events),
            _ => self.stage = Stage::Definitions { left, rows },
        }
    }

    /// An answer is complete; of a request there may be several.
    fn complete(&mut self, status: Option<u16>, now: Instant, events: &mut Vec<Event>) {
        self.stage = Stage::First;
        self.requests.sends_file = false;
        if status.is_some_and(|status| status & status::MORE_RESULTS != 0) {
            return;
        }
        let digest = self.digest.take();
        let Some((_, mut exchange)) = self.waiting.pop() else { return };
        exchange.ended = Some(now);
        exchange.digest = digest.map_or(0, Digest::value);
        exchange.transaction = match status {
            None => Transaction::Unknown,
            Some(status) if status & status::IN_TRANSACTION != 0 => Transaction::Open,
            Some(_) => Transaction::None,
        };
        events.push(Event::Exchange(Box::new(exchange)));
    }
}

/// Why an answer cannot be read.
const NO_ANSWER: &str = "an answer cannot be read";

/// The status of an OK packet: behind changed rows and the last `AUTO_INCREMENT` value.
fn ok_status(payload: &[u8]) -> u16 {
    number(payload, 1).and_then(|(_, at)| number(payload, at)).map_or(0, |(_, at)| short(payload, at))
}

impl Size for Statement {
    fn size(&self) -> usize {
        64 + self.text.len() + 2 * self.kinds.len() + self.long.values().map(Vec::len).sum::<usize>()
    }
}

#[cfg(test)]
pub(super) mod tests;
