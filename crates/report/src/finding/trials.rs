//! Findings on trials: their bottlenecks, and what makes their results invalid or doubtful.

use super::Scope;
use super::wording::{many, of_cells};
use crate::attribution::{Bottleneck, Confidence};
use crate::format::{list, percent};
use crate::labels::Labels;
use kurabe_core::units;
use serde::Serialize;

/// Bottlenecks of trials, and defects that affect their results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Trials {
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
    /// From this number of the server's processors on, the client of the scope's cells was saturated and not the server.
    /// `known`: the largest number with which the server was not limited by the client; `None` if there is none.
    ClientLimitsScaling { scope: Scope, from: u64, known: Option<u64> },
    /// Other load on the machine during trials: the number of affected and observed cells, and the reason for one of
    /// them.
    Disturbed { cells: u32, of: u32, targets: Vec<String>, reason: String },
    /// Disturbed trials were repeated.
    Rerun { trials: u64, reason: String },
    /// The run went on without these agents, so that trials ran on fewer agents than it began with.
    FewerAgents { agents: Vec<String>, trials: u64, of: u64 },
    /// Cells have no results because a trial failed.
    Failed { cells: u64 },
    /// Trials ended early because each record is changed at most once. `needed` records make them long enough.
    RecordsExhausted { scope: Scope, trials: u64, of: u64, records: u64, needed: u64 },
    /// Replies were wrong.
    WrongAnswers { answers: u64 },
    /// Throughput changed until trials ended: by at most this factor from the first quarter to the last.
    Unsteady { scope: Scope, cells: u32, of: u32, change: f64 },
    /// Throughput became steady only after the warm-up.
    SteadyLate { scope: Scope, cells: u32, of: u32 },
}

impl Trials {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        match self {
            Self::Bottleneck { scope, exact, bottleneck, confidence, evidence, cells, of } => {
                let what = labels.results_of(scope);
                let part = if *exact { String::new() } else { of_cells(*cells, *of) };
                let one = if *cells > 1 { " of one of them" } else { "" };
                let limit = limited_by(*bottleneck, *confidence);
                format!("{what}{part}: {limit}. Evidence{one}: {evidence}.")
            }
            Self::ClientLimitsScaling { scope, from, known } => {
                let what = labels.results_of(scope);
                let beyond = known.map_or_else(String::new, |known| {
                    format!(" beyond {}", many(known, "processor", "processors"))
                });
                format!(
                    "{what}: from {} of the server on, the client stopped scaling and not the server. How the server \
                     scales{beyond} is unknown: use a machine with more processors for the client.",
                    many(*from, "processor", "processors")
                )
            }
            Self::Disturbed { cells, of, targets, reason } => {
                let on = labels.targets_of(targets);
                let on = if labels.several_targets() { format!(" (on {on})") } else { String::new() };
                let one = if *cells > 1 { "; in one of them " } else { ": " };
                let of =
                    if *of == 1 { "the one result".to_owned() } else { format!("{cells} of {of} results") };
                format!(
                    "the machine had other load during {of}{on}{one}{reason}. Repeat the run on an idle machine."
                )
            }
            Self::Rerun { trials, reason } => {
                let trials = many(*trials, "trial was", "trials were");
                format!("{trials} disturbed and repeated ({reason}); the disturbed results do not count.")
            }
            Self::FewerAgents { agents, trials, of } => format!(
                "the run went on without {} {}: {trials} of {} ran on fewer agents. All trials of a round ran on the same agents.",
                if agents.len() == 1 { "agent" } else { "agents" },
                list(agents),
                many(*of, "trial", "trials")
            ),
            Self::Failed { cells } => {
                format!("{} missing because a trial failed.", many(*cells, "result is", "results are"))
            }
            Self::RecordsExhausted { scope, trials, of, records, needed } => {
                let what = labels.operations_of(&scope.operations);
                let trials =
                    if *of == 1 { "the trial".to_owned() } else { format!("{trials} of {of} trials") };
                format!(
                    "{what}: {trials} ended early: a trial changes each of the {} records once. For longer trials use --records {needed}.",
                    units::count(*records),
                )
            }
            Self::WrongAnswers { answers } => {
                format!("{} wrong.", many(*answers, "reply was", "replies were"))
            }
            Self::Unsteady { scope, change, .. } => {
                let (word, by) = if *change < 1.0 { ("fell", 1.0 - change) } else { ("rose", change - 1.0) };
                format!(
                    "{} marked ~ {word} by up to {} during a trial. Use a longer --duration.",
                    labels.results_of(scope),
                    percent(by)
                )
            }
            Self::SteadyLate { scope, cells, of } => {
                let (what, cells) = (labels.results_of(scope), of_cells(*cells, *of));
                format!("{what} became steady only after the warm-up{cells}. Use a longer --duration.")
            }
        }
    }
}

/// The bottleneck as a predicate.
fn limited_by(bottleneck: Bottleneck, confidence: Confidence) -> String {
    let likely = if confidence == Confidence::Low { "most likely " } else { "" };
    match bottleneck {
        Bottleneck::Unknown => "bottleneck unknown".to_owned(),
        Bottleneck::Load => "the given rate was kept up".to_owned(),
        Bottleneck::Latency => format!("{likely}limited by round-trip time"),
        Bottleneck::ClientCpu => {
            format!("the bottleneck is {likely}{}; the result is a lower bound", bottleneck.noun())
        }
        other => format!("the bottleneck is {likely}{}", other.noun()),
    }
}
