//! What clients record in a trial: one type for a client, for the clients of a thread, of a process and of a fleet; and
//! what a process records of itself meanwhile.

use crate::clients::connections::Connections;
use crate::trial::course::Course;
use kurabe_core::experiment::{ClientSummary, Span};
use kurabe_core::fleet::FleetUse;
use kurabe_core::job::JobDone;
use kurabe_core::metric::{MetricValue, Unit};
use kurabe_core::observation::Observation;
use kurabe_stats::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

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

/// What the clients of one process recorded, or of several together, and the process itself. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShareResult {
    /// What the clients recorded.
    pub recorded: Recorded,
    /// The threads that shared the clients; `None`: each had its own.
    pub(crate) threads: Option<usize>,
    /// CPU time of the process.
    pub(crate) cpu_ns: u64,
    pub(crate) observed: Option<Box<Observation>>,
    /// How long the process stood still in the measured phase, …
    pub(crate) stood_still_ns: u64,
    /// … and since the first connection.
    pub(crate) stall_total_ns: u64,
    /// How much later than another process had said the clients were started.
    pub late_ns: u64,
}

/// The work of a trial that has ended without an error, not verified yet.
pub(crate) enum Executed {
    Clients(Box<ExecutedClients>),
    Job(Box<ExecutedJob>),
}

/// What a job did.
pub(crate) struct ExecutedJob {
    pub(crate) done: JobDone,
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
    pub(crate) observed: Option<Observation>,
    pub(crate) stood_still: Duration,
}

/// What the clients of a trial did.
pub(crate) struct ExecutedClients {
    /// What the clients recorded, and their processes.
    pub(crate) part: ShareResult,
    /// What the check after the trial needs of each client.
    pub(crate) summaries: Vec<ClientSummary>,
    /// The memory cost of connections on the server, if requested.
    pub(crate) memory: Vec<MetricValue>,
    /// What each agent of a fleet did.
    pub(crate) fleet: Option<Box<FleetUse>>,
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
    /// The course of the measured phase, with the response times of an open loop, otherwise with service times. `None`
    /// before it begins.
    pub(crate) course: Option<Course>,
    /// The results of an open loop; `None` for a closed loop.
    pub(crate) open_loop: Option<Box<OpenTimes>>,
    /// Of interleaved trials: the times of earlier slices.
    #[serde(skip)]
    pub(crate) kept: Option<Box<Kept>>,
}

/// The open-loop results of one client, or of all clients that share a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenTimes {
    pub(crate) response: Histogram,
    pub(crate) lag: Histogram,
    pub(crate) backlog: u64,
    pub(crate) dropped: u64,
    /// When the last transaction ended, in nanoseconds from the start.
    pub(crate) last_end: u64,
}

impl OpenTimes {
    /// Adds the results of other clients.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.response.merge(&other.response);
        self.lag.merge(&other.lag);
        self.backlog = self.backlog.max(other.backlog);
        self.dropped += other.dropped;
        self.last_end = self.last_end.max(other.last_end);
    }
}

/// The times of earlier slices that count. Those of the last slice are apart until it is known whether it is void.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    /// The last slice whose times were kept or dropped.
    slice: u64,
    service: Histogram,
    queue: Histogram,
    course: Option<Course>,
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
        match (&mut times.course, other.course) {
            (Some(course), Some(other)) => course.merge(&other),
            (course, other) => *course = course.take().or(other),
        }
        if let Some(open_loop) = &other.open_loop {
            times.open_loop.get_or_insert_default().merge(open_loop);
        }
    }
}

impl ShareResult {
    /// The number of threads that its clients had.
    pub(crate) fn client_threads(&self) -> usize {
        self.threads.unwrap_or(self.recorded.clients.len())
    }

    /// Adds what another process recorded, except its observation. Each process is a part of the load, so that the longest
    /// standstill counts.
    pub(crate) fn merge(&mut self, other: Self) {
        let threads = self.client_threads() + other.client_threads();
        self.threads = self.threads.or(other.threads).map(|_| threads);
        self.recorded.merge(other.recorded);
        self.cpu_ns += other.cpu_ns;
        self.stood_still_ns = self.stood_still_ns.max(other.stood_still_ns);
        self.stall_total_ns = self.stall_total_ns.max(other.stall_total_ns);
        self.late_ns = self.late_ns.max(other.late_ns);
    }
}

impl Times {
    /// Keeps the times of a slice, or drops them. The first client of the thread does it for all: none of them works in
    /// the next slice before each has ended this one.
    pub(crate) fn settle(&mut self, slice: u64, is_void: bool) {
        let kept = self.kept.get_or_insert_default();
        if kept.slice >= slice {
            return;
        }
        kept.slice = slice;
        if !is_void {
            kept.service.merge(&self.service);
        }
        self.service.clear();
        if let Some(queue) = &mut self.queue {
            if !is_void {
                kept.queue.merge(queue);
            }
            queue.clear();
        }
        if let Some(course) = &mut self.course {
            if !is_void {
                kept.course.get_or_insert_with(|| course.empty()).merge(course);
            }
            course.clear();
        }
    }

    /// The times of all slices that count.
    pub(crate) fn of_counted_slices(mut self) -> Self {
        if let Some(kept) = self.kept.take() {
            let Kept { service, queue, course, .. } = *kept;
            (self.service, self.course) = (service, course);
            self.queue = self.queue.map(|_| Box::new(queue));
        }
        self
    }
}

/// Spans by name, in the order of their first execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Spans(pub(crate) Vec<Span>);

impl Spans {
    pub(crate) fn merge(&mut self, other: &Self) {
        for span in &other.0 {
            match self.0.iter_mut().find(|known| known.name == span.name) {
                Some(sum) => sum.add(span.times, span.took),
                None => self.0.push(span.clone()),
            }
        }
    }

    /// The mean time of each executed span.
    pub(crate) fn metrics(&self) -> Vec<MetricValue> {
        let mean = |span: &Span| {
            let each = span.took.as_nanos() as f64 / span.times as f64;
            MetricValue::new(span.name.clone(), Unit::Nanoseconds, each)
        };
        self.0.iter().filter(|span| span.times > 0).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn span_metric_is_mean_over_all_clients() {
        let span = |name: &'static str, times, us| Span {
            name: name.into(),
            times,
            took: Duration::from_micros(us),
        };
        let mut all = Spans::default();
        all.merge(&Spans(vec![span("read", 3, 30), span("search", 0, 0)]));
        all.merge(&Spans(vec![span("read", 1, 10), span("write", 2, 20)]));
        let found: Vec<(String, f64)> = all.metrics().into_iter().map(|m| (m.name, m.value)).collect();
        assert_eq!(found, [("read".to_owned(), 10_000.0), ("write".to_owned(), 10_000.0)]);
        assert_eq!(Spans::default().metrics(), []);
    }
}
