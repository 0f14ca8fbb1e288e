//! What the experiment asks and what it varies.

use crate::axes::{CLIENTS, CONNECTION, STATEMENT, reads, writes};
use crate::prelude::*;

pub(super) const WRITE: &str = "write";
pub(super) const READ: &str = "read";
pub(super) const REQUEST: &str = "request";

pub(super) static INFO: ExperimentInfo = ExperimentInfo {
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
