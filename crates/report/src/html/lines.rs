//! Assigns the series of a run to panels, colours and dashes.
//!
//! The targets get colours (or, with one target, the axis with the most values), the next axis gets dashes, and each
//! combination of the rest is a separate panel, so that no panel has too many lines.

use crate::cell::{CellResult, reported};
use crate::group::grouped;
use crate::html::plot::{DASHES, LIGHT, Px, marker};
use crate::labels::{Axis, OperationLabels};
use crate::messages::{Language, Message};
use crate::summary::Summary;
use kurabe_core::axis::AxisValue;
use kurabe_core::sort;
use maud::{Markup, html};

/// A property that distinguishes cells.
pub(super) enum Property<'a> {
    Operation(&'a [OperationLabels]),
    Target,
    Axis(&'a Axis),
}

impl Property<'_> {
    /// Its level in a cell.
    pub fn of(&self, cell: &CellResult) -> Option<usize> {
        match self {
            Self::Operation(all) => all.iter().position(|one| one.name == cell.operation),
            Self::Target => Some(cell.target.at()),
            Self::Axis(axis) => {
                let value = cell.axes.get(&axis.name)?;
                axis.sorted().iter().position(|level| level == value)
            }
        }
    }

    /// Its levels in order, as `show` names those of an axis.
    pub fn levels(&self, summary: &Summary, show: fn(&Axis, &AxisValue) -> String) -> Vec<String> {
        match self {
            Self::Operation(all) => all.iter().map(|operation| operation.name.clone()).collect(),
            Self::Target => summary.labels.targets.clone(),
            Self::Axis(axis) => axis.sorted().iter().map(|value| show(axis, value)).collect(),
        }
    }

    pub fn name(&self, language: Language) -> &str {
        match self {
            Self::Operation(_) => Message::Operation.text(language),
            Self::Target => Message::Target.text(language),
            Self::Axis(axis) => &axis.name,
        }
    }

    fn count(&self, summary: &Summary) -> usize {
        match self {
            Self::Operation(all) => all.len(),
            Self::Target => summary.labels.targets.len(),
            Self::Axis(axis) => axis.values.len(),
        }
    }
}

/// The series of the charts of a page: assigned once, and the same in each chart.
pub(crate) struct Series<'a> {
    shares: Shares<'a>,
    /// The operations with results, each with its panels.
    pub operations: Vec<(&'a OperationLabels, Vec<Panel<'a>>)>,
    /// The legend of colours.
    pub colors: Markup,
    /// The legend of colours and dashes.
    pub legend: Markup,
}

impl<'a> Series<'a> {
    pub fn new(summary: &'a Summary) -> Self {
        let shares = Shares::new(summary);
        let operations = summary.labels.operations.iter();
        let operations = operations.map(|operation| (operation, panels(summary, &shares, &operation.name)));
        Self {
            operations: operations.filter(|(_, panels)| !panels.is_empty()).collect(),
            colors: legend_of_colors(summary, &shares),
            legend: legend(summary, &shares),
            shares,
        }
    }

    /// The colour of a cell, by its number.
    pub fn color_of(&self, cell: &CellResult) -> usize {
        self.shares.color.as_ref().and_then(|color| color.of(cell)).unwrap_or(0) % 8
    }
}

/// The assignment of properties.
struct Shares<'a> {
    color: Option<Property<'a>>,
    dash: Option<Property<'a>>,
    panels: Vec<Property<'a>>,
}

