//! The findings of a report, as typed values. Renderers make their sentences, in the language that is asked for.
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

use crate::cell::{CellResult, Status};
use crate::comparison::TARGET;
use crate::labels::Labels;
use crate::noise::Noise;
use crate::rule::Rule;
use crate::target::{TargetId, TargetSummary};
use crate::verdict::Verdict;
use kurabe_core::experiment::{Answer, ExperimentInfo};
use kurabe_core::run::Run;
use serde::Serialize;

pub use crate::finding::basis::{Agents, Basis, NotInterleaved, Overhead, Tested};
pub use crate::finding::bottlenecks::Bottlenecks;
pub use crate::finding::comparison::{Comparison, Measured, Promise};
pub use crate::finding::notes::{Login, Note};
pub use crate::finding::progress::Progress;
pub use crate::finding::published::{PublishedHere, Reproduction};
pub use crate::finding::rates::{RatePoint, Rates};
pub use crate::finding::runs::{Between, Criteria, Gated, Gates, Runs};
pub use crate::finding::trials::Trials;
pub use crate::finding::values::{MetricPoint, SettingValues, Values};
pub use crate::labels::Scope;
pub use crate::noise::NoiseFloor;
pub use crate::verdict::{Limit, Pair, Side, Why};
pub use kurabe_stats::{Estimate, Interval};

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
            /// The finding as a sentence, in the language of the labels.
            pub(crate) fn sentence(&self, labels: &Labels) -> String {
                labels.begun(&match self {
                    $(Self::$family(finding) => finding.sentence(labels),)*
                })
            }
        }
    };
}

families!(Comparison, Values, Reproduction, Rates, Bottlenecks, Progress, Trials, Note, Basis, Runs, Gates);

/// What follows from a warning for the results, the most serious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Consequence {
    /// Results are missing, or answers were wrong.
    Missing,
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
            Self::Trials(
                Trials::Disturbed { .. }
                | Trials::Uneven { .. }
                | Trials::Unsteady { .. }
                | Trials::FewerAgents { .. },
            )
            | Self::Note(Note::Resumed { .. }) => Consequence::Doubtful,
            Self::Progress(_) => Consequence::Undecided,
            _ => Consequence::Remark,
        }
    }
}

/// A finding and where reports show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub section: Section,
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

/// All findings, in the order of their sections.
pub(crate) fn all(context: &Context<'_>) -> Vec<Statement> {
    let (mut verdict, details) = verdicts(context);
    verdict.extend(all_of(notes::logins(context)).chain(all_of(notes::plans(context))));
    let resumed = context.run.resumptions.iter().filter_map(|one| notes::resumed(context, one));
    let warnings = all_of(progress::incomplete(context))
        .chain(all_of(resumed))
        .chain(all_of(trials::findings(context)))
        .chain(all_of(notes::before(context)))
        .chain(all_of(progress::undecided(context)))
        .chain(all_of(notes::alone(context)));
    let sections = [
        (Section::Publishing, all_of(notes::publishing(context)).collect()),
        (Section::Verdict, verdict),
        (Section::Detail, details),
        (Section::Bottleneck, all_of(bottlenecks::findings(context)).collect()),
        (Section::Warning, warnings.collect()),
        (Section::NotReported, all_of(notes::not_reported(context)).collect()),
        (Section::Basis, all_of(basis::findings(context)).collect()),
    ];
    let stated = |(section, findings): (Section, Vec<Finding>)| {
        findings.into_iter().map(move |finding| Statement { section, finding })
    };
    sections.into_iter().flat_map(stated).collect()
}

/// The findings of a family.
fn all_of<F: Into<Finding>>(found: impl IntoIterator<Item = F>) -> impl Iterator<Item = Finding> {
    found.into_iter().map(F::into)
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
    let values::Answers { costs, left, answered, values, settings } = values::findings(context, answer);
    let mut first: Vec<Finding> = all_of(costs).chain(all_of(comparison::findings(context, &left))).collect();
    let (leading, further) =
        if answer == Answer::Metrics { (values, Vec::new()) } else { (Vec::new(), values) };
    first.extend(all_of(leading));
    let (by_rate, details) = rates::findings(context);
    first.extend(all_of(by_rate));
    let mut details: Vec<Finding> = all_of(details).collect();
    let (primary, others): (Vec<&Verdict>, Vec<&Verdict>) =
        context.verdicts.iter().filter(|verdict| !answered(verdict)).partition(|verdict| verdict.primary);
    let (targets, levels): (Vec<&Verdict>, Vec<&Verdict>) =
        primary.iter().copied().partition(|verdict| verdict.pair.axis == TARGET);
    let (targets, levels) = (comparison::findings(context, &targets), comparison::findings(context, &levels));
    if context.verdicts.iter().any(|verdict| verdict.ratio.is_some())
        && !context.verdicts.iter().any(Verdict::has_interval)
    {
        first.push(Progress::OneRound.into());
        details.extend(all_of(targets).chain(all_of(levels)));
    } else {
        first.extend(all_of(targets));
        let asked = |finding: &Comparison| !matches!(finding, Comparison::NotComparable { .. });
        let (asked, other): (Vec<Comparison>, Vec<Comparison>) = levels.into_iter().partition(asked);
        first.extend(all_of(asked));
        details.extend(all_of(other));
    }
    // There are many verdicts on other metrics; only significant differences are shown.
    let called: Vec<&Verdict> = others.into_iter().filter(|verdict| verdict.result.is_outside()).collect();
    details.extend(all_of(comparison::findings(context, &called)));
    first.extend(all_of(further));
    first.extend(all_of(published::findings(context)));
    if first.is_empty() {
        first = std::mem::take(&mut details);
    }
    if first.is_empty() {
        first.push(Progress::NothingCompared.into());
    }
    first.extend(all_of(bottlenecks::limits_of_scaling(context)));
    first.extend(all_of(settings));
    (first, details)
}

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

impl<'a> Context<'a> {
    /// The targets of the run, each with its identity.
    pub fn known_targets(&self) -> impl Iterator<Item = (&'a TargetId, &'a TargetSummary)> {
        self.labels.ids.iter().zip(self.targets)
    }
}
