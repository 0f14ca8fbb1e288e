//! Logarithmic axes and their ticks.

/// Maps positive values to pixels on a logarithmic scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Log {
    /// Maps `low` to pixel `from` and `high` to pixel `to`; both positive, `low` below `high`.
    pub fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { low * 10.0 };
        Self { low: low.ln(), high: high.ln(), from, to }
    }

    /// The pixel of a value; values outside are clamped.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).ln() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }
}

/// The range of the values with a margin, at least a factor of `least` wide.
pub(crate) fn range(values: impl Iterator<Item = f64> + Clone, least: f64) -> Option<(f64, f64)> {
    let good = values.filter(|value| value.is_finite() && *value > 0.0);
    let low = good.clone().min_by(f64::total_cmp)?;
    let high = good.max_by(f64::total_cmp)?;
    let room = ((high / low).ln() * 0.06).exp();
    let (low, high) = (low / room, high * room);
    let lack = (least / (high / low)).sqrt().max(1.0);
    Some((low / lack, high * lack))
}

/// Ticks within a range, and whether each has a label: 1, 2 and 5 of each decade, or only 1 in wide ranges. At least
/// three have labels, unless the range is less than a decade.
pub(crate) fn ticks(low: f64, high: f64) -> Vec<(f64, bool)> {
    let decades = (high / low).log10();
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let every = (decades / 7.0).ceil().max(1.0) as i32;
    let mut ticks = Vec::new();
    for decade in first..=last {
        for step in [1.0, 2.0, 5.0] {
            let value = step * 10_f64.powi(decade);
            let whole = (step - 1.0_f64).abs() < 1e-9;
            let label = if decades > 2.2 { whole && decade % every == 0 } else { true };
            if value >= low * 0.999 && value <= high * 1.001 && (whole || decades <= 4.0) {
                ticks.push((value, label));
            }
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        let labelled: Vec<f64> = ticks(80.0, 4_000.0).iter().filter(|t| t.1).map(|t| t.0).collect();
        assert_eq!(labelled, [100.0, 200.0, 500.0, 1_000.0, 2_000.0]);
        let labelled: Vec<f64> = ticks(3.0, 200_000.0).iter().filter(|t| t.1).map(|t| t.0).collect();
        assert_eq!(labelled, [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]);
    }

    proptest! {
        #[test]
        fn every_value_has_a_place(low in 1e-6..1e9_f64, factor in 1.0..1e9_f64, value in -1.0..1e12_f64) {
            let scale = Log::new(low, low * factor, 10.0, 300.0);
            prop_assert!((10.0..=300.0).contains(&scale.at(value)));
            prop_assert!(ticks(low, low * factor.max(4.0)).len() < 60);
        }
    }
}
