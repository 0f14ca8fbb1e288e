//! The sentence of each kind of [`Finding`].

use crate::attribution::{Bottleneck, Confidence};
use crate::finding::{
    Finding, Interval, Limit, NoiseFloor, NotInterleaved, Pair, Promise, Scope, Section, Span, Statement, Why,
};
use crate::format::{capital, figure, list, micros, nanos, percent, percent_number, value_of};
use crate::labels::Labels;
use crate::metrics::is_speed;
use crate::proof::writes;
use kurabe_core::axis::AxisValue;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::metric::{Better, HIGHEST_RATE, RESPONSE_P99};
use kurabe_core::run::LEAST_INTERLEAVED_ROUNDS;
use kurabe_core::units;
use std::time::Duration;

/// From this ratio on, a factor is easier to read than a percentage.
const FACTOR_FROM: f64 = 1.5;

impl Finding {
    /// The finding with its sentence.
    pub(crate) fn state(self, section: Section, labels: &Labels) -> Statement {
        let sentence = capital(&sentence(&self, labels));
        Statement { section, sentence, finding: self }
    }
}

/// Formats a range of ratios above 1: `5.1 to 5.6 times as fast` or `12 to 18 % faster`.
fn faster(ratio: Span, lower_bound: bool) -> String {
    let word = if is_factor(ratio) { "as fast" } else { "faster" };
    format!("{} {word}", amount(ratio, lower_bound))
}

/// The same with the word before the slower side.
fn faster_than(ratio: Span, lower_bound: bool) -> String {
    format!("{} {}", faster(ratio, lower_bound), if is_factor(ratio) { "as" } else { "than" })
}

/// Whether a range of ratios is easier to read as a factor.
fn is_factor(ratio: Span) -> bool {
    (ratio.low * ratio.high).sqrt() >= FACTOR_FROM
}

/// `5.1 to 5.6 times`, `at least 5.1 times`.
fn times(ratio: Span, lower_bound: bool) -> String {
    let factor = |value: f64| match value {
        value if value < 1.1 => format!("{value:.2}"),
        value if value < 10.0 => format!("{value:.1}"),
        value => figure(value.round()),
    };
    format!("{} times", between(&factor(ratio.low), &factor(ratio.high), lower_bound))
}

/// `12 to 18 %`, from ratios.
fn percents(ratio: Span, lower_bound: bool) -> String {
    let (low, high) = (percent_number(ratio.low - 1.0), percent_number(ratio.high - 1.0));
    if low == "0" && !lower_bound {
        return format!("up to {high} %");
    }
    format!("{} %", between(&low, &high, lower_bound))
}

fn between(low: &str, high: &str, lower_bound: bool) -> String {
    match (lower_bound, low == high) {
        (true, _) => format!("at least {low}"),
        (false, true) => low.to_owned(),
        (false, false) => format!("{low} to {high}"),
    }
}

/// Formats the improvement of another metric: `12 to 18 % higher`, `lower by a factor of 5.1 to 5.6`. Ratios are
/// above 1; if lower is better, `ratio` is the worse value ÷ the better one.
fn improved(ratio: Span, lower_bound: bool, better: Better) -> String {
    let word = if better == Better::Lower { "lower" } else { "higher" };
    if is_factor(ratio) {
        let times = times(ratio, lower_bound);
        return format!("{word} by a factor of {}", times.trim_end_matches(" times"));
    }
    let less = |factor: f64| 2.0 - 1.0 / factor;
    let ratio = match better {
        Better::Lower => Span { low: less(ratio.low), high: less(ratio.high) },
        Better::Higher | Better::Neither => ratio,
    };
    format!("{} {word}", percents(ratio, lower_bound))
}

/// The comparative and superlative for a metric.
fn better(metric: &str, labels: &Labels) -> (&'static str, &'static str) {
    match labels.metric(metric).map(|metric| metric.better) {
        _ if is_speed(metric) => ("faster", "fastest"),
        Some(Better::Lower) => ("lower", "lowest"),
        _ => ("higher", "highest"),
    }
}

