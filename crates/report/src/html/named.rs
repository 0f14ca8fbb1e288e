//! Charts of named figures, for an experiment whose question they answer: before those of rates and times.

use super::chart::{Frame, View};
use super::escape::Escaped;
use super::legend;
use super::lines::{panels, shares};
use crate::format::capital;
use crate::summary::Summary;
use kurabe_core::figure::CHARTED;
use std::fmt::Write as _;

/// A section for each such figure that the run has.
pub(super) fn charts(page: &mut String, summary: &Summary) {
    let shares = shares(summary);
    let axis = summary.labels.chart_axis();
    for name in CHARTED {
        let mut drawn = String::new();
        for operation in &summary.labels.operations {
            let panels = panels(summary, &shares, &operation.name);
            let Some(frame) = Frame::of(View::Named(name), axis, &panels, Vec::new()) else { continue };
            for panel in &panels {
                let title = format!("{name} {}", panel.title);
                let title = title.trim_end();
                let _ = writeln!(
                    drawn,
                    "<figure><figcaption>{}</figcaption>{}</figure>",
                    Escaped(&panel.title),
                    frame.draw(panel, title)
                );
            }
        }
        if drawn.is_empty() {
            continue;
        }
        let over =
            axis.filter(|axis| axis.varies()).map_or_else(String::new, |axis| format!(" by {}", axis.name));
        let about = kurabe_core::figure::about(name).unwrap_or_default();
        let _ = writeln!(
            page,
            "<section>\n<h2>{}{}</h2>\n<p class=\"soft\">{}.</p>\n{}<div class=\"panels\">\n{drawn}</div>\n</section>",
            capital(name),
            Escaped(&over),
            Escaped(&capital(about)),
            legend(summary, &shares)
        );
    }
}
