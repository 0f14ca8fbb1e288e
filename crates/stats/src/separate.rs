//! By what factor two runs differ that were made at different times.
//!
//! Nothing pairs their rounds. The samples of a run say how far its own mean may be off, and nothing of what changes from
//! one run to the next: the machine's state, a server's start, the layout of its files. Only runs sample that.
//!
//! Earlier runs under the same conditions do. If runs scatter around one value, the logarithms of n of them have a variance
//! that is independent of the two runs that are compared, and the interval is exactly Student's with n − 1 degrees of
//! freedom. If the value drifts, they show how far it drifts in the time that they cover, which is enough for two runs that
//! are [much closer together](is_enough). A change in their time makes the interval wider, and never too narrow.
//!
//! `tests/families.rs` simulates all three.

use crate::interval::{IntervalSettings, Mean, mean_and_error};
use crate::paired::PairedRatio;

/// The smallest number of earlier runs from which the variance between runs is estimated.
pub const MIN_RUNS: usize = 6;
/// The largest: a change that is older than the last runs is forgotten.
pub const MAX_RUNS: usize = 10;
/// The largest time between two compared runs, as a share of the time that the earlier ones cover. With a half, a random
/// walk of the rate, which is the worst drift, would err in 8 to 10 % of comparisons.
pub const REACH: f64 = 0.25;

/// Whether so many earlier runs, which cover `span`, say what two runs differ by that are `apart`, in the same unit of time.
pub fn is_enough(runs: usize, span: f64, apart: f64) -> bool {
    runs >= MIN_RUNS && apart <= REACH * span
}

impl PairedRatio {
    /// Compares the samples of two runs by what each varies within. That includes all that changes between two runs only if
    /// it changes between two samples of one too (Welch, "The generalization of 'Student's' problem when several different
    /// population variances are involved", Biometrika 34, 1947). `None` for a side without a sample, or with a value that
    /// is not positive and finite.
    pub fn from_separate(
        subject: &[f64],
        baseline: &[f64],
        mean: Mean,
        settings: &IntervalSettings,
    ) -> Option<Self> {
        let (subject, baseline) = (mean.logarithms(subject)?, mean.logarithms(baseline)?);
        let ((a, a_error), (b, b_error)) = (mean_and_error(&subject), mean_and_error(&baseline));
        let squares = a_error.zip(b_error).map(|(a, b)| [a * a, b * b]);
        let freedom = squares.map_or(0.0, |[va, vb]| {
            let share = |v: f64, samples: &[f64]| v * v / (samples.len() - 1) as f64;
            // Not a number if no sample differs from another.
            ((va + vb).powi(2) / (share(va, &subject) + share(vb, &baseline))).max(1.0)
        });
        let error = squares.map(|[va, vb]| (va + vb).sqrt());
        Some(Self::new(a - b, error, freedom, subject.len().min(baseline.len()), settings))
    }

    /// Compares the means of two runs by what the means of earlier ones vary by. There is no interval with fewer than two.
    /// `None` with a value that is not positive and finite.
    pub fn from_runs(
        subject: f64,
        baseline: f64,
        earlier: &[f64],
        settings: &IntervalSettings,
    ) -> Option<Self> {
        let sides = Mean::Geometric.logarithms(&[subject, baseline])?;
        let error = match earlier {
            [_, _, ..] => mean_and_error(&Mean::Geometric.logarithms(earlier)?).1,
            _ => None,
        };
        // Of the difference of two runs, from that of the mean of all.
        let error = error.map(|error| error * (2.0 * earlier.len() as f64).sqrt());
        let freedom = earlier.len().saturating_sub(1) as f64;
        Some(Self::new(sides[0] - sides[1], error, freedom, earlier.len(), settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_agree_with_worked_examples() {
        let e = |logs: [f64; 3]| logs.map(f64::exp);
        let once = IntervalSettings::default();
        let reach = |ratio: &PairedRatio| ratio.estimate.ends().map(|(low, high)| (high / low).ln() / 2.0);
        // Logarithms 1, 2, 3 against 4, 6, 8: difference −4, error √(1/3 + 4/3), 2.941 degrees of freedom, t = 3.2215.
        let welch =
            PairedRatio::from_separate(&e([1.0, 2.0, 3.0]), &e([4.0, 6.0, 8.0]), Mean::Geometric, &once)
                .unwrap();
        assert!((welch.estimate.value.ln() + 4.0).abs() < 1e-12);
        let t = reach(&welch).unwrap() / (5.0_f64 / 3.0).sqrt();
        assert!((t - 3.2215).abs() < 0.01, "{t}");
        assert!(
            PairedRatio::from_separate(&[1.0], &[2.0, 3.0], Mean::Geometric, &once)
                .unwrap()
                .estimate
                .ends()
                .is_none()
        );
        assert!(PairedRatio::from_separate(&[], &[1.0], Mean::Geometric, &once).is_none());
        // Runs whose logarithms are 1, 2, 3 have a variance of 1; two degrees of freedom, t = 4.3027.
        let runs = PairedRatio::from_runs(2.0, 4.0, &e([1.0, 2.0, 3.0]), &once).unwrap();
        assert!((runs.estimate.value - 0.5).abs() < 1e-12 && runs.rounds == 3);
        let t = reach(&runs).unwrap() / 2.0_f64.sqrt();
        assert!((t - 4.3027).abs() < 0.001, "{t}");
        assert!(PairedRatio::from_runs(2.0, 4.0, &[1.0], &once).unwrap().estimate.ends().is_none());
        assert!(PairedRatio::from_runs(2.0, 0.0, &[1.0, 2.0], &once).is_none());
    }
}
