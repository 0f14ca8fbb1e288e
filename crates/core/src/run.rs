//! What a run is made of, as it is recorded: the spec, the targets, the cells, and the trials.
//!
//! These types are the content of a run file (crate `record`); the engine makes them, the reports read them.

use crate::axis::{AxisValue, Cell};
use crate::custom::CustomWorkload;
use crate::durability::DurabilityClass;
use crate::error::ErrorKind;
use crate::facts::ServerFacts;
use crate::load::Arrivals;
use crate::metric::MetricValue;
use crate::observation::Observation;
use crate::verification::Verification;
use kurabe_stats::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the user asked for: enough to repeat the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The experiment's name.
    pub experiment: String,
    /// The targets as given, passwords left out.
    pub targets: Vec<String>,
    /// The values of every axis.
    pub axes: BTreeMap<String, Vec<AxisValue>>,
    /// The operations measured.
    pub operations: Vec<String>,
    /// Requests per trial by operation, over all clients.
    pub requests: BTreeMap<String, u64>,
    /// The longest that a trial's measured phase may last, in nanoseconds; `None`: only `requests` end it.
    pub duration_ns: Option<u64>,
    /// Whether `duration_ns` was worked out from a time for the whole run rather than asked for.
    pub budget_ns: Option<u64>,
    /// Rounds over all cells.
    pub rounds: u32,
    /// The seed of data, order and draws.
    pub seed: u64,
    /// Records in the store; `None`: the experiment's own rule.
    pub records: Option<u64>,
    /// How the arrivals of an open loop are spread; `None`: evenly, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// What the 99th percentile of response times must stay under where the highest rate is asked for, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_ns: Option<u64>,
    /// The longest that connecting, and one answer, may take, in nanoseconds; `None`, and not written: 30 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ns: Option<u64>,
    /// The durability class that every target was made to have; `None`, and not written: each as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityClass>,
    /// The cache in front of every target, its password left out; `None`, and not written: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// The custom workload; `None`, and not written: a built-in experiment.
    #[serde(default, alias = "own", skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomWorkload>,
    /// When further rounds are made after `rounds`; `None`, and not written: none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// The length of a slice, in nanoseconds, where trials are interleaved as far as they can be; `None`, and not written:
    /// they are made one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// How often throwaway servers are restarted, between blocks of rounds; 0, and not written: not at all.
    #[serde(default, skip_serializing_if = "is_none")]
    pub restarts: u32,
}

/// The least time of a trial, where the user does not ask for another. A shorter one is not warmed up in a tenth of its
/// time, and counters that tick a hundred times a second cannot show whether other processes disturbed it.
pub const LEAST_TRIAL: Duration = Duration::from_millis(150);

/// The fewest rounds of which trials are interleaved: the first is made of separate trials, and an interval takes two more.
pub const LEAST_INTERLEAVED_ROUNDS: u32 = 3;

/// The fewest rounds of a block, where servers are restarted between blocks.
pub const LEAST_BLOCK: u32 = 2;

/// What a difference must be to matter, where nobody says otherwise: 5 %.
pub const DEFAULT_MARGIN: f64 = 0.05;

/// Until when rounds are made: each comparison is settled, or one of the ends is reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// A comparison is settled too where the whole interval lies within this relative difference: 0.05 is 5 %.
    pub margin: f64,
    /// No more rounds than these.
    pub max_rounds: u32,
    /// No further rounds once the run has taken, or would with them take, so long, in nanoseconds.
    pub budget_ns: Option<u64>,
}

