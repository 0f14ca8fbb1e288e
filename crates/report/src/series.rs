//! Comparisons of the same two sides and operation along the horizontal axis: where is one faster, where slower.

use crate::comparison::{Comparison, Sides};
use crate::format::{capital, percent};
use crate::phrase::{self, HowMuch, gain, joined, loss, names, range};
use crate::summary::TargetSummary;
use crate::summary::VerdictResult::{self, Faster, Indistinguishable, NotComparable, Open, Slower};
use crate::words::Words;

/// The comparisons of one pair of sides and one operation, each with the position of its horizontal value.
#[derive(Debug)]
pub(crate) struct Series<'a> {
    pub sides: &'a Sides,
    pub operation: &'a str,
    points: Vec<(usize, &'a Comparison)>,
}

/// All series, in the order of their first comparison.
pub(crate) fn series<'a>(words: &Words, comparisons: &'a [Comparison]) -> Vec<Series<'a>> {
    let xs = words.chart_axis().map(crate::words::Axis::sorted).unwrap_or_default();
    let mut all: Vec<Series<'a>> = Vec::new();
    for comparison in comparisons {
        let at = comparison.x.as_ref().and_then(|x| xs.iter().position(|value| value == x)).unwrap_or(0);
        let same = |series: &&mut Series<'_>| {
            *series.sides == comparison.sides && series.operation == comparison.operation
        };
        match all.iter_mut().find(same) {
            Some(series) => series.points.push((at, comparison)),
            None => all.push(Series {
                sides: &comparison.sides,
                operation: &comparison.operation,
                points: vec![(at, comparison)],
            }),
        }
    }
    all
}

