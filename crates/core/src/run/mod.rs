//! The records of a run: spec, targets, cells and trials.
//!
//! A run file (crate `record`) consists of these types. The engine writes them, reports read them.

mod measurement;
mod spec;

pub use measurement::{Measurement, OpenLoop, TailCourse};
pub use spec::{
    DEFAULT_MARGIN, MIN_BLOCK, MIN_BLOCKS, MIN_INTERLEAVED_ROUNDS, MIN_TRIAL, RunSpec, Sampled, Setup, Until,
};

use crate::axis::Cell;
use crate::defaults::is_default;
use crate::error::ErrorKind;
use crate::facts::ServerFacts;
use crate::fleet::AgentRecord;
use crate::origin::Origin;
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

    /// The trials that are the figures of their cells: those that are compared, which are the interleaved ones, or all of a cell
    /// that has none.
    pub fn figures(&self) -> impl Iterator<Item = (&TrialRecord, &Measurement)> {
        let measured = || {
            self.trials.iter().filter_map(|trial| match &trial.outcome {
                Outcome::Measured(measured) => Some((trial, &**measured)),
                Outcome::Failed { .. } => None,
            })
        };
        let of = |trial: &TrialRecord| (trial.cell, trial.operation.clone());
        let interleaved: BTreeSet<(usize, String)> =
            measured().filter(|(_, one)| one.slices > 0).map(|(trial, _)| of(trial)).collect();
        measured().filter(move |(trial, one)| one.slices > 0 || !interleaved.contains(&of(trial)))
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
