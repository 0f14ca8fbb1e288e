//! The records of a run: spec, targets, cells and trials.
//!
//! A run file (crate `record`) consists of these types. The engine writes them, reports read them.

mod spec;

pub use spec::{
    DEFAULT_MARGIN, MIN_BLOCK, MIN_BLOCKS, MIN_INTERLEAVED_ROUNDS, MIN_TRIAL, RunSpec, Sampled, Setup, Until,
};

use crate::axis::Cell;
use crate::defaults::is_default;
use crate::error::ErrorKind;
use crate::facts::ServerFacts;
use crate::fleet::{AgentRecord, FleetUse};
use crate::metric::{MetricValue, Points};
use crate::observation::Observation;
use crate::origin::Origin;
use crate::query_plan::QueryPlan;
use crate::verification::Verification;
use kurabe_stats::Histogram;
use kurabe_stats::interim::Analyses;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The first line of a run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// The run's name: its start time and the experiment.
    pub run: String,
    /// Its start: seconds since 1970-01-01 UTC.
    pub began: u64,
    /// The version of Kurabe.
    pub kurabe: String,
    /// The command line, without passwords.
    pub command: Vec<String>,
    /// What was requested.
    pub spec: RunSpec,
    /// The client's machine.
    pub machine: MachineFacts,
    /// The targets, in the order of the spec.
    pub targets: Vec<TargetRecord>,
    /// Every cell of every target.
    pub cells: Vec<CellRecord>,
    /// The tool's own cost, measured on `null:` before the first trial.
    pub overhead: Vec<OverheadRecord>,
    /// Warnings before the first trial, about the machine and the servers.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Where the run comes from: its suite, labels and git commit; not written if nothing is known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub origin: Origin,
    /// The agents that run the clients; empty, and not written, without a fleet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentRecord>,
}

/// The client's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// The processor's model.
    pub cpu: String,
    /// Logical processors that the tool may use.
    pub cpus: u64,
    pub memory_bytes: u64,
    /// Operating system and kernel.
    pub system: String,
}

/// A target of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Its unique name in this run: "sqlite", "mysql", "sqlite#2".
    pub name: String,
    /// Its URL, without the password.
    pub url: String,
    /// Its scheme, which selects the driver.
    pub scheme: String,
    /// The server's facts.
    pub facts: ServerFacts,
    /// The clause of its licence that restricts publishing benchmark results, as known when the run was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publishing: Option<PublishingClause>,
}

/// A licence clause that restricts publishing benchmark results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishingClause {
    /// The licence, and the clause's name in it.
    pub name: String,
    /// What it restricts, one sentence.
    pub says: String,
    pub source: String,
}

/// One cell on one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// The target, by position.
    pub target: usize,
    /// The axis values.
    pub axes: Cell,
    /// Whether it is the A/A control of its target: the first cell measured again, which shows the noise floor.
    pub aa_control: bool,
    /// Whether this control runs on a second instance of the server: another process with its own data, of the same
    /// version and settings. Not written if it uses the same server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub second_instance: bool,
    /// Why it cannot be measured, if so.
    pub unavailable: Option<String>,
    /// Why single operations of it cannot be measured, by the operation's name. Not written if there are none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unavailable_operations: BTreeMap<String, String>,
    /// Mean bytes per record sent to the database.
    pub stored_bytes: Option<u64>,
}

impl CellRecord {
    /// Why an operation of it cannot be measured; `None` if it can.
    pub fn refusal(&self, operation: &str) -> Option<&str> {
        let of_operation = self.unavailable_operations.get(operation);
        of_operation.or(self.unavailable.as_ref()).map(String::as_str)
    }
}

/// The tool's own cost per operation, measured on `null:` with the same cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverheadRecord {
    /// The axis values that matter; A/A controls and other targets share it.
    pub axes: Cell,
    pub operation: String,
    /// Wall time per operation in nanoseconds, including the store of `null:`.
    pub ns_per_op: f64,
}

/// A finished trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// The round, from 0.
    pub round: u32,
    /// The cell, by position in the header.
    pub cell: usize,
    pub operation: String,
    /// Its start: milliseconds since the run started.
    pub at_ms: u64,
    pub outcome: Outcome,
    /// Why the trial was repeated: it replaces the earlier record of the same round, cell and operation, which was
    /// disturbed for this reason. `None`, and not written, for other trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_reason: Option<String>,
}

