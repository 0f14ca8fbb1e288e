//! Findings on given rates: response times, overload, and a late load generator.

use super::Scope;
use crate::format::{figure, micros};
use crate::labels::Labels;
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::units;
use serde::Serialize;

/// A response time at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatePoint {
    /// Transactions due per second.
    pub rate: u64,
    /// The 99th percentile of response times, in microseconds.
    pub p99_us: f64,
}

/// What transactions at given rates show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Rates {
    /// Response times by rate, if the rate was served and the generator was on time. `bend`: the lowest rate whose
    /// p99 is at least twice that of the lowest rate, in every round.
    ResponseTimes { scope: Scope, points: Vec<RatePoint>, bend: Option<u64> },
    /// The scope's rates were not served: the throughput at the lowest of them, and the number of dropped
    /// transactions over all. `from`: whether every higher tested rate is among them.
    Overloaded { scope: Scope, served_per_second: f64, dropped: u64, from: bool },
    /// The load generator started transactions late (p99), so that response times (p99) at the scope's rates are
    /// invalid.
    GeneratorLate { scope: Scope, lag_us: f64, p99_us: f64 },
}

impl Rates {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        match self {
            Self::ResponseTimes { scope, points, bend } => {
                let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
                let at =
                    |point: &RatePoint| format!("{} at {}/s", micros(point.p99_us), units::count(point.rate));
                let rest = if points.len() > 1 { format!(" and {}", at(last)) } else { String::new() };
                let bend = bend.map_or_else(String::new, |rate| {
                    format!("; it is at least twice the first from {}/s on", units::count(rate))
                });
                let what = labels.results_of(&Scope { at: Vec::new(), ..scope.clone() });
                format!("response p99 of {what} is {}{rest}{bend}.", at(first))
            }
            Self::Overloaded { scope, served_per_second, dropped, from } => {
                let what = labels.operations_of(&scope.operations);
                let place = if let (true, Some(AxisValue::Number(rate))) = (*from, scope.at.iter().min()) {
                    let targets = labels.targets_of(&scope.targets);
                    format!(" on {targets} are overloaded from {}/s", units::count(*rate))
                } else {
                    let rates = Scope { axes: Cell::default(), ..scope.clone() };
                    format!(" are overloaded{}", labels.place(&rates))
                };
                let dropped = match dropped {
                    0 => String::new(),
                    n => format!(", {} were never started", units::count(*n)),
                };
                let (held, served) = (labels.held(scope), figure(*served_per_second));
                format!("{what}{place}{held}: {served}/s were served{dropped}.")
            }
            Self::GeneratorLate { scope, lag_us, p99_us } => {
                let (what, lag, p99) = (labels.results_of(scope), micros(*lag_us), micros(*p99_us));
                format!(
                    "response times of {what} are invalid: the load generator was {lag} late (p99), of {p99}."
                )
            }
        }
    }
}
