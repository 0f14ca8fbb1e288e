//! Sends recorded requests as they were sent, and reads the shape of each answer as the recorder did.

use super::family::Family;
use super::mongodb::Cursors;
use super::traffic::{Sent, Traffic, Unit};
use super::{http, memcached, mongodb, redis};
use crate::prelude::*;
use kurabe_capture::record::{Parameter, Value as Recorded};
use kurabe_core::driver::RawMessages;
use kurabe_wire::registry::of_scheme;
use kurabe_wire::view::{Event, Exchange, Step, View};
use std::collections::HashMap;
use std::time::Instant;

/// The maximum size of a message with bulk data, in bytes.
const PIECE: usize = 1 << 20;
/// What MySQL answers to `LOAD DATA LOCAL`.
const FILE_WANTED: u8 = 0xfb;

/// One connection of a replay.
pub(super) struct Client<'a> {
    traffic: &'a Traffic,
    view: Box<dyn View>,
    /// Prepared statements by text: the number in their name, or the server's number.
    prepared: HashMap<String, u32>,
    /// Executions whose rows are fetched in parts, by text: the number in their portal's name.
    portals: HashMap<String, u32>,
    /// The cursors of the replay, and the database and the last number of messages of MongoDB.
    cursors: &'a Cursors,
    database: String,
    number: u32,
    out: Vec<u8>,
    events: Vec<Event>,
    /// What the server sent last, if it is to be kept.
    kept: Option<Vec<u8>>,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        traffic: &'a Traffic,
        messages: &mut dyn RawMessages,
        cursors: &'a Cursors,
    ) -> Result<Self> {
        let protocol = of_scheme(&traffic.about.protocol);
        let protocol =
            protocol.ok_or_else(|| Error::new(ErrorKind::Internal, "a capture without a protocol"))?;
        let view = (protocol.view)();
        let (prepared, portals, out, events) = (HashMap::new(), HashMap::new(), Vec::new(), Vec::new());
        let (database, number) = (messages.database().unwrap_or_default().to_owned(), 0);
        let kept = None;
        let mut client =
            Self { traffic, view, prepared, portals, cursors, database, number, out, events, kept };
        client.begin(messages.flags());
        Ok(client)
    }

    /// Tells the view that the login is over.
    fn begin(&mut self, flags: u32) {
        let now = Instant::now();
        let Self { view, events, .. } = self;
        if self.traffic.family == Family::Postgres {
            view.sent(b"\0\0\0\x09\0\x03\0\0\0", now, events);
        } else if self.traffic.family == Family::Mysql {
            let [a, b, c, d] = flags.to_le_bytes();
            let greeting = [&[10, 0][..], &[0; 13], &[a, b, 0, 0, 0, c, d, 0]].concat();
            let response = [&[a, b, c, d][..], &[0; 30]].concat();
            view.received(&packet(0, &greeting), now, events);
            view.sent(&packet(1, &response), now, events);
            view.received(&packet(2, &[0; 7]), now, events);
        }
        events.clear();
    }

    /// Executes statements that make the session as the recorded client had it.
    pub(super) fn set_up(&mut self, messages: &mut dyn RawMessages, said: &[(String, String)]) -> Result<()> {
        match self.traffic.family {
            Family::Postgres => {}
            Family::Mysql | Family::Memcached | Family::Http | Family::Mongodb => return Ok(()),
            Family::Redis => {
                // What clients speak unless they ask for another; servers before 6 know no other.
                self.out.extend(b"*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n");
                return self.exchange(messages, 1, &[]).map(drop);
            }
        }
        let given = |(name, value): &(String, String)| match name.as_str() {
            // The target's, and what names a client.
            "user" | "database" | "replication" | "application_name" | "client_encoding" => Vec::new(),
            // `-c name=value` or `--name=value`.
            "options" => value
                .split_whitespace()
                .filter_map(|word| word.trim_start_matches("-c").trim_start_matches("--").split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            name if name.starts_with("_pq_.") => Vec::new(),
            name => vec![(name.to_owned(), value.clone())],
        };
        for (name, value) in said.iter().flat_map(given) {
            let quoted =
                |text: &str, quote: &str| format!("{quote}{}{quote}", text.replace(quote, &quote.repeat(2)));
            let text = format!(
                "SELECT pg_catalog.set_config({}, {}, false)",
                quoted(&name, "'"),
                quoted(&value, "'")
            );
            message(&mut self.out, b'Q', &[text.as_bytes(), b"\0"].concat());
            let answer = self.exchange(messages, 1, &[])?;
            if let Some(code) = answer.first().and_then(|answer| answer.error.as_ref()) {
                let what = format!("the server refused the setting {name} of the recorded client ({code})");
                return Err(Error::mismatch(what));
            }
        }
        Ok(())
    }

    /// Sends a unit, and gives its answers also as the server sent them.
    pub(super) fn send_and_keep(
        &mut self,
        messages: &mut dyn RawMessages,
        unit: &Unit,
    ) -> Result<(Vec<Exchange>, Vec<u8>)> {
        self.kept = Some(Vec::new());
        let answers = self.send(messages, unit);
        Ok((answers?, self.kept.take().unwrap_or_default()))
    }

    /// Reads the answers to a unit that is not sent.
    pub(super) fn answered(&mut self, unit: &Unit, bytes: &[u8]) -> Result<Vec<Exchange>> {
        self.encode(unit)?;
        let (now, count) = (Instant::now(), unit.requests.len());
        let Self { view, out, events, .. } = self;
        view.sent(out, now, events);
        view.received(bytes, now, events);
        out.clear();
        let exchange = |event| if let Event::Exchange(one) = event { Some(*one) } else { None };
        let answers: Vec<Exchange> = events.drain(..).filter_map(exchange).collect();
        if answers.len() == count {
            return Ok(answers);
        }
        Err(Error::new(ErrorKind::Protocol, "the cache has no whole answer"))
    }

    fn encode(&mut self, unit: &Unit) -> Result<()> {
        for sent in &unit.requests {
            let text = self.traffic.text(sent);
            match self.traffic.family {
                Family::Postgres => self.postgres(sent, &text)?,
                Family::Mysql => self.mysql(sent, text)?,
                Family::Redis => redis::push(&mut self.out, &text, sent)?,
                Family::Memcached => memcached::push(&mut self.out, &text, sent)?,
                Family::Http => http::push(&mut self.out, &text, sent)?,
                Family::Mongodb => {
                    self.number += 1;
                    let Self { out, number, database, cursors, .. } = self;
                    mongodb::push(out, &text, sent, *number, database, cursors)?;
                }
            }
        }
        let is_text = |sent: &Sent| sent.request.step == Step::Text;
        if self.traffic.family == Family::Postgres && !unit.requests.iter().all(is_text) {
            message(&mut self.out, b'S', b"");
        }
        Ok(())
    }

    /// Sends a unit, and waits for all of its answers.
    pub(super) fn send(&mut self, messages: &mut dyn RawMessages, unit: &Unit) -> Result<Vec<Exchange>> {
        self.encode(unit)?;
        let data = unit.requests.first().map_or(&[][..], |sent| &sent.data);
        let count = unit.requests.len();
        let last = unit.requests.last().map(|sent| self.traffic.text(sent));
        let is_quiet = last.is_some_and(|text| self.traffic.family.is_quiet(&text));
        match self.traffic.family {
            Family::Memcached if is_quiet => self.out.extend(memcached::SYNC),
            Family::Mongodb if is_quiet => self.plain("ping"),
            _ => {}
        }
        let mut answers = self.exchange(messages, count + usize::from(is_quiet), data)?;
        answers.truncate(count);
        if self.traffic.family == Family::Mongodb {
            unit.requests.iter().zip(&answers).for_each(|(sent, answer)| self.cursors.opened(sent, answer));
        }
        Ok(answers)
    }

    /// Appends a command of MongoDB without values.
    fn plain(&mut self, text: &str) {
        self.number += 1;
        mongodb::push_plain(&mut self.out, text, self.number, &self.database);
    }

    /// Removes what a capture of CouchDB or MongoDB writes, where it is there.
    pub(super) fn empty(&mut self, messages: &mut dyn RawMessages) -> Result<()> {
        let is_http = self.traffic.family == Family::Http;
        let all =
            if is_http { self.traffic.databases().into_iter().collect() } else { self.traffic.written() };
        for name in all {
            if is_http {
                self.out.extend(format!("DELETE /{name} HTTP/1.1\r\n\r\n").bytes());
            } else {
                self.plain(&kurabe_wire::mongodb::text("drop", &name));
            }
            let answers = self.exchange(messages, 1, &[])?;
            let code = answers.first().and_then(|answer| answer.error.as_deref());
            // What is no name of a database is none.
            let is_missing =
                |code: &str| if is_http { ["400", "404"].contains(&code) } else { mongodb::is_missing(code) };
            if let Some(code) = code.filter(|code| !is_missing(code)) {
                let what = format!("{name} could not be removed (error {code})");
                return Err(Error::new(ErrorKind::Server, what));
            }
        }
        Ok(())
    }

    /// Sends what was written, and reads this number of answers.
    fn exchange(
        &mut self,
        messages: &mut dyn RawMessages,
        count: usize,
        data: &[u8],
    ) -> Result<Vec<Exchange>> {
        let Self { traffic, view, prepared, out, events, kept, .. } = self;
        view.sent(out, Instant::now(), events);
        let mut answers: Vec<Exchange> = Vec::with_capacity(count);
        // The start of an answer of MySQL: header, kind, number of a statement.
        let mut head: Vec<u8> = Vec::new();
        messages.exchange_raw(out, &mut |piece, more| {
            let now = Instant::now();
            if traffic.family == Family::Mysql && head.len() < 9 {
                head.extend(piece.iter().take(9 - head.len()));
            }
            view.received(piece, now, events);
            if let Some(kept) = kept {
                kept.extend_from_slice(piece);
            }
            if head.get(4) == Some(&FILE_WANTED) {
                let mut sequence = head[3];
                for piece in data.chunks(PIECE).chain([&[][..]]) {
                    sequence = sequence.wrapping_add(1);
                    more.extend(packet(sequence, piece));
                }
                view.sent(more, now, events);
                // Only the first answer asks for it.
                head[4] = 0;
            }
            for event in events.drain(..) {
                match event {
                    Event::Exchange(answer) => answers.push(*answer),
                    Event::Unreadable(why) => return Err(Error::new(ErrorKind::Protocol, why)),
                    _ => {}
                }
            }
            Ok(answers.len() >= count)
        })?;
        out.clear();
        if let (Some(answer), Some([_, _, _, _, 0, number @ ..])) = (answers.first(), head.first_chunk::<9>())
            && answer.step == Step::Prepare
        {
            prepared.insert(answer.text.clone(), u32::from_le_bytes(*number));
        }
        Ok(answers)
    }

    /// Message formats: PostgreSQL manual, "Frontend/Backend Protocol: Message Formats".
    fn postgres(&mut self, sent: &Sent, text: &str) -> Result<()> {
        let Self { prepared, portals, out, .. } = self;
        let request = &sent.request;
        let parse = |out: &mut Vec<u8>, name: &str, types: &[u32]| {
            let mut body = [name.as_bytes(), b"\0", text.as_bytes(), b"\0"].concat();
            push_count(&mut body, types.len())?;
            body.extend(types.iter().flat_map(|kind| kind.to_be_bytes()));
            message(out, b'P', &body);
            Ok(())
        };
        let name = match request.step {
            Step::Text => {
                message(out, b'Q', &[text.as_bytes(), b"\0"].concat());
                push_data(out, text, &sent.data);
                return Ok(());
            }
            Step::Prepare => {
                let next = prepared.len() as u32;
                let known = prepared.get(text).copied();
                let name = format!("r{}", known.unwrap_or(next));
                if known.is_some() {
                    message(out, b'C', &[b"S", name.as_bytes(), b"\0"].concat());
                }
                parse(out, &name, &sent.types)?;
                prepared.insert(text.to_owned(), known.unwrap_or(next));
                return Ok(());
            }
            Step::Execute => prepared.get(text).map_or_else(String::new, |number| format!("r{number}")),
            Step::Bound => {
                parse(out, "", &sent.types)?;
                String::new()
            }
        };
        // One whose rows are fetched in parts outlives other executions.
        let known = portals.get(text).copied();
        let number = known.unwrap_or(portals.len() as u32);
        let portal =
            if request.limit > 0 || request.goes_on { format!("c{number}\0") } else { "\0".to_owned() };
        let execute = [portal.as_bytes(), &request.limit.to_be_bytes()].concat();
        if request.goes_on && known.is_some() {
            message(out, b'E', &execute);
            return Ok(());
        }
        if request.limit > 0 {
            portals.insert(text.to_owned(), number);
            message(out, b'C', &[b"P", portal.as_bytes()].concat());
        }
        let mut bind = [portal.as_bytes(), name.as_bytes(), b"\0"].concat();
        push_count(&mut bind, request.parameters.len())?;
        for parameter in &request.parameters {
            bind.extend([0, u8::from(parameter.binary)]);
        }
        push_count(&mut bind, request.parameters.len())?;
        for parameter in &request.parameters {
            match value(parameter)? {
                None => bind.extend((-1_i32).to_be_bytes()),
                Some(bytes) => {
                    bind.extend((bytes.len() as u32).to_be_bytes());
                    bind.extend(bytes);
                }
            }
        }
        push_count(&mut bind, request.formats.len())?;
        bind.extend(request.formats.iter().flat_map(|binary| [0, u8::from(*binary)]));
        message(out, b'B', &bind);
        message(out, b'E', &execute);
        push_data(out, text, &sent.data);
        Ok(())
    }

    /// Commands: MySQL internals manual, "Command Phase".
    fn mysql(&mut self, sent: &Sent, text: String) -> Result<()> {
        let Self { prepared, out, .. } = self;
        let request = &sent.request;
        let (code, rest) = match text.strip_prefix("COM_") {
            Some("PING") => (0x0e, String::new()),
            Some(name) => (0x02, name.trim_start_matches("INIT_DB ").to_owned()),
            None => (0x03, text),
        };
        match request.step {
            Step::Text | Step::Bound => out.extend(packet(0, &[&[code], rest.as_bytes()].concat())),
            Step::Prepare => {
                if let Some(number) = prepared.remove(&rest) {
                    out.extend(packet(0, &[&[0x19][..], &number.to_le_bytes()].concat()));
                }
                out.extend(packet(0, &[&[0x16], rest.as_bytes()].concat()));
            }
            Step::Execute => {
                let number = prepared.get(&rest).copied().unwrap_or(0);
                let mut body = [&[0x17][..], &number.to_le_bytes(), &[0, 1, 0, 0, 0]].concat();
                let values: Vec<Option<&[u8]>> =
                    request.parameters.iter().map(value).collect::<Result<_>>()?;
                let mut nulls = vec![0; values.len().div_ceil(8)];
                for (n, _) in values.iter().enumerate().filter(|(_, value)| value.is_none()) {
                    nulls[n / 8] |= 1 << (n % 8);
                }
                body.extend(nulls);
                if !values.is_empty() {
                    body.push(1);
                    body.extend(request.parameters.iter().flat_map(|one| (one.kind as u16).to_le_bytes()));
                }
                for (parameter, bytes) in request.parameters.iter().zip(values) {
                    let Some(bytes) = bytes else { continue };
                    // Dates and times have one byte of length.
                    if !parameter.binary || matches!(parameter.kind & 0xff, 7 | 10..=12) {
                        push_length(&mut body, bytes.len());
                    }
                    body.extend(bytes);
                }
                out.extend(packet(0, &body));
            }
        }
        Ok(())
    }
}

