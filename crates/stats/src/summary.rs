//! Centre of a few values, one per round.

/// The middle value, or the mean of the two middle ones; `None` when there is none or one is not a number.
pub fn median(figures: &[f64]) -> Option<f64> {
    if figures.iter().any(|x| x.is_nan()) {
        return None;
    }
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    // Halved first, so that two large values do not overflow.
    Some(sorted[sorted.len() / 2 - 1] / 2.0 + upper / 2.0)
}

/// The arithmetic mean; `None` when there are no values.
pub fn mean(figures: &[f64]) -> Option<f64> {
    if figures.is_empty() { None } else { Some(figures.iter().sum::<f64>() / figures.len() as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|x| (x - wanted).abs() <= 1e-12 * wanted.abs().max(1.0))
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert!(close(median(&[3.0]), 3.0));
        assert!(close(median(&[9.0, 1.0, 5.0]), 5.0));
        assert!(close(median(&[9.0, 1.0, 5.0, 6.0]), 5.5));
        assert!(median(&[f64::MAX, f64::MAX]).is_some_and(f64::is_finite));
    }

    #[test]
    fn mean_of_a_worked_example_and_of_nothing() {
        assert!(close(mean(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 5.0));
        assert_eq!(mean(&[]), None);
    }
}
