//! What a chart shows of a cell: a value with its bar, and its facts as a tooltip.

use crate::cell::{CellResult, MetricInfo};
use crate::finding::published;
use crate::format::{figure, micros, percent, short_figure, value_of};
use crate::labels::Axis;
use crate::messages::{Language, Message};
use crate::table;
use kurabe_core::units;
use kurabe_stats::Estimate;
use std::fmt::Write as _;

/// The value on the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum View<'a> {
    /// Operations per second: the mean of the rounds with its interval.
    Rate,
    /// Service time: the median, with a bar to the 99th percentile and a line of these.
    Time,
    /// A metric: the mean of the rounds with its interval.
    Metric(&'a MetricInfo),
}

impl<'a> View<'a> {
    pub fn unit(self, language: Language) -> &'a str {
        match self {
            Self::Rate => Message::RateUnit.text(language),
            Self::Time => Message::TimeUnit.text(language),
            Self::Metric(metric) => &metric.name,
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Time => "time",
            Self::Metric(_) => "metric",
        }
    }

    /// The value, and the ends of its bar.
    pub fn figure(self, cell: &CellResult) -> Option<(f64, f64, f64)> {
        let ends =
            |Estimate { value, low, high }: Estimate| (value, low.unwrap_or(value), high.unwrap_or(value));
        match self {
            Self::Rate => cell.ops_per_second.map(ends),
            // Times with a backlog grow with the trial, and those of a late generator are invalid.
            Self::Time if cell.is_overloaded() || cell.is_generator_late() => None,
            Self::Time => cell.times().map(|latency| (latency.p50, latency.p50, latency.p99)),
            // The axis is logarithmic.
            Self::Metric(metric) => cell
                .metric(&metric.name)
                .filter(|found| found.figure.value > 0.0)
                .map(|found| ends(found.figure)),
        }
    }

    pub fn tick(self, value: f64) -> String {
        match self {
            Self::Rate => short_figure(value),
            Self::Time => micros(value),
            Self::Metric(metric) => value_of(metric.unit, value),
        }
    }
}

/// The value of a published point: its rate, or the time per request of each client, in microseconds.
pub(super) fn figure_of(reference: &published::Line, view: View<'_>, (x, rate): (f64, f64)) -> f64 {
    match view {
        View::Rate => rate,
        View::Time | View::Metric(_) => 1e6 / rate * if reference.x_is_clients { x } else { 1.0 },
    }
}

/// The tooltip of a point, one fact per line.
pub(super) fn tip(label: &str, axis: Option<&Axis>, cell: &CellResult) -> String {
    let mut text = label.to_owned();
    if let Some(axis) = axis {
        let value = cell.axes.get(&axis.name).map_or_else(String::new, |value| axis.name_value(value));
        let _ = write!(text, ", {value}");
    }
    if let Some(rate) = cell.ops_per_second {
        let _ = write!(text, "\n{} ops/s", figure(rate.value));
        if let (Some(low), Some(high)) = (rate.low, rate.high) {
            let _ = write!(text, " ({} to {}, {} rounds)", figure(low), figure(high), cell.rounds);
        }
    }
    if let Some(found) = &cell.attribution {
        let least = if cell.is_lower_bound() { ", a lower bound" } else { "" };
        let _ = write!(text, "\nbottleneck: {}{least}", found.bottleneck.word());
    }
    if let Some(latency) = cell.times() {
        let what = if cell.open_loop.is_some() { "response " } else { "" };
        let [p50, max] = [latency.p50, latency.max].map(micros);
        let (p95, p99) = (table::p95(cell, latency.p95), table::p99(cell, latency.p99));
        let _ = write!(text, "\n{what}p50 {p50}, p95 {p95}, p99 {p99}, max {max}");
    }
    if let Some(open) = cell.open_loop {
        let [backlog, dropped] = [open.backlog, open.dropped].map(units::count);
        let _ = write!(text, "\nbacklog {backlog}, dropped {dropped}");
        if let Some(service) = cell.latency_us {
            let _ = write!(text, "\nservice p99 {}", table::p99(cell, service.p99));
        }
    }
    if let Some(cpu) = cell.client_cpu_us_per_op {
        let _ = write!(text, "\nclient CPU {}", micros(cpu));
        if let Some(share) = cell.verify_share {
            let _ = write!(text, ", {} of it for checking", percent(share));
        }
    }
    if let Some(cpu) = cell.server_cpu_us_per_op {
        let _ = write!(text, "\nserver CPU {}", micros(cpu));
    }
    if let Some(bytes) = cell.stored_bytes {
        let _ = write!(text, "\nstored {}", units::size(bytes));
    }
    text
}
