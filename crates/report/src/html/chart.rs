//! A panel as SVG: lines over logarithmic axes, intervals as bars, labels at the ends of lines.

use super::escape::Escaped;
use super::lines::{Line, Panel};
use super::palette::{DASHES, marker};
use super::scale::{Log, range, ticks};
use crate::format::{figure, micros, percent, short_figure, value_of};
use crate::labels::{Axis, Kind};
use crate::summary::{CellResult, Latency, MetricInfo};
use kurabe_core::axis::AxisValue;
use kurabe_core::units;
use std::fmt::Write as _;

/// The width of a panel in its own units, about the width of a phone in pixels.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 36.0;
const LEFT: f64 = 46.0;
/// The approximate width of a character of a label.
const LETTER: f64 = 6.4;
/// The maximum number of lines with labels at their ends.
const NAMED: usize = 8;

/// The value on the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum View<'a> {
    /// Operations per second: the median with its interval.
    Rate,
    /// Service time: the median, with a bar to the 99th percentile.
    Time,
    /// A metric: the median of the rounds with its interval.
    Metric(&'a MetricInfo),
}

impl<'a> View<'a> {
    pub fn unit(self) -> &'a str {
        match self {
            Self::Rate => "operations per second, median with interval",
            Self::Time => "time per operation, median with a bar to p99",
            Self::Metric(metric) => &metric.name,
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Time => "time",
            Self::Metric(_) => "metric",
        }
    }

    /// The value, and the ends of its bar.
    pub fn figure(self, cell: &CellResult) -> Option<(f64, f64, f64)> {
        match self {
            Self::Rate => {
                let rate = cell.ops_per_second?;
                Some((rate.median, rate.low.unwrap_or(rate.median), rate.high.unwrap_or(rate.median)))
            }
            // Times with a backlog grow with the trial, and those of a late generator are invalid.
            Self::Time if cell.is_overloaded() || cell.is_generator_late() => None,
            Self::Time => times(cell).map(|latency| (latency.p50, latency.p50, latency.p99)),
            Self::Metric(metric) => {
                let found = cell.metric(&metric.name)?;
                let (low, high) = (found.low.unwrap_or(found.value), found.high.unwrap_or(found.value));
                // The axis is logarithmic.
                (found.value > 0.0).then_some((found.value, low, high))
            }
        }
    }

    fn tick(self, value: f64) -> String {
        match self {
            Self::Rate => short_figure(value),
            Self::Time => micros(value),
            Self::Metric(metric) => value_of(metric.unit, value),
        }
    }
}

/// Service times; response times in an open loop.
fn times(cell: &CellResult) -> Option<Latency> {
    cell.open_loop.map(|open| open.response_us).or(cell.latency_us)
}

/// A published line: its name, and horizontal values with operations per second.
pub(crate) struct Reference<'a> {
    pub name: &'a str,
    /// Whether the horizontal value is a number of clients.
    pub x_is_clients: bool,
    pub points: &'a [(f64, f64)],
}

/// The factor by which a chart's range may exceed the values to show intervals.
const BEYOND: f64 = 100.0;

/// What all panels of an operation share.
pub(crate) struct Frame<'a> {
    pub view: View<'a>,
    pub axis: Option<&'a Axis>,
    /// The smallest and the largest value of all panels.
    pub range: (f64, f64),
    pub references: Vec<Reference<'a>>,
}

