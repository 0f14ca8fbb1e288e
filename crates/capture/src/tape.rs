//! The file that is recorded into: connections become records in a block, and a thread of its own compresses full blocks and
//! writes them, and at least every half second what there is.

use crate::Values;
use crate::file::{About, Blocks};
use crate::record::{Parameter, Record, Request, Value, Writer};
use crate::secrets::{Secrets, Tables, looks_random};
use crate::values::Hasher;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::limits::advice_on_writing;
use kurabe_protocol::call::{Call, Language, NAME};
use kurabe_protocol::mongodb::bson::DOCUMENT;
use kurabe_protocol::mongodb::command::plain;
use kurabe_protocol::sql::Dialect;
use kurabe_relay::lock;
use kurabe_wire::registry::Protocol;
use kurabe_wire::statement::{Split, concealed, concealed_call, fingerprint, split};
use kurabe_wire::view::{Conversation, Event, Exchange, Watch};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The size from which a block is full, in bytes.
const FULL: usize = 256 << 10;
/// Full blocks that wait to be written. If there are more, the relay waits.
const QUEUED: usize = 4;
/// The time after which a block is written although it is not full.
const LATEST: Duration = Duration::from_millis(500);
/// The maximum size of all templates that are remembered, in bytes. Then those that come again get new numbers.
const TEMPLATES: usize = 16 << 20;

#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub connections: u64,
    pub requests: u64,
    /// Requests without all of their values, since they are too long or may contain a password.
    pub cut: u64,
    /// Requests with values that look like keys, and are kept.
    pub suspect: u64,
    /// Why the columns of tables are not known into which rows without a list of them were written.
    pub columns_unknown: Option<String>,
    /// Why connections, or their rest, could not be read, each reason once.
    pub unreadable: Vec<String>,
    /// Why a server could not be reached.
    pub unreachable: Option<String>,
}

pub(crate) struct Tape {
    pub(crate) shared: Arc<Shared>,
    writes: Option<JoinHandle<Option<std::io::Error>>>,
}

pub(crate) struct Shared {
    pub(crate) began: Instant,
    /// When it began, in microseconds since 1970.
    began_us: i64,
    values: Values,
    hasher: Hasher,
    /// The language of its calls, with the way in which sessions read SQL.
    language: Language,
    tables: Arc<Tables>,
    view: fn(Dialect) -> Conversation,
    state: Mutex<State>,
    pub(crate) connections: AtomicU64,
}

#[derive(Default)]
pub(crate) struct State {
    block: Writer,
    templates: HashMap<String, u64>,
    /// The size of the templates.
    size: usize,
    next: u64,
    totals: Totals,
    /// `None` once the recorder has finished, or the file cannot be written.
    full: Option<SyncSender<Vec<u8>>>,
}

impl Tape {
    /// Begins the file.
    pub(crate) fn begin(protocol: &Protocol, path: &Path, about: &About, tables: Tables) -> Result<Self> {
        let (full, blocks) = sync_channel(QUEUED);
        let state = State { full: Some(full), ..State::default() };
        let shared = Arc::new(Shared {
            began: Instant::now(),
            began_us: i64::try_from(about.began_ms.saturating_mul(1_000)).unwrap_or(i64::MAX),
            values: about.values,
            hasher: Hasher::default(),
            language: about.language(),
            tables: Arc::new(tables),
            view: protocol.view,
            state: Mutex::new(state),
            connections: AtomicU64::new(0),
        });
        let file = Blocks::create(path, about)?;
        let written = Arc::clone(&shared);
        let writes =
            thread::Builder::new().name("capture".to_owned()).spawn(move || write(file, &blocks, &written));
        let writes = writes.map_err(|error| {
            Error::new(ErrorKind::Environment, format!("no thread for the capture: {error}"))
        })?;
        Ok(Self { shared, writes: Some(writes) })
    }

