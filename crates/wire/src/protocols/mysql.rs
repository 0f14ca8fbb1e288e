//! Requests and answers of the protocol of MySQL and MariaDB.
//!
//! A command has sequence number 0. Answers to the server while connecting, and files of `LOAD DATA LOCAL`, are not commands.

use crate::bounded::{Size, Texts};
use crate::input::{Framed, Frames, Piece};
use crate::rows::Layout;
use crate::view::{
    Digest, Event, Exchange, KEPT, Parameter, ReadExchanges, Step, Stop, Transaction, UNKNOWN, Waiting,
    Watch, push_data,
};
use kurabe_protocol::bytes::{short, word};
use kurabe_protocol::mysql::capability;
use kurabe_protocol::mysql::frame::{MAX, Packet};
use kurabe_protocol::mysql::handshake::{Greeting, HandshakeResponse};
use kurabe_protocol::mysql::message::{
    Changed, Column, Command, Form, LAST_STATEMENT, PrepareOk, answer, command, number, parameters, status,
};
use kurabe_protocol::sql::Dialect;
use std::collections::HashMap;
use std::time::Instant;

/// The part of a server's packet that is kept, in bytes; rows are read as they arrive.
const ANSWER: usize = 512;

/// The maximum size of the parameters of a connection that are sent in pieces, and of how many statements they are.
const LONG: usize = 8 << 20;
const MOST_LONG: usize = 1_000;

#[derive(Default)]
pub(crate) struct Mysql {
    client: Frames<Packet, KEPT>,
    /// The server's capabilities, once it has greeted.
    offered: u32,
    /// The capabilities of both, once the client has answered.
    agreed: Option<u32>,
    /// Whether the server has requested a file that has not ended.
    sends_file: bool,
    server: Frames<Packet, ANSWER>,
    began: Option<Instant>,
    has_greeted: bool,
    /// Whether the server has let the client in.
    has_started: bool,
    statements: Texts<u32, Statement>,
    /// By statement, and the size of all values.
    long: HashMap<u32, Long>,
    long_size: usize,
    waiting: Waiting<Asked>,
    /// Executions by statement whose rows are fetched later, and their checksum so far.
    cursors: HashMap<u32, (Exchange, Digest)>,
    stage: Stage,
    /// The types and names of the columns of the rows that follow.
    columns: Columns,
    digest: Option<Digest>,
    watch: Option<Watch>,
    /// How the session reads SQL.
    dialect: Dialect,
}

#[derive(Clone, Default)]
struct Statement {
    text: String,
    /// `None` where its answer was not seen yet.
    parameters: Option<usize>,
    kinds: Vec<u16>,
    /// The types and names of its columns, which an answer may leave out.
    columns: Columns,
}

type Columns = (Vec<Form>, Vec<String>);

/// A command: its code, and the statement that it names.
#[derive(Clone, Copy)]
struct Asked {
    code: u8,
    statement: u32,
}

/// Parameters of a statement that were sent in pieces before its execution.
#[derive(Default)]
struct Long {
    values: HashMap<u16, Vec<u8>>,
    /// Whether something is missing of them.
    is_cut: bool,
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
    fn begins(&mut self, _: &mut Vec<Event>) {}

    fn sent(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.client.push(bytes);
        loop {
            if self.has(capability::COMPRESS | capability::ZSTD_COMPRESSION) {
                return Err("the connection is compressed".into());
            }
            self.began = self.began.or_else(|| self.client.begins().map(|_| now));
            let sends_file = self.sends_file;
            // Numbers of its packets go round, to 0 too.
            match self.client.next("", |_, _| sends_file)? {
                None => return Ok(()),
                Some(Piece::Part(_, data)) => {
                    push_data(data, self.waiting.first(), events);
                    continue;
                }
                // An empty packet ends it.
                Some(Piece::PartsEnd(packet)) => self.sends_file = packet.length > 0,
                Some(Piece::Message(message)) if self.agreed.is_none() => {
                    if HandshakeResponse::is_ssl_request(&message.body) {
                        return Err(Stop::Encrypted);
                    }
                    self.agreed = Some(word(&message.body, 0) & self.offered);
                    self.response(&message.body, events);
                }
                Some(Piece::Message(message)) if self.has_started && message.header.sequence == 0 => {
                    self.command(&message, now, events)?;
                }
                Some(Piece::Message(_)) => {}
            }
            self.began = None;
        }
    }

