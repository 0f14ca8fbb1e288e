//! The records of a run: spec, targets, cells and trials.
//!
//! A run file (crate `record`) consists of these types. The engine writes them, reports read them.

use crate::axis::{AxisValue, Cell};
use crate::custom::CustomWorkload;
use crate::durability::DurabilityClass;
use crate::error::ErrorKind;
use crate::facts::ServerFacts;
use crate::fleet::{AgentRecord, FleetSpec, FleetUse};
use crate::load::Arrivals;
use crate::metric::{MetricValue, Points};
use crate::observation::Observation;
use crate::origin::Origin;
use crate::question::Question;
use crate::target::is_throwaway;
use crate::threads::ClientThreads;
use crate::verification::Verification;
use kurabe_stats::Histogram;
use kurabe_stats::interim::Analyses;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the user requested; enough to repeat the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The experiment's name.
    pub experiment: String,
    /// The target URLs as given, without passwords.
    pub targets: Vec<String>,
    /// The values of every axis.
    pub axes: BTreeMap<String, Vec<AxisValue>>,
    /// The operations measured.
    pub operations: Vec<String>,
    /// Requests per trial by operation, over all clients.
    pub requests: BTreeMap<String, u64>,
    /// The time limit of a trial's measured phase, in nanoseconds; `None`: only `requests` end it.
    pub duration_ns: Option<u64>,
    /// Whether `duration_ns` was derived from the run's budget.
    pub budget_ns: Option<u64>,
    /// The number of rounds over all cells.
    pub rounds: u32,
    /// The seed of data, order and random inputs.
    pub seed: u64,
    /// Records in the store; `None`: the experiment's default.
    pub records: Option<u64>,
    /// The distribution of arrivals in an open loop; `None`: evenly, or a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The limit for the 99th percentile of response times in a rate search, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_ns: Option<u64>,
    /// The time limit of connecting, and of each reply, in nanoseconds; `None`, and not written: 30 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ns: Option<u64>,
    /// The durability class that was set on every target; `None`, and not written: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityClass>,
    /// Whether the run may fill the memory of servers that then evict values of others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_eviction: bool,
    /// The cache in front of every target, without its password; `None`, and not written: no cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// The second server that `--remote` names, without its password; `None`, and not written: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The custom workload; `None`, and not written: a built-in experiment.
    #[serde(default, alias = "own", skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomWorkload>,
    /// The rule for rounds after `rounds`; `None`, and not written: no more rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// The slice length in nanoseconds if trials are interleaved; `None`, and not written: separate trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// The number of restarts of throwaway servers, between blocks of rounds; 0, and not written: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarts: u32,
    /// Whether each block has a round of continuous trials if the others are interleaved, and rounds that are added later
    /// are further blocks. `false`, and not written, in runs of earlier versions: only the first block has such a round.
    #[serde(default, skip_serializing_if = "is_default")]
    pub full_blocks: bool,
    /// The threads of a trial's clients; `None`, and not written: as [`ClientThreads::shared`] decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<ClientThreads>,
    /// The machines that run the clients; `None`, and not written: this program runs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetSpec>,
    /// What is compared; `None` in runs of earlier versions: targets and all axes, each at the others' first values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
}

/// What a run samples, and so what its verdicts claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampled {
    /// These servers as they ran: the samples are rounds. Another start may be faster or slower.
    #[default]
    TheseServers,
    /// Any start of these servers: the samples are blocks of rounds, between which throwaway servers were restarted.
    AnyStart,
}

/// The smallest number of blocks that say something of any start.
pub const MIN_BLOCKS: u32 = 4;

/// The minimum time of a trial, unless the user sets another. A shorter trial does not warm up in a tenth of its
/// time, and counters with a resolution of 10 ms cannot show disturbances.
pub const MIN_TRIAL: Duration = Duration::from_millis(150);

/// The minimum number of rounds for interleaving: the first round consists of continuous trials, and an interval needs
/// two more.
pub const MIN_INTERLEAVED_ROUNDS: u32 = 3;