    /// Whether the file cannot be written any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.writes.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Completes the file.
    pub(crate) fn finish(mut self, path: &Path) -> Result<Totals> {
        let mut totals = {
            let mut state = lock(&self.shared.state);
            let requests = state.totals.requests;
            state.push(&Record::End { requests });
            state.flush();
            state.full = None;
            state.totals.clone()
        };
        totals.columns_unknown = self.shared.tables.why_unknown();
        totals.connections = self.shared.connections.load(Ordering::SeqCst);
        match self.writes.take().map(JoinHandle::join) {
            Some(Ok(None)) => Ok(totals),
            Some(Ok(Some(error))) => Err(Error::new(
                ErrorKind::Environment,
                format!("{} could not be written to its end: {error}", path.display()),
            )
            .hint(format!(
                "{}; what was written before can be read",
                advice_on_writing(&error, "free disk space")
            ))),
            _ => Err(Error::new(ErrorKind::Internal, "the thread that writes the capture has died")),
        }
    }
}

/// Writes blocks until there are no more, or one cannot be written.
fn write(mut file: Blocks, blocks: &Receiver<Vec<u8>>, shared: &Shared) -> Option<std::io::Error> {
    loop {
        let written = match blocks.recv_timeout(LATEST) {
            Ok(block) => file.push(&block),
            Err(RecvTimeoutError::Disconnected) => return file.sync().err(),
            // Whoever holds it may wait for this thread.
            Err(RecvTimeoutError::Timeout) => match shared.state.try_lock() {
                Ok(mut state) => {
                    let due = state.due(blocks);
                    drop(state);
                    due.iter().try_for_each(|block| file.push(block))
                }
                Err(_) => Ok(()),
            },
        };
        if let Err(error) = written {
            // The channel ends with this function, and senders notice.
            return Some(error);
        }
    }
}

impl State {
    fn push(&mut self, record: &Record) {
        if self.full.is_none() {
            return;
        }
        self.block.push(record);
        if self.block.bytes.len() >= FULL {
            self.flush();
        }
    }

    /// The blocks that are written although the last one is not full, in the order in which they were entered: since the writer
    /// last waited, another thread may have queued full ones.
    fn due(&mut self, queued: &Receiver<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut due: Vec<Vec<u8>> = queued.try_iter().collect();
        let last = std::mem::take(&mut self.block).bytes;
        due.extend(Some(last).filter(|block| !block.is_empty()));
        due
    }

    fn flush(&mut self) {
        let block = std::mem::take(&mut self.block).bytes;
        if self.full.as_ref().is_some_and(|full| full.send(block).is_err()) {
            self.full = None;
        }
    }

    fn template(&mut self, template: String) -> u64 {
        if let Some(number) = self.templates.get(&template) {
            return *number;
        }
        if self.size + template.len() > TEMPLATES {
            self.templates.clear();
            self.size = 0;
        }
        let number = self.next;
        self.next += 1;
        self.size += template.len() + 64;
        self.templates.insert(template.clone(), number);
        self.push(&Record::Statement { number, template });
        number
    }
}

pub(crate) struct Taped {
    pub(crate) number: u64,
    shared: Arc<Shared>,
    view: Conversation,
    secrets: Secrets,
    events: Vec<Event>,
    has_ended: bool,
    /// Whether its rest could not be read, which is said once.
    is_unreadable: bool,
}

impl Taped {
    pub(crate) fn sent(&mut self, bytes: &[u8], now: Instant) {
        self.view.sent(bytes, now, &mut self.events);
        self.record(now);
    }

    pub(crate) fn received(&mut self, bytes: &[u8], now: Instant) {
        self.view.received(bytes, now, &mut self.events);
        self.record(now);
    }

    /// A log says this of it.
    pub(crate) fn saw(&mut self, event: Event, now: Instant) {
        self.events.push(event);
        self.record(now);
    }

    /// The server has closed it, after all that it sent.
    pub(crate) fn closed(&mut self, now: Instant) {
        if !self.has_ended {
            self.view.closed(now, &mut self.events);
            self.record(now);
        }
    }

