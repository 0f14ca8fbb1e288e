//! A value with its interval, and a range.

use serde::Serialize;

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    /// The lower end; `None` without an interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Interval {
    /// Its ends, if it has any.
    pub(crate) fn ends(self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// The interval of a function that keeps the order of its values.
    pub(crate) fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { value: of(self.value), low: self.low.map(&of), high: self.high.map(&of) }
    }

    /// Whether its ends are so far apart that they say nothing: by a factor of 100 or more.
    pub(crate) fn is_vast(&self) -> bool {
        const VAST: f64 = 100.0;
        self.ends().is_some_and(|(low, high)| high >= low * VAST)
    }

    /// The ratio seen from the other side.
    pub(crate) fn inverse(self) -> Self {
        let of = |value: f64| 1.0 / value;
        Self { value: of(self.value), low: self.high.map(of), high: self.low.map(of) }
    }

    /// Formats `12.1k – 12.6k`; a dash without an interval.
    pub(crate) fn shown(&self, show: &dyn Fn(f64) -> String) -> String {
        self.ends().map_or_else(|| "–".to_owned(), |(low, high)| format!("{} – {}", show(low), show(high)))
    }
}

/// A range of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The lowest end.
    pub low: f64,
    /// The highest end.
    pub high: f64,
}
