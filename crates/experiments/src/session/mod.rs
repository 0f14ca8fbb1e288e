//! E1, a web session store: write and read one session by its identifier.
//!
//! Each cell has its own collections, so that a read can never find the payload of another cell. Writes add sessions
//! with new identifiers to a collection that is empty when a trial begins. Requests of a site have a collection that holds the
//! loaded sessions when a trial begins.

mod request;
mod store;
mod transaction;

use crate::axes::{self, CLIENTS, CONNECTION, STATEMENT, reads, writes};
use crate::defect::no_operation;
use crate::fill::{self, BATCH, check_count};
use crate::ident::{Ident, own};
use crate::prelude::*;
use crate::readback;
use kurabe_core::planned::{MakeWorkload, Work};
use request::{Purge, Request, Sessions, Writer};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use store::{Format, Layout, PIECE, Store};
use transaction::{Read, Returned, Write};

const WRITE: &str = "write";
const READ: &str = "read";
const REQUEST: &str = "request";

/// Default number of sessions in the store: that of E1.
const RECORDS: u64 = 1_000;
/// The maximum payload of a cell, so that forty cells of a megabyte do not fill a disk.
const STORE_BYTES: u64 = 16_000_000;
/// The longest wait after a trial until its last sessions have expired: their time, and what a server's clock is late.
const EXPIRY: Duration = Duration::from_secs(5);
/// The minimum number of sessions, so that draws are spread over several.
const MIN_RECORDS: u64 = 16;

static INFO: ExperimentInfo = ExperimentInfo {
    name: "session",
    question: "How should a web application keep its sessions, and in which database?",
    about: "Writes sessions with new identifiers, reads sessions by identifiers drawn uniformly, and makes requests as a site \
            does: each reads a session, by Zipf's law, changes it and writes it back; one in ten begins a session, and one in \
            twenty finds one expired and deletes it. Payloads are like \
            serialised session data (or incompressible), stored as one blob or split over rows, compressed by the client \
            or not. As in the published experiments (session_store.csv).",
    axes: &[
        AxisInfo::new(
            "payload",
            "bytes of one session",
            AxisKind::size(1, 1_000_000_000),
            &["1k", "4k", "10k", "100k", "1m"],
        ),
        AxisInfo::new(
            "layout",
            "how a session is stored in the database",
            AxisKind::choice(&[
                ("blob", "one row with one large value"),
                ("rows", "rows of 4,000 bytes each, keyed (id, subid)"),
            ]),
            &["blob", "rows"],
        ),
        AxisInfo::new(
            "compress",
            "how the client compresses before it writes",
            AxisKind::choice(&[
                ("none", "not at all"),
                ("gzip", "deflate, level 6"),
                ("zstd", "Zstandard, level 3"),
                ("lz4", "LZ4 block"),
            ]),
            &["none"],
        ),
        AxisInfo::new(
            "encoding",
            "how the bytes are encoded",
            AxisKind::choice(&[
                ("binary", "without encoding, in a binary field"),
                ("base64", "as base64 in a text field, as in the original"),
            ]),
            &["binary"],
        ),
        AxisInfo::new(
            "content",
            "kind of payload, which decides how well it compresses",
            AxisKind::choice(&[
                ("text", "like serialised session data; zstd makes a third of it"),
                ("random", "incompressible"),
            ]),
            &["text"],
        ),
        AxisInfo {
            kind: AxisKind::choice(&[
                ("once", "once for each connection"),
                ("per-request", "for every request, as in the original"),
            ]),
            ..STATEMENT
        },
        CONNECTION,
        CLIENTS,
        AxisInfo::new(
            "lengths",
            "how long sessions are",
            AxisKind::choice(&[
                ("alike", "all as --payload"),
                (
                    "spread",
                    "as on a site: --payload is the mean, seven in ten are half of it or less, one in twenty is eight times it",
                ),
            ]),
            &["alike"],
        ),
        AxisInfo::new(
            "store-size",
            "bytes of all sessions, to be more than the server's memory holds",
            AxisKind::size(1_000, 10_000_000_000_000)
                .or(&[("small", "1,000 sessions, as in the published experiments, or 16 MB")]),
            &["small"],
        ),
        AxisInfo::new(
            "expiry",
            "who removes the expired sessions of requests",
            AxisKind::choice(&[
                ("request", "the request that finds one, by its identifier"),
                (
                    "database",
                    "the database, at each session's time: by the time to live of Redis, Valkey and memcached; elsewhere by an index \
                     and a DELETE of all that have expired, in one of a hundred requests",
                ),
            ]),
            &["request"],
        ),
        AxisInfo::new(
            "zipf",
            "skew of the sessions' popularity among requests: the exponent of Zipf's law; 0 means equal popularity",
            AxisKind::decimal(4),
            &["0.99"],
        ),
    ],
    operations: &[
        writes(WRITE, "add one session under a new identifier", 1_000),
        reads(READ, "load one session by its identifier", 10_000),
        writes(
            REQUEST,
            "read a session, change it and write it back; begin one, or delete an expired one",
            2_000,
        ),
    ],
    metrics: &[],
    chart_axis: "payload",
    answer: Answer::Comparison,
    published: Some("session_store.csv"),
};

