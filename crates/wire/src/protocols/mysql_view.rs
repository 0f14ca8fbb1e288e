//! Requests and answers of the protocol of MySQL and MariaDB (MySQL internals manual, "Client/Server Protocol"; MariaDB's
//! documentation, "Clients & Connectors: Protocol").

use super::mysql::{COMPRESS, SSL, ZSTD, after_attributes, client_name, name, number, text};
use crate::bounded::{Size, Texts};
use crate::frames::Frames;
use crate::input::{short, until_zero, word};
use crate::view::{Digest, Event, Exchange, KEPT, Parameter, Step, Transaction, View, WAITING};
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// Updates count rows that were found, and not those that were changed.
const FOUND_ROWS: u32 = 1 << 1;
const QUERY_ATTRIBUTES: u32 = 1 << 27;
/// Answers have no EOF packets.
const DEPRECATE_EOF: u32 = 1 << 24;
const OPTIONAL_METADATA: u32 = 1 << 25;
/// Status: a transaction is open; another answer follows; rows are fetched later.
const IN_TRANSACTION: u16 = 1;
const MORE: u16 = 1 << 3;
const CURSOR: u16 = 1 << 6;
/// The length of a packet that another one continues.
const LONGEST: u64 = 0xff_ffff;
/// The part of a server's packet that is kept, in bytes; rows are read as they arrive.
const ANSWER: usize = 512;
/// MariaDB's number of the statement that was prepared last.
const LAST: u32 = u32::MAX;

/// The view.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is about another packet or end")]
pub(crate) struct Mysql {
    client: Frames<4>,
    server: Frames<4>,
    /// The packet that arrives, with those that it continues: of the client, and of the server.
    bodies: [Vec<u8>; 2],
    /// The sequence number of the client's first packet of a command.
    sequence: Option<u8>,
    cut: bool,
    began: Option<Instant>,
    /// The server's flags, once it has greeted; those of both, once the client has answered.
    offered: Option<u32>,
    agreed: Option<u32>,
    /// Whether the server has let the client in.
    started: bool,
    over: bool,
    statements: Texts<u32, Statement>,
    waiting: VecDeque<Waiting>,
    size: usize,
    stage: Stage,
    /// The length of the server's packet so far, and whether it is a row.
    length: usize,
    is_row: bool,
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

/// A command that the server has to answer.
struct Waiting {
    code: u8,
    exchange: Exchange,
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
    /// The client sends a file.
    File,
}

impl View for Mysql {
    fn sent(&mut self, mut bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        while !self.over {
            let Ok(Some(part)) = self.client.next(&mut bytes, |header| Some(length(header))) else { return };
            let sequence = *self.sequence.get_or_insert(part.header[3]);
            let is_file = self.started && sequence > 0 && self.stage == Stage::File;
            if is_file && !part.bytes.is_empty() {
                self.data(part.bytes, events);
            } else if !is_file {
                self.began = self.began.or(Some(now));
                let kept = &mut self.bodies[0];
                let room = KEPT - kept.len();
                self.cut |= part.bytes.len() > room;
                kept.extend_from_slice(part.bytes.get(..room).unwrap_or(part.bytes));
            }
            if !part.ends || length(part.header) == LONGEST {
                continue;
            }
            self.sequence = None;
            let (body, cut) = (std::mem::take(&mut self.bodies[0]), std::mem::take(&mut self.cut));
            let began = self.began.take().unwrap_or(now);
            if self.agreed.is_none() {
                self.response(&body, events);
            } else if self.started && sequence == 0 {
                self.command(&body, cut, began, events);
            } else if is_file && length(part.header) == 0 {
                self.stage = Stage::First;
            }
        }
    }

