//! A panel as SVG: lines over logarithmic axes, intervals as bars, labels at the ends of lines.

use crate::cell::{CellResult, MetricInfo};
use crate::finding::published;
use crate::format::{figure, micros, percent, short_figure, value_of};
use crate::html::lines::{Label, Line, Panel, labels_at_ends};
use crate::html::plot::{DASHES, Log, Px, coordinates, log_ticks, marker, range};
use crate::labels::{Axis, Kind};
use crate::messages::{Language, Message};
use crate::table;
use crate::wording::say;
use kurabe_core::axis::AxisValue;
use kurabe_core::load::RATE;
use kurabe_core::units;
use kurabe_stats::Estimate;
use maud::{Markup, html};
use std::fmt::Write as _;

/// The width of a panel in its own units, about the width of a phone in pixels.
pub(super) const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 36.0;
const LEFT: f64 = 46.0;
/// The approximate width of a character of a label.
const LETTER: f64 = 6.4;
/// The distance between the points of neighbouring lines at the same value, so that their bars do not overlap.
const APART: f64 = 2.4;
/// The width of the values beside a chart of rows.
const VALUES: f64 = 62.0;
/// The maximum number of lines with labels at their ends.
const NAMED: usize = 8;

/// The factor by which a chart's range may exceed the values to show intervals.
const BEYOND: f64 = 100.0;

/// What all panels of an operation share.
pub(crate) struct Frame<'a> {
    pub view: View<'a>,
    pub axis: Option<&'a Axis>,
    /// The smallest and the largest value of all panels.
    pub range: (f64, f64),
    pub references: Vec<&'a published::Line>,
    /// The rates, by target, from which on the response time is at least twice that of the lowest rate.
    pub knees: Vec<(usize, f64)>,
    /// The language of its labels.
    pub language: Language,
    /// Whether points have their facts as a tooltip. The script shows them in all charts of the cell.
    pub tips: bool,
}

