//! The data of cells that the page's script draws on demand, and what it is placed in.
//!
//! Numbers have the digits that can be seen, and series have no names and no positions that follow from their place: a
//! page of many cells stays small.

use crate::cell::CellResult;
use crate::detail::{Detail, Usage, Waits};
use crate::html::lines::Property;
use crate::labels::{Axis, Labels};
use crate::messages::{Language, Message};
use crate::summary::Summary;
use kurabe_core::metric::Unit;
use kurabe_core::sort;
use kurabe_core::stats_probe::WaitState;
use kurabe_stats::Histogram;
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The largest number of bars of a histogram.
const BARS: f64 = 40.0;
/// The largest number of events of a cell.
const EVENTS: usize = 12;
/// The percentiles of the plot, until fewer than one operation lies above.
const PERCENTILES: [f64; 25] = [
    0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 97.5, 98.0, 99.0,
    99.5, 99.8, 99.9, 99.95, 99.99, 99.999, 99.9999,
];

/// The properties with more than one value, by which cells are filtered, with the names of their values.
fn dimensions(summary: &Summary) -> Vec<(Property<'_>, Vec<String>)> {
    let labels = &summary.labels;
    let all = [Property::Target, Property::Operation(&labels.operations)].into_iter();
    let all = all.chain(labels.axes.iter().map(Property::Axis));
    all.filter_map(|property| {
        let levels = property.levels(summary, Axis::show);
        (levels.len() > 1).then_some((property, levels))
    })
    .collect()
}

/// The data as an expression of the script. No character of it ends the script or begins markup.
pub(super) fn data(summary: &Summary) -> String {
    let labels = &summary.labels;
    let dimensions = dimensions(summary);
    let named: Vec<Value> =
        dimensions.iter().map(|(property, levels)| json!([property.name(labels.language), levels])).collect();
    let cells: Map<String, Value> = summary
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.is_reported())
        .filter_map(|(id, cell)| Some((id.to_string(), of_cell(summary, &dimensions, cell)?)))
        .collect();
    let mut all = json!({ "dims": named, "q": PERCENTILES, "cells": cells });
    if labels.language == Language::Japanese {
        // The script has its words in English.
        all["words"] = serde_json::from_str(include_str!("script.ja.json")).unwrap_or_default();
    }
    let text = all.to_string();
    let escaped = |character: char| match character {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(character)),
        other => other.to_string(),
    };
    text.chars().map(escaped).collect()
}

