//! What a report says, as values. The JSON report holds them as they are; `template` has one sentence for each kind.

use crate::attribution::{Bottleneck, Confidence};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::metric::Unit;
use kurabe_core::verification::Verification;
use serde::Serialize;
use std::collections::BTreeMap;

/// A finding with its sentence and its place in a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// The part of the report that shows it.
    pub section: Section,
    /// The finding in words.
    pub sentence: String,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
}

/// A part of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    /// What licences say of publishing; shown above all else.
    Publishing,
    /// The answer to the experiment's question, and what else the run shows.
    Verdict,
    /// Pairs of targets or levels, one by one.
    Detail,
    /// What limited each cell.
    Bottleneck,
    /// What a reader must know before relying on a figure.
    Warning,
    /// What a server does not report of itself.
    NotReported,
    /// What the figures rest on: noise floor, verification, durability, overhead.
    Basis,
}

/// Where a finding holds: for each of these operations, on each of these targets, at each of these values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scope {
    /// The operations.
    pub operations: Vec<String>,
    /// The targets, by name; empty where the finding compares targets.
    pub targets: Vec<String>,
    /// Values of the chart axis; empty where the experiment has none.
    pub at: Vec<AxisValue>,
    /// Values of the other axes that vary.
    pub axes: Cell,
}

/// Why trials were not interleaved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum NotInterleaved {
    /// Transactions were due at given times.
    OpenLoop,
    /// There were fewer rounds than that takes.
    FewRounds,
    /// The run asked for separate trials.
    Asked,
    /// Some could not be; the others were.
    Some {
        /// Cells whose trials were separate, each operation counted apart.
        cells: u32,
        /// The operations of those trials.
        operations: Vec<String>,
    },
}

/// The two sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Pair {
    /// The metric that is compared.
    pub metric: String,
    /// The axis in which the sides differ, or `target`.
    pub axis: String,
    /// One side: a value of the axis, or a target.
    pub a: String,
    /// The other side.
    pub b: String,
}

/// From the least to the most that intervals allow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The lowest end of all intervals.
    pub low: f64,
    /// The highest end.
    pub high: f64,
}

impl Span {
    /// The span of several.
    pub fn around(spans: impl IntoIterator<Item = Self>) -> Option<Self> {
        spans.into_iter().reduce(|a, b| Self { low: a.low.min(b.low), high: a.high.max(b.high) })
    }
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The figure.
    pub value: f64,
    /// The lower end; `None` where there is no interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Interval {
    /// `12.1k – 12.6k`; a dash without an interval.
    pub(crate) fn shown(&self, show: &dyn Fn(f64) -> String) -> String {
        let ends = self.low.zip(self.high);
        ends.map_or_else(|| "–".to_owned(), |(low, high)| format!("{} – {}", show(low), show(high)))
    }
}

/// What limited the slower side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Limit {
    /// The bottleneck.
    pub bottleneck: Bottleneck,
    /// How certain it is.
    pub confidence: Confidence,
}

/// Targets whose acknowledged writes survive the same.
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
    /// One of them was never planned, or the run ended before it.
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
    /// A value is zero or below, of which there is no ratio.
    NotPositive,
    /// A client was full: the figure is a lower bound of what the server can do.
    ClientBound {
        /// The sides whose client was full.
        sides: Vec<String>,
    },
    /// The rate was not kept up: response times grow with the trial's length.
    Overloaded {
        /// The sides that did not keep up.
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
    /// Whether its client was full, so that the server can do more.
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

/// A metric's value at one point of the chart or of the axis that varies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricPoint {
    /// The values of the axes that vary.
    pub axes: Cell,
    /// The median of the rounds with its interval.
    #[serde(flatten)]
    pub figure: Interval,
}

/// By how much one target's figures repeat what others published.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedHere {
    /// The target.
    pub target: String,
    /// By how much the value that was published as the faster one is faster here.
    pub ratio: Span,
    /// The other work of a request, in microseconds, that would make the published factors of it.
    pub other_work_us: Option<Span>,
}

/// The noise floor of one target and operation.
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
    /// Whether the cell was measured again on a second instance of its server; if not, on the same server.
    pub second_instance: bool,
}

/// What the tool itself costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overhead {
    /// The operation.
    pub operation: String,
    /// Wall time per operation, in nanoseconds.
    pub ns_per_op: f64,
}

