//! Bottlenecks: one finding for each operation, target and bottleneck.

use crate::attribution::{Attribution, Bottleneck, Confidence, Evidence};
use crate::cell::{CellResult, reported};
use crate::finding::Context;
use crate::group::grouped;
use crate::labels::{Axis, Labels, Scope};
use crate::messages::Language;
use crate::wording::{likely, many, noun, of_cells, say};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::cpus::CPUS;
use kurabe_core::sort;
use serde::Serialize;

/// The bottlenecks of cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Bottlenecks {
    /// The bottleneck of the scope's cells, with the evidence of one of them. `exact`: the scope contains these cells
    /// and no others; otherwise it has no values.
    Bottleneck {
        scope: Scope,
        exact: bool,
        bottleneck: Bottleneck,
        confidence: Confidence,
        evidence: Evidence,
        cells: u32,
        of: u32,
    },
    /// From this number of the server's processors on, the client of the scope's cells was saturated and not the server.
    /// `known`: the largest number with which the server was not limited by the client; `None` if there is none.
    ClientLimitsScaling { scope: Scope, from: u64, known: Option<u64> },
}

impl Bottlenecks {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let language = labels.language;
        match self {
            Self::Bottleneck { scope, exact, bottleneck, confidence, evidence, cells, of } => {
                let what = labels.results_of(scope);
                let part = if *exact { String::new() } else { of_cells(*cells, *of, language) };
                let one = if *cells > 1 { " of one of them" } else { "" };
                let limit = limited_by(*bottleneck, *confidence, language);
                let evidence = evidence.line(language);
                say!(
                    language,
                    "{what}{part}: {limit}. Evidence{one}: {evidence}.",
                    "{what}{part}: {limit}根拠: {evidence}。"
                )
            }
            Self::ClientLimitsScaling { scope, from, known } => {
                let what = labels.results_of(scope);
                let beyond = known.map_or_else(String::new, |known| {
                    let processors = many(known, "processor", "processors");
                    say!(language, " beyond {processors}", "{known} 個を超える")
                });
                let processors = many(*from, "processor", "processors");
                say!(
                    language,
                    "{what}: from {processors} of the server on, the client stopped scaling and not the server. How the server \
                     scales{beyond} is unknown: use a machine with more processors for the client.",
                    "{what}: サーバーのプロセッサー {from} 個からは、サーバーでなくクライアントが頭打ちです。{beyond}サーバーの伸びは\
                     わかりません。クライアントにもっと多くのプロセッサーを使ってください。",
                )
            }
        }
    }
}

/// The bottleneck as a predicate; in Japanese as sentences.
fn limited_by(bottleneck: Bottleneck, confidence: Confidence, language: Language) -> String {
    let (likely, noun) = (likely(confidence, language), noun(bottleneck, language));
    match bottleneck {
        Bottleneck::Unknown => say!(language, "bottleneck unknown", "ボトルネックは不明です。"),
        Bottleneck::Load => say!(language, "the given rate was kept up", "与えられた速さを保ちました。"),
        Bottleneck::Latency => {
            say!(language, "{likely}limited by round-trip time", "ボトルネックは{likely}{noun} です。")
        }
        Bottleneck::ClientCpu => say!(
            language,
            "the bottleneck is {likely}{noun}; the result is a lower bound",
            "ボトルネックは{likely}{noun} です。結果は下限です。"
        ),
        _ => say!(language, "the bottleneck is {likely}{noun}", "ボトルネックは{likely}{noun} です。"),
    }
}

/// Each finding has the evidence of the strongest cell.
pub(super) fn findings(context: &Context<'_>) -> Vec<Bottlenecks> {
    let mut findings = Vec::new();
    for operation in &context.labels.operations {
        for target in 0..context.targets.len() {
            let cells = reported(context.cells, &operation.name).filter(|cell| cell.target.at() == target);
            let attributed = cells.filter_map(|cell| Some((cell, cell.attribution.as_ref()?)));
            let mut found = grouped(attributed.map(|(cell, found)| (found.bottleneck, (cell, found))));
            sort::by_key(&mut found, |(bottleneck, _)| *bottleneck);
            for (bottleneck, cells) in found {
                findings.extend(finding(context, &operation.name, target, bottleneck, &cells));
            }
        }
    }
    findings
}

