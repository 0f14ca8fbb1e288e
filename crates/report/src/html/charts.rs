//! The sections with charts: rates and times, and the experiment's metrics, of which primary ones come first and the others
//! are folded.

use super::items;
use crate::catalogue;
use crate::cell::MetricInfo;
use crate::finding::published::{Line, Published};
use crate::finding::{Finding, Rates};
use crate::format::{capital, value_of};
use crate::group::grouped;
use crate::html::chart::{Frame, View, WIDTH, svg};
use crate::html::lines::{Panel, Series};
use crate::html::plot::{Log, Px, coordinates, log_ticks, marker, range};
use crate::labels::OperationLabels;
use crate::messages::Message;
use crate::summary::Summary;
use crate::wording::{metric_of, say};
use kurabe_core::load::Load;
use kurabe_core::metric::{Points, Source};
use maud::{Markup, html};

/// The charts of rates and times, with the source of what is published beside them.
pub(super) fn of_speed(summary: &Summary, series: &Series<'_>, published: &[Published]) -> Markup {
    let language = summary.labels.language;
    let axis = summary.labels.chart_axis();
    let all = &series.operations;
    if all.is_empty() {
        return html! {};
    }
    let references = |operation: &OperationLabels| {
        let lines = published.iter().flat_map(|published| &published.lines);
        lines.filter(|line| line.operation == operation.name).collect()
    };
    let figures = |operation: &OperationLabels, panels: &[Panel<'_>], heading: Option<&str>| {
        let frames: Vec<Frame<'_>> = [View::Rate, View::Time]
            .into_iter()
            .filter_map(|view| Frame::of(view, axis, panels, references(operation), language))
            .enumerate()
            // Both views of a cell have the same facts.
            .map(|(n, frame)| Frame { knees: knees(summary, &operation.name), tips: n == 0, ..frame })
            .collect();
        html! {
            @for panel in panels {
                figure {
                    @if let Some(heading) = heading { h3 { (heading) } }
                    @if !panel.title.is_empty() { figcaption { (panel.title) } }
                    @for frame in &frames {
                        @let name = format!("{} {}", operation.plural, panel.title);
                        @let name = format!("{}: {}", name.trim_end(), frame.view.unit(language));
                        div class=(frame.view.class()) { (frame.draw(panel, &name)) }
                    }
                }
            }
        }
    };
    // Operations with one panel each are placed side by side.
    let together = all.iter().all(|(_, panels)| panels.len() == 1);
    // A given rate is not a result; the response times are.
    let given = summary.cells.iter().any(|cell| matches!(Load::of(&cell.axes), Load::Open(_)));
    html! {
        section {
            h2 {
                @if let Some(axis) = axis.filter(|axis| axis.varies()) {
                    (Message::ChartsBy.with(language, &[("axis", &axis.name)]))
                } @else {
                    (Message::Charts.text(language))
                }
            }
            input type="radio" name="view" id="view-rate" checked[!given];
            input type="radio" name="view" id="view-time" checked[given];
            div class="switch" {
                label for="view-rate" { (Message::Rate.text(language)) }
                label for="view-time" { (Message::TimePerOperation.text(language)) }
            }
            (series.legend)
            p class="soft" { (Message::ChartLegend.text(language)) }
            div class="charts" {
                @if together {
                    div class="panels" {
                        @for (operation, panels) in all {
                            (figures(operation, panels, Some(&summary.labels.begun(&operation.plural))))
                        }
                    }
                } @else {
                    @for (operation, panels) in all {
                        h3 { (summary.labels.begun(&operation.plural)) }
                        div class="panels" { (figures(operation, panels, None)) }
                    }
                }
            }
            @for published in published { (about(published)) }
        }
    }
}

/// The rates, by target, at which the findings say that an operation's response times bend.
fn knees(summary: &Summary, operation: &str) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    for statement in &summary.findings {
        let Finding::Rates(Rates::ResponseTimes { scope, bend: Some(rate), .. }) = &statement.finding else {
            continue;
        };
        if scope.operations.iter().any(|name| name == operation) {
            found.extend(scope.targets.iter().map(|target| (target.at(), *rate as f64)));
        }
    }
    found
}

