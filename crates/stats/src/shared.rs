//! What the comparisons of a family know of each other's noise.
//!
//! A comparison of few rounds knows its own variance badly: with three degrees of freedom Student's quantile for twelve comparisons is
//! 6.6, with thirty it is 3.1. The comparisons of one run are made on one machine in the same rounds, and their variances resemble each
//! other. How much they do is estimated from the family itself: if the logarithms of the sample variances scatter no more
//! than chance makes them, the variances are alike, and each comparison takes a large part of the common one; if they scatter
//! more, it keeps to its own (the moderated t of G. K. Smyth, "Linear models and empirical Bayes methods for assessing
//! differential expression in microarray experiments", Stat. Appl. Genet. Mol. Biol. 3(1), 2004).
//!
//! Two things are added, because families of benchmarks are smaller than those of microarrays, and their members depend on each
//! other:
//!
//! - Comparisons that share a side share its noise. A variance that is taken from all of them has no more degrees of freedom than
//!   independent ones would have (the sum of squared correlations, as in Satterthwaite's approximation), and no comparison
//!   gets more than these.
//! - A comparison that is noisier than the family allows, by an F test, keeps to its own variance: one noisy target among quiet
//!   ones.
//!
//! `tests/families.rs` simulates both, and what else the estimate does not model.

use crate::distribution::f_tail;
use statrs::function::gamma::digamma;

/// A comparison whose variance is improbable by less than this share, divided by the number of comparisons, keeps to its own.
const IMPROBABLE: f64 = 0.05;
/// The largest number of degrees of freedom of a prior: above, Student's quantile is the normal one.
const MOST: f64 = 1e4;
/// The smallest variance of logarithms: equal values have no logarithm of a variance.
const LEAST: f64 = 1e-18;

/// The variance that the comparisons of a family have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedVariance {
    /// The variance of the logarithm of one sample's ratio.
    variance: f64,
    /// The degrees of freedom that it is worth to each comparison.
    freedom: f64,
    /// The degrees of freedom of all comparisons together.
    all: f64,
    /// The number of comparisons.
    comparisons: usize,
}

impl SharedVariance {
    /// Estimates it from the logarithms of the ratios of each comparison, by sample. `None` with fewer than two
    /// comparisons of two samples or more.
    pub fn from_family(family: &[Vec<f64>]) -> Option<Self> {
        let centred: Vec<Vec<f64>> =
            family.iter().filter(|one| one.len() > 1).map(|one| centre(one)).collect();
        if centred.len() < 2 {
            return None;
        }
        let freedom_of = |one: &Vec<f64>| (one.len() - 1) as f64;
        let count = centred.len() as f64;
        let variance_of = |one: &Vec<f64>| (squares(one, one) / freedom_of(one)).max(LEAST);
        // The logarithm of a sample variance, without its bias.
        let logarithm = |one: &Vec<f64>| {
            let half = freedom_of(one) / 2.0;
            variance_of(one).ln() - digamma(half) + half.ln()
        };
        let logarithms: Vec<f64> = centred.iter().map(logarithm).collect();
        let mean = logarithms.iter().sum::<f64>() / count;
        let scatter = logarithms.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let chance = centred.iter().map(|one| trigamma(freedom_of(one) / 2.0)).sum::<f64>() / count;
        // Few comparisons may look alike by luck: half a standard error of what chance makes the scatter.
        let luck = chance * (0.5 / (count - 1.0)).sqrt();
        let freedom = (2.0 * inverse_trigamma((scatter - chance).max(0.0) + luck)).min(MOST);
        // The geometric mean. Smyth's estimate is below it where variances differ, and comparisons that are noisier
        // than most then err too often.
        let variance = mean.exp();
        Some(Self { variance, freedom, all: all_freedom(&centred), comparisons: centred.len() })
    }

    /// A comparison's variance and its degrees of freedom, with those of the family.
    pub fn moderate(&self, variance: f64, freedom: f64) -> (f64, f64) {
        let prior = self.freedom.min(self.all - freedom);
        let is_noisier =
            f_tail(variance / self.variance, freedom, prior.max(1.0)) < IMPROBABLE / self.comparisons as f64;
        if prior <= 0.0 || is_noisier {
            return (variance, freedom);
        }
        ((self.variance * prior + variance * freedom) / (prior + freedom), prior + freedom)
    }
}

/// The values without their mean.
fn centre(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
}

fn squares(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// The degrees of freedom of the mean of all sample variances, each as a share of what it estimates: Σν ÷ (mean over the comparisons of their sum of squared
/// correlations), which are freed of what chance adds to them. Comparisons of different lengths count as dependent.
fn all_freedom(centred: &[Vec<f64>]) -> f64 {
    let mut correlated = 0.0;
    for (at, one) in centred.iter().enumerate() {
        for other in &centred[..at] {
            let freedom = (one.len() - 1) as f64;
            let product = squares(one, one) * squares(other, other);
            correlated += if one.len() != other.len() || product <= 0.0 {
                1.0
            } else if freedom > 1.0 {
                (freedom * squares(one, other).powi(2) / product - 1.0) / (freedom - 1.0)
            } else {
                1.0
            };
        }
    }
    let count = centred.len() as f64;
    let sum: f64 = centred.iter().map(|one| (one.len() - 1) as f64).sum();
    sum / (1.0 + (2.0 * correlated / count).max(0.0))
}

/// The second derivative of the logarithm of the gamma function, for a positive argument: its recurrence, then its
/// asymptotic series (Abramowitz and Stegun 6.4.6 and 6.4.12).
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + 1.0 / x + square / 2.0 + square / x * series
}