pub(crate) static SESSION: Experiment = Experiment::new(&INFO, &plan);

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let format = Format::new(cell, dataset.seed)?;
    let payload = cell.number("payload")?;
    let bytes = match cell.get("store-size") {
        Some(AxisValue::Number(bytes)) => Some(*bytes),
        _ => None,
    };
    let usual = || bytes.map_or(RECORDS.min(STORE_BYTES / payload), |bytes| bytes.div_ceil(payload));
    let records = dataset.records.unwrap_or_else(|| usual().max(MIN_RECORDS)).max(1);
    let exponent = cell.word("zipf")?;
    let exponent = exponent
        .parse()
        .map_err(|_| Error::new(ErrorKind::Internal, format!("session: invalid exponent '{exponent}'")))?;
    // Abbreviated, so that the longest fits a name.
    let mut name = format!("kurabe_{}_session_{payload}_", dataset.slot);
    for axis in ["layout", "compress", "encoding", "content", "lengths", "expiry"] {
        name.extend(cell.word(axis)?.chars().take(2));
    }
    name.extend(bytes.map(|bytes| format!("_{bytes}")));
    let read_from = Arc::new(format.collection(format!("{name}_r")));
    let write_to = Arc::new(format.collection(format!("{name}_w")));
    let requested = Arc::new(format.requested(format!("{name}_q")));
    let bind = Bind::parse(cell.word("statement")?)?;
    let stored_bytes = stored_bytes(format)?;
    // What no session is longer than.
    let stored =
        stored_bytes as usize * if format.alike { 1 } else { format.largest().div_ceil(format.payload) };
    let rows = format.rows(stored);
    let value = if format.layout == Layout::Rows { stored.min(PIECE) } else { stored };
    let demand = Demand {
        operations: vec![format.insert(&write_to, rows), format.select(&read_from)],
        capabilities: Vec::from_iter((bind != Bind::Once).then_some(Capability::PreparedStatements)),
        value_bytes: value as u64,
        // Each row adds its identifier, number and time, and a few bytes of framing.
        request_bytes: (stored + rows * 72 + 256) as u64,
        parameters: (rows * write_to.fields.len()) as u64,
        client_bytes: 4 * format.largest() as u64 + 64_000,
        ..Demand::default()
    };
    let mut of_request = request::operations(format.layout, &requested).to_vec();
    of_request.extend(if format.layout == Layout::Rows {
        vec![Operation::Begin, Operation::Commit]
    } else {
        Vec::new()
    });
    let capabilities = Vec::from_iter(format.expires.then_some(Capability::Expiry));
    // Reads and requests have stores of their own, which are loaded when they are measured first.
    let loaded_bytes = records * stored_bytes;
    let of_request = Demand { operations: of_request, capabilities, loaded_bytes, ..Demand::default() };
    let of_read = Demand { loaded_bytes, ..Demand::default() };
    // Cells that wait do not keep the contents of large sessions in memory.
    let make: MakeWorkload = Box::new(move || {
        let [read_from, write_to, requested] = [&read_from, &write_to, &requested].map(Arc::clone);
        let store = format.store();
        Arc::new(SessionWorkload {
            store,
            read_from,
            write_to,
            requested,
            records,
            exponent,
            bind,
            stored_bytes,
        })
    });
    let policy = LoopPolicy { divisible: true, ..axes::policy(cell)? };
    let planned = PlannedCell::of(name, demand, policy, Work::Loop(make));
    let operations = vec![(READ, of_read), (REQUEST, of_request)];
    let pages = Some(Pages { names: &[WRITE, READ], ..Pages::default() });
    Ok(PlannedCell { stored_bytes: Some(stored_bytes), operations, pages, ..planned })
}

/// What the sessions of reads and of requests are like before a trial.
#[derive(Default)]
struct Loaded {
    is_read: bool,
    is_requested: bool,
    /// What the clients of the last trial left of the sessions of requests; `None`: unknown.
    left: Mutex<Option<Vec<Sessions>>>,
}

struct SessionWorkload {
    store: Arc<Store>,
    read_from: Arc<Collection>,
    write_to: Arc<Collection>,
    /// The sessions of requests.
    requested: Arc<Collection>,
    records: u64,
    /// Of Zipf's law.
    exponent: f64,
    bind: Bind,
    stored_bytes: u64,
}

