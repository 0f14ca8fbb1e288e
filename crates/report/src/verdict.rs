//! The comparison of two cells.

use crate::attribution::{Bottleneck, Confidence};
use crate::catalogue::translated;
use crate::cell::{CellResult, MetricInfo};
use crate::format::{joined_up, list};
use crate::labels::{Axis, Labels};
use crate::messages::{Language, Message};
use crate::target::TargetId;
use crate::wording::{rounds, say};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::metric::{Better, Unit};
use kurabe_core::run::DEFAULT_MARGIN;
use kurabe_stats::{Decision, Estimate};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The two sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Pair {
    /// The compared metric.
    pub metric: String,
    /// The axis in which the sides differ, or `target`.
    pub axis: String,
    /// One side: a value of the axis, or a target.
    pub a: Side,
    /// The other side.
    pub b: Side,
}

/// The bottleneck of the slower side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Limit {
    pub bottleneck: Bottleneck,
    pub confidence: Confidence,
}

/// Why two cells are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Why {
    /// A trial of one of them failed.
    Failed {
        /// The side.
        side: Side,
        /// What happened.
        reason: String,
    },
    /// One of them could not be measured.
    Unavailable {
        side: Side,
        /// Why not.
        reason: String,
    },
    /// One of them was not planned, or the run ended before it.
    NotMeasured { side: Side },
    /// One of two runs is not complete.
    Unfinished {
        /// The run.
        side: Side,
    },
    /// They have no round in common.
    NoCommonRound,
    /// A value is zero or negative, so that there is no ratio.
    NotPositive,
    /// A 99th percentile is of so few operations that it is not shown.
    FewOperations,
    /// A client was saturated: the result is a lower bound of the server's capacity.
    ClientBound {
        /// The sides with a saturated client.
        sides: Vec<Side>,
    },
    /// The rate was not served: response times grow with the trial's length.
    Overloaded {
        /// The sides that were overloaded.
        sides: Vec<Side>,
    },
    /// The load generator was late by more than a tenth of the response time.
    GeneratorLate {
        /// The sides where it was.
        sides: Vec<Side>,
    },
    /// Other processes used the CPU, so that a gate cannot fail.
    Disturbed {
        /// The sides where they did.
        sides: Vec<Side>,
    },
}

impl Why {
    /// The reason as a clause, in Japanese as a sentence; `axis` is the one in which the sides differ.
    pub(crate) fn clause(&self, labels: &Labels, axis: &str) -> String {
        let language = labels.language;
        let name = |side: &Side| labels.side(axis, side);
        let named = |sides: &[Side]| {
            let names: Vec<String> = sides.iter().map(name).collect();
            if language == Language::Japanese { joined_up(&names.join(" と ")) } else { list(&names) }
        };
        let sides = match self {
            Self::Failed { side, .. }
            | Self::Unavailable { side, .. }
            | Self::NotMeasured { side }
            | Self::Unfinished { side } => name(side),
            Self::NoCommonRound | Self::NotPositive | Self::FewOperations => String::new(),
            Self::ClientBound { sides }
            | Self::Overloaded { sides }
            | Self::GeneratorLate { sides }
            | Self::Disturbed { sides } => named(sides),
        };
        match self {
            Self::Failed { reason, .. } => {
                let reason = translated(reason, language);
                say!(language, "{sides} failed: {reason}", "{sides} が失敗しました: {reason}")
            }
            Self::Unavailable { reason, .. } => {
                let reason = translated(reason, language);
                say!(language, "{sides} is not available: {reason}", "{sides} は利用できません: {reason}")
            }
            Self::NotMeasured { .. } => {
                say!(language, "{sides} was not measured", "{sides} は測っていません。")
            }
            Self::Unfinished { .. } => {
                say!(language, "{sides} is not complete", "{sides} は測り終えていません。")
            }
            Self::NotPositive => {
                say!(
                    language,
                    "a value is zero or below, which has no ratio",
                    "0 以下の値があり、倍率がありません。"
                )
            }
            Self::FewOperations => say!(
                language,
                "fewer than 100 operations have no 99th percentile",
                "100 回未満の操作には p99 がありません。",
            ),
            Self::NoCommonRound => say!(
                language,
                "they were never measured in the same round",
                "同じラウンドで測ったことがありません。",
            ),
            Self::ClientBound { .. } => say!(
                language,
                "the client was saturated on {sides}, so its result is a lower bound",
                "{sides} ではクライアントが飽和したので、その結果は下限です。",
            ),
            Self::Overloaded { .. } => {
                say!(language, "{sides} did not keep up", "{sides} は負荷に追いつきませんでした。")
            }
            Self::GeneratorLate { .. } => say!(
                language,
                "the load generator was late on {sides}",
                "{sides} では負荷の発生が遅れました。",
            ),
            Self::Disturbed { .. } => say!(
                language,
                "other processes used the CPU during {sides}",
                "{sides} の測定中、ほかのプロセスが CPU を使いました。",
            ),
        }
    }
}