impl TrialRecord {
    /// Whether it has no result.
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }

    /// Its measurement, if it did not fail.
    pub fn measured(&self) -> Option<&Measurement> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Failed { .. } => None,
        }
    }
}

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A measurement, in which every reply was correct.
    Measured(Box<Measurement>),
    /// No result.
    Failed {
        kind: ErrorKind,
        /// The reason, for people.
        reason: String,
        /// The number of wrong replies.
        mismatches: u64,
    },
}

/// A resumption of the run: one line per `resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resumption {
    /// Its time: seconds since 1970-01-01 UTC.
    pub began: u64,
    /// Trials recorded before.
    pub trials_before: u64,
    /// The new maximum number of rounds; `None`, and not written: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rounds: Option<u32>,
    /// The version of Kurabe that resumed the run.
    pub kurabe: String,
    /// The client's machine now.
    pub machine: MachineFacts,
    /// The targets now, in the order of the header.
    pub targets: Vec<TargetRecord>,
}

/// Fewer rounds than planned, since the first ones took too long for the budget: one line each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replanned {
    /// The number of rounds from now on, in all.
    pub rounds: u32,
    /// How often throwaway servers are restarted, in all.
    pub restarts: u32,
}

/// The last line of a run file, unless the run was cut off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The end: milliseconds since the start.
    pub at_ms: u64,
    /// Whether every planned trial was made. Otherwise `resume` can continue.
    pub complete: bool,
}

/// A recorded run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub header: RunHeader,
    /// Its trials, in execution order.
    pub trials: Vec<TrialRecord>,
    /// Its resumptions, in order.
    pub resumptions: Vec<Resumption>,
    pub end: Option<RunEnd>,
}

impl Run {
    /// A run without trials.
    pub fn new(header: RunHeader) -> Self {
        Self { header, trials: Vec::new(), resumptions: Vec::new(), end: None }
    }

    /// Changes its plan to fewer rounds.
    pub fn replan(&mut self, Replanned { rounds, restarts }: Replanned) {
        (self.header.spec.rounds, self.header.spec.restarts) = (rounds, restarts);
    }

    /// Whether it ended as planned. Comparisons are only judged then: an earlier verdict would be an unplanned
    /// analysis and increase the error rate.
    pub fn is_complete(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.complete)
    }

    /// The trials that were measured.
    pub fn measured(&self) -> impl Iterator<Item = (&TrialRecord, &Measurement)> {
        self.trials.iter().filter_map(|trial| Some((trial, trial.measured()?)))
    }

    /// The trials that are the figures of their cells: those that are compared, which are the interleaved ones, or all of a cell
    /// that has none.
    pub fn figures(&self) -> impl Iterator<Item = (&TrialRecord, &Measurement)> {
        let of = |trial: &TrialRecord| (trial.cell, trial.operation.clone());
        let interleaved: BTreeSet<(usize, String)> =
            self.measured().filter(|(_, one)| one.slices > 0).map(|(trial, _)| of(trial)).collect();
        self.measured().filter(move |(trial, one)| one.slices > 0 || !interleaved.contains(&of(trial)))
    }

    /// The maximum numbers of rounds, at the start and at each resumption; empty if the number of rounds is fixed. If
    /// servers are restarted between blocks, the last block is a full one.
    pub fn max_rounds(&self) -> Vec<u32> {
        let spec = &self.header.spec;
        let Some(until) = spec.until else { return Vec::new() };
        let later = self.resumptions.iter().filter_map(|resumption| resumption.max_rounds);
        let most = [until.max_rounds].into_iter().chain(later);
        most.map(|most| most - if spec.restarts > 0 { most % spec.block_length() } else { 0 }).collect()
    }

    /// When it is analysed, if more than once: at the end of a block if servers are restarted between blocks.
    pub fn analyses(&self) -> Option<Analyses> {
        let spec = &self.header.spec;
        let block = if spec.restarts > 0 { spec.block_length() } else { 1 };
        spec.until.map(|_| Analyses::new(spec.rounds, self.max_rounds()).in_blocks_of(block))
    }
}

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