    /// It is closed; only the first end counts.
    pub(crate) fn end(&mut self, now: Instant) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        self.view.end(&mut self.events);
        self.record(now);
        let at = self.shared.at(now);
        lock(&self.shared.state).push(&Record::Close { connection: self.number, at, unreadable: None });
    }

    /// Its rest cannot be read, and why.
    pub(crate) fn lose(&mut self, why: &'static str, now: Instant) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        self.view.end(&mut self.events);
        if !self.is_unreadable {
            self.events.push(Event::Unreadable(why.into()));
        }
        self.record(now);
    }

    /// It never was.
    pub(crate) fn forget(&mut self) {
        self.has_ended = true;
    }

    /// Enters what was seen.
    fn record(&mut self, now: Instant) {
        let connection = self.number;
        // The buffer is used again.
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            let record = match event {
                Event::Exchange(exchange) => {
                    self.exchange(*exchange);
                    continue;
                }
                Event::FileWanted { .. } | Event::Named(_) | Event::Note(_) => continue,
                Event::Client(said) => {
                    let named = |name: &str| said.iter().find(|(known, _)| known == name);
                    // PostgreSQL's database has the user's name, unless it is named. A client of MySQL without one has none.
                    let is_postgres = self.shared.language.is_postgres();
                    let user = || named("user").filter(|_| is_postgres);
                    if let Some((_, database)) = named("database").or_else(user) {
                        self.secrets.is_in(database);
                    }
                    // A setting may be a password as well as a name.
                    let shown = |(name, value): (String, String)| {
                        let is_secret = concealed(&value, &value).is_some();
                        (name, if is_secret { String::new() } else { value })
                    };
                    Record::Open {
                        connection,
                        at: self.shared.at(now),
                        said: said.into_iter().map(shown).collect(),
                    }
                }
                Event::Data { bytes, of } => {
                    let dialect = self.shared.language.dialect();
                    let keeps = self.shared.values == Values::Keep
                        && !self.keeps(&of, dialect, Values::Drop, false).2;
                    let length = bytes.len() as u64;
                    Record::Data { connection, length, bytes: if keeps { bytes } else { Vec::new() } }
                }
                Event::Unreadable(stop) => {
                    let why = stop.why();
                    self.is_unreadable = true;
                    let mut state = lock(&self.shared.state);
                    if !state.totals.unreadable.iter().any(|known| known == why) {
                        state.totals.unreadable.push(why.to_owned());
                    }
                    Record::Close { connection, at: self.shared.at(now), unreadable: Some(why.to_owned()) }
                }
            };
            lock(&self.shared.state).push(&record);
        }
        self.events = events;
    }

    /// What is kept of a statement's text: the template, its literals, and whether values must go with it. `failed`: whether the
    /// server refused it.
    fn keeps(
        &mut self,
        text: &str,
        dialect: Dialect,
        values: Values,
        failed: bool,
    ) -> (String, Vec<String>, bool) {
        let Split { template, literals } = split(text, dialect);
        let shown = concealed(text, &template);
        let is_named = shown.is_some();
        let template = shown.unwrap_or(template);
        if self.secrets.hold(text, dialect, is_named, failed) {
            return (fingerprint(&template), Vec::new(), true);
        }
        let literals = match values {
            _ if is_named => Vec::new(),
            Values::Keep => literals.into_iter().map(str::to_owned).collect(),
            Values::Hash => literals.iter().map(|literal| self.shared.hasher.literal(literal)).collect(),
            Values::Drop => Vec::new(),
        };
        (template, literals, is_named)
    }

    fn exchange(&mut self, exchange: Exchange) {
        let (language, values) = (self.shared.language, self.shared.values);
        let call = language.call(&exchange.text, &exchange.parameters);
        let (template, literals, is_secret) = if let Some(Call::Sql(text, dialect)) = call {
            self.keeps(text, dialect, values, exchange.error.is_some())
        } else {
            let shown = call.as_ref().and_then(concealed_call);
            let is_secret = shown.is_some();
            (shown.unwrap_or_else(|| exchange.text.clone()), Vec::new(), is_secret)
        };
        let hasher = &self.shared.hasher;
        let is_part = |one: &Parameter| language.sql().is_none() && one.is_name();
        let literal = |literal: &String| looks_random(literal.trim_matches(['\'', '"']).as_bytes());
        let mut given = exchange.parameters.iter().filter(|one| !is_part(one)).filter_map(Parameter::bytes);
        let (mut name, mut has_key) = (None, given.any(looks_random) || literals.iter().any(literal));
        if let Some(Call::Document(command)) = call {
            // Of a document without its values, the name of the command is kept.
            name = Some(plain(command.name().as_bytes(), None));
            let is_key = |text: String| looks_random(text.as_bytes());
            has_key = has_key || command.any(&mut |field| field.text().is_some_and(is_key));
        }
        let is_suspect = has_key && !is_secret && values == Values::Keep;
        let kept = |mut one: Parameter| {
            let is_kept = is_part(&one) && (!is_secret || one.kind == NAME);
            let document = name.as_ref().filter(|_| one.kind == u32::from(DOCUMENT));
            one.value = match one.value {
                value if is_kept => value,
                Value::Bytes(_) if is_secret || values == Values::Drop => {
                    document.map_or(Value::Dropped, |name| Value::Bytes(name.clone()))
                }
                Value::Bytes(bytes) if values == Values::Hash && document.is_some() => {
                    hasher.document(&bytes).map_or(Value::Dropped, Value::Bytes)
                }
                Value::Bytes(bytes) if values == Values::Hash => hasher.parameter(&bytes, one.binary).into(),
                other => other,
            };
            one
        };
        let made = if is_secret || values != Values::Keep { Vec::new() } else { exchange.made };
        let began = exchange.began.map_or(0, |began| self.shared.at(began));
        let mut request = Request {
            connection: self.number,
            at: began,
            time: exchange.ended.map(|ended| self.shared.at(ended).saturating_sub(began)),
            statement: 0,
            literals,
            step: exchange.step,
            parameters: exchange.parameters.into_iter().map(kept).collect(),
            formats: exchange.formats,
            limit: exchange.limit,
            goes_on: exchange.goes_on,
            cut: exchange.cut || is_secret,
            pipelined: exchange.pipelined,
            rows: exchange.rows,
            affected: exchange.affected,
            error: exchange.error,
            // A checksum would confirm a guess.
            digest: if is_secret || values != Values::Keep { 0 } else { exchange.digest },
            transaction: exchange.transaction,
        };
        let mut state = lock(&self.shared.state);
        request.statement = state.template(template);
        state.totals.requests += 1;
        state.totals.cut += u64::from(request.cut);
        state.totals.suspect += u64::from(is_suspect);
        if !made.is_empty() {
            state.push(&Record::Made { connection: self.number, values: made });
        }
        state.push(&Record::Request(Box::new(request)));
    }
}

