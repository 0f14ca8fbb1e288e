//! Published results of others, embedded with their source and known problems; and whether the run's ratios agree with
//! them, and otherwise with how much additional work per request they would.
//!
//! They are data (`published/` in this crate): a table as its author printed it, and a description of its columns. An
//! experiment refers to a set of such tables.

use crate::catalogue::translated;
use crate::cell::CellResult;
use crate::finding::Context;
use crate::format::micros;
use crate::group::grouped;
use crate::labels::Labels;
use crate::metrics::is_speed;
use crate::target::TargetId;
use crate::verdict::{Side, Verdict};
use crate::wording::{faster, listed, ratio, say};
use kurabe_core::axis::AxisValue;
use kurabe_core::metric::THROUGHPUT;
use kurabe_core::sort;
use kurabe_stats::{Estimate, Interval};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A table and its description.
type File = (&'static str, &'static str);

/// Embeds the table and the description of this name.
macro_rules! file {
    ($name:literal) => {
        (
            include_str!(concat!("../../published/", $name, ".csv")),
            include_str!(concat!("../../published/", $name, ".json")),
        )
    };
}

/// The sets, by name.
const SETS: &[(&str, &[File])] = &[
    ("web_kv.csv", &[file!("web_kv")]),
    ("session_store.csv", &[file!("session_store")]),
    ("connection_cost", &[file!("connection_cost_http"), file!("connection_cost_loop")]),
    ("webapp", &[file!("webapp")]),
    ("link", &[file!("link")]),
    ("network.csv", &[file!("network")]),
    ("bulk_fetch.csv", &[file!("bulk_fetch")]),
    ("reload.csv", &[file!("reload")]),
    ("estimate.csv", &[file!("estimate")]),
];

/// Published results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Published {
    pub about: About,
    pub lines: Vec<Line>,
}

/// Their description.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub title: String,
    pub provenance: String,
    pub hardware: String,
    columns: Columns,
    /// Whether the horizontal value is a number of clients, each waiting for its own replies.
    #[serde(default)]
    x_is_clients: bool,
    /// Their operations, and Kurabe's for each; "" if they name none. In place of an operation, the name of a metric
    /// with many values: then the rate is its value over the horizontal value.
    operations: BTreeMap<String, String>,
    /// Published ratios between two values of an axis, which can be compared with the run's.
    pub shape: Option<Shape>,
    pub faults: Vec<String>,
}

/// The meaning of the table's columns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Columns {
    /// Columns that together name a line.
    line: Vec<String>,
    operation: Option<String>,
    /// The column of the horizontal value, …
    x: Option<String>,
    /// … or its constant value.
    x_is: Option<f64>,
    /// The unit of that column: 1,024 for kibibytes.
    #[serde(default = "one")]
    x_unit: f64,
    /// The column of the rate, …
    rate: Option<String>,
    /// … with its unit: how many operations per second a rate of 1 is, …
    #[serde(default = "one")]
    rate_unit: f64,
    /// … or of requests and, for each repetition, their duration in seconds. …
    requests: Option<String>,
    /// … or the constant number of requests.
    requests_are: Option<f64>,
    #[serde(default)]
    seconds: Vec<String>,
}

fn one() -> f64 {
    1.0
}

/// A published ratio between two values of an axis.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shape {
    pub axis: String,
    pub faster: String,
    pub slower: String,
    /// The smallest factor, …
    pub low: f64,
    /// … and the largest.
    pub high: f64,
    /// The claim, as a clause.
    pub said: String,
    /// Why the run's ratio may differ, as a sentence.
    pub otherwise: String,
}

impl Shape {
    /// Whether a side of a comparison is the one that was faster; `None` if it is neither.
    fn is_faster(&self, side: &Side) -> Option<bool> {
        match side {
            Side::Value(AxisValue::Word(word)) if *word == self.faster => Some(true),
            Side::Value(AxisValue::Word(word)) if *word == self.slower => Some(false),
            _ => None,
        }
    }
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub name: String,
    /// Kurabe's operation, or the metric with many values.
    pub operation: String,
    /// Whether the horizontal value is a number of clients.
    pub x_is_clients: bool,
    /// The horizontal value, and operations per second.
    pub points: Vec<(f64, f64)>,
}

/// The results of a set; empty if it is not embedded.
pub(crate) fn load(set: &str) -> Vec<Published> {
    let files = SETS.iter().find(|(name, _)| *name == set).map_or(&[][..], |(_, files)| files);
    files.iter().filter_map(read).collect()
}

