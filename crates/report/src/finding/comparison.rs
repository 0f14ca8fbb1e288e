//! Findings of comparing two sides by a metric.

use super::wording::{amount, gained_over, many, ratio, subject, verb};
use super::{Limit, Measured, Pair, Promise, Scope, Why};
use crate::attribution::{Bottleneck, Confidence};
use crate::format::{list, percent};
use crate::labels::Labels;
use kurabe_core::units;
use serde::Serialize;
use std::time::Duration;

/// The result of comparing two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Comparison {
    /// `a` is better than `b` at every point of the scope (`a` ÷ `b`, above 1); each difference is significant.
    /// `lower_bound`: `a`'s client was saturated somewhere. `limit`: the bottleneck of `b`, if it is the same at every
    /// point. `durability`: the classes if they differ; `a` first.
    Better {
        scope: Scope,
        pair: Pair,
        measured: Vec<Measured>,
        lower_bound: bool,
        limit: Option<Limit>,
        durability: Vec<Promise>,
    },
    /// The sides are equal to within the margin: every interval lies within it.
    NoDifference { scope: Scope, pair: Pair, comparisons: u32, margin: f64 },
    /// No difference is shown, and one beyond the margin is not excluded. `noise_floor`: what equal cells may differ by,
    /// if that is more than the margin. `further_rounds`: that are expected to decide all of them; `further_seconds`:
    /// their time.
    Undecided {
        scope: Scope,
        pair: Pair,
        measured: Vec<Measured>,
        noise_floor: Option<f64>,
        further_rounds: Option<u32>,
        further_seconds: Option<u64>,
    },
    /// The sides are not compared.
    NotComparable { scope: Scope, pair: Pair, comparisons: u32, why: Why },
}

impl Comparison {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let (Self::Better { scope, pair, .. }
        | Self::NoDifference { scope, pair, .. }
        | Self::Undecided { scope, pair, .. }
        | Self::NotComparable { scope, pair, .. }) = self;
        let subject = subject(&pair.metric, scope, labels);
        let (a, b) = (labels.with(&pair.axis, &pair.a), labels.with(&pair.axis, &pair.b));
        let place = labels.place(scope);
        match self {
            Self::Better { measured, lower_bound, limit, durability, .. } => {
                let verb = verb(&pair.metric);
                let gained = gained_over(&pair.metric, measured, *lower_bound, labels);
                let each = if measured.len() > 1 && !lower_bound {
                    format!(": {}", each(measured, &|one| amount(one.interval(), false), labels))
                } else {
                    String::new()
                };
                let limit = limited(*limit, &labels.side(&pair.axis, &pair.b));
                let durability = super::wording::durability(durability, labels);
                format!("{subject} {a} {verb} {gained} {b}{place}{each}{limit}{durability}.")
            }
            Self::NoDifference { margin, .. } => {
                format!("{subject} {a} and {b} differ by less than {}{place}.", percent(*margin))
            }
            Self::Undecided { measured, noise_floor, further_rounds, further_seconds, .. } => {
                let all = each(measured, &|one| ratio(one.interval()), labels);
                let one_round = if measured.iter().any(|one| one.low.is_none()) {
                    "; one round has no interval"
                } else {
                    ""
                };
                let noise = noise_floor.map_or_else(String::new, |floor| {
                    format!("; two equal measurements differed by up to {}", percent(floor))
                });
                let more = further_rounds.map_or_else(String::new, |more| {
                    let time = further_seconds
                        .map(|seconds| format!(" ({})", units::time(Duration::from_secs(seconds))));
                    let which = if measured.len() == 1 { "it" } else { "them" };
                    let rounds = many(more.into(), "more round", "more rounds");
                    format!("; about {rounds}{} would decide {which}", time.unwrap_or_default())
                });
                format!("{subject} {a} and {b}: undecided{place}: measured {all}{one_round}{noise}{more}.")
            }
            Self::NotComparable { why, .. } => {
                format!(
                    "{subject} {a} and {b} are not compared{place}: {}.",
                    reason(why, &|side| labels.side(&pair.axis, side))
                )
            }
        }
    }
}

/// Each measured ratio with its place: `2.1 times (1.8 to 2.5) at 1 kB, …`; only the ratio if there is one.
fn each(measured: &[Measured], show: &dyn Fn(&Measured) -> String, labels: &Labels) -> String {
    let all: Vec<String> = measured
        .iter()
        .map(|one| match one.at.as_ref().zip(labels.chart_axis()) {
            Some((at, axis)) if measured.len() > 1 => format!("{} at {}", show(one), axis.name_value(at)),
            _ => show(one),
        })
        .collect();
    all.join(", ")
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

/// Why a pair is not compared, as a clause; `name` names a side.
pub(crate) fn reason(why: &Why, name: &dyn Fn(&String) -> String) -> String {
    let names = |sides: &[String]| list(&sides.iter().map(name).collect::<Vec<_>>());
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