/// The source of the published results, and their known problems.
fn about(published: &Published) -> Markup {
    let about = &published.about;
    html! {
        h3 { "Published results: " (about.title) }
        p class="soft" { (about.provenance) " " (about.hardware) "." }
        p class="soft" { "Known problems of these results:" }
        (items(&about.faults))
    }
}

/// Whether a metric answers the question, directly or by its slope.
fn is_asked(summary: &Summary, metric: &MetricInfo) -> bool {
    let slope = |other: &MetricInfo| matches!(other.source, Source::Slope(of) if of == metric.name);
    metric.primary || summary.metrics.iter().any(|other| other.primary && slope(other))
}

/// A section for each metric that answers the question, before the charts of rates and times.
pub(super) fn primary(summary: &Summary, series: &Series<'_>) -> Markup {
    let asked = own(summary).filter(|metric| is_asked(summary, metric));
    html! {
        @for (heading, chart) in asked.filter_map(|metric| chart(summary, series, metric)) {
            section { h2 { (heading) } (chart) }
        }
    }
}

/// The others.
pub(super) fn further(summary: &Summary, series: &Series<'_>) -> Markup {
    let others = own(summary).filter(|metric| !is_asked(summary, metric));
    let drawn: Vec<_> = others.filter_map(|metric| chart(summary, series, metric)).collect();
    html! {
        @if !drawn.is_empty() {
            section {
                h2 { (Message::FurtherMetrics.text(summary.labels.language)) }
                details {
                    @let count = drawn.len().to_string();
                    summary { (Message::ChartCount.with(summary.labels.language, &[("count", &count)])) }
                    @for (heading, chart) in drawn { h3 { (heading) } (chart) }
                }
            }
        }
    }
}

fn own(summary: &Summary) -> impl Iterator<Item = &MetricInfo> {
    // Each cell has a value that can be drawn. Costs may be negative.
    let is_drawn = |source: Source| source.is_per_cell() && !matches!(source, Source::Cost(_));
    summary.metrics.iter().filter(move |metric| !metric.is_usual() && is_drawn(metric.source))
}

/// The heading and the panels of a metric; `None` without values.
fn chart(summary: &Summary, series: &Series<'_>, metric: &MetricInfo) -> Option<(String, Markup)> {
    let axis = summary.labels.chart_axis();
    let mut drawn = Vec::new();
    for (operation, panels) in &series.operations {
        let Some(frame) = Frame::of(View::Metric(metric), axis, panels, Vec::new(), summary.labels.language)
        else {
            continue;
        };
        drawn.extend(panels.iter().map(|panel| {
            let what = metric_of(&metric.name, &operation.plural, summary.labels.language);
            let name = format!("{what} {}", panel.title);
            html! { figure { figcaption { (panel.title) } (frame.draw(panel, name.trim_end())) } }
        }));
    }
    if drawn.is_empty() {
        return None;
    }
    let language = summary.labels.language;
    let about = catalogue::find(&metric.about, language).filter(|about| !about.is_empty());
    let about = about.map_or_else(String::new, |about| {
        let about = capital(&about);
        say!(language, "{about}.", "{about}。")
    });
    let markup = html! {
        p class="soft" { (about) }
        (series.legend)
        div class="panels" { @for figure in drawn { (figure) } }
    };
    let (labels, what) = (&summary.labels, metric.name.as_str());
    let heading = axis.filter(|axis| axis.varies()).map_or_else(
        || what.to_owned(),
        |axis| Message::By.with(labels.language, &[("what", what), ("axis", &axis.name)]),
    );
    Some((labels.begun(&heading), markup))
}

/// The side of the square in which points are drawn, in units of the chart.
const SIDE: f64 = 300.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 26.0;

/// The least value that is drawn: a logarithmic axis has no zero.
const MIN: f64 = 1.0;

/// A section for each metric with points, with the published points of the same metric.
pub(super) fn scatters(summary: &Summary, series: &Series<'_>, published: &[Published]) -> Markup {
    let lines = || published.iter().flat_map(|published| &published.lines);
    html! {
        @for metric in &summary.labels.scatters {
            @let published: Vec<&Line> = lines().filter(|line| line.operation == metric.name).collect();
            (section(summary, metric, &series.colors, &published))
        }
    }
}

