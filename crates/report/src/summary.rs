//! What is known of a run. Serialised, a [`Summary`] is the JSON report: other programs rely on its members, which
//! `docs/schema/report.schema.json` describes.

use crate::attribution::{Attribution, Bottleneck};
use crate::finding::{Interval, Limit, Pair, Section, Statement, Why};
use crate::labels::Labels;
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::facts::Setting;
use kurabe_core::metric::{Better, RESPONSE_P99, Source, THROUGHPUT, Unit};
use kurabe_core::observation::Observation;
use kurabe_core::run::{MachineFacts, PublishingClause, RunSpec};
use kurabe_core::verification::Verification;
use kurabe_core::stats_probe::{WaitState, Counter, CounterScope};
use kurabe_stats::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of the JSON report.
pub const REPORT_VERSION: u32 = 4;

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
    /// The largest relative difference that the first cell of a target may have from itself, over all operations and targets;
    /// `None` where it was not measured.
    pub noise_floor: Option<f64>,
    /// What the report says, in the order of its sections.
    pub findings: Vec<Statement>,
    /// How many comparisons of primary metrics were made; the intervals of their verdicts hold together.
    pub comparisons: u32,
    /// How many comparisons of other metrics were made; the intervals of their verdicts hold together.
    pub further_comparisons: u32,
    /// The metrics that some cell has.
    pub metrics: Vec<MetricInfo>,
    /// The targets.
    pub targets: Vec<TargetSummary>,
    /// One element per cell and operation.
    pub cells: Vec<CellResult>,
    /// One element per comparison of two cells.
    pub verdicts: Vec<Verdict>,
    /// The names of axes, values, operations and targets.
    #[serde(skip)]
    pub(crate) labels: Labels,
}

impl Summary {
    /// The findings of a section.
    pub fn statements(&self, section: Section) -> impl Iterator<Item = &Statement> {
        self.findings.iter().filter(move |statement| statement.section == section)
    }

    /// The sentences of a section.
    pub fn sentences(&self, section: Section) -> Vec<&str> {
        self.statements(section).map(|statement| statement.sentence.as_str()).collect()
    }
}

/// A metric of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricInfo {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Whether it answers the experiment's question.
    pub primary: bool,
    /// What it is, a clause; empty where this version does not know it.
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
    /// What it counts.
    pub unit: Unit,
    /// The median of the rounds.
    pub value: f64,
    /// The lower end of its interval; `None` with one round, which has no interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Its value in each round.
    #[serde(skip)]
    pub(crate) by_round: BTreeMap<u32, f64>,
}

impl MetricResult {
    /// The value with its interval.
    pub fn interval(&self) -> Interval {
        Interval { value: self.value, low: self.low, high: self.high }
    }
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

impl Status {
    /// As files name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Unavailable => "unavailable",
        }
    }
}

/// The figures of one cell and operation.
#[derive(Clone, Debug, Serialize)]
pub struct CellResult {
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
    pub open_loop: Option<OpenLoopResult>,
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
    /// Its metrics, in the order of the run's.
    pub metrics: Vec<MetricResult>,
    /// The bottleneck, with its evidence; absent where nobody looked, as in older runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// What was seen in each round with figures, in order; without the time axis, which stands in the run file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<Observation>,
    /// What came to the engine's own counters, where it tells; the names it gives them stand beside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterResult>,
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
    /// Whether it is the repeat of its target's first cell (A/A).
    pub aa_control: bool,
    /// Whether this repeat was measured on a second instance of the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub second_instance: bool,
    /// The noise floor of its target and operation, by what loops are compared by, as a relative difference; `None` where it
    /// was not measured.
    pub noise_floor: Option<f64>,
    /// The metric by which it is called faster or slower.
    pub metric: &'static str,
    /// Which target, by position.
    #[serde(skip)]
    pub(crate) target_index: usize,
    /// All rounds together, where there are figures.
    #[serde(skip)]
    pub(crate) totals: Option<Box<Totals>>,
}

