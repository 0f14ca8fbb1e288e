//! What to do about one axis: which level to keep or to choose, where, and by how much.

use crate::comparison::Sides;
use crate::format::{capital, list};
use crate::phrase;
use crate::series::Series;
use crate::summary::VerdictResult::{Faster, Indistinguishable, Slower};
use crate::words::{Axis, Words};
use kurabe_core::axis::AxisValue;

/// What to do about one axis on one target.
pub(crate) struct Advice {
    target: usize,
    axis: String,
    /// The level that is best, the one it is held against, and whether it pays everywhere, in part, or not at all.
    stance: Stance,
    /// All of it, with figures.
    pub sentence: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stance {
    Keep(String),
    Choose(String),
    InPart(String),
    Same,
}

/// Advice on each axis that varies on a target; none where nothing could be told.
pub(crate) fn advice(words: &Words, series: &[Series<'_>], target: usize) -> Vec<Advice> {
    let mut all = Vec::new();
    for (position, axis) in words.axes.iter().enumerate() {
        if Some(position) == words.chart || !axis.varies() {
            continue;
        }
        let levels: Vec<Level<'_, '_>> = axis
            .values
            .iter()
            .skip(1)
            .map(|value| Level { value, series: of_level(series, target, position, value) })
            .filter(|level| level.told() + level.same() > 0)
            .collect();
        let Some(best) = levels.iter().max_by(|a, b| a.gain().total_cmp(&b.gain())) else { continue };
        let (stance, sentence) = one_axis(words, axis, &levels, best);
        all.push(Advice { target, axis: axis.name.clone(), stance, sentence });
    }
    all
}

/// The advice for several targets in one sentence for each axis: `Layout: keep blob on SQLite and MySQL.`
pub(crate) fn together(words: &Words, all: &[Advice]) -> Vec<String> {
    let mut sentences = Vec::new();
    for axis in &words.axes {
        let mut stances: Vec<(&Stance, Vec<&str>)> = Vec::new();
        for advice in all.iter().filter(|advice| advice.axis == axis.name) {
            let target = words.targets[advice.target].as_str();
            match stances.iter_mut().find(|(stance, _)| **stance == advice.stance) {
                Some((_, targets)) => targets.push(target),
                None => stances.push((&advice.stance, vec![target])),
            }
        }
        let clauses: Vec<String> = stances
            .iter()
            .map(|(stance, targets)| {
                let targets = list(targets);
                match stance {
                    // "Keep kept" is no English.
                    Stance::Keep(level) if level.starts_with("ke") => {
                        format!("stay with {level} on {targets}")
                    }
                    Stance::Keep(level) => format!("keep {level} on {targets}"),
                    Stance::Choose(level) => format!("choose {level} on {targets}"),
                    Stance::InPart(level) => format!("{level} pays in part on {targets}"),
                    Stance::Same => format!("no difference was seen on {targets}"),
                }
            })
            .collect();
        if !clauses.is_empty() {
            sentences.push(format!("{}: {}.", capital(&axis.name), clauses.join("; ")));
        }
    }
    sentences
}

fn of_level<'s, 'a>(
    series: &'s [Series<'a>],
    target: usize,
    axis: usize,
    level: &AxisValue,
) -> Vec<&'s Series<'a>> {
    series
        .iter()
        .filter(|series| {
            matches!(series.sides, Sides::Levels { target: t, axis: x, a, .. } if *t == target && *x == axis && a == level)
        })
        .collect()
}

/// A level of an axis against the baseline, over all operations.
struct Level<'v, 's> {
    value: &'v AxisValue,
    series: Vec<&'s Series<'s>>,
}

impl Level<'_, '_> {
    fn count(&self, result: crate::summary::VerdictResult) -> usize {
        self.series.iter().map(|series| series.count(result)).sum()
    }

    fn told(&self) -> usize {
        self.count(Faster) + self.count(Slower)
    }

    fn same(&self) -> usize {
        self.count(Indistinguishable)
    }

    fn gain(&self) -> f64 {
        self.series.iter().map(|series| series.total_gain()).sum()
    }
}

fn one_axis(words: &Words, axis: &Axis, levels: &[Level<'_, '_>], best: &Level<'_, '_>) -> (Stance, String) {
    let base = axis.baseline().map_or_else(String::new, |base| axis.show(base));
    let held = best.series.first().map_or_else(Vec::new, |series| phrase::held(series.sides, words));
    let held = if held.is_empty() { String::new() } else { format!(" ({})", held.join(", ")) };
    let level = axis.show(best.value);
    let clause = |predicate: &dyn Fn(&Series<'_>) -> Option<String>| -> Vec<String> {
        best.series
            .iter()
            .filter_map(|series| Some(format!("{} {}", words.plural(series.operation), predicate(series)?)))
            .collect()
    };
    let wins = clause(&|series| series.win(words, Faster, None));
    let losses = clause(&|series| series.lose(words, Slower));
    let others: Vec<String> =
        levels.iter().filter(|level| level.value != best.value).map(|level| axis.show(level.value)).collect();
    if !wins.is_empty() {
        let no_better =
            if others.is_empty() { String::new() } else { format!("; {} gained less", list(&others)) };
        if losses.is_empty() {
            let text = format!("Choose {} {level} over {base}{held}: {}{no_better}.", axis.name, list(&wins));
            return (Stance::Choose(level), text);
        }
        let name = capital(&axis.name_value(best.value));
        let text = format!("{name} against {base}{held}: {}, but {}{no_better}.", list(&wins), list(&losses));
        return (Stance::InPart(level), text);
    }
    if levels.iter().all(|level| level.told() == 0) {
        let names: Vec<String> = axis.values.iter().map(|value| axis.show(value)).collect();
        let seen = best.series.iter().find_map(|series| series.detectable());
        let seen = seen.map_or_else(String::new, |range| format!("; one of {range} would have been"));
        let text = format!("No difference was seen between {} {}{held}{seen}.", axis.name, list(&names));
        return (Stance::Same, text);
    }
    // Nothing was faster than the baseline: say what the least costly of the others costs.
    let kept = clause(&|series| series.win(words, Slower, None));
    if kept.is_empty() {
        let text = format!(
            "Keep {} {base}{held}: {} cost more, and {level} showed no difference.",
            axis.name,
            list(&others)
        );
        return (Stance::Keep(base), text);
    }
    let more = if others.is_empty() { String::new() } else { format!("; {} cost more", list(&others)) };
    let text = format!("Keep {} {base} rather than {level}{held}: {}{more}.", axis.name, list(&kept));
    (Stance::Keep(base), text)
}
