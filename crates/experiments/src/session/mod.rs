//! E1, a web session store: write and read one session by its identifier.
//!
//! Each cell has its own collections, so that a read can never find the payload of another cell. Writes add sessions
//! with new identifiers to a collection that is empty when a trial begins.

mod store;
mod transaction;

use crate::axes::{self, CLIENTS, CONNECTION, STATEMENT, reads, writes};
use crate::defect::no_operation;
use crate::fill::{self, check_count};
use crate::ident::{Ident, own};
use crate::prelude::*;
use crate::readback;
use store::{Format, Layout, PIECE, Store};
use transaction::{Read, Returned, Write};

const WRITE: &str = "write";
const READ: &str = "read";

/// Default number of sessions in the store: that of E1.
const RECORDS: u64 = 1_000;
/// The maximum payload of a cell, so that forty cells of a megabyte do not fill a disk.
const STORE_BYTES: u64 = 16_000_000;
/// The minimum number of sessions, so that draws are spread over several.
const MIN_RECORDS: u64 = 16;

static INFO: ExperimentInfo = ExperimentInfo {
    name: "session",
    question: "How should a web application keep its sessions, and in which database?",
    about: "Writes sessions with new identifiers, and reads sessions by identifiers drawn uniformly. Payloads are like \
            serialised session data (or incompressible), stored as one blob or split over rows, compressed by the client \
            or not. As in the published experiments (session_store.csv).",
    axes: &[
        AxisInfo {
            name: "payload",
            help: "bytes of one session",
            kind: AxisKind::size(1, 1_000_000_000),
            default: &["1k", "4k", "10k", "100k", "1m"],
        },
        AxisInfo {
            name: "layout",
            help: "how a session is stored in the database",
            kind: AxisKind::choice(&[
                ("blob", "one row with one large value"),
                ("rows", "rows of 4,000 bytes each, keyed (id, subid)"),
            ]),
            default: &["blob", "rows"],
        },
        AxisInfo {
            name: "compress",
            help: "how the client compresses before it writes",
            kind: AxisKind::choice(&[
                ("none", "not at all"),
                ("gzip", "deflate, level 6"),
                ("zstd", "Zstandard, level 3"),
                ("lz4", "LZ4 block"),
            ]),
            default: &["none", "gzip", "zstd", "lz4"],
        },
        AxisInfo {
            name: "encoding",
            help: "how the bytes are encoded",
            kind: AxisKind::choice(&[
                ("binary", "without encoding, in a binary field"),
                ("base64", "as base64 in a text field, as in the original"),
            ]),
            default: &["binary"],
        },
        AxisInfo {
            name: "content",
            help: "kind of payload, which decides how well it compresses",
            kind: AxisKind::choice(&[
                ("text", "like serialised session data; zstd makes a third of it"),
                ("random", "incompressible"),
            ]),
            default: &["text"],
        },
        AxisInfo {
            kind: AxisKind::choice(&[
                ("once", "once for each connection"),
                ("per-request", "for every request, as in the original"),
            ]),
            ..STATEMENT
        },
        CONNECTION,
        CLIENTS,
    ],
    operations: &[
        writes(WRITE, "add one session under a new identifier", 1_000),
        reads(READ, "load one session by its identifier", 10_000),
    ],
    metrics: &[],
    chart_axis: "payload",
    answer: Answer::Comparison,
    published: Some("session_store.csv"),
};

pub(crate) static SESSION: BuiltIn = BuiltIn::new(&INFO, plan);

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let format = Format::new(cell, dataset.seed)?;
    let payload = cell.number("payload")?;
    let records =
        dataset.records.unwrap_or_else(|| RECORDS.min(STORE_BYTES / payload).max(MIN_RECORDS)).max(1);
    let axes = ["layout", "compress", "encoding", "content"].map(|axis| cell.word(axis));
    let [layout, compress, encoding, content] = axes;
    let name = format!(
        "kurabe_{}_session_{payload}_{}_{}_{}_{}",
        dataset.slot, layout?, compress?, encoding?, content?
    );
    let read_from = Arc::new(format.collection(format!("{name}_r")));
    let write_to = Arc::new(format.collection(format!("{name}_w")));
    let bind = Bind::parse(cell.word("statement")?)?;
    let stored_bytes = stored_bytes(format)?;
    let stored = stored_bytes as usize;
    let rows = format.rows(stored);
    let value = if format.layout == Layout::Rows { stored.min(PIECE) } else { stored };
    let demand = Demand {
        operations: vec![format.insert(&write_to, rows), format.select(&read_from)],
        capabilities: Vec::from_iter((bind != Bind::Once).then_some(Capability::PreparedStatements)),
        value_bytes: value as u64,
        // Each row adds its identifier, number and time, and a few bytes of framing.
        request_bytes: (stored + rows * 72 + 256) as u64,
        parameters: (rows * write_to.fields.len()) as u64,
        loaded_bytes: records * stored_bytes,
        client_bytes: 4 * payload + 64_000,
        ..Demand::default()
    };
    // Cells that wait do not keep the contents of large sessions in memory.
    let make = move || {
        let (store, read_from, write_to) = (format.store(), Arc::clone(&read_from), Arc::clone(&write_to));
        Arc::new(SessionWorkload { store, read_from, write_to, records, bind, stored_bytes })
    };
    let policy = LoopPolicy { divisible: true, ..axes::policy(cell)? };
    let planned = PlannedCell::served(name, demand, policy, make);
    Ok(PlannedCell { stored_bytes: Some(stored_bytes), ..planned })
}

