//! What a process that ran a part of a trial's clients recorded, as it is sent.

use crate::clients::client::{Tally, Times};
use crate::clients::open::OpenTimes;
use crate::trial::spans::Spans;
use crate::trial::tail::Tail;
use crate::trial::{Executed, Failure};
use kurabe_core::metric::Metric;
use kurabe_core::observation::Observation;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::Histogram;
use serde::{Deserialize, Serialize};

/// What the clients of one process recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct PartResult {
    /// Each client.
    pub clients: Vec<ClientResult>,
    /// What is added up over them.
    pub sums: Sums,
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

/// What is added up over the clients of one process. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sums {
    pub(crate) warmup: u64,
    pub(crate) offered: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) retries: u64,
    pub(crate) exhausted: bool,
    pub(crate) service: Histogram,
    pub(crate) checks: Histogram,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<Histogram>,
    /// The course of the percentile: the binary logarithm of a part's length, and the counts that are not zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tail: Option<(u32, Vec<(u32, u32)>)>,
    /// Counts and total times of what connections cost.
    pub(crate) connections: Vec<(u64, u64)>,
    /// Name, count and total time of each span.
    pub(crate) spans: Vec<(String, u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) open: Option<OpenSums>,
    /// The threads that shared the clients; `None`: each had its own.
    pub(crate) threads: Option<usize>,
    /// CPU time of the process.
    pub(crate) cpu_ns: u64,
    pub(crate) observed: Option<Box<Observation>>,
    pub(crate) stood_still_ns: u64,
    pub(crate) stood_still_in_all_ns: u64,
    /// How much later than ordered the clients were started.
    pub late_ns: u64,
}

/// The results of an open loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenSums {
    response: Histogram,
    lag: Histogram,
    backlog: u64,
    dropped: u64,
    last_end: u64,
}

impl PartResult {
    /// What the clients of an executed trial recorded.
    ///
    /// # Errors
    /// The first error of a client; a wrong reply precedes others.
    pub(crate) fn of(executed: Executed) -> Result<Self, Failure> {
        let Executed { totals, cpu, threads, observed, stood_still, stood_still_in_all, late, .. } = executed;
        if let Some(error) = totals.error {
            return Err(Failure { error, mismatches: totals.mismatches, stood_still: stood_still_in_all });
        }
        let mut timelines = totals.clients.into_iter();
        let clients = totals.clients_done.iter().map(|done| {
            // In an open loop clients have no timelines.
            let (timeline, (elapsed_ns, measured)) = timelines
                .next()
                .map_or_else(Default::default, |(timeline, end)| (timeline.into_points(), end));
            let (index, completed, rows_written) = (done.client.index, done.completed, done.rows_written);
            ClientResult { index, completed, rows_written, elapsed_ns, measured, timeline }
        });
        let clients = clients.collect();
        let tally = totals.tally;
        let times = tally.times.map_or_else(Times::default, |times| *times);
        let OpenTimes { response, lag, backlog, dropped, last_end } = totals.open_loop;
        let open = totals.is_open.then_some(OpenSums { response, lag, backlog, dropped, last_end });
        let sums = Sums {
            warmup: tally.warmup,
            offered: tally.offered,
            completed: tally.completed,
            failed: tally.failed,
            retries: tally.retries,
            exhausted: tally.exhausted,
            service: times.service,
            checks: times.checks,
            tail: times.tail.sums(),
            queue: times.queue.map(|queue| *queue),
            connections: tally.connections.sums(),
            spans: tally.spans.sums(),
            open,
            threads,
            cpu_ns: cpu.as_nanos() as u64,
            observed: observed.map(Box::new),
            stood_still_ns: stood_still.as_nanos() as u64,
            stood_still_in_all_ns: stood_still_in_all.as_nanos() as u64,
            late_ns: late.as_nanos() as u64,
        };
        Ok(Self { clients, sums })
    }
}

impl Sums {
    /// As the sum over clients of this process. `spans` are the experiment's metrics, by whose names spans are known.
    ///
    /// # Errors
    /// [`Protocol`](ErrorKind::Protocol) if a span or a cost has no such name.
    pub(crate) fn tally(&self, spans: &'static [Metric]) -> Result<Tally> {
        let unknown = |what: &str| Error::new(ErrorKind::Protocol, format!("an unknown {what} was sent"));
        let connections = crate::clients::connections::Connections::of_sums(&self.connections)
            .ok_or_else(|| unknown("cost"))?;
        let spans = Spans::of_sums(&self.spans, spans).ok_or_else(|| unknown("span"))?;
        let tail = self.tail.as_ref().map(|(length, counts)| Tail::of_sums(*length, counts));
        let times = Times {
            tail: tail.unwrap_or(Some(Tail::default())).ok_or_else(|| unknown("part of the time"))?,
            service: self.service.clone(),
            checks: self.checks.clone(),
            queue: self.queue.clone().map(Box::new),
            // The totals have it.
            open_loop: None,
            kept: None,
        };
        Ok(Tally {
            warmup: self.warmup,
            offered: self.offered,
            completed: self.completed,
            failed: self.failed,
            retries: self.retries,
            times: Some(Box::new(times)),
            connections,
            spans,
            exhausted: self.exhausted,
        })
    }

    /// The results of an open loop.
    pub(crate) fn open_loop(&self) -> Option<OpenTimes> {
        let OpenSums { response, lag, backlog, dropped, last_end } = self.open.clone()?;
        Some(OpenTimes { response, lag, backlog, dropped, last_end })
    }
}