impl<'a> Shares<'a> {
    /// Assigns the varying properties of a run.
    fn new(summary: &'a Summary) -> Self {
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
        Self { color, dash, panels: rest }
    }
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

fn panels<'a>(summary: &'a Summary, shares: &Shares<'_>, operation: &str) -> Vec<Panel<'a>> {
    let chart = summary.labels.chart_axis();
    let xs = chart.map(Axis::sorted).unwrap_or_default();
    let point = |cell: &'a CellResult| {
        let key = shares.panels.iter().map(|property| property.of(cell)).collect::<Option<Vec<usize>>>()?;
        let level = |property: &Option<Property<'_>>| property.as_ref().map_or(Some(0), |one| one.of(cell));
        let value = chart.and_then(|axis| cell.axes.get(&axis.name));
        let x = value.and_then(|value| xs.iter().position(|x| x == value)).unwrap_or(0);
        Some((key, ((level(&shares.color)?, level(&shares.dash)?), (x, cell))))
    };
    let mut panels = grouped(reported(&summary.cells, operation).filter_map(point));
    sort::by(&mut panels, |a, b| a.0.cmp(&b.0));
    let panels = panels.into_iter().map(|(key, points)| {
        let levels = shares.panels.iter().zip(&key);
        let title: Vec<String> = levels
            .filter_map(|(property, level)| property.levels(summary, Axis::name_value).get(*level).cloned())
            .collect();
        let lines = grouped(points).into_iter().map(|((color, dash), mut points)| {
            sort::by_key(&mut points, |(x, _)| *x);
            Line { label: label(summary, shares, color, dash), color, dash, points }
        });
        Panel { title: title.join(", "), lines: lines.collect() }
    });
    panels.collect()
}

fn label(summary: &Summary, shares: &Shares<'_>, color: usize, dash: usize) -> String {
    let level = |property: &Option<Property<'_>>, at: usize| {
        property.as_ref().and_then(|property| property.levels(summary, Axis::show).get(at).cloned())
    };
    let parts: Vec<String> =
        [level(&shares.color, color), level(&shares.dash, dash)].into_iter().flatten().collect();
    if parts.is_empty() { summary.labels.targets.join("") } else { parts.join(" ") }
}

const LINE: &str = "1,6 33,6";

/// The legend of colours only.
fn legend_of_colors(summary: &Summary, shares: &Shares<'_>) -> Markup {
    let color = |n: usize| {
        html! { g class={ "line c" (n % 8) } { polyline points=(LINE) {} (marker(n, 17.0, 6.0)) } }
    };
    html! { @if let Some(property) = &shares.color { (entries(summary, property, &color)) } }
}

/// The legend of colours and dashes.
fn legend(summary: &Summary, shares: &Shares<'_>) -> Markup {
    let dash = |n: usize| {
        html! { g class="line" { polyline points=(LINE) stroke-dasharray=(DASHES[n % DASHES.len()]) {} } }
    };
    html! {
        (legend_of_colors(summary, shares))
        @if let Some(property) = &shares.dash { (entries(summary, property, &dash)) }
    }
}

fn entries(summary: &Summary, property: &Property<'_>, sample: &dyn Fn(usize) -> Markup) -> Markup {
    html! {
        ul class="legend" {
            li class="kind" { (property.name(summary.labels.language)) }
            @for (n, level) in property.levels(summary, Axis::show).iter().enumerate() {
                li { svg viewBox="0 0 34 12" aria-hidden="true" { (sample(n)) } (level) }
            }
        }
    }
}

pub(super) struct Label {
    pub text: String,
    pub color: Option<usize>,
    pub x: f64,
    pub y: f64,
}

/// Labels at the ends of lines, moved apart if they overlap, each connected to its line.
pub(super) fn labels_at_ends(mut labels: Vec<Label>, x: f64, bottom: f64) -> Markup {
    const STEP: f64 = 13.0;
    sort::by(&mut labels, |a, b| a.y.total_cmp(&b.y));
    let mut places: Vec<f64> = labels.iter().map(|label| label.y).collect();
    for n in 1..places.len() {
        places[n] = places[n].max(places[n - 1] + STEP);
    }
    // Labels moved beyond the end are moved back and move others.
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - STEP;
    }
    html! {
        @for (label, place) in labels.iter().zip(places) {
            @let class = label.color.map_or_else(|| "reference".to_owned(), |color| format!("c{}", color % 8));
            @let leader = format!("M{} {}L{} {}", Px(label.x + 5.0), Px(label.y), Px(x - 2.0), Px(place));
            path class="leader" data-line=(label.text) d=(leader) {}
            text class={ "name " (class) } data-line=(label.text) x=(Px(x)) y=(Px(place + 4.0)) { (label.text) }
        }
    }
}