/// Formats an improvement without the other side.
pub(crate) fn gained(metric: &str, ratio: Span, lower_bound: bool, labels: &Labels) -> String {
    let better = labels.metric(metric).map_or(Better::Higher, |metric| metric.better);
    if is_speed(metric) { faster(ratio, lower_bound) } else { improved(ratio, lower_bound, better) }
}

/// The same with the word before the other side.
fn gained_over(metric: &str, ratio: Span, lower_bound: bool, labels: &Labels) -> String {
    if is_speed(metric) {
        faster_than(ratio, lower_bound)
    } else {
        format!("{} than", gained(metric, ratio, lower_bound, labels))
    }
}

/// Formats only the amount: `12 to 18 %`, `5.1 to 5.6 times`; for tables.
pub(crate) fn amount(ratio: Span, lower_bound: bool) -> String {
    if is_factor(ratio) { times(ratio, lower_bound) } else { percents(ratio, lower_bound) }
}

/// ` (1.1 to 1.3 ms)`; nothing without an interval.
fn interval(figure: Interval, show: &dyn Fn(f64) -> String) -> String {
    // Ends that are formatted like the value itself are omitted.
    let same = |(low, high): &(f64, f64)| [low, high].iter().all(|end| show(**end) == show(figure.value));
    let ends = figure.low.zip(figure.high).filter(|ends| !same(ends));
    ends.map_or_else(String::new, |(low, high)| format!(" ({} to {})", show(low), show(high)))
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

pub(crate) fn rounds(count: u32) -> String {
    if count == 1 { "1 round".to_owned() } else { format!("{count} rounds") }
}

/// `1 cell`, `3 cells`.
fn many(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {one}s", units::count(count)) }
}

/// `1 more round`, `5 more rounds`.
fn more_rounds(count: u32) -> String {
    if count == 1 { "1 more round".to_owned() } else { format!("{} more rounds", units::count(count.into())) }
}

/// ` in 2 of 3 cells`; empty if there is only one.
fn of_cells(these: u32, all: u32) -> String {
    if all == 1 { String::new() } else { format!(" in {these} of {all} cells") }
}

/// The class as a word.
pub(crate) fn class_name(class: Option<DurabilityClass>) -> &'static str {
    class.map_or("unknown", DurabilityClass::name)
}

/// What an acknowledged write survives, as a clause.
pub(crate) fn promise(class: Option<DurabilityClass>) -> &'static str {
    class.map_or("what an acknowledged write survives is unknown", DurabilityClass::promise)
}

/// The clause on durability for a verdict on writes with different classes.
fn durability(promises: &[Promise], labels: &Labels) -> String {
    if promises.is_empty() {
        return String::new();
    }
    let differences: Vec<String> = promises
        .iter()
        .map(|one| format!("on {} {}", labels.targets_of(&one.targets), promise(one.class)))
        .collect();
    format!(". Durability differs: {}", differences.join("; "))
}

fn among(class: Option<DurabilityClass>) -> String {
    class.map_or_else(String::new, |class| format!("where {}, ", promise(Some(class))))
}

fn limit(limit: Option<Limit>, side: &str) -> String {
    let Some(Limit { bottleneck, confidence }) = limit else { return String::new() };
    let likely = if confidence == Confidence::Low { "most likely " } else { "" };
    match bottleneck {
        Bottleneck::Unknown | Bottleneck::Load => String::new(),
        Bottleneck::Latency => format!("; a round trip to {side} takes longer"),
        other => format!("; {side}'s bottleneck is {likely}{}", other.noun()),
    }
}

fn why(why: &Why, pair: &Pair, labels: &Labels) -> String {
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
    }
}

