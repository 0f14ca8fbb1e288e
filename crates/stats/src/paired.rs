//! By what factor A differs from B, round against round.
//!
//! Within a round both cells met the same state of the machine, so the ratio of one round is free of the drift
//! between rounds. Ratios multiply, so their centre is the geometric mean: the mean of the logarithms, which
//! also makes B against A the exact inverse of A against B (Fleming and Wallace, "How not to lie with
//! statistics", CACM 29(3), 1986). The interval is that of [`crate::interval`].

use serde::{Deserialize, Serialize};

use crate::error::StatsError;
use crate::interval::{Interval, IntervalSettings, exp_finite, logarithms, mean_and_error};

/// A factor between two cells, with the interval within which it lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    /// The geometric mean over the rounds of subject ÷ baseline; positive, without unit.
    pub ratio: f64,
    /// The factors that the rounds do not rule out; `None` for fewer than two rounds, which rule out nothing.
    pub interval: Option<Interval>,
    /// The standard error of the ratio's logarithm, from the rounds; `None` for fewer than two rounds.
    pub error: Option<f64>,
    /// Student's quantile of a single comparison: how many standard errors instances may differ by; 0 without an interval.
    pub quantile: f64,
    /// The interval's half width from the rounds alone, of the logarithm; 0 without an interval.
    pub half_width: f64,
    /// The number of paired rounds.
    pub rounds: usize,
    /// The number of comparisons that the interval is widened for (Bonferroni).
    pub comparisons: u32,
}

impl PairedRatio {
    /// Compares two cells: `subject[i]` and `baseline[i]` are the values of round i, in the same unit, for
    /// example operations per second.
    ///
    /// # Errors
    /// Slices of different length or without a round, a value that is not positive and finite, or settings out
    /// of range.
    pub fn of(subject: &[f64], baseline: &[f64], settings: &IntervalSettings) -> Result<Self, StatsError> {
        settings.check()?;
        if subject.len() != baseline.len() {
            return Err(StatsError::UnequalRounds { left: subject.len(), right: baseline.len() });
        }
        let (subject, baseline) = (logarithms(subject)?, logarithms(baseline)?);
        // A difference of logarithms, not the logarithm of a quotient: it is exactly negated by a swap.
        let ratios: Vec<f64> = subject.iter().zip(&baseline).map(|(a, b)| a - b).collect();
        let (centre, error) = mean_and_error(&ratios);
        Ok(Self::new(centre, error, (ratios.len() - 1) as f64, ratios.len(), settings))
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
        let half_width = error.map_or(0.0, reach);
        Self {
            ratio: exp_finite(logarithm),
            interval: error.map(|_| Interval::around(logarithm, half_width)),
            error,
            quantile: of(&settings.for_comparisons(1)),
            half_width,
            rounds,
            comparisons: settings.comparisons,
        }
    }

    /// The same with an interval that also holds differences between instances of the servers, of this variance (see
    /// [`instance_variance`](crate::instance_variance)).
    ///
    /// The half width h becomes `√(h² + 2t²v)`, with Student's quantile t of a single comparison. The variance is counted
    /// twice because it rests on two pairs of instances only: `tests/nested.rs` shows the error rates.
    #[must_use]
    pub fn among_instances(self, variance: f64) -> Self {
        if self.error.is_none() || variance <= 0.0 {
            return self;
        }
        let half = (self.half_width.powi(2) + 2.0 * variance * self.quantile.powi(2)).sqrt();
        Self { interval: Some(Interval::around(self.ratio.ln(), half)), ..self }
    }

    /// The interval's lower end, if there is an interval.
    #[must_use]
    pub fn low(&self) -> Option<f64> {
        self.interval.map(|interval| interval.low)
    }

    /// The interval's upper end, if there is an interval.
    #[must_use]
    pub fn high(&self) -> Option<f64> {
        self.interval.map(|interval| interval.high)
    }
}