    fn received(&mut self, mut bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        while !self.over {
            let Ok(Some(part)) = self.server.next(&mut bytes, |header| Some(length(header))) else { return };
            let whole = length(part.header);
            if self.length == 0 {
                // Rows of a cursor, and columns of COM_FIELD_LIST, come at once.
                let at_once = self.waiting.front().is_some_and(|front| matches!(front.code, 0x04 | 0x1c));
                if at_once && self.stage == Stage::First {
                    self.stage = Stage::Rows;
                }
                let ends = matches!(part.bytes.first(), Some(0xff))
                    || (part.bytes.first() == Some(&0xfe) && whole < LONGEST);
                self.is_row = self.stage == Stage::Rows && !ends;
            }
            self.length += part.bytes.len();
            if self.is_row {
                if let Some(waiting) = self.waiting.front() {
                    self.digest.get_or_insert_with(|| Digest::of(&waiting.exchange.text)).push(part.bytes);
                }
            } else {
                let kept = &mut self.bodies[1];
                let room = ANSWER.saturating_sub(kept.len());
                kept.extend_from_slice(part.bytes.get(..room).unwrap_or(part.bytes));
            }
            if !part.ends || whole == LONGEST {
                continue;
            }
            let body = std::mem::take(&mut self.bodies[1]);
            self.length = 0;
            if std::mem::take(&mut self.is_row) {
                if let (Some(digest), Some(waiting)) = (&mut self.digest, self.waiting.front_mut()) {
                    digest.end_row();
                    waiting.exchange.rows += 1;
                }
            } else if self.offered.is_none() {
                self.greeting(&body, events);
            } else if !self.started {
                self.started = body.first() == Some(&0);
            } else {
                self.answer(&body, now, events);
            }
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        let left = std::mem::take(&mut self.waiting).into_iter();
        events.extend(left.map(|waiting| Event::Exchange(Box::new(waiting.exchange))));
        self.over = true;
    }
}

/// The length of a packet's body.
fn length(header: [u8; 4]) -> u64 {
    let [a, b, c, _] = header;
    u32::from_le_bytes([a, b, c, 0]).into()
}

impl Mysql {
    fn greeting(&mut self, body: &[u8], events: &mut Vec<Event>) {
        if body.first() != Some(&10) {
            return self
                .give_up("the server refused the connection, or does not speak MySQL's protocol", events);
        }
        // After the version: connection 4, scramble 8, filler 1; between the flags: character set 1, status 2.
        let (_, at) = until_zero(body, 1);
        self.offered = Some(u32::from(short(body, at + 13)) | u32::from(short(body, at + 18)) << 16);
    }

    /// The client's first packet. The password in it is not read.
    fn response(&mut self, body: &[u8], events: &mut Vec<Event>) {
        let flags = word(body, 0);
        let agreed = flags & self.offered.unwrap_or(0);
        self.agreed = Some(agreed);
        if flags & SSL != 0 && body.len() == 32 {
            return self.give_up("the connection is encrypted", events);
        }
        if agreed & (COMPRESS | ZSTD) != 0 {
            return self.give_up("the connection is compressed", events);
        }
        if agreed & OPTIONAL_METADATA != 0 {
            return self.give_up("the client may leave out the columns of answers", events);
        }
        let user = String::from_utf8_lossy(until_zero(body, 32).0).into_owned();
        let program = client_name(flags, body).map(|name| ("program_name".to_owned(), name));
        let found = (agreed & FOUND_ROWS != 0).then(|| ("found_rows".to_owned(), "on".to_owned()));
        let said = [Some(("user".to_owned(), user)), program, found];
        events.push(Event::Client(said.into_iter().flatten().collect()));
    }

    fn has(&self, flag: u32) -> bool {
        self.agreed.is_some_and(|agreed| agreed & flag != 0)
    }