impl<'a> Frame<'a> {
    /// The frame of these panels; `None` if they have no values.
    pub fn of(
        view: View<'a>,
        axis: Option<&'a Axis>,
        panels: &[Panel<'_>],
        references: Vec<&'a published::Line>,
        language: Language,
    ) -> Option<Self> {
        let cells = || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
        let measured: Vec<_> = cells().filter_map(|(_, cell)| view.figure(cell)).collect();
        let published = references.iter().flat_map(|reference| {
            reference.points.iter().map(move |point| figure_of(reference, view, *point))
        });
        let figures: Vec<f64> = measured.iter().map(|(figure, ..)| *figure).chain(published).collect();
        // The interval of two rounds may span many decades; its bar ends at the edge of the chart.
        let (least, most) = range(figures.iter().copied(), 4.0)?;
        let ends =
            measured.iter().flat_map(|(_, low, high)| [low.max(least / BEYOND), high.min(most * BEYOND)]);
        let values: Vec<f64> = figures.iter().copied().chain(ends).collect();
        Some(Self {
            view,
            axis,
            range: range(values.iter().copied(), 4.0)?,
            references,
            knees: Vec::new(),
            language,
            tips: true,
        })
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
    pub fn draw(&self, panel: &Panel<'_>, name: &str) -> Markup {
        match self.xs() {
            Some(xs) => self.draw_lines(panel, name, &xs),
            None => self.draw_dots(panel, name),
        }
    }

    fn draw_lines(&self, panel: &Panel<'_>, name: &str, xs: &[f64]) -> Markup {
        let named = panel.lines.len() <= NAMED && panel.lines.len() > 1;
        let lines = panel.lines.iter().filter(|_| named).map(|line| line.label.as_str());
        let lines = lines.chain(self.references.iter().map(|reference| reference.name.as_str()));
        let longest = lines.map(|label| label.chars().count()).max();
        let right = longest.map_or(14.0, |letters| (letters as f64).mul_add(LETTER, 14.0).min(150.0));
        let reference_xs = self.references.iter().flat_map(|reference| &reference.points).map(|(x, _)| *x);
        let all: Vec<f64> = xs.iter().copied().chain(reference_xs).collect();
        let (low, high) = range(all.iter().copied(), 2.0).unwrap_or((1.0, 10.0));
        let x = Log::new(low, high, LEFT, WIDTH - right);
        let y = Log::new(self.range.0, self.range.1, HEIGHT - BOTTOM, TOP);
        let mut labels: Vec<Label> = Vec::new();
        let mut label = |text: &str, color: Option<usize>, at: Option<&(f64, f64)>| {
            labels.extend(at.map(|(x, y)| Label { text: text.to_owned(), color, x: *x, y: *y }));
        };
        let references: Vec<Vec<(f64, f64)>> = self
            .references
            .iter()
            .map(|reference| {
                let place =
                    |point: &(f64, f64)| (x.at(point.0), y.at(figure_of(reference, self.view, *point)));
                let points: Vec<(f64, f64)> = reference.points.iter().map(place).collect();
                label(&reference.name, None, points.last());
                points
            })
            .collect();
        let apart = if panel.lines.len() <= NAMED { APART } else { 0.0 };
        let middle = panel.lines.len().saturating_sub(1) as f64 / 2.0;
        let lines: Vec<Markup> = panel
            .lines
            .iter()
            .enumerate()
            .map(|(n, line)| {
                let (drawn, end) = self.line(line, xs, &x, &y, (n as f64 - middle) * apart);
                label(&line.label, Some(line.color), end.as_ref().filter(|_| named));
                drawn
            })
            .collect();
        svg(
            HEIGHT,
            name,
            &html! {
                (self.vertical_grid(&y, WIDTH - right))
                (self.horizontal_ticks(&x, WIDTH - right))
                @for points in references {
                    g class="reference" {
                        // A single point is drawn as a dot.
                        @if let [(px, py)] = points[..] {
                            circle cx=(Px(px)) cy=(Px(py)) r="2.5" {}
                        } @else {
                            polyline points=(coordinates(&points)) {}
                        }
                    }
                }
                @for line in lines { (line) }
                @for line in &panel.lines { (self.knee(line, xs, &x)) }
                (labels_at_ends(labels, WIDTH - right + 8.0, HEIGHT - BOTTOM))
            },
        )
    }

    /// Marks of a line over offered load: where its response time bends, and from where on the load was not served.
    fn knee(&self, line: &Line<'_>, xs: &[f64], x: &Log) -> Markup {
        let load = self.axis.is_some_and(|axis| axis.name == RATE.name) && self.view == View::Time;
        let Some((_, first)) = line.points.first().filter(|_| load) else { return html! {} };
        let knee = self.knees.iter().find(|(target, _)| *target == first.target.at()).map(|(_, rate)| *rate);
        let over = line.points.iter().find(|(_, cell)| cell.is_overloaded());
        let over = over.and_then(|(at, _)| xs.get(*at).copied());
        let say = |message: Message| message.text(self.language);
        let marks = [(knee, "knee", say(Message::Knee)), (over, "knee over", say(Message::Overload))];
        html! {
            g class={ "line c" (line.color % 8) } {
                @for (rate, class, word) in marks {
                    @if let Some(rate) = rate {
                        @let at = x.at(rate);
                        path class=(class) d={ "M" (Px(at)) " " (TOP) "V" (Px(HEIGHT - BOTTOM)) } {
                            title { (line.label) ": " (word) " " (units::count(rate as u64)) "/s" }
                        }
                        text class="unit" x=(Px(at + 3.0)) y=(Px(11.0f64.mul_add((line.color % 8) as f64, TOP + 9.0))) {
                            (word) " " (short_figure(rate)) "/s"
                        }
                    }
                }
            }
        }
    }

    /// One line, moved aside by so many pixels, and its end.
    fn line(
        &self,
        line: &Line<'_>,
        xs: &[f64],
        x: &Log,
        y: &Log,
        aside: f64,
    ) -> (Markup, Option<(f64, f64)>) {
        // A missing value leaves a gap.
        let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
        let mut tails: Vec<Vec<(f64, f64)>> = Vec::new();
        let mut before = None;
        let mut marks = Vec::new();
        for (at, cell) in &line.points {
            let (Some(value), Some((figure, low, high))) = (xs.get(*at), self.view.figure(cell)) else {
                continue;
            };
            let (px, py) = (x.at(*value) + aside, y.at(figure));
            let (top, bottom) = (y.at(high), y.at(low));
            match (pieces.last_mut(), tails.last_mut()) {
                (Some(piece), Some(tail)) if before.is_some() && before == at.checked_sub(1) => {
                    piece.push((px, py));
                    tail.push((px, top));
                }
                _ => {
                    pieces.push(vec![(px, py)]);
                    tails.push(vec![(px, top)]);
                }
            }
            before = Some(*at);
            let bar = format!("M{} {}h6m-3 0V{}m-3 0h6", Px(px - 3.0), Px(top), Px(bottom));
            marks.push(self.point(line, cell, (px, py), &bar, true));
        }
        let dash = DASHES[line.dash % DASHES.len()];
        let drawn = html! {
            g class={ "line c" (line.color % 8) } data-line=(line.label) {
                @for piece in &pieces {
                    polyline points=(coordinates(piece)) stroke-dasharray=[(!dash.is_empty()).then_some(dash)] {}
                }
                @if self.view == View::Time {
                    @for tail in tails.iter().filter(|tail| tail.len() > 1) {
                        polyline class="p99" points=(coordinates(tail)) {}
                    }
                }
                @for mark in marks { (mark) }
            }
        };
        (drawn, pieces.last().and_then(|piece| piece.last()).copied())
    }

    /// A point with its tooltip and its bar. An arrow at a lower bound has the direction of the server's capacity.
    fn point(
        &self,
        line: &Line<'_>,
        cell: &CellResult,
        (px, py): (f64, f64),
        bar: &str,
        upwards: bool,
    ) -> Markup {
        let least = (self.view == View::Rate && cell.is_lower_bound()).then(|| {
            if upwards {
                format!("M{} {}v-9m-3 3l3-3l3 3", Px(px), Px(py - 5.0))
            } else {
                format!("M{} {}h9m-3-3l3 3l-3 3", Px(px + 5.0), Px(py))
            }
        });
        html! {
            g class="pt" data-c=(cell.index) {
                @if self.tips { title { (tip(&line.label, self.axis, cell, self.language)) } }
                path class="bar" d=(bar) {}
                (marker(line.color, px, py))
                @if let Some(least) = least { path class="bar least" d=(least) {} }
            }
        }
    }

    fn vertical_grid(&self, y: &Log, right: f64) -> Markup {
        let (mut lines, mut minor) = (String::new(), String::new());
        for (value, label) in log_ticks(self.range.0, self.range.1) {
            let path = if label { &mut lines } else { &mut minor };
            // Writing to a String cannot fail.
            let _ = write!(path, "M{} {}H{}", Px(LEFT), Px(y.at(value)), Px(right));
        }
        html! {
            (unit(self.view, self.language))
            path class="grid" d=(lines) {}
            @if !minor.is_empty() { path class="grid minor" d=(minor) {} }
            g class="tick y" {
                @for (value, _) in log_ticks(self.range.0, self.range.1).into_iter().filter(|(_, label)| *label) {
                    text x=(Px(LEFT - 6.0)) y=(Px(y.at(value) + 4.0)) { (self.view.tick(value)) }
                }
            }
        }
    }

    /// The tested values, with as many labels as fit.
    fn horizontal_ticks(&self, x: &Log, right: f64) -> Markup {
        let Some(axis) = self.axis else { return html! {} };
        let base = HEIGHT - BOTTOM;
        // Tested values are labelled first, published ones if there is space left.
        let published = self.references.iter().flat_map(|reference| &reference.points);
        let published = published.map(|(x, _)| AxisValue::Number(*x as u64));
        let mut taken: Vec<(f64, f64)> = Vec::new();
        let mut shown: Vec<(f64, String)> = Vec::new();
        for value in axis.sorted().into_iter().chain(published) {
            let AxisValue::Number(n) = value else { continue };
            let at = x.at((n as f64).max(0.5));
            let text = axis.show(&value);
            let half = (text.chars().count() as f64).mul_add(LETTER / 2.0, 2.0);
            if taken.iter().all(|(from, to)| at + half <= *from || at - half >= *to) {
                taken.push((at - half, at + half));
                shown.push((at, text));
            }
        }
        let mut line = format!("M{} {}H{}", Px(LEFT), Px(base), Px(right));
        for (at, _) in &shown {
            // Writing to a String cannot fail.
            let _ = write!(line, "M{} {}v4", Px(*at), Px(base));
        }
        html! {
            g class="tick x" { @for (at, text) in shown { text x=(Px(at)) y=(Px(base + 16.0)) { (text) } } }
            path class="axis" d=(line) {}
            text class="unit" x=(Px(right)) y=(Px(HEIGHT - 4.0)) text-anchor="end" { (axis.name) }
        }
    }

    /// A chart with one horizontal value: a row for each series.
    fn draw_dots(&self, panel: &Panel<'_>, name: &str) -> Markup {
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
        let x = Log::new(self.range.0, self.range.1, left, WIDTH - VALUES);
        let base = height - BOTTOM + 4.0;
        let mut free_from = 0.0;
        let grid: Vec<(f64, Option<String>)> = log_ticks(self.range.0, self.range.1)
            .into_iter()
            .map(|(value, label)| {
                let (at, text) = (x.at(value), self.view.tick(value));
                let half = text.chars().count() as f64 * LETTER / 2.0;
                let fits = label && at - half >= free_from;
                if fits {
                    free_from = at + half + 6.0;
                }
                (at, fits.then_some(text))
            })
            .collect();
        // A line without a label says nothing.
        let labelled = grid.iter().filter(|(_, text)| text.is_some());
        let lines = labelled.fold(String::new(), |mut lines, (at, _)| {
            let _ = write!(lines, "M{} {}V{}", Px(*at), Px(TOP), Px(base));
            lines
        });
        let row = |n: usize, label: &str, line: &Line<'_>, cell: &CellResult| {
            let (figure, low, high) = self.view.figure(cell)?;
            let py = (n as f64).mul_add(24.0, TOP + 14.0);
            let px = x.at(figure);
            let bar = format!("M{} {}v6m0-3H{}m0-3v6", Px(x.at(low)), Px(py - 3.0), Px(x.at(high)));
            Some(html! {
                text class="name" x=(Px(left - 8.0)) y=(Px(py + 4.0)) text-anchor="end" { (label) }
                g class={ "line c" (line.color % 8) } { (self.point(line, cell, (px, py), &bar, false)) }
                text x=(Px(WIDTH)) y=(Px(py + 4.0)) text-anchor="end" { (self.view.tick(figure)) }
            })
        };
        svg(
            height,
            name,
            &html! {
                (unit(self.view, self.language))
                path class="grid" d=(lines) {}
                g class="tick x" {
                    @for (at, text) in grid {
                        @if let Some(text) = text { text x=(Px(at)) y=(Px(base + 15.0)) { (text) } }
                    }
                }
                @for (n, (label, line, cell)) in rows.iter().enumerate() {
                    @if let Some(row) = row(n, label, line, cell) { (row) }
                }
            },
        )
    }
}

fn row_label(axis: Option<&Axis>, line: &Line<'_>, cell: &CellResult) -> String {
    match axis.filter(|axis| axis.varies()) {
        Some(axis) => format!("{} {}", line.label, axis.show_of(&cell.axes)),
        None => line.label.clone(),
    }
}

pub(super) fn svg(height: f64, name: &str, content: &Markup) -> Markup {
    html! { svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(name) { (content) } }
}

/// The unit of the vertical axis, above the chart.
fn unit(view: View<'_>, language: Language) -> Markup {
    html! { text class="unit" x="0" y="10" { (view.unit(language)) } }
}

/// The value on the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum View<'a> {
    /// Operations per second: the mean of the rounds with its interval.
    Rate,
    /// Service time: the median, with a bar to the 99th percentile and a line of these.
    Time,
    /// A metric: the mean of the rounds with its interval.
    Metric(&'a MetricInfo),
}

impl<'a> View<'a> {
    pub fn unit(self, language: Language) -> &'a str {
        match self {
            Self::Rate => Message::RateUnit.text(language),
            Self::Time => Message::TimeUnit.text(language),
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
        let ends =
            |Estimate { value, low, high }: Estimate| (value, low.unwrap_or(value), high.unwrap_or(value));
        match self {
            Self::Rate => cell.ops_per_second.map(ends),
            // Times with a backlog grow with the trial, and those of a late generator are invalid.
            Self::Time if cell.is_overloaded() || cell.is_generator_late() => None,
            Self::Time => cell.times().map(|latency| (latency.p50, latency.p50, latency.p99)),
            // The axis is logarithmic.
            Self::Metric(metric) => cell
                .metric(&metric.name)
                .filter(|found| found.figure.value > 0.0)
                .map(|found| ends(found.figure)),
        }
    }