/// Something that a report says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(
    missing_docs,
    reason = "a member is what its name says, its type, or its kind's first lines; the schema describes each"
)]
pub enum Finding {
    /// `a` is better than `b` at every point of the scope, by the span of all intervals (`a` ÷ `b`, above 1): each comparison was
    /// called. `lower_bound`: `a`'s client was full somewhere, so that the ratio is the least. `limit`: what limited `b`, where that
    /// is the same at every point. `durability`: what acknowledged writes survive, where that differs; `a` first.
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
    /// No difference was detected, and one beyond the margin is not ruled out. `smallest_detectable`: over the comparisons; `None`
    /// with one round.
    Inconclusive { scope: Scope, pair: Pair, comparisons: u32, smallest_detectable: Option<Span> },
    /// The sides are not compared.
    NotComparable { scope: Scope, pair: Pair, comparisons: u32, why: Why },
    /// The scope's one target is better than each of the others: each comparison was called. `among`: the class of the targets
    /// that are compared, where only these are.
    Best {
        scope: Scope,
        metric: String,
        than: Vec<String>,
        ratio: Span,
        lower_bound: bool,
        among: Option<DurabilityClass>,
        durability: Vec<Promise>,
    },
    /// Each of the scope's targets is better than each of the others; which of them is the best is not known.
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
    /// What level `a` of an axis costs, compared with level `b`: the called difference of their times per transaction, negative
    /// where `a` saves time, and the time with `a` ÷ the time with `b`.
    Cost { scope: Scope, pair: Pair, cost_us: Interval, factor: Span },
    /// Response times by rate, where the rate was kept up and the generator was in time. `bend`: the first rate at which the p99
    /// is at least twice that of the lowest rate, in every round.
    ResponseTimes { scope: Scope, points: Vec<RatePoint>, bend: Option<u64> },
    /// The scope's rates were not kept up: what was served at the lowest of them, and how many transactions were never begun over
    /// all of them. `from`: every higher rate that was tested is among them.
    Overloaded { scope: Scope, served_per_second: f64, dropped: u64, from: bool },
    /// The load generator began transactions late (p99): response times (p99) at the scope's rates are invalid.
    GeneratorLate { scope: Scope, lag_us: f64, p99_us: f64 },
    /// The values of a primary metric.
    MetricValues { scope: Scope, name: String, unit: Unit, points: Vec<MetricPoint> },
    /// The run's ratio beside one that others published.
    Published { claim: String, here: Vec<PublishedHere>, ratio: Span, reproduced: bool, otherwise: String },
    /// No cell has figures.
    NoResults,
    /// The next planned analysis is after so many rounds; before it nothing is compared.
    NotAnalysed { next: u32 },
    /// A run that is not complete is not compared with another.
    NotCompared { run: String },
    /// The baseline cells have no figures, so that nothing was compared.
    NoBaseline,
    /// One round has no interval, so that no verdict is possible.
    OneRound,
    /// What limited the scope's cells, with what one of them shows. `exact`: the scope holds these cells and no other; else it names
    /// no values.
    Bottleneck {
        scope: Scope,
        exact: bool,
        bottleneck: Bottleneck,
        confidence: Confidence,
        evidence: String,
        cells: u32,
        of: u32,
    },
    /// Other work used the machine during trials: these cells of those that were observed, and what was seen in one of them.
    Disturbed { cells: u32, of: u32, targets: Vec<String>, reason: String },
    /// What was found before the first trial that may make figures wrong.
    Preflight { warning: String },
    /// Planned trials are missing.
    Incomplete { made: u64, planned: u64 },
    /// Disturbed trials were made again.
    Rerun { trials: u64, reason: String },
    /// Cells have no figures, since a trial failed.
    Failed { cells: u64 },
    /// The run was resumed, and these trials on were made with something else.
    Resumed { from_trial: u64, changes: Vec<String> },
    /// Trials ended early, since each changes each of so many records once; so many records make them long enough.
    RecordsExhausted { scope: Scope, trials: u64, of: u64, records: u64, needed: u64 },
    /// Answers were wrong.
    WrongAnswers { answers: u64 },
    /// Throughput changed until trials ended: by at most this factor from the first quarter to the last.
    Unsteady { scope: Scope, cells: u32, of: u32, change: f64 },
    /// Throughput became steady only after the warm-up.
    SteadyLate { scope: Scope, cells: u32, of: u32 },
    /// What a driver notes of its target.
    TargetNote { target: String, note: String },
    /// Comparisons that are inconclusive, of those that have intervals; how many of them further rounds are expected to decide, and
    /// about how many that takes. `until`: the run makes rounds until all are conclusive. `slices_help`: trials in slices could
    /// detect smaller differences.
    Undecided {
        inconclusive: u32,
        of: u32,
        margin: f64,
        decidable: u32,
        further_rounds: Option<u32>,
        until: bool,
        slices_help: bool,
    },
    /// Further rounds would show nothing more: of so many comparisons some cannot be made, and the others are called, or equal to
    /// within the margin.
    AllConclusive { margin: f64, of: u32, not_comparable: u32 },
    /// The report leaves out targets of the run.
    LeftOut { targets: u32, noise_floor_lost: bool },
    /// A licence restricts publishing a target's figures.
    PublishingRestricted { target: String, version: String, says: String, name: String, source: String },
    /// A server does not report something.
    NotReported { target: String, what: Vec<String>, reason: String },
    /// What was tested, and with what care. `slice_ns`: how long a slice is, where trials were interleaved in slices;
    /// `restarts`: how often throwaway servers were restarted between blocks of rounds; `not_interleaved`: why those that were not were not. `analysed_after`: rounds; empty where the run was analysed once,
    /// at its end.
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
    /// How far the first cell of each target may be from itself.
    NoiseFloor { largest: Option<f64>, each: Vec<NoiseFloor> },
    /// What the tool itself costs for the baseline.
    ToolOverhead { each: Vec<Overhead> },
    /// What was verified in all cells, and the largest share of the client's CPU that checking took. `verification`: `None` where
    /// the version that made the run did not record it.
    Verified { verification: Option<Verification>, cpu_share: Option<f64> },
    /// What an acknowledged write survives on a target.
    Durability {
        target: String,
        version: String,
        class: Option<DurabilityClass>,
        settings: BTreeMap<String, String>,
    },
    /// A primary metric changed from the first run to the second: better ÷ worse, above 1.
    Changed { scope: Scope, metric: String, better: bool, ratio: Span, lower_bound: bool },
    /// How the primary metrics of two runs compare.
    Changes { better: u32, worse: u32, no_difference: u32, inconclusive: u32, not_comparable: u32 },
    /// Two runs at different times are weaker evidence than one run of both.
    NotInterleaved { noise_floor: Option<f64> },
    /// A target that only one of two runs has.
    OnlyIn { run: String, target: String },
    /// Figures that only one of two runs has.
    Unmatched { run: String, figures: u32 },
}
