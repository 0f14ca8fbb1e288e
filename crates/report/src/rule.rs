//! The analysis plan: when a run is analysed, and when its comparisons are conclusive.

use kurabe_core::run::{DEFAULT_MARGIN, Run, Sampled};
use kurabe_stats::IntervalSettings;
use kurabe_stats::interim::{Analyses, at_analysis};

/// When a run is analysed, and the margin of its comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// Differences below this do not matter.
    pub margin: f64,
    /// The planned analyses if there are several, and the number of this one.
    analyses: Option<(Analyses, u32)>,
    /// If the run has not ended as planned: the number of rounds at the next analysis. Nothing is compared before.
    next: Option<u32>,
    /// Whether the run adds rounds until all comparisons are conclusive.
    pub until: bool,
    /// Whether interleaving could detect smaller differences: not if it was used, or a rate is given.
    pub slices_help: bool,
    /// The number of rounds, and of rounds per block, if servers were restarted between blocks.
    blocks: Option<[u32; 2]>,
    /// How long a round took, in seconds; `None` if the run has no end.
    round_seconds: Option<f64>,
}

impl Rule {
    /// The plan of a run, and the analysis for the rounds that it has made.
    pub fn of(run: &Run) -> Self {
        let spec = &run.header.spec;
        let made = run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0);
        let analyses = run.analyses();
        // The last round may be incomplete.
        let next = analyses.as_ref().map_or(spec.rounds, |analyses| analyses.after(made.saturating_sub(1)));
        Self {
            margin: spec.until.map_or(DEFAULT_MARGIN, |until| until.margin),
            next: (!run.is_complete()).then_some(next),
            analyses: analyses.map(|analyses| {
                let number = analyses.number(made);
                (analyses, number)
            }),
            until: spec.until.is_some(),
            slices_help: spec.slice_ns.is_none() && spec.arrivals.is_none(),
            blocks: (spec.sampled() == Sampled::AnyStart)
                .then(|| [made.max(spec.rounds), spec.block_length()]),
            round_seconds: run.end.as_ref().zip(run.trials.first()).map(|(end, first)| {
                end.at_ms.saturating_sub(first.at_ms) as f64 / 1e3 / f64::from(made.max(1))
            }),
        }
    }

    /// The expected time of further rounds in seconds, if known.
    pub fn seconds(&self, rounds: u32) -> Option<u64> {
        self.round_seconds.map(|seconds| (seconds * f64::from(rounds)).ceil() as u64)
    }

    /// The number of rounds at the next analysis, if none is due now.
    pub fn next(&self) -> Option<u32> {
        self.next
    }

    /// The planned analyses, if there are several.
    pub fn analyses(&self) -> Option<&Analyses> {
        self.analyses.as_ref().map(|(analyses, _)| analyses)
    }

    /// Settings of an interval, corrected for all analyses.
    pub fn settings(&self, once: IntervalSettings) -> IntervalSettings {
        self.analyses.as_ref().map_or(once, |(_, number)| at_analysis(once, *number))
    }

    /// The numbers of rounds at the analyses; empty if there is only one.
    pub fn analysed_after(&self) -> Vec<u32> {
        let of = |(analyses, number): &(Analyses, u32)| analyses.rounds().take(*number as usize).collect();
        self.analyses.as_ref().map_or_else(Vec::new, of)
    }

    /// The number of restarts with so many further rounds, if servers were restarted between blocks.
    pub fn restarts(&self, further: u32) -> Option<u32> {
        self.blocks.map(|[rounds, each]| (rounds + further) / each.max(1) - 1)
    }
}