    fn received(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) -> Result<(), Stop> {
        self.server.push(bytes);
        loop {
            // Rows of a cursor, and columns of COM_FIELD_LIST, come at once.
            let at_once = matches!(
                self.waiting.known().next(),
                Some(Asked { code: command::FIELD_LIST | command::STMT_FETCH, .. })
            );
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
                self.packet(&message, now, events)?;
                continue;
            }
            let Some((asked, request)) = self.waiting.first_mut() else { continue };
            if asked.code == command::STMT_FETCH && self.digest.is_none() {
                self.digest = self.cursors.get(&asked.statement).map(|(_, digest)| digest.clone());
            }
            let (columns, known) = (&self.columns, (self.dialect, self.watch));
            let digest = self.digest.get_or_insert_with(|| digest(request, *asked, columns, known));
            if let Piece::Part(_, bytes) = piece {
                digest.push(bytes);
            } else {
                digest.end_row();
                request.rows += 1;
            }
        }
    }

    fn watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    fn let_in(&mut self, capabilities: u32) {
        self.agreed = Some(capabilities);
        (self.has_greeted, self.has_started) = (true, true);
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        for statement in self.cursors.keys().copied().collect::<Vec<_>>() {
            self.end_cursor(statement, events);
        }
        self.waiting.end(|_| true, events);
    }
}

/// The checksum of the rows of an answer.
fn digest(
    request: &Exchange,
    asked: Asked,
    (forms, columns): &Columns,
    (dialect, watch): (Dialect, Option<Watch>),
) -> Digest {
    let is_binary = matches!(asked.code, command::STMT_EXECUTE | command::STMT_FETCH);
    let layout = if is_binary { Layout::MysqlBinary(forms.clone()) } else { Layout::MysqlText };
    Digest::for_answer(request, dialect, layout, columns, watch)
}

impl Mysql {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// A packet of the server that is no row.
    fn packet(
        &mut self,
        message: &Framed<Packet>,
        now: Instant,
        events: &mut Vec<Event>,
    ) -> Result<(), Stop> {
        let payload = &message.body[..];
        if self.has_started {
            return self.answer(payload, message.header.sequence, now, events);
        }
        if std::mem::replace(&mut self.has_greeted, true) {
            self.has_started = payload.first() == Some(&answer::OK);
            return Ok(());
        }
        let greeting = Some(payload).filter(|payload| payload.first() == Some(&Greeting::VERSION));
        if payload.first() == Some(&answer::ERR) {
            let text = String::from_utf8_lossy(payload.get(3..).unwrap_or_default());
            events.push(Event::Note(format!("the server refused the connection: {text}")));
        }
        let greeting = greeting.and_then(Greeting::read);
        let refused = "the server refused the connection, or does not speak MySQL's protocol";
        let greeting = greeting.ok_or(refused)?;
        events.push(Event::Note(format!("server {}", String::from_utf8_lossy(greeting.version))));
        self.offered = greeting.capabilities;
        Ok(())
    }

    /// The client's first packet. The password in it is not read.
    fn response(&mut self, payload: &[u8], events: &mut Vec<Event>) {
        let response = HandshakeResponse::read(payload);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let user = text(response.user);
        let database = response.database().map(|name| ("database".to_owned(), text(name)));
        let client = response.client().map(|(name, version)| {
            let version = version.map(|version| format!(" {}", text(version)));
            ("program_name".to_owned(), text(name) + &version.unwrap_or_default())
        });
        let found = self.has(capability::FOUND_ROWS).then(|| ("found_rows".to_owned(), "on".to_owned()));
        let several = self.has(capability::MULTI_STATEMENTS);
        let several = several.then(|| ("multi_statements".to_owned(), "on".to_owned()));
        let said = [Some(("user".to_owned(), user)), database, client, found, several];
        events.push(Event::Client(said.into_iter().flatten().collect()));
    }

    fn has(&self, flag: u32) -> bool {
        self.agreed.unwrap_or(0) & flag != 0
    }

