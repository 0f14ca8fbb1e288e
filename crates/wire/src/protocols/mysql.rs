//! The client/server protocol of MySQL and MariaDB (MySQL internals manual, "Client/Server Protocol"; MariaDB's
//! documentation, "Clients & Connectors: Protocol").
//!
//! A command has sequence number 0. Answers to the server while connecting, and files of `LOAD DATA LOCAL`, are not
//! commands.

use crate::bounded::Texts;
use crate::conceal;
use crate::decoder::{Decoder, Request, Seen, Step};
use crate::input::{Input, KEPT, short, until_zero, word};
use crate::sql;

/// Flags of both ends.
const CONNECT_WITH_DB: u32 = 1 << 3;
pub(super) const COMPRESS: u32 = 1 << 5;
pub(super) const SSL: u32 = 1 << 11;
const SECURE_CONNECTION: u32 = 1 << 15;
const PLUGIN_AUTH: u32 = 1 << 19;
const CONNECT_ATTRS: u32 = 1 << 20;
const LENENC_AUTH: u32 = 1 << 21;
pub(super) const ZSTD: u32 = 1 << 26;
const QUERY_ATTRIBUTES: u32 = 1 << 27;
/// The length of the request for TLS, with its header, in bytes.
pub(super) const SSL_REQUEST: u64 = 36;
/// The part of a server's packet that is read.
const READ: usize = 512;
/// The length of a packet that another one continues.
const LONGEST: u64 = 0xff_ffff;
/// MariaDB's number of the statement that was prepared last.
const LAST: u32 = u32::MAX;

/// The decoder.
#[derive(Default)]
pub(crate) struct Mysql {
    client: Input,
    server: Input,
    /// The server's flags, once it has greeted.
    offered: Option<u32>,
    /// The flags of both, once the client has answered.
    agreed: Option<u32>,
    /// Whether the client's next packet continues the one before; and the server's.
    continued: [bool; 2],
    prepared: Texts<u32>,
    last: Option<String>,
    /// The statement whose number the server has not told yet.
    preparing: Option<String>,
    /// Whether a text was sent that the server may answer by requesting a file.
    may_request_file: bool,
    /// Whether the client sends a file.
    sends_file: bool,
    unreadable: bool,
}

impl Decoder for Mysql {
    fn sent(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        if self.unreadable {
            return;
        }
        self.client.push(bytes);
        while !self.unreadable
            && let Some((length, sequence)) = header(self.client.waiting())
        {
            let Some(message) = self.client.take(length + 4, KEPT) else { break };
            let body = message.bytes.get(4..).unwrap_or_default();
            let continues = std::mem::replace(&mut self.continued[0], length == LONGEST);
            if self.sends_file {
                self.sends_file = length > 0;
            } else if continues {
                // The rest of a long packet.
            } else if self.agreed.is_none() {
                self.response(length + 4, body, seen);
            } else if sequence == 0 {
                self.command(message.at, body, seen);
            }
        }
        if self.unreadable {
            self.client.close();
        }
    }

    fn received(&mut self, bytes: &[u8], seen: &mut Vec<Seen>) {
        if self.unreadable {
            return;
        }
        self.server.push(bytes);
        while let Some((length, sequence)) = header(self.server.waiting()) {
            let Some(message) = self.server.take(length + 4, READ) else { break };
            let body = message.bytes.get(4..).unwrap_or_default();
            let continues = std::mem::replace(&mut self.continued[1], length == LONGEST);
            if self.offered.is_none() {
                self.greeting(body, seen);
            } else if self.agreed.is_some() && !continues && sequence == 1 {
                self.answer(body);
            }
        }
    }
}

/// Length and sequence number of the next packet.
fn header(waiting: &[u8]) -> Option<(u64, u8)> {
    let [a, b, c, sequence] = *waiting.first_chunk::<4>()?;
    Some((u32::from_le_bytes([a, b, c, 0]).into(), sequence))
}