    fn command(&mut self, body: &[u8], cut: bool, began: Instant, events: &mut Vec<Event>) {
        let Some((code, rest)) = body.split_first() else { return };
        let mut exchange = Exchange { cut, began: Some(began), ..Exchange::default() };
        match code {
            0x01 => return,
            0x18 => {
                let (id, parameter) = (word(rest, 0), short(rest, 4));
                if let Some(mut statement) = self.statements.get(&id).cloned() {
                    statement
                        .long
                        .entry(parameter)
                        .or_default()
                        .extend_from_slice(rest.get(6..).unwrap_or_default());
                    self.statements.insert(id, statement);
                }
                return;
            }
            0x19 => return self.statements.remove(&word(rest, 0)),
            0x02 => exchange.text = format!("COM_INIT_DB {}", String::from_utf8_lossy(rest)),
            0x03 => {
                let text = if self.has(QUERY_ATTRIBUTES) { after_attributes(rest) } else { Some(rest) };
                exchange.cut |= text.is_none();
                exchange.text = String::from_utf8_lossy(text.unwrap_or_default()).into_owned();
            }
            0x16 => {
                (exchange.text, exchange.step) = (String::from_utf8_lossy(rest).into_owned(), Step::Prepare);
            }
            0x17 | 0xfa => self.execution(*code, rest, &mut exchange),
            code => exchange.text = name(*code).0,
        }
        exchange.pipelined = !self.waiting.is_empty();
        self.size += exchange.size();
        self.waiting.push_back(Waiting { code: *code, exchange });
        if self.size > WAITING {
            self.give_up("too many requests wait for answers", events);
        }
    }

    /// Number of the statement 4, flags 1, iterations 4, then the parameters.
    fn execution(&mut self, code: u8, body: &[u8], exchange: &mut Exchange) {
        exchange.step = Step::Execute;
        let id = word(body, 0);
        let last = self.waiting.iter().rev().find(|waiting| waiting.code == 0x16);
        let found = self.statements.get(&id).cloned();
        let unknown = || Statement {
            text: last.map(|last| last.exchange.text.clone()).unwrap_or_default(),
            ..Statement::default()
        };
        let mut statement = found.unwrap_or_else(unknown);
        exchange.text.clone_from(&statement.text);
        let attributes = self.has(QUERY_ATTRIBUTES);
        let mut read = || {
            let mut at = 9;
            let mut count = statement.parameters.filter(|_| code == 0x17 && id != LAST)?;
            if attributes && (count > 0 || body.get(4)? & 8 != 0) {
                let (all, next) = number(body, at)?;
                (count, at) = (usize::try_from(all).ok().filter(|all| *all <= body.len())?, next);
            }
            if count == 0 {
                return Some(());
            }
            let nulls = body.get(at..at + count.div_ceil(8))?;
            at += nulls.len() + 1;
            if body.get(at - 1) == Some(&1) {
                statement.kinds.clear();
                for _ in 0..count {
                    statement.kinds.push(short(body.get(at..at + 2)?, 0));
                    at += 2;
                    at = if attributes { text(body, at)?.1 } else { at };
                }
            }
            for n in 0..count {
                let kind = *statement.kinds.get(n)?;
                let is_null = nulls.get(n / 8)? >> (n % 8) & 1 == 1;
                let (binary, value) = match statement.long.remove(&(n as u16)) {
                    Some(long) => (false, Some(long)),
                    None if is_null || kind & 0xff == 6 => (false, None),
                    None => {
                        let (binary, value, next) = value(body, at, kind)?;
                        at = next;
                        (binary, Some(value.to_vec()))
                    }
                };
                exchange.parameters.push(Parameter { kind: kind.into(), binary, value });
            }
            Some(())
        };
        exchange.cut |= read().is_none();
        if !statement.text.is_empty() && id != LAST && self.statements.get(&id).is_some() {
            statement.long.clear();
            self.statements.insert(id, statement);
        }
    }

    /// Data of a file.
    fn data(&self, piece: &[u8], events: &mut Vec<Event>) {
        if let Some(Event::Data { bytes, .. }) = events.last_mut() {
            bytes.extend_from_slice(piece);
        } else if let Some(waiting) = self.waiting.front() {
            events.push(Event::Data { bytes: piece.to_vec(), of: waiting.exchange.text.clone() });
        }
    }

