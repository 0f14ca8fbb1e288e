//! The findings of a report, as typed values. The JSON report contains them; `template` has a sentence for each kind.

use crate::attribution::{Bottleneck, Confidence};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::metric::Unit;
use kurabe_core::verification::Verification;
use serde::Serialize;
use std::collections::BTreeMap;

/// A finding with its sentence and its section.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// The section that shows it.
    pub section: Section,
    /// The finding as a sentence.
    pub sentence: String,
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
}

/// A section of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    /// Publishing restrictions of licences; shown first.
    Publishing,
    /// The answer to the experiment's question, and further results.
    Verdict,
    /// Pairs of targets or values, one by one.
    Detail,
    /// The bottleneck of each cell.
    Bottleneck,
    /// What a reader must know before relying on results.
    Warning,
    /// Statistics that a server does not report.
    NotReported,
    /// The basis of the results: noise floor, verification, durability, overhead.
    Basis,
}

/// Where a finding holds: for all of these operations, targets and values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scope {
    /// The operations.
    pub operations: Vec<String>,
    /// The targets, by name; empty if the finding compares targets.
    pub targets: Vec<String>,
    /// Values of the chart axis; empty if the experiment has none.
    pub at: Vec<AxisValue>,
    /// Values of other axes that vary.
    pub axes: Cell,
}

/// Why trials were not interleaved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum NotInterleaved {
    /// The loop was open.
    OpenLoop,
    /// There were too few rounds.
    FewRounds,
    /// The user requested separate trials.
    Asked,
    /// Some trials could not be interleaved.
    Some {
        /// The number of cells with separate trials, each operation counted separately.
        cells: u32,
        /// The operations of those trials.
        operations: Vec<String>,
    },
}

/// The two sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Pair {
    /// The compared metric.
    pub metric: String,
    /// The axis in which the sides differ, or `target`.
    pub axis: String,
    /// One side: a value of the axis, or a target.
    pub a: String,
    /// The other side.
    pub b: String,
}

/// The range of several intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The lowest end.
    pub low: f64,
    /// The highest end.
    pub high: f64,
}

impl Span {
    /// The range of several spans.
    pub fn around(spans: impl IntoIterator<Item = Self>) -> Option<Self> {
        spans.into_iter().reduce(|a, b| Self { low: a.low.min(b.low), high: a.high.max(b.high) })
    }
}

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end; `None` without an interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Interval {
    /// Formats `12.1k – 12.6k`; a dash without an interval.
    pub(crate) fn shown(&self, show: &dyn Fn(f64) -> String) -> String {
        let ends = self.low.zip(self.high);
        ends.map_or_else(|| "–".to_owned(), |(low, high)| format!("{} – {}", show(low), show(high)))
    }
}

/// The bottleneck of the slower side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Limit {
    /// The bottleneck.
    pub bottleneck: Bottleneck,
    /// Its confidence.
    pub confidence: Confidence,
}

/// Targets with the same durability class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Promise {
    /// The class; `None`: unknown.
    pub class: Option<DurabilityClass>,
    /// The targets.
    pub targets: Vec<String>,
}

/// Why two cells are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Why {
    /// A trial of one of them failed.
    Failed {
        /// The side, as the comparison names it.
        side: String,
        /// What happened.
        reason: String,
    },
    /// One of them could not be measured.
    Unavailable {
        /// The side.
        side: String,
        /// Why not.
        reason: String,
    },
    /// One of them was not planned, or the run ended before it.
    NotMeasured {
        /// The side.
        side: String,
    },
    /// One of two runs is not complete.
    Unfinished {
        /// The run.
        side: String,
    },
    /// They have no round in common.
    NoCommonRound,
    /// A value is zero or negative, so that there is no ratio.
    NotPositive,
    /// A client was saturated: the result is a lower bound of the server's capacity.
    ClientBound {
        /// The sides with a saturated client.
        sides: Vec<String>,
    },
    /// The rate was not served: response times grow with the trial's length.
    Overloaded {
        /// The sides that were overloaded.
        sides: Vec<String>,
    },
    /// The load generator was late by more than a tenth of the response time.
    GeneratorLate {
        /// The sides where it was.
        sides: Vec<String>,
    },
}

/// A target's throughput.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetRate {
    /// The target.
    pub target: String,
    /// Transactions per second.
    pub per_second: Interval,
    /// Whether its client was saturated, so that the result is a lower bound.
    pub lower_bound: bool,
}

/// A response time at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatePoint {
    /// Transactions due per second.
    pub rate: u64,
    /// The 99th percentile of response times, in microseconds.
    pub p99_us: f64,
}

