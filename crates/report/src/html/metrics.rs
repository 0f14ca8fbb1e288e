//! Charts of an experiment's metrics: primary ones first, the others folded.

use super::chart::{Frame, View};
use super::escape::Escaped;
use super::legend;
use super::lines::{Shares, panels, shares};
use crate::format::capital;
use crate::summary::{MetricInfo, Summary};
use kurabe_core::metric::Source;
use std::fmt::Write as _;

/// Whether a metric answers the question, directly or by its slope.
fn is_asked(summary: &Summary, metric: &MetricInfo) -> bool {
    let slope = |other: &MetricInfo| matches!(other.source, Source::Slope(of) if of == metric.name);
    metric.primary || summary.metrics.iter().any(|other| other.primary && slope(other))
}

/// A section for each metric that answers the question, before the charts of rates and times.
pub(super) fn primary(page: &mut String, summary: &Summary) {
    let shares = shares(summary);
    let asked = own(summary).filter(|metric| is_asked(summary, metric));
    for drawn in asked.filter_map(|metric| chart(summary, &shares, metric, "h2")) {
        let _ = writeln!(page, "<section>\n{drawn}</section>");
    }
}

/// The others.
pub(super) fn further(page: &mut String, summary: &Summary) {
    let shares = shares(summary);
    let others = own(summary).filter(|metric| !is_asked(summary, metric));
    let drawn: Vec<String> = others.filter_map(|metric| chart(summary, &shares, metric, "h3")).collect();
    if !drawn.is_empty() {
        let _ = writeln!(
            page,
            "<section>\n<h2>Further metrics</h2>\n<details>\n<summary>{} charts</summary>\n{}</details>\n</section>",
            drawn.len(),
            drawn.concat()
        );
    }
}

fn own(summary: &Summary) -> impl Iterator<Item = &MetricInfo> {
    summary.metrics.iter().filter(|metric| !metric.is_usual() && metric.source == Source::Trial)
}

fn chart(summary: &Summary, shares: &Shares<'_>, metric: &MetricInfo, heading: &str) -> Option<String> {
    let axis = summary.labels.chart_axis();
    let mut drawn = String::new();
    for operation in &summary.labels.operations {
        let panels = panels(summary, shares, &operation.name);
        let Some(frame) = Frame::of(View::Metric(metric), axis, &panels, Vec::new()) else { continue };
        for panel in &panels {
            let name = format!("{} of {} {}", metric.name, operation.plural, panel.title);
            let _ = writeln!(
                drawn,
                "<figure><figcaption>{}</figcaption>{}</figure>",
                Escaped(&panel.title),
                frame.draw(panel, name.trim_end())
            );
        }
    }
    if drawn.is_empty() {
        return None;
    }
    let over =
        axis.filter(|axis| axis.varies()).map_or_else(String::new, |axis| format!(" by {}", axis.name));
    let about = if metric.about.is_empty() { String::new() } else { capital(&metric.about) + "." };
    Some(format!(
        "<{heading}>{}{}</{heading}>\n<p class=\"soft\">{}</p>\n{}<div class=\"panels\">\n{drawn}</div>\n",
        Escaped(&capital(&metric.name)),
        Escaped(&over),
        Escaped(&about),
        legend(summary, shares)
    ))
}