/// A parameter's value.
fn value(parameter: &Parameter) -> Result<Option<&[u8]>> {
    match &parameter.value {
        Recorded::Null => Ok(None),
        Recorded::Bytes(bytes) => Ok(Some(bytes)),
        Recorded::Dropped => Err(Error::usage("a value of the capture was not kept")),
    }
}

/// A message of PostgreSQL.
fn message(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend(body);
}

/// Data of COPY, and its end. A server that does not want it passes over it.
fn push_data(out: &mut Vec<u8>, text: &str, data: &[u8]) {
    let start = text.get(..6).unwrap_or_default();
    if !data.is_empty() || start.trim_start().get(..4).is_some_and(|word| word.eq_ignore_ascii_case("copy")) {
        data.chunks(PIECE).for_each(|piece| message(out, b'd', piece));
        message(out, b'c', b"");
    }
}

fn push_count(out: &mut Vec<u8>, count: usize) -> Result<()> {
    let count =
        u16::try_from(count).map_err(|_| Error::usage("a request has more than 65,535 parameters"))?;
    out.extend(count.to_be_bytes());
    Ok(())
}

/// A command of MySQL in packets.
fn packet(mut sequence: u8, body: &[u8]) -> Vec<u8> {
    const LONGEST: usize = 0xff_ffff;
    let mut out = Vec::with_capacity(body.len() + 8);
    let mut pieces = body.chunks(LONGEST);
    loop {
        let piece = pieces.next().unwrap_or_default();
        let [a, b, c, _] = (piece.len() as u32).to_le_bytes();
        out.extend([a, b, c, sequence]);
        out.extend(piece);
        sequence = sequence.wrapping_add(1);
        if piece.len() < LONGEST {
            return out;
        }
    }
}

/// A length of MySQL's protocol (`int<lenenc>`).
fn push_length(out: &mut Vec<u8>, length: usize) {
    let [a, b, c, ..] = (length as u64).to_le_bytes();
    match length {
        0..=250 => out.push(a),
        251..=0xffff => out.extend([0xfc, a, b]),
        0x1_0000..=0xff_ffff => out.extend([0xfd, a, b, c]),
        _ => {
            out.push(0xfe);
            out.extend((length as u64).to_le_bytes());
        }
    }
}