fn read((table, about): &File) -> Option<Published> {
    let about: About = serde_json::from_str(about).ok()?;
    let mut rows = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(table.as_bytes());
    let head = rows.headers().ok()?.clone();
    let mut points = Vec::new();
    for row in rows.records() {
        let row = row.ok()?;
        let field = |name: &String| row.get(head.iter().position(|head| head == name)?);
        points.extend(about.point(&field));
    }
    let x_is_clients = about.x_is_clients;
    let line = |((name, operation), points)| Line { name, operation, x_is_clients, points };
    let lines = grouped(points).into_iter().map(line).collect();
    Some(Published { about, lines })
}

impl About {
    /// The line, the operation and the point of a row.
    fn point<'a>(
        &self,
        field: &dyn Fn(&String) -> Option<&'a str>,
    ) -> Option<((String, String), (f64, f64))> {
        let columns = &self.columns;
        let number = |name: &String| field(name)?.parse::<f64>().ok();
        let operation = columns.operation.as_ref().map_or(Some(""), field)?;
        let operation = self.operations.get(operation)?.clone();
        let x = columns.x.as_ref().map_or(columns.x_is, number)? * columns.x_unit;
        let rate = if let Some(rate) = &columns.rate {
            number(rate)? * columns.rate_unit
        } else {
            let mut seconds: Vec<f64> = columns.seconds.iter().filter_map(number).collect();
            sort::by(&mut seconds, f64::total_cmp);
            let requests = columns.requests.as_ref().map_or(columns.requests_are, number)?;
            requests / seconds.get(seconds.len() / 2)?
        };
        let names: Vec<&str> = columns.line.iter().filter_map(field).collect();
        Some(((names.join(" "), operation), (x, rate)))
    }
}

/// How a target's results compare with published ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedHere {
    pub target: TargetId,
    /// By how much the value published as faster is faster here.
    pub ratio: Estimate,
    /// The additional work per request, in microseconds, for which the published ratio would hold.
    pub other_work_us: Option<Interval>,
}

/// The run's ratios compared with a published one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename = "published")]
pub struct Reproduction {
    /// What was claimed, as a clause.
    pub claim: String,
    /// The run's ratio on each target.
    pub here: Vec<PublishedHere>,
    /// The published ratio.
    pub ratio: Interval,
    /// Whether all of them agree with it.
    pub reproduced: bool,
    /// Why the run's ratio may differ, as a sentence.
    pub otherwise: String,
}

impl Reproduction {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let (language, Self { claim, otherwise, ratio: Interval { low, high }, .. }) =
            (labels.language, self);
        let claim = translated(claim, language);
        let result = |one: &PublishedHere| {
            let (target, ratio) = (labels.target(&one.target), ratio(one.ratio, language));
            let faster =
                if one.ratio.value > 1.0 { faster(one.ratio, false) } else { "no faster".to_owned() };
            say!(language, "{faster} on {target}", "{target} では {ratio}")
        };
        let work = |one: &PublishedHere| {
            let Interval { low, high } = one.other_work_us?;
            let (low, high, target) = (micros(low), micros(high), labels.target(&one.target));
            Some(say!(language, "{low} to {high} on {target}", "{target} では {low}~{high}"))
        };
        let results = listed(&self.here.iter().map(result).collect::<Vec<_>>(), language);
        let work: Vec<String> = self.here.iter().filter_map(work).collect();
        if self.reproduced {
            return say!(
                language,
                "published: {claim}. Here: {results}, which agrees.",
                "公表された結果: {claim}。ここでは {results}。一致します。",
            );
        }
        let all = listed(&work, language);
        let work = if work.is_empty() {
            String::new()
        } else {
            say!(
                language,
                " It would be {high:.1} to {low:.1} times with this much other work per request: {all}.",
                "要求ごとのほかの処理が次の時間なら {low:.1}~{high:.1} 倍になります: {all}。",
            )
        };
        say!(
            language,
            "published: {claim}. Here: {results}. {otherwise}.{work}",
            "公表された結果: {claim}。ここでは {results}。一致しません。{work}",
        )
    }
}

/// One finding for each published ratio of the experiment.
pub(super) fn findings(context: &Context<'_>) -> Vec<Reproduction> {
    let sets = context.labels.published.map(load).unwrap_or_default();
    sets.into_iter().filter_map(|set| finding(context, set.about.shape?)).collect()
}

