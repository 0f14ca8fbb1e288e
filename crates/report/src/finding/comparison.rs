//! Results of comparisons: those of one pair with one outcome become one finding.

use crate::attribution::{Bottleneck, Confidence};
use crate::comparison::TARGET;
use crate::finding::Context;
use crate::format::{difference, percent};
use crate::group::{distinct, grouped};
use crate::labels::{Labels, Scope};
use crate::messages::Language;
use crate::metrics::is_speed;
use crate::target::{TargetId, TargetSummary};
use crate::verdict::{Limit, Pair, Side, Verdict, Why, as_ratio, is_vast};
use crate::wording::{
    amount, gained, is_factor, joined, likely, many, noun, promise, ratio, say, subject, taking,
    with_settings,
};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::sort;
use kurabe_stats::{Decision, Estimate, Interval};
use serde::Serialize;

/// A measured ratio of two sides at one value of the chart axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The value of the chart axis; `None` if the experiment has none.
    pub at: Option<AxisValue>,
    /// `a` ÷ `b`: the quotient of the means of the rounds.
    #[serde(flatten, serialize_with = "as_ratio")]
    pub ratio: Estimate,
}

/// Targets with the same durability class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Promise {
    /// The class; `None`: unknown.
    pub class: Option<DurabilityClass>,
    pub targets: Vec<TargetId>,
    /// Their settings that decide it and that another target of the same engine has otherwise: `synchronous_commit off`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
}

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
    /// The sides are equal to within the margin: every interval lies within it. `span`: from the lowest to the highest end of the
    /// intervals (`a` ÷ `b`).
    NoDifference { scope: Scope, pair: Pair, comparisons: u32, margin: f64, span: Option<Interval> },
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
        let (language, subject) = (labels.language, subject(&pair.metric, &scope.operations, labels));
        let (a, b) = (labels.with(&pair.axis, &pair.a), labels.with(&pair.axis, &pair.b));
        let place = labels.place(scope);
        match self {
            Self::Better { measured, lower_bound, limit, durability, .. } => {
                let (verb, than) =
                    if is_speed(&pair.metric) { ("are", "の速さ") } else { ("is", "良い値") };
                let gained = gained_over(&pair.metric, measured, *lower_bound, labels);
                let least = if *lower_bound { "少なくとも " } else { "" };
                let ratios = each(measured, &|one| ratio(one.ratio, language), labels);
                let amounts = if measured.len() > 1 && !lower_bound {
                    format!(": {}", each(measured, &|one| amount(one.ratio, false, language), labels))
                } else {
                    String::new()
                };
                let limit = limited(*limit, &labels.side(&pair.axis, &pair.b), language);
                let durability = differing(durability, labels);
                say!(
                    language,
                    "{subject} {a} {verb} {gained} {b}{place}{amounts}{limit}{durability}.",
                    "{subject}{place}: {a} は {b} に対して {least}{ratios}{than}です。{limit}{durability}",
                )
            }
            Self::NoDifference { margin, span, .. } => {
                let margin = percent(*margin);
                let measured = span.map(|Interval { low, high }| (format!("{low:.3}"), format!("{high:.3}")));
                let measured = measured.map_or_else(String::new, |(low, high)| {
                    say!(language, ": {low} to {high} times", "測定値は {low}~{high} 倍です。")
                });
                say!(
                    language,
                    "{subject} {a} and {b} are equal to within {margin}{place}{measured}.",
                    "{subject}{place}: {a} と {b} の差は {margin} 未満です。{measured}",
                )
            }
            Self::Undecided { measured, noise_floor, further_rounds, further_seconds, .. } => {
                let all = each(measured, &|one| undecided_ratio(one.ratio, language), labels);
                let one_round = if measured.iter().any(|one| one.ratio.low.is_none()) {
                    "; one round has no interval"
                } else {
                    ""
                };
                let noise = noise_floor.map_or_else(String::new, |floor| {
                    let floor = difference(floor, language);
                    say!(
                        language,
                        "; two equal measurements differed by up to {floor}",
                        "同じ条件の 2 つの測定が最大 {floor} 違いました。",
                    )
                });
                let more = further_rounds.map_or_else(String::new, |more| {
                    let time = taking(*further_seconds, language);
                    let which = if measured.len() == 1 { "it" } else { "them" };
                    let rounds = many(more.into(), "more round", "more rounds");
                    say!(
                        language,
                        "; about {rounds}{time} would decide {which}",
                        "あと約 {more} ラウンド{time}で決まる見込みです。",
                    )
                });
                say!(
                    language,
                    "{subject} {a} and {b}: undecided{place}: measured {all}{one_round}{noise}{more}.",
                    "{subject}{place}: {a} と {b} は未決です。測定値は {all}です。{noise}{more}",
                )
            }
            Self::NotComparable { why, .. } => {
                let why = why.clause(labels, &pair.axis);
                say!(
                    language,
                    "{subject} {a} and {b} are not compared{place}: {why}.",
                    "{subject}{place}: {a} と {b} は比較していません。{why}",
                )
            }
        }
    }
}

