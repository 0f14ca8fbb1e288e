//! The findings of a report, as typed values with their sentences. The JSON report contains both.
//!
//! A family of findings is one file: its kinds with their members, the sentence of each in both languages, and how they
//! follow from results and verdicts (`Context`). A new kind joins its family's enum; the compiler then asks for its
//! sentence.

mod basis;
mod bottlenecks;
mod comparison;
mod notes;
mod progress;
pub(crate) mod published;
mod rates;
pub(crate) mod runs;
mod trials;
mod values;

pub use crate::interval::{Interval, Span};
pub use crate::noise::NoiseFloor;
pub use crate::scope::Scope;
pub use crate::verdict::{Limit, Pair, Why};
pub use basis::{Agents, Basis, NotInterleaved, Overhead, Tested};
pub use bottlenecks::Bottlenecks;
pub use comparison::{Comparison, Measured, Promise};
pub use notes::Note;
pub use progress::Progress;
pub use published::{PublishedHere, Reproduction};
pub use rates::{RatePoint, Rates};
pub use runs::{Between, Criteria, Decision, Gated, Judgement, Runs};
pub use trials::Trials;
pub use values::{MetricPoint, SettingValues, TargetRate, Values};

use crate::cell::{CellResult, Status};
use crate::comparison::{TARGET, sides};
use crate::format::capital;
use crate::labels::{Axis, Labels};
use crate::noise::Noise;
use crate::rule::Rule;
use crate::target::TargetSummary;
use crate::verdict::Verdict;
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::experiment::{Answer, ExperimentInfo};
use kurabe_core::run::Run;
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
                let sentence = match &self {
                    $(Self::$family(finding) => finding.sentence(labels),)*
                };
                Statement { section, sentence: capital(&sentence), finding: self }
            }
        }
    };
}

families!(Comparison, Values, Reproduction, Rates, Bottlenecks, Progress, Trials, Note, Basis, Runs);

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

/// The input of all findings.
pub(crate) struct Context<'a> {
    pub run: &'a Run,
    pub info: Option<&'a ExperimentInfo>,
    pub labels: &'a Labels,
    pub targets: &'a [TargetSummary],
    pub cells: &'a [CellResult],
    pub verdicts: &'a [Verdict],
    pub noise: &'a Noise,
    pub rule: &'a Rule,
    /// The number of rounds with measurements.
    pub rounds: u32,
    /// The numbers of comparisons of primary metrics, whose intervals hold together, and of other metrics.
    pub comparisons: [u32; 2],
}

/// All findings, in the order of their sections.
pub(crate) fn all(context: &Context<'_>) -> Vec<Statement> {
    let (verdict, details) = verdicts(context);
    let sections = [
        (Section::Publishing, notes::publishing(context)),
        (Section::Verdict, verdict),
        (Section::Detail, details),
        (Section::Bottleneck, bottlenecks::findings(context)),
        (Section::Warning, warnings(context)),
        (Section::NotReported, notes::not_reported(context)),
        (Section::Basis, basis::findings(context)),
    ];
    let stated = |(section, findings): (Section, Vec<Finding>)| {
        findings.into_iter().map(move |finding| finding.state(section, context.labels))
    };
    sections.into_iter().flat_map(stated).collect()
}

/// What a reader must know before relying on results.
fn warnings(context: &Context<'_>) -> Vec<Finding> {
    let resumed = context.run.resumptions.iter().filter_map(|resumption| notes::resumed(context, resumption));
    let mut all: Vec<Finding> = progress::incomplete(context).into_iter().chain(resumed).collect();
    all.extend(trials::findings(context).into_iter().map(Finding::from));
    all.extend(notes::before(context));
    all.extend(notes::rates_apart(context));
    all.extend(progress::undecided(context));
    all
}

