//! One comparison in words.

use crate::attribution::{Bound, Confidence};
use crate::comparison::{Comparison, Sides};
use crate::format::{capital, figure, list, percent, percent_number};
use crate::settling::more_rounds;
use crate::summary::{TargetSummary, VerdictRecord, VerdictResult};
use crate::words::{Kind, Words};
use kurabe_core::axis::AxisValue;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::load::RATE;
use kurabe_stats::PairedRatio;

/// From this factor on, people read factors more easily than percentages.
const FACTOR_FROM: f64 = 1.5;

/// The two sides as a sentence names them.
pub(crate) fn names(sides: &Sides, words: &Words) -> (String, String) {
    match sides {
        Sides::Levels { axis, a, b, .. } => {
            let axis = &words.axes[*axis];
            (axis.name_value(a), axis.name_value(b))
        }
        Sides::Targets { a, b } => (words.targets[*a].clone(), words.targets[*b].clone()),
    }
}

/// By how much the faster side is faster: `5.1 to 5.6 times` or `12 to 18 %`, from a ratio above 1.
pub(crate) struct HowMuch {
    pub amount: String,
    /// Whether the amount is a factor; else a percentage.
    pub factor: bool,
}

impl HowMuch {
    pub fn of(ratio: &PairedRatio) -> Self {
        let (low, high) = ratio.interval.map_or((ratio.ratio, ratio.ratio), |i| (i.low.max(1.0), i.high));
        let factor = ratio.ratio >= FACTOR_FROM;
        let (low, high) = if factor {
            (times(low), times(high))
        } else {
            (percent_number(low - 1.0), percent_number(high - 1.0))
        };
        let range = if low == high { low } else { format!("{low} to {high}") };
        Self { amount: if factor { format!("{range} times") } else { format!("{range} %") }, factor }
    }

    /// `5.1 to 5.6 times as fast … as` or `12 to 18 % faster … than`, around the winner.
    pub fn around(&self, winner: &str, loser: &str) -> String {
        if self.factor {
            format!("{} as fast {winner} as {loser}", self.amount)
        } else {
            format!("{} faster {winner} than {loser}", self.amount)
        }
    }
}

fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1}") } else { figure(ratio.round()) }
}

/// By how much the slower side is slower, from its ratio below 1: `8 to 12 %`.
pub(crate) fn loss(ratio: &PairedRatio) -> String {
    let (low, high) = ratio.interval.map_or((ratio.ratio, ratio.ratio), |i| (i.low, i.high.min(1.0)));
    let (least, most) = (percent_number(1.0 - high), percent_number(1.0 - low));
    if least == most { format!("{least} %") } else { format!("{least} to {most} %") }
}

/// The ratio of the faster side to the slower, whichever of the two is the subject.
pub(crate) fn gain(comparison: &Comparison) -> Option<PairedRatio> {
    let ratio = comparison.ratio?;
    Some(if ratio.ratio < 1.0 { ratio.inverse() } else { ratio })
}

/// With which preposition a side is joined to the operation: `on SQLite`, `with layout blob`.
pub(crate) fn joined(sides: &Sides, name: &str) -> String {
    match sides {
        Sides::Levels { .. } => format!("with {name}"),
        Sides::Targets { .. } => format!("on {name}"),
    }
}

/// What a comparison or a series of them holds for, in front of its sentence: `On SQLite, with compress none, at 100 kB, `.
/// The target stands there where there are several, and the baselines of the other axes that vary; empty where there is
/// nothing to say.
pub(crate) fn lead(sides: &Sides, words: &Words, x: Option<&AxisValue>) -> String {
    let mut parts = held(sides, words);
    if let (Some(axis), Some(x)) = (words.chart_axis(), x) {
        parts.push(format!("at {}", axis.name_value(x)));
    }
    if parts.is_empty() { String::new() } else { format!("{}, ", capital(&parts.join(", "))) }
}

