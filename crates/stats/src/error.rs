//! Errors of the statistics.

use thiserror::Error;

/// An input from which No valid value follows.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum StatsError {
    /// There was nothing to summarise.
    #[error("no rounds to compare")]
    Empty,
    /// The two sides of a paired comparison hold a different number of rounds.
    #[error("paired sides differ in length: {left} rounds against {right}")]
    UnequalRounds {
        /// Rounds of the subject.
        left: usize,
        /// Rounds of the baseline.
        right: usize,
    },
    /// A value is zero, negative, infinite or not a number, so that it has no logarithm.
    #[error("round {round} holds {value}, which is not a positive finite number")]
    NotPositive {
        /// The round's position in the slice, from 0.
        round: usize,
        /// The invalid value.
        value: f64,
    },
    /// The confidence is not strictly between 0 and 1.
    #[error("confidence {0} is not between 0 and 1")]
    Confidence(f64),
    /// A setting that must be at least one is zero.
    #[error("{0} must be at least 1")]
    ZeroSetting(&'static str),
}