    pub fn tick(self, value: f64) -> String {
        match self {
            Self::Rate => short_figure(value),
            Self::Time => micros(value),
            Self::Metric(metric) => value_of(metric.unit, value),
        }
    }
}

/// The value of a published point: its rate, or the time per request of each client, in microseconds.
fn figure_of(reference: &published::Line, view: View<'_>, (x, rate): (f64, f64)) -> f64 {
    match view {
        View::Rate => rate,
        View::Time | View::Metric(_) => 1e6 / rate * if reference.x_is_clients { x } else { 1.0 },
    }
}

/// The tooltip of a point, one fact per line.
fn tip(label: &str, axis: Option<&Axis>, cell: &CellResult, language: Language) -> String {
    let mut lines = Vec::new();
    let value = axis.map(|axis| cell.axes.get(&axis.name).map_or_else(String::new, |at| axis.name_value(at)));
    lines.push(
        [label.to_owned()].into_iter().chain(value).collect::<Vec<_>>().join(Message::Comma.text(language)),
    );
    if let Some(rate) = cell.ops_per_second {
        let (value, rounds) = (figure(rate.value), cell.rounds);
        let ends = rate.ends().map_or_else(String::new, |(low, high)| {
            let (low, high) = (figure(low), figure(high));
            say!(language, " ({low} to {high}, {rounds} rounds)", "({low}~{high}、{rounds} ラウンド)")
        });
        lines.push(say!(language, "{value} ops/s{ends}", "{value} 回/秒{ends}"));
    }
    if let Some(found) = &cell.attribution {
        let (word, is_least) = (found.bottleneck.message().text(language), cell.is_lower_bound());
        let least = if is_least { say!(language, ", a lower bound", "(下限)") } else { String::new() };
        lines.push(say!(language, "bottleneck: {word}{least}", "ボトルネック: {word}{least}"));
    }
    if let Some(latency) = cell.times() {
        let response = say!(language, "response ", "応答時間 ");
        let what = if cell.open_loop.is_some() { response } else { String::new() };
        let [p50, max] = [latency.p50, latency.max].map(micros);
        let (p95, p99) = (table::p95(cell, latency.p95), table::p99(cell, latency.p99));
        lines.push(say!(
            language,
            "{what}p50 {p50}, p95 {p95}, p99 {p99}, max {max}",
            "{what}p50 {p50}、p95 {p95}、p99 {p99}、最大 {max}",
        ));
    }
    if let Some(open) = cell.open_loop {
        let [backlog, dropped] = [open.backlog, open.dropped].map(units::count);
        lines.push(say!(
            language,
            "backlog {backlog}, dropped {dropped}",
            "未処理 {backlog}、取りやめ {dropped}",
        ));
        if let Some(service) = cell.latency_us {
            let p99 = table::p99(cell, service.p99);
            lines.push(say!(language, "service p99 {p99}", "サービス時間 p99 {p99}"));
        }
    }
    if let Some(cpu) = cell.client_cpu_us_per_op {
        let cpu = micros(cpu);
        let checking = cell.verify_share.map(percent).map_or_else(String::new, |share| {
            say!(language, ", {share} of it for checking", "(うち照合 {share})")
        });
        lines.push(say!(language, "client CPU {cpu}{checking}", "クライアントの CPU {cpu}{checking}"));
    }
    if let Some(cpu) = cell.server_cpu_us_per_op {
        let cpu = micros(cpu);
        lines.push(say!(language, "server CPU {cpu}", "サーバーの CPU {cpu}"));
    }
    if let Some(bytes) = cell.stored_bytes {
        let bytes = units::size(bytes);
        lines.push(say!(language, "stored {bytes}", "保存した大きさ {bytes}"));
    }
    lines.join("\n")
}
