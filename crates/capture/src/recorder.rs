//! Records what passes a relay.
//!
//! Both directions of a connection give what they read to its [`View`]; what it has seen becomes records in the block that is
//! filled. A thread of its own compresses full blocks and writes them, and at least every half second what there is. If the
//! file cannot be written any more, the relay goes on: the application must not notice.

use crate::Values;
use crate::file::{About, Blocks};
use crate::record::{Parameter, Record, Request, Value, Writer};
use crate::values::{Hasher, kept};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_relay::{End, Ends, Hook, Relay, Server, Way, lock};
use kurabe_wire::decoder::TlsRefusal;
use kurabe_wire::registry::Protocol;
use kurabe_wire::statement::Dialect;
use kurabe_wire::view::{Event, Exchange, View};
use std::collections::HashMap;
use std::io::Write;
use std::net::SocketAddr;
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
/// The time that open connections have to end when the recorder does.
const GRACE: Duration = Duration::from_secs(1);

/// A recorder, which relays and records until it is finished.
pub struct Recorder {
    relay: Relay,
    shared: Arc<Shared>,
    writes: Option<JoinHandle<Option<std::io::Error>>>,
}

/// What was recorded.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub connections: u64,
    pub requests: u64,
    /// Why connections, or their rest, could not be read, each reason once.
    pub unreadable: Vec<String>,
    /// Why a server could not be reached.
    pub unreachable: Option<String>,
}

struct Shared {
    began: Instant,
    values: Values,
    hasher: Hasher,
    dialect: Dialect,
    state: Mutex<State>,
    connections: AtomicU64,
}

struct State {
    block: Writer,
    templates: HashMap<String, u64>,
    /// The size of the templates.
    size: usize,
    next: u64,
    totals: Totals,
    /// `None` once the recorder has finished, or the file cannot be written.
    full: Option<SyncSender<Vec<u8>>>,
}

