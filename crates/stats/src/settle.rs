//! When enough rounds were made: looking at a run again and again without calling equals different.
//!
//! Who looks after every round and stops at the first difference finds one sooner or later, also where there is none
//! (P. Armitage and others, "Repeated Significance Tests on Accumulating Data", J. R. Stat. Soc. A 132, 1969: five
//! looks at 5 % make 14 %). So the run is looked at after a few numbers of rounds only, each half as many again as the one
//! before, and each look spends a part of the 5 % (Lan and others, "Discrete sequential boundaries for clinical trials",
//! Biometrika 70(3), 1983). The k-th of them may spend 1 ÷ k(k + 1): a half, a sixth, a twelfth, …, which add up to 1
//! however many follow. By Boole's inequality the intervals of all looks then hold *together* with 95 %, whatever rule ends
//! the run, a user's Ctrl-C and a later resumption included: a confidence sequence (Darling and Robbins, "Confidence
//! sequences for mean, variance, and median", PNAS 58, 1967), stitched from few looks as in Howard, Ramdas and others,
//! "Time-uniform, nonparametric, nonasymptotic confidence sequences", Ann. Statist. 49(2), 2021. It costs
//! width: after 6 rounds the interval is a quarter wider than that of a run looked at once, at the second look by a half.
//!
//! A comparison is settled when it is called faster or slower, or when its *whole* interval lies within a margin that
//! was said beforehand: then the difference, if there is one, is smaller than what matters (two one-sided tests; Schuirmann,
//! J. Pharmacokinet. Biopharm. 15, 1987). `tests/settling.rs` shows the error rates on simulated runs.

use crate::interval::IntervalSettings;
use crate::paired::PairedRatio;
use crate::verdict::Verdict;

/// The factor from one look's rounds to the next.
const GROWTH: f64 = 1.5;
/// No more rounds than this are foreseen: what needs more is not going to be settled.
const FORESEEN: usize = 10_000;

/// The numbers of rounds after which a run is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    /// Rounds at the first look; at least 2, since one shows no interval.
    first: u32,
}

impl Looks {
    /// Looks that begin after so many rounds.
    #[must_use]
    pub fn after(first: u32) -> Self {
        Self { first: first.max(2) }
    }

    /// The rounds of the k-th look; the first is 1.
    #[must_use]
    pub fn rounds(self, look: u32) -> u32 {
        (1..look).fold(self.first, |rounds, _| (f64::from(rounds) * GROWTH).ceil().min(1e9) as u32)
    }

    /// Which look a number of rounds belongs to: rounds after one look and before the next belong to the next, so that who
    /// stops between two has the next look's interval.
    #[must_use]
    pub fn number(self, rounds: u32) -> u32 {
        let mut look = 1;
        while self.rounds(look) < rounds.min(1_000_000_000) {
            look += 1;
        }
        look
    }
}

/// The settings of the interval that is shown at the k-th look, from those of one that is looked at once.
#[must_use]
pub fn at_look(settings: IntervalSettings, look: u32) -> IntervalSettings {
    let k = f64::from(look.max(1));
    IntervalSettings { confidence: 1.0 - (1.0 - settings.confidence) / (k * (k + 1.0)), ..settings }
}

/// Whether the whole interval lies within the margin: 0.05 allows from 1 ÷ 1.05 to 1.05.
#[must_use]
pub fn is_within(ratio: &PairedRatio, margin: f64) -> bool {
    let most = margin.ln_1p();
    ratio.interval.is_some_and(|interval| interval.low.ln() >= -most && interval.high.ln() <= most)
}

/// Whether further rounds could tell nothing more that matters: it is called, or within the margin, or cannot be
/// called at all.
#[must_use]
pub fn is_settled(verdict: &Verdict, ratio: &PairedRatio, margin: f64) -> bool {
    match verdict {
        Verdict::Faster | Verdict::Slower | Verdict::NotComparable { .. } => true,
        Verdict::Indistinguishable | Verdict::Open => is_within(ratio, margin),
    }
}

