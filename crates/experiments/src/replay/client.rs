//! Sends recorded requests as they were sent, and reads the shape of each answer as the recorder did.

use super::commands::{PIECE, Sent};
use super::mongodb::Cursors;
use super::traffic::{Traffic, Unit};
use super::{http, memcached, mongodb, mysql, postgres, prepared, redis};
use crate::prelude::*;
use kurabe_capture::session;
use kurabe_core::driver::{Access, RawMessages};
use kurabe_protocol::call::{Call, Language, is_quiet};
use kurabe_protocol::mongodb::command::{Command, plain};
use kurabe_protocol::mysql::frame;
use kurabe_protocol::mysql::message::command;
use kurabe_protocol::postgres::message::Request;
use kurabe_protocol::resp;
use kurabe_protocol::sql::with_order_keys;
use kurabe_wire::registry::of_scheme;
use kurabe_wire::view::{Conversation, Event, Exchange, Step, Transaction, Watch};
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Settings of PostgreSQL's sessions that are the target's, that name a client, or that say whether and as whom it may write.
const NOT_SET: [&str; 9] = [
    "user", "database", "replication", "application_name", "client_encoding", "role",
    "session_authorization", "transaction_read_only", READ_ONLY,
];
const READ_ONLY: &str = "default_transaction_read_only";

