//! Which target is fastest, where there are several: at each horizontal value, those that no other beats.

use crate::comparison::{Comparison, Sides};
use crate::format::{capital, list};
use crate::phrase::{self, HowMuch, gain, promise, range};
use crate::series::Series;
use crate::summary::VerdictResult::{Faster, Slower};
use crate::summary::{CellFigures, Status, TargetSummary};
use crate::words::Words;
use kurabe_core::axis::AxisValue;
use kurabe_core::durability::DurabilityClass;
use std::collections::BTreeMap;

/// What the ranking looks at.
pub(crate) struct Field<'a> {
    pub words: &'a Words,
    pub series: &'a [Series<'a>],
    pub cells: &'a [CellFigures],
    pub targets: &'a [TargetSummary],
}

/// A group of horizontal values with the same leaders.
struct Lead {
    leaders: Vec<usize>,
    positions: Vec<usize>,
}

/// One or more sentences for each operation: the fastest of all targets, and for writes where the targets promise
/// different things, the fastest of each promise.
pub(crate) fn ranking(field: &Field<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    let all: Vec<usize> = (0..field.words.targets.len()).collect();
    for operation in &field.words.operations {
        let classes = classes(field, &all);
        // Of two targets of which it is unknown nobody can say that they promise the same.
        let unknown = classes.get(&None).map_or(0, Vec::len);
        let mixed = operation.writes && (classes.len() > 1 || unknown > 1);
        sentences.extend(field.fastest(&operation.name, &all, mixed));
        if mixed {
            for (class, targets) in
                classes.iter().rev().filter(|(class, targets)| class.is_some() && targets.len() > 1)
            {
                let only = format!(" Where {}", promise(*class));
                sentences.extend(field.fastest(&operation.name, targets, false).map(|text| {
                    let mut letters = text.chars();
                    let first: String = letters.next().into_iter().flat_map(char::to_lowercase).collect();
                    format!("{}, {first}{}", only.trim_start(), letters.as_str())
                }));
            }
        }
    }
    sentences
}

fn classes(field: &Field<'_>, all: &[usize]) -> BTreeMap<Option<DurabilityClass>, Vec<usize>> {
    let mut classes: BTreeMap<Option<DurabilityClass>, Vec<usize>> = BTreeMap::new();
    for target in all {
        let class = field.targets.get(*target).and_then(|target| target.durability);
        classes.entry(class).or_default().push(*target);
    }
    classes
}

impl<'a> Field<'a> {
    fn fastest(&self, operation: &str, targets: &[usize], mixed: bool) -> Option<String> {
        let leads = self.leads(operation, targets);
        if leads.is_empty() {
            return None;
        }
        let clauses: Vec<String> = leads
            .iter()
            .map(|lead| {
                let names: Vec<&str> = lead.leaders.iter().map(|t| self.words.targets[*t].as_str()).collect();
                let place = range(self.words, &lead.positions);
                let place = if place.is_empty() { place } else { format!(" {place}") };
                let tie = if names.len() > 1 { ", between which no difference was seen" } else { "" };
                format!("on {}{place}{tie}{}", list(&names), self.margin(operation, lead, targets))
            })
            .collect();
        let absent: Vec<String> = targets
            .iter()
            .filter_map(|target| {
                let count = self.words.chart_axis().map_or(1, |axis| axis.values.len());
                let lacking: Vec<usize> =
                    (0..count).filter(|x| self.rate(operation, *target, *x).is_none()).collect();
                if lacking.is_empty() {
                    return None;
                }
                Some(format!(
                    "; {} has no figures {}",
                    self.words.targets[*target],
                    range(self.words, &lacking)
                ))
            })
            .chain(targets.iter().filter_map(|target| self.unranked(operation, *target)))
            .collect();
        let absent: String = absent.concat();
        let caveat = if mixed { self.caveat(targets) } else { String::new() };
        let lead = phrase::lead(&Sides::Targets { a: 0, b: 0 }, self.words, None);
        let text = format!(
            "{lead}{} are fastest {}{absent}{caveat}.",
            self.words.plural(operation),
            clauses.join("; ")
        );
        Some(capital(&text))
    }

    /// Where a target is not ranked, since its client was full.
    fn unranked(&self, operation: &str, target: usize) -> Option<String> {
        let count = self.words.chart_axis().map_or(1, |axis| axis.values.len());
        let full: Vec<usize> = (0..count)
            .filter(|x| self.cell(operation, target, *x).is_some_and(CellFigures::is_lower_bound))
            .collect();
        if full.is_empty() {
            return None;
        }
        let place = range(self.words, &full);
        let place = if place.is_empty() { place } else { format!(" {place}") };
        let name = &self.words.targets[target];
        Some(format!(
            "; {name} is not ranked{place}, where the client was full and its figure is a lower bound"
        ))
    }

