//! The results of one trial.

use crate::defaults::is_default;
use crate::fleet::FleetUse;
use crate::metric::{MetricValue, Points};
use crate::observation::Observation;
use crate::query_plan::QueryPlan;
use crate::verification::Verification;
use kurabe_stats::Histogram;
use serde::{Deserialize, Serialize};

/// The results of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The number of clients.
    pub clients: u64,
    /// Transactions started in the measured phase: `completed + failed + dropped`.
    pub offered: u64,
    /// Completed transactions with correct replies.
    pub completed: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Transactions that were due and never started (open loop).
    pub dropped: u64,
    /// Retries after errors that ask for a retry; not part of `offered`.
    pub retries: u64,
    /// Warm-up transactions: executed and verified, not part of any other result.
    pub warmup: u64,
    /// The measured phase in nanoseconds. Closed loop: the mean over clients of the time from their common start to
    /// the end of each one's last transaction. If a client starved: the time for `completed` transactions at the
    /// throughput until the median end (`engine::trial::throughput`). Open loop: the time over which transactions were due, or until
    /// the last reply if that came later.
    pub elapsed_ns: u64,
    /// CPU time of the whole process in the measured phase, in nanoseconds.
    pub client_cpu_ns: u64,
    /// Service times, in nanoseconds.
    pub service: Histogram,
    /// The additional results of an open loop; `None` for a closed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenLoop>,
    /// Median time of checking a reply, in nanoseconds; one in 64 checks is timed. A mean would be distorted by
    /// interrupted samples.
    pub verify_ns_per_op: f64,
    /// How replies and writes were verified, including warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verification>,
    /// The number of records that a trial may change, if this one ended because it had changed each of them; `None`,
    /// and not written, otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted: Option<u64>,
    /// Whether the server had memory for no more than these; not written if it had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_full: bool,
    /// Time to prepare and verify the trial, in nanoseconds.
    pub overhead_ns: u64,
    /// Observations of client, server and machine; `None` without an observer, and of interleaved trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Box<Observation>>,
    /// Of an interleaved trial: the client, the servers and the machine while all trials of its group ran; `None`, and not
    /// written, without an observer, and of continuous trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_group: Option<Box<Observation>>,
    /// Values of metrics that not every trial has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricValue>,
    /// Points of metrics that have many values in one trial; empty, and not written, for most trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Points>,
    /// How the server executed statements; empty, and not written, for most trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<QueryPlan>,
    /// Transactions completed in equal parts of the time in which all clients ran, to judge whether it was steady; empty
    /// in an open loop, or if there are too few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<u64>,
    /// That time in nanoseconds, from the start of the measured phase until the first client ended; 0 if there are no
    /// windows, or if it was not recorded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub windows_ns: u64,
    /// The 99th percentile over the course of the measured phase; `None`, and not written, for jobs, interleaved trials
    /// and trials with few transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailCourse>,
    /// The number of its slices, if it was interleaved; 0, and not written, for separate trials.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slices: u64,
    /// The number of its slices that do not count, because Kurabe itself stood still in them; 0, and not written, for nearly
    /// all trials. Their transactions are counted as warm-up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub void_slices: u64,
    /// How long Kurabe itself stood still in the measured phase, in nanoseconds; 0, and not written, for nearly all
    /// trials. Such a trial is repeated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stood_still_ns: u64,
    /// The number of threads that shared the clients; 0, and not written: each client had its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub threads: u64,
    /// What each agent did; `None`, and not written, without a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Box<FleetUse>>,
}

/// The 99th percentile of times in equal parts of the measured phase: of response times in an open loop, otherwise of
/// service times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailCourse {
    /// The length of a part in nanoseconds. The measured phase may end within the last one.
    pub part_ns: u64,
    /// The percentile in each part in nanoseconds, at most an eighth too high; `None` if fewer than 100 transactions
    /// ended in it.
    pub p99_ns: Vec<Option<u64>>,
}

/// The results of an open loop besides service times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Transactions due per second; in a rate search, the rate that was found.
    pub rate: f64,
    /// Response times in nanoseconds: from when a transaction was due to its end. A dropped transaction counts with
    /// its waiting time, so that a stall is visible.
    pub response: Histogram,
    /// Dispatch lag in nanoseconds: how late the tool started a transaction although a client was idle. It is part of
    /// the response time.
    pub lag: Histogram,
    /// The time over which transactions were due, in nanoseconds.
    pub due_ns: u64,
    /// The maximum number of due transactions that waited while all clients were busy, including the next one; 0 if a
    /// client was always idle.
    pub backlog: u64,
    /// The number of trials of the rate search; 0 for a given rate.
    pub probes: u32,
}

impl Measurement {
    /// Throughput of the measured phase, in transactions per second.
    pub fn ops_per_second(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.completed as f64 * 1e9 / self.elapsed_ns as f64 }
    }

    /// The time that the windows cover together, in nanoseconds. Where it was not recorded, it is taken for the measured
    /// phase.
    pub fn windows_time_ns(&self) -> u64 {
        if self.windows_ns == 0 { self.elapsed_ns } else { self.windows_ns }
    }

    /// Whether an open loop's load was served: nothing was dropped, and the last replies came no later than usual
    /// after the last due transaction. Always true in a closed loop.
    pub fn kept_up(&self) -> bool {
        /// The tolerance for the time of the load, as a factor, …
        const BEYOND: f64 = 1.01;
        /// … and in nanoseconds, for scheduling delays.
        const SLACK: f64 = 2e7;
        let Some(open) = &self.open else { return true };
        let longest = self.service.max().unwrap_or(0);
        self.dropped == 0
            && self.elapsed_ns.saturating_sub(longest) as f64 <= (open.due_ns as f64).mul_add(BEYOND, SLACK)
    }

    /// CPU time of the client per completed transaction, in microseconds.
    pub fn client_cpu_us_per_op(&self) -> f64 {
        if self.completed == 0 { 0.0 } else { self.client_cpu_ns as f64 / 1e3 / self.completed as f64 }
    }
}