/// A ratio that is undecided, with its interval, unless that says nothing.
fn undecided_ratio(of: Estimate, language: Language) -> String {
    if is_vast(&of) {
        return say!(
            language,
            "no ratio to within a factor of 100 (repeat it on an idle machine, or with more rounds)",
            "100 倍の範囲でも倍率を言えません(空いているマシンで、またはラウンドを増やして測り直してください)"
        );
    }
    ratio(of, language)
}

/// The improvement with the word before the other side; of several ratios the least that holds for all.
fn gained_over(metric: &str, measured: &[Measured], lower_bound: bool, labels: &Labels) -> String {
    let least = |one: &Measured| one.ratio.low.unwrap_or(one.ratio.value);
    let least = measured.iter().min_by(|a, b| least(a).total_cmp(&least(b)));
    let Some(ratio) = least.map(|one| one.ratio) else { return String::new() };
    let least = lower_bound || measured.len() > 1;
    let word = if is_speed(metric) && is_factor(ratio.value) { "as" } else { "than" };
    format!("{} {word}", gained(metric, ratio, least, labels))
}

/// Each measured ratio with its place: `2.1 times (1.8 to 2.5) at 1 kB, …`; only the ratio if there is one.
fn each(measured: &[Measured], show: &dyn Fn(&Measured) -> String, labels: &Labels) -> String {
    let language = labels.language;
    let one = |one: &Measured| match one.at.as_ref().zip(labels.chart_axis()) {
        Some((at, axis)) if measured.len() > 1 => {
            let (ratio, at) = (show(one), axis.name_value(at));
            say!(language, "{ratio} at {at}", "{at} で {ratio}")
        }
        _ => show(one),
    };
    let all: Vec<String> = measured.iter().map(one).collect();
    joined(&all, ", ", language)
}

/// The bottleneck of a side, as a clause.
fn limited(limit: Option<Limit>, side: &str, language: Language) -> String {
    let Some(Limit { bottleneck, confidence }) = limit else { return String::new() };
    let (likely, noun) = (likely(confidence, language), noun(bottleneck, language));
    match bottleneck {
        Bottleneck::Unknown | Bottleneck::Load => String::new(),
        Bottleneck::Latency => {
            say!(
                language,
                "; a request to {side} waits longer for its answer",
                "{side} は要求への応答に時間がかかります。",
            )
        }
        _ => say!(
            language,
            "; {side}'s bottleneck is {likely}{noun}",
            "{side} のボトルネックは{likely}{noun} です。",
        ),
    }
}

/// The clause on durability for a verdict on writes with different classes.
fn differing(promises: &[Promise], labels: &Labels) -> String {
    let language = labels.language;
    let one = |one: &Promise| {
        let (targets, promise) = (labels.targets_of(&one.targets), promise(one.class, language));
        let because = with_settings(&one.settings);
        say!(language, "on {targets} {promise}{because}", "{targets} では{promise}")
    };
    let all: Vec<String> = promises.iter().map(one).collect();
    if all.is_empty() {
        return String::new();
    }
    let all = joined(&all, "; ", language);
    say!(language, ". Durability differs: {all}", "耐久性が異なります: {all}ます。")
}