struct SessionWorkload {
    store: Arc<Store>,
    read_from: Arc<Collection>,
    write_to: Arc<Collection>,
    records: u64,
    bind: Bind,
    stored_bytes: u64,
}

impl SessionWorkload {
    fn writer(&self, collection: &Arc<Collection>, client: Client) -> Result<Write> {
        Write::new(&self.store, collection, self.bind, client)
    }

    /// Reads sessions back and compares them byte for byte. Returns how many it read.
    fn read_back(
        &self,
        session: &mut dyn Session,
        from: &Arc<Collection>,
        keys: impl Iterator<Item = u64>,
    ) -> Result<u64> {
        let mut answer = Returned::new(&self.store)?;
        let keys = keys.map(|key| (key, Ident::of(self.store.seed, key)));
        readback::each(
            session,
            &self.store.select(from),
            self.stored_bytes,
            keys,
            |(_, id)| [Value::Text(id.as_str())],
            |(key, _), reply| {
                std::mem::swap(&mut answer.reply, reply);
                answer.open(&self.store)?;
                answer.check(&self.store, *key)
            },
        )
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[ClientSummary]) -> Result<Verification> {
        let writes: u64 = done.iter().map(|done| done.completed).sum();
        let rows: u64 = done.iter().map(|done| done.rows_written).sum();
        let counted = check_count(session, &self.write_to, rows, |counted| {
            format!("the server counts {counted} rows, but acknowledged {rows} rows of {writes} sessions")
        })?;
        let keys = done.iter().flat_map(|done| own(0, done.client).take(done.completed as usize));
        let read_back = self
            .read_back(session, &self.write_to, keys)
            .map_err(|error| error.context("read back after the trial"))?;
        let counted = counted.map_or(0, |_| writes);
        Ok(Verification { writes, records: writes, counted, read_back, ..Verification::default() })
    }
}

impl Workload for SessionWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        namespace.create(&self.write_to)?;
        namespace.create(&self.read_from)?;
        let client = Client { index: 0, count: 1, seed: 0, trial: 0 };
        let mut writer = self.writer(&self.read_from, client)?;
        let mut recorder = Recorder::default();
        writer.attach(session)?;
        fill::in_batches(session, self.records, |session, _| {
            writer.prepare_input();
            writer.run(session, &mut recorder)?;
            writer.check(&mut recorder)
        })?;
        namespace.analyse(&self.read_from)?;
        let rows = recorder.into_summary(client, self.records).rows_written;
        check_count(session, &self.read_from, rows, |counted| {
            format!("the server counts {counted} rows, but {rows} were loaded")
        })?;
        self.read_back(session, &self.read_from, 0..self.records)
            .map(|_| DatasetState::default())
            .map_err(|error| error.context("after loading"))
    }

    fn before(&self, Before { operation, namespace, .. }: Before<'_>) -> Result<()> {
        if operation == WRITE { namespace.clear(&self.write_to) } else { Ok(()) }
    }

    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>> {
        Ok(self.page(operation, state, client)?)
    }

    fn after(&self, After { operation, session, clients, .. }: After<'_>) -> Result<Checked> {
        let checked = (operation == WRITE).then(|| self.check_writes(session, clients)).transpose()?;
        Ok(checked.unwrap_or_default().into())
    }
}

impl Serve for SessionWorkload {
    fn page(&self, name: &str, _state: &DatasetState, client: Client) -> Result<Box<dyn Page>> {
        Ok(match name {
            WRITE => Box::new(self.writer(&self.write_to, client)?),
            READ => Box::new(Read::new(&self.store, &self.read_from, self.bind, self.records, client)?),
            _ => return Err(no_operation(INFO.name, name)),
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
        store.content.write(key, 0, &mut payload);
        sum += codec.encode(&payload)?.len() as u64;
    }
    Ok(sum / sample)
}
