//! Centre and spread of a few values, one per round.

/// The middle value, or the mean of the two middle ones; `None` when there is none or one is not a number.
#[must_use]
pub fn median(figures: &[f64]) -> Option<f64> {
    if figures.iter().any(|x| x.is_nan()) {
        return None;
    }
    let mut sorted = figures.to_vec();
    median_in_place(&mut sorted)
}

/// The median of values that may be reordered; `None` when there are none.
pub(crate) fn median_in_place(figures: &mut [f64]) -> Option<f64> {
    figures.sort_unstable_by(f64::total_cmp);
    let upper = *figures.get(figures.len() / 2)?;
    if figures.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *figures.get(figures.len() / 2 - 1)?;
    // Halved first, so that two large values do not overflow.
    Some(lower / 2.0 + upper / 2.0)
}

/// The arithmetic mean; `None` when there are no values.
#[must_use]
pub fn mean(figures: &[f64]) -> Option<f64> {
    if figures.is_empty() { None } else { Some(figures.iter().sum::<f64>() / figures.len() as f64) }
}

/// The geometric mean, the centre of values that differ by factors; `None` when there are no values or one of
/// them is not positive and finite.
#[must_use]
pub fn geometric_mean(figures: &[f64]) -> Option<f64> {
    if figures.iter().any(|x| !x.is_finite() || *x <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = figures.iter().map(|x| x.ln()).collect();
    mean(&logs).map(f64::exp)
}

/// The sample standard deviation (divisor n − 1) in the values' own unit; `None` for fewer than two.
#[must_use]
pub fn standard_deviation(figures: &[f64]) -> Option<f64> {
    if figures.len() < 2 {
        return None;
    }
    let centre = mean(figures)?;
    let squares: f64 = figures.iter().map(|x| (x - centre).powi(2)).sum();
    Some((squares / (figures.len() - 1) as f64).sqrt())
}

/// The coefficient of variation: standard deviation ÷ mean, a relative spread without unit (0.03 is 3 %).
///
/// `None` for fewer than two values, or when their mean is not positive, where the quotient means nothing.
#[must_use]
pub fn coefficient_of_variation(figures: &[f64]) -> Option<f64> {
    let centre = mean(figures)?;
    if centre > 0.0 { standard_deviation(figures).map(|deviation| deviation / centre) } else { None }
}

/// The median absolute deviation from the median, in the values' own unit and without the factor 1.4826 that
/// would make it estimate a normal standard deviation; `None` as [`median`].
#[must_use]
pub fn median_absolute_deviation(figures: &[f64]) -> Option<f64> {
    let centre = median(figures)?;
    let mut deviations: Vec<f64> = figures.iter().map(|x| (x - centre).abs()).collect();
    median_in_place(&mut deviations)
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
    fn spreads_of_a_worked_example() {
        let figures = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert!(close(mean(&figures), 5.0));
        assert!(close(standard_deviation(&figures), (32.0_f64 / 7.0).sqrt()));
        assert!(close(coefficient_of_variation(&figures), (32.0_f64 / 7.0).sqrt() / 5.0));
        assert!(close(median_absolute_deviation(&figures), 0.5));
        assert!(close(geometric_mean(&[1.0, 100.0]), 10.0));
    }

    #[test]
    fn undefined_summary_is_none() {
        assert_eq!(mean(&[]), None);
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(coefficient_of_variation(&[-1.0, 1.0]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(median_absolute_deviation(&[]), None);
    }
}
