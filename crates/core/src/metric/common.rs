//! The metrics that every experiment may have, and values of theirs that follow from an observation.

use super::{Better, Metric, MetricValue, Scaling, Source, Unit};
use crate::load::Load;
use crate::observation::{Observation, ServerUse};
use kurabe_stats::Histogram;
use std::time::Duration;

const fn time(name: &'static str, about: &'static str) -> Metric {
    Metric::new(name, Unit::Nanoseconds, Better::Lower, about)
}

const fn memory(name: &'static str, about: &'static str) -> Metric {
    Metric::new(name, Unit::Bytes, Better::Lower, about)
}

const fn count(name: &'static str, about: &'static str) -> Metric {
    Metric::new(name, Unit::Count, Better::Neither, about)
}

/// Completed transactions per second of a closed loop.
pub const THROUGHPUT: Metric =
    Metric::new("throughput", Unit::PerSecond, Better::Higher, "completed transactions per second").primary();
/// Response times at a given rate.
pub const RESPONSE_P99: Metric = time(
    "response p99",
    "99th percentile of response times at a given rate, from when a transaction was due",
)
.primary();
/// The highest rate that meets the objective.
pub const HIGHEST_RATE: Metric = Metric::new(
    "highest rate",
    Unit::PerSecond,
    Better::Higher,
    "the highest rate with a response p99 within the objective",
)
.primary();
pub const SERVICE_P99: Metric = time(
    "service p99",
    "99th percentile of service times; the median of the rounds, where p99 is of all rounds together",
);

/// The metric by which a loop is compared under this load.
pub const fn speed(load: Load) -> &'static Metric {
    match load {
        Load::Closed => &THROUGHPUT,
        Load::Open(_) => &RESPONSE_P99,
        Load::Highest => &HIGHEST_RATE,
    }
}

/// Starved clients: clients that received their last reply long after most others had ended.
pub const STARVED: Metric = count(
    "clients starved",
    "clients whose last answer came later than twice the median of all clients' ends; throughput counts what they had \
     completed by then",
);
pub const CONNECT: Metric = time("connect", "time until a new connection was ready");
/// The part of [`CONNECT`] for reaching the server.
pub const REACH: Metric =
    time("reach", "of that, reaching the server: name lookup, and TCP handshake or Unix socket");
/// The part of [`CONNECT`] for encryption.
pub const TLS: Metric = time("TLS", "of that, negotiating encryption");
/// The part of [`CONNECT`] for authentication.
pub const AUTHENTICATE: Metric = time("auth", "of that, authentication");
/// The part of [`CONNECT`] for the server's own set-up.
pub const SET_UP: Metric = time(
    "set-up",
    "of that, the server's set-up of the session: a thread on MySQL and MariaDB, a process on PostgreSQL; \
     measured by native clients only",
);
/// How often opening a connection waits for the server.
pub const CONNECT_ROUND_TRIPS: Metric = count(
    "connect round trips",
    "how often a new connection waited for the server, after the TCP handshake; native clients only",
);
pub const CLOSE: Metric = time("close", "time to close a connection");
pub const WAIT: Metric = time("wait", "time until the pool provided a connection");

/// Throughput for each processor of the server.
pub const EFFICIENCY: Metric = Metric::new(
    "efficiency",
    Unit::Ratio,
    Better::Neither,
    "throughput divided by that with one processor and by the number of processors; without lower bounds, where the \
     client stopped scaling",
)
.from(Source::Scaling(Scaling::Efficiency));
pub const CONTENTION: Metric = Metric::new(
    "contention",
    Unit::Ratio,
    Better::Neither,
    "σ of the Universal Scalability Law (Gunther 2007): the share of work for which processors wait for each other",
)
.from(Source::Scaling(Scaling::Contention));
pub const COHERENCY: Metric = Metric::new(
    "coherency",
    Unit::Ratio,
    Better::Neither,
    "κ of the same law: the cost of keeping each pair of processors coherent",
)
.from(Source::Scaling(Scaling::Coherency));
/// The wait for a turn of a thread that clients share.
pub const QUEUE: Metric = Metric::new(
    "queue",
    Unit::Nanoseconds,
    Better::Neither,
    "of service times, how long answers had arrived and their client waited for its turn, where clients share a thread",
);
/// The 99th percentile of [`QUEUE`] in a trial.
pub const QUEUE_P99: Metric =
    Metric::new("queue p99", Unit::Nanoseconds, Better::Neither, "of that, the 99th percentile");

/// [`QUEUE`] and [`QUEUE_P99`] of these times; none if there are no times.
pub fn of_queue(times: &Histogram) -> Vec<MetricValue> {
    let p99 = times.quantile(0.99).map(|ns| QUEUE_P99.value(ns as f64));
    times.mean().map(|mean| QUEUE.value(mean)).into_iter().chain(p99).collect()
}

/// Bytes that a job moved.
pub const BYTES: Metric = Metric::new("bytes", Unit::Bytes, Better::Neither, "bytes moved in a trial");

/// [`BYTES`] per second.
pub const DATA_RATE: Metric =
    Metric::new("data per second", Unit::Bytes, Better::Higher, "bytes moved per second, without headers");
