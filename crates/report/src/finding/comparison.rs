//! Findings of comparing two sides by a metric.

use super::wording::{gained_over, subject, verb};
use super::{Limit, Pair, Promise, Scope, Span, Why};
use crate::attribution::{Bottleneck, Confidence};
use crate::format::{list, percent};
use crate::labels::Labels;
use serde::Serialize;

/// The result of comparing two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Comparison {
    /// `a` is better than `b` at every point of the scope, by the range of all intervals (`a` ÷ `b`, above 1); each
    /// difference is significant. `lower_bound`: `a`'s client was saturated somewhere. `limit`: the bottleneck of
    /// `b`, if it is the same at every point. `durability`: the classes if they differ; `a` first.
    Better {
        scope: Scope,
        pair: Pair,
        ratio: Span,
        comparisons: u32,
        lower_bound: bool,
        limit: Option<Limit>,
        durability: Vec<Promise>,
    },
    /// The sides are equal to within the margin: every interval lies within it.
    NoDifference { scope: Scope, pair: Pair, comparisons: u32, margin: f64 },
    /// No difference was detected, and one beyond the margin is not excluded. `smallest_detectable`: over the
    /// comparisons; `None` with one round.
    Inconclusive { scope: Scope, pair: Pair, comparisons: u32, smallest_detectable: Option<Span> },
    /// The sides are not compared.
    NotComparable { scope: Scope, pair: Pair, comparisons: u32, why: Why },
}

impl Comparison {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let (Self::Better { scope, pair, .. }
        | Self::NoDifference { scope, pair, .. }
        | Self::Inconclusive { scope, pair, .. }
        | Self::NotComparable { scope, pair, .. }) = self;
        let subject = subject(&pair.metric, scope, labels);
        let (a, b) = (labels.with(&pair.axis, &pair.a), labels.with(&pair.axis, &pair.b));
        let place = labels.place(scope);
        match self {
            Self::Better { ratio, lower_bound, limit, durability, .. } => {
                let verb = verb(&pair.metric);
                let gained = gained_over(&pair.metric, *ratio, *lower_bound, labels);
                let limit = limited(*limit, &labels.side(&pair.axis, &pair.b));
                let durability = super::wording::durability(durability, labels);
                format!("{subject} {a} {verb} {gained} {b}{place}{limit}{durability}.")
            }
            Self::NoDifference { margin, .. } => {
                format!("{subject} {a} and {b} differ by less than {}{place}.", percent(*margin))
            }
            Self::Inconclusive { smallest_detectable, .. } => {
                let least = smallest_detectable.map_or_else(
                    || "one round has no interval".to_owned(),
                    |span| format!("smallest detectable: {}", differences(span)),
                );
                format!("{subject} {a} and {b}: no difference detected{place} ({least}).")
            }
            Self::NotComparable { why, .. } => {
                format!("{subject} {a} and {b} are not compared{place}: {}.", reason(why, pair, labels))
            }
        }
    }
}

/// A factor or a percentage in a list of differences: `2 %`, `2 to 9 %`.
fn differences(span: Span) -> String {
    let (low, high) = (percent(span.low), percent(span.high));
    match low.strip_suffix(" %") {
        _ if low == high => low,
        Some(number) if high.ends_with('%') => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// The bottleneck of a side, as a clause.
fn limited(limit: Option<Limit>, side: &str) -> String {
    let Some(Limit { bottleneck, confidence }) = limit else { return String::new() };
    let likely = if confidence == Confidence::Low { "most likely " } else { "" };
    match bottleneck {
        Bottleneck::Unknown | Bottleneck::Load => String::new(),
        Bottleneck::Latency => format!("; a round trip to {side} takes longer"),
        other => format!("; {side}'s bottleneck is {likely}{}", other.noun()),
    }
}

/// Why a pair is not compared, as a clause.
fn reason(why: &Why, pair: &Pair, labels: &Labels) -> String {
    let name = |side: &String| labels.side(&pair.axis, side);
    let names = |sides: &[String]| list(&sides.iter().map(&name).collect::<Vec<_>>());
    match why {
        Why::Failed { side, reason } => format!("{} failed: {reason}", name(side)),
        Why::Unavailable { side, reason } => format!("{} is not available: {reason}", name(side)),
        Why::NotMeasured { side } => format!("{} was not measured", name(side)),
        Why::Unfinished { side } => format!("{} is not complete", name(side)),
        Why::NotPositive => "a value is zero or below, which has no ratio".to_owned(),
        Why::NoCommonRound => "they were never measured in the same round".to_owned(),
        Why::ClientBound { sides } => {
            format!("the client was saturated on {}, so its result is a lower bound", names(sides))
        }
        Why::Overloaded { sides } => format!("{} did not keep up", names(sides)),
        Why::GeneratorLate { sides } => format!("the load generator was late on {}", names(sides)),
        Why::Disturbed { sides } => format!("other processes used the CPU during {}", names(sides)),
    }
}
