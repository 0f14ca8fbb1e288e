//! Interim analyses: the planned numbers of rounds at which a run is analysed, and when it is conclusive.
//!
//! A run that is analysed after every round and stopped at the first difference eventually finds one even if there is
//! none (P. Armitage and others, "Repeated Significance Tests on Accumulating Data", J. R. Stat. Soc. A 132, 1969:
//! five analyses at 5 % make 14 %). Therefore a run is analysed only after planned numbers of rounds, and each
//! analysis spends a part of the 5 % (Lan and others, "Discrete sequential boundaries for clinical trials",
//! Biometrika 70(3), 1983). Each planned number is 1.5 times the previous one. The maximum number of rounds is
//! planned too, because the run ends there. The k-th analysis may spend 1 ÷ k(k + 1): a half, a sixth, a twelfth, …,
//! which add up to 1 for any number of analyses. By Boole's inequality the intervals of all analyses then hold
//! *together* with 95 %, for any stopping rule and also for a later resumption: a confidence sequence (Darling and
//! Robbins, "Confidence sequences for mean, variance, and median", PNAS 58, 1967), stitched from few analyses as in
//! Howard, Ramdas and others, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Ann. Statist. 49(2),
//! 2021. The cost is width: after 6 rounds the interval is a quarter wider than that of a run analysed once, at the
//! second analysis by a half. Between two planned analyses there are no verdicts, because those analyses would have
//! no part of the 5 % to spend.
//!
//! A comparison is conclusive if its [verdict](crate::verdict) is not undecided. `tests/interim.rs` shows the error rates on
//! simulated runs.

use crate::interval::IntervalSettings;
use crate::paired::PairedRatio;

/// The factor from the rounds of one analysis to those of the next.
const GROWTH: f64 = 1.5;
/// The maximum number of predicted rounds: a comparison that needs more will not become conclusive.
const FORESEEN: usize = 10_000;
/// The maximum number of rounds of a run.
const MAX: u32 = 1_000_000_000;

/// The numbers of rounds after which a run is analysed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analyses {
    /// Rounds at the first analysis; at least 2, because one round has no interval.
    first: u32,
    /// Rounds at which the run would end, in order; each is analysed too.
    ends: Vec<u32>,
    /// Each planned number is a multiple of this.
    block: u32,
}

impl Analyses {
    /// Analyses that begin after `first` rounds. `ends` are the maximum numbers of rounds that were set when the run
    /// began and at each resumption.
    #[must_use]
    pub fn new(first: u32, ends: impl IntoIterator<Item = u32>) -> Self {
        let first = first.max(2);
        let mut ends: Vec<u32> = ends.into_iter().filter(|end| *end > first).collect();
        ends.sort_unstable();
        Self { first, ends, block: 1 }
    }

    /// Moves analyses to the ends of blocks of so many rounds: a part of a block is no sample. The first number and those at
    /// which the run ends must be multiples of it.
    #[must_use]
    pub fn in_blocks_of(self, rounds: u32) -> Self {
        Self { block: rounds.max(1), ..self }
    }

    /// The rounds of each analysis, in order.
    pub fn rounds(&self) -> impl Iterator<Item = u32> + '_ {
        let (mut last, mut planned) = (0, self.first);
        std::iter::from_fn(move || {
            let end = self.ends.iter().copied().find(|end| *end > last);
            last = end.map_or(planned, |end| end.min(planned));
            if last == planned {
                planned = (f64::from(planned) * GROWTH).ceil().min(f64::from(MAX)) as u32;
                planned = planned.next_multiple_of(self.block);
            }
            Some(last)
        })
    }

    /// The number of the analysis after this many rounds, or of the next one if none is planned there. The first is
    /// 1.
    pub fn number(&self, rounds: u32) -> u32 {
        self.rounds().take_while(|planned| *planned < rounds.min(MAX)).count() as u32 + 1
    }

    /// The rounds of the next analysis after this many rounds.
    pub fn after(&self, rounds: u32) -> u32 {
        self.rounds().find(|planned| *planned > rounds.min(MAX - 1)).unwrap_or(MAX)
    }
}

/// The settings of the interval at the k-th analysis, from the settings of a single analysis.
pub fn at_analysis(settings: IntervalSettings, analysis: u32) -> IntervalSettings {
    let k = f64::from(analysis.max(1));
    IntervalSettings { confidence: 1.0 - (1.0 - settings.confidence) / (k * (k + 1.0)), ..settings }
}

