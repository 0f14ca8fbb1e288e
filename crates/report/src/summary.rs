//! What is known of a run. Serialised, a [`Summary`] is the JSON report: other programs rely on its members, which
//! `docs/schema/report.schema.json` describes.

use crate::attribution::{Attribution, Bound};
use crate::words::Words;
use kurabe_core::axis::Cell;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::facts::Setting;
use kurabe_core::figure::Figure;
use kurabe_core::observation::Observation;
use kurabe_core::run::{MachineFacts, PublishingClause, RunSpec};
use kurabe_core::verification::Verification;
use kurabe_core::witness::{Doing, Meter, Reach};
use kurabe_stats::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of the JSON report.
pub const REPORT_VERSION: u32 = 1;

/// All that a report says of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The version of this format.
    #[serde(rename = "kurabe-report")]
    pub format: u32,
    /// The run's name.
    pub run: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub began: u64,
    /// The experiment's name.
    pub experiment: String,
    /// The question that the experiment answers, where this version of Kurabe knows it.
    pub question: Option<String>,
    /// The version of Kurabe that made the run.
    pub kurabe: String,
    /// The command line, passwords left out.
    pub command: Vec<String>,
    /// The machine that the client ran on.
    pub machine: MachineFacts,
    /// The seed of data, order and draws.
    pub seed: u64,
    /// What was asked for.
    pub spec: RunSpec,
    /// Whether every planned trial was made.
    pub complete: bool,
    /// After how many rounds the next planned analysis is, where the run has not ended: nothing is compared before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_analysis: Option<u32>,
    /// Rounds in which anything was measured.
    pub rounds: u32,
    /// The largest relative difference that the baseline may have from itself, over all operations and targets;
    /// `None` where it was not measured.
    pub noise_floor: Option<f64>,
    /// The same for each target and operation.
    pub noise_floors: Vec<NoiseFloor>,
    /// What the tool itself costs per operation of the baseline, in nanoseconds: the largest over the operations.
    pub overhead_ns_per_op: Option<f64>,
    /// The same for each operation of the baseline.
    pub overhead: Vec<Overhead>,
    /// What was measured, and with what care: the scope of every sentence.
    pub scope: String,
    /// What the run says, in a few sentences.
    pub summary: Vec<String>,
    /// What it says in particular: one sentence for each pair of levels or targets.
    pub details: Vec<String>,
    /// What bound the cells, with the evidence, a sentence for each target, operation and resource; empty where nobody
    /// looked, as in older runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<String>,
    /// Which targets' licences restrict publishing these figures, a sentence each.
    pub publishing: Vec<String>,
    /// What a reader must know of the run as a whole: cut off, failed cells, engines' notes.
    pub notes: Vec<String>,
    /// How many comparisons were made; the intervals of the verdicts hold together.
    pub comparisons: u32,
    /// The targets.
    pub targets: Vec<TargetSummary>,
    /// One element per cell and operation.
    pub cells: Vec<CellFigures>,
    /// One element per comparison of two cells.
    pub verdicts: Vec<VerdictRecord>,
    /// How axes, values, operations and targets are called.
    #[serde(skip)]
    pub(crate) words: Words,
}

/// How far the baseline may be from itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// The target's name.
    pub target: String,
    /// The operation.
    pub operation: String,
    /// The relative difference: 0.03 is 3 %.
    pub noise_floor: f64,
}

/// What the tool itself costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overhead {
    /// The operation.
    pub operation: String,
    /// Wall time per operation, in nanoseconds.
    pub ns_per_op: f64,
}

/// A target of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetSummary {
    /// Its name in this run.
    pub name: String,
    /// Its URL, password left out.
    pub url: String,
    /// The engine.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// The client code that speaks to it.
    pub client: String,
    /// How it is reached.
    pub transport: String,
    /// What an acknowledged write survives; `None` where there are no writes to keep.
    pub durability: Option<DurabilityClass>,
    /// The same as a clause.
    pub durability_promise: String,
    /// The settings that make it so.
    pub durability_settings: BTreeMap<String, String>,
    /// Other settings that decide figures.
    pub settings: BTreeMap<String, String>,
    /// The clause of its licence that restricts publishing results of benchmarks, where it has one.
    pub publishing: Option<PublishingClause>,
    /// Anything else that a reader must know.
    pub notes: Vec<String>,
}

