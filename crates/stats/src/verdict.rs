//! Decides whether a difference is called faster or slower.
//!
//! It is if **the interval excludes 1**: the samples of this comparison do not allow "no difference". The interval is
//! corrected for all the comparisons that are shown together (Bonferroni).
//!
//! What a verdict claims is what was sampled. If the samples are rounds on servers as they run, it is of **these servers**:
//! another start may be faster or slower for its whole life, by its layout of memory and files, and the rounds say nothing
//! of that. If throwaway servers are restarted between [blocks](crate::nested) of rounds, the samples are the means of the
//! blocks, and it is of **any start**. There is nothing between the two: a variance that is guessed from one pair of instances
//! has one degree of freedom, and intervals that were widened by it called equal servers different in 13 to 39 % of runs.
//!
//! `tests/families.rs` shows the error rates of whole runs in both scopes.

use serde::{Deserialize, Serialize};

use crate::paired::PairedRatio;

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
    /// Not yet decidable: there are fewer than two rounds and hence no interval.
    Undecided,
}

/// Judges a comparison of values of which higher ones are better, by its interval.
///
/// A ratio without interval is undecided.
#[must_use]
pub fn judge(ratio: &PairedRatio) -> Verdict {
    let Some(interval) = ratio.interval else { return Verdict::Undecided };
    if ratio.ratio.is_nan() {
        return Verdict::Undecided;
    }
    if interval.contains(1.0) {
        return Verdict::Indistinguishable;
    }
    if ratio.ratio > 1.0 { Verdict::Faster } else { Verdict::Slower }
}

/// The smallest factor, at least 1, that this comparison could have called a difference: the interval's wider half.
///
/// 1.12 means: a difference below 12 % (or, downwards, below 1 − 1 ÷ 1.12) would not be detected. It makes
/// "indistinguishable" informative. `None` if the verdict is undecided.
#[must_use]
pub fn minimum_detectable_ratio(ratio: &PairedRatio) -> Option<f64> {
    let interval = ratio.interval?;
    let centre = ratio.ratio.ln();
    let half = (interval.high.ln() - centre).max(centre - interval.low.ln()).max(0.0);
    Some(half.exp().min(f64::MAX))
}

/// The variance between instances in a comparison, from A/A pairs, as a check of a run; no interval includes it: the mean over the pairs of
/// d² − SE², where d is the logarithm of a pair's ratio and SE its standard error; 0 where the rounds explain d.
///
/// `None` if there is no pair, or one has fewer than two rounds: then it was not measured.
#[must_use]
pub fn instance_variance(aa: &[PairedRatio]) -> Option<f64> {
    let excess = aa.iter().map(|pair| Some(pair.ratio.ln().powi(2) - pair.error?.powi(2)));
    let excess: Vec<f64> = excess.collect::<Option<_>>()?;
    (!excess.is_empty()).then(|| (excess.iter().sum::<f64>() / excess.len() as f64).max(0.0))
}

/// The noise floor as a relative difference: what instances may make two equal targets differ by, however many rounds
/// are made. 0.03 means: by a factor of up to 1.03. `quantile` is that of the [comparison](PairedRatio::quantile).
#[must_use]
pub fn noise_floor(variance: f64, quantile: f64) -> f64 {
    (quantile * (2.0 * variance).sqrt()).exp_m1().min(f64::MAX)
}
