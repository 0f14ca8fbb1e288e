//! Bottlenecks: one finding for each operation, target and bottleneck.

use super::Context;
use crate::attribution::{Attribution, Bottleneck, Confidence};
use crate::finding::{Finding, Scope, Trials};
use crate::group::grouped;
use crate::summary::{CellResult, reported};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::cpus::CPUS;
use kurabe_core::sort;

/// Each finding has the evidence of the strongest cell.
pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for operation in &context.labels.operations {
        for target in &context.labels.names {
            let cells = reported(context.cells, &operation.name).filter(|cell| cell.target == *target);
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
pub(super) fn limits_of_scaling(context: &Context<'_>) -> Vec<Finding> {
    let labels = context.labels;
    let reported = context.cells.iter().filter(|cell| cell.is_reported() && !cell.aa_control);
    let rows = grouped(reported.filter_map(|cell| {
        let Some(AxisValue::Number(count)) = cell.axes.get(CPUS.name) else { return None };
        let mut others = cell.axes.values().clone();
        others.remove(CPUS.name);
        Some(((cell.operation.clone(), cell.target.clone(), others), (*count, cell.is_lower_bound())))
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
            let scope = Scope { operations: vec![operation], targets: vec![target], at, axes };
            Some(Trials::ClientLimitsScaling { scope, from, known }.into())
        })
        .collect()
}

fn finding(
    context: &Context<'_>,
    operation: &str,
    target: &str,
    bottleneck: Bottleneck,
    cells: &[(&CellResult, &Attribution)],
) -> Option<Finding> {
    let (_, most) = cells.iter().min_by_key(|(_, found)| found.confidence == Confidence::Low)?;
    let (first, _) = cells.first()?;
    let labels = context.labels;
    let values = |axis: &crate::labels::Axis| {
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
    let axes =
        Cell::new(shared.filter_map(|axis| Some((axis.name.clone(), first.axes.get(&axis.name)?.clone()))));
    let at: Vec<AxisValue> = labels.chart_axis().map(values).unwrap_or_default();
    let here = |cell: &&CellResult| cell.operation == operation && cell.target == target && !cell.aa_control;
    let planned: Vec<&CellResult> = context.cells.iter().filter(here).collect();
    let within = |cell: &CellResult| {
        let chart = labels.chart_axis().and_then(|axis| cell.axes.get(&axis.name));
        chart.is_none_or(|value| at.contains(value))
            && axes.values().iter().all(|(axis, value)| cell.axes.get(axis) == Some(value))
    };
    // A scope lists either all of its cells' values or none.
    let exact = planned.iter().filter(|cell| within(cell)).count() == cells.len();
    let (at, axes) = if exact { (at, axes) } else { (Vec::new(), Cell::default()) };
    let found = Trials::Bottleneck {
        scope: Scope { operations: vec![operation.to_owned()], targets: vec![target.to_owned()], at, axes },
        exact,
        bottleneck,
        confidence: most.confidence,
        evidence: most.evidence.clone(),
        cells: cells.len() as u32,
        of: planned.len() as u32,
    };
    Some(found.into())
}
