//! Notes on a run and its targets that trials do not show.

use super::wording::{many, with_version};
use crate::format::list;
use crate::labels::Labels;
use kurabe_core::units;
use serde::Serialize;

/// What a reader must know of the run and its targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Note {
    /// A warning from before the first trial.
    Preflight { warning: String },
    /// The run was resumed, and trials from this one on used something else.
    Resumed { from_trial: u64, changes: Vec<String> },
    /// A driver's note on its target.
    TargetNote { target: String, note: String },
    /// The report omits targets of the run.
    LeftOut { targets: u32, noise_floor_lost: bool },
    /// The rates of some compared pairs have another ratio than their interleaved trials, by more than the margin.
    RatesApart { pairs: u32, of: u32 },
    /// A licence restricts publishing a target's results.
    PublishingRestricted { target: String, version: String, says: String, name: String, source: String },
    /// A server does not report something.
    NotReported { target: String, what: Vec<String>, reason: String },
}

impl Note {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        match self {
            Self::Preflight { warning } => format!("{}.", warning.trim_end_matches('.')),
            Self::Resumed { from_trial, changes } => {
                let (from, changes) = (units::count(*from_trial), list(changes));
                format!("trials from number {from} on used {changes}, which may change results.")
            }
            Self::TargetNote { target, note } => format!("note on {}: {note}", labels.target(target)),
            Self::LeftOut { targets, noise_floor_lost } => {
                let floor = if *noise_floor_lost {
                    "; what equal measurements differ by is not known, since it was measured on one of them"
                } else {
                    ""
                };
                let verb = if *targets == 1 { "is" } else { "are" };
                let targets = many((*targets).into(), "target", "targets");
                format!("{targets} of this run {verb} left out of this report{floor}.")
            }
            Self::RatesApart { .. } => {
                "rates are of continuous trials; the ratios, of interleaved ones, decide.".to_owned()
            }
            Self::PublishingRestricted { target, version, says, name, source } => {
                let target = with_version(target, version, labels);
                format!("publishing is restricted for {target}: {says} ({name}; {source}).")
            }
            Self::NotReported { target, what, reason } => {
                format!("not reported by {}: {} ({reason}).", labels.target(target), what.join(", "))
            }
        }
    }
}
