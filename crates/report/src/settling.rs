//! Which comparisons are settled, and what it would take to settle the others.

use crate::comparison::Comparison;
use crate::format::{list, percent};
use kurabe_core::run::{DEFAULT_MARGIN, Run, Until};
use kurabe_core::units;
use kurabe_stats::IntervalSettings;
use kurabe_stats::settle::{Analyses, at_analysis};

/// When a run is analysed, and what settles its comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// A difference below this does not matter.
    pub margin: f64,
    /// When the run is analysed, where that is more than once, and the number of this analysis.
    analyses: Option<(Analyses, u32)>,
    /// Where the run has not ended as planned: after how many rounds the next analysis is. Before that nothing is compared.
    next: Option<u32>,
    until: Option<Until>,
    /// Whether interleaved trials could show smaller differences: not where they did, or where a rate is given.
    finer: bool,
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
            finer: spec.slice_ns.is_none() && spec.arrivals.is_none(),
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

    /// After how many rounds the run was analysed, as a clause; nothing where that was once.
    pub fn analysed(&self) -> Option<String> {
        let (analyses, number) = self.analyses.as_ref()?;
        let at: Vec<String> = analyses.rounds().take(*number as usize).map(|n| n.to_string()).collect();
        if *number == 1 {
            return Some(format!("at the analysis after {} rounds, and at all that follow", at.concat()));
        }
        Some(format!("at analyses after {} rounds, all of which hold together", list(&at)))
    }

    /// What a reader must know of comparisons that are not settled; how the run came to its end, where it had a rule.
    pub fn note(&self, comparisons: &[Comparison]) -> Option<String> {
        let compared: Vec<&Comparison> =
            comparisons.iter().filter(|c| c.ratio.is_some_and(|ratio| ratio.interval.is_some())).collect();
        let open: Vec<&Comparison> = compared.iter().copied().filter(|c| !c.settled).collect();
        let margin = percent(self.margin);
        if open.is_empty() {
            let until = self.until.filter(|_| !compared.is_empty());
            return until.map(|_| format!("Every comparison is settled: called, or within {margin}."));
        }
        let many = match (open.len(), compared.len()) {
            (1, 1) => "The comparison is open".to_owned(),
            (1, all) => format!("1 of {} comparisons is open", units::count(all as u64)),
            (open, all) => {
                format!("{} of {} comparisons are open", units::count(open as u64), units::count(all as u64))
            }
        };
        let most = open.iter().filter_map(|c| c.further).max();
        let beyond = open.iter().filter(|c| c.further.is_none()).count();
        let more = match (most, beyond) {
            (None, _) => "and no number of rounds that can be foreseen would settle that".to_owned(),
            (Some(most), 0) => format!("about {} would settle that", more_rounds(most)),
            (Some(most), beyond) => format!(
                "about {} would settle {} of them",
                more_rounds(most),
                units::count((open.len() - beyond) as u64)
            ),
        };
        let how = if self.until.is_some() {
            " ('kurabe resume' with more --max-rounds goes on)"
        } else {
            " (--until settled makes them)"
        };
        let how = if most.is_some() { how } else { "" };
        let finer = if self.finer { "; --interleave shows smaller differences" } else { "" };
        Some(format!("{many}, neither called nor known to be within {margin}; {more}{how}{finer}."))
    }
}

/// `1 more round`, `5 more rounds`.
pub(crate) fn more_rounds(count: u32) -> String {
    if count == 1 {
        "1 more round".to_owned()
    } else {
        format!("{} more rounds", units::count(u64::from(count)))
    }
}