impl<'a> Frame<'a> {
    /// The frame of these panels; `None` if they have no values.
    pub fn of(
        view: View<'a>,
        axis: Option<&'a Axis>,
        panels: &[Panel<'_>],
        references: Vec<Reference<'a>>,
    ) -> Option<Self> {
        let cells = || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
        let measured: Vec<_> = cells().filter_map(|(_, cell)| view.figure(cell)).collect();
        let published = references
            .iter()
            .flat_map(|reference| reference.points.iter().map(|point| reference.figure(view, *point)));
        let figures: Vec<f64> = measured.iter().map(|(figure, ..)| *figure).chain(published).collect();
        // The interval of two rounds may span many decades; its bar ends at the edge of the chart.
        let (least, most) = range(figures.iter().copied(), 4.0)?;
        let ends =
            measured.iter().flat_map(|(_, low, high)| [low.max(least / BEYOND), high.min(most * BEYOND)]);
        let values: Vec<f64> = figures.iter().copied().chain(ends).collect();
        Some(Self { view, axis, range: range(values.iter().copied(), 4.0)?, references })
    }

    /// The values of the horizontal axis as numbers, if there are several.
    fn xs(&self) -> Option<Vec<f64>> {
        let axis = self.axis.filter(|axis| axis.varies() && axis.kind != Kind::Word)?;
        axis.sorted()
            .iter()
            .map(|value| match value {
                AxisValue::Number(n) => Some((*n as f64).max(0.5)),
                AxisValue::Word(_) => None,
            })
            .collect()
    }

    /// A panel as an SVG element.
    pub fn draw(&self, panel: &Panel<'_>, name: &str) -> String {
        match self.xs() {
            Some(xs) => self.draw_lines(panel, name, &xs),
            None => self.draw_dots(panel, name),
        }
    }

    fn draw_lines(&self, panel: &Panel<'_>, name: &str, xs: &[f64]) -> String {
        let named = panel.lines.len() <= NAMED && panel.lines.len() > 1;
        let lines = panel.lines.iter().filter(|_| named).map(|line| line.label.as_str());
        let longest = lines
            .chain(self.references.iter().map(|reference| reference.name))
            .map(|label| label.chars().count())
            .max();
        let right = longest.map_or(14.0, |letters| (letters as f64).mul_add(LETTER, 14.0).min(150.0));
        let reference_xs = self.references.iter().flat_map(|reference| reference.points).map(|(x, _)| *x);
        let all: Vec<f64> = xs.iter().copied().chain(reference_xs).collect();
        let (low, high) = range(all.iter().copied(), 2.0).unwrap_or((1.0, 10.0));
        let x = Log::new(low, high, LEFT, WIDTH - right);
        let y = Log::new(self.range.0, self.range.1, HEIGHT - BOTTOM, TOP);
        let mut svg = open(WIDTH, HEIGHT, name);
        self.vertical_grid(&mut svg, &y, WIDTH - right);
        self.horizontal_ticks(&mut svg, &x, WIDTH - right);
        let mut labels: Vec<Label> = Vec::new();
        for reference in &self.references {
            let points: Vec<(f64, f64)> = reference
                .points
                .iter()
                .map(|point| (x.at(point.0), y.at(reference.figure(self.view, *point))))
                .collect();
            // A single point is drawn as a dot.
            let drawn = match points[..] {
                [(px, py)] => format!("<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"2.5\"/>"),
                _ => format!("<polyline points=\"{}\"/>", coordinates(&points)),
            };
            let _ = write!(svg, "<g class=\"reference\">{drawn}</g>");
            labels.extend(points.last().map(|(px, py)| Label {
                text: reference.name.to_owned(),
                color: None,
                x: *px,
                y: *py,
            }));
        }
        for line in &panel.lines {
            let placed = self.line(&mut svg, line, xs, &x, &y);
            labels.extend(placed.filter(|_| named).map(|(px, py)| Label {
                text: line.label.clone(),
                color: Some(line.color),
                x: px,
                y: py,
            }));
        }
        write_labels(&mut svg, labels, WIDTH - right + 8.0);
        svg + "</svg>"
    }

    /// Draws one line and returns its end.
    fn line(&self, svg: &mut String, line: &Line<'_>, xs: &[f64], x: &Log, y: &Log) -> Option<(f64, f64)> {
        // A missing value leaves a gap.
        let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
        let mut before = None;
        let mut marks = String::new();
        for (at, cell) in &line.points {
            let (Some(value), Some((figure, low, high))) = (xs.get(*at), self.view.figure(cell)) else {
                continue;
            };
            let (px, py) = (x.at(*value), y.at(figure));
            let (top, bottom) = (y.at(high), y.at(low));
            match pieces.last_mut() {
                Some(piece) if before == at.checked_sub(1) => piece.push((px, py)),
                _ => pieces.push(vec![(px, py)]),
            }
            before = Some(*at);
            let _ = write!(
                marks,
                "<g class=\"pt\" data-tip=\"{0}\"><title>{0}</title><path class=\"bar\" d=\"M{px:.1} {top:.1}V{bottom:.1}M{1:.1} {top:.1}h6M{1:.1} {bottom:.1}h6\"/>{2}<circle class=\"hit\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"9\"/></g>",
                Escaped(&tip(&line.label, self.axis, cell)),
                px - 3.0,
                marker(line.color, px, py) + &self.least(cell, px, py, true),
            );
        }
        let dash = DASHES[line.dash % DASHES.len()];
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let _ = write!(svg, "<g class=\"line c{}\">", line.color % 8);
        for piece in &pieces {
            let _ = write!(svg, "<polyline points=\"{}\"{dash}/>", coordinates(piece));
        }
        let _ = write!(svg, "{marks}</g>");
        pieces.last().and_then(|piece| piece.last()).copied()
    }

    /// An arrow at a lower bound, in the direction of the server's capacity.
    fn least(&self, cell: &CellResult, px: f64, py: f64, upwards: bool) -> String {
        if self.view != View::Rate || !cell.is_lower_bound() {
            return String::new();
        }
        let path = if upwards {
            format!("M{px:.1} {:.1}v-9m-3 3l3 -3l3 3", py - 5.0)
        } else {
            format!("M{:.1} {py:.1}h9m-3 -3l3 3l-3 3", px + 5.0)
        };
        format!("<path class=\"bar least\" d=\"{path}\"/>")
    }

    fn vertical_grid(&self, svg: &mut String, y: &Log, right: f64) {
        let _ = write!(svg, "<text class=\"unit\" x=\"0\" y=\"10\">{}</text>", Escaped(self.view.unit()));
        for (value, label) in ticks(self.range.0, self.range.1) {
            let at = y.at(value);
            let class = if label { "grid" } else { "grid minor" };
            let _ = write!(svg, "<path class=\"{class}\" d=\"M{LEFT} {at:.1}H{right:.1}\"/>");
            if label {
                let _ = write!(
                    svg,
                    "<text class=\"tick y\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    LEFT - 6.0,
                    at + 4.0,
                    self.view.tick(value)
                );
            }
        }
    }

    /// The tested values, with as many labels as fit.
    fn horizontal_ticks(&self, svg: &mut String, x: &Log, right: f64) {
        let Some(axis) = self.axis else { return };
        let base = HEIGHT - BOTTOM;
        // Tested values are labelled first, published ones if there is space left.
        let published = self
            .references
            .iter()
            .flat_map(|reference| reference.points)
            .map(|(x, _)| AxisValue::Number(*x as u64));
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for value in axis.sorted().into_iter().chain(published) {
            let AxisValue::Number(n) = value else { continue };
            let at = x.at((n as f64).max(0.5));
            let text = axis.show(&value);
            let half = (text.chars().count() as f64).mul_add(LETTER / 2.0, 2.0);
            if taken.iter().any(|(from, to)| at + half > *from && at - half < *to) {
                continue;
            }
            taken.push((at - half, at + half));
            let _ = write!(
                svg,
                "<path class=\"axis\" d=\"M{at:.1} {base:.1}v4\"/><text class=\"tick x\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>",
                base + 16.0,
                Escaped(&text)
            );
        }
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{LEFT} {base:.1}H{right:.1}\"/><text class=\"unit\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            right,
            HEIGHT - 4.0,
            Escaped(&axis.name)
        );
    }