/// About how many more rounds would settle a comparison, if these were as noisy as those made and the ratio stayed what it
/// is; `None` where there is no interval, it is settled, or no number foreseen would do. `looks`: how the run is looked at,
/// where it is more than once. `settings` are those of one look.
#[must_use]
pub fn further_rounds(
    ratio: &PairedRatio,
    noise_floor: f64,
    margin: f64,
    looks: Option<Looks>,
    settings: &IntervalSettings,
) -> Option<usize> {
    let interval = ratio.interval?;
    let made = ratio.rounds;
    // The half width is a quantile times the spread of one round ÷ √rounds: the spread is what stays.
    let unit = |rounds: usize| {
        let settings = looks.map_or(*settings, |looks| at_look(*settings, looks.number(rounds as u32)));
        settings.student(rounds) / (rounds as f64).sqrt()
    };
    let half = (interval.high.ln() - interval.low.ln()) / 2.0;
    let (per_unit, floor_per_unit) = (half / unit(made), noise_floor.max(0.0).ln_1p() * (made as f64).sqrt());
    let off = ratio.ratio.ln().abs();
    let settles = |rounds: &usize| {
        let half = per_unit * unit(*rounds);
        let called = off > half && off > floor_per_unit / (*rounds as f64).sqrt();
        called || off + half <= margin.ln_1p()
    };
    // Twice the rounds each time, then back: the quantile of each is some microseconds' work.
    let mut high = made + 1;
    while !settles(&high) {
        if high >= FORESEEN {
            return None;
        }
        high = (high * 2).min(FORESEEN);
    }
    let mut low = made;
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if settles(&middle) { high = middle } else { low = middle }
    }
    Some(high - made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;

    #[test]
    fn what_all_looks_spend_together_is_less_than_what_there_is() {
        let one = IntervalSettings::new(1);
        let spent: f64 = (1..10_000).map(|look| 1.0 - at_look(one, look).confidence).sum();
        assert!(spent < 0.05 && spent > 0.0499, "{spent}");
        let wider = |look, rounds| at_look(one, look).student(rounds) / one.student(rounds);
        assert!((1.2..1.3).contains(&wider(1, 6)) && (1.4..1.6).contains(&wider(2, 9)), "as the page says");
    }

    #[test]
    fn rounds_between_two_looks_belong_to_the_next() {
        let looks = Looks::after(6);
        let rounds: Vec<u32> = (1..=5).map(|look| looks.rounds(look)).collect();
        assert_eq!(rounds, [6, 9, 14, 21, 32]);
        for (look, rounds) in (1..).zip(rounds) {
            assert_eq!(looks.number(rounds), look);
            assert_eq!(looks.number(rounds + 1), look + 1);
        }
        assert_eq!((looks.number(0), looks.number(3)), (1, 1));
        assert!(looks.number(u32::MAX) > 10, "it ends");
        assert_eq!(Looks::after(1).rounds(1), 2);
    }

    fn ratio(ratio: f64, low: f64, high: f64) -> PairedRatio {
        let interval = Some(Interval { low, high });
        PairedRatio { ratio, interval, rounds: 6, confidence: 0.95, comparisons: 1 }
    }

    #[test]
    fn settled_is_what_is_called_or_lies_within_the_margin_whole() {
        let wide = ratio(1.01, 0.97, 1.06);
        assert!(!is_settled(&Verdict::Indistinguishable, &wide, 0.05));
        assert!(is_settled(&Verdict::Indistinguishable, &wide, 0.07));
        assert!(is_settled(&Verdict::Faster, &ratio(1.5, 1.2, 1.9), 0.05));
        let none = PairedRatio { interval: None, ..wide };
        assert!(!is_settled(&Verdict::Open, &none, 10.0));
    }

    #[test]
    fn a_narrow_interval_needs_fewer_rounds_than_a_wide_one() {
        let settings = IntervalSettings::new(1);
        let more = |ratio: &PairedRatio| further_rounds(ratio, 0.0, 0.05, None, &settings);
        let (narrow, wide) = (more(&ratio(1.0, 0.94, 1.064)), more(&ratio(1.0, 0.8, 1.25)));
        assert!(narrow.unwrap() >= 1 && narrow < wide, "{narrow:?} {wide:?}");
        // A difference as large as the margin can only be settled by being seen.
        let seen = more(&ratio(1.05, 0.97, 1.137)).unwrap();
        assert!((4..30).contains(&seen), "{seen}");
        // Looked at several times, it takes more.
        let looks = further_rounds(&ratio(1.0, 0.8, 1.25), 0.0, 0.05, Some(Looks::after(6)), &settings);
        assert!(looks > wide, "{looks:?} {wide:?}");
        assert_eq!(more(&ratio(1.0, 1e-9, 1e9)), None);
    }
}