impl<'a> Series<'a> {
    /// The comparison at a horizontal position.
    pub fn at(&self, x: usize) -> Option<&'a Comparison> {
        self.points.iter().find(|(at, _)| *at == x).map(|(_, comparison)| *comparison)
    }

    /// How many comparisons had this result.
    pub fn count(&self, result: VerdictResult) -> usize {
        self.group(result).len()
    }

    /// Whether any of its comparisons was decided.
    pub fn says_something(&self) -> bool {
        [Faster, Slower, Indistinguishable].into_iter().any(|result| self.count(result) > 0)
    }

    /// The sum of the logarithms of all ratios that are distinguishable: above 0 where the subject gains.
    pub fn total_gain(&self) -> f64 {
        let told = self.points.iter().filter(|(_, comparison)| matches!(comparison.result, Faster | Slower));
        told.filter_map(|(_, comparison)| Some(comparison.ratio?.ratio.ln())).sum()
    }

    fn group(&self, result: VerdictResult) -> Vec<(usize, &'a Comparison)> {
        self.points.iter().filter(|(_, comparison)| comparison.result == result).copied().collect()
    }

    /// Where a result holds: `from 10 kB on`.
    pub fn where_(&self, words: &Words, result: VerdictResult) -> String {
        range(words, &self.positions(result))
    }

    fn positions(&self, result: VerdictResult) -> Vec<usize> {
        self.group(result).iter().map(|(at, _)| *at).collect()
    }

    /// A predicate on where the subject wins (or loses), and by how much: `are 3.1 to 3.3 times as fast at 100 kB`,
    /// `are faster from 10 kB on (12 to 18 % at 10 kB, 3.1 to 3.3 times at 1 MB)`. `against` is what it is faster
    /// than (`with layout rows`), where that is to be said.
    pub fn win(&self, words: &Words, result: VerdictResult, against: Option<&str>) -> Option<String> {
        let group = self.group(result);
        let place = range(words, &self.positions(result));
        let place = if place.is_empty() { place } else { format!(" {place}") };
        let than = |word: &str| against.map_or_else(String::new, |name| format!(" {word} {name}"));
        let [(_, only)] = group.as_slice() else {
            let extremes = extremes(words, &group)?;
            return Some(format!("are faster{}{place} ({extremes})", than("than")));
        };
        let how = HowMuch::of(&gain(only)?);
        Some(if how.factor {
            format!("are {} as fast{}{place}", how.amount, than("as"))
        } else {
            format!("are {} faster{}{place}", how.amount, than("than"))
        })
    }

    /// A predicate on where the subject loses, and by how much: `are slower up to 10 kB (most at 1 kB: 8 to 12 %)`.
    pub fn lose(&self, words: &Words, result: VerdictResult) -> Option<String> {
        let group = self.group(result);
        let place = range(words, &self.positions(result));
        let most = group.iter().filter_map(|(at, c)| Some((gain(c)?.inverse(), *at)));
        let (ratio, at) = most.min_by(|a, b| a.0.ratio.total_cmp(&b.0.ratio))?;
        Some(if group.len() == 1 {
            format!("are {} slower {place}", loss(&ratio)).trim_end().to_owned()
        } else {
            format!("are slower {place} (most at {}: {})", value(words, at), loss(&ratio))
        })
    }

    /// The series as one sentence.
    pub fn sentence(&self, words: &Words, targets: &[TargetSummary]) -> String {
        if let [(_, only)] = self.points.as_slice() {
            return phrase::sentence(only, words, targets);
        }
        let (a, b) = names(self.sides, words);
        let (wins, losses) = (self.count(Faster), self.count(Slower));
        let lead = phrase::lead(self.sides, words, None);
        let operations = words.plural(self.operation);
        let mut rest = Vec::new();
        for (result, text) in
            [(Indistinguishable, "no difference was seen"), (NotComparable, "not compared"), (Open, "open")]
        {
            if self.count(result) > 0 {
                rest.push(format!("{text} {}", self.where_(words, result).replace("every", "any")));
            }
        }
        if wins + losses == 0 {
            let seen = self.detectable().filter(|_| self.count(Indistinguishable) > 0);
            let seen = seen.map_or_else(String::new, |range| format!("; one of {range} would have been"));
            let (a, b) = (joined(self.sides, &a), joined(self.sides, &b));
            return capital(&format!("{lead}{operations} {a} against {b}: {}{seen}.", rest.join("; ")));
        }
        let subject_leads = wins >= losses;
        let (winner, loser) = if subject_leads { (&a, &b) } else { (&b, &a) };
        let (won, lost) = if subject_leads { (Faster, Slower) } else { (Slower, Faster) };
        let (with_winner, with_loser) = (joined(self.sides, winner), joined(self.sides, loser));
        let mut text = format!("{lead}{operations} {with_winner} ");
        text.push_str(self.win(words, won, Some(&with_loser)).as_deref().unwrap_or("are faster"));
        if let Some(clause) = self.lose(words, lost) {
            text.push_str(", but ");
            text.push_str(clause.strip_prefix("are ").unwrap_or(&clause));
        }
        let told: Vec<&Comparison> = self.group(won).into_iter().map(|(_, comparison)| comparison).collect();
        if let Some(clause) = phrase::because(&told, subject_leads, words) {
            text.push_str(", ");
            text.push_str(&clause);
        }
        for part in rest {
            text.push_str("; ");
            text.push_str(&part);
        }
        let caveat = phrase::winner_of(self.sides, subject_leads)
            .and_then(|winner| phrase::caveat(self.sides, self.operation, winner, words, targets));
        if let Some(caveat) = caveat {
            text.push_str("; ");
            text.push_str(&caveat);
        }
        capital(&format!("{text}."))
    }

    /// The least differences that would have been seen where none was: `4 to 9 %`.
    pub fn detectable(&self) -> Option<String> {
        let group = self.group(Indistinguishable);
        let least = || group.iter().filter_map(|(_, comparison)| comparison.detectable);
        let (low, high) = (least().min_by(f64::total_cmp)? - 1.0, least().max_by(f64::total_cmp)? - 1.0);
        let (low_text, high_text) = (percent(low), percent(high));
        Some(match (low_text.strip_suffix(" %"), high_text.ends_with('%')) {
            _ if low_text == high_text => format!("{low_text} or more"),
            (Some(low), true) => format!("{low} to {high_text}"),
            (Some(_), false) => format!("{low_text} to {high_text}"),
            // Both are beyond what anybody compares.
            (None, _) => format!("{low_text} or more"),
        })
    }
}

/// A horizontal value by its position.
fn value(words: &Words, at: usize) -> String {
    let Some(axis) = words.chart_axis() else { return "its one value".to_owned() };
    axis.sorted().get(at).map_or_else(String::new, |value| axis.name_value(value))
}

/// The least and the greatest gain, in the order of the axis: `12 to 18 % at 10 kB, 3.1 to 3.3 times at 1 MB`.
fn extremes(words: &Words, group: &[(usize, &Comparison)]) -> Option<String> {
    let gains = || group.iter().filter_map(|(at, comparison)| Some((gain(comparison)?, *at)));
    let (least, least_at) = gains().min_by(|a, b| a.0.ratio.total_cmp(&b.0.ratio))?;
    let (most, most_at) = gains().max_by(|a, b| a.0.ratio.total_cmp(&b.0.ratio))?;
    let told = |ratio, at| format!("{} at {}", HowMuch::of(ratio).amount, value(words, at));
    let (first, second) = (told(&least, least_at), told(&most, most_at));
    Some(if least_at <= most_at { format!("{first}, {second}") } else { format!("{second}, {first}") })
}
