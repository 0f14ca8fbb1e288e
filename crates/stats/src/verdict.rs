//! Decides whether a difference is called faster or slower.
//!
//! Two conditions, both needed:
//!
//! 1. **The interval excludes 1**: the rounds of this comparison do not allow "no difference", with Bonferroni's
//!    care for all the comparisons that are shown together.
//! 2. **The ratio is farther from 1 than the noise floor**: farther than a cell was found, or could have been,
//!    from *itself* when it was measured twice in each round (A/A). That guards against what an interval cannot
//!    see: an effect of the position within a round, warm caches, rounds that happen to agree.
//!
//! The second asks for the ratio, not for the interval's nearest end: the floor is itself the far end of an
//! interval, so that it holds the sampling error already, and to demand it twice would hide real differences
//! without preventing a false one. Both are judged on logarithms, so that ×1.25 and ×0.8 are equally far.
//!
//! What simulation found for runs of forty comparisons: of runs without any difference at most 2 % show one. A cell
//! that is ×1.2 or ×0.8 its baseline, with a standard deviation of 3 % in the ratio of one round, is found in
//! five rounds with more than 95 %. If each *side* varies by 3 % (4.2 % in the ratio) five rounds find ×1.2 with
//! 72 % and ×0.8 with 89 %, six rounds with 95 % and more: Student's t is 8.1 for four degrees of freedom and forty
//! comparisons, 6.5 for five. Five rounds are the least for many comparisons, and one more is worth a lot.

use serde::{Deserialize, Serialize};

use crate::paired::PairedRatio;

/// Which direction is better for the compared value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// As for operations per second.
    HigherIsBetter,
    /// As for seconds, latencies and bytes.
    LowerIsBetter,
}

/// The result of comparing the subject with the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The subject is better by more than noise.
    Faster,
    /// The subject is worse by more than noise.
    Slower,
    /// Any difference is smaller than this run can detect: a normal result, and no proof of equality.
    /// [`minimum_detectable_ratio`] says how small.
    Indistinguishable,
    /// The two must not be ranked, whatever the values: different durability classes, a client at its limit, a failed
    /// trial. [`judge`], which sees only values, never returns this.
    NotComparable {
        /// The reason, as a phrase.
        reason: String,
    },
    /// Not yet decidable: there are fewer than two rounds and hence no interval, or the noise floor is not a number.
    Inconclusive,
}

/// Judges a comparison against the noise floor, a relative difference such as 0.03 (see [`noise_floor`]; 0 if
/// none was measured, so that the interval decides alone).
///
/// A noise floor that is negative, infinite or NaN makes the verdict inconclusive, as does a ratio without interval.
#[must_use]
pub fn judge(ratio: &PairedRatio, noise_floor: f64, direction: Direction) -> Verdict {
    let Some(interval) = ratio.interval else { return Verdict::Inconclusive };
    let known = noise_floor >= 0.0 && noise_floor.is_finite();
    if !known || ratio.ratio.is_nan() {
        return Verdict::Inconclusive;
    }
    if interval.contains(1.0) || ratio.ratio.ln().abs() <= noise_floor.ln_1p() {
        return Verdict::Indistinguishable;
    }
    match (ratio.ratio > 1.0, direction) {
        (true, Direction::HigherIsBetter) | (false, Direction::LowerIsBetter) => Verdict::Faster,
        (false, Direction::HigherIsBetter) | (true, Direction::LowerIsBetter) => Verdict::Slower,
    }
}

/// The smallest factor, at least 1, that this comparison could have called a difference: the larger of the interval's
/// wider half and the noise floor.
///
/// 1.12 means: a difference below 12 % (or, downwards, below 1 − 1 ÷ 1.12) would not be detected. It makes
/// "indistinguishable" informative. `None` if the verdict is inconclusive.
#[must_use]
pub fn minimum_detectable_ratio(ratio: &PairedRatio, noise_floor: f64) -> Option<f64> {
    let interval = ratio.interval?;
    if !(noise_floor >= 0.0 && noise_floor.is_finite()) {
        return None;
    }
    let centre = ratio.ratio.ln();
    let half = (interval.high.ln() - centre).max(centre - interval.low.ln()).max(0.0);
    Some(half.max(noise_floor.ln_1p()).exp().min(f64::MAX))
}

/// The noise floor that A/A pairs show, as a relative difference: 0.03 when a cell against itself may differ by
/// a factor of 1.03 or of 1 ÷ 1.03.
///
/// It is the end of any of the intervals that is farthest from 1 on the logarithmic scale. Compute these pairs
/// with `comparisons` set to the number of A/A pairs (1 for one repeated baseline), not to that of the run's
/// comparisons: the floor describes the noise, and the care for many comparisons is already in the interval of
/// each of them. `None` when there is no pair or one has no interval: then noise was not measured.
#[must_use]
pub fn noise_floor(aa: &[PairedRatio]) -> Option<f64> {
    let mut largest: Option<f64> = None;
    for pair in aa {
        let interval = pair.interval?;
        let far = interval.low.ln().abs().max(interval.high.ln().abs());
        largest = Some(largest.map_or(far, |l| l.max(far)));
    }
    largest.map(|l| l.exp_m1().min(f64::MAX))
}
