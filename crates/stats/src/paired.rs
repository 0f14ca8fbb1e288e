//! By what factor A differs from B, round against round.
//!
//! Within a round both cells met the same state of the machine, so the ratio of one round is free of the drift
//! between rounds. Ratios multiply, so their centre is the geometric mean: the mean of the logarithms, which
//! also makes B against A the exact inverse of A against B (Fleming and Wallace, "How not to lie with
//! statistics", CACM 29(3), 1986). The interval is that of [`crate::interval`].

use serde::{Deserialize, Serialize};

use crate::error::StatsError;
use crate::interval::{Interval, IntervalSettings, exp_finite, log_interval, logarithms, mean_of};

/// A factor between two cells, with the interval within which it lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    /// The geometric mean over the rounds of subject ÷ baseline; positive, without unit.
    pub ratio: f64,
    /// The factors that the rounds do not rule out; `None` for fewer than two rounds, which rule out nothing.
    pub interval: Option<Interval>,
    /// How many rounds were paired.
    pub rounds: usize,
    /// The probability, 0 to 1, with which the intervals of all `comparisons` hold at once.
    pub confidence: f64,
    /// How many comparisons the interval was widened for (Bonferroni).
    pub comparisons: u32,
}

impl PairedRatio {
    /// Compares two cells: `subject[i]` and `baseline[i]` are the values of round i, in the same unit, for
    /// example operations per second.
    ///
    /// With rounds whose ratios are all equal the interval has no width: such rounds hold no information on
    /// noise, which is one reason why [`crate::verdict::judge`] asks for a noise floor too.
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
        let (centre, ends) = log_interval(&ratios, settings, |logs| mean_of(logs));
        Ok(Self {
            ratio: exp_finite(centre),
            interval: ends.map(|e| Interval { low: exp_finite(e.low), high: exp_finite(e.high) }),
            rounds: ratios.len(),
            confidence: settings.confidence,
            comparisons: settings.comparisons,
        })
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

    /// The same comparison seen from the other side: baseline ÷ subject.
    #[must_use]
    pub fn inverse(&self) -> Self {
        Self {
            ratio: 1.0 / self.ratio,
            interval: self.interval.map(|i| Interval { low: 1.0 / i.high, high: 1.0 / i.low }),
            ..*self
        }
    }
}
