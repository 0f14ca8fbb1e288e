//! The client/server protocol of MySQL and MariaDB.
//!
//! A command has sequence number 0. Answers to the server while connecting, and files of `LOAD DATA LOCAL`, are not
//! commands.

use crate::bounded::Texts;
use crate::conceal;
use crate::decoder::{Decode, Request, Seen};
use crate::frames::{Framed, Frames, Piece};
use crate::input::KEPT;
use crate::reader::Stop;
use crate::view::Step;
use kurabe_protocol::bytes::word;
use kurabe_protocol::mysql::capability;
use kurabe_protocol::mysql::frame::Packet;
use kurabe_protocol::mysql::handshake::{Greeting, HandshakeResponse};
use kurabe_protocol::mysql::message::{Command, LAST_STATEMENT, PrepareOk, answer, command};
use kurabe_protocol::sql::{Dialect, Statement};

/// The part of a server's packet that is read.
const READ: usize = 512;

/// Reads what a client sends, and keeps at most `MAX` bytes of each command.
#[derive(Default)]
pub(super) struct Requests<const MAX: usize> {
    packets: Frames<Packet, MAX>,
    /// The server's capabilities, once it has greeted.
    pub(super) offered: u32,
    /// The capabilities of both, once the client has answered.
    agreed: Option<u32>,
    /// Whether the server has requested a file that has not ended.
    pub(super) sends_file: bool,
}

/// What follows in the stream.
pub(super) enum Next<'a> {
    /// The client's first packet.
    Response(Vec<u8>),
    Command(Framed<Packet>),
    /// A part of a file.
    Data(&'a [u8]),
    /// Another answer to the server while connecting, or the end of a file.
    Other,
}

impl<const MAX: usize> Requests<MAX> {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.packets.push(bytes);
    }

    /// Reads commands from now on, under these capabilities of both ends.
    pub(super) fn let_in(&mut self, capabilities: u32) {
        self.agreed = Some(capabilities);
    }

    /// Whether a packet has begun to arrive.
    pub(super) fn has_begun(&self) -> bool {
        self.packets.has_begun()
    }

    /// The capabilities of both ends; 0 before the client has answered.
    pub(super) fn agreed(&self) -> u32 {
        self.agreed.unwrap_or(0)
    }

    /// What follows; `None` if it has not arrived.
    pub(super) fn next(&mut self) -> Result<Option<Next<'_>>, Stop> {
        if self.agreed() & (capability::COMPRESS | capability::ZSTD_COMPRESSION) != 0 {
            return Err("the connection is compressed".into());
        }
        let sends_file = self.sends_file;
        // Numbers of its packets go round, to 0 too.
        let Some(piece) = self.packets.next("", |_, _| sends_file)? else { return Ok(None) };
        Ok(Some(match piece {
            Piece::Part(_, data) => Next::Data(data),
            Piece::PartsEnd(packet) => {
                // An empty packet ends it.
                self.sends_file = packet.length > 0;
                Next::Other
            }
            Piece::Message(message) if self.agreed.is_none() => {
                if HandshakeResponse::is_ssl_request(&message.body) {
                    return Err(Stop::Encrypted);
                }
                self.agreed = Some(word(&message.body, 0) & self.offered);
                Next::Response(message.body)
            }
            Piece::Message(message) if message.header.sequence == 0 => Next::Command(message),
            Piece::Message(_) => Next::Other,
        }))
    }
}

/// The decoder.
#[derive(Default)]
pub(crate) struct Mysql {
    requests: Requests<KEPT>,
    server: Frames<Packet, READ>,
    has_greeted: bool,
    prepared: Texts<u32>,
    last: Option<String>,
    /// The statement whose number the server has not told yet.
    preparing: Option<String>,
    /// Whether a text was sent that the server may answer by requesting a file.
    may_request_file: bool,
}

impl Decode for Mysql {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) -> Result<(), Stop> {
        self.requests.push(bytes);
        while let Some(next) = self.requests.next()? {
            match next {
                Next::Response(payload) => seen.extend(client_name(&payload).map(Seen::Client)),
                Next::Command(message) => self.command(&message, seen),
                Next::Data(_) | Next::Other => {}
            }
        }
        Ok(())
    }

    fn received(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) -> Result<(), Stop> {
        self.server.push(bytes);
        while let Some(piece) = self.server.next("", |_, _| false)? {
            let Piece::Message(message) = piece else { continue };
            if !std::mem::replace(&mut self.has_greeted, true) {
                self.greeting(&message.body, seen)?;
            } else if self.requests.agreed.is_some() && message.header.sequence == 1 {
                self.answer(&message.body);
            }
        }
        Ok(())
    }
}

impl Mysql {
    fn greeting(&mut self, payload: &[u8], seen: &mut Vec<Seen>) -> Result<(), Stop> {
        match payload.first() {
            Some(&Greeting::VERSION) => {
                let greeting = Greeting::read(payload).ok_or(NO_SERVER)?;
                seen.push(Seen::Note(format!("server {}", String::from_utf8_lossy(greeting.version))));
                self.requests.offered = greeting.capabilities;
            }
            Some(&answer::ERR) => {
                let text = String::from_utf8_lossy(payload.get(3..).unwrap_or_default());
                seen.push(Seen::Note(format!("the server refused the connection: {text}")));
            }
            _ => return Err(NO_SERVER.into()),
        }
        Ok(())
    }

