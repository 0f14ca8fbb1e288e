//! When a run is analysed, and what makes its comparisons conclusive.

use crate::finding::Finding;
use crate::summary::{Verdict, VerdictResult};
use kurabe_core::run::{DEFAULT_MARGIN, Run, Until};
use kurabe_stats::IntervalSettings;
use kurabe_stats::interim::{Analyses, at_analysis};

/// When a run is analysed, and the margin of its comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// A difference below this does not matter.
    pub margin: f64,
    /// When the run is analysed, where that is more than once, and the number of this analysis.
    analyses: Option<(Analyses, u32)>,
    /// Where the run has not ended as planned: after how many rounds the next analysis is. Before that nothing is compared.
    next: Option<u32>,
    until: Option<Until>,
    /// Whether interleaving trials in slices could detect smaller differences: not where it was done, or a rate is given.
    slices_help: bool,
}

impl Rule {
    /// The rule of a run, and the analysis that the rounds it has made belong to.
    pub fn of(run: &Run) -> Self {
        let spec = &run.header.spec;
        let made = run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0);
        let analyses = spec.until.map(|_| Analyses::new(spec.rounds, run.max_rounds()));
        // The last round may not be whole.
        let next = analyses.as_ref().map_or(spec.rounds, |analyses| analyses.after(made.saturating_sub(1)));
        Self {
            margin: spec.until.map_or(DEFAULT_MARGIN, |until| until.margin),
            next: (!run.is_complete()).then_some(next),
            analyses: analyses.map(|analyses| {
                let number = analyses.number(made);
                (analyses, number)
            }),
            until: spec.until,
            slices_help: spec.slice_ns.is_none() && spec.arrivals.is_none(),
        }
    }

    /// After how many rounds the next analysis is, where none is due now.
    pub fn next(&self) -> Option<u32> {
        self.next
    }

    /// When the run is analysed, where that is more than once.
    pub fn analyses(&self) -> Option<&Analyses> {
        self.analyses.as_ref().map(|(analyses, _)| analyses)
    }

    /// An interval's settings, made to hold with those of all other analyses.
    pub fn settings(&self, once: IntervalSettings) -> IntervalSettings {
        self.analyses.as_ref().map_or(once, |(_, number)| at_analysis(once, *number))
    }

    /// After how many rounds the run was analysed; empty where that was once.
    pub fn analysed_after(&self) -> Vec<u32> {
        let of = |(analyses, number): &(Analyses, u32)| analyses.rounds().take(*number as usize).collect();
        self.analyses.as_ref().map_or_else(Vec::new, of)
    }

    /// What a reader must know of comparisons that are inconclusive, or how the run came to its end, where it had a rule.
    pub fn finding(&self, verdicts: &[Verdict]) -> Option<Finding> {
        let compared: Vec<&Verdict> =
            verdicts.iter().filter(|verdict| verdict.primary && verdict.low.is_some()).collect();
        let open: Vec<&Verdict> = compared.iter().copied().filter(|verdict| !verdict.conclusive).collect();
        let until = self.until.is_some();
        if open.is_empty() {
            let refused = compared.iter().filter(|verdict| verdict.result == VerdictResult::NotComparable);
            let (of, not_comparable) = (compared.len() as u32, refused.count() as u32);
            return (until && of > 0).then_some(Finding::AllConclusive {
                margin: self.margin,
                of,
                not_comparable,
            });
        }
        Some(Finding::Undecided {
            inconclusive: open.len() as u32,
            of: compared.len() as u32,
            margin: self.margin,
            decidable: open.iter().filter(|verdict| verdict.further_rounds.is_some()).count() as u32,
            further_rounds: open.iter().filter_map(|verdict| verdict.further_rounds).max(),
            until,
            slices_help: self.slices_help,
        })
    }
}