/// What a comparison holds fast: `on SQLite`, `with compress none`.
pub(crate) fn held(sides: &Sides, words: &Words) -> Vec<String> {
    let (target, compared) = match sides {
        Sides::Levels { target, axis, .. } => (Some(*target), words.axes[*axis].name.as_str()),
        Sides::Targets { .. } => (None, ""),
    };
    let target =
        target.filter(|_| words.several_targets()).map(|target| format!("on {}", words.targets[target]));
    let others: Vec<String> = words
        .varying()
        .filter(|axis| axis.name != compared)
        .filter_map(|axis| Some(axis.name_value(axis.baseline()?)))
        .collect();
    let others = if others.is_empty() { None } else { Some(format!("with {}", list(&others))) };
    words.measure.clone().into_iter().chain(target).chain(others).collect()
}

/// What must be said of two targets whose acknowledged writes survive different things, or might, since that is
/// unknown of one; none for one class, or where the operation writes nothing.
pub(crate) fn promises(
    sides: &Sides,
    operation: &str,
    winner: usize,
    words: &Words,
    targets: &[TargetSummary],
) -> Option<String> {
    let Sides::Targets { a, b } = sides else { return None };
    let (first, second) = if winner == *b { (*b, *a) } else { (*a, *b) };
    let (one, other) = (targets.get(first)?.durability, targets.get(second)?.durability);
    if one == other && one.is_some() || !words.writes(operation) {
        return None;
    }
    Some(format!(
        "on {} {}, on {} {}",
        words.targets[first],
        promise(one),
        words.targets[second],
        promise(other)
    ))
}

/// The same as the end of a sentence that says which target won: "but" where it promises less than the other, and "and"
/// where it is faster although it promises more.
pub(crate) fn caveat(
    sides: &Sides,
    operation: &str,
    winner: usize,
    words: &Words,
    targets: &[TargetSummary],
) -> Option<String> {
    let promises = promises(sides, operation, winner, words, targets)?;
    let Sides::Targets { a, b } = sides else { return None };
    let loser = if winner == *b { *a } else { *b };
    let class = |target: usize| targets.get(target).and_then(|target| target.durability);
    let joint = if class(winner) > class(loser) { "and" } else { "but" };
    Some(format!("{joint} {promises}"))
}

/// What an acknowledged write survives, as a clause.
pub(crate) fn promise(class: Option<DurabilityClass>) -> &'static str {
    class.map_or("what an acknowledged write survives is unknown", DurabilityClass::promise)
}

/// The class as a word.
pub(crate) fn class_name(class: Option<DurabilityClass>) -> &'static str {
    class.map_or("unknown", DurabilityClass::name)
}

/// A comparison as the report records it.
pub(crate) fn record(comparison: &Comparison, words: &Words, targets: &[TargetSummary]) -> VerdictRecord {
    let (a, b) = match &comparison.sides {
        Sides::Levels { axis, a, b, .. } => (words.axes[*axis].show(a), words.axes[*axis].show(b)),
        Sides::Targets { a, b } => (target_name(targets, *a), target_name(targets, *b)),
    };
    VerdictRecord {
        sentence: sentence(comparison, words, targets),
        operation: comparison.operation.clone(),
        a,
        b,
        axis: match &comparison.sides {
            Sides::Levels { axis, .. } => words.axes[*axis].name.clone(),
            Sides::Targets { .. } => "target".to_owned(),
        },
        target: match &comparison.sides {
            Sides::Levels { target, .. } => Some(target_name(targets, *target)),
            Sides::Targets { .. } => None,
        },
        at: comparison.at.clone(),
        result: comparison.result,
        ratio: comparison.ratio.map(|ratio| ratio.ratio),
        low: comparison.ratio.and_then(|ratio| ratio.low()),
        high: comparison.ratio.and_then(|ratio| ratio.high()),
        rounds: comparison.rounds,
        noise_floor: comparison.noise_floor,
        detectable: comparison.detectable.map(|factor| factor - 1.0),
        corrected_for: comparison.ratio.map_or(0, |ratio| ratio.comparisons),
        settled: comparison.settled,
        further_rounds: comparison.further,
        reason: reason(comparison, words, targets),
    }
}

fn target_name(targets: &[TargetSummary], index: usize) -> String {
    targets.get(index).map_or_else(String::new, |target| target.name.clone())
}