impl Recorder {
    /// Listens, and begins the file.
    ///
    /// # Errors
    /// If the protocol cannot be recorded, the file exists, or the address is in use.
    pub fn start(
        listen: SocketAddr,
        server: Server,
        protocol: &'static Protocol,
        path: &Path,
        about: &About,
    ) -> Result<Self> {
        let Some(view) = protocol.view else {
            return Err(Error::usage(format!("{} cannot be captured yet", about.protocol))
                .hint(format!("there are: {}", protocols().collect::<Vec<_>>().join(", "))));
        };
        let (refusal, values) = (protocol.refusal, about.values);
        let dialect = if protocol.schemes.contains(&"mysql") { Dialect::Mysql } else { Dialect::Postgres };
        let (full, blocks) = sync_channel(QUEUED);
        let state = State {
            block: Writer::default(),
            templates: HashMap::new(),
            size: 0,
            next: 0,
            totals: Totals::default(),
            full: Some(full),
        };
        let shared = Arc::new(Shared {
            began: Instant::now(),
            values,
            hasher: Hasher::default(),
            dialect,
            state: Mutex::new(state),
            connections: AtomicU64::new(0),
        });
        let opened = Arc::clone(&shared);
        let relay = Relay::start(listen, server, move |number| {
            opened.connections.fetch_add(1, Ordering::SeqCst);
            let state =
                Live { view: view(), refusal: refusal.map(|make| make()), events: Vec::new(), ended: false };
            Arc::new(Connection {
                number: number as u64,
                shared: Arc::clone(&opened),
                live: Mutex::new(state),
            })
        });
        let relay = relay.map_err(|error| {
            Error::new(ErrorKind::Environment, format!("cannot listen at {listen}: {error}"))
                .hint("name an address of this host and a free port")
        })?;
        let file = Blocks::create(path, about)?;
        let written = Arc::clone(&shared);
        let writes =
            thread::Builder::new().name("capture".to_owned()).spawn(move || write(file, &blocks, &written));
        let writes = writes.map_err(|error| {
            Error::new(ErrorKind::Environment, format!("no thread for the capture: {error}"))
        })?;
        Ok(Self { relay, shared, writes: Some(writes) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.relay.address()
    }

    /// Whether the file cannot be written any more.
    pub fn has_failed(&self) -> bool {
        self.writes.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Takes no further connections, waits a second for open ones to end, and completes the file.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn finish(mut self, path: &Path) -> Result<Totals> {
        self.relay.stop(GRACE);
        let mut totals = {
            let mut state = lock(&self.shared.state);
            let requests = state.totals.requests;
            state.push(&Record::End { requests });
            state.flush();
            state.full = None;
            state.totals.clone()
        };
        totals.connections = self.shared.connections.load(Ordering::SeqCst);
        match self.writes.take().map(JoinHandle::join) {
            Some(Ok(None)) => Ok(totals),
            Some(Ok(Some(error))) => Err(Error::new(
                ErrorKind::Environment,
                format!("{} could not be written to its end: {error}", path.display()),
            )
            .hint("what was written before can be read")),
            _ => Err(Error::new(ErrorKind::Internal, "the thread that writes the capture has died")),
        }
    }
}

/// The schemes of the protocols that can be captured.
pub fn protocols() -> impl Iterator<Item = &'static str> {
    let all = kurabe_wire::registry::PROTOCOLS.iter().filter(|protocol| protocol.view.is_some());
    all.flat_map(|protocol| protocol.schemes.iter().copied())
}

/// Writes blocks until there are no more, or one cannot be written.
fn write(mut file: Blocks, blocks: &Receiver<Vec<u8>>, shared: &Shared) -> Option<std::io::Error> {
    loop {
        let written = match blocks.recv_timeout(LATEST) {
            Ok(block) => file.push(&block),
            Err(RecvTimeoutError::Disconnected) => return file.sync().err(),
            // Whoever holds it may wait for this thread.
            Err(RecvTimeoutError::Timeout) => match shared.state.try_lock() {
                Ok(mut state) if !state.block.bytes.is_empty() => {
                    let block = std::mem::take(&mut state.block).bytes;
                    drop(state);
                    file.push(&block)
                }
                _ => Ok(()),
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

    fn flush(&mut self) {
        let block = std::mem::take(&mut self.block).bytes;
        if self.full.as_ref().is_some_and(|full| full.send(block).is_err()) {
            self.full = None;
        }
    }

    /// The number of a template.
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

/// A connection that is recorded.
struct Connection {
    number: u64,
    shared: Arc<Shared>,
    live: Mutex<Live>,
}

struct Live {
    view: Box<dyn View>,
    refusal: Option<Box<dyn TlsRefusal>>,
    events: Vec<Event>,
    ended: bool,
}

impl Hook for Connection {
    fn piece(&self, way: Way, piece: &mut [u8], ends: &mut Ends) -> std::io::Result<()> {
        let now = Instant::now();
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        {
            let mut live = lock(&self.live);
            let Live { view, refusal, events, .. } = &mut *live;
            if way == Way::ToClient {
                if let Some(refusal) = refusal {
                    refusal.received(piece);
                }
                view.received(piece, now, events);
            } else {
                match refusal {
                    Some(refusal) => refusal.sent(piece, &mut to_server, &mut to_client),
                    None => to_server.extend_from_slice(piece),
                }
                view.sent(&to_server, now, events);
            }
            self.record(events, now);
        }
        if way == Way::ToClient {
            return ends.to.write_all(piece);
        }
        ends.from.write_all(&to_client)?;
        ends.to.write_all(&to_server)
    }

    fn ended(&self, _: Way, end: End) {
        let mut live = lock(&self.live);
        // Half of a connection may go on: what is left is entered when it is closed.
        if let End::Unreachable(why) = end {
            lock(&self.shared.state).totals.unreachable.get_or_insert(why);
            live.ended = true;
        } else if end == End::Relay {
            self.end(&mut live);
        }
    }

    fn closed(&self) {
        self.end(&mut lock(&self.live));
    }
}

impl Connection {
    fn end(&self, live: &mut Live) {
        if std::mem::replace(&mut live.ended, true) {
            return;
        }
        let Live { view, events, .. } = live;
        view.end(events);
        self.record(events, Instant::now());
        let at = self.shared.at(Instant::now());
        lock(&self.shared.state).push(&Record::Close { connection: self.number, at, unreadable: None });
    }

    fn record(&self, events: &mut Vec<Event>, now: Instant) {
        let connection = self.number;
        for event in events.drain(..) {
            let record = match event {
                Event::Exchange(exchange) => {
                    self.exchange(*exchange);
                    continue;
                }
                Event::Client(said) => {
                    // A setting may be a password as well as a name.
                    let shown = |(name, value): (String, String)| {
                        let is_secret = kurabe_wire::statement::concealed(&value, &value).is_some();
                        (name, if is_secret { String::new() } else { value })
                    };
                    Record::Open {
                        connection,
                        at: self.shared.at(now),
                        said: said.into_iter().map(shown).collect(),
                    }
                }
                Event::Data { bytes, of } => {
                    let shared = &self.shared;
                    let is_secret = || kept(&of, shared.dialect, Values::Drop, &shared.hasher).2;
                    let keeps = shared.values == Values::Keep && !is_secret();
                    let length = bytes.len() as u64;
                    Record::Data { connection, length, bytes: if keeps { bytes } else { Vec::new() } }
                }
                Event::Unreadable(why) => {
                    let mut state = lock(&self.shared.state);
                    if !state.totals.unreadable.iter().any(|known| known == why) {
                        state.totals.unreadable.push(why.to_owned());
                    }
                    Record::Close { connection, at: self.shared.at(now), unreadable: Some(why.to_owned()) }
                }
            };
            lock(&self.shared.state).push(&record);
        }
    }

    fn exchange(&self, exchange: Exchange) {
        let Shared { values, hasher, dialect, .. } = &*self.shared;
        let (template, literals, is_secret) = kept(&exchange.text, *dialect, *values, hasher);
        let value = |parameter: kurabe_wire::view::Parameter| {
            let value = match parameter.value {
                None => Value::Null,
                Some(_) if is_secret || *values == Values::Drop => Value::Dropped,
                Some(bytes) if *values == Values::Hash => {
                    Value::Bytes(hasher.parameter(&bytes, parameter.binary))
                }
                Some(bytes) => Value::Bytes(bytes),
            };
            Parameter { kind: parameter.kind, binary: parameter.binary, value }
        };
        let began = exchange.began.map_or(0, |began| self.shared.at(began));
        let mut request = Request {
            connection: self.number,
            at: began,
            time: exchange.ended.map(|ended| self.shared.at(ended).saturating_sub(began)),
            statement: 0,
            literals,
            step: exchange.step,
            parameters: exchange.parameters.into_iter().map(value).collect(),
            formats: exchange.formats,
            limit: exchange.limit,
            goes_on: exchange.goes_on,
            cut: exchange.cut || is_secret,
            pipelined: exchange.pipelined,
            rows: exchange.rows,
            affected: exchange.affected,
            error: exchange.error,
            // A checksum would confirm a guess.
            digest: if is_secret || *values != Values::Keep { 0 } else { exchange.digest },
            transaction: exchange.transaction,
        };
        let mut state = lock(&self.shared.state);
        request.statement = state.template(template);
        state.totals.requests += 1;
        state.push(&Record::Request(Box::new(request)));
    }
}

impl Shared {
    fn at(&self, when: Instant) -> u64 {
        u64::try_from(when.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }
}