impl SessionWorkload {
    fn writer(&self, collection: &Arc<Collection>, client: Client) -> Result<Write> {
        Write::new(&self.store, collection, self.bind, client)
    }

    /// Reads sessions back and compares them byte for byte with their version; without one they must be gone. Returns how
    /// many it read, and adds the rows that they have.
    fn read_back(
        &self,
        session: &mut dyn Session,
        from: &Arc<Collection>,
        keys: impl Iterator<Item = (u64, Option<u64>)>,
        rows: &mut u64,
    ) -> Result<u64> {
        let mut answer = Returned::new(&self.store)?;
        let keys = keys.map(|(key, version)| (key, version, Ident::of(self.store.seed, key)));
        readback::each(
            session,
            &self.store.select(from),
            self.stored_bytes,
            keys,
            |(_, _, id)| [Value::Text(id.as_str())],
            |(key, version, _), reply| {
                std::mem::swap(&mut answer.reply, reply);
                *rows += answer.reply.rows() as u64;
                let Some(version) = version else {
                    return match answer.reply.rows() {
                        0 => Ok(()),
                        _ => Err(Error::mismatch(format!("session {key} had expired, and is served"))),
                    };
                };
                answer.open(&self.store)?;
                answer.check(&self.store, *key, *version)
            },
        )
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[ClientSummary]) -> Result<Verification> {
        let writes: u64 = done.iter().map(|done| done.completed).sum();
        let rows: u64 = done.iter().map(|done| done.rows_written).sum();
        let counted = check_count(session, &self.write_to, rows, "rows of written sessions")?;
        let keys = done.iter().flat_map(|done| own(0, done.client).take(done.completed as usize));
        let read_back = self
            .read_back(session, &self.write_to, keys.map(|key| (key, Some(0))), &mut 0)
            .map_err(|error| error.context("read back after the trial"))?;
        let counted = counted.map_or(0, |_| writes);
        Ok(Verification { writes, records: writes, counted, read_back, ..Verification::default() })
    }

    /// Loads a collection with the first version of all sessions, and counts them.
    fn fill(&self, to: &Arc<Collection>, session: &mut dyn Session) -> Result<()> {
        let client = Client { index: 0, count: 1, seed: 0, trial: 0 };
        let (mut writer, mut recorder) = (self.writer(to, client)?, Recorder::default());
        writer.attach(session)?;
        fill::in_batches(session, self.records, BATCH, &mut |session, _| {
            writer.prepare_input();
            writer.run(session, &mut recorder)?;
            writer.check(&mut recorder)
        })?;
        let rows = recorder.into_summary(client, self.records).rows_written;
        check_count(session, to, rows, "loaded rows").map(drop)
    }

    /// Has the collection of reads hold all sessions.
    fn load_reads(
        &self,
        state: &mut Loaded,
        namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        if state.is_read {
            return Ok(());
        }
        namespace.create(&self.read_from)?;
        self.fill(&self.read_from, session)?;
        namespace.analyse(&self.read_from)?;
        self.read_back(session, &self.read_from, (0..self.records).map(|key| (key, Some(0))), &mut 0)
            .map_err(|error| error.context("after loading"))?;
        state.is_read = true;
        Ok(())
    }

    fn sessions(&self, client: Client) -> Sessions {
        Sessions::new(self.store.seed, client, self.records, self.exponent)
    }

    /// Has the collection of requests hold the first version of all loaded sessions, and no other: by undoing what the last
    /// trial did, if that is less, or by loading it.
    fn renew(
        &self,
        state: &mut Loaded,
        namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        if !state.is_requested {
            namespace.create(&self.requested)?;
            state.is_requested = true;
            self.fill(&self.requested, session)?;
            return namespace.analyse(&self.requested);
        }
        let left = state.left.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let is_loaded = |key: u64| key < self.records;
        let undo: Vec<(u64, Option<u64>)> = left.iter().flatten().flat_map(Sessions::changed).collect();
        if left.is_none() || self.store.layout == Layout::Rows || undo.len() as u64 >= self.records {
            namespace.clear(&self.requested)?;
            return self.fill(&self.requested, session);
        }
        let mut writer = Writer::new(&self.store, &self.requested, Bind::Once)?;
        writer.attach(session)?;
        fill::in_batches(session, undo.len() as u64, BATCH, &mut |session, n| {
            let (key, version) = undo[n as usize];
            let id = Ident::of(self.store.seed, key);
            writer.set(key, 0);
            match version {
                Some(_) if is_loaded(key) => writer.write(session, id, key, Some(1))?,
                Some(_) => writer.delete(session, id, 1)?,
                None if is_loaded(key) => writer.write(session, id, key, None)?,
                None => return Ok(()),
            }
            writer.check(key)
        })?;
        let what = "sessions after the last trial was undone";
        check_count(session, &self.requested, self.records, what).map(drop)
    }