pub(super) struct Client<'a> {
    traffic: &'a Traffic,
    view: Conversation,
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
    /// The templates that are sent as they were recorded, where all others are prepared; `None`: all.
    pub(super) as_recorded: Option<&'a HashSet<usize>>,
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
        let mut view = (protocol.view)(traffic.language.dialect());
        view.let_in(messages.flags());
        let database = messages.database().unwrap_or_default().to_owned();
        let (prepared, portals, out, events, kept, as_recorded) = Default::default();
        Ok(Self {
            traffic,
            view,
            prepared,
            portals,
            cursors,
            database,
            number: 0,
            out,
            events,
            kept,
            as_recorded,
        })
    }

    /// Says when answers begin, for the times in them.
    pub(super) fn watch(&mut self, watch: Watch) {
        self.view.watch(watch);
    }

    /// The settings of the recorded server's new sessions.
    fn recorded(&self) -> impl Iterator<Item = (&'static str, &'a str)> + use<'a> {
        let about = &self.traffic.about;
        let session = about.session.as_ref();
        session::names(&about.protocol)
            .iter()
            .filter_map(move |name| Some((*name, session?.get(*name)?.as_str())))
    }

    /// Executes statements that make the session as the recorded client had it, but for what it may write.
    pub(super) fn set_up(
        &mut self,
        messages: &mut dyn RawMessages,
        said: &[(String, String)],
        access: Access,
    ) -> Result<()> {
        match self.traffic.language {
            Language::Sql(dialect) if dialect.is_mysql() => {
                // A session that only reads refuses several statements, however it divides a text.
                if access == Access::ReadWrite && said.iter().any(|(name, _)| name == "multi_statements") {
                    // MYSQL_OPTION_MULTI_STATEMENTS_ON.
                    frame::push(&mut self.out, 0, &[command::SET_OPTION, 0, 0]);
                    self.exchange(messages, 1, &[])?;
                }
                for (name, value) in self.recorded() {
                    let text = mysql::set(name, value)?;
                    frame::push(&mut self.out, 0, &[&[command::QUERY], text.as_bytes()].concat());
                    self.set(messages, name)?;
                }
                return Ok(());
            }
            Language::Memcached | Language::Documents | Language::Http | Language::Couchdb => return Ok(()),
            Language::Redis => {
                // What clients speak unless they ask for another; servers before 6 know no other.
                resp::push(&mut self.out, &[b"HELLO", b"2"]);
                return self.exchange(messages, 1, &[]).map(drop);
            }
            Language::Sql(_) => {}
        }
        let given = |(name, value): &(String, String)| match name.as_str() {
            // `-c name=value` or `--name=value`.
            "options" => value
                .split_whitespace()
                .filter_map(|word| word.trim_start_matches("-c").trim_start_matches("--").split_once('='))
                .map(|(name, value)| (name.replace('-', "_"), value.to_owned()))
                .collect(),
            name if name.starts_with("_pq_.") => Vec::new(),
            name => vec![(name.to_owned(), value.clone())],
        };
        let recorded = self.recorded().map(|(name, value)| (name.to_owned(), value.to_owned()));
        // What was refused to the recorded client is refused to this one. Nothing recorded lets a session write.
        let is_set = |name: &str, value: &str| {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            !NOT_SET.into_iter().any(is) || is(READ_ONLY) && value == "on"
        };
        let all = recorded.chain(said.iter().flat_map(given));
        for (name, value) in all.filter(|(name, value)| is_set(name, value)) {
            // Right whatever standard_conforming_strings is.
            let quoted = |text: &str| format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
            let text = format!("SELECT pg_catalog.set_config({}, {}, false)", quoted(&name), quoted(&value));
            Request::Query(text.as_bytes()).write(&mut self.out);
            self.set(messages, &name)?;
        }
        Ok(())
    }

    /// Sends the request that sets this.
    fn set(&mut self, messages: &mut dyn RawMessages, name: &str) -> Result<()> {
        let answer = self.exchange(messages, 1, &[])?;
        match answer.first().and_then(|answer| answer.error.as_ref()) {
            Some(code) => Err(Error::mismatch(format!(
                "the server refused the setting {name} of the recorded client ({code})"
            ))),
            None => Ok(()),
        }
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
            let language = self.traffic.language;
            let text = self.traffic.templates[sent.template].filled(&sent.request);
            let out = &mut self.out;
            match language.call(&text, &sent.request.parameters) {
                Some(Call::Sql(..)) => self.encode_sql(&text, sent)?,
                Some(Call::Command(command)) if language == Language::Redis => redis::push(out, &command)?,
                Some(Call::Command(command)) => memcached::push(out, &command)?,
                Some(Call::Http(request)) => http::push(out, &request)?,
                Some(Call::Document(command)) => {
                    let message = self.message(Some(command), is_quiet(&sent.request.parameters));
                    let too_long = || Error::usage("a command of the capture is too long");
                    self.out.extend(message.ok_or_else(too_long)?);
                }
                None => {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "a request of a replay says not what it asks",
                    ));
                }
            }
        }
        let is_text = |sent: &Sent| sent.request.step == Step::Text;
        if self.traffic.language.is_postgres() && !unit.requests.iter().all(is_text) {
            Request::Sync.write(&mut self.out);
        }
        Ok(())
    }

    fn encode_sql(&mut self, text: &str, sent: &Sent) -> Result<()> {
        let Self { out, prepared, portals, .. } = self;
        if self.traffic.language.is_postgres() {
            postgres::push(out, text, sent, prepared, portals)
        } else {
            mysql::push(out, text, sent, prepared)
        }
    }

    /// Writes a unit as an execution, and prepares its text if the connection has not. Gives when that began; `None`: it is sent as
    /// it was recorded, as is what is kept for a cache.
    fn encode_prepared(&mut self, messages: &mut dyn RawMessages, unit: &Unit) -> Result<Option<Instant>> {
        let began = Instant::now();
        let (Some(refused), None, [sent]) = (self.as_recorded, &self.kept, &unit.requests[..]) else {
            return Ok(None);
        };
        let found = Some(sent).filter(|sent| !refused.contains(&sent.template));
        let Some((text, sent)) = found.and_then(|sent| prepared::execution(self.traffic, sent)) else {
            return Ok(None);
        };
        if !self.prepared.contains_key(&text) && !self.prepare(messages, &text, &sent)? {
            return Ok(None);
        }
        self.encode_sql(&text, &sent)?;
        if self.traffic.language.is_postgres() {
            Request::Sync.write(&mut self.out);
        }
        Ok(Some(began))
    }

    /// Whether the server prepares a text.
    fn prepare(&mut self, messages: &mut dyn RawMessages, text: &str, sent: &Sent) -> Result<bool> {
        let mut sent = sent.clone();
        sent.request.step = Step::Prepare;
        self.encode_sql(text, &sent)?;
        if self.traffic.language.is_postgres() {
            Request::Sync.write(&mut self.out);
        }
        let answer = self.exchange(messages, 1, &[])?;
        let is_refused = answer.first().is_none_or(|answer| answer.error.is_some());
        if is_refused {
            self.prepared.remove(text);
        }
        Ok(!is_refused)
    }

    /// The templates of which the server prepares no text.
    pub(super) fn refused(&mut self, messages: &mut dyn RawMessages) -> Result<HashSet<usize>> {
        let (mut seen, mut refused) = (HashSet::new(), HashSet::new());
        for sent in self.traffic.units.iter().flat_map(|unit| &unit.requests) {
            if !seen.insert(sent.template) {
                continue;
            }
            if let Some((text, sent)) = prepared::execution(self.traffic, sent)
                && !self.prepare(messages, &text, &sent)?
            {
                refused.insert(sent.template);
            }
        }
        Ok(refused)
    }

    /// Sends a unit, and waits for all of its answers.
    pub(super) fn send(&mut self, messages: &mut dyn RawMessages, unit: &Unit) -> Result<Vec<Exchange>> {
        let began = self.encode_prepared(messages, unit)?;
        if began.is_none() {
            self.encode(unit)?;
        }
        let data = unit.requests.first().map_or(&[][..], |sent| &sent.data);
        let count = unit.requests.len();
        let last = unit.requests.last().filter(|_| self.traffic.language.sql().is_none());
        let is_quiet = last.is_some_and(|sent| is_quiet(&sent.request.parameters));
        match self.traffic.language {
            Language::Memcached if is_quiet => self.out.extend(memcached::SYNC),
            Language::Documents if is_quiet => self.plain("ping", None),
            _ => {}
        }
        let mut answers = self.exchange(messages, count + usize::from(is_quiet), data)?;
        answers.truncate(count);
        if let (Some(began), Some(answer)) = (began, answers.first_mut()) {
            answer.began = Some(began);
        }
        if self.traffic.language == Language::Documents {
            unit.requests.iter().zip(&answers).for_each(|(sent, answer)| self.cursors.opened(sent, answer));
        }
        Ok(answers)
    }

    /// Whether rows of a query may come in another order, since they are equal in keys that it does not give; `false` where the
    /// server, asked for them, shows that none are. Within a transaction it is not asked, since an error ends that.
    pub(super) fn may_have_ties(&mut self, messages: &mut dyn RawMessages, sent: &Sent) -> Result<bool> {
        let language = self.traffic.language;
        let asked = with_order_keys(&self.traffic.text(sent), language.dialect());
        let (is_text, is_alone) =
            (sent.request.step == Step::Text, sent.request.transaction == Transaction::None);
        let can_ask = is_alone && !sent.request.pipelined && (is_text || language.is_postgres());
        let Some((text, keys)) = asked.filter(|_| can_ask) else { return Ok(true) };
        let mut sent = sent.clone();
        if !is_text {
            sent.types =
                sent.request.parameters.iter().map(|one| if one.chosen { 0 } else { one.kind }).collect();
            (sent.request.step, sent.request.limit, sent.request.goes_on) = (Step::Bound, 0, false);
            sent.request.formats.truncate(usize::from(sent.request.formats.len() == 1));
        }
        self.encode_sql(&text, &sent)?;
        if !is_text {
            Request::Sync.write(&mut self.out);
        }
        let answers = self.exchange(messages, 1, &[])?;
        let rows =
            answers.first().filter(|answer| answer.error.is_none()).and_then(|answer| answer.kept.as_ref());
        Ok(rows.is_none_or(|rows| rows.have_ties(keys)))
    }

    /// Appends a command of MongoDB on a collection, or on none, without other fields.
    fn plain(&mut self, name: &str, collection: Option<&str>) {
        let document = plain(name.as_bytes(), collection);
        let message = self.message(Command::read(&document), false);
        self.out.extend(message.unwrap_or_default());
    }

    /// The next message of MongoDB, with this command.
    fn message(&mut self, command: Option<Command<'_>>, is_quiet: bool) -> Option<Vec<u8>> {
        self.number += 1;
        let cursor = |recorded| self.cursors.get(recorded);
        command?.message(self.number, &self.database, is_quiet, &cursor)
    }

    /// Removes what a capture of CouchDB or MongoDB writes, where it is there.
    pub(super) fn empty(&mut self, messages: &mut dyn RawMessages) -> Result<()> {
        let is_http = self.traffic.language == Language::Couchdb;
        let all =
            if is_http { self.traffic.databases().into_iter().collect() } else { self.traffic.written() };
        for name in all {
            if is_http {
                self.out.extend(format!("DELETE /{name} HTTP/1.1\r\n\r\n").bytes());
            } else {
                self.plain("drop", Some(&name));
            }
            let answers = self.exchange(messages, 1, &[])?;
            let code = answers.first().and_then(|answer| answer.error.as_deref());
            // What is no name of a database is none.
            let missing = if is_http { ["400", "404"] } else { mongodb::MISSING };
            if let Some(code) = code.filter(|code| !missing.contains(code)) {
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
        mut data: &[u8],
    ) -> Result<Vec<Exchange>> {
        let Self { view, prepared, out, events, kept, .. } = self;
        view.sent(out, Instant::now(), events);
        let mut answers: Vec<Exchange> = Vec::with_capacity(count);
        messages.exchange_raw(out, &mut |piece, more| {
            let now = Instant::now();
            view.received(piece, now, events);
            if let Some(kept) = kept {
                kept.extend_from_slice(piece);
            }
            for event in std::mem::take(events) {
                match event {
                    Event::Exchange(answer) => answers.push(*answer),
                    Event::Unreadable(stop) => return Err(Error::new(ErrorKind::Protocol, stop.why())),
                    Event::FileWanted { mut sequence } => {
                        // Only the first answer asks for it.
                        for piece in std::mem::take(&mut data).chunks(PIECE).chain([&[][..]]) {
                            frame::push(more, sequence, piece);
                            sequence = sequence.wrapping_add(1);
                        }
                        view.sent(more, now, events);
                    }
                    _ => {}
                }
            }
            Ok(answers.len() >= count)
        })?;
        out.clear();
        if let Some((answer, number)) = answers.first().and_then(|answer| Some((answer, answer.statement?))) {
            prepared.insert(answer.text.clone(), number);
        }
        Ok(answers)
    }
}