/// A comparison as one sentence.
pub(crate) fn sentence(comparison: &Comparison, words: &Words, targets: &[TargetSummary]) -> String {
    let (a, b) = names(&comparison.sides, words);
    let operations = words.plural(&comparison.operation);
    let lead = lead(&comparison.sides, words, comparison.x.as_ref());
    let with = |name: &str| joined(&comparison.sides, name);
    let text = match comparison.result {
        VerdictResult::Faster | VerdictResult::Slower => {
            let won = comparison.result == VerdictResult::Faster;
            let (winner, loser) = if won { (&a, &b) } else { (&b, &a) };
            let how = gain(comparison)
                .map_or_else(String::new, |gain| HowMuch::of(&gain).around(&with(winner), &with(loser)));
            let caveat = winner_of(&comparison.sides, won)
                .and_then(|winner| caveat(&comparison.sides, &comparison.operation, winner, words, targets))
                .map_or_else(String::new, |caveat| format!(", {caveat}"));
            let because =
                because(&[comparison], won, words).map_or_else(String::new, |clause| format!(", {clause}"));
            format!("{operations} are {how}{because}{caveat}")
        }
        VerdictResult::Indistinguishable => {
            let seen = comparison.detectable.map_or_else(String::new, |least| {
                format!("; one of {} or more would have been", percent(least - 1.0))
            });
            let within = comparison.within.map_or_else(String::new, |margin| {
                format!(", and they are equal to within {}", percent(margin))
            });
            format!("no difference was seen between {operations} {} and {}{seen}{within}", with(&a), with(&b))
        }
        VerdictResult::NotComparable => {
            let why = comparison.why_not.as_deref().unwrap_or("there are no figures");
            format!("{operations} {} and {} are not compared: {why}", with(&a), with(&b))
        }
        VerdictResult::Open => {
            format!("{operations} {} against {} are open: one round shows no interval", with(&a), with(&b))
        }
    };
    capital(&format!("{lead}{text}."))
}

