//! Findings of comparing two runs.

use super::wording::{gained, many, subject, verb};
use super::{Interval, Scope};
use crate::compare::{Between, Criteria, Decision};
use crate::labels::Labels;
use crate::metrics::is_speed;
use serde::Serialize;

/// How two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Runs {
    /// An incomplete run is not compared with another.
    NotCompared { run: String },
    /// A primary metric changed from the first run to the second: better ÷ worse, above 1.
    Changed { scope: Scope, metric: String, better: bool, ratio: Interval, lower_bound: bool },
    /// The changes between two runs, of all results that tables have.
    Changes { better: u32, worse: u32, no_difference: u32, undecided: u32, not_comparable: u32 },
    /// Two runs at different times are weaker evidence than a single run with both, and decide nothing if what changes
    /// from one run to the next was not sampled.
    NotInterleaved { between: Between },
    /// A target that only one of two runs has.
    OnlyIn { run: String, target: String },
    /// Results that only one of two runs has.
    Unmatched { run: String, results: u32 },
    /// The decision of a gate over the results that it judges.
    Gated {
        criteria: Criteria,
        decision: Decision,
        passed: u32,
        slower: u32,
        undecided: u32,
        tails: u32,
        not_judged: u32,
    },
    /// What would decide a gate: about so many rounds instead of these, or another margin.
    MoreRounds { rounds: u32, needed: Option<u32> },
    /// Other load on the machine holds a gate up.
    OtherLoad { results: u32 },
    /// Why a gate could not judge a result.
    NotJudged { reason: String },
    /// A difference between two runs because of which a gate judges no result.
    Obstacle { what: String, first: String, second: String },
}

impl Runs {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        match self {
            Self::NotCompared { run } => {
                format!("{run} is not complete: its results are shown, but not compared.")
            }
            Self::Changed { scope, metric, better, ratio, lower_bound } => {
                let (subject, place) = (subject(metric, scope, labels), labels.place(scope));
                let (verb, run) = match (better, is_speed(metric)) {
                    (true, _) => (verb(metric), "second"),
                    (false, true) => ("were", "first"),
                    (false, false) => ("was", "first"),
                };
                let gained = gained(metric, *ratio, *lower_bound, labels);
                format!("{subject}{place} {verb} {gained} in the {run} run.")
            }
            Self::Changes { better, worse, no_difference, undecided, not_comparable } => {
                let all = better + worse + no_difference + undecided + not_comparable;
                if all == 0 {
                    return "the two runs have no results in common.".to_owned();
                }
                let rest =
                    [(no_difference, "equal"), (undecided, "undecided"), (not_comparable, "not comparable")];
                let rest = rest.iter().filter(|(n, _)| **n > 0).map(|(n, text)| format!(", {n} {text}"));
                let rest = rest.collect::<Vec<_>>().concat();
                format!(
                    "of {all} results in both runs, {better} are better in the second and {worse} worse{rest}."
                )
            }
            Self::NotInterleaved { between } => between.sentence(),
            Self::OnlyIn { run, target } => format!("only {run} has {target}."),
            Self::Unmatched { run, results } => {
                let results = many((*results).into(), "result", "results");
                format!("{results} of {run} have no counterpart: their axis values differ.")
            }
            Self::Gated { criteria, decision, passed, slower, undecided, tails, not_judged } => {
                let all = many((passed + slower + undecided + not_judged).into(), "result", "results");
                let decision = match decision {
                    Decision::Passed => "passed",
                    Decision::Failed => "failed",
                    Decision::Undecided => "is undecided",
                };
                let worse = match slower {
                    0 => "none is".to_owned(),
                    1 => "1 is".to_owned(),
                    n => format!("{n} are"),
                };
                let rest = [
                    (*passed, "passed"),
                    (undecided - tails, "undecided"),
                    (*tails, "undecided of p99, which --fail-on does not name"),
                    (*not_judged, "not judged"),
                ];
                let rest = rest.iter().filter(|(n, _)| *n > 0).map(|(n, text)| format!(", {n} {text}"));
                let rest = rest.collect::<String>();
                format!("the gate {decision}: of {all}, {worse} worse by {}{rest}.", criteria.words())
            }
            Self::MoreRounds { rounds, needed: Some(needed) } => format!(
                "about {needed} rounds would decide it, in place of {rounds}: add --rounds {needed}, longer trials, or a \
                 wider margin."
            ),
            Self::MoreRounds { needed: None, .. } => {
                "what is undecided lies at the margin, and more rounds may not decide \
                 it: give another margin, such as --fail-on slower:10%."
                    .to_owned()
            }
            Self::OtherLoad { results } => format!(
                "other processes used the CPU during {} that would fail: repeat it on a quiet machine, or with --wait-quiet \
                 10min.",
                many((*results).into(), "result", "results")
            ),
            Self::NotJudged { reason } => format!("a result is not judged: {reason}."),
            Self::Obstacle { what, first, second } => {
                format!(
                    "no result is judged: {what} differs: {first} in the first run, {second} in the second."
                )
            }
        }
    }
}
