//! What clients record in a trial: one type for a client, for the clients of a thread, of a process and of a fleet.

use crate::clients::connections::Connections;
use crate::clients::open::OpenTimes;
use crate::interleave::sliced::Kept;
use crate::trial::spans::Spans;
use crate::trial::tail::Tail;
use crate::trial::timeline;
use kurabe_stats::Histogram;
use serde::{Deserialize, Serialize};

/// What some clients recorded. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recorded {
    pub(crate) warmup: u64,
    pub(crate) offered: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) retries: u64,
    /// Whether a client ended the trial because it had changed each of its records.
    pub(crate) exhausted: bool,
    /// `None` if another client of the thread has them.
    pub(crate) times: Option<Box<Times>>,
    pub(crate) connections: Connections,
    /// The spans of the measured transactions.
    pub(crate) spans: Spans,
    /// Each client. A message has some of them.
    pub clients: Vec<ClientResult>,
}

/// What one client recorded. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientResult {
    /// Its number among all clients of the trial.
    pub index: usize,
    /// Transactions that it completed, warm-up included.
    pub completed: u64,
    /// Rows whose insertion the server acknowledged, warm-up included.
    pub rows_written: u64,
    /// From its start to the end of its last transaction.
    pub elapsed_ns: u64,
    /// Transactions that it completed in the measured phase.
    pub measured: u64,
    /// Its progress: times since its start, and transactions completed then; empty in an open loop.
    pub timeline: Vec<(u64, u64)>,
}

impl ClientResult {
    /// Transactions completed at this time.
    pub(crate) fn at(&self, at: f64) -> f64 {
        timeline::at(&self.timeline, at, (self.elapsed_ns, self.measured))
    }
}

/// The times of the measured transactions of one client, or of all clients that share a thread: ten thousand clients
/// with histograms of their own would take more memory than all else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Times {
    pub(crate) service: Histogram,
    pub(crate) checks: Histogram,
    /// How long transactions waited in the queue of their thread; `None` if each client has a thread.
    pub(crate) queue: Option<Box<Histogram>>,
    /// The course of response times of an open loop, otherwise of service times; not of interleaved trials.
    pub(crate) tail: Tail,
    /// The results of an open loop; `None` for a closed loop.
    pub(crate) open_loop: Option<Box<OpenTimes>>,
    /// Of interleaved trials: the times of earlier slices.
    #[serde(skip)]
    pub(crate) kept: Option<Box<Kept>>,
}

impl Recorded {
    /// Adds what other clients recorded.
    pub(crate) fn merge(&mut self, other: Self) {
        self.warmup += other.warmup;
        self.offered += other.offered;
        self.completed += other.completed;
        self.failed += other.failed;
        self.retries += other.retries;
        self.exhausted |= other.exhausted;
        self.connections.merge(&other.connections);
        self.spans.merge(&other.spans);
        self.clients.extend(other.clients);
        let Some(other) = other.times else { return };
        let times = self.times.get_or_insert_default();
        times.service.merge(&other.service);
        times.checks.merge(&other.checks);
        if let Some(queue) = &other.queue {
            times.queue.get_or_insert_default().merge(queue);
        }
        times.tail.merge(&other.tail);
        if let Some(open_loop) = &other.open_loop {
            times.open_loop.get_or_insert_default().merge(open_loop);
        }
    }
}