/// Why one target is faster than another, from what bound them: what the slower one waited for, and that the faster one
/// could be faster still where the client was full on it. `won`: the first side is the faster. Nothing where the values
/// compared do not agree.
pub(crate) fn because(told: &[&Comparison], won: bool, words: &Words) -> Option<String> {
    let Sides::Targets { a, b } = told.first()?.sides else { return None };
    let (winner, loser) = if won { (0, 1) } else { (1, 0) };
    let name = &words.targets[if won { b } else { a }];
    let bounds: Option<Vec<_>> = told.iter().map(|comparison| comparison.bounds[loser]).collect();
    let bounds = bounds?;
    let first = *bounds.first()?;
    let one = bounds.iter().all(|side| side.bound == first.bound);
    let sure = bounds.iter().all(|side| side.confidence == Confidence::High);
    let client = bounds.iter().map(|side| side.client_busy).sum::<f64>() / bounds.len() as f64;
    let at = format!("the client was at {:.0} %", client * 100.0);
    let why = match first.bound {
        Bound::ServerCpu => Some(format!("{name}'s server CPU was full; {at}")),
        Bound::ProcessCpu => Some(format!("{name}'s CPU, which is the client's, was full")),
        Bound::Disk => Some(format!("{name} waited for storage; {at}")),
        Bound::Network => Some(format!("{name}'s requests spent their time on the way; {at}")),
        Bound::Locks => Some(format!("{name}'s sessions waited within it, for locks; {at}")),
        Bound::Latency if sure => {
            Some(format!("a round trip to {name} takes longer, with nothing full; {at}"))
        }
        Bound::Latency | Bound::ClientCpu | Bound::Load | Bound::NotKnown => None,
    };
    let why = why
        .filter(|_| one)
        .map(|why| format!("{} {why}", if sure { "because" } else { "most likely because" }));
    let least = told
        .iter()
        .all(|comparison| comparison.bounds[winner].is_some_and(|side| side.bound == Bound::ClientCpu));
    let least = least.then(|| {
        let name = &words.targets[if won { a } else { b }];
        format!("and that is the least, since on {name} the client was full")
    });
    let parts: Vec<String> = why.into_iter().chain(least).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Which target won, where targets were compared.
pub(crate) fn winner_of(sides: &Sides, subject_won: bool) -> Option<usize> {
    match sides {
        Sides::Targets { a, b } => Some(if subject_won { *a } else { *b }),
        Sides::Levels { .. } => None,
    }
}

/// Why the result is what it is.
fn reason(comparison: &Comparison, words: &Words, targets: &[TargetSummary]) -> String {
    let floor = comparison.noise_floor.map_or_else(
        || "no noise floor was measured".to_owned(),
        |floor| format!("the noise floor is {}", percent(floor)),
    );
    let mut parts = Vec::new();
    match (comparison.result, comparison.ratio) {
        (VerdictResult::Faster | VerdictResult::Slower, Some(ratio)) => {
            parts.push(format!(
                "over {} the interval of the ratio, {}, does not hold 1",
                rounds(comparison.rounds),
                interval(&ratio)
            ));
            parts.push(floor);
        }
        (VerdictResult::Indistinguishable, Some(ratio)) => {
            let holds = ratio.interval.is_none_or(|interval| interval.contains(1.0));
            parts.push(if holds {
                format!(
                    "over {} the interval of the ratio, {}, holds 1",
                    rounds(comparison.rounds),
                    interval(&ratio)
                )
            } else {
                "the ratio is not farther from 1 than the noise floor".to_owned()
            });
            parts.push(floor);
        }
        (VerdictResult::Open, _) => {
            parts.push("one round shows no interval, and two are the least that do".to_owned());
        }
        _ => parts.push(comparison.why_not.clone().unwrap_or_else(|| "there are no figures".to_owned())),
    }
    parts.extend(care(comparison));
    let won = comparison.ratio.is_some_and(|ratio| ratio.ratio >= 1.0);
    if let Some(winner) = winner_of(&comparison.sides, won)
        && let Some(promises) = promises(&comparison.sides, &comparison.operation, winner, words, targets)
    {
        parts.push(format!("durability differs: {promises}"));
    }
    parts.join("; ")
}

/// With what care a comparison was judged: what it could have seen, how many it was judged with, and what would settle it.
fn care(comparison: &Comparison) -> Vec<String> {
    let mut parts = Vec::new();
    if !matches!(
        comparison.result,
        VerdictResult::Faster | VerdictResult::Slower | VerdictResult::Indistinguishable
    ) {
        return parts;
    }
    parts.extend(
        comparison
            .detectable
            .map(|least| format!("the least that could have been seen is {}", percent(least - 1.0))),
    );
    if let Some(ratio) = comparison.ratio.filter(|ratio| ratio.comparisons > 1) {
        parts.push(format!("corrected for {} comparisons", ratio.comparisons));
    }
    if !comparison.settled {
        parts.push(comparison.further.map_or_else(
            || "no number of rounds that can be foreseen would settle it".to_owned(),
            |more| format!("about {} would settle it", more_rounds(more)),
        ));
    }
    parts
}

fn interval(ratio: &PairedRatio) -> String {
    ratio.interval.map_or_else(|| "unknown".to_owned(), |i| format!("{:.3} to {:.3}", i.low, i.high))
}

/// `1 round`, `5 rounds`.
pub(crate) fn rounds(count: u32) -> String {
    if count == 1 { "1 round".to_owned() } else { format!("{count} rounds") }
}

/// Values of the horizontal axis: `at 1 kB`, `up to 10 kB`, `from 100 kB on`, `at every payload tested`.
pub(crate) fn range(words: &Words, chosen: &[usize]) -> String {
    let Some(axis) = words.chart_axis() else { return String::new() };
    let values = axis.sorted();
    let name = |at: usize| values.get(at).map_or_else(String::new, |value| axis.name_value(value));
    let last = values.len().saturating_sub(1);
    if chosen.len() == values.len() && values.len() > 1 {
        let counted = axis.kind == Kind::Count && axis.name != RATE.name;
        return format!("at every {}{} tested", if counted { "number of " } else { "" }, axis.name);
    }
    let mut pieces: Vec<String> = Vec::new();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in chosen {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *at => *end = *at,
            _ => runs.push((*at, *at)),
        }
    }
    for (start, end) in runs {
        pieces.push(match (start, end) {
            (start, end) if start == end => format!("at {}", name(start)),
            (0, end) => format!("up to {}", name(end)),
            (start, end) if end == last => format!("from {} on", name(start)),
            (start, end) => format!("from {} to {}", name(start), name(end)),
        });
    }
    list(&pieces)
}