impl Mysql {
    fn greeting(&mut self, body: &[u8], seen: &mut Vec<Seen>) {
        self.offered = Some(0);
        match body.first() {
            Some(10) => {
                let (version, at) = until_zero(body, 1);
                seen.push(Seen::Note(format!("server {}", String::from_utf8_lossy(version))));
                // After the version: connection 4, scramble 8, filler 1; between the flags: character set 1, status 2.
                let (low, high) = (short(body, at + 13), short(body, at + 18));
                self.offered = Some(u32::from(low) | u32::from(high) << 16);
            }
            Some(0xff) => {
                let text = String::from_utf8_lossy(body.get(3..).unwrap_or_default());
                seen.push(Seen::Note(format!("the server refused the connection: {text}")));
            }
            _ => self.give_up("the server does not speak MySQL's protocol", seen),
        }
    }

    /// The client's first packet: its flags, or the request for TLS.
    fn response(&mut self, length: u64, body: &[u8], seen: &mut Vec<Seen>) {
        let flags = word(body, 0);
        if length == SSL_REQUEST && flags & SSL != 0 {
            seen.push(Seen::Encrypted);
            self.unreadable = true;
            return;
        }
        let agreed = flags & self.offered.unwrap_or(0);
        self.agreed = Some(agreed);
        if let Some(name) = client_name(flags, body) {
            seen.push(Seen::Client(name));
        }
        if agreed & (COMPRESS | ZSTD) != 0 {
            self.give_up("the connection is compressed", seen);
        }
    }

    fn command(&mut self, at: u64, body: &[u8], seen: &mut Vec<Seen>) {
        let Some((code, rest)) = body.split_first() else { return };
        self.may_request_file = false;
        let mut request = |text: String, step: Step, is_setup: bool| {
            seen.push(Seen::Request(Request { at, text, step, is_setup }));
        };
        match code {
            // COM_QUIT, COM_STMT_SEND_LONG_DATA, COM_STMT_CLOSE: parts of other requests, and not answered.
            0x01 | 0x18 | 0x19 => {}
            0x02 => request(format!("COM_INIT_DB {}", String::from_utf8_lossy(rest)), Step::Text, true),
            0x03 => {
                self.may_request_file = true;
                let attributes = self.agreed.is_some_and(|flags| flags & QUERY_ATTRIBUTES != 0);
                let text = if attributes { after_attributes(rest) } else { Some(rest) };
                let text = text.map(String::from_utf8_lossy).unwrap_or_default();
                request(conceal::sql(&text), Step::Text, sql::is_setup(&text));
            }
            0x04 => {
                let (table, _) = until_zero(rest, 0);
                request(format!("COM_FIELD_LIST {}", String::from_utf8_lossy(table)), Step::Text, true);
            }
            0x16 => {
                let text = String::from_utf8_lossy(rest);
                let shown = conceal::sql(&text);
                // Texts keep whether they are set-up: it is read from the shown text.
                self.last = Some(shown.clone());
                self.preparing = Some(shown.clone());
                request(shown, Step::Prepare, sql::is_setup(&text));
            }
            // COM_STMT_EXECUTE and MariaDB's COM_STMT_BULK_EXECUTE.
            0x17 | 0xfa => {
                let number = word(rest, 0);
                let last = self.last.as_ref().filter(|_| number == LAST);
                let text = last.or_else(|| self.prepared.get(&number)).cloned();
                let text = text.unwrap_or_else(|| format!("prepared statement {number}"));
                let is_setup = sql::is_setup(&text);
                request(text, Step::Execute, is_setup);
            }
            code => {
                let (name, is_setup) = name(*code);
                request(name, Step::Text, is_setup);
            }
        }
    }

    /// The first packet of an answer.
    fn answer(&mut self, body: &[u8]) {
        // COM_STMT_PREPARE_OK has twelve bytes; without column definitions MariaDB sends the same.
        if let Some(text) = self.preparing.take()
            && body.first() == Some(&0)
            && body.len() >= 12
        {
            self.prepared.insert(word(body, 1), text);
        }
        self.sends_file = std::mem::take(&mut self.may_request_file) && body.first() == Some(&0xfb);
    }

    fn give_up(&mut self, why: &'static str, seen: &mut Vec<Seen>) {
        seen.push(Seen::Unreadable(why));
        self.unreadable = true;
    }
}

