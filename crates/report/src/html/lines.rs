//! Assigns the series of a run to panels, colours and dashes.
//!
//! The targets get colours (or, with one target, the axis with the most values), the next axis gets dashes, and each
//! combination of the rest is a separate panel, so that no panel has too many lines.

use super::palette::{DASHES, LIGHT};
use crate::labels::Axis;
use crate::summary::{CellResult, Status, Summary};
use kurabe_core::axis::AxisValue;

/// A property that distinguishes series.
pub(crate) enum Property<'a> {
    Target,
    Axis(&'a Axis),
}

impl Property<'_> {
    fn of(&self, cell: &CellResult) -> Option<usize> {
        match self {
            Self::Target => Some(cell.target_index),
            Self::Axis(axis) => {
                let value = cell.axes.get(&axis.name)?;
                levels_of(axis).iter().position(|level| level == value)
            }
        }
    }

    /// The names of its levels, in order.
    pub fn levels(&self, summary: &Summary) -> Vec<String> {
        match self {
            Self::Target => summary.labels.targets.clone(),
            Self::Axis(axis) => levels_of(axis).iter().map(|value| axis.name_value(value)).collect(),
        }
    }

    /// The names of its levels without the name of the property.
    pub fn short_levels(&self, summary: &Summary) -> Vec<String> {
        match self {
            Self::Target => summary.labels.targets.clone(),
            Self::Axis(axis) => levels_of(axis).iter().map(|value| axis.show(value)).collect(),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Target => "target",
            Self::Axis(axis) => &axis.name,
        }
    }

    fn count(&self, summary: &Summary) -> usize {
        match self {
            Self::Target => summary.labels.targets.len(),
            Self::Axis(axis) => axis.values.len(),
        }
    }
}

fn levels_of(axis: &Axis) -> Vec<AxisValue> {
    axis.sorted()
}

/// The assignment of properties.
pub(crate) struct Shares<'a> {
    pub color: Option<Property<'a>>,
    pub dash: Option<Property<'a>>,
    pub panels: Vec<Property<'a>>,
}

/// Assigns the varying properties of a run.
pub(crate) fn shares(summary: &Summary) -> Shares<'_> {
    let labels = &summary.labels;
    let mut rest: Vec<Property<'_>> = labels.varying().map(Property::Axis).collect();
    let color = if labels.several_targets() {
        Some(Property::Target)
    } else {
        let most = (0..rest.len())
            .filter(|at| rest[*at].count(summary) <= LIGHT.len())
            .max_by_key(|at| (rest[*at].count(summary), usize::MAX - at));
        most.map(|at| rest.remove(at))
    };
    let dashed = rest.iter().position(|property| property.count(summary) <= DASHES.len());
    let dash = dashed.map(|at| rest.remove(at));
    Shares { color, dash, panels: rest }
}

/// One line of a panel.
pub(crate) struct Line<'a> {
    pub label: String,
    pub color: usize,
    pub dash: usize,
    /// The horizontal position, and the cell.
    pub points: Vec<(usize, &'a CellResult)>,
}

/// Lines with common axes.
pub(crate) struct Panel<'a> {
    /// What all its lines have in common: `compress none`; empty if there is only one panel.
    pub title: String,
    pub lines: Vec<Line<'a>>,
}

/// The panels of one operation.
pub(crate) fn panels<'a>(summary: &'a Summary, shares: &Shares<'_>, operation: &str) -> Vec<Panel<'a>> {
    let labels = &summary.labels;
    let xs = labels.chart_axis().map(Axis::sorted).unwrap_or_default();
    let mut panels: Vec<(Vec<usize>, Panel<'a>)> = Vec::new();
    let cells = summary.cells.iter().filter(|cell| cell.operation == operation && !cell.aa_control);
    for cell in cells.filter(|cell| cell.status == Status::Ok) {
        let Some(key) = shares.panels.iter().map(|p| p.of(cell)).collect::<Option<Vec<usize>>>() else {
            continue;
        };
        let place =
            |property: &Option<Property<'_>>| property.as_ref().map_or(Some(0), |property| property.of(cell));
        let (Some(color), Some(dash)) = (place(&shares.color), place(&shares.dash)) else { continue };
        let x = labels
            .chart_axis()
            .and_then(|axis| cell.axes.get(&axis.name))
            .and_then(|value| xs.iter().position(|x| x == value))
            .unwrap_or(0);
        if !panels.iter().any(|(known, _)| *known == key) {
            let title: Vec<String> = shares
                .panels
                .iter()
                .zip(&key)
                .filter_map(|(property, level)| property.levels(summary).get(*level).cloned())
                .collect();
            panels.push((key.clone(), Panel { title: title.join(", "), lines: Vec::new() }));
        }
        let Some((_, panel)) = panels.iter_mut().find(|(known, _)| *known == key) else { continue };
        if let Some(line) = panel.lines.iter_mut().find(|line| line.color == color && line.dash == dash) {
            line.points.push((x, cell));
        } else {
            let label = label(summary, shares, color, dash);
            panel.lines.push(Line { label, color, dash, points: vec![(x, cell)] });
        }
    }
    for (_, panel) in &mut panels {
        for line in &mut panel.lines {
            line.points.sort_by_key(|(x, _)| *x);
        }
    }
    panels.sort_by(|a, b| a.0.cmp(&b.0));
    panels.into_iter().map(|(_, panel)| panel).collect()
}

fn label(summary: &Summary, shares: &Shares<'_>, color: usize, dash: usize) -> String {
    let level = |property: &Option<Property<'_>>, at: usize| {
        property.as_ref().and_then(|property| property.short_levels(summary).get(at).cloned())
    };
    let parts: Vec<String> =
        [level(&shares.color, color), level(&shares.dash, dash)].into_iter().flatten().collect();
    if parts.is_empty() { summary.labels.targets.join("") } else { parts.join(" ") }
}
