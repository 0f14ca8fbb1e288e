//! Decides whether a difference is called faster or slower.
//!
//! It is if **the interval excludes 1**: neither the rounds of this comparison, nor the differences between instances of
//! a server that were seen, allow "no difference". The interval is corrected for all the comparisons that are shown
//! together (Bonferroni).
//!
//! Rounds alone cannot show what an instance of a server does to all of them: its layout of memory and files, its
//! plans, its connections. Each target's first cell is therefore measured twice in each round, on two instances (A/A).
//! [`instance_variance`] is what these pairs differ by beyond the noise of their rounds, and
//! [`PairedRatio::among_instances`] widens the interval by it. This is a random-effects model: the variance between
//! instances is estimated by moments (T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013).
//!
//! What simulation found (`tests/nested.rs`, `tests/simulation.rs`): of pairs of equal servers at most 9 % are called
//! different, whatever instances and rounds differ by; and 1 to 3 % if instances do not differ. Of runs of forty comparisons
//! without a difference, 5 % show one.

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
    Inconclusive,
}

/// Judges a comparison of values of which higher ones are better, by its interval.
///
/// A ratio without interval is inconclusive.
#[must_use]
pub fn judge(ratio: &PairedRatio) -> Verdict {
    let Some(interval) = ratio.interval else { return Verdict::Inconclusive };
    if ratio.ratio.is_nan() {
        return Verdict::Inconclusive;
    }
    if interval.contains(1.0) {
        return Verdict::Indistinguishable;
    }
    if ratio.ratio > 1.0 { Verdict::Faster } else { Verdict::Slower }
}

/// The smallest factor, at least 1, that this comparison could have called a difference: the interval's wider half.
///
/// 1.12 means: a difference below 12 % (or, downwards, below 1 − 1 ÷ 1.12) would not be detected. It makes
/// "indistinguishable" informative. `None` if the verdict is inconclusive.
#[must_use]
pub fn minimum_detectable_ratio(ratio: &PairedRatio) -> Option<f64> {
    let interval = ratio.interval?;
    let centre = ratio.ratio.ln();
    let half = (interval.high.ln() - centre).max(centre - interval.low.ln()).max(0.0);
    Some(half.exp().min(f64::MAX))
}

/// The variance of a comparison that differences between instances cause, from A/A pairs: the mean over the pairs of
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
