//! Values: rates, costs, an experiment's metrics, and settings that differ.

use crate::cell::{CellResult, MetricInfo};
use crate::finding::Context;
use crate::format::{list, micros, value_of};
use crate::group::{distinct, grouped};
use crate::labels::{Axis, Labels, Scope};
use crate::messages::Language;
use crate::metrics::{interval, is_speed, samples};
use crate::target::{TargetId, TargetSummary};
use crate::verdict::{Pair, Verdict};
use crate::wording::{joined, ratio, say, with_interval};
use kurabe_core::axis::Cell;
use kurabe_core::experiment::Answer;
use kurabe_core::metric::{Source, THROUGHPUT, Unit};
use kurabe_core::sort;
use kurabe_stats::{Estimate, IntervalSettings};
use serde::Serialize;

/// A metric's value at one point of the chart or of the varying axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricPoint {
    /// The values of the varying axes.
    pub axes: Cell,
    /// The mean of the rounds with its interval.
    #[serde(flatten)]
    pub figure: Estimate,
}

/// A setting of several targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingValues {
    /// Its name, as the server has it.
    pub name: String,
    /// Its value on each target; `None`: the server does not report it.
    pub values: Vec<Option<String>>,
}

/// Values, each with its interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Values {
    /// The additional time of value `a` of an axis compared with value `b`: a significant difference of their times
    /// per transaction, negative if `a` saves time; and the ratio of the times.
    Cost { scope: Scope, pair: Pair, cost_us: Estimate, factor: Estimate },
    /// The values of a primary metric.
    MetricValues { scope: Scope, name: String, unit: Unit, points: Vec<MetricPoint> },
    /// The settings in which targets of one engine differ, as the servers report them: of each its values, in the order of
    /// the targets.
    Settings { targets: Vec<TargetId>, differ: Vec<SettingValues> },
}

impl Values {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let language = labels.language;
        let join = |all: Vec<String>| joined(&all, ", ", language);
        match self {
            Self::Cost { scope, pair, cost_us, factor } => {
                let saves = cost_us.value < 0.0;
                let size = if saves {
                    Estimate { low: cost_us.high, high: cost_us.low, ..*cost_us }
                } else {
                    *cost_us
                };
                let (verb, adverb) = if saves { ("saves", "短く") } else { ("costs", "長く") };
                let cost = with_interval(size, &|us| micros(us.abs()), language);
                let (operation, results) = (scope.operations.join(" or "), labels.results_of(scope));
                let place = labels.place(scope);
                let [a, b] = [&pair.a, &pair.b].map(|side| labels.side(&pair.axis, side));
                let times = ratio(*factor, language);
                say!(
                    language,
                    "{a} {verb} {cost} per {operation}{place}, compared with {b}: {times} the time.",
                    "{results}: {a} は {b} より 1 回あたり {cost} {adverb}、時間は {times}です。",
                )
            }
            Self::MetricValues { scope, name, unit, points } => {
                let value = |point: &MetricPoint| {
                    let value = with_interval(point.figure, &|value| value_of(*unit, value), language);
                    match (labels.axes_of(&point.axes), language) {
                        (at, _) if at.is_empty() => value,
                        (at, Language::English) => format!("{value} with {}", list(&at)),
                        (at, Language::Japanese) => format!("{} で {value}", at.join("、")),
                    }
                };
                let values = join(points.iter().map(value).collect());
                let results = labels.results_of(scope);
                say!(language, "{name} of {results}: {values}.", "{results} の {name}: {values}。")
            }
            Self::Settings { targets, differ } => {
                let value = |value: &Option<String>| {
                    value.clone().unwrap_or_else(|| say!(language, "not reported", "報告なし"))
                };
                let against = if language == Language::Japanese { " と " } else { " against " };
                let of = |one: &SettingValues| {
                    let values: Vec<String> = one.values.iter().map(value).collect();
                    format!("{} {}", one.name, values.join(against))
                };
                let (targets, differ) = (labels.targets_of(targets), join(differ.iter().map(of).collect()));
                say!(language, "settings of {targets}: {differ}.", "{targets} の設定の違い: {differ}。")
            }
        }
    }
}

/// The answers that are values.
pub(super) struct Answers<'a> {
    /// Costs of values of an axis, if the question is of these.
    pub costs: Vec<Values>,
    /// The comparisons that stand beside them.
    pub left: Vec<&'a Verdict>,
    /// Whether the costs include the result of a comparison.
    pub answered: Box<dyn Fn(&Verdict) -> bool>,
    pub values: Vec<Values>,
    pub settings: Vec<Values>,
}

