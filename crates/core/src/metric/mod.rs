//! Metrics: the results of a trial. Each is declared once; tables, charts, intervals, verdicts and exports are
//! generated from the declarations.
//!
//! An experiment declares its own in [`ExperimentInfo::metrics`](crate::experiment::ExperimentInfo::metrics).
//! [`COMMON`] lists those of every experiment.

mod common;

pub use common::*;

use serde::{Deserialize, Serialize};

/// The unit of a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Nanoseconds,
    Bytes,
    #[default]
    Count,
    /// A share, from 0 to 1.
    Share,
    /// A rate per second.
    PerSecond,
    /// A ratio of two numbers.
    Ratio,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
    Lower,
    /// Neither: the metric is shown, and not compared.
    #[default]
    Neither,
}

/// Where the values of a metric come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Each trial has a value.
    Trial,
    /// The slope of this metric over the experiment's chart axis, in each round: the cost of each further unit,
    /// without fixed costs.
    Slope(&'static str),
    /// The time per transaction minus that of this axis's first value, in each round.
    Cost(&'static str),
    /// Each trial has many points ([`Points`]): values of this metric over values of the named one, in the same unit.
    /// They are drawn with the diagonal, on which both are equal.
    Scatter(&'static str),
    /// How throughput grows with the number of the server's processors ([`CPUS`](crate::cpus::CPUS)), in each round.
    Scaling(Scaling),
}

/// A result of varying the number of the server's processors. Lower bounds are left out: there the client, not the
/// server, stopped scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Throughput divided by that of one processor and by the number of processors.
    Efficiency,
    /// σ of the Universal Scalability Law ([`kurabe_stats::usl`]), fitted to at least four numbers of processors.
    Contention,
    /// κ of the same.
    Coherency,
}

impl Source {
    /// Whether each cell has a value of its own.
    pub const fn is_per_cell(self) -> bool {
        matches!(self, Self::Trial | Self::Cost(_) | Self::Scaling(Scaling::Efficiency))
    }
}

/// The declaration of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, as in column headings.
    pub name: &'static str,
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Whether it answers the experiment's question. Primary metrics come first, and their intervals are corrected
    /// for comparisons of primary metrics only.
    pub primary: bool,
    /// A description, as a clause.
    pub about: &'static str,
    /// Where its values come from.
    pub source: Source,
}

impl Metric {
    /// A metric with a value for each trial, not primary.
    pub const fn new(name: &'static str, unit: Unit, better: Better, about: &'static str) -> Self {
        Self { name, unit, better, primary: false, about, source: Source::Trial }
    }

    /// This metric as a primary one.
    #[must_use]
    pub const fn primary(self) -> Self {
        Self { primary: true, ..self }
    }

    /// This metric as a secondary one.
    #[must_use]
    pub const fn secondary(self) -> Self {
        Self { primary: false, ..self }
    }

    /// This metric from another source.
    #[must_use]
    pub const fn from(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// The additional time of a transaction compared with the first value of an axis. It is primary; throughput
    /// decides its verdict.
    pub const fn cost(axis: &'static str, about: &'static str) -> Self {
        Self::new("cost", Unit::Nanoseconds, Better::Neither, about).primary().from(Source::Cost(axis))
    }

    /// Its value in one trial.
    pub fn value(&self, value: f64) -> MetricValue {
        MetricValue::new(self.name, self.unit, value)
    }
}

/// The value of a metric in one trial. Times are means over the measured transactions unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricValue {
    /// The metric's name. A run file of another version may contain undeclared names.
    pub name: String,
    pub unit: Unit,
    pub value: f64,
}

impl MetricValue {
    pub fn new(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self { name: name.into(), unit, value }
    }
}

/// The points of a metric whose source is [`Source::Scatter`], in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Points {
    /// The metric's name.
    pub metric: String,
    /// For each point the value of the metric's reference, and its own.
    pub points: Vec<(f64, f64)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Observation, ProcessUse, ServerUse, TierUse, WireUse};
    use std::time::Duration;

    #[test]
    fn job_costs_are_per_byte_moved() {
        let second = Duration::from_secs(1);
        assert_eq!(of_bytes(0, second, second, None), []);
        let server = ProcessUse { cpu_ns: 6_000_000, ..ProcessUse::default() };
        let wire = WireUse { sent_bytes: 500_000, received_bytes: 2_500_000, ..WireUse::default() };
        let server = ServerUse::Seen(Box::new(server));
        let observed = Observation { wire: Some(wire), server, ..Observation::default() };
        let found = of_bytes(2_000_000, second / 2, Duration::from_millis(4), Some(&observed));
        let expected = [
            BYTES.value(2e6),
            DATA_RATE.value(4e6),
            WIRE_PER_BYTE.value(1.5),
            CLIENT_CPU_PER_MB.value(2e6),
            SERVER_CPU_PER_MB.value(3e6),
        ];
        assert_eq!(found, expected);
        let unobserved = of_bytes(2_000_000, second / 2, Duration::from_millis(4), None);
        assert_eq!(unobserved.len(), 3);
    }

    #[test]
    fn observed_tiers_have_cpu_per_request() {
        let seen = |cpu_ns| ServerUse::Seen(Box::new(ProcessUse { cpu_ns, ..ProcessUse::default() }));
        let tier = |name: &str, used| TierUse { name: name.to_owned(), used };
        let mut observed = Observation::default();
        assert_eq!(of_tiers(&observed, 10), []);
        observed.tiers = vec![
            tier(TierUse::APPLICATION, seen(5_000)),
            tier("elsewhere", ServerUse::NotObserved("far away".to_owned())),
            tier(TierUse::DATABASE, seen(20_000)),
        ];
        let found = of_tiers(&observed, 10);
        let expected = [("application CPU", 500.0), ("database CPU", 2_000.0)];
        assert_eq!(found, expected.map(|(name, value)| MetricValue::new(name, Unit::Nanoseconds, value)));
        for value in found {
            assert!(COMMON.iter().any(|metric| metric.name == value.name), "{value:?}");
        }
    }
}
