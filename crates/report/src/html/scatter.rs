//! Charts of metrics that have many values in one trial: each point over its reference, on logarithmic axes of one
//! scale, with the diagonal, on which both are equal.

use super::chart::{WIDTH, svg};
use super::palette::{Px, coordinates, marker};
use super::scale::{Log, range, ticks};
use crate::cell::MetricInfo;
use crate::finding::published::{Line, Published};
use crate::format::{capital, value_of};
use crate::group::grouped;
use crate::summary::Summary;
use kurabe_core::metric::{Points, Source};
use maud::{Markup, html};

/// The side of the square in which points are drawn, in units of the chart.
const SIDE: f64 = 300.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 26.0;

/// The least value that is drawn: a logarithmic axis has no zero.
const MIN: f64 = 1.0;

/// A section for each metric with points, with the published points of the same metric.
pub(super) fn sections(summary: &Summary, published: &[Published]) -> Markup {
    let lines = || published.iter().flat_map(|published| &published.lines);
    html! {
        @for metric in &summary.labels.scatters {
            @let published: Vec<&Line> = lines().filter(|line| line.operation == metric.name).collect();
            (section(summary, metric, &published))
        }
    }
}

/// The points of one cell, and the number of its target.
type Series<'a> = (usize, &'a Points);

fn section(summary: &Summary, metric: &MetricInfo, published: &[&Line]) -> Markup {
    let Source::Scatter(reference) = metric.source else { return html! {} };
    let series = summary.cells.iter().filter(|cell| cell.is_reported()).filter_map(|cell| {
        let points = cell.points.iter().find(|points| points.metric == metric.name)?;
        Some((summary.labels.varying_of(&cell.axes).join(", "), (cell.target_index, points)))
    });
    let panels: Vec<(String, Vec<Series<'_>>)> = grouped(series);
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
            @if summary.labels.several_targets() {
                ul class="legend" {
                    li class="kind" { "target" }
                    @for (n, name) in summary.labels.targets.iter().enumerate() {
                        li {
                            svg viewBox="0 0 34 12" aria-hidden="true" {
                                g class={ "line c" (n % 8) } { (marker(n, 17.0, 6.0)) }
                            }
                            (name)
                        }
                    }
                }
            }
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
    series: &[Series<'_>],
    published: &[&Line],
    (low, high): (f64, f64),
) -> Markup {
    let (right, base) = (LEFT + SIDE, TOP + SIDE);
    let (x, y) = (Log::new(low, high, LEFT, right), Log::new(low, high, base, TOP));
    let diagonal = [(LEFT, base), (right, TOP)];
    let ticks: Vec<f64> = ticks(low, high).into_iter().filter(|tick| tick.1).map(|tick| tick.0).collect();
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