/// The name of a command without a statement, and whether it sets up the connection.
pub(super) fn name(code: u8) -> (String, bool) {
    let (name, is_setup) = match code {
        0x05 => ("COM_CREATE_DB", false),
        0x06 => ("COM_DROP_DB", false),
        0x07 => ("COM_REFRESH", true),
        0x08 => ("COM_SHUTDOWN", false),
        0x09 => ("COM_STATISTICS", true),
        0x0a => ("COM_PROCESS_INFO", true),
        0x0c => ("COM_PROCESS_KILL", true),
        0x0d => ("COM_DEBUG", true),
        0x0e => ("COM_PING", true),
        // Its password is not read.
        0x11 => ("COM_CHANGE_USER", true),
        0x12 => ("COM_BINLOG_DUMP", false),
        0x13 => ("COM_TABLE_DUMP", false),
        0x15 => ("COM_REGISTER_SLAVE", true),
        0x1a => ("COM_STMT_RESET", true),
        0x1b => ("COM_SET_OPTION", true),
        0x1c => ("COM_STMT_FETCH", false),
        0x1e => ("COM_BINLOG_DUMP_GTID", false),
        0x1f => ("COM_RESET_CONNECTION", true),
        other => return (format!("command 0x{other:02x}"), false),
    };
    (name.to_owned(), is_setup)
}

/// A number of one to nine bytes and the position after it (`int<lenenc>`).
pub(super) fn number(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let size = match *bytes.get(at)? {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xff => return None,
        small => return Some((small.into(), at + 1)),
    };
    let digits = bytes.get(at + 1..at + 1 + size)?;
    Some((digits.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)), at + 1 + size))
}

/// A text and the position after it (`string<lenenc>`).
pub(super) fn text(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (length, at) = number(bytes, at)?;
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    Some((bytes.get(at..end)?, end))
}

/// The statement behind query attributes (`COM_QUERY` with `CLIENT_QUERY_ATTRIBUTES`).
pub(super) fn after_attributes(bytes: &[u8]) -> Option<&[u8]> {
    let (count, at) = number(bytes, 0)?;
    let (_, mut at) = number(bytes, at)?;
    if count == 0 {
        return bytes.get(at..);
    }
    let count = usize::try_from(count).ok().filter(|count| *count <= bytes.len())?;
    let nulls = bytes.get(at..at + count.div_ceil(8))?;
    at += nulls.len();
    // Types always follow in a query.
    (bytes.get(at) == Some(&1)).then_some(())?;
    at += 1;
    let mut kinds = Vec::new();
    for _ in 0..count {
        kinds.push(*bytes.get(at)?);
        at = text(bytes, at + 2)?.1;
    }
    for (n, kind) in kinds.into_iter().enumerate() {
        if nulls.get(n / 8)? >> (n % 8) & 1 == 1 {
            continue;
        }
        at = match kind {
            6 => at,
            1 => at + 1,
            2 | 13 => at + 2,
            3 | 4 | 9 => at + 4,
            5 | 8 => at + 8,
            7 | 10 | 11 | 12 => at + 1 + usize::from(*bytes.get(at)?),
            _ => text(bytes, at)?.1,
        };
    }
    bytes.get(at..)
}

/// The client's name and version from its connection attributes.
pub(super) fn client_name(flags: u32, body: &[u8]) -> Option<String> {
    // Flags 4, longest packet 4, character set 1, filler 23.
    let (_, mut at) = until_zero(body, 32);
    at = if flags & LENENC_AUTH != 0 {
        text(body, at)?.1
    } else if flags & SECURE_CONNECTION != 0 {
        at + 1 + usize::from(*body.get(at)?)
    } else {
        until_zero(body, at).1
    };
    if flags & CONNECT_WITH_DB != 0 {
        at = until_zero(body, at).1;
    }
    if flags & PLUGIN_AUTH != 0 {
        at = until_zero(body, at).1;
    }
    if flags & CONNECT_ATTRS == 0 {
        return None;
    }
    let (mut attributes, _) = text(body, at)?;
    let (mut name, mut version) = (None, None);
    while !attributes.is_empty() {
        let (key, next) = text(attributes, 0)?;
        let (value, next) = text(attributes, next)?;
        attributes = attributes.get(next..)?;
        match key {
            b"_client_name" => name = Some(value),
            b"_client_version" => version = Some(value),
            _ => {}
        }
    }
    let name = String::from_utf8_lossy(name?).into_owned();
    Some(version.map_or(name.clone(), |version| format!("{name} {}", String::from_utf8_lossy(version))))
}