/// A counter of the engine's own, over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterResult {
    /// What it counts.
    pub what: Counter,
    /// How many, over all rounds.
    pub total: u64,
    /// For each operation; with those of the warm-up where the counter holds them.
    pub per_operation: f64,
    /// Its name in the engine's own labels; empty where that is withheld.
    pub from: String,
    /// How far it reaches.
    pub scope: CounterScope,
}

/// What the clients' sessions were doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionShare {
    /// The share of all looks at them.
    pub share: f64,
    /// What they were doing.
    pub wait_state: WaitState,
    /// Their state in the engine's labels.
    pub state: String,
    /// What they waited for, in the engine's labels; empty where for nothing.
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

impl Totals {
    /// Transactions per second over all rounds together.
    pub(crate) fn pooled(&self) -> f64 {
        self.completed as f64 * 1e9 / (self.elapsed_ns as f64).max(1.0)
    }
}

impl CellResult {
    /// What it has of a metric.
    pub fn metric(&self, name: &str) -> Option<&MetricResult> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Whether the client was full, so that the server could do more than the figure says.
    pub fn is_lower_bound(&self) -> bool {
        self.attribution.as_ref().is_some_and(|found| found.bottleneck == Bottleneck::ClientCpu)
    }

    /// Whether the rate that was given was not kept up in some round: an outcome, and no figure.
    pub fn is_overloaded(&self) -> bool {
        self.metric == RESPONSE_P99.name && self.open_loop.is_some_and(|open| !open.kept_up)
    }

    /// Whether the load generator was so late that response times are its own.
    pub fn is_generator_late(&self) -> bool {
        self.metric != THROUGHPUT.name && self.open_loop.is_some_and(|open| open.generator_is_late())
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
pub struct OpenLoopResult {
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

impl OpenLoopResult {
    /// Lateness of the load generator beyond this share of the response time makes it invalid.
    const LATE: f64 = 0.1;

    /// Whether the load generator was late by more than a tenth of the response time.
    pub fn generator_is_late(&self) -> bool {
        self.dispatch_lag_p99_us.is_some_and(|lag| lag > Self::LATE * self.response_us.p99)
    }
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

/// One cell against another.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The operation.
    pub operation: String,
    /// What is compared; what the two differ in: an axis, or `target`; and the two sides.
    #[serde(flatten)]
    pub pair: Pair,
    /// Whether the metric answers the experiment's question.
    pub primary: bool,
    /// The target of both, where they differ in an axis.
    pub target: Option<String>,
    /// The values that they share.
    pub at: Cell,
    /// `a` against `b`.
    pub result: VerdictResult,
    /// Why they are not compared, where they are not.
    pub why: Option<Why>,
    /// `a` ÷ `b`, above 1 where `a` is better; the geometric mean of the rounds. Of a metric of which lower values are better:
    /// `b` ÷ `a`.
    pub ratio: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Rounds in which both were measured.
    pub rounds: u32,
    /// The noise floor that it was held against; `None` where none was measured.
    pub noise_floor: Option<f64>,
    /// The smallest difference that these rounds could have detected: 0.12 is 12 %.
    pub smallest_detectable: Option<f64>,
    /// How many comparisons its interval was widened for, so that all hold together.
    pub corrected_for: u32,
    /// Whether it is called, or its whole interval lies within the margin, or no further rounds could make it comparable.
    pub conclusive: bool,
    /// About how many more rounds would decide it; `None` where it is conclusive, or none that can be foreseen would.
    pub further_rounds: Option<u32>,
    /// Whether the client of the faster side was full, so that the ratio is the least.
    pub lower_bound: bool,
    /// The value of the chart axis, where there is one.
    #[serde(skip)]
    pub(crate) x: Option<AxisValue>,
    /// What limited the two sides.
    #[serde(skip)]
    pub(crate) limits: [Option<Limit>; 2],
}

/// The subject against the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictResult {
    /// It is better by more than noise.
    Better,
    /// It is worse by more than noise.
    Worse,
    /// They are equal to within the margin.
    NoDifference,
    /// No difference was detected, and one beyond the margin is not ruled out.
    Inconclusive,
    /// They cannot be compared.
    NotComparable,
}