/// One finding for each row of cells that differ in the number of the server's processors only, if the client was
/// saturated with the largest ones.
pub(super) fn limits_of_scaling(context: &Context<'_>) -> Vec<Bottlenecks> {
    let labels = context.labels;
    let reported = context.cells.iter().filter(|cell| cell.is_reported() && !cell.aa_control);
    let rows = grouped(reported.filter_map(|cell| {
        let Some(AxisValue::Number(count)) = cell.axes.get(CPUS.name) else { return None };
        let mut others = cell.axes.values().clone();
        others.remove(CPUS.name);
        Some(((cell.operation.clone(), cell.target.at(), others), (*count, cell.is_lower_bound())))
    }));
    rows.into_iter()
        .filter_map(|((operation, target, others), mut row)| {
            row.sort_unstable();
            let limited = row.iter().rev().take_while(|(_, by_client)| *by_client).count();
            // A single number of processors scales nothing.
            let (from, _) = *row[row.len() - limited..].first().filter(|_| row.len() > 1)?;
            let known = row[..row.len() - limited].last().map(|(count, _)| *count);
            let chart = labels.chart_axis().filter(|axis| axis.varies());
            let at = chart.and_then(|axis| others.get(&axis.name)).cloned().into_iter().collect();
            let varying = |name: &String| labels.varying().any(|axis| axis.name == *name);
            let axes = Cell::new(others.into_iter().filter(|(name, _)| varying(name)));
            let scope =
                Scope { operations: vec![operation], targets: vec![labels.ids[target].clone()], at, axes };
            Some(Bottlenecks::ClientLimitsScaling { scope, from, known })
        })
        .collect()
}

fn finding(
    context: &Context<'_>,
    operation: &str,
    target: usize,
    bottleneck: Bottleneck,
    cells: &[(&CellResult, &Attribution)],
) -> Option<Bottlenecks> {
    let (_, most) = cells.iter().min_by_key(|(_, found)| found.confidence == Confidence::Low)?;
    let (first, _) = cells.first()?;
    let labels = context.labels;
    let values = |axis: &Axis| {
        axis.sorted()
            .into_iter()
            .filter(|value| cells.iter().any(|(cell, _)| cell.axes.get(&axis.name) == Some(value)))
            .collect()
    };
    // Values of other axes are included if these cells have only one.
    let shared = labels.varying().filter(|axis| {
        let value = first.axes.get(&axis.name);
        cells.iter().all(|(cell, _)| cell.axes.get(&axis.name) == value)
    });
    let axes = Axis::values_of(shared, &first.axes);
    let at: Vec<AxisValue> = labels.chart_axis().map(values).unwrap_or_default();
    let here =
        |cell: &&CellResult| cell.operation == operation && cell.target.at() == target && !cell.aa_control;
    let planned: Vec<&CellResult> = context.cells.iter().filter(here).collect();
    let within = |cell: &CellResult| {
        let chart = labels.chart_axis().and_then(|axis| cell.axes.get(&axis.name));
        chart.is_none_or(|value| at.contains(value))
            && axes.values().iter().all(|(axis, value)| cell.axes.get(axis) == Some(value))
    };
    // A scope lists either all of its cells' values or none.
    let exact = planned.iter().filter(|cell| within(cell)).count() == cells.len();
    let (at, axes) = if exact { (at, axes) } else { (Vec::new(), Cell::default()) };
    Some(Bottlenecks::Bottleneck {
        scope: Scope {
            operations: vec![operation.to_owned()],
            targets: vec![labels.ids[target].clone()],
            at,
            axes,
        },
        exact,
        bottleneck,
        confidence: most.confidence,
        evidence: most.evidence.clone(),
        cells: cells.len() as u32,
        of: planned.len() as u32,
    })
}
