//! Decides whether a difference is called faster or slower, or the sides equal.
//!
//! If **the interval lies within the margin**, the sides are equal, whether it excludes 1 or not: what differs by less than matters is
//! not called a difference in one place and none in another. Otherwise a difference is called if **the interval excludes
//! 1**: the samples of this comparison do not allow "no difference". The interval is corrected for all the comparisons that are shown
//! together (Bonferroni).
//!
//! What a verdict claims is what was sampled. If the samples are rounds on servers as they run, it is of **these servers**:
//! another start may be faster or slower for its whole life, by its layout of memory and files, and the rounds say nothing
//! of that. If throwaway servers are restarted between [blocks](crate::nested) of rounds, the samples are the means of the
//! blocks, and it is of **any start**. There is nothing between the two: a variance that is guessed from one pair of instances
//! has one degree of freedom, and intervals that were widened by it called equal servers different in 13 to 39 % of runs.
//!
//! `tests/families.rs` shows the error rates of whole runs in both scopes.

use crate::interval::Estimate;
use crate::paired::PairedRatio;

/// What an interval decides: whether the value lies within a range, or on which side of it.
///
/// Of a comparison the range is the margin around a ratio of 1, and the ratio is above where the subject is better. Of a claim it
/// is the claimed one, and of a gate what the margin allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Above the range. Of a comparison: the subject is better by more than noise, and perhaps by more than the margin.
    Above,
    /// Within the range. Of a comparison: any difference is smaller than the margin.
    Within,
    /// Below the range. Of a comparison: the subject is worse by more than noise, and perhaps by more than the margin.
    Below,
    /// More rounds may decide it: the interval allows several of these. A single round, which has no interval, decides nothing.
    Undecided,
    /// Nothing can be decided, for a reason that is given. [`judge`] never says so.
    #[default]
    NotTestable,
}

impl Decision {
    /// Whether the value lies outside of the range. Of a comparison: whether a difference is called.
    pub fn is_outside(self) -> bool {
        matches!(self, Self::Above | Self::Below)
    }

    /// A called difference as a ratio above 1 with its interval, whichever side is better.
    pub fn gain(self, ratio: Option<Estimate>) -> Option<Estimate> {
        match self {
            Self::Above => ratio,
            Self::Below => ratio.map(Estimate::inverse),
            Self::Within | Self::Undecided | Self::NotTestable => None,
        }
    }
}

/// Judges a comparison of values of which higher ones are better, by its interval. `margin`: differences below it do not
/// matter; 0.05 allows from 1 ÷ 1.05 to 1.05.
pub fn judge(ratio: Estimate, margin: f64) -> Decision {
    match ratio.ends() {
        Some((low, high)) if is_within(low, high, margin) => Decision::Within,
        Some((low, _)) if low > 1.0 => Decision::Above,
        Some((_, high)) if high < 1.0 => Decision::Below,
        _ => Decision::Undecided,
    }
}

/// Whether the whole interval lies within the margin, so that any difference is smaller than what matters (two one-sided
/// tests; Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987).
fn is_within(low: f64, high: f64, margin: f64) -> bool {
    let most = margin.ln_1p();
    low.ln() >= -most && high.ln() <= most
}

/// The smallest factor, at least 1, that this comparison could have called a difference: the interval's wider half.
///
/// 1.12 means: a difference below 12 % (or, downwards, below 1 − 1 ÷ 1.12) would not be detected. It makes
/// "undecided" informative. `None` without an interval.
pub fn minimum_detectable_ratio(ratio: Estimate) -> Option<f64> {
    let (low, high) = ratio.ends()?;
    let centre = ratio.value.ln();
    let half = (high.ln() - centre).max(centre - low.ln()).max(0.0);
    Some(half.exp().min(f64::MAX))
}

/// The variance between instances in a comparison, from A/A pairs, as a check of a run; no interval includes it: the mean over the pairs of
/// d² − SE², where d is the logarithm of a pair's ratio and SE its standard error; 0 where the rounds explain d.
///
/// `None` if there is no pair, or one has fewer than two rounds: then it was not measured.
pub fn instance_variance(aa: &[PairedRatio]) -> Option<f64> {
    let excess = aa.iter().map(|pair| Some(pair.estimate.value.ln().powi(2) - pair.error?.powi(2)));
    let excess: Vec<f64> = excess.collect::<Option<_>>()?;
    (!excess.is_empty()).then(|| (excess.iter().sum::<f64>() / excess.len() as f64).max(0.0))
}

/// The noise floor as a relative difference: what instances may make two equal targets differ by, however many rounds
/// are made. 0.03 means: by a factor of up to 1.03. `quantile` is that of the [comparison](PairedRatio::quantile).
pub fn noise_floor(variance: f64, quantile: f64) -> f64 {
    (quantile * (2.0 * variance).sqrt()).exp_m1().min(f64::MAX)
}