/// A pair with an outcome; the faster side is `a`.
#[derive(PartialEq)]
struct Decided {
    pair: Pair,
    result: Decision,
    why: Option<Why>,
    /// Whether there are intervals.
    interval: bool,
    durability: Vec<Promise>,
}

impl Decided {
    fn of(context: &Context<'_>, verdict: &Verdict) -> Self {
        let (mut pair, mut result) = (verdict.pair.clone(), verdict.result);
        if result == Decision::Below {
            std::mem::swap(&mut pair.a, &mut pair.b);
            result = Decision::Above;
        }
        let called = result == Decision::Above && pair.axis == TARGET && is_speed(&pair.metric);
        let durability =
            if called { promises(context, &verdict.operation, [&pair.a, &pair.b]) } else { Vec::new() };
        Self { pair, result, why: verdict.why.clone(), interval: verdict.has_interval(), durability }
    }
}

/// The findings of these verdicts, in order; each holds at every point of its scope.
pub(super) fn findings(context: &Context<'_>, verdicts: &[&Verdict]) -> Vec<Comparison> {
    let outcomes = grouped(verdicts.iter().map(|verdict| (Decided::of(context, verdict), *verdict)));
    // The findings of a pair are adjacent, wins first.
    let pairs = grouped(outcomes.into_iter().map(|group| {
        let Pair { metric, axis, a, b } = group.0.pair.clone();
        let sides = if a < b { (a, b) } else { (b, a) };
        ((metric, axis, sides), group)
    }));
    let mut findings = Vec::new();
    for (_, mut groups) in pairs {
        sort::by_key(&mut groups, |(outcome, _)| {
            (outcome.result != Decision::Above, outcome.result == Decision::NotTestable)
        });
        for (outcome, members) in &groups {
            findings.extend(split(context, outcome, members));
        }
    }
    findings
}

/// The findings of an outcome: one for each operation, target and combination of the other axes if they have ratios,
/// otherwise one for each product of operations, targets and values.
fn split(context: &Context<'_>, outcome: &Decided, members: &[&Verdict]) -> Vec<Comparison> {
    let has_ratios = !matches!(outcome.result, Decision::Within | Decision::NotTestable);
    let groups = grouped(members.iter().map(|verdict| {
        let line = has_ratios.then(|| (verdict.operation.clone(), verdict.target.clone()));
        ((verdict.others(context.labels), line), *verdict)
    }));
    let findings = |((axes, _), members): ((Cell, _), Vec<&Verdict>)| -> Vec<Comparison> {
        let of = |product: Product| finding(context, outcome, &axes, &members, product);
        products(&members).into_iter().filter_map(of).collect()
    };
    groups.into_iter().flat_map(findings).collect()
}