impl RunSpec {
    /// One round of an experiment on these targets, until each trial's requests are made, and nothing else that may be asked
    /// for: a struct update says what is. The experiment's axes have no values yet, and none of its operations is measured.
    pub fn new(experiment: impl Into<String>, targets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            experiment: experiment.into(),
            targets: targets.into_iter().map(Into::into).collect(),
            axes: BTreeMap::new(),
            operations: Vec::new(),
            requests: BTreeMap::new(),
            duration_ns: None,
            budget_ns: None,
            rounds: 1,
            seed: 1,
            records: None,
            arrivals: None,
            slo_ns: None,
            timeout_ns: None,
            durability: None,
            cache: None,
            custom: None,
            until: None,
            slice_ns: None,
            restarts: 0,
        }
    }

    /// Rounds that count for no speed: the first one, where trials are interleaved in the others.
    fn uncounted(&self) -> u32 {
        u32::from(self.slice_ns.is_some())
    }

    /// How many blocks the rounds are divided into: one more than there are restarts.
    pub fn blocks(&self) -> u32 {
        self.restarts.saturating_add(1)
    }

    /// The block of a round, from 0. All have as many rounds that count; the first has the one that does not, too.
    pub fn block(&self, round: u32) -> u32 {
        let length = (self.rounds.saturating_sub(self.uncounted()) / self.blocks()).max(1);
        (round.saturating_sub(self.uncounted()) / length).min(self.restarts)
    }

    /// The fewest rounds, not fewer than these, of which blocks of equal length can be made.
    pub fn rounds_in_blocks(&self, least: u32) -> u32 {
        if self.restarts == 0 {
            return least;
        }
        let length = least.saturating_sub(self.uncounted()).div_ceil(self.blocks()).max(LEAST_BLOCK);
        length.saturating_mul(self.blocks()).saturating_add(self.uncounted())
    }
}

/// The first line of a run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// The run's name: the time it began and the experiment.
    pub run: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub began: u64,
    /// The version of Kurabe.
    pub kurabe: String,
    /// The command line, passwords left out.
    pub command: Vec<String>,
    /// What was asked for.
    pub spec: RunSpec,
    /// The machine that the client ran on.
    pub machine: MachineFacts,
    /// The targets, in the order of the spec.
    pub targets: Vec<TargetRecord>,
    /// Every cell of every target.
    pub cells: Vec<CellRecord>,
    /// What the tool itself costs, measured on `null:` before the first trial.
    pub overhead: Vec<OverheadRecord>,
    /// What was found before the first trial that may make figures wrong: of the machine, and of the servers.
    #[serde(default)]
    pub cautions: Vec<String>,
}

/// The machine that the client ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// The processor's name.
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
    /// Its name in this run, unlike any other's: "sqlite", "mysql", "sqlite#2".
    pub name: String,
    /// Its URL, password left out.
    pub url: String,
    /// Its scheme: which driver.
    pub scheme: String,
    /// What the server says of itself.
    pub facts: ServerFacts,
    /// The clause of its licence that restricts publishing results of benchmarks, as it was known when the run was
    /// made. Older files do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publishing: Option<PublishingClause>,
}

/// A clause of a licence that restricts publishing results of benchmarks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishingClause {
    /// The licence, and the clause's name in it.
    pub name: String,
    /// What it restricts, one sentence.
    pub says: String,
    /// Where it is published.
    pub source: String,
}

/// One cell on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// Which target, by position.
    pub target: usize,
    /// The axis values.
    pub axes: Cell,
    /// Whether it is the repeat of its target's first cell (A/A): the same cell again, which shows the noise floor.
    pub aa_control: bool,
    /// Whether this repeat is measured on a second start of the server: another process with its own data, of the same
    /// version and settings. Not written where it is measured on the same server.
    #[serde(default, skip_serializing_if = "is_false")]
    pub second_instance: bool,
    /// Why it cannot be measured, where it cannot.
    pub unavailable: Option<String>,
    /// Mean bytes handed to the database for one record.
    pub stored_bytes: Option<u64>,
}

/// What the tool itself costs per operation, measured on `null:` with the same cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverheadRecord {
    /// The axis values that matter to it; the repeat and other targets share it.
    pub axes: Cell,
    /// The operation.
    pub operation: String,
    /// Wall time per operation, in nanoseconds: everything, the store of `null:` included.
    pub ns_per_op: f64,
}

