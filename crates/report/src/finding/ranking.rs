//! Findings of ranking targets.

use super::wording::{by, durability, gained_over, promise, subject, verb};
use super::{Promise, Scope, Span};
use crate::labels::Labels;
use crate::metrics::is_speed;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::metric::Better;
use serde::Serialize;

/// The best of several targets by a metric. `among`: the durability class of the compared targets, if only these are
/// compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Ranking {
    /// The scope's one target is better than each other target, with significant differences.
    Best {
        scope: Scope,
        metric: String,
        than: Vec<String>,
        ratio: Span,
        lower_bound: bool,
        among: Option<DurabilityClass>,
        durability: Vec<Promise>,
    },
    /// Each of the scope's targets is better than each other target; the best of them is unknown.
    Ahead {
        scope: Scope,
        metric: String,
        than: Vec<String>,
        among: Option<DurabilityClass>,
        durability: Vec<Promise>,
    },
    /// No target is better than all others; none is better than the scope's targets.
    NoBest { scope: Scope, metric: String, among: Option<DurabilityClass> },
}

impl Ranking {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let (Self::Best { scope, metric, among, .. }
        | Self::Ahead { scope, metric, among, .. }
        | Self::NoBest { scope, metric, among }) = self;
        let among = among.map_or_else(String::new, |class| format!("where {}, ", promise(Some(class))));
        let (comparative, superlative) = better(metric, labels);
        let (subject, verb) = (subject(metric, scope, labels), verb(metric));
        let (targets, anywhere) = (labels.targets_of(&scope.targets), labels.place(&scope.anywhere()));
        match self {
            Self::Best { than, ratio, lower_bound, durability: promises, .. } => {
                let than = if than.len() + 1 == labels.targets.len() && than.len() > 1 {
                    "each other target".to_owned()
                } else {
                    labels.targets_of(than)
                };
                let gained = gained_over(metric, *ratio, *lower_bound, labels);
                let (place, durability) = (labels.place(scope), durability(promises, labels));
                format!("{among}{subject} {verb} {superlative}{place}: {gained} on {than}{durability}.")
            }
            Self::Ahead { than, durability: promises, .. } => {
                let (than, durability) = (labels.targets_of(than), durability(promises, labels));
                format!(
                    "{among}{subject} on {targets} {verb} {comparative} than on {than}{anywhere}{durability}."
                )
            }
            Self::NoBest { .. } if !is_speed(metric) => {
                format!(
                    "{subject}: no target has the {superlative}{anywhere}; none is {comparative} than {targets}."
                )
            }
            Self::NoBest { .. } => {
                let (by, operations) = (by(metric, labels), labels.operations_of(&scope.operations));
                format!(
                    "{among}{by}no target is fastest for {operations}{anywhere}; none is faster than {targets}."
                )
            }
        }
    }
}

/// The comparative and superlative for a metric.
fn better(metric: &str, labels: &Labels) -> (&'static str, &'static str) {
    match labels.metric(metric).map(|metric| metric.better) {
        _ if is_speed(metric) => ("faster", "fastest"),
        Some(Better::Lower) => ("lower", "lowest"),
        _ => ("higher", "highest"),
    }
}