/// The minimum number of compared rounds per block, if servers are restarted between blocks.
pub const MIN_BLOCK: u32 = 2;

/// The default margin: differences below 5 % do not matter.
pub const DEFAULT_MARGIN: f64 = 0.05;

/// When to stop adding rounds: when all comparisons are conclusive, or at a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The margin: a comparison is also conclusive if its whole interval lies within this relative difference; 0.05
    /// is 5 %.
    pub margin: f64,
    /// The maximum number of rounds.
    pub max_rounds: u32,
    /// The time limit of the run in nanoseconds. No round is added that would exceed it.
    pub budget_ns: Option<u64>,
}

impl RunSpec {
    /// One round of an experiment on these targets, ended by the number of requests, without any options. Use a
    /// struct update to add some. Axes have no values yet, and no operation is selected.
    pub fn new(experiment: impl Into<String>, targets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            experiment: experiment.into(),
            targets: targets.into_iter().map(Into::into).collect(),
            rounds: 1,
            seed: 1,
            full_blocks: true,
            ..Self::default()
        }
    }

    /// The number of rounds of a block that are not compared: one of continuous trials, if the others are interleaved.
    fn uncompared(&self) -> u32 {
        u32::from(self.slice_ns.is_some())
    }

    /// Whether each trial of a round runs alone and without a pause. Such trials are the figures of their cells. If trials
    /// are interleaved, these are the first round of each block, and the others are compared.
    pub fn is_continuous(&self, round: u32) -> bool {
        let place = if self.full_blocks && self.restarts > 0 { round % self.block_length() } else { round };
        self.slice_ns.is_none() || place == 0
    }

    /// Whether a target is a throwaway server, which Kurabe starts, restarts and removes.
    pub fn is_throwaway(&self, target: usize) -> bool {
        self.targets.get(target).is_some_and(|url| is_throwaway(url))
    }

    /// Whether all targets are: only then can verdicts be of any start.
    pub fn are_throwaway(&self) -> bool {
        self.targets.iter().all(|url| is_throwaway(url))
    }

    /// What its verdicts claim: see [`Sampled`].
    pub fn sampled(&self) -> Sampled {
        if self.blocks() >= MIN_BLOCKS && self.are_throwaway() {
            Sampled::AnyStart
        } else {
            Sampled::TheseServers
        }
    }

    /// The number of blocks: one more than there are restarts. Further rounds are further blocks.
    pub fn blocks(&self) -> u32 {
        self.restarts.saturating_add(1)
    }

    /// The number of rounds of a block.
    pub fn block_length(&self) -> u32 {
        (self.rounds / self.blocks()).max(1)
    }

    /// The block of a round, from 0. All blocks have the same number of compared rounds.
    pub fn block(&self, round: u32) -> u32 {
        if !self.full_blocks {
            let length = (self.rounds.saturating_sub(self.uncompared()) / self.blocks()).max(1);
            return (round.saturating_sub(self.uncompared()) / length).min(self.restarts);
        }
        let last = if self.restarts > 0 && self.until.is_some() { u32::MAX } else { self.restarts };
        (round / self.block_length()).min(last)
    }

    /// The smallest number of rounds, at least `least`, that can be divided into blocks of equal length.
    pub fn rounds_in_blocks(&self, least: u32) -> u32 {
        if self.restarts == 0 {
            return least;
        }
        let length = least.div_ceil(self.blocks()).max(MIN_BLOCK + self.uncompared());
        length.saturating_mul(self.blocks())
    }
}

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
    /// Memory in bytes.
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
    /// Its source.
    pub source: String,
}

