//! The comparison of two cells.

use crate::attribution::{Bottleneck, Confidence};
use crate::format::list;
use crate::labels::Labels;
use crate::messages::{Language, Message};
use crate::wording::{rounds, say};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_stats::{Estimate, VerdictResult};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The two sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
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
            if language == Language::Japanese { names.join("と") } else { list(&names) }
        };
        let sides = match self {
            Self::Failed { side, .. }
            | Self::Unavailable { side, .. }
            | Self::NotMeasured { side }
            | Self::Unfinished { side } => name(side),
            Self::NoCommonRound | Self::NotPositive => String::new(),
            Self::ClientBound { sides }
            | Self::Overloaded { sides }
            | Self::GeneratorLate { sides }
            | Self::Disturbed { sides } => named(sides),
        };
        match self {
            Self::Failed { reason, .. } => {
                say!(language, "{sides} failed: {reason}", "{sides} が失敗しました: {reason}")
            }
            Self::Unavailable { reason, .. } => {
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

/// The comparison of two cells.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub operation: String,
    /// The cells of the two sides, by position among those of the report; `None`: it was not planned.
    pub cells: [Option<usize>; 2],
    /// The compared metric; the difference: an axis, or `target`; and the two sides.
    #[serde(flatten)]
    pub pair: Pair,
    /// Whether the metric answers the experiment's question.
    pub primary: bool,
    /// The target of both, if they differ in an axis.
    pub target: Option<String>,
    /// The values that they share.
    pub at: Cell,
    /// The result: `a` against `b`.
    pub result: VerdictResult,
    /// Why they are not compared.
    pub why: Option<Why>,
    /// `a` ÷ `b`, above 1 if `a` is better; the geometric mean of the rounds. If lower values are better: `b` ÷ `a`.
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
    /// The machine's other load during one of the sides, as a clause.
    #[serde(skip)]
    pub(crate) disturbed: Option<String>,
    /// The bottlenecks of the two sides.
    #[serde(skip)]
    pub(crate) limits: [Option<Limit>; 2],
}

impl Verdict {
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
        let load = if self.disturbed.is_some() {
            say!(language, ", other load", "、他の負荷")
        } else {
            String::new()
        };
        Some(say!(language, "undecided: {rounds}{load}", "未決: {n} ラウンド{load}"))
    }
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
