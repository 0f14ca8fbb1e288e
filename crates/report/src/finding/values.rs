//! Findings on values: rates, costs, an experiment's metrics, and published ratios.

use super::wording::{faster, ratio, with_interval};
use super::{Interval, Pair, Scope, Span};
use crate::format::{figure, list, micros, value_of};
use crate::labels::Labels;
use kurabe_core::axis::Cell;
use kurabe_core::metric::Unit;
use serde::Serialize;

/// A target's throughput.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetRate {
    pub target: String,
    /// Transactions per second.
    pub per_second: Interval,
    /// Whether its client was saturated, so that the result is a lower bound.
    pub lower_bound: bool,
}

/// A metric's value at one point of the chart or of the varying axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricPoint {
    /// The values of the varying axes.
    pub axes: Cell,
    /// The mean of the rounds with its interval.
    #[serde(flatten)]
    pub figure: Interval,
}

/// A setting of several targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingValues {
    /// Its name, as the server has it.
    pub name: String,
    /// Its value on each target; `None`: the server does not report it.
    pub values: Vec<Option<String>>,
}

/// How a target's results compare with published ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedHere {
    pub target: String,
    /// By how much the value published as faster is faster here.
    pub ratio: Interval,
    /// The additional work per request, in microseconds, for which the published ratio would hold.
    pub other_work_us: Option<Span>,
}

/// Values, each with its interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Values {
    /// Transactions per second of each target.
    Throughput { scope: Scope, rates: Vec<TargetRate> },
    /// The additional time of value `a` of an axis compared with value `b`: a significant difference of their times
    /// per transaction, negative if `a` saves time; and the ratio of the times.
    Cost { scope: Scope, pair: Pair, cost_us: Interval, factor: Interval },
    /// The values of a primary metric.
    MetricValues { scope: Scope, name: String, unit: Unit, points: Vec<MetricPoint> },
    /// The settings in which targets of one engine differ, as the servers report them: of each its values, in the order of
    /// the targets.
    Settings { targets: Vec<String>, differ: Vec<SettingValues> },
    /// The run's ratio compared with a published one.
    Published { claim: String, here: Vec<PublishedHere>, ratio: Span, reproduced: bool, otherwise: String },
}

impl Values {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        match self {
            Self::Throughput { scope, rates } => {
                let rate = |rate: &TargetRate| {
                    let name = labels.several_targets().then(|| labels.target(&rate.target) + " ");
                    let least = if rate.lower_bound { "at least " } else { "" };
                    format!("{}{least}{}", name.unwrap_or_default(), with_interval(rate.per_second, &figure))
                };
                let rates: Vec<String> = rates.iter().map(rate).collect();
                let (what, place) =
                    (labels.operations_of(&scope.operations), labels.place(&scope.anywhere()));
                format!("{what} per second{place}: {}.", rates.join(", "))
            }
            Self::Cost { scope, pair, cost_us, factor } => {
                let (verb, cost) = if cost_us.value < 0.0 {
                    ("saves", Interval { low: cost_us.high, high: cost_us.low, ..*cost_us })
                } else {
                    ("costs", *cost_us)
                };
                let cost = with_interval(cost, &|us| micros(us.abs()));
                let (operations, place) = (scope.operations.join(" or "), labels.place(scope));
                let [a, b] = [&pair.a, &pair.b].map(|side| labels.side(&pair.axis, side));
                let times = ratio(*factor);
                format!("{a} {verb} {cost} per {operations}{place}, compared with {b}: {times} the time.")
            }
            Self::MetricValues { scope, name, unit, points } => {
                let value = |point: &MetricPoint| {
                    let at = labels.axes_of(&point.axes);
                    let at = if at.is_empty() { String::new() } else { format!(" with {}", list(&at)) };
                    with_interval(point.figure, &|value| value_of(*unit, value)) + &at
                };
                let values: Vec<String> = points.iter().map(value).collect();
                format!("{name} of {}: {}.", labels.results_of(scope), values.join(", "))
            }
            Self::Settings { targets, differ } => {
                let value =
                    |value: &Option<String>| value.clone().unwrap_or_else(|| "not reported".to_owned());
                let of = |one: &SettingValues| {
                    let values: Vec<String> = one.values.iter().map(value).collect();
                    format!("{} {}", one.name, values.join(" against "))
                };
                let differ: Vec<String> = differ.iter().map(of).collect();
                format!("settings of {}: {}.", labels.targets_of(targets), differ.join(", "))
            }
            Self::Published { claim, here, reproduced, otherwise, ratio } => {
                let result = |one: &PublishedHere| {
                    let faster =
                        if one.ratio.value > 1.0 { faster(one.ratio, false) } else { "no faster".to_owned() };
                    format!("{faster} on {}", labels.target(&one.target))
                };
                let results = list(&here.iter().map(result).collect::<Vec<_>>());
                if *reproduced {
                    return format!("published: {claim}. Here: {results}, which agrees.");
                }
                let work = |one: &PublishedHere| {
                    let Span { low, high } = one.other_work_us?;
                    Some(format!("{} to {} on {}", micros(low), micros(high), labels.target(&one.target)))
                };
                let work: Vec<String> = here.iter().filter_map(work).collect();
                let Span { low, high } = ratio;
                let work = match work.as_slice() {
                    [] => String::new(),
                    work => format!(
                        " It would be {high:.1} to {low:.1} times with this much other work per request: {}.",
                        list(work)
                    ),
                };
                format!("published: {claim}. Here: {results}. {otherwise}.{work}")
            }
        }
    }
}