/// The comparison of two cells by a metric: of one run, or of two.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Verdict {
    pub operation: String,
    /// The cells of the two sides, by position among those of the report of each; `None`: it was not planned.
    pub cells: [Option<usize>; 2],
    /// The compared metric; the difference: an axis, or `target`; and the two sides.
    #[serde(flatten)]
    pub pair: Pair,
    /// Whether the metric answers the experiment's question.
    pub primary: bool,
    /// The target of both, if they differ in an axis or are of two runs.
    pub target: Option<TargetId>,
    /// The values that they share.
    pub at: Cell,
    /// The result: `a` against `b`.
    #[serde(serialize_with = "as_result")]
    pub result: Decision,
    /// Why they are not compared.
    pub why: Option<Why>,
    /// `a` ÷ `b`, above 1 if `a` is better; the quotient of the means of the rounds. If lower values are better: `b` ÷ `a`.
    #[serde(flatten, serialize_with = "as_ratio")]
    pub ratio: Option<Estimate>,
    /// The number of rounds in which both were measured.
    pub rounds: u32,
    /// What instances of the targets may make equal sides differ by, as a relative difference; its interval includes it.
    /// `None` if not measured.
    pub noise_floor: Option<f64>,
    /// The smallest detectable difference: 0.12 is 12 %.
    pub smallest_detectable: Option<f64>,
    /// The number of comparisons for which its interval was corrected.
    pub corrected_for: u32,
    /// Whether the difference is significant, or the whole interval lies within the margin, or more rounds could not
    /// make it comparable.
    pub conclusive: bool,
    /// The expected number of additional rounds to decide it; `None` if it is conclusive, or no predictable number
    /// would.
    pub further_rounds: Option<u32>,
    /// Whether the client of the faster side was saturated, so that the ratio is a lower bound.
    pub lower_bound: bool,
    /// The value of the chart axis, if there is one.
    #[serde(skip)]
    pub(crate) x: Option<AxisValue>,
    /// Differences below this do not matter.
    #[serde(skip)]
    pub(crate) margin: f64,
    /// The sides during which other processes used the CPU.
    #[serde(skip)]
    pub(crate) disturbed: Vec<Side>,
    #[serde(skip)]
    pub unit: Unit,
    /// Which way is better.
    #[serde(skip)]
    pub better: Better,
    /// The values of the two sides.
    #[serde(skip)]
    pub values: [Option<Estimate>; 2],
    /// Whether it is the time of a kind of transaction, or a 99th percentile: what a gate judges besides primary metrics.
    #[serde(skip)]
    pub(crate) of_kind: bool,
    /// What a gate says; `None` without one, and for what it does not judge.
    #[serde(skip)]
    pub gate: Option<Decision>,
    /// The bottlenecks of the two sides.
    #[serde(skip)]
    pub(crate) limits: [Option<Limit>; 2],
}

impl Verdict {
    /// A comparison that is not made yet. Its first side is `a`.
    pub(crate) fn new(
        metric: &MetricInfo,
        (operation, axis): (&str, &str),
        sides: [Side; 2],
        cells: [Option<&CellResult>; 2],
    ) -> Self {
        let is_disturbed = |cell: Option<&CellResult>| cell.is_some_and(|cell| cell.disturbed.is_some());
        let disturbed = sides.iter().zip(cells).filter(|(_, cell)| is_disturbed(*cell));
        let disturbed = disturbed.map(|(side, _)| side.clone()).collect();
        let value = |cell: &CellResult| {
            let valid = !metric.is_speed() || !cell.is_overloaded() && !cell.is_generator_late();
            cell.metric(&metric.name).filter(|_| valid).map(|found| found.figure)
        };
        let [a, b] = sides;
        Self {
            operation: operation.to_owned(),
            cells: cells.map(|cell| cell.map(|cell| cell.index)),
            pair: Pair { metric: metric.name.clone(), axis: axis.to_owned(), a, b },
            primary: metric.primary,
            conclusive: true,
            margin: DEFAULT_MARGIN,
            disturbed,
            unit: metric.unit,
            better: metric.better,
            values: cells.map(|cell| cell.and_then(value)),
            ..Self::default()
        }
    }

    /// The two sides.
    pub(crate) fn sides(&self) -> [&Side; 2] {
        [&self.pair.a, &self.pair.b]
    }