impl Shared {
    pub(crate) fn connection(self: &Arc<Self>) -> Taped {
        let number = self.connections.fetch_add(1, Ordering::SeqCst);
        let mut view = (self.view)(self.language.dialect());
        view.watch(Watch {
            began: (self.began, self.began_us),
            recorded: None,
            keeps_rows: false,
            as_text: false,
        });
        Taped {
            number,
            shared: Arc::clone(self),
            secrets: Secrets::new(&self.tables),
            view,
            events: Vec::new(),
            has_ended: false,
            is_unreadable: false,
        }
    }

    /// Why the server cannot be reached.
    pub(crate) fn unreachable(&self, why: String) {
        lock(&self.state).totals.unreachable.get_or_insert(why);
    }

    fn at(&self, when: Instant) -> u64 {
        u64::try_from(when.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_that_was_queued_after_the_writer_waited_is_written_before_a_later_one() {
        let (full, blocks) = sync_channel(QUEUED);
        let mut state = State { full: Some(full), ..State::default() };
        let close = |connection| Record::Close { connection, at: 0, unreadable: None };
        state.push(&Record::Open { connection: 7, at: 0, said: Vec::new() });
        state.flush();
        state.push(&close(7));
        let due = state.due(&blocks);
        let first = |block: &Vec<u8>| crate::record::Reader::new(block).next();
        assert_eq!(
            due.iter().map(first).collect::<Vec<_>>(),
            [Some(Record::Open { connection: 7, at: 0, said: Vec::new() }), Some(close(7))]
        );
        assert!(state.due(&blocks).is_empty());
    }
}