/// A metric's value at one point of the chart or of the varying axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricPoint {
    /// The values of the varying axes.
    pub axes: Cell,
    /// The mean of the rounds with its interval.
    #[serde(flatten)]
    pub figure: Interval,
}

/// How a target's results compare with published ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedHere {
    /// The target.
    pub target: String,
    /// By how much the value published as faster is faster here.
    pub ratio: Span,
    /// The additional work per request, in microseconds, for which the published ratio would hold.
    pub other_work_us: Option<Span>,
}

/// What two instances of one target differ by in an operation, beyond the noise of the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// The target's name.
    pub target: String,
    /// The operation.
    pub operation: String,
    /// The metric.
    pub metric: String,
    /// The relative difference: 0.03 is 3 %.
    pub noise_floor: f64,
    /// Whether the A/A control ran on a second instance of the server; otherwise on the same server.
    pub second_instance: bool,
}

/// The tool's own overhead.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overhead {
    /// The operation.
    pub operation: String,
    /// Wall time per operation, in nanoseconds.
    pub ns_per_op: f64,
}

/// A finding of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(
    missing_docs,
    reason = "a member is what its name says, its type, or its kind's first lines; the schema describes each"
)]
pub enum Finding {
    /// `a` is better than `b` at every point of the scope, by the range of all intervals (`a` ÷ `b`, above 1); each
    /// difference is significant. `lower_bound`: `a`'s client was saturated somewhere. `limit`: the bottleneck of
    /// `b`, if it is the same at every point. `durability`: the classes if they differ; `a` first.
    Better {
        scope: Scope,
        pair: Pair,
        ratio: Span,
        comparisons: u32,
        lower_bound: bool,
        limit: Option<Limit>,
        durability: Vec<Promise>,
    },
    /// The sides are equal to within the margin: every interval lies within it.
    NoDifference { scope: Scope, pair: Pair, comparisons: u32, margin: f64 },
    /// No difference was detected, and one beyond the margin is not excluded. `smallest_detectable`: over the
    /// comparisons; `None` with one round.
    Inconclusive { scope: Scope, pair: Pair, comparisons: u32, smallest_detectable: Option<Span> },
    /// The sides are not compared.
    NotComparable { scope: Scope, pair: Pair, comparisons: u32, why: Why },
    /// The scope's one target is better than each other target, with significant differences. `among`: the durability
    /// class of the compared targets, if only these are compared.
    Best {
        scope: Scope,
        metric: String,
        than: Vec<String>,
        ratio: Span,
        lower_bound: bool,
        among: Option<DurabilityClass>,
        durability: Vec<Promise>,
    },
    /// Each of the scope's targets is better than each other target; the best of them is unknown.
    Ahead {
        scope: Scope,
        metric: String,
        than: Vec<String>,
        among: Option<DurabilityClass>,
        durability: Vec<Promise>,
    },
    /// No target is better than all others; none is better than the scope's targets.
    NoBest { scope: Scope, metric: String, among: Option<DurabilityClass> },
    /// Transactions per second of each target.
    Throughput { scope: Scope, rates: Vec<TargetRate> },
    /// The additional time of value `a` of an axis compared with value `b`: a significant difference of their times
    /// per transaction, negative if `a` saves time; and the ratio of the times.
    Cost { scope: Scope, pair: Pair, cost_us: Interval, factor: Span },
    /// Response times by rate, if the rate was served and the generator was on time. `bend`: the lowest rate whose
    /// p99 is at least twice that of the lowest rate, in every round.
    ResponseTimes { scope: Scope, points: Vec<RatePoint>, bend: Option<u64> },
    /// The scope's rates were not served: the throughput at the lowest of them, and the number of dropped
    /// transactions over all. `from`: whether every higher tested rate is among them.
    Overloaded { scope: Scope, served_per_second: f64, dropped: u64, from: bool },
    /// The load generator started transactions late (p99), so that response times (p99) at the scope's rates are
    /// invalid.
    GeneratorLate { scope: Scope, lag_us: f64, p99_us: f64 },
    /// The values of a primary metric.
    MetricValues { scope: Scope, name: String, unit: Unit, points: Vec<MetricPoint> },
    /// The run's ratio compared with a published one.
    Published { claim: String, here: Vec<PublishedHere>, ratio: Span, reproduced: bool, otherwise: String },
    /// No cell has results.
    NoResults,
    /// The next planned analysis is after this many rounds; nothing is compared before.
    NotAnalysed { next: u32 },
    /// An incomplete run is not compared with another.
    NotCompared { run: String },
    /// The baseline cells have no results, so that nothing was compared.
    NoBaseline,
    /// One round has no interval, so that no verdict is possible.
    OneRound,
    /// The bottleneck of the scope's cells, with the evidence of one of them. `exact`: the scope contains these cells
    /// and no others; otherwise it has no values.
    Bottleneck {
        scope: Scope,
        exact: bool,
        bottleneck: Bottleneck,
        confidence: Confidence,
        evidence: String,
        cells: u32,
        of: u32,
    },
    /// Other load on the machine during trials: the number of affected and observed cells, and the reason for one of
    /// them.
    Disturbed { cells: u32, of: u32, targets: Vec<String>, reason: String },
    /// A warning from before the first trial.
    Preflight { warning: String },
    /// Planned trials are missing.
    Incomplete { made: u64, planned: u64 },
    /// Disturbed trials were repeated.
    Rerun { trials: u64, reason: String },
    /// Cells have no results because a trial failed.
    Failed { cells: u64 },
    /// The run was resumed, and trials from this one on used something else.
    Resumed { from_trial: u64, changes: Vec<String> },
    /// Trials ended early because each record is changed at most once. `needed` records make them long enough.
    RecordsExhausted { scope: Scope, trials: u64, of: u64, records: u64, needed: u64 },
    /// Replies were wrong.
    WrongAnswers { answers: u64 },
    /// Throughput changed until trials ended: by at most this factor from the first quarter to the last.
    Unsteady { scope: Scope, cells: u32, of: u32, change: f64 },
    /// Throughput became steady only after the warm-up.
    SteadyLate { scope: Scope, cells: u32, of: u32 },
    /// A driver's note on its target.
    TargetNote { target: String, note: String },
    /// Inconclusive comparisons, of those with intervals; how many of them additional rounds are expected to decide,
    /// and the number of rounds. `until`: the run adds rounds until all are conclusive. `slices_help`: interleaving
    /// could detect smaller differences. `restarts_help`: instances of a server differ by more than the margin, which
    /// only restarts average. `restarts`: the number of restarts that is expected to decide them, if the run had some.
    Undecided {
        inconclusive: u32,
        of: u32,
        margin: f64,
        decidable: u32,
        further_rounds: Option<u32>,
        until: bool,
        slices_help: bool,
        restarts_help: bool,
        restarts: Option<u32>,
    },
    /// Additional rounds would change nothing: some comparisons cannot be made, and the others are conclusive.
    AllConclusive { margin: f64, of: u32, not_comparable: u32 },
    /// The report omits targets of the run.
    LeftOut { targets: u32, noise_floor_lost: bool },
    /// A licence restricts publishing a target's results.
    PublishingRestricted { target: String, version: String, says: String, name: String, source: String },
    /// A server does not report something.
    NotReported { target: String, what: Vec<String>, reason: String },
    /// What was tested and how. `slice_ns`: the slice length, if trials were interleaved; `restarts`: restarts of
    /// throwaway servers between blocks of rounds; `not_interleaved`: why trials were not interleaved.
    /// `analysed_after`: rounds; empty if the run was analysed once, at its end.
    Tested {
        targets: Vec<String>,
        cpus: u64,
        rounds: u32,
        comparisons: u32,
        further_comparisons: u32,
        slice_ns: Option<u64>,
        restarts: u32,
        not_interleaved: Option<NotInterleaved>,
        analysed_after: Vec<u32>,
    },
    /// The noise floors.
    NoiseFloor { largest: Option<f64>, each: Vec<NoiseFloor>, included: bool },
    /// The tool's own overhead for the baseline.
    ToolOverhead { each: Vec<Overhead> },
    /// What was verified in all cells, and the maximum share of the client's CPU for checking. `verification`: `None`
    /// if the version that made the run did not record it.
    Verified { verification: Option<Verification>, cpu_share: Option<f64> },
    /// The durability class of a target.
    Durability {
        target: String,
        version: String,
        class: Option<DurabilityClass>,
        settings: BTreeMap<String, String>,
    },
    /// A primary metric changed from the first run to the second: better ÷ worse, above 1.
    Changed { scope: Scope, metric: String, better: bool, ratio: Span, lower_bound: bool },
    /// The changes of primary metrics between two runs.
    Changes { better: u32, worse: u32, no_difference: u32, inconclusive: u32, not_comparable: u32 },
    /// Two runs at different times are weaker evidence than a single run with both.
    NotInterleaved { noise_floor: Option<f64> },
    /// A target that only one of two runs has.
    OnlyIn { run: String, target: String },
    /// Results that only one of two runs has.
    Unmatched { run: String, results: u32 },
}
