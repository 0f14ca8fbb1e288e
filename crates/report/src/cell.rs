//! The results of cells.

use crate::attribution::{Attribution, Bottleneck};
use crate::detail::Detail;
use crate::target::TargetId;
use crate::verdict::as_mean;
use kurabe_core::axis::Cell;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::metric::{Better, Points, RESPONSE_P99, Source, THROUGHPUT, Unit};
use kurabe_core::observation::Observation;
use kurabe_core::query_plan::QueryPlan;
use kurabe_core::stats_probe::{Counter, CounterScope, WaitState};
use kurabe_core::verification::Verification;
use kurabe_stats::{Estimate, Histogram};
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZero;

/// A metric of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricInfo {
    pub name: String,
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Whether it answers the experiment's question.
    pub primary: bool,
    /// A description, as a clause; empty if unknown.
    pub about: String,
    /// Where its values come from.
    #[serde(skip)]
    pub(crate) source: Source,
}

/// A metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricResult {
    /// The metric's name.
    pub name: String,
    pub unit: Unit,
    /// The mean over the rounds: the quotient of two cells is their ratio.
    #[serde(flatten)]
    pub figure: Estimate,
    /// The values by round: of interleaved trials if there are any.
    #[serde(skip)]
    pub(crate) by_round: BTreeMap<u32, f64>,
}

/// Whether a cell has results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It was measured, and every reply was correct.
    Ok,
    /// A trial of it failed: it has no results.
    Failed,
    /// It could not be measured, or was not.
    #[default]
    Unavailable,
}

/// The results of one cell and operation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CellResult {
    /// The target.
    pub target: TargetId,
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// The value of each axis.
    pub axes: Cell,
    pub operation: String,
    /// Whether there are results.
    pub status: Status,
    /// Why there are none.
    pub reason: Option<String>,
    /// Throughput: the mean of the rounds with its interval. Rates, times and the client's CPU time are of the
    /// trials that are compared: the quotient of two cells is their ratio. Only a trial that has the machine to itself can be
    /// observed by itself: bottleneck, counters, sessions and the server's CPU time are of continuous trials.
    #[serde(serialize_with = "as_mean")]
    pub ops_per_second: Option<Estimate>,
    /// The rate of its continuous trials, which have the machine to themselves; absent if its rate is of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_per_second: Option<f64>,
    /// Service times over all compared trials, in microseconds.
    pub latency_us: Option<Latency>,
    /// The additional results of an open loop; absent for a closed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoopResult>,
    /// CPU time of the client per transaction, in microseconds.
    pub client_cpu_us_per_op: Option<f64>,
    /// CPU time of the server's processes per transaction, in microseconds, over the trials in which they were
    /// observed, including all tiers. Absent if they were not observed, and for an embedded database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_per_op: Option<f64>,
    /// Time to check a reply, in nanoseconds per transaction.
    pub verify_ns_per_op: Option<f64>,
    /// The same as a share of the client's CPU time: 0.02 is 2 %.
    pub verify_share: Option<f64>,
    /// The tool's own overhead for this cell, in nanoseconds per operation.
    pub overhead_ns_per_op: Option<f64>,
    /// How replies and writes were verified, over all rounds and warm-up.
    pub verified: Verified,
    /// Failed transactions in trials with results.
    pub failed_operations: u64,
    /// Retried transactions.
    pub retries: u64,
    /// What an acknowledged write survives on this target.
    pub durability: Option<DurabilityClass>,
    /// Its metrics, in the order of the run's.
    pub metrics: Vec<MetricResult>,
    /// The points of its last round, for metrics that have many values in one trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Points>,
    /// How the server executes its statements, in the last round; absent if that was not asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<QueryPlan>,
    /// The bottleneck with its evidence; absent without observations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// The observations of each continuous trial, in order, without the time series of the run file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<Observation>,
    /// The increases of the server's counters, if it reports them, with its own names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterResult>,
    /// Wait states of the clients' sessions, as reported by the server, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionShare>,
    /// Whether its trials were steady; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// The number of rounds that its rates and times are of.
    pub rounds: u32,
    /// The number of those in which its trial was interleaved with others; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interleaved: Option<NonZero<u32>>,
    /// Mean bytes per record sent to the database.
    pub stored_bytes: Option<u64>,
    /// Whether it is the A/A control of its target.
    pub aa_control: bool,
    /// Whether this control ran on a second instance of the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub second_instance: bool,
    /// What instances of its target may make equal cells differ by, as a relative difference of the operation's speed,
    /// beyond the noise of the rounds; `None` if not measured.
    pub noise_floor: Option<f64>,
    /// Its metric of speed.
    pub metric: &'static str,
    /// Why its trials should not be relied on: other load on the machine, during the continuous ones or most of the
    /// interleaved ones.
    #[serde(skip)]
    pub(crate) disturbed: Option<String>,
    /// Its cell, by position in the run's header.
    #[serde(skip)]
    pub(crate) record: usize,
    /// Totals over these rounds, if there are results.
    #[serde(skip)]
    pub(crate) totals: Option<Box<Totals>>,
    /// What pages show on demand, if there are results.
    #[serde(skip)]
    pub(crate) detail: Option<Box<Detail>>,
    /// Its position among the cells of the summary.
    #[serde(skip)]
    pub(crate) index: usize,
}