    /// A chart with one horizontal value: a row for each series.
    fn draw_dots(&self, panel: &Panel<'_>, name: &str) -> String {
        let rows: Vec<(String, &Line<'_>, &CellResult)> = panel
            .lines
            .iter()
            .flat_map(|line| {
                line.points.iter().map(move |(_, cell)| (row_label(self.axis, line, cell), line, *cell))
            })
            .collect();
        let longest = rows.iter().map(|(label, ..)| label.chars().count()).max().unwrap_or(0) as f64;
        let left = longest.mul_add(LETTER, 14.0).min(190.0);
        let height = (rows.len() as f64).mul_add(24.0, TOP + BOTTOM);
        let x = Log::new(self.range.0, self.range.1, left, WIDTH - 24.0);
        let base = height - BOTTOM + 4.0;
        let mut svg = open(WIDTH, height, name);
        let _ = write!(svg, "<text class=\"unit\" x=\"0\" y=\"10\">{}</text>", Escaped(self.view.unit()));
        let mut free_from = 0.0;
        for (value, label) in ticks(self.range.0, self.range.1) {
            let at = x.at(value);
            let _ = write!(svg, "<path class=\"grid\" d=\"M{at:.1} {TOP}V{base:.1}\"/>");
            let text = self.view.tick(value);
            let half = text.chars().count() as f64 * LETTER / 2.0;
            if label && at - half >= free_from {
                let _ = write!(
                    svg,
                    "<text class=\"tick x\" x=\"{at:.1}\" y=\"{:.1}\">{text}</text>",
                    base + 15.0
                );
                free_from = at + half + 6.0;
            }
        }
        for (n, (label, line, cell)) in rows.iter().enumerate() {
            let Some((figure, low, high)) = self.view.figure(cell) else { continue };
            let py = (n as f64).mul_add(24.0, TOP + 14.0);
            let (px, from, to) = (x.at(figure), x.at(low), x.at(high));
            let _ = write!(
                svg,
                "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><g class=\"line c{}\"><g class=\"pt\" data-tip=\"{4}\"><title>{4}</title><path class=\"bar\" d=\"M{from:.1} {py:.1}H{to:.1}M{from:.1} {5:.1}v6M{to:.1} {5:.1}v6\"/>{6}<circle class=\"hit\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"10\"/></g></g>",
                left - 8.0,
                py + 4.0,
                Escaped(label),
                line.color % 8,
                Escaped(&tip(&line.label, self.axis, cell)),
                py - 3.0,
                marker(line.color, px, py) + &self.least(cell, px, py, false),
            );
        }
        svg + "</svg>"
    }
}

fn row_label(axis: Option<&Axis>, line: &Line<'_>, cell: &CellResult) -> String {
    match axis.filter(|axis| axis.varies()) {
        Some(axis) => format!("{} {}", line.label, axis.show_of(&cell.axes)),
        None => line.label.clone(),
    }
}

impl Reference<'_> {
    /// The value of a published point: its rate, or the time per request of each client, in microseconds.
    fn figure(&self, view: View<'_>, (x, rate): (f64, f64)) -> f64 {
        match view {
            View::Rate => rate,
            View::Time | View::Metric(_) => 1e6 / rate * if self.x_is_clients { x } else { 1.0 },
        }
    }
}