/// One trial, as it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Which round, from 0.
    pub round: u32,
    /// Which cell, by position in the header.
    pub cell: usize,
    /// Which operation.
    pub operation: String,
    /// When it began: milliseconds since the run began.
    pub at_ms: u64,
    /// What came out.
    pub outcome: Outcome,
    /// Why it was made again: it takes the place of the earlier record of the same round, cell and operation, which was
    /// disturbed for this reason. `None`, and not written, for a trial made once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_reason: Option<String>,
}

/// What came out of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was measured, and every answer was right.
    Measured(Box<Measurement>),
    /// It has no figures.
    Failed {
        /// What kind of failure.
        kind: ErrorKind,
        /// The reason, for people.
        reason: String,
        /// Answers that were not what they had to be.
        mismatches: u64,
    },
}

/// The figures of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Clients that took part.
    pub clients: u64,
    /// Transactions begun in the measured phase: `completed + failed + dropped`.
    pub offered: u64,
    /// Transactions completed, each answer right.
    pub completed: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Transactions that were due and never begun (open loop).
    pub dropped: u64,
    /// Transactions repeated after an error that asks for it; not among `offered`.
    pub retries: u64,
    /// Transactions before the measured phase: executed, verified, in no figure.
    pub warmup: u64,
    /// The measured phase, in nanoseconds. Closed loop: the mean, over clients that had anything to do, of the time from
    /// their common start to when each had made and checked its last transaction; where a client starved, the time in which
    /// `completed` transactions are made at the throughput without it (`engine::throughput`). Open loop: the time over which
    /// transactions were due, or until the last answer where that came later.
    pub elapsed_ns: u64,
    /// CPU time of the whole process in the measured phase, in nanoseconds.
    pub client_cpu_ns: u64,
    /// Service times, in nanoseconds.
    pub service: Histogram,
    /// What an open loop shows beside; `None` for a closed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenLoop>,
    /// Median time of one check of an answer, in nanoseconds, from one in 64 of them: a sample that the scheduler
    /// interrupted would make nonsense of a mean.
    pub verify_ns_per_op: f64,
    /// What was proven of its answers and writes, warm-up included; `None` in files of versions that did not say how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verification>,
    /// How many records a trial may change, where this one ended because it had changed each of them once; `None`, and
    /// not written, where its requests or its time ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted: Option<u64>,
    /// Time to prepare the trial and to check it afterwards, in nanoseconds.
    pub overhead_ns: u64,
    /// What client, server and machine did meanwhile; `None` where nobody looked, as in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Box<Observation>>,
    /// Values of metrics that not every trial has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricValue>,
    /// Transactions completed in each of some equal parts of the measured phase, which show whether it was steady; none
    /// in an open loop, where they are too few, and in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<u64>,
    /// How many slices it was made in, interleaved with other trials; 0, and not written, for one that had the machine to
    /// itself from beginning to end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slices: u64,
    /// How long Kurabe itself stood still in the measured phase, in nanoseconds; 0, and not written, for almost every
    /// trial. Another trial is made in the place of one that has it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stood_still_ns: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_none(n: &u32) -> bool {
    *n == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_false(yes: &bool) -> bool {
    !yes
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What an open loop shows beside service times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Transactions due per second. Where the highest rate was asked for: the one found.
    pub rate: f64,
    /// Response times, in nanoseconds: from when a transaction was due to its end. One that was dropped counts with
    /// the time for which it had waited, so that a stall shows as one.
    pub response: Histogram,
    /// Dispatch lag, in nanoseconds: how late the tool began a transaction for which a client stood ready. It is the
    /// tool's own fault, and part of the response time.
    pub lag: Histogram,
    /// The time over which transactions were due, in nanoseconds.
    pub due_ns: u64,
    /// The most transactions that were due and not begun at once while every client was waiting for an answer, the one
    /// begun next among them; 0 where a client always stood ready.
    pub backlog: u64,
    /// Trials that it took to find the highest rate; 0 where the rate was given.
    pub probes: u32,
}

