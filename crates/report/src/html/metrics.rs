//! Charts of an experiment's metrics: primary ones first, the others folded.

use super::chart::Frame;
use super::lines::{Shares, legend, panels, shares};
use super::view::View;
use crate::cell::MetricInfo;
use crate::format::capital;
use crate::messages::Message;
use crate::summary::Summary;
use crate::wording::metric_of;
use kurabe_core::metric::Source;
use maud::{Markup, html};

/// Whether a metric answers the question, directly or by its slope.
fn is_asked(summary: &Summary, metric: &MetricInfo) -> bool {
    let slope = |other: &MetricInfo| matches!(other.source, Source::Slope(of) if of == metric.name);
    metric.primary || summary.metrics.iter().any(|other| other.primary && slope(other))
}

/// A section for each metric that answers the question, before the charts of rates and times.
pub(super) fn primary(summary: &Summary) -> Markup {
    let shares = shares(summary);
    let asked = own(summary).filter(|metric| is_asked(summary, metric));
    html! {
        @for (heading, chart) in asked.filter_map(|metric| chart(summary, &shares, metric)) {
            section { h2 { (heading) } (chart) }
        }
    }
}

/// The others.
pub(super) fn further(summary: &Summary) -> Markup {
    let shares = shares(summary);
    let others = own(summary).filter(|metric| !is_asked(summary, metric));
    let drawn: Vec<_> = others.filter_map(|metric| chart(summary, &shares, metric)).collect();
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
    summary.metrics.iter().filter(|metric| !metric.is_usual() && is_drawn(metric.source))
}

/// Whether each cell has a value that can be drawn. Costs may be negative.
fn is_drawn(source: Source) -> bool {
    source.is_per_cell() && !matches!(source, Source::Cost(_))
}

/// The heading and the panels of a metric; `None` without values.
fn chart(summary: &Summary, shares: &Shares<'_>, metric: &MetricInfo) -> Option<(String, Markup)> {
    let axis = summary.labels.chart_axis();
    let mut drawn = Vec::new();
    for operation in &summary.labels.operations {
        let panels = panels(summary, shares, &operation.name);
        let Some(frame) = Frame::of(View::Metric(metric), axis, &panels, Vec::new(), summary.labels.language)
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
    let about = if metric.about.is_empty() { String::new() } else { capital(&metric.about) + "." };
    let markup = html! {
        p class="soft" { (about) }
        (legend(summary, shares))
        div class="panels" { @for figure in drawn { (figure) } }
    };
    let (labels, what) = (&summary.labels, metric.name.as_str());
    let heading = axis.filter(|axis| axis.varies()).map_or_else(
        || what.to_owned(),
        |axis| Message::By.with(labels.language, &[("what", what), ("axis", &axis.name)]),
    );
    Some((labels.begun(&heading), markup))
}
