//! The data of cells that the page's script draws on demand, and what it is placed in.
//!
//! Numbers have four digits: a page of many cells stays small, and nothing that can be seen is lost.

use crate::labels::{Axis, Labels};
use crate::summary::{CellResult, Summary};
use kurabe_core::metric::Unit;
use kurabe_stats::Histogram;
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The largest number of bars of a histogram.
const BARS: f64 = 40.0;
/// The percentiles of the plot, until fewer than one operation lies above.
const PERCENTILES: [f64; 25] = [
    0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 97.5, 98.0, 99.0,
    99.5, 99.8, 99.9, 99.95, 99.99, 99.999, 99.9999,
];

/// A value that cells are filtered by.
enum Dimension<'a> {
    Operation,
    Target,
    Axis(&'a Axis),
}

/// The dimensions with more than one value, with the names of their values.
fn dimensions(labels: &Labels) -> Vec<(Dimension<'_>, String, Vec<String>)> {
    let operations = labels.operations.iter().map(|operation| operation.name.clone()).collect();
    let mut all = vec![
        (Dimension::Target, "target".to_owned(), labels.targets.clone()),
        (Dimension::Operation, "operation".to_owned(), operations),
    ];
    let axes = labels.axes.iter().map(|axis| {
        let values = axis.sorted().iter().map(|value| axis.show(value)).collect();
        (Dimension::Axis(axis), axis.name.clone(), values)
    });
    all.extend(axes);
    all.retain(|(.., values)| values.len() > 1);
    all
}

/// The data as an expression of the script. No character of it ends the script or begins markup.
pub(super) fn data(summary: &Summary) -> String {
    let labels = &summary.labels;
    let dimensions = dimensions(labels);
    let named: Vec<Value> = dimensions.iter().map(|(_, name, values)| json!([name, values])).collect();
    let cells: Map<String, Value> = summary
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.is_reported())
        .filter_map(|(id, cell)| Some((id.to_string(), of_cell(summary, &dimensions, cell)?)))
        .collect();
    let text = json!({ "dims": named, "cells": cells }).to_string();
    let escaped = |character: char| match character {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(character)),
        other => other.to_string(),
    };
    text.chars().map(escaped).collect()
}

fn of_cell(
    summary: &Summary,
    dimensions: &[(Dimension<'_>, String, Vec<String>)],
    cell: &CellResult,
) -> Option<Value> {
    let labels = &summary.labels;
    let detail = cell.detail.as_deref()?;
    let speed = cell.metric(cell.metric)?;
    let is_time = speed.unit == Unit::Nanoseconds;
    // Times are in microseconds, as all others.
    let value = |value: f64| number(if is_time { value / 1e3 } else { value });
    let level = |dimension: &Dimension<'_>| -> i64 {
        let found = match dimension {
            Dimension::Target => Some(cell.target_index),
            Dimension::Operation => labels.operations.iter().position(|one| one.name == cell.operation),
            Dimension::Axis(axis) => {
                cell.axes.get(&axis.name).and_then(|value| axis.sorted().iter().position(|one| one == value))
            }
        };
        found.map_or(-1, |level| level as i64)
    };
    let levels: Vec<i64> = dimensions.iter().map(|(dimension, ..)| level(dimension)).collect();
    let rounds: Vec<Value> =
        speed.by_round.iter().map(|(round, found)| json!([round + 1, value(*found)])).collect();
    let mut object = json!({
        "n": name(labels, cell),
        "d": levels,
        "m": cell.metric,
        "u": if is_time { "time" } else { "/s" },
        "v": [value(speed.value), speed.low.map(value), speed.high.map(value)],
        "r": rounds,
        "p": percentiles(&detail.times),
        "h": bars(&detail.times),
        "o": detail.times.count(),
        "l": cell.times().map(|times| [times.p50, times.p90, times.p99, times.p999, times.max].map(number)),
        "k": cell.attribution.as_ref().map(|found| found.bottleneck.word()),
    });
    let all = object.as_object_mut()?;
    if !detail.course.is_empty() {
        let course: Vec<Value> = detail.course.iter().copied().map(number).collect();
        all.insert("w".to_owned(), json!([number(detail.seconds), course]));
    }
    if detail.usage.len() > 1 {
        let samples: Vec<Value> = detail
            .usage
            .iter()
            .map(|one| {
                let [at, client, host, waits] = [one.at_ms, one.client, one.host, one.disk_waits].map(number);
                json!([at, client, one.server.map(number), host, waits])
            })
            .collect();
        all.insert("s".to_owned(), Value::Array(samples));
        all.insert("cpus".to_owned(), json!(detail.cpus));
    }
    Some(object)
}

/// `read on SQLite, 10 kB, layout blob`.
fn name(labels: &Labels, cell: &CellResult) -> String {
    let target = labels.several_targets().then(|| format!(" on {}", labels.targets[cell.target_index]));
    let chart = labels.chart_axis().into_iter().filter(|axis| axis.varies());
    let axes = chart.chain(
        labels.varying().filter(|axis| labels.chart_axis().is_none_or(|chart| chart.name != axis.name)),
    );
    let axes = axes.filter_map(|axis| Some(format!(", {}", axis.name_value(cell.axes.get(&axis.name)?))));
    format!("{}{}{}", cell.operation, target.unwrap_or_default(), axes.collect::<String>())
}

/// A number with four digits; whole numbers without a fraction.
fn number(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { json!(rounded as i64) } else { json!(rounded) }
}

/// Each percentile with its time in microseconds; the last one is the maximum.
fn percentiles(times: &Histogram) -> Vec<Value> {
    let count = times.count() as f64;
    let has = |percentile: &f64| count * (100.0 - percentile) >= 100.0 - 1e-6;
    let points = PERCENTILES.into_iter().filter(has).filter_map(|percentile| {
        Some(json!([percentile, number(times.quantile(percentile / 100.0)? as f64 / 1e3)]))
    });
    points.collect()
}

/// Bars of equal width on a logarithmic axis: from, to, in microseconds, and the number of operations. Empty ones are
/// left out.
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
    let edge = |bar: u32| number(low * (f64::from(bar) * width).exp() / 1e3);
    counts.into_iter().map(|(bar, count)| json!([edge(bar), edge(bar + 1), count])).collect()
}

/// The filter and the place of a chosen cell; a script fills both.
pub(super) fn places() -> [Markup; 2] {
    let filter = html! { div id="filter" role="group" aria-label="Filter by value" hidden {} };
    let panel = html! { section id="cell" hidden aria-live="polite" { h2 tabindex="-1" { "One cell" } } };
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
            let bars = bars(&times(values));
            assert_eq!(bars.iter().map(|bar| bar[2].as_u64().unwrap()).sum::<u64>(), count);
            assert!(bars.len() as f64 <= BARS + 1.0, "{}", bars.len());
            assert!(bars.iter().all(|bar| bar[0].as_f64() < bar[1].as_f64()), "{bars:?}");
        }
        assert!(bars(&Histogram::new()).is_empty());
    }

    #[test]
    fn percentiles_end_where_single_operations_begin() {
        let found = percentiles(&times(1..=1_000));
        let last = found.last().unwrap();
        assert_eq!(last[0].as_f64(), Some(99.9));
        assert!(found.windows(2).all(|pair| pair[0][1].as_f64() <= pair[1][1].as_f64()), "{found:?}");
    }

    #[test]
    fn numbers_have_four_digits() {
        for (value, text) in [(1_234_567.0, "1235000"), (0.123_456, "0.1235"), (3.0, "3"), (f64::NAN, "null")]
        {
            assert_eq!(number(value).to_string(), text);
        }
    }
}
