//! Spans of transactions: how often each was executed and how long it took, over all measured transactions.

use kurabe_core::experiment::Span;
use kurabe_core::metric::{Metric, MetricValue, Unit};
use std::time::Duration;

/// Spans by name, in the order in which the transaction names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(Vec<Span>);

impl Spans {
    pub(crate) fn of(spans: &[Span]) -> Self {
        Self(spans.to_vec())
    }

    /// What was added since.
    pub(crate) fn since(mut self, before: &Self) -> Self {
        for (span, then) in self.0.iter_mut().zip(&before.0) {
            span.times = span.times.saturating_sub(then.times);
            span.took = span.took.saturating_sub(then.took);
        }
        self
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for span in &other.0 {
            match self.0.iter_mut().find(|known| known.name == span.name) {
                Some(sum) => {
                    sum.times += span.times;
                    sum.took += span.took;
                }
                None => self.0.push(*span),
            }
        }
    }

    /// The name, the count and the total time in nanoseconds of each span.
    pub(crate) fn sums(&self) -> Vec<(String, u64, u64)> {
        let sum = |span: &Span| (span.name.to_owned(), span.times, span.took.as_nanos() as u64);
        self.0.iter().map(sum).collect()
    }

    /// The reverse of [`Spans::sums`]: each span is one of these metrics. `None` if one is not.
    pub(crate) fn of_sums(sums: &[(String, u64, u64)], metrics: &'static [Metric]) -> Option<Self> {
        let span = |(name, times, ns): &(String, u64, u64)| {
            let metric = metrics.iter().find(|metric| metric.name == name)?;
            Some(Span { name: metric.name, times: *times, took: Duration::from_nanos(*ns) })
        };
        sums.iter().map(span).collect::<Option<Vec<_>>>().map(Self)
    }

    /// The mean time of each executed span.
    pub(crate) fn metrics(&self) -> Vec<MetricValue> {
        let mean = |span: &Span| {
            let each = span.took.as_nanos() as f64 / span.times as f64;
            MetricValue::new(span.name, Unit::Nanoseconds, each)
        };
        self.0.iter().filter(|span| span.times > 0).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_metric_is_mean_over_measured_transactions() {
        let span = |name, times, us| Span { name, times, took: Duration::from_micros(us) };
        let warm = Spans::of(&[span("read", 5, 100), span("write", 1, 7), span("search", 0, 0)]);
        let mut all = Spans::default();
        all.merge(
            &Spans::of(&[span("read", 8, 130), span("write", 1, 7), span("search", 0, 0)]).since(&warm),
        );
        all.merge(&Spans::of(&[span("read", 1, 10), span("write", 2, 20)]));
        let found: Vec<(String, f64)> = all.metrics().into_iter().map(|m| (m.name, m.value)).collect();
        assert_eq!(found, [("read".to_owned(), 10_000.0), ("write".to_owned(), 10_000.0)]);
        assert_eq!(Spans::default().metrics(), []);
    }
}