    fn answer(&mut self, body: &[u8], now: Instant, events: &mut Vec<Event>) {
        let deprecates = self.has(DEPRECATE_EOF);
        let first = body.first().copied().unwrap_or_default();
        let Some(waiting) = self.waiting.front_mut() else {
            // The server ends the connection.
            if first != 0xff {
                self.give_up("an answer has no request", events);
            }
            return;
        };
        // The state behind an EOF packet: warnings 2, status 2.
        let eof = (first == 0xfe && body.len() < 9).then(|| short(body, 3));
        match self.stage {
            _ if first == 0xff => {
                waiting.exchange.error = Some(short(body, 1).to_string());
                self.complete(None, now, events);
            }
            // COM_CHANGE_USER: the login goes on.
            Stage::First if waiting.code == 0x11 && first != 0 => {}
            // COM_STATISTICS: a text.
            Stage::First if waiting.code == 0x09 => self.complete(None, now, events),
            Stage::First if waiting.code == 0x16 && first == 0 => {
                let (columns, parameters) = (short(body, 5), short(body, 7));
                let statement = Statement {
                    text: waiting.exchange.text.clone(),
                    parameters: Some(parameters.into()),
                    ..Statement::default()
                };
                self.statements.insert(word(body, 1), statement);
                let ends = |count: u16| u64::from(count) + u64::from(count > 0 && !deprecates);
                let left = ends(columns) + ends(parameters);
                self.definitions(left, false, now, events);
            }
            Stage::First if first == 0 || first == 0xfe => {
                let status = if let Some(status) = eof.filter(|_| !deprecates) {
                    status
                } else {
                    let affected = number(body, 1);
                    waiting.exchange.affected += affected.map_or(0, |(affected, _)| affected);
                    affected.and_then(|(_, at)| number(body, at)).map_or(0, |(_, at)| short(body, at))
                };
                self.complete(Some(status), now, events);
            }
            Stage::First if first == 0xfb => self.stage = Stage::File,
            Stage::First => {
                let Some((columns, at)) = number(body, 0) else {
                    return self.give_up("an answer cannot be read", events);
                };
                // MariaDB may leave out definitions that the client knows.
                let left = if body.get(at) == Some(&0) { 0 } else { columns };
                self.definitions(left + u64::from(!deprecates), true, now, events);
            }
            Stage::Definitions { left, rows } => match eof {
                Some(status) if rows && status & CURSOR != 0 => self.complete(Some(status), now, events),
                _ => self.definitions(left - 1, rows, now, events),
            },
            Stage::Rows => self.rows(body, eof, now, events),
            Stage::File => self.stage = Stage::First,
        }
    }

    fn definitions(&mut self, left: u64, rows: bool, now: Instant, events: &mut Vec<Event>) {
        match (left, rows) {
            (0, true) => self.stage = Stage::Rows,
            (0, false) => self.complete(None, now, events),
            _ => self.stage = Stage::Definitions { left, rows },
        }
    }

    /// The end of rows.
    fn rows(&mut self, body: &[u8], eof: Option<u16>, now: Instant, events: &mut Vec<Event>) {
        if body.first() != Some(&0xfe) {
            return;
        }
        let long =
            || number(body, 1).and_then(|(_, at)| number(body, at)).map_or(0, |(_, at)| short(body, at));
        let status = if self.has(DEPRECATE_EOF) { long() } else { eof.unwrap_or(0) };
        self.complete(Some(status), now, events);
    }

    /// An answer is complete; of a request there may be several.
    fn complete(&mut self, status: Option<u16>, now: Instant, events: &mut Vec<Event>) {
        self.stage = Stage::First;
        if status.is_some_and(|status| status & MORE != 0) {
            return;
        }
        let digest = self.digest.take();
        let Some(Waiting { mut exchange, .. }) = self.waiting.pop_front() else { return };
        self.size -= exchange.size();
        exchange.ended = Some(now);
        exchange.digest = digest.map_or(0, Digest::value);
        exchange.transaction = match status {
            None => Transaction::Unknown,
            Some(status) if status & IN_TRANSACTION != 0 => Transaction::Open,
            Some(_) => Transaction::None,
        };
        events.push(Event::Exchange(Box::new(exchange)));
    }