fn finding(
    context: &Context<'_>,
    outcome: &Decided,
    axes: &Cell,
    members: &[&Verdict],
    (operations, targets, xs): Product,
) -> Option<Comparison> {
    let here =
        |verdict: &&Verdict| operations.contains(&verdict.operation) && targets.contains(&verdict.target);
    let members: Vec<&Verdict> = members.iter().copied().filter(here).collect();
    let scope = Scope {
        operations,
        targets: targets.into_iter().flatten().collect(),
        at: xs.into_iter().flatten().collect(),
        axes: axes.clone(),
    };
    let (pair, comparisons) = (outcome.pair.clone(), members.len() as u32);
    let measured = |verdict: &&Verdict| {
        let ratio = verdict.ratio?;
        let ratio = if verdict.pair.a == pair.a { ratio } else { ratio.inverse() };
        Some(Measured { at: verdict.x.clone(), ratio })
    };
    let measured = members.iter().map(measured).collect::<Option<Vec<_>>>();
    Some(match outcome.result {
        Decision::Above | Decision::Below => Comparison::Better {
            scope,
            pair,
            measured: measured?,
            lower_bound: members.iter().any(|verdict| verdict.lower_bound),
            limit: limit(&members),
            durability: outcome.durability.clone(),
        },
        Decision::Within => {
            let ends = measured.iter().flatten().filter_map(|one| one.ratio.ends());
            let span = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            let span = span.map(|(low, high)| Interval { low, high });
            Comparison::NoDifference { scope, pair, comparisons, margin: context.rule.margin, span }
        }
        Decision::Undecided => {
            let more: Option<Vec<u32>> = members.iter().map(|verdict| verdict.further_rounds).collect();
            let further_rounds = more.and_then(|more| more.into_iter().max());
            let noise = members.iter().filter_map(|verdict| verdict.noise_floor).max_by(f64::total_cmp);
            Comparison::Undecided {
                scope,
                pair,
                measured: measured?,
                noise_floor: noise.filter(|floor| *floor > context.rule.margin),
                further_rounds,
                further_seconds: further_rounds.and_then(|rounds| context.rule.seconds(rounds)),
            }
        }
        Decision::NotTestable => {
            Comparison::NotComparable { scope, pair, comparisons, why: outcome.why.clone()? }
        }
    })
}

/// The durability classes of these targets, if the operation writes and they differ or are unknown.
fn promises(context: &Context<'_>, operation: &str, sides: [&Side; 2]) -> Vec<Promise> {
    if !context.labels.writes(operation) {
        return Vec::new();
    }
    let targets = sides.into_iter().filter_map(|side| match side {
        Side::Target(target) => context.labels.ids.get(*target).zip(context.targets.get(*target)),
        _ => None,
    });
    let promise = |(class, targets): (Option<DurabilityClass>, Vec<(&TargetId, &TargetSummary)>)| {
        let settings = targets.iter().flat_map(|(_, target)| target.own_durability(context.targets));
        let settings = distinct(settings);
        Promise { class, targets: targets.into_iter().map(|(id, _)| id.clone()).collect(), settings }
    };
    let classes = grouped(targets.map(|(id, target)| (target.durability, (id, target))));
    let all: Vec<Promise> = classes.into_iter().map(promise).collect();
    // Two targets with unknown classes may not be equal.
    if all.len() > 1 || all.iter().any(|promise| promise.class.is_none()) { all } else { Vec::new() }
}

/// The bottleneck of the slower side, if targets are compared and it is the same in all comparisons.
fn limit(members: &[&Verdict]) -> Option<Limit> {
    let slower = |verdict: &Verdict| verdict.limits[usize::from(verdict.result == Decision::Above)];
    let first = members.first().filter(|verdict| verdict.target.is_none()).and_then(|v| slower(v))?;
    let same = members.iter().all(|v| slower(v).is_some_and(|one| one.bottleneck == first.bottleneck));
    let least = members.iter().filter_map(|v| slower(v)).find(|one| one.confidence != first.confidence);
    let low = |limit: Limit| Limit { confidence: Confidence::Low, ..limit };
    same.then_some(least.map_or(first, low))
}

/// A product of operations, targets and values of the chart axis.
type Product = (Vec<String>, Vec<Option<TargetId>>, Vec<Option<AxisValue>>);

/// The smallest number of products: joins operations with the same values, then targets with the same operations and
/// values.
fn products(members: &[&Verdict]) -> Vec<Product> {
    let point = |verdict: &&Verdict| ((verdict.operation.clone(), verdict.target.clone()), verdict.x.clone());
    let lines = grouped(members.iter().map(point));
    let joined = grouped(lines.into_iter().map(|((operation, target), xs)| ((target, xs), operation)));
    let all = grouped(joined.into_iter().map(|((target, xs), operations)| ((operations, xs), target)));
    all.into_iter().map(|((operations, xs), targets)| (operations, targets, xs)).collect()
}