    /// The sides whose cells are so; `None` if no one is.
    pub(crate) fn sides_where(
        &self,
        cells: [&CellResult; 2],
        holds: fn(&CellResult) -> bool,
    ) -> Option<Vec<Side>> {
        let found = self.sides().into_iter().zip(cells).filter(|(_, cell)| holds(cell));
        let found: Vec<Side> = found.map(|(side, _)| side.clone()).collect();
        (!found.is_empty()).then_some(found)
    }

    /// The two cells, of one run.
    pub(crate) fn cells<'a>(&self, cells: &'a [CellResult]) -> Option<[&'a CellResult; 2]> {
        let [a, b] = self.cells.map(|cell| cells.get(cell?));
        Some([a?, b?])
    }

    /// The values of the varying axes, except the chart axis, that the sides share.
    pub(crate) fn others(&self, labels: &Labels) -> Cell {
        Axis::values_of(labels.varying(), &self.at)
    }

    /// The ratio of the values, `a` ÷ `b`, which is above 1 where `a` is better only if higher values are.
    pub fn of_values(&self) -> Option<Estimate> {
        self.ratio.map(|ratio| if self.better == Better::Lower { ratio.inverse() } else { ratio })
    }

    /// What it is called: the kind of transaction, or the operation and the metric.
    pub(crate) fn name(&self) -> String {
        let metric = &self.pair.metric;
        let own = self.of_kind && !metric.starts_with("service") && !metric.starts_with("response");
        if own { metric.clone() } else { format!("{} {metric}", self.operation) }
    }

    /// Whether it has an interval.
    pub(crate) fn has_interval(&self) -> bool {
        self.ratio.is_some_and(|ratio| ratio.low.is_some())
    }

    /// Why its interval says nothing: from how many rounds it is, and whether there was other load. `None` if it
    /// says something.
    pub(crate) fn says_nothing(&self, language: Language) -> Option<String> {
        self.ratio.filter(is_vast)?;
        let rounds = rounds(self.rounds);
        let n = self.rounds;
        let load = if self.disturbed.is_empty() {
            String::new()
        } else {
            say!(language, ", other load", "、他の負荷")
        };
        Some(say!(language, "undecided: {rounds}{load}", "未決: {n} ラウンド{load}"))
    }
}

/// A side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// A target of the run, by its position.
    Target(usize),
    /// A value of the axis in which the sides differ.
    Value(AxisValue),
    /// The first of two runs.
    FirstRun,
    /// The second of two runs.
    SecondRun,
    /// The run of two targets that are compared as two runs are.
    #[default]
    Run,
}

impl Labels {
    /// A side of a comparison by this axis: `SQLite`, `compress zstd`, `16 clients`.
    pub fn side(&self, axis: &str, side: &Side) -> String {
        match side {
            Side::Target(target) => self.targets.get(*target).cloned().unwrap_or_default(),
            Side::Value(value) => {
                self.axis(axis).map_or_else(|| value.to_string(), |axis| axis.name_value(value))
            }
            Side::FirstRun => Message::FirstRun.text(self.language).to_owned(),
            Side::SecondRun => Message::SecondRun.text(self.language).to_owned(),
            Side::Run => Message::TheRun.text(self.language).to_owned(),
        }
    }

    /// A side of a comparison with its preposition, which Japanese does not have: `on SQLite`, `with compress zstd`.
    pub fn with(&self, axis: &str, side: &Side) -> String {
        let word = if matches!(side, Side::Value(_)) { "with" } else { "on" };
        let side = self.side(axis, side);
        if self.language == Language::Japanese { side } else { format!("{word} {side}") }
    }
}

/// Whether its ends are so far apart that they say nothing: by a factor of 100 or more.
pub(crate) fn is_vast(of: &Estimate) -> bool {
    const VAST: f64 = 100.0;
    of.ends().is_some_and(|(low, high)| high >= low * VAST)
}

/// Formats `12.1k – 12.6k`; a dash without an interval.
pub(crate) fn ends(of: Estimate, show: &dyn Fn(f64) -> String) -> String {
    of.ends().map_or_else(|| "–".to_owned(), |(low, high)| format!("{} – {}", show(low), show(high)))
}

/// Writes the result of a comparison.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn as_result<S: Serializer>(result: &Decision, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match result {
        Decision::Above => "better",
        Decision::Below => "worse",
        Decision::Within => "no-difference",
        Decision::Undecided => "undecided",
        Decision::NotTestable => "not-comparable",
    })
}