/// Settings as a map, the last of a name winning.
pub(crate) fn settings(list: &[Setting]) -> BTreeMap<String, String> {
    list.iter().map(|setting| (setting.name.clone(), setting.value.clone())).collect()
}

/// Whether a cell has figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It was measured, and every answer was right.
    Ok,
    /// A trial of it failed: it has no figures.
    Failed,
    /// It could not be measured, or was not.
    Unavailable,
}

/// The figures of one cell and operation.
#[derive(Clone, Debug, Serialize)]
pub struct CellFigures {
    /// The target's name.
    pub target: String,
    /// The engine.
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// The value of each axis.
    pub axes: Cell,
    /// The operation.
    pub operation: String,
    /// Whether there are figures.
    pub status: Status,
    /// Why there are none.
    pub reason: Option<String>,
    /// Transactions per second: the median of the rounds with its interval.
    pub ops_per_second: Option<Rate>,
    /// Service times over all rounds, in microseconds.
    pub latency_us: Option<Latency>,
    /// What an open loop shows beside; absent for a closed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenFigures>,
    /// CPU time of the client per transaction, in microseconds.
    pub client_cpu_us_per_op: Option<f64>,
    /// CPU time of the server's processes per transaction, in microseconds, over the rounds in which they were seen: of all
    /// tiers, where there are several. Absent where they were not seen, and where the database works within the client,
    /// whose CPU time it is then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpu_us_per_op: Option<f64>,
    /// Time to check an answer, in nanoseconds per transaction.
    pub verify_ns_per_op: Option<f64>,
    /// The same as a part of the client's CPU time: 0.02 is 2 %.
    pub verify_share: Option<f64>,
    /// What the tool itself costs for this cell, in nanoseconds per operation.
    pub overhead_ns_per_op: Option<f64>,
    /// Answers and writes that were checked, over all rounds and warm-up.
    pub verified: Verified,
    /// Transactions that failed in trials that have figures.
    pub failed_operations: u64,
    /// Transactions that were repeated after an error that asks for it.
    pub retries: u64,
    /// What an acknowledged write survives on this target.
    pub durability: Option<DurabilityClass>,
    /// Figures that not every trial has: the median of the rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// The resource that bound it: `client-cpu` (then the figure is a lower bound of the server), `server-cpu`,
    /// `process-cpu`, `disk`, `network`, `locks`; `none` where nothing was full; `None` where it is not known.
    pub saturated: Option<String>,
    /// The same with its evidence; absent where nobody looked, as in older runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// What was seen in each round with figures, in order; without the time axis, which stands in the run file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<Observation>,
    /// What came to the engine's own counters, where it tells; the names it gives them stand beside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<EngineFigure>,
    /// What the engine says the clients' sessions were doing, what was met most first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionShare>,
    /// Whether its trials were steady; absent where that was not looked at, as in older runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// Rounds with figures.
    pub rounds: u32,
    /// Mean bytes handed to the database for one record.
    pub stored_bytes: Option<u64>,
    /// Whether it is the baseline's repeat (A/A).
    pub baseline_repeat: bool,
    /// What verdicts compare, by round; higher is better: transactions per second, or in an open loop, where the rate
    /// is given, the reciprocal of the 99th percentile of response times.
    #[serde(skip)]
    pub(crate) by_round: BTreeMap<u32, f64>,
    /// Which target, by position.
    #[serde(skip)]
    pub(crate) target_index: usize,
    /// All rounds together, where there are figures.
    #[serde(skip)]
    pub(crate) totals: Option<Box<Totals>>,
}

/// A counter of the engine's own, over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineFigure {
    /// What it counts.
    pub what: Meter,
    /// How many, over all rounds.
    pub total: u64,
    /// For each operation; with those of the warm-up where the counter holds them.
    pub per_operation: f64,
    /// Its name in the engine's own words; empty where that is withheld.
    pub from: String,
    /// How far it reaches.
    pub reach: Reach,
}

/// What the clients' sessions were doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionShare {
    /// The share of all looks at them.
    pub share: f64,
    /// What they were doing.
    pub doing: Doing,
    /// Their state in the engine's words.
    pub state: String,
    /// What they waited for, in the engine's words; empty where for nothing.
    pub event: String,
    /// The statement; empty where at none.
    pub statement: String,
}