fn open(width: f64, height: f64, name: &str) -> String {
    format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">", Escaped(name))
}

fn coordinates(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
}

struct Label {
    text: String,
    color: Option<usize>,
    x: f64,
    y: f64,
}

/// Draws labels at the ends of lines, moved apart if they overlap, each connected to its line.
fn write_labels(svg: &mut String, mut labels: Vec<Label>, x: f64) {
    const STEP: f64 = 13.0;
    labels.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut places: Vec<f64> = labels.iter().map(|label| label.y).collect();
    for n in 1..places.len() {
        places[n] = places[n].max(places[n - 1] + STEP);
    }
    // Labels moved beyond the end are moved back and move others.
    let mut most = HEIGHT - BOTTOM;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - STEP;
    }
    for (label, place) in labels.iter().zip(places) {
        let class = label.color.map_or_else(|| "reference".to_owned(), |color| format!("c{}", color % 8));
        let _ = write!(
            svg,
            "<path class=\"leader\" d=\"M{:.1} {:.1}L{:.1} {place:.1}\"/><text class=\"name {class}\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            label.x + 5.0,
            label.y,
            x - 2.0,
            place + 4.0,
            Escaped(&label.text)
        );
    }
}

/// The tooltip of a point, one fact per line.
fn tip(label: &str, axis: Option<&Axis>, cell: &CellResult) -> String {
    let mut text = label.to_owned();
    if let Some(axis) = axis {
        let _ = write!(
            text,
            ", {}",
            cell.axes.get(&axis.name).map_or_else(String::new, |value| axis.name_value(value))
        );
    }
    if let Some(rate) = cell.ops_per_second {
        let _ = write!(text, "\n{} ops/s", figure(rate.median));
        if let (Some(low), Some(high)) = (rate.low, rate.high) {
            let _ = write!(text, " ({} to {}, {} rounds)", figure(low), figure(high), cell.rounds);
        }
    }
    if let Some(found) = &cell.attribution {
        let least = if cell.is_lower_bound() { ", a lower bound" } else { "" };
        let _ = write!(text, "\nbottleneck: {}{least}", found.bottleneck.word());
    }
    if let Some(latency) = times(cell) {
        let what = if cell.open_loop.is_some() { "response " } else { "" };
        let _ = write!(
            text,
            "\n{what}p50 {}, p99 {}, max {}",
            micros(latency.p50),
            micros(latency.p99),
            micros(latency.max)
        );
    }
    if let Some(open) = cell.open_loop {
        let _ =
            write!(text, "\nbacklog {}, dropped {}", units::count(open.backlog), units::count(open.dropped));
        if let Some(service) = cell.latency_us {
            let _ = write!(text, "\nservice p99 {}", micros(service.p99));
        }
    }
    if let Some(cpu) = cell.client_cpu_us_per_op {
        let _ = write!(text, "\nclient CPU {}", micros(cpu));
        if let Some(share) = cell.verify_share {
            let _ = write!(text, ", {} of it for checking", percent(share));
        }
    }
    if let Some(cpu) = cell.server_cpu_us_per_op {
        let _ = write!(text, "\nserver CPU {}", micros(cpu));
    }
    if let Some(bytes) = cell.stored_bytes {
        let _ = write!(text, "\nstored {}", units::size(bytes));
    }
    text
}
