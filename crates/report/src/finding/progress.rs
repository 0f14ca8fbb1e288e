//! Findings on how far a run is: what it has not shown yet, and what would.

use super::wording::{many, rounds};
use crate::format::percent;
use crate::labels::Labels;
use kurabe_core::units;
use serde::Serialize;
use std::time::Duration;

/// Why a run shows no results or verdicts, or not all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Progress {
    /// No cell has results.
    NoResults,
    /// The next planned analysis is after this many rounds; nothing is compared before.
    NotAnalysed { next: u32 },
    /// The baseline cells have no results, so that nothing was compared.
    NoBaseline,
    /// One round has no interval, so that no verdict is possible.
    OneRound,
    /// Planned trials are missing.
    Incomplete { made: u64, planned: u64 },
    /// Undecided comparisons, of those with intervals; how many of them additional rounds are expected to decide,
    /// and the number of rounds with their time. `until`: the run adds rounds until all are conclusive. `slices_help`: interleaving
    /// could detect smaller differences. `restarts`: the number of restarts that is expected to decide them, if the run had some.
    MoreRounds {
        undecided: u32,
        of: u32,
        margin: f64,
        decidable: u32,
        further_rounds: Option<u32>,
        further_seconds: Option<u64>,
        until: bool,
        slices_help: bool,
        restarts: Option<u32>,
    },
    /// Additional rounds would change nothing: some comparisons cannot be made, and the others are conclusive.
    AllConclusive { margin: f64, of: u32, not_comparable: u32 },
}

impl Progress {
    pub(super) fn sentence(&self, _: &Labels) -> String {
        match self {
            Self::NoResults => "there are no results.".to_owned(),
            Self::NotAnalysed { next } => format!(
                "no verdicts yet: the next planned analysis is after {}. 'kurabe run --resume' continues the run.",
                rounds(*next)
            ),
            Self::NoBaseline => {
                "the baseline has no results, so nothing was compared; the tables show the others.".to_owned()
            }
            Self::OneRound => {
                "one round has no interval, so no verdict is possible; use more rounds.".to_owned()
            }
            Self::Incomplete { made, planned } => {
                let why = if made > planned {
                    "it was stopped before its comparisons were conclusive".to_owned()
                } else {
                    format!("{} of {} planned trials were made", units::count(*made), units::count(*planned))
                };
                format!("this run is not complete: {why}; 'kurabe run --resume' continues the run.")
            }
            Self::MoreRounds {
                undecided,
                of,
                margin,
                decidable,
                further_rounds,
                further_seconds,
                until,
                slices_help,
                restarts,
            } => {
                let all = units::count(u64::from(*of));
                let verb = if *undecided == 1 { "is" } else { "are" };
                let which = match (*decidable == *undecided, *decidable) {
                    (true, 1) => "it".to_owned(),
                    (true, _) => "them".to_owned(),
                    (false, n) => format!("{n} of them"),
                };
                let more = further_rounds.map_or_else(
                    || "more rounds are not expected to decide that".to_owned(),
                    |more| {
                        let how = match restarts {
                            Some(restarts) => format!("--restarts {restarts}"),
                            None if *until => "'kurabe run --resume' with more --max-rounds".to_owned(),
                            None => "--until conclusive".to_owned(),
                        };
                        let rounds = many(more.into(), "more round", "more rounds");
                        let time = further_seconds.map(|all| units::time(Duration::from_secs(all)));
                        let time = time.map_or_else(String::new, |time| format!(" ({time})"));
                        format!("about {rounds}{time} would decide {which}: {how}")
                    },
                );
                let finer = if *slices_help { "; --interleave detects smaller differences" } else { "" };
                format!(
                    "{undecided} of {all} comparisons {verb} undecided at ±{}; {more}{finer}.",
                    percent(*margin)
                )
            }
            Self::AllConclusive { margin, of, not_comparable } => {
                let equal = format!("conclusive: different, or equal to within {}", percent(*margin));
                let refused = "cannot be made with any number of rounds";
                match not_comparable {
                    0 => format!("every comparison is {equal}."),
                    1 if *of == 1 => format!("the comparison {refused}."),
                    n if n == of => format!("all {n} comparisons {refused}."),
                    n => format!("{n} of {of} comparisons {refused}; every other one is {equal}."),
                }
            }
        }
    }
}
