//! The findings of a report, as typed values with their sentences. The JSON report contains both.
//!
//! A family of findings is one file: its kinds with their members, and the sentence of each. `findings` derives them.
//! A new kind joins its family's enum; the compiler then asks for its sentence.

mod basis;
pub(crate) mod comparison;
mod japanese;
mod notes;
mod progress;
mod rates;
mod runs;
mod trials;
mod values;
pub(crate) mod wording;

pub use basis::{Agents, Basis, NoiseFloor, NotInterleaved, Overhead};
pub use comparison::Comparison;
pub use notes::Note;
pub use progress::Progress;
pub use rates::{RatePoint, Rates};
pub use runs::Runs;
pub use trials::Trials;
pub use values::{MetricPoint, PublishedHere, SettingValues, TargetRate, Values};

use crate::attribution::{Bottleneck, Confidence};
use crate::format::capital;
use crate::labels::Labels;
use crate::messages::Language;
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use serde::Serialize;

/// Declares [`Finding`] with a variant for each family.
macro_rules! families {
    ($($family:ident),*) => {
        /// A finding of a report.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        #[allow(missing_docs, reason = "each family describes itself")]
        pub enum Finding {
            $($family($family),)*
        }

        $(impl From<$family> for Finding {
            fn from(finding: $family) -> Self {
                Self::$family(finding)
            }
        })*

        impl Finding {
            /// The finding with its sentence.
            pub(crate) fn state(self, section: Section, labels: &Labels) -> Statement {
                let japanese = labels.language == Language::Japanese;
                let sentence = japanese.then(|| japanese::sentence(&self, labels)).flatten();
                let sentence = sentence.unwrap_or_else(|| match &self {
                    $(Self::$family(finding) => finding.sentence(labels),)*
                });
                Statement { section, sentence: capital(&sentence), finding: self }
            }
        }
    };
}

families!(Comparison, Values, Rates, Progress, Trials, Note, Basis, Runs);

/// What follows from a warning for the results, the most serious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Consequence {
    /// Results are missing, or answers were wrong.
    Missing,
    /// Two figures that stand beside each other are of different trials.
    Apart,
    /// Results may be wrong.
    Doubtful,
    /// Comparisons are undecided.
    Undecided,
    /// A reader should know it.
    Remark,
}

impl Finding {
    /// What follows from it, if it is a warning.
    pub(crate) fn consequence(&self) -> Consequence {
        match self {
            Self::Trials(Trials::Failed { .. } | Trials::WrongAnswers { .. })
            | Self::Progress(Progress::Incomplete { .. })
            | Self::Note(Note::LeftOut { .. }) => Consequence::Missing,
            Self::Trials(Trials::Disturbed { .. } | Trials::Unsteady { .. } | Trials::FewerAgents { .. })
            | Self::Note(Note::Resumed { .. }) => Consequence::Doubtful,
            Self::Note(Note::RatesApart { .. }) => Consequence::Apart,
            Self::Progress(_) => Consequence::Undecided,
            _ => Consequence::Remark,
        }
    }
}

/// A finding with its sentence and its section.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// The section that shows it.
    pub section: Section,
    /// The finding as a sentence.
    pub sentence: String,
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
    pub operations: Vec<String>,
    /// The targets, by name; empty if the finding compares targets.
    pub targets: Vec<String>,
    /// Values of the chart axis; empty if the experiment has none.
    pub at: Vec<AxisValue>,
    /// Values of other axes that vary.
    pub axes: Cell,
}

impl Scope {
    /// The scope without its targets, for a sentence that names them elsewhere.
    fn anywhere(&self) -> Self {
        Self { targets: Vec::new(), ..self.clone() }
    }
}

/// The two sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
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

/// A measured ratio of two sides at one value of the chart axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The value of the chart axis; `None` if the experiment has none.
    pub at: Option<AxisValue>,
    /// `a` ÷ `b`: the geometric mean of the rounds.
    pub ratio: f64,
    /// The lower end of its interval; `None` with one round, which has no interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Measured {
    /// The ratio with its interval.
    pub fn interval(&self) -> Interval {
        Interval { value: self.ratio, low: self.low, high: self.high }
    }
}

/// A range of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The lowest end.
    pub low: f64,
    /// The highest end.
    pub high: f64,
}

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    /// The lower end; `None` without an interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Interval {
    /// The interval of a function that keeps the order of its values.
    pub(crate) fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { value: of(self.value), low: self.low.map(&of), high: self.high.map(&of) }
    }

    /// The ratio seen from the other side.
    pub(crate) fn inverse(self) -> Self {
        let of = |value: f64| 1.0 / value;
        Self { value: of(self.value), low: self.high.map(of), high: self.low.map(of) }
    }

    /// Formats `12.1k – 12.6k`; a dash without an interval.
    pub(crate) fn shown(&self, show: &dyn Fn(f64) -> String) -> String {
        let ends = self.low.zip(self.high);
        ends.map_or_else(|| "–".to_owned(), |(low, high)| format!("{} – {}", show(low), show(high)))
    }
}

/// The bottleneck of the slower side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Limit {
    pub bottleneck: Bottleneck,
    pub confidence: Confidence,
}

/// Targets with the same durability class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Promise {
    /// The class; `None`: unknown.
    pub class: Option<DurabilityClass>,
    pub targets: Vec<String>,
    /// Their settings that decide it and that another target of the same engine has otherwise: `synchronous_commit off`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
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
        side: String,
        /// Why not.
        reason: String,
    },
    /// One of them was not planned, or the run ended before it.
    NotMeasured { side: String },
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
    /// Other processes used the CPU, so that a gate cannot fail.
    Disturbed {
        /// The sides where they did.
        sides: Vec<String>,
    },
}