/// The argument at which [`trigamma`] has a positive value: it falls from ∞ to 0, so that bisection finds it.
fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (1e-8_f64, MOST);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigamma_has_its_known_values_and_an_inverse() {
        let pi = std::f64::consts::PI;
        for (x, wanted) in [(1.0, pi * pi / 6.0), (0.5, pi * pi / 2.0), (2.0, pi * pi / 6.0 - 1.0)] {
            assert!((trigamma(x) - wanted).abs() < 1e-11, "{x}: {}", trigamma(x));
            assert!((inverse_trigamma(wanted) - x).abs() < 1e-6 * x);
        }
        // Its leading terms far out.
        assert!((trigamma(1e3) - (1e-3 + 0.5e-6)).abs() < 1e-9);
        assert!((inverse_trigamma(trigamma(300.0)) - 300.0).abs() < 1e-3);
    }

    #[test]
    fn family_of_one_comparison_or_one_round_shares_nothing() {
        assert_eq!(SharedVariance::from_family(&[vec![1.0, 2.0, 4.0]]), None);
        assert_eq!(SharedVariance::from_family(&[vec![1.0], vec![2.0], vec![1.0, 2.0]]), None);
        assert!(SharedVariance::from_family(&[vec![1.0, 2.0], vec![1.0, 3.0]]).is_some());
    }

    #[test]
    fn comparisons_that_are_copies_have_the_freedom_of_one() {
        let one = [0.3, -0.2, 0.1, 0.4, -0.6, 0.0];
        let copies: Vec<Vec<f64>> = (1..5).map(|n| one.map(|x| x * f64::from(n)).into()).collect();
        assert!((all_freedom(&copies.iter().map(|one| centre(one)).collect::<Vec<_>>()) - 5.0).abs() < 1e-9);
        let shared = SharedVariance::from_family(&copies).unwrap();
        assert_eq!(shared.moderate(0.1, 5.0), (0.1, 5.0), "nothing is added");
        // With a correlation of √½: (3 · ½ − 1) ÷ (3 − 1) are left of it.
        let related = [vec![1.0, -1.0, 1.0, -1.0], vec![2.0, 0.0, 0.0, -2.0]];
        assert!((all_freedom(&related) - 6.0 / 1.25).abs() < 1e-9, "{}", all_freedom(&related));
        // Of different lengths it is not known how they depend on each other.
        let unlike = [centre(&one), centre(&one[..4])];
        assert!((all_freedom(&unlike) - 8.0 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn few_comparisons_that_look_alike_are_not_taken_for_alike() {
        let columns = [[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0]];
        let freedom = |count: usize| {
            let family: Vec<Vec<f64>> = columns[..count].iter().map(|one| one.to_vec()).collect();
            SharedVariance::from_family(&family).unwrap().freedom
        };
        // Equal variances do not scatter at all; what chance might hide are 0.71 and 0.5 of ψ₁(3 ÷ 2) = 0.935.
        assert!((3.7..4.2).contains(&freedom(2)), "{}", freedom(2));
        assert!((4.9..5.5).contains(&freedom(3)), "{}", freedom(3));
    }

    #[test]
    fn variances_that_differ_are_shared_less() {
        let family = [vec![4.0, -4.0, 4.0, -4.0], vec![1.0, 1.0, -1.0, -1.0]];
        let shared = SharedVariance::from_family(&family).unwrap();
        // (ln 16)² ÷ 2 − 0.935 + 0.661 = 3.570 is ψ₁(0.607).
        assert!((1.20..1.23).contains(&shared.freedom), "{shared:?}");
    }

    #[test]
    fn variance_lies_between_its_own_and_that_of_the_family_and_outliers_keep_theirs() {
        // Independent: columns of a Hadamard matrix.
        let columns = [[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0]];
        let shared = SharedVariance::from_family(&columns.map(Vec::from)).unwrap();
        assert!((all_freedom(&columns.map(|one| centre(&one))) - 9.0).abs() < 1e-9);
        // Each has the variance 4 ÷ 3; the bias of the logarithm with three degrees of freedom is −0.3690.
        assert!((shared.variance - (4.0_f64 / 3.0) * 0.369_0_f64.exp()).abs() < 1e-3, "{shared:?}");
        let (variance, freedom) = shared.moderate(1.0, 3.0);
        assert!(1.0 < variance && variance < shared.variance && 3.0 < freedom && freedom <= 9.0);
        assert_eq!(shared.moderate(400.0, 3.0), (400.0, 3.0));
        // F of 3 and 6 degrees of freedom exceeds 6 in 3 % of cases, which is not seldom among three.
        assert!(shared.moderate(6.0 * shared.variance, 3.0).1 > 3.0);
        // The same of variances as small as those of runs.
        let small = SharedVariance::from_family(&columns.map(|one| one.map(|x| x * 0.01).to_vec())).unwrap();
        assert_eq!(small.moderate(0.04, 3.0), (0.04, 3.0));
    }
}