    /// At each horizontal value the targets that no other beats; values with the same leaders together. Values where
    /// nothing could be told (fewer than two targets with figures, or no difference at all) are left out.
    fn leads(&self, operation: &str, targets: &[usize]) -> Vec<Lead> {
        let count = self.words.chart_axis().map_or(1, |axis| axis.values.len());
        let mut leads: Vec<Lead> = Vec::new();
        for x in 0..count {
            // A lower bound has no place in a ranking: what it stands for may be first or last.
            let measured: Vec<usize> = targets
                .iter()
                .copied()
                .filter(|target| self.cell(operation, *target, x).is_some_and(|cell| !cell.is_lower_bound()))
                .collect();
            let leaders: Vec<usize> = measured
                .iter()
                .copied()
                .filter(|target| !measured.iter().any(|other| self.beats(operation, *other, *target, x)))
                .collect();
            if measured.len() < 2 || leaders.len() == measured.len() {
                continue;
            }
            match leads.iter_mut().find(|lead| lead.leaders == leaders) {
                Some(lead) => lead.positions.push(x),
                None => leads.push(Lead { leaders, positions: vec![x] }),
            }
        }
        leads
    }

    /// By how much one leader is ahead of the next, at the first value of the group and at the last:
    /// `: 5.1 to 5.6 times as fast as on PostgreSQL, the next, at 1 kB`.
    fn margin(&self, operation: &str, lead: &Lead, targets: &[usize]) -> String {
        let [leader] = lead.leaders.as_slice() else { return String::new() };
        let (Some(first), Some(last)) = (lead.positions.first(), lead.positions.last()) else {
            return String::new();
        };
        let ends = if first == last { vec![*first] } else { vec![*first, *last] };
        let several = ends.len() > 1;
        let told: Vec<String> = ends
            .into_iter()
            .filter_map(|x| {
                let ranked = |target: &&usize| {
                    !self.cell(operation, **target, x).is_some_and(CellFigures::is_lower_bound)
                };
                let next =
                    targets.iter().filter(ranked).filter(|target| *target != leader).max_by(|a, b| {
                        self.rate(operation, **a, x)
                            .unwrap_or(0.0)
                            .total_cmp(&self.rate(operation, **b, x).unwrap_or(0.0))
                    })?;
                let (comparison, _) = self.pair(operation, *leader, *next, x)?;
                let how = HowMuch::of(&gain(comparison)?);
                let next = &self.words.targets[*next];
                let place = if several { format!(" {}", range(self.words, &[x])) } else { String::new() };
                Some(if how.factor {
                    format!("{} as fast as on {next}{place}", how.amount)
                } else {
                    format!("{} faster than on {next}{place}", how.amount)
                })
            })
            .collect();
        if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) }
    }

    /// What an acknowledged write survives on each target, said in the sentence that ranks them.
    fn caveat(&self, targets: &[usize]) -> String {
        let told: Vec<String> = classes(self, targets)
            .into_iter()
            .map(|(class, targets)| {
                let names: Vec<&str> =
                    targets.iter().map(|target| self.words.targets[*target].as_str()).collect();
                format!("on {} {}", list(&names), promise(class))
            })
            .collect();
        format!("; but the targets promise different things: {}", told.join("; "))
    }

    fn pair(&self, operation: &str, a: usize, b: usize, x: usize) -> Option<(&'a Comparison, bool)> {
        let wanted = Sides::Targets { a: a.min(b), b: a.max(b) };
        let series =
            self.series.iter().find(|series| *series.sides == wanted && series.operation == operation)?;
        Some((series.at(x)?, a < b))
    }

    fn beats(&self, operation: &str, a: usize, b: usize, x: usize) -> bool {
        a != b
            && self.pair(operation, a, b, x).is_some_and(|(comparison, forward)| {
                comparison.result == if forward { Faster } else { Slower }
            })
    }

    /// How fast a target's baseline is at a horizontal value: the median of the rounds.
    fn rate(&self, operation: &str, target: usize, x: usize) -> Option<f64> {
        let mut speeds: Vec<f64> = self.cell(operation, target, x)?.by_round.values().copied().collect();
        speeds.sort_by(f64::total_cmp);
        speeds.get(speeds.len() / 2).copied()
    }

    /// A target's baseline at a horizontal value.
    fn cell(&self, operation: &str, target: usize, x: usize) -> Option<&'a CellFigures> {
        let chart = self.words.chart_axis();
        let x: Option<AxisValue> = chart.and_then(|axis| axis.sorted().get(x).cloned());
        self.cells
            .iter()
            .filter(|cell| cell.status == Status::Ok && !cell.baseline_repeat)
            .filter(|cell| cell.target_index == target && cell.operation == operation)
            .find(|cell| {
                self.words.axes.iter().all(|axis| {
                    let here = chart.is_some_and(|chart| chart.name == axis.name);
                    let wanted = if here { x.as_ref() } else { axis.baseline() };
                    cell.axes.get(&axis.name) == wanted
                })
            })
    }
}