    fn give_up(&mut self, why: &'static str, events: &mut Vec<Event>) {
        self.end(events);
        events.push(Event::Unreadable(why));
        *self = Self { over: true, ..Self::default() };
    }
}

/// A parameter's value of this type: whether it is in binary format, its bytes, and the position behind it.
fn value(body: &[u8], at: usize, kind: u16) -> Option<(bool, &[u8], usize)> {
    let (start, size) = match kind & 0xff {
        1 => (at, 1),
        2 | 13 => (at, 2),
        3 | 4 | 9 => (at, 4),
        5 | 8 => (at, 8),
        7 | 10..=12 => (at + 1, usize::from(*body.get(at)?)),
        _ => {
            let (value, next) = text(body, at)?;
            return Some((false, value, next));
        }
    };
    Some((true, body.get(start..start + size)?, start + size))
}

impl Size for Statement {
    fn size(&self) -> usize {
        64 + self.text.len() + 2 * self.kinds.len() + self.long.values().map(Vec::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{exchanges, seen_of};
    use proptest::prelude::*;

    fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        [&[length[0], length[1], length[2], sequence], body].concat()
    }

    fn packets(bodies: &[&[u8]]) -> Vec<u8> {
        bodies.iter().enumerate().flat_map(|(n, body)| packet(n as u8 + 1, body)).collect()
    }

    /// Whether the client speaks, and what it says. After the manual's "Command Phase".
    fn conversation() -> Vec<(bool, Vec<u8>)> {
        let mut greeting = b"\x0a8.0\0\x01\0\0\0abcdefgh\0\x09\x82\x2d\x02\0\x08\0\x15".to_vec();
        greeting.extend([0; 10]);
        let response = [&[0x09, 0x82, 0x08, 0, 0, 0, 0, 1, 45][..], &[0; 23], b"bob\0\x07hunter2"].concat();
        let ok = |status: u8| packet(1, &[0, 2, 0, status, 0, 0, 0]);
        let (eof, eof_open) = (b"\xfe\0\0\x02\0", b"\xfe\0\0\x03\0");
        let execute = b"\x17\x07\0\0\0\0\x01\0\0\0\x02\x01\x03\0\xfd\0\x05\0\0\0";
        vec![
            (false, packet(0, &greeting)),
            (true, packet(1, &response)),
            (false, packets(&[b"\x01\x03"])),
            (false, packet(3, b"\0\0\0\x02\0\0\0")),
            (true, packet(0, b"\x03BEGIN")),
            (false, ok(3)),
            (true, packet(0, b"\x16SELECT a FROM t WHERE b = ? AND c = ?")),
            (false, packets(&[b"\0\x07\0\0\0\x01\0\x02\0\0\0\0", b"def", b"def", eof, b"def", eof])),
            (true, packet(0, execute)),
            (false, packets(&[b"\x01", b"def", eof, b"\0\0\x01x", b"\0\0\x01y", eof_open])),
            (true, packet(0, b"\x03LOAD DATA LOCAL INFILE 'f' INTO TABLE t")),
            (false, packets(&[b"\xfbf"])),
            (true, [packet(2, b"1\n2\n"), packet(3, b"")].concat()),
            (false, ok(3)),
            (true, packet(0, b"\x03SELECT 1; SELECT 2")),
            (
                false,
                packets(&[
                    b"\x01", b"def", eof, b"\x011", b"\xfe\0\0\x0a\0", b"\x01", b"def", eof, b"\x012", eof,
                ]),
            ),
            (true, packet(0, b"\x03INSERT 1")),
            (false, packets(&[b"\xff\x26\x04#23000no"])),
            (true, packet(0, b"\x0e")),
        ]
    }

    fn seen(conversation: &[(bool, Vec<u8>)], piece: usize) -> Vec<Event> {
        seen_of(&mut Mysql::default(), conversation, piece)
    }

    /// After a request for TLS, which the view does not see, numbers of packets are one higher, and passwords may be in clear.
    #[test]
    fn login_over_tls_that_ended_before_is_read_as_any_other_and_no_password_is_seen() {
        let plain = conversation();
        let mut ended = plain.clone();
        ended[1].1[3] += 1;
        // The server asks for the password itself, as caching_sha2_password does; the client sends it.
        let asks = [
            (false, packet(3, b"\xfecaching_sha2_password\0abcdefghabcdefghabcd\0")),
            (true, packet(4, &[b'h'; 32])),
            (false, packet(5, b"\x01\x04")),
            (true, packet(6, b"hunter2\0")),
            (false, packet(7, b"\0\0\0\x02\0\0\0")),
        ];
        ended.splice(2..4, asks);
        let (plain, ended) = (seen(&plain, usize::MAX), seen(&ended, 3));
        assert_eq!(ended, plain);
        assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
    }

    #[test]
    fn requests_are_seen_with_values_and_the_shapes_of_their_answers() {
        let events = seen(&conversation(), usize::MAX);
        assert!(
            !format!("{events:?}").contains("hunter2") && format!("{events:?}").contains("bob"),
            "{events:?}"
        );
        let data =
            events.iter().any(|event| matches!(event, Event::Data { bytes, .. } if bytes == b"1\n2\n"));
        assert!(data, "{events:?}");
        let found = exchanges(&events);
        let shape = |one: &&Exchange| {
            (one.text.clone(), one.step, one.rows, one.affected, one.error.clone(), one.transaction)
        };
        let select = "SELECT a FROM t WHERE b = ? AND c = ?".to_owned();
        let shapes: Vec<_> = found.iter().map(shape).collect();
        assert_eq!(
            shapes,
            [
                ("BEGIN".to_owned(), Step::Text, 0, 2, None, Transaction::Open),
                (select.clone(), Step::Prepare, 0, 0, None, Transaction::Unknown),
                (select, Step::Execute, 2, 0, None, Transaction::Open),
                (
                    "LOAD DATA LOCAL INFILE 'f' INTO TABLE t".to_owned(),
                    Step::Text,
                    0,
                    2,
                    None,
                    Transaction::Open
                ),
                ("SELECT 1; SELECT 2".to_owned(), Step::Text, 2, 0, None, Transaction::None),
                ("INSERT 1".to_owned(), Step::Text, 0, 0, Some("1062".to_owned()), Transaction::Unknown),
                ("COM_PING".to_owned(), Step::Text, 0, 0, None, Transaction::Unknown),
            ]
        );
        let parameter =
            |kind, binary, value: Option<&[u8]>| Parameter { kind, binary, value: value.map(<[u8]>::to_vec) };
        assert_eq!(
            found[2].parameters,
            [parameter(3, true, Some(&[5, 0, 0, 0])), parameter(0xfd, false, None)]
        );
        assert!(found.iter().all(|one| !one.cut && !one.pipelined) && found[6].ended.is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn pieces_do_not_matter_and_any_lie_is_read_or_given_up(piece in 1_usize..40, at in any::<prop::sample::Index>(), with in prop::collection::vec(any::<u8>(), 1..6)) {
            prop_assert_eq!(seen(&conversation(), piece), seen(&conversation(), usize::MAX));
            let mut lying = conversation();
            let which = at.index(lying.len());
            let bytes = &mut lying[which].1;
            let at = at.index(bytes.len());
            bytes.splice(at..(at + with.len()).min(bytes.len()), with);
            let _ = seen(&lying, piece);
        }
    }
}
