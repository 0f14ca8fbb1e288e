//! Spans of transactions: how often each was executed and how long it took, over all measured transactions.

use kurabe_core::experiment::Span;
use kurabe_core::metric::{MetricValue, Unit};
use serde::{Deserialize, Serialize};

/// Spans by name, in the order of their first execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Spans(pub(crate) Vec<Span>);

impl Spans {
    pub(crate) fn merge(&mut self, other: &Self) {
        for span in &other.0 {
            match self.0.iter_mut().find(|known| known.name == span.name) {
                Some(sum) => sum.add(span.times, span.took),
                None => self.0.push(span.clone()),
            }
        }
    }

    /// The mean time of each executed span.
    pub(crate) fn metrics(&self) -> Vec<MetricValue> {
        let mean = |span: &Span| {
            let each = span.took.as_nanos() as f64 / span.times as f64;
            MetricValue::new(span.name.clone(), Unit::Nanoseconds, each)
        };
        self.0.iter().filter(|span| span.times > 0).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn span_metric_is_mean_over_all_clients() {
        let span = |name: &'static str, times, us| Span {
            name: name.into(),
            times,
            took: Duration::from_micros(us),
        };
        let mut all = Spans::default();
        all.merge(&Spans(vec![span("read", 3, 30), span("search", 0, 0)]));
        all.merge(&Spans(vec![span("read", 1, 10), span("write", 2, 20)]));
        let found: Vec<(String, f64)> = all.metrics().into_iter().map(|m| (m.name, m.value)).collect();
        assert_eq!(found, [("read".to_owned(), 10_000.0), ("write".to_owned(), 10_000.0)]);
        assert_eq!(Spans::default().metrics(), []);
    }
}
