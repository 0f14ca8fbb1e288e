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

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::run::{MachineFacts, Outcome, RunEnd, RunHeader, RunSpec, TrialRecord, Until};

    /// A run that began its first trial after two seconds, and ended as planned if `ended` says when.
    fn run(spec: RunSpec, rounds: u32, ended: Option<u64>) -> Run {
        let mut run = Run::new(RunHeader {
            run: String::new(),
            began: 0,
            kurabe: String::new(),
            command: Vec::new(),
            spec,
            machine: MachineFacts::default(),
            targets: Vec::new(),
            cells: Vec::new(),
            overhead: Vec::new(),
            warnings: Vec::new(),
            origin: kurabe_core::origin::Origin::default(),
            agents: Vec::new(),
        });
        let trial = |round: u32| TrialRecord {
            round,
            cell: 0,
            operation: "read".to_owned(),
            at_ms: 2_000 + 1_000 * u64::from(round),
            outcome: Outcome::Failed {
                kind: kurabe_core::ErrorKind::Usage,
                reason: String::new(),
                mismatches: 0,
            },
            rerun_reason: None,
        };
        run.trials = (0..rounds).map(trial).collect();
        run.end = ended.map(|at_ms| RunEnd { at_ms, complete: true });
        run
    }

    #[test]
    fn further_rounds_take_as_long_as_those_that_were_made() {
        // Four rounds in ten seconds.
        let rule = Rule::of(&run(RunSpec { rounds: 4, ..RunSpec::default() }, 4, Some(12_000)));
        assert_eq!([1, 2, 10].map(|rounds| rule.seconds(rounds)), [Some(3), Some(5), Some(25)]);
        assert_eq!((rule.next(), rule.analysed_after().len(), rule.restarts(3)), (None, 0, None));
        assert!((rule.margin - DEFAULT_MARGIN).abs() < 1e-12 && !rule.until && rule.slices_help);
        let once = IntervalSettings::default().for_comparisons(3);
        assert_eq!(rule.settings(once), once);
        assert_eq!(Rule::of(&run(RunSpec::default(), 0, None)).seconds(1), None);
    }

    #[test]
    fn run_that_has_not_ended_is_analysed_after_its_planned_rounds() {
        let rule = Rule::of(&run(RunSpec { rounds: 9, ..RunSpec::default() }, 4, None));
        assert_eq!((rule.next(), rule.seconds(5)), (Some(9), None));
        let until = Some(Until { margin: 0.02, max_rounds: 30, budget_ns: None });
        let spec = RunSpec { rounds: 6, until, ..RunSpec::default() };
        // After 6, 9, 14, … rounds: the third analysis is the next one.
        let rule = Rule::of(&run(spec.clone(), 10, None));
        assert_eq!((rule.next(), rule.analysed_after()), (Some(14), vec![6, 9, 14]));
        assert!((rule.margin - 0.02).abs() < 1e-12 && rule.until);
        let once = IntervalSettings::default();
        assert_eq!(rule.settings(once), at_analysis(once, 3));
        assert_eq!(Rule::of(&run(spec.clone(), 9, None)).next(), Some(9), "the ninth may not be over");
        assert_eq!(Rule::of(&run(spec, 9, Some(12_000))).next(), None);
    }

    #[test]
    fn slices_help_only_a_run_without_them_and_without_a_given_rate() {
        let spec = RunSpec { rounds: 4, slice_ns: Some(10_000_000), ..RunSpec::default() };
        assert!(!Rule::of(&run(spec, 4, None)).slices_help);
    }

    #[test]
    fn restarts_come_between_blocks_of_all_rounds() {
        let rule = |blocks| Rule {
            margin: DEFAULT_MARGIN,
            analyses: None,
            next: None,
            until: false,
            slices_help: true,
            blocks,
            round_seconds: None,
        };
        // Four blocks of two rounds have three restarts; ten rounds more make nine blocks.
        let of = |further| rule(Some([8, 2])).restarts(further);
        assert_eq!([0, 2, 3, 10].map(of), [Some(3), Some(4), Some(4), Some(8)]);
        assert_eq!(rule(None).restarts(2), None);
    }
}