/// The bottleneck as a predicate.
fn limited_by(bottleneck: Bottleneck, confidence: Confidence) -> String {
    let likely = if confidence == Confidence::Low { "most likely " } else { "" };
    match bottleneck {
        Bottleneck::Unknown => "bottleneck unknown".to_owned(),
        Bottleneck::Load => "the given rate was kept up".to_owned(),
        Bottleneck::Latency => format!("{likely}limited by round-trip time; no resource was saturated"),
        Bottleneck::ClientCpu => {
            format!("the bottleneck is {likely}{}; the result is a lower bound", bottleneck.noun())
        }
        other => format!("the bottleneck is {likely}{}", other.noun()),
    }
}

/// The two sides with their operations: `reads on SQLite and on PostgreSQL`.
fn sides(scope: &Scope, pair: &Pair, labels: &Labels) -> String {
    format!(
        "{}{} {} and {}",
        by(&pair.metric, labels),
        labels.operations_of(&scope.operations),
        labels.with(&pair.axis, &pair.a),
        labels.with(&pair.axis, &pair.b)
    )
}

fn by(metric: &str, labels: &Labels) -> String {
    match metric {
        name if name == RESPONSE_P99.name => "by response p99, ".to_owned(),
        name if name == HIGHEST_RATE.name => format!("by highest rate with p99 under {}, ", labels.objective),
        name if is_speed(name) => String::new(),
        name => format!("{name} of "),
    }
}

/// The verb for the subject: operations, or one metric of them.
fn verb(metric: &str) -> &'static str {
    if is_speed(metric) { "are" } else { "is" }
}