    /// Waits until the sessions that requests had expire last are not served, and with them all that were before.
    fn await_expiry(&self, session: &mut dyn Session, left: &[Sessions]) -> Result<()> {
        let purge = Purge::attach(session, &self.requested)?;
        let started = Instant::now();
        loop {
            purge.run(session)?;
            let last = left.iter().filter_map(|sessions| sessions.expired.last()).map(|key| (*key, None));
            match self.read_back(session, &self.requested, last, &mut 0) {
                Err(error) if error.kind() == ErrorKind::Mismatch && started.elapsed() < EXPIRY => {
                    thread::sleep(EXPIRY / 100);
                }
                done => return done.map(drop),
            }
        }
    }

    /// Checks what requests left: the number of sessions by the server's count, each session that they changed or began by
    /// its content, and that none that they deleted is there.
    fn check_requests(
        &self,
        state: &Loaded,
        session: &mut dyn Session,
        done: &[ClientSummary],
    ) -> Result<Verification> {
        let left: Vec<Sessions> =
            done.iter().map(|done| self.sessions(done.client).after(done.completed)).collect();
        if self.store.expires {
            self.await_expiry(session, &left).map_err(|error| error.context("after the trial"))?;
        }
        // How many rows a session has is known before it is read only if it has always as many.
        let rows = self.store.rows(self.store.payload) as u64;
        let is_known = self.store.layout == Layout::Blob
            || self.store.alike && self.stored_bytes == self.store.payload as u64;
        let mut read_rows = 0;
        let alive = left.iter().flat_map(|sessions| &sessions.alive);
        let unchanged =
            alive.clone().filter(|(key, version)| !is_known && *version == 0 && *key < self.records);
        let unchanged: Vec<(u64, Option<u64>)> = unchanged.map(|(key, _)| (*key, Some(0))).collect();
        let changed: Vec<(u64, Option<u64>)> = left.iter().flat_map(Sessions::changed).collect();
        let all = changed.iter().chain(&unchanged).copied();
        let read_back = self.read_back(session, &self.requested, all, &mut read_rows);
        let read_back = read_back.map_err(|error| error.context("read back after the trial"))?;
        let expected = if is_known { alive.count() as u64 * rows } else { read_rows };
        check_count(session, &self.requested, expected, "rows of sessions after the requests")?;
        *state.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
        let requests = done.iter().map(|done| done.completed).sum();
        let records = changed.len() as u64;
        Ok(Verification {
            writes: requests,
            answers: requests,
            records,
            read_back,
            ..Verification::default()
        })
    }
}

impl Workload for SessionWorkload {
    fn load(&self, namespace: &mut dyn Namespace, _session: &mut dyn Session) -> Result<DatasetState> {
        namespace.create(&self.write_to)?;
        Ok(DatasetState::new(Loaded::default()))
    }

    fn before(&self, Before { operation, state, namespace, session }: Before<'_>) -> Result<()> {
        match operation {
            WRITE => namespace.clear(&self.write_to),
            REQUEST => self.renew(state.get_mut()?, namespace, session),
            _ => self.load_reads(state.get_mut()?, namespace, session),
        }
    }

    fn transaction(&self, name: &str, _: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        Ok(match name {
            WRITE => Box::new(self.writer(&self.write_to, client)?),
            READ => Box::new(Read::new(&self.store, &self.read_from, self.bind, self.records, client)?),
            REQUEST => {
                Box::new(Request::new(&self.store, &self.requested, self.bind, self.sessions(client))?)
            }
            _ => return Err(no_operation(INFO.name, name)),
        })
    }

    fn after(&self, After { operation, state, session, clients }: After<'_>) -> Result<Checked> {
        Ok(match operation {
            WRITE => self.check_writes(session, clients)?.into(),
            REQUEST => self.check_requests(state.get()?, session, clients)?.into(),
            _ => Checked::default(),
        })
    }
}

/// Bytes of a stored session, the mean over a few: compressed sizes hardly differ.
fn stored_bytes(format: Format) -> Result<u64> {
    let mut codec = format.codec()?;
    if codec.is_plain() {
        return Ok(format.payload as u64);
    }
    let store = format.store();
    let sample = if format.payload > 50_000 { 1 } else { 8 };
    let mut payload = Vec::new();
    let mut sum = 0;
    for key in 0..sample {
        store.write(key, 0, &mut payload);
        sum += codec.encode(&payload)?.len() as u64;
    }
    Ok(sum / sample)
}
