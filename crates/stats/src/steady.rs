//! Decides whether a series of windows is steady, and from which window on.
//!
//! The initial transient is removed so that the standard error of the rest is smallest, among the first halves: MSER
//! (White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6), 1997;
//! compared with others and found the best in White, Cobb and Spratt, "A comparison of five steady-state truncation
//! heuristics for simulation", WSC 2000). A minimum exactly at the half means that the series never became steady.
//! The rest must have no trend: Kendall's rank test against the time (Mann, "Nonparametric tests against trend",
//! Econometrica 13, 1945) with Sen's slope ("Estimates of the regression coefficient based on Kendall's tau", JASA
//! 63, 1968). Both must also find a change that matters: the windows of one trial are numerous enough to detect a
//! drift of 1 %, which affects no result.

use crate::distribution::normal_quantile;
use crate::summary::median;

/// The minimum number of windows.
const MIN: usize = 10;
/// The transient matters if the mean of all windows differs from that of the rest by this much, relatively.
const MATTERS: f64 = 0.05;
/// The rest drifts if it changes by this much from its beginning to its end.
const DRIFTS: f64 = 0.1;
/// The probability that a series without drift looks like one with drift.
const CHANCE: f64 = 0.01;

/// The result for a series of windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Steadiness {
    /// Steady from the first window on.
    Throughout,
    /// Steady from this window on (by position); earlier windows were faster or slower.
    From(usize),
    /// Throughput changed until the end, by this factor from its first quarter to its last.
    Never(f64),
}