    fn command(
        &mut self,
        message: &Framed<Packet>,
        now: Instant,
        events: &mut Vec<Event>,
    ) -> Result<(), Stop> {
        let Some(command) = Command::read(&message.body, self.agreed.unwrap_or(0)) else { return Ok(()) };
        let began = Some(self.began.take().unwrap_or(now));
        let mut exchange = Exchange { cut: message.is_cut, at: message.at, began, ..Exchange::default() };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match command {
            Command::Quit => return Ok(()),
            Command::LongData { statement, parameter, data } => {
                self.piece(statement, parameter, data, message.is_cut);
                return Ok(());
            }
            Command::CloseStatement(id) => {
                self.statements.remove(&id);
                self.take_long(id);
                self.end_cursor(id, events);
                return Ok(());
            }
            Command::ResetStatement(id) => {
                self.take_long(id);
                self.end_cursor(id, events);
                exchange.text = name(command::STMT_RESET);
            }
            Command::InitDb(name) => exchange.text = format!("COM_INIT_DB {}", text(name)),
            Command::FieldList(table) => exchange.text = format!("COM_FIELD_LIST {}", text(table)),
            Command::Query(statement) => {
                exchange.cut |= statement.is_none();
                exchange.text = text(statement.unwrap_or_default());
            }
            Command::Prepare(statement) => (exchange.text, exchange.step) = (text(statement), Step::Prepare),
            Command::Execute { statement, is_bulk } => {
                self.end_cursor(statement, events);
                self.execution(statement, is_bulk, &message.body, &mut exchange);
            }
            Command::Other(code) => {
                if matches!(code, command::RESET_CONNECTION | command::CHANGE_USER) {
                    (self.statements, self.long, self.long_size) = (Texts::default(), HashMap::new(), 0);
                }
                exchange.text = name(code);
                if code == command::SET_OPTION {
                    // 0: several statements may be in one text from now on; 1: they may not.
                    exchange.text = format!("{} {}", exchange.text, short(&message.body, 1));
                }
            }
        }
        exchange.pipelined = !self.waiting.is_empty();
        let (code, statement) = (message.body.first().copied().unwrap_or_default(), word(&message.body, 1));
        self.waiting.push(Asked { code, statement }, exchange, Exchange::cut_values)
    }

    /// Gives an execution of which no more rows are fetched. A replay fetches all of them.
    fn end_cursor(&mut self, statement: u32, events: &mut Vec<Event>) {
        if let Some((mut request, digest)) = self.cursors.remove(&statement) {
            request.cut = true;
            digest.end(&mut request);
            events.push(Event::Exchange(Box::new(request)));
        }
    }

    /// Keeps a piece of a parameter. What is longer than can be kept is not kept in part.
    fn piece(&mut self, id: u32, parameter: u16, data: &[u8], is_cut: bool) {
        if self.long.len() >= MOST_LONG && !self.long.contains_key(&id) {
            return;
        }
        let long = self.long.entry(id).or_default();
        if is_cut || self.long_size + data.len() > LONG {
            self.long_size -= long.values.values().map(Vec::len).sum::<usize>();
            *long = Long { is_cut: true, ..Long::default() };
        }
        let value = long.values.entry(parameter).or_default();
        if !long.is_cut {
            value.extend_from_slice(data);
            self.long_size += data.len();
        }
    }

    /// The parameters that were sent in pieces, which are used once.
    fn take_long(&mut self, id: u32) -> Long {
        // Of a statement of which none could be kept it is not known.
        let unknown = Long { is_cut: self.long.len() >= MOST_LONG, ..Long::default() };
        let Some(long) = self.long.remove(&id) else { return unknown };
        self.long_size -= long.values.values().map(Vec::len).sum::<usize>();
        long
    }

    fn execution(&mut self, id: u32, is_bulk: bool, payload: &[u8], exchange: &mut Exchange) {
        exchange.step = Step::Execute;
        let mut long = self.take_long(id);
        let mut statement = self.statements.get(&id).cloned().unwrap_or_else(|| {
            // One that was just prepared.
            let last = self.waiting.last(|asked| asked.code == command::STMT_PREPARE);
            Statement { text: last.map(|last| last.text.clone()).unwrap_or_default(), ..Statement::default() }
        });
        exchange.text.clone_from(&statement.text);
        if exchange.text.is_empty() {
            UNKNOWN.clone_into(&mut exchange.text);
        }
        let Statement { parameters: known, kinds, .. } = &mut statement;
        let count = known.filter(|_| !is_bulk && id != LAST_STATEMENT);
        let sent: Vec<u16> = long.values.keys().copied().collect();
        let read = count.and_then(|count| {
            let is_sent = |place: usize| sent.contains(&(place as u16));
            let each = |place: usize, kind: u16, binary, bytes: Option<&[u8]>| {
                let value = long.values.remove(&(place as u16)).or_else(|| bytes.map(<[u8]>::to_vec));
                exchange.parameters.push(Parameter::new(kind.into(), binary, value));
            };
            parameters(payload, self.agreed.unwrap_or(0), count, kinds, is_sent, each)
        });
        exchange.cut |= read.is_none() || long.is_cut;
        if count.is_some() && !statement.text.is_empty() && self.statements.get(&id).is_some() {
            self.statements.insert(id, statement);
        }
    }