/// Writes a rate with the members `mean`, `low` and `high`.
pub(crate) fn as_mean<S: Serializer>(
    rate: &(impl Into<Option<Estimate>> + Copy),
    to: S,
) -> Result<S::Ok, S::Error> {
    let rate = (*rate).into();
    if rate.is_none() { to.serialize_none() } else { members("mean", rate, to) }
}

/// Writes a ratio as the members `ratio`, `low` and `high` of what it belongs to.
pub(crate) fn as_ratio<S: Serializer>(
    ratio: &(impl Into<Option<Estimate>> + Copy),
    to: S,
) -> Result<S::Ok, S::Error> {
    members("ratio", (*ratio).into(), to)
}

fn members<S: Serializer>(name: &str, of: Option<Estimate>, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(3))?;
    map.serialize_entry(name, &of.map(|of| of.value))?;
    map.serialize_entry("low", &of.and_then(|of| of.low))?;
    map.serialize_entry("high", &of.and_then(|of| of.high))?;
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_says_nothing_if_its_ends_are_a_hundred_times_apart() {
        let vast = |low, high| is_vast(&Estimate { value: low, low: Some(low), high: Some(high) });
        assert!(vast(0.01, 1.0) && vast(2.0, 200.0));
        assert!(!vast(0.01, 0.99) && !vast(2.0, 199.0) && !is_vast(&Estimate::new(1.0, None)));
    }

    fn verdict(metric: &str, better: Better) -> Verdict {
        let metric = MetricInfo {
            name: metric.to_owned(),
            unit: Unit::PerSecond,
            better,
            primary: true,
            about: String::new(),
            source: kurabe_core::metric::Source::Trial,
        };
        Verdict::new(&metric, ("read", "target"), [Side::Target(0), Side::Target(1)], [None, None])
    }

    #[test]
    fn ratio_of_values_is_above_1_where_the_first_value_is_greater() {
        let ratio = Some(Estimate { value: 2.0, low: Some(1.6), high: Some(2.5) });
        let of = |better| Verdict { ratio, ..verdict("throughput", better) }.of_values();
        assert_eq!(of(Better::Higher), ratio);
        assert_eq!(of(Better::Lower), Some(Estimate { value: 0.5, low: Some(0.4), high: Some(0.625) }));
        assert!(verdict("throughput", Better::Higher).of_values().is_none());
    }

    #[test]
    fn kind_of_transaction_is_called_by_its_own_name_and_others_by_operation_and_metric() {
        let name = |metric: &str, of_kind| Verdict { of_kind, ..verdict(metric, Better::Lower) }.name();
        assert_eq!(name("throughput", false), "read throughput");
        assert_eq!(name("browse mean", true), "browse mean");
        assert_eq!(name("service p99", true), "read service p99");
        assert_eq!(name("response p99", true), "read response p99");
    }

    #[test]
    fn interval_that_says_nothing_names_its_rounds_and_other_load() {
        let of = |low, high, disturbed: &[Side]| {
            let ratio = Some(Estimate { value: 1.0, low: Some(low), high: Some(high) });
            let disturbed = disturbed.to_vec();
            Verdict { ratio, rounds: 3, disturbed, ..verdict("throughput", Better::Higher) }
        };
        let said = |one: Verdict| [Language::English, Language::Japanese].map(|it| one.says_nothing(it));
        assert_eq!(said(of(0.5, 2.0, &[])), [None, None]);
        let wanted = ["undecided: 3 rounds", "未決: 3 ラウンド"].map(|it| Some(it.to_owned()));
        assert_eq!(said(of(0.01, 100.0, &[])), wanted);
        let wanted = ["undecided: 3 rounds, other load", "未決: 3 ラウンド、他の負荷"];
        assert_eq!(said(of(0.01, 100.0, &[Side::Target(1)])), wanted.map(|it| Some(it.to_owned())));
        assert!(of(0.5, 2.0, &[]).has_interval() && !verdict("throughput", Better::Higher).has_interval());
    }

    #[test]
    fn sides_that_are_so_are_named_in_their_order() {
        let one = verdict("throughput", Better::Higher);
        let cell = |retries| CellResult { retries, ..CellResult::default() };
        let retried = |a, b| one.sides_where([&cell(a), &cell(b)], |cell| cell.retries > 0);
        assert_eq!(retried(0, 0), None);
        assert_eq!(retried(0, 1), Some(vec![Side::Target(1)]));
        assert_eq!(retried(1, 1), Some(vec![Side::Target(0), Side::Target(1)]));
        assert!(one.cells(&[]).is_none());
        let cells = [cell(1), cell(2)];
        let of = Verdict { cells: [Some(1), Some(0)], ..one };
        let [a, b] = of.cells(&cells).unwrap();
        assert_eq!((a.retries, b.retries), (2, 1));
    }
}
