//! How far the mean of a few rounds may be off: Student's t interval on logarithms.
//!
//! Rounds are few (5 to 20) and values differ by factors, so everything happens on logarithms. The [`Mean`] says which
//! ones. If m intervals must hold at once, each uses the tail probability α ÷ 2m (Bonferroni). Holm's step-down
//! procedure rejects more, but it orders tests and yields no intervals; a chart with forty bars shows intervals, and a
//! reader picks the one that stands out, so that each must hold with the others.
//!
//! `tests/simulation.rs` checks the promised coverage for normal, lognormal and heavy-tailed noise.

use crate::distribution::student_t_quantile;
use serde::Serialize;

/// The mean of the values of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mean {
    /// Of rates over equal times: the rate over all of them. A machine bounds a rate from above, and nothing bounds it from
    /// below: the logarithm of one round in which a server stalled can outweigh all others, its share of the mean cannot.
    Arithmetic,
    /// Of other values.
    Geometric,
}

impl Mean {
    /// The logarithms of positive values, whose mean is the logarithm of the values' mean. For the arithmetic mean m that is
    /// ln m + (x ÷ m − 1), the tangent of the logarithm at m: its variance is what the delta method gives for ln m (G. Casella and
    /// R. L. Berger, "Statistical Inference", 2002, section 5.5.4). `None` if there is no value, or one is not positive and
    /// finite.
    pub(crate) fn logarithms(self, values: &[f64]) -> Option<Vec<f64>> {
        let is_good = |value: &f64| *value > 0.0 && value.is_finite();
        if values.is_empty() || !values.iter().all(is_good) {
            return None;
        }
        // Each is divided first: a sum of large values may not be finite.
        let mean = values.iter().map(|value| value / values.len() as f64).sum::<f64>();
        let logarithm = |value: &f64| match self {
            Self::Arithmetic => mean.ln() + (value / mean - 1.0),
            Self::Geometric => value.ln(),
        };
        Some(values.iter().map(logarithm).collect())
    }
}

/// How an interval is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalSettings {
    /// The probability, 0 to 1, with which all of `comparisons` intervals hold at once; usually 0.95.
    pub confidence: f64,
    /// The number of comparisons that are shown, and judged, together; at least 1.
    pub comparisons: u32,
}

impl Default for IntervalSettings {
    /// 95 %, one comparison.
    fn default() -> Self {
        Self { confidence: 0.95, comparisons: 1 }
    }
}

impl IntervalSettings {
    /// Settings for `comparisons` intervals that must hold together.
    #[must_use]
    pub const fn for_comparisons(self, comparisons: u32) -> Self {
        Self { comparisons, ..self }
    }

    /// Student's quantile for `freedom` degrees of freedom: the half width of an interval in standard errors.
    pub fn student(&self, freedom: f64) -> f64 {
        -student_t_quantile(0.5 * (1.0 - self.confidence) / f64::from(self.comparisons.max(1)), freedom)
    }
}

/// Two ends, both included, in the unit of what they bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end; never below `low`.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies within the ends.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The interval of a logarithm with this half width, as factors.
    pub(crate) fn around(centre: f64, half: f64) -> Self {
        Self { low: exp_finite(centre - half), high: exp_finite(centre + half) }
    }
}

/// A value with the ends of its interval, in the unit of the value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean of the rounds.
    pub value: f64,
    /// The interval's lower end; `None` of one round, which has no interval.
    pub low: Option<f64>,
    /// The interval's upper end.
    pub high: Option<f64>,
}

impl Estimate {
    /// A value with this interval, if it has one.
    #[must_use]
    pub fn new(value: f64, interval: Option<Interval>) -> Self {
        Self { value, low: interval.map(|ends| ends.low), high: interval.map(|ends| ends.high) }
    }

    /// The ends of its interval, if it has one.
    pub fn ends(self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// The estimate of a function that keeps the order of its values.
    #[must_use]
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { value: of(self.value), low: self.low.map(&of), high: self.high.map(&of) }
    }

    /// A ratio seen from the other side.
    #[must_use]
    pub fn inverse(self) -> Self {
        let of = |value: f64| 1.0 / value;
        Self { value: of(self.value), low: self.high.map(of), high: self.low.map(of) }
    }
}

/// The mean of one cell's positive values, such as operations per second, with its interval.
///
/// The quotient of two such means over the same rounds is the [`PairedRatio`](crate::PairedRatio) of the two cells, so
/// that the results of cells agree with their comparison. `None` without a round, or with a value that is not positive
/// and finite.
pub fn interval_of_mean(values: &[f64], mean: Mean, settings: &IntervalSettings) -> Option<Estimate> {
    let logs = mean.logarithms(values)?;
    let (centre, error) = mean_and_error(&logs);
    let half = error.map(|error| settings.student((logs.len() - 1) as f64) * error);
    Some(Estimate::new(exp_finite(centre), half.map(|half| Interval::around(centre, half))))
}

/// The exponential, kept positive and finite so that it has a logarithm again and can be written as JSON.
pub(crate) fn exp_finite(x: f64) -> f64 {
    x.exp().clamp(f64::MIN_POSITIVE, f64::MAX)
}

/// The arithmetic mean of a slice that is not empty, and its standard error, if there are two or more values.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (values.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_contains_its_ends_and_what_is_between() {
        let interval = Interval { low: 1.0, high: 2.0 };
        let held = [0.9, 1.0, 1.5, 2.0, 2.1].map(|value| interval.contains(value));
        assert_eq!(held, [false, true, true, true, false]);
    }

    #[test]
    fn interval_of_a_mean_is_that_of_the_textbook() {
        // Logarithms with mean and standard deviation ln 2; Student's quantile of two degrees of freedom at 97.5 % is 4.302 653.
        let estimate =
            interval_of_mean(&[1.0, 2.0, 4.0], Mean::Geometric, &IntervalSettings::default()).unwrap();
        let half = 4.302_653 * 2.0_f64.ln() / 3.0_f64.sqrt();
        let (low, high) = estimate.ends().unwrap();
        assert!((estimate.value - 2.0).abs() < 1e-12);
        assert!(
            (low.ln() - (2.0_f64.ln() - half)).abs() < 1e-6
                && (high.ln() - (2.0_f64.ln() + half)).abs() < 1e-6
        );
    }

    #[test]
    fn mean_of_rates_is_the_rate_over_all_rounds_and_one_stalled_round_has_its_share_of_it() {
        let rates = [100.0, 100.0, 100.0, 1.0];
        let of = |mean| interval_of_mean(&rates, mean, &IntervalSettings::default()).unwrap();
        let arithmetic = of(Mean::Arithmetic);
        assert!((arithmetic.value - 75.25).abs() < 1e-9);
        // Deviations of ⅓ three times and 1 once, of the mean: a standard error of 0.3289; Student's quantile 3.1824.
        let half = 3.182_446 * (99.0_f64 / 75.25) / 4.0;
        let (low, high) = arithmetic.ends().unwrap();
        assert!(((high / low).ln() / 2.0 - half).abs() < 1e-6, "{arithmetic:?}");
        let (low, high) = of(Mean::Geometric).ends().unwrap();
        assert!((high / low).ln() / 2.0 > 3.0 * half);
        assert!(interval_of_mean(&[f64::MAX; 4], Mean::Arithmetic, &IntervalSettings::default()).is_some());
    }
}
