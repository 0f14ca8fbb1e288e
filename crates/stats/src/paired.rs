//! By what factor A differs from B, round against round.
//!
//! Within a round both cells met the same state of the machine, so the ratio of one round is free of the drift
//! between rounds. The ratio is the quotient of the [means](crate::Mean) of both, which makes B against A the exact
//! inverse of A against B (Fleming and Wallace, "How not to lie with statistics", CACM 29(3), 1986). The interval is that of
//! [`crate::interval`].

use crate::interval::{Estimate, Interval, IntervalSettings, Mean, exp_finite, mean_and_error};
use crate::shared::SharedVariance;

/// A factor between two cells, with the interval within which it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedRatio {
    /// The mean of the subject ÷ that of the baseline, positive and without unit, with the factors that the rounds do not
    /// rule out. Fewer than two rounds rule out nothing.
    pub estimate: Estimate,
    /// The standard error of the ratio's logarithm, from the rounds; `None` for fewer than two rounds.
    pub error: Option<f64>,
    /// The degrees of freedom that the error rests on, those [shared](crate::shared) with other comparisons included.
    pub freedom: f64,
    /// Student's quantile of a single comparison; 0 without an interval.
    pub quantile: f64,
    /// The number of pairs: of rounds, or of [blocks](crate::nested) of them.
    pub rounds: usize,
    /// The number of comparisons that the interval is widened for (Bonferroni).
    pub comparisons: u32,
}

impl PairedRatio {
    /// Compares two cells: `subject[i]` and `baseline[i]` are the values of round i, in the same unit, for
    /// example operations per second. `None` for slices of different length or without a round, or with a value that is
    /// not positive and finite.
    pub fn from_rounds(
        subject: &[f64],
        baseline: &[f64],
        mean: Mean,
        settings: &IntervalSettings,
    ) -> Option<Self> {
        Self::from_logarithms(&log_ratios(subject, baseline, mean)?, None, settings)
    }

    /// The mean of [logarithms of ratios](log_ratios), with the noise that a family of comparisons shares, if it does.
    /// `None` without a round.
    pub fn from_logarithms(
        ratios: &[f64],
        shared: Option<&SharedVariance>,
        settings: &IntervalSettings,
    ) -> Option<Self> {
        let count = ratios.len() as f64;
        let freedom = if ratios.is_empty() { return None } else { count - 1.0 };
        let (centre, error) = mean_and_error(ratios);
        let (error, freedom) = match (error, shared) {
            (Some(error), Some(shared)) => {
                let (variance, freedom) = shared.moderate(error * error * count, freedom);
                (Some((variance / count).sqrt()), freedom)
            }
            (error, _) => (error, freedom),
        };
        Some(Self::new(centre, error, freedom, ratios.len(), settings))
    }

    /// A ratio with this logarithm, whose standard error rests on so many degrees of freedom.
    #[must_use]
    pub fn new(
        logarithm: f64,
        error: Option<f64>,
        freedom: f64,
        rounds: usize,
        settings: &IntervalSettings,
    ) -> Self {
        // A quantile of no degrees of freedom is infinite.
        let of = |settings: &IntervalSettings| if error.is_some() { settings.student(freedom) } else { 0.0 };
        let reach = |error: f64| if error > 0.0 { of(settings) * error } else { 0.0 };
        Self {
            estimate: Estimate::new(
                exp_finite(logarithm),
                error.map(|error| Interval::around(logarithm, reach(error))),
            ),
            error,
            freedom,
            quantile: of(&settings.for_comparisons(1)),
            rounds,
            comparisons: settings.comparisons,
        }
    }
}

/// The logarithms of the ratios of two cells, round by round; their mean is the logarithm of the means' quotient. `None` for slices of different length or without a round,
/// or with a value that is not positive and finite.
pub fn log_ratios(subject: &[f64], baseline: &[f64], mean: Mean) -> Option<Vec<f64>> {
    if subject.len() != baseline.len() {
        return None;
    }
    let (subject, baseline) = (mean.logarithms(subject)?, mean.logarithms(baseline)?);
    // A difference of logarithms, not the logarithm of a quotient: it is exactly negated by a swap.
    Some(subject.iter().zip(&baseline).map(|(a, b)| a - b).collect())
}