/// All rounds of a cell and operation together.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    /// Clients at work at once.
    pub(crate) clients: u64,
    /// Requests that ended well.
    pub(crate) completed: u64,
    /// Requests that failed.
    pub(crate) failed: u64,
    /// The time of all measured phases.
    pub(crate) elapsed_ns: u64,
    /// Service times.
    pub(crate) service: Histogram,
}

impl CellFigures {
    /// Whether the client was full, so that the server could do more than the figure says.
    pub fn is_lower_bound(&self) -> bool {
        self.attribution.as_ref().is_some_and(|attribution| attribution.bound_by == Bound::ClientCpu)
    }
}

/// Whether the trials of a cell were steady.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Steady {
    /// Trials that were looked at.
    pub trials: u32,
    /// Of these, those whose throughput changed until their end.
    pub never: u32,
    /// Those that became steady after a beginning that was faster or slower.
    pub late: u32,
    /// The factor by which those that never were changed from their first quarter to their last: the median.
    pub change: Option<f64>,
}

/// What an open loop shows beside rate and service times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OpenFigures {
    /// Transactions due per second; where the highest rate was asked for, the median of those found.
    pub due_per_second: f64,
    /// Response times over all rounds, from when each transaction was due, in microseconds.
    pub response_us: Latency,
    /// How late the tool began transactions for which a client stood ready: the 99th percentile, in microseconds.
    /// `None` where no client was ever ready in time.
    pub dispatch_lag_p99_us: Option<f64>,
    /// The most transactions that waited for a client at one moment, in any round.
    pub backlog: u64,
    /// Transactions that were never begun, since the backlog outlasted the trial; they count in the response times.
    pub dropped: u64,
    /// Transactions that were due, over all rounds.
    pub offered: u64,
    /// Whether the load asked for was served: 99 % of it at least, and nothing dropped.
    pub kept_up: bool,
}

/// A rate with the interval of its median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// The median of the rounds, per second.
    pub median: f64,
    /// The interval's lower end; `None` with one round, which has no interval.
    pub low: Option<f64>,
    /// The interval's upper end.
    pub high: Option<f64>,
}

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Half of all transactions took at most so long.
    pub p50: f64,
    /// 90 % did.
    pub p90: f64,
    /// 99 % did.
    pub p99: f64,
    /// 99.9 % did.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// What was proven in all trials together; `None` where the version that made the run did not say it.
    #[serde(flatten)]
    pub proven: Option<Verification>,
    /// Answers that were not what they had to be.
    pub mismatches: u64,
}

/// What may be said of one cell against another.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictRecord {
    /// The verdict in words.
    pub sentence: String,
    /// The operation.
    pub operation: String,
    /// The subject: a level of the axis, or a target.
    pub a: String,
    /// What it is compared with.
    pub b: String,
    /// What they differ in: an axis, or `target`.
    pub axis: String,
    /// The target of both, where they differ in an axis.
    pub target: Option<String>,
    /// The values that they share.
    pub at: Cell,
    /// The subject against the other.
    pub result: VerdictResult,
    /// Subject ÷ other, in transactions per second: the geometric mean of the rounds.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Rounds in which both were measured.
    pub rounds: u32,
    /// The noise floor that it was held against; `None` where none was measured.
    pub noise_floor: Option<f64>,
    /// The smallest difference that these rounds could have called one: 0.12 is 12 %.
    pub detectable: Option<f64>,
    /// How many comparisons its interval was widened for, so that all hold together.
    pub corrected_for: u32,
    /// Whether it is called, or its whole interval lies within the margin that matters: further rounds say no more.
    pub settled: bool,
    /// About how many more rounds would settle it; `None` where it is settled, or none that can be foreseen would.
    pub further_rounds: Option<u32>,
    /// Why the result is what it is.
    pub reason: String,
}

/// The subject against the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictResult {
    /// It is faster by more than noise.
    Faster,
    /// It is slower by more than noise.
    Slower,
    /// A difference, if there is one, is smaller than this run could see.
    Indistinguishable,
    /// One of them has no figures.
    NotComparable,
    /// One round shows no interval: nothing can be said.
    Open,
}