/// The answer to the question with further results; and the individual pairs.
fn verdicts(context: &Context<'_>) -> (Vec<Finding>, Vec<Finding>) {
    if !context.cells.iter().any(|cell| cell.status == Status::Ok) {
        return (vec![Progress::NoResults.into()], Vec::new());
    }
    if let Some(next) = context.rule.next() {
        return (vec![Progress::NotAnalysed { next }.into()], Vec::new());
    }
    let answer = context.info.map_or(Answer::Comparison, |info| info.answer);
    let (mut first, answered) = values::findings(context, answer);
    let (by_rate, mut details) = rates::findings(context);
    first.extend(by_rate);
    let (primary, others): (Vec<&Verdict>, Vec<&Verdict>) =
        context.verdicts.iter().filter(|verdict| !answered(verdict)).partition(|verdict| verdict.primary);
    let (targets, levels): (Vec<&Verdict>, Vec<&Verdict>) =
        primary.iter().copied().partition(|verdict| verdict.pair.axis == TARGET);
    let (targets, levels) = (comparison::findings(context, &targets), comparison::findings(context, &levels));
    let has_interval = |verdict: &Verdict| verdict.low.is_some();
    if context.verdicts.iter().any(|verdict| verdict.ratio.is_some())
        && !context.verdicts.iter().any(has_interval)
    {
        first.push(Progress::OneRound.into());
        details.extend(targets.into_iter().chain(levels));
    } else {
        first.extend(targets);
        let asked =
            |finding: &Finding| !matches!(finding, Finding::Comparison(Comparison::NotComparable { .. }));
        let (asked, other): (Vec<Finding>, Vec<Finding>) = levels.into_iter().partition(asked);
        first.extend(asked);
        details.extend(other);
    }
    // There are many verdicts on other metrics; only significant differences are shown.
    let called: Vec<&Verdict> = others.into_iter().filter(|verdict| verdict.result.is_called()).collect();
    details.extend(comparison::findings(context, &called));
    if answer != Answer::Metrics {
        first.extend(values::values(context));
    }
    first.extend(published::findings(context));
    if first.is_empty() {
        first.extend(values::throughput(context));
    }
    if first.is_empty() {
        first = std::mem::take(&mut details);
    }
    if first.is_empty() {
        first.push(Progress::NoBaseline.into());
    }
    first.extend(bottlenecks::limits_of_scaling(context));
    first.extend(values::settings(context));
    (first, details)
}

impl Context<'_> {
    /// The cell of a target with all axes at their baselines except the chart axis.
    pub fn baseline(&self, target: usize, operation: &str, x: Option<&AxisValue>) -> Option<&CellResult> {
        let chart = self.labels.chart_axis().map(|axis| axis.name.as_str());
        self.cells.iter().find(|cell| {
            let is = |axis: &Axis| {
                let wanted = if chart == Some(axis.name.as_str()) { x } else { axis.baseline() };
                cell.axes.get(&axis.name) == wanted
            };
            cell.target_index == target
                && cell.operation == operation
                && !cell.aa_control
                && self.labels.axes.iter().all(is)
        })
    }

    /// The two cells of a comparison.
    pub fn sides(&self, verdict: &Verdict) -> Option<[&CellResult; 2]> {
        sides(self.labels, self.cells, verdict)
    }

    /// The values of the varying axes, except the chart axis, that the sides of a comparison share.
    pub fn others(&self, verdict: &Verdict) -> Cell {
        Axis::values_of(self.labels.varying(), &verdict.at)
    }

    /// The baselines of all varying axes except the chart axis and `but`.
    pub fn held(&self, but: &str) -> Cell {
        Axis::baselines(self.labels.varying().filter(|axis| axis.name != but))
    }

    /// A scope of one operation on one target, at baselines.
    pub fn scope(&self, operation: &str, target: usize, at: Vec<AxisValue>) -> Scope {
        Scope {
            operations: vec![operation.to_owned()],
            targets: self.labels.names.get(target).cloned().into_iter().collect(),
            at,
            axes: self.held(""),
        }
    }
}