/// About how many more rounds would make a comparison conclusive, assuming the same noise and ratio; at least 1. `None` if there
/// is no interval, or no allowed number would be enough. `analyses`: when the run is analysed, if more than once. `settings` are those of one
/// analysis.
pub fn further_rounds(
    ratio: &PairedRatio,
    margin: f64,
    analyses: Option<&Analyses>,
    settings: &IntervalSettings,
) -> Option<usize> {
    let (error, made) = (ratio.error?, ratio.rounds);
    // The spread of one round stays the same.
    let spread = error * error * made as f64;
    let off = ratio.estimate.value.ln().abs();
    let is_decided = |rounds: &usize| {
        let settings =
            analyses.map_or(*settings, |analyses| at_analysis(*settings, analyses.number(*rounds as u32)));
        let freedom = ratio.freedom + (*rounds - made) as f64;
        let half = settings.student(freedom) * (spread / *rounds as f64).sqrt();
        off > half || off + half <= margin.ln_1p()
    };
    // Doubles the rounds, then bisects: each quantile takes some microseconds.
    let mut high = made + 1;
    while !is_decided(&high) {
        if high >= FORESEEN {
            return None;
        }
        high = (high * 2).min(FORESEEN);
    }
    let mut low = made;
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if is_decided(&middle) { high = middle } else { low = middle }
    }
    Some(high - made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Estimate;
    use crate::verdict::{Decision, judge};

    #[test]
    fn all_analyses_together_spend_less_than_available() {
        let one = IntervalSettings::default();
        let spent: f64 = (1..10_000).map(|k| 1.0 - at_analysis(one, k).confidence).sum();
        assert!(spent < 0.05 && spent > 0.0499, "{spent}");
        let wider = |k, rounds| at_analysis(one, k).student(rounds) / one.student(rounds);
        assert!(
            (1.2..1.3).contains(&wider(1, 5.0)) && (1.4..1.6).contains(&wider(2, 8.0)),
            "as the page says"
        );
    }

    #[test]
    fn analyses_grow_by_half_and_rounds_between_two_belong_to_the_next() {
        let analyses = Analyses::new(6, [4]);
        let rounds: Vec<u32> = analyses.rounds().take(5).collect();
        assert_eq!(rounds, [6, 9, 14, 21, 32]);
        for (number, rounds) in (1..).zip(rounds) {
            assert_eq!(analyses.number(rounds), number);
            assert_eq!(analyses.number(rounds + 1), number + 1);
            assert_eq!(analyses.after(rounds - 1), rounds);
        }
        assert_eq!((analyses.number(0), analyses.number(3), analyses.after(0)), (1, 1, 6));
        assert!(analyses.number(u32::MAX) > 10 && analyses.after(u32::MAX) == MAX, "it ends");
        assert_eq!(Analyses::new(1, []).after(0), 2);
    }

    #[test]
    fn analyses_fall_on_the_ends_of_blocks() {
        let analyses = Analyses::new(12, [45]).in_blocks_of(3);
        let rounds: Vec<u32> = analyses.rounds().take(6).collect();
        assert_eq!(rounds, [12, 18, 27, 42, 45, 63]);
        assert_eq!((analyses.after(12), analyses.after(13), analyses.number(15)), (18, 18, 2));
    }

    #[test]
    fn every_end_of_a_run_spends_a_share_of_its_own() {
        // Ended after 25 rounds, then after 26, then at the analysis after 32.
        let analyses = Analyses::new(6, [25, 26, 100]);
        assert_eq!(analyses.rounds().take(8).collect::<Vec<_>>(), [6, 9, 14, 21, 25, 26, 32, 48]);
        for later in [vec![25], vec![25, 26], vec![25, 26, 40]] {
            let analyses = Analyses::new(6, later);
            assert_eq!(analyses.number(25), 5, "a later end changes no earlier share");
        }
        // An end that is planned anyway is one analysis.
        assert_eq!(Analyses::new(6, [14, 14]).number(21), 4);
    }

    /// A ratio of six rounds with the interval from `ratio ÷ reach` to `ratio · reach`.
    fn ratio(ratio: f64, reach: f64) -> PairedRatio {
        let settings = IntervalSettings::default();
        PairedRatio::new(ratio.ln(), Some(reach.ln() / settings.student(5.0)), 5.0, 6, &settings)
    }

    #[test]
    fn called_or_whole_interval_within_margin_is_conclusive() {
        let wide = ratio(1.01, 1.05);
        assert_eq!(judge(wide.estimate, 0.05), Decision::Undecided);
        assert_eq!(judge(wide.estimate, 0.07), Decision::Within);
        assert_eq!(judge(ratio(1.5, 1.25).estimate, 0.05), Decision::Above);
        assert_eq!(judge(Estimate::new(1.01, None), 10.0), Decision::Undecided);
    }

    #[test]
    fn predicted_rounds_add_their_degrees_of_freedom_to_those_that_are_shared() {
        let settings = IntervalSettings::default();
        for freedom in [2.0, 20.0] {
            let ratio = PairedRatio::new(0.0, Some(0.04), freedom, 3, &settings);
            let further = further_rounds(&ratio, 0.05, None, &settings).unwrap();
            let half = |further: usize| {
                let rounds = (3 + further) as f64;
                settings.student(freedom + further as f64) * 0.04 * (3.0 / rounds).sqrt()
            };
            assert!(half(further) <= 0.05_f64.ln_1p() && half(further - 1) > 0.05_f64.ln_1p(), "{further}");
        }
    }

    #[test]
    fn a_narrow_interval_needs_fewer_rounds_than_a_wide_one() {
        let settings = IntervalSettings::default();
        let more = |ratio: &PairedRatio| further_rounds(ratio, 0.05, None, &settings);
        let (narrow, wide) = (more(&ratio(1.0, 1.064)), more(&ratio(1.0, 1.25)));
        assert!(narrow.unwrap() >= 1 && narrow < wide, "{narrow:?} {wide:?}");
        // A difference as large as the margin can only become conclusive by being called.
        let seen = more(&ratio(1.05, 1.083)).unwrap();
        assert!((4..30).contains(&seen), "{seen}");
        // More analyses need more rounds.
        let analyses = Analyses::new(6, []);
        let several = further_rounds(&ratio(1.0, 1.25), 0.05, Some(&analyses), &settings);
        assert!(several > wide, "{several:?} {wide:?}");
        assert_eq!(more(&ratio(1.0, 1e9)), None);
        assert_eq!(more(&ratio(1.5, 1.25)), Some(1), "it is conclusive");
    }
}
