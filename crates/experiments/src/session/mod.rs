//! E1, a web session store: write and read one session by its identifier.
//!
//! Each cell has its own collections, so that a read can never find the payload of another cell. Reads draw uniformly
//! from a loaded store. Writes add sessions with new identifiers to a collection that is empty when a trial begins.
//! Every read is compared byte for byte. Every write is counted on the server and read back.

mod store;
mod transaction;
mod workload;

use crate::axes::{CLIENTS, CONNECTION, STATEMENT};
use crate::prelude::*;

/// The experiment `session`.
pub(crate) struct SessionStore;

/// The name of the operation that adds a session.
const WRITE: &str = "write";
/// The name of the operation that loads a session.
const READ: &str = "read";

static INFO: ExperimentInfo = ExperimentInfo {
    name: "session",
    question: "How should a web application keep its sessions, and in which database?",
    about: "Writes sessions with new identifiers, and reads sessions by identifiers drawn uniformly. Payloads are like \
            serialised session data (or incompressible), stored as one blob or split over rows, compressed by the client \
            or not. After E1 of the published experiments (session_store.csv).",
    axes: &[
        AxisInfo {
            name: "payload",
            help: "bytes of one session",
            kind: AxisKind::Size { least: 1, most: 1_000_000_000 },
            default: &["1k", "4k", "10k", "100k", "1m"],
        },
        AxisInfo {
            name: "layout",
            help: "how a session is stored in the database",
            kind: AxisKind::Choice(&[
                ("blob", "one row with one large value"),
                ("rows", "rows of 4,000 bytes each, keyed (id, subid)"),
            ]),
            default: &["blob", "rows"],
        },
        AxisInfo {
            name: "compress",
            help: "how the client compresses before it writes",
            kind: AxisKind::Choice(&[
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
            kind: AxisKind::Choice(&[
                ("binary", "without encoding, in a binary field"),
                ("base64", "as base64 in a text field, as in the original"),
            ]),
            default: &["binary"],
        },
        AxisInfo {
            name: "content",
            help: "kind of payload, which decides how well it compresses",
            kind: AxisKind::Choice(&[
                ("text", "like serialised session data; zstd makes a third of it"),
                ("random", "incompressible"),
            ]),
            default: &["text"],
        },
        AxisInfo {
            kind: AxisKind::Choice(&[
                ("once", "once for each connection"),
                ("per-request", "for every request, as in the original"),
            ]),
            ..STATEMENT
        },
        CONNECTION,
        CLIENTS,
    ],
    operations: &[
        OperationInfo {
            name: WRITE,
            about: "add one session under a new identifier",
            requests: 1_000,
            writes: true,
        },
        OperationInfo {
            name: READ,
            about: "load one session by its identifier",
            requests: 10_000,
            writes: false,
        },
    ],
    metrics: &[],
    chart_axis: "payload",
    answer: Answer::Comparison,
    published: Some("session_store.csv"),
};

impl Experiment for SessionStore {
    fn info(&self) -> &'static ExperimentInfo {
        &INFO
    }

    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        workload::SessionWorkload::plan(cell, dataset)
    }
}