    fn answer(
        &mut self,
        payload: &[u8],
        sequence: u8,
        now: Instant,
        events: &mut Vec<Event>,
    ) -> Result<(), Stop> {
        let deprecates = self.has(capability::DEPRECATE_EOF);
        let first = payload.first().copied().unwrap_or_default();
        let Some((asked, request)) = self.waiting.first_mut() else {
            // The server ends the connection.
            return if first == answer::ERR { Ok(()) } else { Err("an answer has no request".into()) };
        };
        // The state behind an EOF packet: warnings 2, status 2.
        let eof = (first == answer::EOF && payload.len() < 9).then(|| short(payload, 3));
        let (asked, code) = (*asked, asked.code);
        match self.stage {
            _ if first == answer::ERR => {
                request.error = Some(short(payload, 1).to_string());
                self.complete(None, now, events);
            }
            // The login goes on.
            Stage::First if code == command::CHANGE_USER && first != answer::OK => {}
            // A text.
            Stage::First if code == command::STATISTICS => self.complete(None, now, events),
            Stage::First if code == command::STMT_PREPARE && first == answer::OK => {
                let Some(prepared) = PrepareOk::read(payload) else { return Err(NO_ANSWER.into()) };
                let statement = Statement {
                    text: request.text.clone(),
                    parameters: Some(prepared.parameters.into()),
                    ..Statement::default()
                };
                request.statement = Some(prepared.statement);
                self.statements.insert(prepared.statement, statement);
                self.columns = Default::default();
                let are_left_out = self.has(capability::OPTIONAL_METADATA) && payload.get(12) == Some(&0);
                let ends = |count: u16| u64::from(count) + u64::from(count > 0 && !deprecates);
                let left = if are_left_out { 0 } else { ends(prepared.columns) + ends(prepared.parameters) };
                self.definitions(left, false, now, events);
            }
            Stage::First if first == answer::OK || first == answer::EOF => {
                let status = if let Some(status) = eof.filter(|_| !deprecates) {
                    status
                } else {
                    let ok = Changed::read(payload);
                    request.affected += ok.affected;
                    // The key that it gave to the first row.
                    request.made.extend((ok.key > 0).then(|| ok.key.to_string().into_bytes()));
                    ok.status
                };
                self.complete(Some(status), now, events);
            }
            Stage::First if first == answer::LOCAL_INFILE => {
                self.sends_file = true;
                events.push(Event::FileWanted { sequence: sequence.wrapping_add(1) });
            }
            Stage::First => {
                let (columns, at) = number(payload, 0).ok_or(NO_ANSWER)?;
                // Definitions that the client knows, or has no use for, may be left out.
                let are_left_out = payload.get(at) == Some(&0);
                self.columns = Default::default();
                if are_left_out && asked.code == command::STMT_EXECUTE {
                    self.columns = self
                        .statements
                        .get(&asked.statement)
                        .map(|known| known.columns.clone())
                        .filter(|known| known.0.len() as u64 == columns)
                        .unwrap_or_default();
                    // Without their types, values cannot be told apart.
                    request.cut |= self.columns.0.is_empty();
                }
                let left = if are_left_out { 0 } else { columns };
                self.definitions(left + u64::from(!deprecates), true, now, events);
            }
            Stage::Definitions { left, rows } => match eof {
                Some(status) if rows && status & status::CURSOR != 0 => {
                    self.complete(Some(status), now, events);
                }
                _ => {
                    if let Some(column) = Column::read(payload).filter(|_| eof.is_none()) {
                        self.columns.0.push(column.form);
                        self.columns.1.push(String::from_utf8_lossy(column.name).into_owned());
                    }
                    self.definitions(left - 1, rows, now, events);
                }
            },
            // The end of rows.
            Stage::Rows if first == answer::EOF => {
                let status = if deprecates { Changed::read(payload).status } else { eof.unwrap_or(0) };
                self.complete(Some(status), now, events);
            }
            Stage::Rows => {}
        }
        Ok(())
    }