/// A server counter, over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterResult {
    pub what: Counter,
    /// Its increase, over all rounds.
    pub total: u64,
    /// The increase per operation; including those of the warm-up if the counter includes it.
    pub per_operation: f64,
    /// Its name in the server's own terms; empty if withheld.
    pub from: String,
    /// What it includes.
    pub scope: CounterScope,
}

/// The wait states of the clients' sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionShare {
    /// The share of all samples.
    pub share: f64,
    pub wait_state: WaitState,
    /// The state in the server's own terms.
    pub state: String,
    /// The wait event in the server's own terms; empty if there is none.
    pub event: String,
    /// The statement; empty if there is none.
    pub statement: String,
}

/// Totals over all rounds of a cell and operation.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    /// The number of clients.
    pub(crate) clients: u64,
    /// Completed requests.
    pub(crate) completed: u64,
    /// The total time of all measured phases.
    pub(crate) elapsed_ns: u64,
    /// Service times.
    pub(crate) service: Histogram,
}

impl Totals {
    /// Transactions per second over all rounds together.
    pub(crate) fn pooled(&self) -> f64 {
        self.completed as f64 * 1e9 / (self.elapsed_ns as f64).max(1.0)
    }
}

/// The cells of an operation that reports show.
pub(crate) fn reported<'a>(cells: &'a [CellResult], operation: &str) -> impl Iterator<Item = &'a CellResult> {
    cells.iter().filter(move |cell| cell.operation == operation && cell.is_reported())
}

/// Of fewer operations, high percentiles are marked.
pub(crate) const FEW_OPERATIONS: u64 = 1_000;
/// Of fewer operations, the 99th percentile is not shown.
pub(crate) const TOO_FEW_OPERATIONS: u64 = 100;

impl CellResult {
    /// The number of operations that its times are of.
    pub(crate) fn timed(&self) -> u64 {
        self.totals.as_ref().map_or(0, |totals| totals.service.count())
    }

    /// Its values of a metric.
    pub fn metric(&self, name: &str) -> Option<&MetricResult> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Whether another one is of the same operation and axis values, and an A/A control if this is one.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.operation, &self.axes, self.aa_control) == (&other.operation, &other.axes, other.aa_control)
    }

    /// Whether it has results and is no A/A control, which reports show as the noise floor only.
    pub(crate) fn is_reported(&self) -> bool {
        self.status == Status::Ok && !self.aa_control
    }

    pub(crate) fn counter(&self, what: Counter) -> Option<&CounterResult> {
        self.counters.iter().find(|counter| counter.what == what)
    }

    /// Service times; response times in an open loop.
    pub(crate) fn times(&self) -> Option<Latency> {
        self.open_loop.map(|open| open.response_us).or(self.latency_us)
    }

    /// Whether the client was saturated, so that the result is a lower bound.
    pub fn is_lower_bound(&self) -> bool {
        self.attribution.as_ref().is_some_and(|found| found.bottleneck == Bottleneck::ClientCpu)
    }

    /// Whether the given rate was not served in some round. That is an outcome, not a result.
    pub fn is_overloaded(&self) -> bool {
        self.metric == RESPONSE_P99.name && self.open_loop.is_some_and(|open| !open.kept_up)
    }

    /// Whether the load generator was so late that response times are invalid.
    pub fn is_generator_late(&self) -> bool {
        let is_late = |open: OpenLoopResult| {
            open.dispatch_lag_p99_us.is_some_and(|lag| lag > LATE * open.response_us.p99)
        };
        self.metric != THROUGHPUT.name && self.open_loop.is_some_and(is_late)
    }
}

/// Whether the trials of a cell were steady.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Steady {
    /// The number of trials with windows.
    pub trials: u32,
    /// Trials whose throughput changed until their end.
    pub never: u32,
    /// Trials that became steady after a faster or slower beginning.
    pub late: u32,
    /// The median factor from first to last quarter of trials that were never steady.
    pub change: Option<f64>,
}

/// The additional results of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OpenLoopResult {
    /// Transactions due per second; in a rate search, the mean of the found rates.
    pub due_per_second: f64,
    /// Response times over all rounds, from when each transaction was due, in microseconds.
    pub response_us: Latency,
    /// Dispatch lag: how late the tool started transactions although a client was idle; the 99th percentile in
    /// microseconds. `None` if no client was ever idle in time.
    pub dispatch_lag_p99_us: Option<f64>,
    /// The maximum number of transactions that waited for a client, in any round.
    pub backlog: u64,
    /// Dropped transactions, which count in the response times.
    pub dropped: u64,
    /// Transactions due, over all rounds.
    pub offered: u64,
    /// Whether the requested load was served: at least 99 % of it, and nothing dropped.
    pub kept_up: bool,
}

/// The share of the response time above which dispatch lag makes it invalid.
const LATE: f64 = 0.1;

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The maximum.
    pub max: f64,
}

/// The verification of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The verification over all trials; `None` if the version that made the run did not record it.
    #[serde(flatten)]
    pub proven: Option<Verification>,
    /// Wrong replies.
    pub mismatches: u64,
}