impl Measurement {
    /// Completed transactions per second of the measured phase.
    pub fn ops_per_second(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.completed as f64 * 1e9 / self.elapsed_ns as f64 }
    }

    /// Whether the load of an open loop was served as it came: nothing was dropped, and the last answers came no
    /// later behind the last transactions due than answers took anyway. Always so in a closed loop.
    pub fn kept_up(&self) -> bool {
        /// How far the time for the load may go beyond the time over which it was due: this part of it, …
        const BEYOND: f64 = 1.01;
        /// … and so many nanoseconds, which a scheduler may take.
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

/// That a stopped run goes on, and with what: one line at each `resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resumption {
    /// When it went on: seconds since 1970-01-01 UTC.
    pub began: u64,
    /// Trials recorded before.
    pub trials_before: u64,
    /// The most rounds that are allowed from now on, in place of what was said before; `None`, and not written: as
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rounds: Option<u32>,
    /// The version of Kurabe that goes on.
    pub kurabe: String,
    /// The machine that the client runs on now.
    pub machine: MachineFacts,
    /// The targets as they are now, in the order of the header.
    pub targets: Vec<TargetRecord>,
}

/// The last line of a run file, where the run was not cut off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// When it ended: milliseconds since it began.
    pub at_ms: u64,
    /// Whether every planned trial was made; otherwise `resume` can go on.
    pub complete: bool,
}

/// A run as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// How it began.
    pub header: RunHeader,
    /// Its trials, in the order in which they were made.
    pub trials: Vec<TrialRecord>,
    /// When it was stopped and went on, in order.
    pub resumptions: Vec<Resumption>,
    /// How it ended, where it did.
    pub end: Option<RunEnd>,
}

impl Run {
    /// A run that has begun: no trial was made.
    pub fn new(header: RunHeader) -> Self {
        Self { header, trials: Vec::new(), resumptions: Vec::new(), end: None }
    }

    /// Whether it ended as planned. Only then are its comparisons judged: a verdict before would be one more analysis,
    /// which the plan did not pay for.
    pub fn is_complete(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.complete)
    }

    /// The most rounds that were allowed when it began and at each resumption, in order; none where they were fixed.
    pub fn max_rounds(&self) -> Vec<u32> {
        let Some(until) = self.header.spec.until else { return Vec::new() };
        let later = self.resumptions.iter().filter_map(|resumption| resumption.max_rounds);
        [until.max_rounds].into_iter().chain(later).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(rounds: u32, restarts: u32, slice_ns: Option<u64>) -> Vec<u32> {
        let spec = RunSpec { rounds, slice_ns, restarts, ..RunSpec::new("x", ["null:"]) };
        (0..rounds).map(|round| spec.block(round)).collect()
    }

    #[test]
    fn blocks_have_as_many_rounds_that_count() {
        assert_eq!(blocks(4, 0, None), [0, 0, 0, 0]);
        assert_eq!(blocks(6, 1, None), [0, 0, 0, 1, 1, 1]);
        assert_eq!(blocks(7, 2, Some(1)), [0, 0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn rounds_are_made_as_many_as_fill_blocks() {
        for slice_ns in [None, Some(1)] {
            for restarts in 1..6 {
                for least in 0..20 {
                    let spec = RunSpec { slice_ns, restarts, ..RunSpec::new("x", ["null:"]) };
                    let rounds = spec.rounds_in_blocks(least);
                    let skipped = usize::from(slice_ns.is_some());
                    let found = blocks(rounds, restarts, slice_ns).split_off(skipped);
                    let lengths: Vec<usize> = found.chunk_by(|a, b| a == b).map(<[u32]>::len).collect();
                    assert!(rounds >= least && lengths.len() as u32 == restarts + 1, "{found:?}");
                    assert!(
                        lengths[0] >= 2 && lengths.iter().all(|length| *length == lengths[0]),
                        "{found:?}"
                    );
                    assert_eq!(spec.rounds_in_blocks(rounds), rounds);
                }
            }
        }
    }
}