fn of_cell(
    summary: &Summary,
    dimensions: &[(Property<'_>, Vec<String>)],
    cell: &CellResult,
) -> Option<Value> {
    let labels = &summary.labels;
    let detail = cell.detail.as_deref()?;
    let speed = cell.metric(cell.metric)?;
    let is_time = speed.unit == Unit::Nanoseconds;
    // Times are in microseconds, as all others.
    let value = |value: f64| number(if is_time { value / 1e3 } else { value });
    let level = |(property, _): &(Property<'_>, _)| property.of(cell).map_or(-1, |level| level as i64);
    let levels: Vec<i64> = dimensions.iter().map(level).collect();
    let mut object = json!({
        "n": name(labels, cell),
        "d": levels,
        "m": cell.metric,
        "u": if is_time { "time" } else { "/s" },
        "v": [value(speed.figure.value), speed.figure.low.map(value), speed.figure.high.map(value)],
        "r": rounds(speed.by_round.iter().map(|(round, found)| (*round, value(*found)))),
        "p": percentiles(&detail.times),
        "h": bars(&detail.times),
        "o": detail.times.count(),
        "l": cell.times().map(|times| [times.p50, times.p90, times.p95, times.p99, times.p999, times.max].map(number)),
        "k": cell.attribution.as_ref().map(|found| found.bottleneck.word()),
    });
    object.as_object_mut()?.extend(courses(detail));
    Some(object)
}

/// What happened over the time of a trial.
fn courses(detail: &Detail) -> Map<String, Value> {
    let mut all = Map::new();
    let mut add = |name: &str, value: Value| all.insert(name.to_owned(), value);
    if !detail.course.is_empty() {
        let course: Vec<Value> = detail.course.iter().map(|rate| digits(*rate, 3)).collect();
        add("w", json!([number(detail.seconds), course]));
    }
    if let Some(tail) = &detail.tail {
        let p99 = tail.p99_ns.iter().map(|ns| ns.map(|ns| digits(ns as f64 / 1e3, 3)));
        add("t", json!([number(tail.part_seconds), p99.collect::<Vec<_>>()]));
    }
    if detail.usage.len() > 1 {
        let column = |of: &dyn Fn(&Usage) -> Option<f64>| -> Option<Vec<Value>> {
            let values: Vec<Option<f64>> = detail.usage.iter().map(of).collect();
            let shown = |value: Option<f64>| value.map_or(Value::Null, |value| digits(value, 2));
            values.iter().any(Option::is_some).then(|| values.into_iter().map(shown).collect())
        };
        let some = |of: fn(&Usage) -> f64| {
            let used = detail.usage.iter().any(|one| of(one) > 0.0);
            used.then(|| column(&move |one: &Usage| Some(of(one)))).flatten()
        };
        let at: Vec<Value> = detail.usage.iter().map(|one| number(one.at_ms)).collect();
        add(
            "s",
            json!([
                at,
                column(&|one| Some(one.client)),
                column(&|one| one.server),
                column(&|one| Some(one.host)),
                some(|one| one.disk_waits),
                some(|one| one.disk.unwrap_or(0.0)),
                some(|one| one.network.unwrap_or(0.0)),
            ]),
        );
        add("cpus", json!(detail.cpus));
    }
    if detail.waits.len() > 1 {
        let at: Vec<Value> = detail.waits.iter().map(|one| number(one.at_ms)).collect();
        let states: Vec<WaitState> =
            sort::distinct(detail.waits.iter().flat_map(|one| one.states.keys().copied()));
        let series = states.into_iter().map(|state| {
            let count = |one: &Waits| digits(one.states.get(&state).copied().unwrap_or(0.0), 2);
            json!([state.word(), detail.waits.iter().map(count).collect::<Vec<_>>()])
        });
        add("a", json!([at, series.collect::<Vec<_>>()]));
    }
    if !detail.events.is_empty() {
        let events = detail.events.iter().take(EVENTS).map(|one| json!([one.what, one.from_ms, one.to_ms]));
        add("e", events.collect());
    }
    all
}

/// The first round's number, and the values from it on; `null` where a round has none.
fn rounds(found: impl Iterator<Item = (u32, Value)>) -> Vec<Value> {
    let found: BTreeMap<u32, Value> = sort::btree_map(found);
    let (Some((first, _)), Some((last, _))) = (found.first_key_value(), found.last_key_value()) else {
        return Vec::new();
    };
    let values = (*first..=*last).map(|round| found.get(&round).cloned().unwrap_or(Value::Null));
    std::iter::once(json!(first + 1)).chain(values).collect()
}

/// `read on SQLite, 10 kB, layout blob`.
fn name(labels: &Labels, cell: &CellResult) -> String {
    let on = |target: &str| Message::On.with(labels.language, &[("target", target)]);
    let target = labels.several_targets().then(|| on(&labels.targets[cell.target.at()]));
    let chart = labels.chart_axis().into_iter().filter(|axis| axis.varies());
    let axes = chart.chain(
        labels.varying().filter(|axis| labels.chart_axis().is_none_or(|chart| chart.name != axis.name)),
    );
    let comma = Message::Comma.text(labels.language);
    let axes =
        axes.filter_map(|axis| Some(format!("{comma}{}", axis.name_value(cell.axes.get(&axis.name)?))));
    format!("{}{}{}", cell.operation, target.unwrap_or_default(), axes.collect::<String>())
}

/// A number with four digits; whole numbers without a fraction.
fn number(value: f64) -> Value {
    digits(value, 4)
}

fn digits(value: f64, digits: usize) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { json!(rounded as i64) } else { json!(rounded) }
}

/// The time of each of [`PERCENTILES`] in microseconds, as many as have an operation above.
fn percentiles(times: &Histogram) -> Vec<Value> {
    let count = times.count() as f64;
    let has = |percentile: &f64| count * (100.0 - percentile) >= 100.0 - 1e-6;
    let points = PERCENTILES
        .into_iter()
        .take_while(has)
        .filter_map(|percentile| Some(digits(times.quantile(percentile / 100.0)? as f64 / 1e3, 3)));
    points.collect()
}

/// Bars of equal width on a logarithmic axis: the start of the first one in microseconds, the factor from each bar to
/// the next, and the number of operations in each.
fn bars(times: &Histogram) -> Vec<Value> {
    let (Some(low), Some(high)) = (times.min(), times.max()) else { return Vec::new() };
    let low = low.max(1) as f64;
    // Buckets of the histogram are 1 % wide; a narrower bar would be empty by chance.
    let width = ((high as f64 / low).ln() / BARS).max(0.03);
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for bucket in times.buckets() {
        let middle = f64::midpoint(bucket.low as f64, bucket.high as f64);
        let bar = ((middle.max(low) / low).ln() / width).max(0.0) as u32;
        *counts.entry(bar).or_default() += bucket.count;
    }
    let last = counts.last_key_value().map_or(0, |(bar, _)| *bar);
    let counts = (0..=last).map(|bar| json!(counts.get(&bar).copied().unwrap_or(0)));
    // The factor is applied up to forty times: its rounding must not be seen.
    [number(low / 1e3), digits(width.exp(), 6)].into_iter().chain(counts).collect()
}

/// The filter and the place of a chosen cell; a script fills both.
pub(super) fn places(language: Language) -> [Markup; 2] {
    let filter =
        html! { div id="filter" role="group" aria-label=(Message::FilterBy.text(language)) hidden {} };
    let panel = html! { section id="cell" hidden aria-live="polite" { h2 tabindex="-1" { (Message::OneResult.text(language)) } } };
    [filter, panel]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut times = Histogram::new();
        values.into_iter().for_each(|value| times.record(value));
        times
    }

    #[test]
    fn bars_count_every_operation_once() {
        for values in [vec![1_000], vec![1, 1_000_000_000], (1..5_000).map(|n| n * 977).collect()] {
            let count = values.len() as u64;
            let longest = values.iter().copied().max().unwrap() as f64;
            let bars = bars(&times(values));
            let (head, counts) = bars.split_at(2);
            assert_eq!(counts.iter().map(|bar| bar.as_u64().unwrap()).sum::<u64>(), count);
            assert!(counts.len() as f64 <= BARS + 1.0, "{}", counts.len());
            let [low, factor] = [&head[0], &head[1]].map(|value| value.as_f64().unwrap());
            let end = low * 1e3 * factor.powi(counts.len() as i32);
            assert!(factor > 1.0 && end >= longest * 0.98 && end <= longest * factor * 1.02, "{bars:?}");
        }
        assert!(bars(&Histogram::new()).is_empty());
    }

    #[test]
    fn percentiles_end_where_single_operations_begin() {
        let found = percentiles(&times(1..=1_000));
        assert!((PERCENTILES[found.len() - 1] - 99.9).abs() < 1e-9);
        assert!(found.windows(2).all(|pair| pair[0].as_f64() <= pair[1].as_f64()), "{found:?}");
    }

    #[test]
    fn missing_rounds_keep_their_place() {
        let found = [(1, json!(10)), (4, json!(40)), (2, json!(20))];
        assert_eq!(json!(rounds(found.into_iter())), json!([2, 10, 20, null, 40]));
        assert!(rounds(std::iter::empty()).is_empty());
    }

    #[test]
    fn numbers_have_four_digits() {
        for (value, text) in [(1_234_567.0, "1235000"), (0.123_456, "0.1235"), (3.0, "3"), (f64::NAN, "null")]
        {
            assert_eq!(number(value).to_string(), text);
        }
    }
}