pub(super) fn findings<'a>(context: &Context<'a>, answer: Answer) -> Answers<'a> {
    let (values, settings) = (values(context), settings(context));
    let cost = |metric: &MetricInfo| match metric.source {
        Source::Cost(axis) => Some((metric.name.clone(), axis)),
        Source::Trial | Source::Slope(_) | Source::Scatter(_) | Source::Scaling(_) => None,
    };
    let own = context.info.map_or(&[][..], |info| info.metrics);
    let metric = own.iter().find_map(|metric| cost(context.labels.metric(metric.name)?));
    let Some((metric, axis)) = metric.filter(|_| answer == Answer::Metrics) else {
        let (costs, left) = (Vec::new(), Vec::new());
        return Answers { costs, left, answered: Box::new(|_| false), values, settings };
    };
    let answered = move |verdict: &Verdict| verdict.pair.axis == axis && is_speed(&verdict.pair.metric);
    let (mut costs, mut left) = (Vec::new(), Vec::new());
    for verdict in context.verdicts.iter().filter(|verdict| answered(verdict)) {
        match self::cost(context, verdict, &metric).filter(|cost| is_first(cost, &costs)) {
            Some(cost) => costs.push(cost),
            None => left.push(verdict),
        }
    }
    Answers { costs, left, answered: Box::new(answered), values, settings }
}

/// Whether there is no finding yet for the cost of this value on this target. The cost at the smallest significant
/// value of the chart axis stands for the others, since fewer clients wait less for each other.
fn is_first(cost: &Values, known: &[Values]) -> bool {
    let key = |values: &Values| match values {
        Values::Cost { scope, pair, .. } => {
            Some((scope.operations.clone(), scope.targets.clone(), pair.a.clone()))
        }
        _ => None,
    };
    !known.iter().any(|other| key(other) == key(cost))
}

/// The cost of a value of an axis compared with its baseline, if the difference is significant.
fn cost(context: &Context<'_>, verdict: &Verdict, metric: &str) -> Option<Values> {
    if !verdict.result.is_outside() || verdict.pair.metric != THROUGHPUT.name {
        return None;
    }
    let [a, b] = verdict.cells(context.cells)?;
    let clients = |cell: &CellResult| cell.totals.as_ref().map(|totals| totals.clients as f64);
    let (clients_a, clients_b) = (clients(a)?, clients(b)?);
    let found = a.metric(metric)?;
    let rounds = samples(found.by_round.clone(), found.unit, &context.run.header.spec);
    // If some round had the opposite sign, the cost's interval is unusable; the ratio has one.
    if rounds.iter().any(|cost| cost.signum() * rounds[0].signum() < 0.0) {
        return None;
    }
    let settings = IntervalSettings::default().for_comparisons(context.comparisons[0].max(1));
    let cost = interval(&rounds, found.unit, &context.rule.settings(settings))?;
    Some(Values::Cost {
        scope: Scope {
            operations: vec![verdict.operation.clone()],
            targets: verdict.target.clone().into_iter().collect(),
            at: verdict.x.iter().cloned().collect(),
            axes: verdict.others(context.labels),
        },
        pair: Pair { metric: metric.to_owned(), ..verdict.pair.clone() },
        cost_us: cost.map(|ns| ns / 1e3),
        // Time is the reciprocal of throughput if both have the same number of clients.
        factor: verdict.ratio?.inverse().map(|ratio| clients_a / clients_b * ratio),
    })
}

/// The settings in which targets of one engine differ.
fn settings(context: &Context<'_>) -> Vec<Values> {
    let engines = grouped(context.known_targets().map(|(id, target)| (&target.engine, (id.clone(), target))));
    let of = |(_, targets): (&String, Vec<(TargetId, &TargetSummary)>)| {
        let (ids, targets): (Vec<TargetId>, Vec<&TargetSummary>) = targets.into_iter().unzip();
        let all = targets.iter().flat_map(|target| target.durability_settings.iter().chain(&target.settings));
        let names: Vec<&String> = sort::distinct(all.map(|(name, _)| name));
        let values = |name: &String| SettingValues {
            name: name.clone(),
            values: targets.iter().map(|target| target.setting(name).cloned()).collect(),
        };
        let differ: Vec<SettingValues> = names
            .into_iter()
            .map(values)
            .filter(|one| one.values.iter().any(|value| *value != one.values[0]))
            .collect();
        (!differ.is_empty()).then_some(Values::Settings { targets: ids, differ })
    };
    engines.into_iter().filter_map(of).collect()
}

/// The values of primary metrics other than speed and costs, for each combination of varying axes.
fn values(context: &Context<'_>) -> Vec<Values> {
    let shown = |metric: &&MetricInfo| {
        metric.primary && !metric.is_speed() && !matches!(metric.source, Source::Cost(_))
    };
    let mut findings = Vec::new();
    for metric in context.labels.metrics.iter().filter(shown) {
        let chart = context.labels.chart_axis().filter(|_| !metric.source.is_per_cell());
        let is_told = |name: &str| chart.is_none_or(|chart| chart.name != name);
        let value = |cell: &CellResult| {
            let figure = cell.metric(&metric.name)?.figure;
            let varying = context.labels.axes.iter().filter(|axis| axis.varies() && is_told(&axis.name));
            let key = (vec![cell.operation.clone()], vec![cell.target.clone()]);
            Some((key, MetricPoint { axes: Axis::values_of(varying, &cell.axes), figure }))
        };
        let cells = context.cells.iter().filter(|cell| cell.is_reported());
        for ((operations, targets), points) in grouped(cells.filter_map(value)) {
            let scope = Scope { operations, targets, ..Scope::default() };
            let (name, unit, points) = (metric.name.clone(), metric.unit, distinct(points));
            findings.push(Values::MetricValues { scope, name, unit, points });
        }
    }
    findings
}