    fn command(&mut self, message: &Framed<Packet>, seen: &mut Vec<Seen>) {
        let Some(command) = Command::read(&message.body, self.requests.agreed()) else { return };
        self.may_request_file = matches!(command, Command::Query(_));
        let mut request = |text: String, step: Step, is_setup: bool| {
            seen.push(Seen::Request(Request { at: message.at, text, step, is_setup }));
        };
        match command {
            // Parts of other requests, and not answered.
            Command::Quit | Command::LongData { .. } | Command::CloseStatement(_) => {}
            Command::Query(text) => {
                let text = text.map(String::from_utf8_lossy).unwrap_or_default();
                request(conceal::sql(&text), Step::Text, is_setup(&text));
            }
            Command::Prepare(text) => {
                let text = String::from_utf8_lossy(text);
                let shown = conceal::sql(&text);
                // Texts keep whether they are set-up: it is read from the shown text.
                self.last = Some(shown.clone());
                self.preparing = Some(shown.clone());
                request(shown, Step::Prepare, is_setup(&text));
            }
            Command::Execute { statement, .. } => {
                let last = self.last.as_ref().filter(|_| statement == LAST_STATEMENT);
                let text = last.or_else(|| self.prepared.get(&statement)).cloned();
                let text = text.unwrap_or_else(|| format!("prepared statement {statement}"));
                let is_setup = is_setup(&text);
                request(text, Step::Execute, is_setup);
            }
            Command::InitDb(name) => request(init_db(name), Step::Text, true),
            Command::FieldList(table) => request(field_list(table), Step::Text, true),
            Command::ResetStatement(_) => {
                let (name, is_setup) = name(command::STMT_RESET);
                request(name, Step::Text, is_setup);
            }
            Command::Other(code) => {
                let (name, is_setup) = name(code);
                request(name, Step::Text, is_setup);
            }
        }
    }

    /// The first packet of an answer.
    fn answer(&mut self, payload: &[u8]) {
        // Without column definitions MariaDB sends the same.
        if let Some(text) = self.preparing.take()
            && let Some(prepared) = PrepareOk::read(payload)
        {
            self.prepared.insert(prepared.statement, text);
        }
        self.requests.sends_file =
            std::mem::take(&mut self.may_request_file) && payload.first() == Some(&answer::LOCAL_INFILE);
    }
}

/// Whether a statement sets up the connection or asks about the server.
fn is_setup(text: &str) -> bool {
    Statement::read(text, Dialect::MYSQL).is_setup()
}

/// Why a server's stream cannot be read.
const NO_SERVER: &str = "the server does not speak MySQL's protocol";

/// The text of a command that chooses a database.
pub(super) fn init_db(name: &[u8]) -> String {
    format!("COM_INIT_DB {}", String::from_utf8_lossy(name))
}

/// The text of a command that asks for the columns of a table.
pub(super) fn field_list(table: &[u8]) -> String {
    format!("COM_FIELD_LIST {}", String::from_utf8_lossy(table))
}

/// The name of a command without a statement, and whether it sets up the connection.
pub(super) fn name(code: u8) -> (String, bool) {
    let (name, is_setup) = match code {
        0x05 => ("COM_CREATE_DB", false),
        0x06 => ("COM_DROP_DB", false),
        0x07 => ("COM_REFRESH", true),
        0x08 => ("COM_SHUTDOWN", false),
        command::STATISTICS => ("COM_STATISTICS", true),
        0x0a => ("COM_PROCESS_INFO", true),
        0x0c => ("COM_PROCESS_KILL", true),
        0x0d => ("COM_DEBUG", true),
        command::PING => ("COM_PING", true),
        // Its password is not read.
        command::CHANGE_USER => ("COM_CHANGE_USER", true),
        0x12 => ("COM_BINLOG_DUMP", false),
        0x13 => ("COM_TABLE_DUMP", false),
        0x15 => ("COM_REGISTER_SLAVE", true),
        command::STMT_RESET => ("COM_STMT_RESET", true),
        command::SET_OPTION => ("COM_SET_OPTION", true),
        command::STMT_FETCH => ("COM_STMT_FETCH", false),
        0x1e => ("COM_BINLOG_DUMP_GTID", false),
        command::RESET_CONNECTION => ("COM_RESET_CONNECTION", true),
        other => return (format!("command 0x{other:02x}"), false),
    };
    (name.to_owned(), is_setup)
}

/// The client's name and version, as its first packet has them.
pub(super) fn client_name(payload: &[u8]) -> Option<String> {
    let (name, version) = HandshakeResponse::read(payload).client()?;
    let name = String::from_utf8_lossy(name).into_owned();
    Some(version.map_or(name.clone(), |version| format!("{name} {}", String::from_utf8_lossy(version))))
}
