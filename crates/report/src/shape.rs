//! Our figures held against the shape of published ones: a sentence that says whether it was seen again, and where not,
//! why, and in which application it would be.

use crate::comparison::{Comparison, Sides};
use crate::format::{list, micros};
use crate::phrase::HowMuch;
use crate::published::{Shape, load};
use crate::summary::{CellFigures, VerdictResult};
use crate::labels::{Axis, Labels};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_stats::PairedRatio;
use std::fmt::Write as _;

/// What the published figures of a run's experiment say of its own, a sentence or two for each shape that they have.
pub(crate) fn remarks(labels: &Labels, comparisons: &[Comparison], cells: &[CellFigures]) -> Vec<String> {
    let shapes = labels.published.map(load).unwrap_or_default().into_iter().filter_map(|set| set.about.shape);
    shapes.filter_map(|shape| remark(labels, comparisons, cells, &shape)).collect()
}

/// One target's part: its name, by how much the faster value was faster, and the other work of a request that would make
/// the published factors of it.
struct Found {
    target: String,
    ratio: PairedRatio,
    work: Option<(f64, f64)>,
}

fn remark(labels: &Labels, comparisons: &[Comparison], cells: &[CellFigures], shape: &Shape) -> Option<String> {
    let at = labels.axes.iter().position(|axis| axis.name == shape.axis)?;
    let mut found: Vec<Found> = Vec::new();
    for comparison in comparisons {
        let Sides::Levels { target, axis, a, b } = &comparison.sides else { continue };
        let is = |value: &AxisValue, name: &str| labels.axes[*axis].show(value) == name;
        // Where no difference was seen there is no factor to speak of.
        let Some(ratio) = comparison.ratio.filter(|_| comparison.result != VerdictResult::Indistinguishable)
        else {
            continue;
        };
        let ratio = match (
            is(a, &shape.faster) && is(b, &shape.slower),
            is(b, &shape.faster) && is(a, &shape.slower),
        ) {
            (true, _) => ratio,
            (_, true) => ratio.inverse(),
            _ => continue,
        };
        let name = labels.targets.get(*target)?;
        // The least horizontal value stands for the others: with one client nothing waits for another.
        if *axis == at && !found.iter().any(|known| known.target == *name) {
            let time = |value: &str| time(labels, cells, comparison, *target, &labels.axes[at], value);
            let work = time(&shape.faster).zip(time(&shape.slower)).map(|(fast, slow)| {
                let other = |factor: f64| (slow - factor * fast) / (factor - 1.0);
                (other(shape.high), other(shape.low))
            });
            found.push(Found { target: name.clone(), ratio, work });
        }
    }
    if found.is_empty() {
        return None;
    }
    let within = |found: &Found| (shape.low..=shape.high).contains(&found.ratio.ratio);
    let told: Vec<String> = found
        .iter()
        .map(|found| {
            let how = HowMuch::of(&found.ratio);
            let amount = match (found.ratio.ratio > 1.0, how.factor) {
                (true, true) => format!("{} as fast", how.amount),
                (true, false) => format!("{} faster", how.amount),
                (false, _) => "no faster".to_owned(),
            };
            format!("{amount} on {}", found.target)
        })
        .collect();
    let mut text = format!("Published: {}. Here: {}", shape.said, list(&told));
    if found.iter().all(within) {
        text.push_str(", which is the published shape.");
        return Some(text);
    }
    let applications: Vec<String> = found
        .iter()
        .filter_map(|found| found.work.map(|work| (found, work)))
        .filter(|(_, (least, _))| *least > 0.0)
        .map(|(found, (least, most))| format!("{} to {} on {}", micros(least), micros(most), found.target))
        .collect();
    // Writing to a String cannot fail.
    let _ = write!(text, ". {}", shape.otherwise);
    if !applications.is_empty() {
        let (low, high) = (shape.low, shape.high);
        let _ = write!(
            text,
            ". With so much other work in each request it would be {high} to {low} times: {}",
            list(&applications)
        );
    }
    text.push('.');
    Some(text)
}

/// The time of one transaction of one client with this value of the axis, in microseconds.
fn time(
    labels: &Labels,
    cells: &[CellFigures],
    comparison: &Comparison,
    target: usize,
    axis: &Axis,
    value: &str,
) -> Option<f64> {
    let value = axis.values.iter().find(|known| axis.show(known) == value)?;
    let mut wanted = comparison.at.values().clone();
    wanted.insert(axis.name.clone(), value.clone());
    let wanted = Cell::new(wanted);
    let cell = cells.iter().find(|cell| {
        cell.target_index == target
            && cell.operation == comparison.operation
            && !cell.baseline_repeat
            && wanted.values().iter().all(|(name, value)| cell.axes.get(name) == Some(value))
    })?;
    let clients = match (labels.chart_axis(), &comparison.x) {
        (Some(chart), Some(AxisValue::Number(clients))) if chart.name == "clients" => *clients as f64,
        _ => 1.0,
    };
    Some(1e6 * clients / cell.ops_per_second?.median)
}
