//! The named parts of transactions: how long each took, over all measured transactions.

use kurabe_core::figure::{Figure, Unit};
use std::time::Duration;

/// Parts by name, in the order in which the transaction names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts(Vec<(&'static str, Duration)>);

impl Parts {
    pub(crate) fn of(parts: &[(&'static str, Duration)]) -> Self {
        Self(parts.to_vec())
    }

    /// What was added since.
    pub(crate) fn since(mut self, before: &Self) -> Self {
        for ((_, took), (_, then)) in self.0.iter_mut().zip(&before.0) {
            *took = took.saturating_sub(*then);
        }
        self
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, took) in &other.0 {
            match self.0.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += *took,
                None => self.0.push((name, *took)),
            }
        }
    }

    /// The means over so many transactions, those without the part among them, so that parts add up to the whole.
    pub(crate) fn figures(&self, transactions: u64) -> Vec<Figure> {
        let mean = |took: Duration| took.as_nanos() as f64 / transactions.max(1) as f64;
        self.0.iter().map(|(name, took)| Figure::new(*name, Unit::Nanoseconds, mean(*took))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_means_over_the_measured_transactions_of_all_clients() {
        let us = Duration::from_micros;
        let warm = Parts::of(&[("read", us(100)), ("write", us(7))]);
        let mut all = Parts::default();
        all.merge(&Parts::of(&[("read", us(130)), ("write", us(7))]).since(&warm));
        all.merge(&Parts::of(&[("read", us(10)), ("write", us(20))]));
        let found: Vec<(String, f64)> = all.figures(4).into_iter().map(|f| (f.name, f.value)).collect();
        assert_eq!(found, [("read".to_owned(), 10_000.0), ("write".to_owned(), 5_000.0)]);
        assert_eq!(Parts::default().figures(0), []);
    }
}