/// One cell on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The operation.
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
    /// The operation.
    pub operation: String,
    /// Its start: milliseconds since the run started.
    pub at_ms: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// Why the trial was repeated: it replaces the earlier record of the same round, cell and operation, which was
    /// disturbed for this reason. `None`, and not written, for other trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_reason: Option<String>,
}

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was measured, and every reply was correct.
    Measured(Box<Measurement>),
    /// It has no result.
    Failed {
        /// The kind of the error.
        kind: ErrorKind,
        /// The reason, for people.
        reason: String,
        /// The number of wrong replies.
        mismatches: u64,
    },
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
    /// throughput without it (`engine::throughput`). Open loop: the time over which transactions were due, or until
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

/// Whether a value is the default one, which is not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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
    /// Its header.
    pub header: RunHeader,
    /// Its trials, in execution order.
    pub trials: Vec<TrialRecord>,
    /// Its resumptions, in order.
    pub resumptions: Vec<Resumption>,
    /// Its end, if it ended.
    pub end: Option<RunEnd>,
}

impl Run {
    /// A run without trials.
    pub fn new(header: RunHeader) -> Self {
        Self { header, trials: Vec::new(), resumptions: Vec::new(), end: None }
    }

    /// Whether it ended as planned. Comparisons are only judged then: an earlier verdict would be an unplanned
    /// analysis and increase the error rate.
    pub fn is_complete(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.complete)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(rounds: u32, restarts: u32, slice_ns: Option<u64>) -> RunSpec {
        RunSpec { rounds, slice_ns, restarts, ..RunSpec::new("x", ["null:"]) }
    }

    fn blocks(spec: &RunSpec) -> Vec<u32> {
        (0..spec.rounds).map(|round| spec.block(round)).collect()
    }

    #[test]
    fn blocks_have_equal_numbers_of_compared_rounds() {
        assert_eq!(blocks(&spec(4, 0, None)), [0, 0, 0, 0]);
        assert_eq!(blocks(&spec(6, 1, None)), [0, 0, 0, 1, 1, 1]);
        let interleaved = spec(6, 1, Some(1));
        assert_eq!(blocks(&interleaved), [0, 0, 0, 1, 1, 1]);
        let continuous = |spec: &RunSpec| -> Vec<u32> {
            (0..spec.rounds).filter(|round| spec.is_continuous(*round)).collect()
        };
        assert_eq!(continuous(&interleaved), [0, 3]);
        assert_eq!(continuous(&spec(6, 0, Some(1))), [0]);
        // As recorded by earlier versions.
        let earlier = RunSpec { full_blocks: false, ..spec(7, 2, Some(1)) };
        assert_eq!((blocks(&earlier), continuous(&earlier)), (vec![0, 0, 0, 1, 1, 2, 2], vec![0]));
    }

    #[test]
    fn further_rounds_are_further_blocks() {
        let until = Until { margin: 0.05, max_rounds: 100, budget_ns: None };
        let spec = RunSpec { until: Some(until), ..spec(12, 3, Some(1)) };
        assert_eq!([11, 12, 14, 15].map(|round| spec.block(round)), [3, 4, 4, 5]);
        assert!(spec.is_continuous(12) && !spec.is_continuous(13));
        assert_eq!(RunSpec { restarts: 0, ..spec }.block(99), 0);
    }

    #[test]
    fn rounds_are_rounded_to_full_blocks() {
        for slice_ns in [None, Some(1)] {
            for restarts in 1..6 {
                for least in 0..20 {
                    let mut spec = spec(1, restarts, slice_ns);
                    spec.rounds = spec.rounds_in_blocks(least);
                    let compared = (0..spec.rounds).filter(|r| slice_ns.is_none() || !spec.is_continuous(*r));
                    let found: Vec<u32> = compared.map(|round| spec.block(round)).collect();
                    let lengths: Vec<usize> = found.chunk_by(|a, b| a == b).map(<[u32]>::len).collect();
                    assert!(spec.rounds >= least && lengths.len() as u32 == restarts + 1, "{found:?}");
                    assert!(
                        lengths[0] >= 2 && lengths.iter().all(|length| *length == lengths[0]),
                        "{found:?}"
                    );
                    assert_eq!(spec.rounds_in_blocks(spec.rounds), spec.rounds);
                }
            }
        }
    }
}