    fn definitions(&mut self, left: u64, rows: bool, now: Instant, events: &mut Vec<Event>) {
        if left == 0 {
            self.keep_columns();
        }
        match (left, rows) {
            (0, true) => self.stage = Stage::Rows,
            (0, false) => self.complete(None, now, events),
            _ => self.stage = Stage::Definitions { left, rows },
        }
    }

    /// Remembers the columns of a prepared statement, all definitions of which have come.
    fn keep_columns(&mut self) {
        let Some((asked, request)) = self.waiting.first_mut() else { return };
        let id = if asked.code == command::STMT_EXECUTE { Some(asked.statement) } else { request.statement };
        let Some((id, known)) = id.and_then(|id| Some((id, self.statements.get(&id)?))) else { return };
        if asked.code == command::STMT_PREPARE {
            // They follow its parameters.
            let parameters = known.parameters.unwrap_or(0).min(self.columns.0.len());
            self.columns.0.drain(..parameters);
            self.columns.1.drain(..parameters);
        }
        if !self.columns.0.is_empty() && known.columns != self.columns {
            let known = Statement { columns: self.columns.clone(), ..known.clone() };
            self.statements.insert(id, known);
        }
    }

    /// An answer is complete; of a request there may be several.
    fn complete(&mut self, status: Option<u16>, now: Instant, events: &mut Vec<Event>) {
        self.stage = Stage::First;
        self.sends_file = false;
        if status.is_some_and(|status| status & status::MORE_RESULTS != 0) {
            return;
        }
        let mut found = self.digest.take();
        let Some((asked, mut exchange)) = self.waiting.pop() else { return };
        let (is_open, is_last) = status.map_or((false, true), |status| {
            (status & status::CURSOR != 0, status & status::LAST_ROW_SENT != 0)
        });
        if asked.code == command::STMT_EXECUTE && is_open && self.cursors.len() < MOST_LONG {
            let digest =
                found.unwrap_or_else(|| digest(&exchange, asked, &self.columns, (self.dialect, self.watch)));
            exchange.ended = Some(now);
            self.cursors.insert(asked.statement, (exchange, digest));
            return;
        }
        if asked.code == command::STMT_FETCH
            && let Some((mut opened, so_far)) = self.cursors.remove(&asked.statement)
        {
            opened.rows += exchange.rows;
            opened.ended = Some(now);
            opened.error = exchange.error.take();
            let digest = found.take().unwrap_or(so_far);
            if !is_last {
                self.cursors.insert(asked.statement, (opened, digest));
                return;
            }
            (exchange, found) = (opened, Some(digest));
        }
        exchange.ended = Some(now);
        if let Some(digest) = found {
            digest.end(&mut exchange);
        }
        exchange.transaction = match status {
            None => Transaction::Unknown,
            Some(status) if status & status::IN_TRANSACTION != 0 => Transaction::Open,
            Some(_) => Transaction::None,
        };
        events.push(Event::Exchange(Box::new(exchange)));
    }
}

/// The name of a command without a statement.
fn name(code: u8) -> String {
    let name = match code {
        0x05 => "COM_CREATE_DB",
        0x06 => "COM_DROP_DB",
        0x07 => "COM_REFRESH",
        0x08 => "COM_SHUTDOWN",
        command::STATISTICS => "COM_STATISTICS",
        0x0a => "COM_PROCESS_INFO",
        0x0c => "COM_PROCESS_KILL",
        0x0d => "COM_DEBUG",
        command::PING => "COM_PING",
        // Its password is not read.
        command::CHANGE_USER => "COM_CHANGE_USER",
        0x12 => "COM_BINLOG_DUMP",
        0x13 => "COM_TABLE_DUMP",
        0x15 => "COM_REGISTER_SLAVE",
        command::STMT_RESET => "COM_STMT_RESET",
        command::SET_OPTION => "COM_SET_OPTION",
        command::STMT_FETCH => "COM_STMT_FETCH",
        0x1e => "COM_BINLOG_DUMP_GTID",
        command::RESET_CONNECTION => "COM_RESET_CONNECTION",
        other => return format!("command 0x{other:02x}"),
    };
    name.to_owned()
}

/// Why an answer cannot be read.
const NO_ANSWER: &str = "an answer cannot be read";

impl Size for Statement {
    fn size(&self) -> usize {
        let names = self.columns.1.iter().map(|name| 32 + name.len());
        64 + self.text.len() + 2 * self.kinds.len() + size_of_val(&self.columns.0[..]) + names.sum::<usize>()
    }
}

#[cfg(test)]
pub(super) mod tests;
