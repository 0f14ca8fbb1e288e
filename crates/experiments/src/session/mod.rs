//! E1, a web session store: write and read one session by its identifier.
//!
//! Each cell has its own collections, so that a read can never find the payload of another cell. Writes add sessions
//! with new identifiers to a collection that is empty when a trial begins. Requests of a site have a collection that holds the
//! loaded sessions when a trial begins.

mod request;
mod store;
mod transaction;
mod workload;

use crate::axes::{self, CLIENTS, CONNECTION, STATEMENT, reads, writes};
use crate::prelude::*;
use kurabe_core::planned::{MakeWorkload, Work};
use store::{Format, Layout, PIECE};
use workload::SessionWorkload;

const WRITE: &str = "write";
const READ: &str = "read";
const REQUEST: &str = "request";

/// Default number of sessions in the store: that of E1.
const RECORDS: u64 = 1_000;
/// The maximum payload of a cell, so that forty cells of a megabyte do not fill a disk.
const STORE_BYTES: u64 = 16_000_000;
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
    let pages = Some(ServedPages { names: &[WRITE, READ], ..ServedPages::default() });
    Ok(PlannedCell { stored_bytes: Some(stored_bytes), operations, pages, ..planned })
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