/// The points of one cell, and the number of its target.
type Scattered<'a> = (usize, &'a Points);

fn section(summary: &Summary, metric: &MetricInfo, colors: &Markup, published: &[&Line]) -> Markup {
    let Source::Scatter(reference) = metric.source else { return html! {} };
    let series = summary.cells.iter().filter(|cell| cell.is_reported()).filter_map(|cell| {
        let points = cell.points.iter().find(|points| points.metric == metric.name)?;
        Some((summary.labels.varying_of(&cell.axes).join(", "), (cell.target.at(), points)))
    });
    let panels: Vec<(String, Vec<Scattered<'_>>)> = grouped(series);
    if panels.is_empty() {
        return html! {};
    }
    let values = panels.iter().flat_map(|(_, series)| series).flat_map(|(_, points)| &points.points);
    let values = values.chain(published.iter().flat_map(|line| &line.points));
    let values: Vec<f64> = values.flat_map(|(x, y)| [x.max(MIN), y.max(MIN)]).collect();
    let Some(ends) = range(values.iter().copied(), 10.0) else { return html! {} };
    html! {
        section {
            h2 { (capital(&metric.name)) " over " (reference) }
            p class="soft" {
                (capital(&metric.about)) ". On the dotted diagonal both are equal. Points of the last round; values below "
                (value_of(metric.unit, MIN)) " are drawn there."
                @if !published.is_empty() { " Circles with a name are published values." }
            }
            @if summary.labels.several_targets() { (colors) }
            div class="panels" {
                @for (title, series) in &panels {
                    figure {
                        @if !title.is_empty() { figcaption { (title) } }
                        (panel(metric, reference, title, series, published, ends))
                    }
                }
            }
        }
    }
}

fn panel(
    metric: &MetricInfo,
    reference: &str,
    title: &str,
    series: &[Scattered<'_>],
    published: &[&Line],
    (low, high): (f64, f64),
) -> Markup {
    let (right, base) = (LEFT + SIDE, TOP + SIDE);
    let (x, y) = (Log::new(low, high, LEFT, right), Log::new(low, high, base, TOP));
    let diagonal = [(LEFT, base), (right, TOP)];
    let ticks: Vec<f64> = log_ticks(low, high).into_iter().filter(|tick| tick.1).map(|tick| tick.0).collect();
    let name = format!("{} over {reference} {title}", metric.name);
    svg(
        base + 36.0,
        name.trim_end(),
        &html! {
            text class="unit" x="0" y="10" { (metric.name) }
            @for tick in ticks {
                @let (across, up) = (x.at(tick), y.at(tick));
                path class="grid" d={ "M" (LEFT) " " (Px(up)) "H" (Px(right)) "M" (Px(across)) " " (TOP) "V" (Px(base)) } {}
                text class="tick y" x=(Px(LEFT - 6.0)) y=(Px(up + 4.0)) { (value_of(metric.unit, tick)) }
                text class="tick x" x=(Px(across)) y=(Px(base + 16.0)) { (value_of(metric.unit, tick)) }
            }
            path class="axis" d={ "M" (LEFT) " " (Px(base)) "H" (Px(right)) } {}
            g class="reference diagonal" { polyline points=(coordinates(&diagonal)) {} }
            @for (target, points) in series {
                g class={ "line points c" (target % 8) } opacity="0.7" {
                    @for (reference, value) in &points.points {
                        (marker(*target, x.at(reference.max(MIN)), y.at(value.max(MIN))))
                    }
                }
            }
            @for line in published {
                @for (reference, value) in &line.points {
                    @let (across, up) = (x.at(reference.max(MIN)), y.at(value.max(MIN)));
                    g class="reference" { circle cx=(Px(across)) cy=(Px(up)) r="4.5" {} }
                    text class="reference" x=(Px(across - 8.0)) y=(Px(up + 4.0)) text-anchor="end" { (line.name) }
                }
            }
            text class="unit" x=(Px(right.min(WIDTH))) y=(Px(base + 32.0)) text-anchor="end" { (reference) }
        },
    )
}