/// Bytes on the wire for each byte that a job moved.
pub const WIRE_PER_BYTE: Metric = count(
    "wire bytes per byte",
    "bytes that the client sent and received over TCP for each byte moved; below 1 if the protocol compresses",
);
/// The requests of a job that waited for an answer.
pub const ROUND_TRIPS: Metric = count("round trips", "requests that waited for an answer");
/// CPU time of the client for each megabyte that a job moved.
pub const CLIENT_CPU_PER_MB: Metric =
    time("client CPU per MB", "CPU time of the client for each megabyte (1,000,000 bytes) moved");
/// CPU time of the server for each megabyte that a job moved.
pub const SERVER_CPU_PER_MB: Metric =
    time("server CPU per MB", "CPU time of the server for each megabyte moved");

/// Metrics that every experiment may have.
pub static COMMON: &[Metric] = &[
    THROUGHPUT,
    RESPONSE_P99,
    HIGHEST_RATE,
    SERVICE_P99,
    STARVED,
    CONNECT,
    REACH,
    TLS,
    AUTHENTICATE,
    SET_UP,
    CONNECT_ROUND_TRIPS,
    CLOSE,
    WAIT,
    QUEUE,
    QUEUE_P99,
    BYTES,
    DATA_RATE,
    WIRE_PER_BYTE,
    ROUND_TRIPS,
    CLIENT_CPU_PER_MB,
    SERVER_CPU_PER_MB,
    EFFICIENCY,
    CONTENTION,
    COHERENCY,
    time("application CPU", "CPU time of the application for each request"),
    time("application 1 CPU", "CPU time of the first application for each request of all"),
    time("application 2 CPU", "CPU time of the second application for each request of all"),
    time(
        "database CPU",
        "CPU time for each request of the database behind the application, or of the target if it reads from a remote",
    ),
    time("remote CPU", "CPU time of the remote server for each request"),
];

/// The CPU time of each tier behind the client per request, if there are several tiers. Metrics are named after the
/// tier, with "CPU"; several applications are numbered.
pub fn of_tiers(observed: &Observation, requests: u64) -> Vec<MetricValue> {
    let value = |tier: &crate::observation::TierUse| match &tier.used {
        ServerUse::Seen(seen) => {
            let each = seen.cpu_ns as f64 / requests.max(1) as f64;
            Some(MetricValue::new(format!("{} CPU", tier.name), Unit::Nanoseconds, each))
        }
        ServerUse::InClient | ServerUse::NotObserved(_) => None,
    };
    observed.tiers.iter().filter_map(value).collect()
}

/// What a job that moved this many bytes cost: its rate, and wire bytes and CPU time for each byte, as far as they were
/// observed. Empty if it moved none.
pub fn of_bytes(
    bytes: u64,
    elapsed: Duration,
    client_cpu: Duration,
    observed: Option<&Observation>,
) -> Vec<MetricValue> {
    let (moved, seconds) = (bytes as f64, elapsed.as_secs_f64());
    if bytes == 0 || seconds <= 0.0 {
        return Vec::new();
    }
    let per_mb = |time_ns: f64| time_ns / (moved / 1e6);
    let wire = observed.and_then(|observed| observed.wire);
    let wire = wire.map(|wire| (wire.sent_bytes + wire.received_bytes) as f64 / moved);
    let server = observed.and_then(Observation::server_seen).map(|server| per_mb(server.cpu_ns as f64));
    let values = [
        Some(BYTES.value(moved)),
        Some(DATA_RATE.value(moved / seconds)),
        wire.map(|wire| WIRE_PER_BYTE.value(wire)),
        Some(CLIENT_CPU_PER_MB.value(per_mb(client_cpu.as_nanos() as f64))),
        server.map(|server| SERVER_CPU_PER_MB.value(server)),
    ];
    values.into_iter().flatten().collect()
}

/// The server's memory with all connections of a trial open.
pub const MEMORY: Metric = memory(
    "memory",
    "resident memory of the server's processes with all connections open, shared pages divided among them \
     (PSS); of the client's own where the database is in it; without pages of files, such as programs and \
     libraries, and what the kernel holds for sockets and page tables",
);
/// The increase of the memory since just before the connections were opened.
pub const MEMORY_ADDED: Metric =
    memory("added", "increase of memory since just before the connections were opened");
/// [`MEMORY_ADDED`] per connection.
pub const MEMORY_EACH: Metric = memory("each", "added for each connection");
/// The private part of [`MEMORY_EACH`].
pub const PRIVATE_EACH: Metric = memory("private each", "of that, private memory");
/// The server's processes with all connections open.
pub const PROCESSES: Metric = count("processes", "of the server, with all connections open");
/// The increase of their number since before the connections were opened.
pub const PROCESSES_ADDED: Metric =
    count("processes added", "increase since before the connections were opened");
/// The server's threads with all connections open.
pub const THREADS: Metric = count("threads", "of the server, with all connections open");
/// The increase of their number since before the connections were opened.
pub const THREADS_ADDED: Metric = count("threads added", "increase since before the connections were opened");