/// Judges a series of throughputs in windows of equal length; `None` for fewer than ten, or if one is not a number or
/// all are 0.
pub fn steadiness(windows: &[f64]) -> Option<Steadiness> {
    if windows.len() < MIN || windows.iter().any(|x| !x.is_finite() || *x < 0.0) {
        return None;
    }
    let all = mean(windows);
    if all <= 0.0 {
        return None;
    }
    let cut = truncation(windows);
    let rest = &windows[cut..];
    let quarter = windows.len() / 4;
    let (first, last) = (mean(&windows[..quarter]), mean(&windows[windows.len() - quarter..]));
    let change = if first > 0.0 { last / first } else { f64::MAX };
    // At the half, the smallest error may lie beyond it; that matters if both halves differ.
    let half = windows.len() / 2;
    let unsteady = cut == half && differs(mean(&windows[..half]), mean(&windows[half..]), DRIFTS);
    if unsteady || drifts(rest) {
        return Some(Steadiness::Never(change));
    }
    if differs(all, mean(rest), MATTERS) {
        return Some(Steadiness::From(cut));
    }
    Some(Steadiness::Throughout)
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

fn differs(a: f64, b: f64, by: f64) -> bool {
    let (low, high) = (a.min(b), a.max(b));
    high > low * (1.0 + by)
}

/// The number of initial windows to remove so that the standard error of the mean of the others is smallest.
fn truncation(windows: &[f64]) -> usize {
    let error = |cut: usize| {
        let rest = &windows[cut..];
        let centre = mean(rest);
        rest.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    (0..=windows.len() / 2).min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(0)
}

/// Whether there is a significant trend that changes the series by an amount that matters.
fn drifts(series: &[f64]) -> bool {
    let n = series.len();
    let mut slopes = Vec::new();
    let mut score = 0.0;
    for (i, early) in series.iter().enumerate() {
        for (j, late) in series.iter().enumerate().skip(i + 1) {
            score += (late - early).partial_cmp(&0.0).map_or(0.0, |order| f64::from(order as i8));
            slopes.push((late - early) / (j - i) as f64);
        }
    }
    let n = n as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let seldom = (score.abs() - 1.0).max(0.0) / deviation > -normal_quantile(CHANCE / 2.0);
    let slope = median(&slopes).unwrap_or(0.0);
    let centre = median(series).unwrap_or(0.0);
    seldom && slope.abs() * (n - 1.0) > centre * DRIFTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, mix};

    fn series(seed: u64, spread: f64, shape: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut rng = Rng::new(mix(3, seed));
        let mut normal = || normal_quantile(rng.unit_f64().max(f64::MIN_POSITIVE));
        (0..20).map(|n| (1_000.0 * shape(f64::from(n) / 20.0) * (1.0 + spread * normal())).max(0.0)).collect()
    }

    fn share(spread: f64, shape: impl Fn(f64) -> f64 + Copy, wanted: impl Fn(Steadiness) -> bool) -> f64 {
        let found = (0..500).filter(|seed| steadiness(&series(*seed, spread, shape)).is_some_and(&wanted));
        found.count() as f64 / 500.0
    }

    #[test]
    fn noise_alone_is_steady() {
        let never = |found| matches!(found, Steadiness::Never(_));
        for spread in [0.01, 0.05, 0.1] {
            let wrong = share(spread, |_| 1.0, never);
            assert!(wrong <= 0.05, "{spread}: {wrong}");
        }
        assert!(share(0.03, |_| 1.0, |found| found == Steadiness::Throughout) >= 0.9);
    }

    #[test]
    fn a_slow_beginning_is_found_where_it_ends() {
        let shape = |at: f64| if at < 0.2 { 0.5 } else { 1.0 };
        assert!(share(0.05, shape, |found| matches!(found, Steadiness::From(3..=8))) >= 0.9);
    }

    #[test]
    fn falling_series_is_never_steady() {
        for shape in [|at: f64| 1.0 - 0.5 * at, |at: f64| 0.5 + at] {
            assert!(share(0.05, shape, |found| matches!(found, Steadiness::Never(_))) >= 0.95);
        }
        let change = steadiness(&series(1, 0.01, |at| 1.0 - 0.5 * at));
        assert!(
            matches!(change, Some(Steadiness::Never(factor)) if (0.5..0.8).contains(&factor)),
            "{change:?}"
        );
    }

    #[test]
    fn step_at_the_half_or_later_is_never_steady() {
        // At the half the error is smallest, and what is left has no trend; or it lies beyond, and the whole has one.
        for (from, change) in [(10, 10.0), (12, 10.0)] {
            let step: Vec<f64> = (0..20).map(|n| if n < from { 100.0 } else { 1_000.0 }).collect();
            assert_eq!(steadiness(&step), Some(Steadiness::Never(change)), "{from}");
        }
        let from_nothing: Vec<f64> = (0..20).map(|n| if n < 5 { 0.0 } else { f64::from(n) }).collect();
        assert_eq!(steadiness(&from_nothing), Some(Steadiness::Never(f64::MAX)));
    }

    #[test]
    fn trend_is_a_drift_if_it_is_significant_and_large() {
        let line =
            |change: f64| -> Vec<f64> { (0..11).map(|n| 1_000.0 + change * f64::from(n - 5)).collect() };
        // From 950 to 1,050 around 1,000 is DRIFTS, and must be exceeded.
        assert_eq!([9.0, 10.0, 11.0].map(|change| drifts(&line(change))), [false, false, true]);
        assert!(!drifts(&[100.0, 200.0, 300.0]), "three windows in order are chance");
        // Kendall's S less 1, in standard deviations: 9 ÷ 4.08, 7 ÷ 4.08, 13 ÷ 5.32 and 14 ÷ 5.32; 2.58 are needed.
        assert!(!drifts(&[100.0, 200.0, 300.0, 400.0, 500.0]));
        assert!(!drifts(&[100.0, 200.0, 300.0, 500.0, 400.0]));
        assert!(!drifts(&[100.0, 200.0, 300.0, 400.0, 500.0, 500.0]));
        assert!(drifts(&[100.0, 200.0, 300.0, 400.0, 500.0, 600.0]));
        assert!(
            differs(1.0, 1.6, 0.5) && !differs(1.0, 1.5, 0.5),
            "what differs by the limit does not differ by more"
        );
    }

    #[test]
    fn uninformative_series_is_not_judged() {
        assert_eq!(steadiness(&[1.0; 9]), None);
        assert_eq!(steadiness(&[0.0; 20]), None);
        assert_eq!(steadiness(&[f64::NAN; 20]), None);
        assert_eq!(steadiness(&[7.0; 20]), Some(Steadiness::Throughout));
        assert_eq!(steadiness(&[7.0; MIN]), Some(Steadiness::Throughout));
    }
}
