//! Medians with confidence intervals.

use std::fmt;

/// The middle value; the mean of two for an even number of values.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// A median with its 95 % confidence interval, if there are enough values.
pub struct Median {
    middle: f64,
    interval: Option<(f64, f64)>,
}

impl fmt::Display for Median {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interval {
            Some((least, most)) => write!(f, "{:.3} ({least:.3}–{most:.3})", self.middle),
            None => write!(f, "{:.3} (too few rounds for an interval)", self.middle),
        }
    }
}

/// The interval is between two of the ordered values, equally many from either end, by the sign test: each value is
/// above the true median as often as below it, for any distribution.
pub fn of_median(values: &mut [f64]) -> Median {
    let middle = median(values);
    let n = values.len();
    // The probability that at most this many of n fall on one side.
    let (mut chance, mut term, mut outside) = (0.0, 0.5_f64.powi(n as i32), 0);
    while outside < n / 2 {
        chance += term;
        if 2.0 * chance > 0.05 {
            break;
        }
        term *= (n - outside) as f64 / (outside + 1) as f64;
        outside += 1;
    }
    let interval = (outside > 0).then(|| (values[outside - 1], values[n - outside]));
    Median { middle, interval }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_that_of_sign_test() {
        let mut values: Vec<f64> = (1..=11).rev().map(f64::from).collect();
        // Of eleven values the second and the tenth contain the median with 98.8 %; the third and the ninth would
        // with 93.5 %.
        assert_eq!(of_median(&mut values).to_string(), "6.000 (2.000–10.000)");
        let mut values: Vec<f64> = (1..=6).map(f64::from).collect();
        assert_eq!(of_median(&mut values).to_string(), "3.500 (1.000–6.000)");
        assert!(of_median(&mut [1.0, 2.0, 3.0, 4.0, 5.0]).to_string().contains("too few"));
    }
}
