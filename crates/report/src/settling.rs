//! Which comparisons are settled, and what it would take to settle the others.

use crate::comparison::Comparison;
use crate::format::{list, percent};
use kurabe_core::run::{DEFAULT_MARGIN, Run, Until};
use kurabe_core::units;
use kurabe_stats::IntervalSettings;
use kurabe_stats::settle::{Looks, at_look};

/// How a run was looked at, and what settles its comparisons.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// A difference below this does not matter.
    pub margin: f64,
    /// How the run is looked at, where that is more than once, and which look this is.
    looks: Option<(Looks, u32)>,
    until: Option<Until>,
    /// Whether trials that took turns could show smaller differences: not where they did, or where a rate is given.
    finer: bool,
}

impl Rule {
    /// The rule of a run, and the look that the rounds it has made belong to.
    pub fn of(run: &Run) -> Self {
        let until = run.header.spec.until;
        let made = run.trials.iter().map(|trial| trial.round + 1).max().unwrap_or(0);
        let looks = Looks::after(run.header.spec.rounds);
        Self {
            margin: until.map_or(DEFAULT_MARGIN, |until| until.margin),
            looks: until.map(|_| (looks, looks.number(made))),
            until,
            finer: run.header.spec.turn_ns.is_none() && run.header.spec.arrivals.is_none(),
        }
    }

    /// The looks, where there are several.
    pub fn looks(&self) -> Option<Looks> {
        self.looks.map(|(looks, _)| looks)
    }

    /// An interval's settings, made to hold with those of all other looks.
    pub fn settings(&self, once: IntervalSettings) -> IntervalSettings {
        self.looks.map_or(once, |(_, look)| at_look(once, look))
    }

    /// After how many rounds the run was looked at, as a clause; nothing where that was once.
    pub fn looked(&self) -> Option<String> {
        let (looks, look) = self.looks?;
        if look == 1 {
            return Some(format!(
                "at the first look, after {} rounds, and at all that follow",
                looks.rounds(1)
            ));
        }
        let at: Vec<String> = (1..=look).map(|look| looks.rounds(look).to_string()).collect();
        Some(format!("at looks after {} rounds, all of which hold together", list(&at)))
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
        let finer = if self.finer { "; --turns shows smaller differences" } else { "" };
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