fn finding(context: &Context<'_>, shape: Shape) -> Option<Reproduction> {
    let mut here: Vec<PublishedHere> = Vec::new();
    for verdict in context.verdicts {
        let [a, b] = [&verdict.pair.a, &verdict.pair.b].map(|side| shape.is_faster(side));
        let asked = is_speed(&verdict.pair.metric) && verdict.pair.axis == shape.axis;
        let (Some(forward), true) = (a, asked && b == a.map(|faster| !faster)) else { continue };
        let Some(target) = verdict.target.clone().filter(|_| verdict.result.is_outside()) else { continue };
        let Some(ratio) = verdict.ratio else { continue };
        let ratio = if forward { ratio } else { ratio.inverse() };
        // The smallest value of the chart axis stands for the others: with one client there is no waiting for others.
        if !here.iter().any(|known| known.target == target) {
            let other_work_us = other_work(context, verdict, &shape);
            here.push(PublishedHere { target, ratio, other_work_us });
        }
    }
    // Two intervals agree if they overlap.
    let agrees = |one: &PublishedHere| {
        one.ratio.ends().is_some_and(|(low, high)| low <= shape.high && high >= shape.low)
    };
    let reproduced = here.iter().all(agrees);
    let ratio = Interval { low: shape.low, high: shape.high };
    let (claim, otherwise) = (shape.said, shape.otherwise);
    (!here.is_empty()).then_some(Reproduction { claim, here, ratio, reproduced, otherwise })
}

/// The additional work per request, in microseconds, for which the published ratio would hold; `None` if there is
/// none.
fn other_work(context: &Context<'_>, verdict: &Verdict, shape: &Shape) -> Option<Interval> {
    let time = |cell: &CellResult| {
        let rate = cell.metric(THROUGHPUT.name)?.figure.value;
        Some(1e6 * cell.totals.as_ref()?.clients as f64 / rate)
    };
    let [a, b] = verdict.cells(context.cells)?;
    let (a, b) = (time(a)?, time(b)?);
    let (fast, slow) = if shape.is_faster(&verdict.pair.a) == Some(true) { (a, b) } else { (b, a) };
    let other = |factor: f64| (slow - factor * fast) / (factor - 1.0);
    Some(Interval { low: other(shape.high), high: other(shape.low) }).filter(|work| work.low > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_table_is_read_whole() {
        for (name, files) in SETS {
            let all = load(name);
            assert_eq!(all.len(), files.len(), "{name}");
            for (published, (table, _)) in all.iter().zip(*files) {
                let points: usize = published.lines.iter().map(|line| line.points.len()).sum();
                assert_eq!(points, table.lines().count() - 1, "{name}");
                assert!(!published.about.faults.is_empty());
                let finite = |(x, y): &(f64, f64)| *x > 0.0 && y.is_finite();
                assert!(published.lines.iter().flat_map(|line| &line.points).all(finite));
            }
        }
        assert!(load("nothing.csv").is_empty());
    }

    #[test]
    fn units_of_columns_are_converted() {
        let [network] = load("network.csv").try_into().unwrap();
        let line = network.lines.iter().find(|line| line.name == "iperf3 128 linux loopback").unwrap();
        // 20.5 Gbit/s are 2,443.8 times 1 MiB a second.
        let (buffer, rate) = line.points[5];
        assert!((buffer - 2_097_152.0).abs() < 0.5 && (rate - 2_443.8).abs() < 0.1, "{buffer} {rate}");
    }

    #[test]
    fn sum_of_dump_and_restore_is_the_time_of_all_rows() {
        let [reload] = load("reload.csv").try_into().unwrap();
        let (rows, rate) = reload.lines[0].points[0];
        assert!((rows - 29e6).abs() < 0.5 && (rows / rate - (11.0 + 94.0 * 60.0 + 24.0)).abs() < 1e-6);
    }

    #[test]
    fn five_runs_are_one_point_and_a_rate_is_taken_as_it_was_printed() {
        let [http, looped] = load("connection_cost").try_into().unwrap();
        let point = |published: &Published, name: &str| {
            published.lines.iter().find(|line| line.name == name).unwrap().points[0]
        };
        assert_eq!(point(&http, "mysql per-request default"), (100.0, 2746.81));
        let (clients, rate) = point(&looped, "mysql new each iteration inside loop");
        assert!((clients - 1.0).abs() < 1e-9 && (rate - 1e6 / 137.997).abs() < 0.01, "{rate}");
    }
}