/// A finding as one sentence, without the capital letter.
#[allow(clippy::too_many_lines, reason = "one template for each kind, in one list")]
fn sentence(finding: &Finding, labels: &Labels) -> String {
    use Finding as F;
    let place = |scope: &Scope| labels.place(scope);
    let operations = |scope: &Scope| labels.operations_of(&scope.operations);
    let target = |name: &String| labels.target(name);
    match finding {
        F::Better { scope, pair, ratio, lower_bound, limit: limited, durability: promises, .. } => format!(
            "{}{} {} {} {} {}{}{}{}.",
            by(&pair.metric, labels),
            operations(scope),
            labels.with(&pair.axis, &pair.a),
            verb(&pair.metric),
            gained_over(&pair.metric, *ratio, *lower_bound, labels),
            labels.with(&pair.axis, &pair.b),
            place(scope),
            limit(*limited, &labels.side(&pair.axis, &pair.b)),
            durability(promises, labels),
        ),
        F::NoDifference { scope, pair, margin, .. } => {
            format!(
                "{} differ by less than {}{}.",
                sides(scope, pair, labels),
                percent(*margin),
                place(scope)
            )
        }
        F::Inconclusive { scope, pair, smallest_detectable, .. } => {
            let least = smallest_detectable.map_or_else(
                || "one round has no interval".to_owned(),
                |span| format!("smallest detectable: {}", differences(span)),
            );
            format!("{}: no difference detected{} ({least}).", sides(scope, pair, labels), place(scope))
        }
        F::NotComparable { scope, pair, why: reason, .. } => {
            let (sides, place) = (sides(scope, pair, labels), place(scope));
            format!("{sides} are not compared{place}: {}.", why(reason, pair, labels))
        }
        F::Best { scope, metric, than, ratio, lower_bound, among: class, durability: promises } => {
            let than = if than.len() + 1 == labels.targets.len() && than.len() > 1 {
                "each other target".to_owned()
            } else {
                labels.targets_of(than)
            };
            format!(
                "{}{}{} {} {}{}: {} on {than}{}.",
                among(*class),
                by(metric, labels),
                operations(scope),
                verb(metric),
                better(metric, labels).1,
                place(scope),
                gained_over(metric, *ratio, *lower_bound, labels),
                durability(promises, labels),
            )
        }
        F::Ahead { scope, metric, than, among: class, durability: promises } => format!(
            "{}{}{} on {} {} {} than on {}{}{}.",
            among(*class),
            by(metric, labels),
            operations(scope),
            labels.targets_of(&scope.targets),
            verb(metric),
            better(metric, labels).0,
            labels.targets_of(than),
            place(&Scope { targets: Vec::new(), ..scope.clone() }),
            durability(promises, labels),
        ),
        F::NoBest { scope, metric, among: class } if !is_speed(metric) => {
            let (comparative, superlative) = better(metric, labels);
            let anywhere = Scope { targets: Vec::new(), ..scope.clone() };
            format!(
                "{metric} of {}: no target has the {superlative}{}; none is {comparative} than {}.",
                operations(scope),
                place(&anywhere),
                labels.targets_of(&scope.targets),
            )
        }
        F::NoBest { scope, metric, among: class } => {
            let beaten = Scope { targets: Vec::new(), ..scope.clone() };
            format!(
                "{}{}no target is fastest for {}{}; none is faster than {}.",
                among(*class),
                by(metric, labels),
                operations(scope),
                place(&beaten),
                labels.targets_of(&scope.targets),
            )
        }
        F::Throughput { scope, rates } => {
            let rates: Vec<String> = rates
                .iter()
                .map(|rate| {
                    let least = if rate.lower_bound { "at least " } else { "" };
                    let show = |value: f64| figure(value);
                    let name = labels.several_targets().then(|| format!("{} ", target(&rate.target)));
                    format!(
                        "{}{least}{}{}",
                        name.unwrap_or_default(),
                        figure(rate.per_second.value),
                        interval(rate.per_second, &show)
                    )
                })
                .collect();
            let scope = if labels.several_targets() {
                Scope { targets: Vec::new(), ..scope.clone() }
            } else {
                scope.clone()
            };
            format!("{} per second{}: {}.", operations(&scope), place(&scope), rates.join(", "))
        }
        F::Cost { scope, pair, cost_us, factor } => {
            let show = |us: f64| micros(us.abs());
            let (verb, ends) = if cost_us.value < 0.0 {
                ("saves", Interval { low: cost_us.high, high: cost_us.low, ..*cost_us })
            } else {
                ("costs", *cost_us)
            };
            format!(
                "{} {verb} {}{} per {}{}, compared with {}: {} the time.",
                labels.side(&pair.axis, &pair.a),
                show(cost_us.value),
                interval(ends, &show),
                scope.operations.join(" or "),
                place(scope),
                labels.side(&pair.axis, &pair.b),
                times(*factor, false),
            )
        }
        F::ResponseTimes { scope, points, bend } => {
            let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
            let scope = Scope { at: Vec::new(), ..scope.clone() };
            let at = |point: &crate::finding::RatePoint| {
                format!("{} at {}/s", micros(point.p99_us), units::count(point.rate))
            };
            let rest = if points.len() > 1 { format!(" and {}", at(last)) } else { String::new() };
            let bend = bend.map_or_else(String::new, |rate| {
                format!("; it is at least twice the first from {}/s on", units::count(rate))
            });
            format!("response p99 of {}{} is {}{rest}{bend}.", operations(&scope), place(&scope), at(first))
        }
        F::Overloaded { scope, served_per_second, dropped, from } => {
            let rates = Scope { targets: scope.targets.clone(), at: scope.at.clone(), ..Scope::default() };
            let lowest = scope.at.iter().min();
            let place = match (from, lowest) {
                (true, Some(AxisValue::Number(rate))) => format!(
                    " on {} are overloaded from {}/s",
                    labels.targets_of(&scope.targets),
                    units::count(*rate)
                ),
                _ => format!(" are overloaded{}", labels.place(&rates)),
            };
            let held = labels.held(scope);
            let dropped = match dropped {
                0 => String::new(),
                n => format!(", {} were never started", units::count(*n)),
            };
            format!(
                "{}{place}{held}: {}/s were served{dropped}.",
                operations(scope),
                figure(*served_per_second)
            )
        }
        F::GeneratorLate { scope, lag_us, p99_us } => format!(
            "response times of {}{} are invalid: the load generator was {} late (p99), of {}.",
            operations(scope),
            place(scope),
            micros(*lag_us),
            micros(*p99_us),
        ),
        F::MetricValues { scope, name, unit, points } => {
            let values: Vec<String> = points
                .iter()
                .map(|point| {
                    let at = labels.axes_of(&point.axes);
                    let at = if at.is_empty() { String::new() } else { format!(" with {}", list(&at)) };
                    let show = |value: f64| value_of(*unit, value);
                    format!("{}{}{at}", show(point.figure.value), interval(point.figure, &show))
                })
                .collect();
            format!("{name} of {}{}: {}.", operations(scope), place(scope), values.join(", "))
        }
        F::Published { claim, here, reproduced, otherwise, ratio } => {
            let results: Vec<String> = here
                .iter()
                .map(|one| {
                    let amount =
                        if one.ratio.high > 1.0 { faster(one.ratio, false) } else { "no faster".to_owned() };
                    format!("{amount} on {}", target(&one.target))
                })
                .collect();
            let rest = if *reproduced {
                ", which agrees.".to_owned()
            } else {
                let work: Vec<String> = here
                    .iter()
                    .filter_map(|one| Some((one, one.other_work_us?)))
                    .map(|(one, work)| {
                        format!("{} to {} on {}", micros(work.low), micros(work.high), target(&one.target))
                    })
                    .collect();
                let work = if work.is_empty() {
                    String::new()
                } else {
                    format!(
                        " It would be {:.1} to {:.1} times with this much other work per request: {}.",
                        ratio.high,
                        ratio.low,
                        list(&work)
                    )
                };
                format!(". {otherwise}.{work}")
            };
            format!("published: {claim}. Here: {}{rest}", list(&results))
        }
        F::NoResults => "no cell has results.".to_owned(),
        F::NotAnalysed { next } => format!(
            "no verdicts yet: the next planned analysis is after {}. 'kurabe resume' continues the run.",
            rounds(*next)
        ),
        F::NotCompared { run } => {
            format!("{run} is not complete: its results are shown, but not compared.")
        }
        F::NoBaseline => {
            "the baseline has no results, so nothing was compared; the tables show the other cells."
                .to_owned()
        }
        F::OneRound => "one round has no interval, so no verdict is possible; use more rounds.".to_owned(),
        F::Bottleneck { scope, exact, bottleneck, confidence, evidence, cells, of } => {
            let part = if *exact { String::new() } else { of_cells(*cells, *of) };
            let one = if *cells > 1 { " of one cell" } else { "" };
            format!(
                "{}{}{part}: {}. Evidence{one}: {evidence}.",
                operations(scope),
                place(scope),
                limited_by(*bottleneck, *confidence)
            )
        }
        F::Disturbed { cells, of, targets, reason } => {
            let on = if labels.several_targets() {
                format!(" (on {})", labels.targets_of(targets))
            } else {
                String::new()
            };
            let one = if *cells > 1 { "; in one of them " } else { ": " };
            let of = if *of == 1 {
                " during the one cell".to_owned()
            } else {
                format!(" during {cells} of {of} cells")
            };
            format!("the machine had other load{of}{on}{one}{reason}. Repeat the run on an idle machine.")
        }
        F::Preflight { warning } => format!("{}.", warning.trim_end_matches('.')),
        F::Incomplete { made, planned } if made > planned => {
            "this run is not complete: it was stopped before its comparisons were conclusive; 'kurabe \
             resume' continues the run."
                .to_owned()
        }
        F::Incomplete { made, planned } => format!(
            "this run is not complete: {} of {} planned trials were made; 'kurabe resume' continues the run.",
            units::count(*made),
            units::count(*planned)
        ),
        F::Rerun { trials, reason } => format!(
            "{} disturbed and repeated ({reason}); the disturbed results do not count.",
            if *trials == 1 {
                "1 trial was".to_owned()
            } else {
                format!("{} trials were", units::count(*trials))
            }
        ),
        F::Failed { cells } => format!(
            "{} no results because a trial failed.",
            if *cells == 1 {
                "1 cell has".to_owned()
            } else {
                format!("{} cells have", units::count(*cells))
            }
        ),
        F::Resumed { from_trial, changes } => format!(
            "trials from number {} on used {}, which may change results.",
            units::count(*from_trial),
            list(changes)
        ),
        F::RecordsExhausted { scope, trials, of, records, needed } => {
            let trials = if *of == 1 { "the trial".to_owned() } else { format!("{trials} of {of} trials") };
            format!(
                "{}: {trials} ended early: a trial changes each of the {} records once. For longer trials use --records {needed}.",
                operations(scope),
                units::count(*records),
            )
        }
        F::WrongAnswers { answers } => format!(
            "{} wrong.",
            if *answers == 1 {
                "1 reply was".to_owned()
            } else {
                format!("{} replies were", units::count(*answers))
            }
        ),
        F::Unsteady { scope, cells, of, change } => {
            let (word, by) = if *change < 1.0 { ("fell", 1.0 - change) } else { ("rose", change - 1.0) };
            format!(
                "{}{} were not steady{} (marked ~): throughput {word} by up to {} during a trial. Use a longer --duration.",
                operations(scope),
                place(scope),
                of_cells(*cells, *of),
                percent(by)
            )
        }
        F::SteadyLate { scope, cells, of } => format!(
            "{}{} became steady only after the warm-up{}. Use a longer --duration.",
            operations(scope),
            place(scope),
            of_cells(*cells, *of)
        ),
        F::TargetNote { target: name, note } => format!("note on {}: {note}", target(name)),
        F::Undecided {
            inconclusive,
            of,
            margin,
            decidable,
            further_rounds,
            until,
            slices_help,
            restarts_help,
            restarts,
        } => {
            let all = units::count(u64::from(*of));
            let verb = if *inconclusive == 1 { "is" } else { "are" };
            let which = match (*decidable == *inconclusive, *decidable) {
                (true, 1) => "it".to_owned(),
                (true, _) => "them".to_owned(),
                (false, n) => format!("{n} of them"),
            };
            let more = further_rounds.map_or_else(
                || "more rounds are not expected to decide that".to_owned(),
                |more| {
                    let how = match restarts {
                        Some(restarts) => format!("--restarts {restarts}"),
                        None if *until => "'kurabe resume' with more --max-rounds".to_owned(),
                        None => "--until conclusive".to_owned(),
                    };
                    format!("about {} would decide {which} ({how})", more_rounds(more))
                },
            );
            let finer = if *slices_help { "; --interleave detects smaller differences" } else { "" };
            let averaged =
                if *restarts_help { "; --restarts averages over instances of the servers" } else { "" };
            format!(
                "{inconclusive} of {all} comparisons {verb} inconclusive at ±{}; {more}{finer}{averaged}.",
                percent(*margin)
            )
        }
        F::AllConclusive { margin, of, not_comparable } => {
            let margin = percent(*margin);
            let refused = "cannot be made with any number of rounds";
            match not_comparable {
                0 => format!("every comparison is conclusive: different, or equal to within {margin}."),
                n if n == of => format!(
                    "{} {refused}.",
                    if *n == 1 { "the comparison".to_owned() } else { format!("all {n} comparisons") }
                ),
                n => format!(
                    "{n} of {of} comparisons {refused}; every other one is conclusive: different, or equal \
                     to within {margin}."
                ),
            }
        }
        F::LeftOut { targets, noise_floor_lost } => {
            let floor = if *noise_floor_lost {
                "; the noise floor is unknown, since it was measured on one of them"
            } else {
                ""
            };
            let verb = if *targets == 1 { "is" } else { "are" };
            format!(
                "{} of this run {verb} left out of this report{floor}.",
                many((*targets).into(), "target")
            )
        }
        F::PublishingRestricted { target: name, version, says, name: clause, source } => {
            let version = if version.is_empty() { String::new() } else { format!(" {version}") };
            format!("publishing is restricted for {}{version}: {says} ({clause}; {source}).", target(name))
        }
        F::NotReported { target: name, what, reason } => {
            format!("not reported by {}: {} ({reason}).", target(name), what.join(", "))
        }
        F::Tested {
            targets,
            cpus,
            rounds: made,
            comparisons,
            further_comparisons,
            slice_ns,
            restarts,
            not_interleaved,
            analysed_after,
        } => {
            let (varied, held) = labels.tested();
            let varied = if varied.is_empty() { String::new() } else { format!("; {}", varied.join("; ")) };
            let held =
                if held.is_empty() { String::new() } else { format!("; constant: {}", held.join(", ")) };
            let cpus = match cpus {
                0 => String::new(),
                n => format!(", on a machine with {}", many(*n, "CPU")),
            };
            let slices = slice_ns.map_or_else(String::new, |ns| {
                let slice = units::time(Duration::from_nanos(ns));
                format!(
                    ", the first with separate, observed trials, the others interleaved in slices of {slice}"
                )
            });
            let separate = not_interleaved.as_ref().map_or_else(String::new, |why| match why {
                NotInterleaved::OpenLoop => "; trials are not interleaved (open loop)".to_owned(),
                NotInterleaved::FewRounds => {
                    format!("; trials are not interleaved (needs {LEAST_INTERLEAVED_ROUNDS} rounds)")
                }
                NotInterleaved::Asked => "; trials are not interleaved (as requested)".to_owned(),
                NotInterleaved::Some { cells, operations } => format!(
                    "; {} of {} are measured in separate trials (they write to the same tables, need 64 or \
                     more clients, depend on earlier trials, or are not compared)",
                    many((*cells).into(), "cell"),
                    list(operations)
                ),
            });
            let compared = match comparisons {
                0 => "nothing was compared".to_owned(),
                1 => "the interval of 1 comparison holds with 95 % confidence".to_owned(),
                n => format!("the intervals of {n} comparisons hold together with 95 % confidence"),
            };
            let further = match further_comparisons {
                0 => String::new(),
                1 => "; so does that of 1 comparison of another metric, separately".to_owned(),
                n => format!("; so do those of {n} comparisons of other metrics, separately"),
            };
            let blocks = match restarts {
                0 => String::new(),
                n => format!(
                    ", in {} blocks with restarts of throwaway servers in between; intervals use the means \
                     of blocks",
                    n + 1
                ),
            };
            let analysed: Vec<String> = analysed_after.iter().map(ToString::to_string).collect();
            let analysed = if analysed.is_empty() || *comparisons == 0 {
                String::new()
            } else {
                format!(", at analyses after {} rounds", list(&analysed))
            };
            format!(
                "tested: {}{varied}{held}{cpus}. {} in random order{blocks}{slices}{separate}; {compared}{analysed}{further}.",
                labels.targets_of(targets),
                rounds(*made),
            )
        }
        F::NoiseFloor { largest, each, included } => match largest {
            Some(largest) => {
                let one = |floor: &NoiseFloor| {
                    let of =
                        if is_speed(&floor.metric) { String::new() } else { format!("{} of ", floor.metric) };
                    format!("{of}{} {}", labels.plural(&floor.operation), percent(floor.noise_floor))
                };
                let of_target = |floors: &[NoiseFloor]| {
                    let on =
                        if floors[0].second_instance { "on a second instance" } else { "on the same server" };
                    let on = if labels.several_targets() {
                        format!("{} {on}", target(&floors[0].target))
                    } else {
                        on.to_owned()
                    };
                    format!("{on}: {}", floors.iter().map(one).collect::<Vec<_>>().join(", "))
                };
                let targets: Vec<String> =
                    each.chunk_by(|a, b| a.target == b.target).map(of_target).collect();
                let whose =
                    if targets.len() > 1 { "the first cell of each target" } else { "the first cell" };
                format!(
                    "noise floor: two measurements of {whose} in each round may differ by {} more than their rounds \
                     explain ({}); {}.",
                    percent(*largest),
                    targets.join("; "),
                    if *included {
                        "intervals include it"
                    } else {
                        "intervals are of blocks and need not include it"
                    }
                )
            }
            None => "noise floor: not measured (needs an A/A control and two rounds).".to_owned(),
        },
        F::ToolOverhead { each } => {
            let each: Vec<String> =
                each.iter().map(|o| format!("{} per {}", nanos(o.ns_per_op), o.operation)).collect();
            format!("the tool's own overhead is {} (baseline, on the null target).", list(&each))
        }
        F::Verified { verification, cpu_share } => {
            let checked = verification.as_ref().map(|all| {
                let answers = format!("{} replies compared byte for byte", units::count(all.answers));
                match (all.answers, all.writes) {
                    (0, 0) => "nothing was verified".to_owned(),
                    (_, 0) => format!("verified: {answers}"),
                    (0, _) => format!("verified: {}", writes(all)),
                    _ => format!("verified: {answers}; {}", writes(all)),
                }
            });
            let checked = checked.unwrap_or_else(|| {
                "the version of Kurabe that made the run did not record how it was verified".to_owned()
            });
            let cost = cpu_share.map_or_else(String::new, |share| {
                format!("; checking took at most {} of the client's CPU", percent(share))
            });
            format!("{checked}{cost}.")
        }
        F::Durability { target: name, version, class, settings } => {
            let settings: Vec<String> =
                settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let settings =
                if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) };
            let version = if version.is_empty() { String::new() } else { format!(" {version}") };
            let (label, class_name) = (target(name), class_name(*class));
            format!("durability of {label}{version}: {class_name}: {}{settings}.", promise(*class))
        }
        F::Changed { scope, metric, better, ratio, lower_bound } => {
            let verb = match (better, is_speed(metric)) {
                (true, _) => verb(metric),
                (false, true) => "were",
                (false, false) => "was",
            };
            format!(
                "{}{}{} {verb} {} in the {} run.",
                by(metric, labels),
                operations(scope),
                place(scope),
                gained(metric, *ratio, *lower_bound, labels),
                if *better { "second" } else { "first" },
            )
        }
        F::Changes { better, worse, no_difference, inconclusive, not_comparable } => {
            let all = better + worse + no_difference + inconclusive + not_comparable;
            let rest = [
                (no_difference, "equal"),
                (inconclusive, "inconclusive"),
                (not_comparable, "not comparable"),
            ];
            let rest = rest.iter().filter(|(n, _)| **n > 0).map(|(n, text)| format!(", {n} {text}"));
            let rest = rest.collect::<Vec<_>>().concat();
            if all == 0 {
                return "the two runs have no results in common.".to_owned();
            }
            format!(
                "of {all} results in both runs, {better} are better in the second and {worse} worse{rest}."
            )
        }
        F::NotInterleaved { noise_floor } => {
            let floor = noise_floor.map_or_else(String::new, |floor| {
                format!(
                    " Intervals include the noise floor of their target and operation, at most {}.",
                    percent(floor)
                )
            });
            format!(
                "the runs were made at different times: this is weaker evidence than a single run with \
                 both.{floor}"
            )
        }
        F::OnlyIn { run, target: name } => format!("only {run} has {name}."),
        F::Unmatched { run, results } => {
            format!(
                "{} of {run} have no counterpart: their axis values differ.",
                many((*results).into(), "result")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_percentages_or_factors() {
        let span = |low, high| Span { low, high };
        assert_eq!(faster_than(span(1.12, 1.18), false), "12 to 18 % faster than");
        assert_eq!(faster_than(span(1.000_2, 1.05), false), "up to 5 % faster than");
        assert_eq!(faster_than(span(2.04, 12.4), false), "2.0 to 12 times as fast as");
        assert_eq!(faster_than(span(2.7, 2.8), true), "at least 2.7 times as fast as");
        assert_eq!(improved(span(1.25, 1.4), false, Better::Lower), "20 to 29 % lower");
        assert_eq!(improved(span(1.25, 1.4), false, Better::Higher), "25 to 40 % higher");
        assert_eq!(improved(span(2.0, 4.0), false, Better::Lower), "lower by a factor of 2.0 to 4.0");
    }
}
