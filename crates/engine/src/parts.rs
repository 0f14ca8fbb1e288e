//! The named parts of transactions: how often each was made and how long it took, over all measured transactions.

use kurabe_core::experiment::Part;
use kurabe_core::metric::{MetricValue, Unit};

/// Parts by name, in the order in which the transaction names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts(Vec<Part>);

impl Parts {
    pub(crate) fn of(parts: &[Part]) -> Self {
        Self(parts.to_vec())
    }

    /// What was added since.
    pub(crate) fn since(mut self, before: &Self) -> Self {
        for (part, then) in self.0.iter_mut().zip(&before.0) {
            part.times = part.times.saturating_sub(then.times);
            part.took = part.took.saturating_sub(then.took);
        }
        self
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for part in &other.0 {
            match self.0.iter_mut().find(|known| known.name == part.name) {
                Some(sum) => {
                    sum.times += part.times;
                    sum.took += part.took;
                }
                None => self.0.push(*part),
            }
        }
    }

    /// The mean time of each part that was made.
    pub(crate) fn metrics(&self) -> Vec<MetricValue> {
        let mean = |part: &Part| {
            let each = part.took.as_nanos() as f64 / part.times as f64;
            MetricValue::new(part.name, Unit::Nanoseconds, each)
        };
        self.0.iter().filter(|part| part.times > 0).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn parts_are_means_over_the_measured_transactions_that_made_them() {
        let part = |name, times, us| Part { name, times, took: Duration::from_micros(us) };
        let warm = Parts::of(&[part("read", 5, 100), part("write", 1, 7), part("search", 0, 0)]);
        let mut all = Parts::default();
        all.merge(
            &Parts::of(&[part("read", 8, 130), part("write", 1, 7), part("search", 0, 0)]).since(&warm),
        );
        all.merge(&Parts::of(&[part("read", 1, 10), part("write", 2, 20)]));
        let found: Vec<(String, f64)> = all.metrics().into_iter().map(|m| (m.name, m.value)).collect();
        assert_eq!(found, [("read".to_owned(), 10_000.0), ("write".to_owned(), 10_000.0)]);
        assert_eq!(Parts::default().metrics(), []);
    }
}
