//! The report as one HTML page: no network, light and dark, readable on a phone, on paper and without scripts.

mod chart;
mod escape;
mod lines;
mod metrics;
mod palette;
mod scale;
mod sections;

use crate::finding::Section;
use crate::format::{capital, timestamp};
use crate::published::{self, Published};
use crate::summary::Summary;
use chart::{Frame, Reference, View};
use escape::Escaped;
use kurabe_core::load::Load;
use lines::{Shares, panels, shares};
use palette::{DARK, DASHES, LIGHT, PAGE, marker, properties};
use std::fmt::Write as _;

/// What goes onto the page beside the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether to lay the figures that others published under the charts, with their provenance and known faults,
    /// where the experiment has such figures.
    pub published: bool,
}

/// The page as text.
pub fn render(summary: &Summary, options: &Options) -> String {
    let published =
        summary.labels.published.filter(|_| options.published).map(published::load).unwrap_or_default();
    let title = format!("{}: {}", capital(&summary.experiment), summary.labels.targets.join(", "));
    let mut page = String::with_capacity(64 * 1024);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"generator\" content=\"Kurabe\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n",
        Escaped(&title),
        style()
    );
    if let Some(question) = &summary.question {
        let _ = writeln!(page, "<p class=\"question\">{}</p>", Escaped(question));
    }
    let _ = writeln!(
        page,
        "<p class=\"meta\">Run {} · {} · {} · Kurabe {}</p>\n</header>\n<main>",
        Escaped(&summary.run),
        timestamp(summary.began),
        crate::template::rounds(summary.rounds),
        Escaped(&summary.kurabe)
    );
    sections::verdict(&mut page, summary);
    metrics::primary(&mut page, summary);
    charts(&mut page, summary, &published);
    metrics::further(&mut page, summary);
    sections::list_of(&mut page, summary, Section::Detail, "In detail");
    sections::figures(&mut page, summary);
    sections::engine(&mut page, summary);
    sections::list_of(&mut page, summary, Section::Bottleneck, "Bottlenecks");
    sections::lacking(&mut page, summary);
    sections::basis(&mut page, summary);
    sections::targets(&mut page, summary);
    sections::setup(&mut page, summary);
    let _ = write!(
        page,
        "</main>\n<footer>Made by Kurabe {} from its own record of the run; the page needs no network.</footer>\n<script>\n{}</script>\n</body>\n</html>\n",
        Escaped(&summary.kurabe),
        include_str!("script.js")
    );
    page
}

/// The style sheet with the colours of both modes.
fn style() -> String {
    include_str!("style.css")
        .replace("@LIGHT@", &properties(&LIGHT))
        .replace("@DARK@", &properties(&DARK))
        .replace("@PAGE-LIGHT@", PAGE[0])
        .replace("@PAGE-DARK@", PAGE[1])
}

fn charts(page: &mut String, summary: &Summary, published: &[Published]) {
    let shares = shares(summary);
    let axis = summary.labels.chart_axis();
    let mut drawn = String::new();
    let all: Vec<_> = summary
        .labels
        .operations
        .iter()
        .map(|operation| (operation, panels(summary, &shares, &operation.name)))
        .filter(|(_, panels)| !panels.is_empty())
        .collect();
    // Operations with one panel each stand side by side.
    let together = all.iter().all(|(_, panels)| panels.len() == 1);
    if together {
        drawn.push_str("<div class=\"panels\">\n");
    }
    for (operation, panels) in &all {
        let heading = Escaped(&operation.plural).to_string();
        let heading = capital(&heading);
        if !together {
            let _ = writeln!(drawn, "<h3>{heading}</h3>\n<div class=\"panels\">");
        }
        let frames: Vec<Frame<'_>> = [View::Rate, View::Time]
            .into_iter()
            .filter_map(|view| Frame::of(view, axis, panels, references(published, &operation.name)))
            .collect();
        for panel in panels {
            drawn.push_str("<figure>");
            if together {
                let _ = write!(drawn, "<h3>{heading}</h3>");
            }
            if !panel.title.is_empty() {
                let _ = write!(drawn, "<figcaption>{}</figcaption>", Escaped(&panel.title));
            }
            for frame in &frames {
                let name = format!("{} {}: {}", operation.plural, panel.title, frame.view.unit());
                let _ =
                    write!(drawn, "<div class=\"{}\">{}</div>", frame.view.class(), frame.draw(panel, &name));
            }
            drawn.push_str("</figure>\n");
        }
        if !together {
            drawn.push_str("</div>\n");
        }
    }
    if all.is_empty() {
        return;
    }
    if together {
        drawn.push_str("</div>\n");
    }
    let over =
        axis.filter(|axis| axis.varies()).map_or_else(String::new, |axis| format!(" by {}", axis.name));
    // A rate that was given is no finding: how soon it was answered is.
    let given = summary.cells.iter().any(|cell| matches!(Load::of(&cell.axes), Load::Open(_)));
    let (rate, time) = if given { ("", " checked") } else { (" checked", "") };
    let _ = write!(
        page,
        "<section>\n<h2>Charts{}</h2>\n<input type=\"radio\" name=\"view\" id=\"view-rate\"{rate}><input type=\"radio\" name=\"view\" id=\"view-time\"{time}>\n\
         <div class=\"switch\"><label for=\"view-rate\">Rate</label><label for=\"view-time\">Time per operation</label></div>\n{}<div class=\"charts\">\n{drawn}</div>\n",
        Escaped(&over),
        legend(summary, &shares)
    );
    for published in published {
        sections::published(page, published);
    }
    page.push_str("</section>\n");
}

fn references<'a>(published: &'a [Published], operation: &str) -> Vec<Reference<'a>> {
    let lines = published.iter().flat_map(|published| &published.lines);
    lines
        .filter(|line| line.operation == operation)
        .map(|line| Reference { name: &line.name, x_is_clients: line.x_is_clients, points: &line.points })
        .collect()
}

/// What colours and dashes mean, each named.
fn legend(summary: &Summary, shares: &Shares<'_>) -> String {
    let mut text = String::new();
    if let Some(color) = &shares.color {
        let _ = write!(text, "<ul class=\"legend\"><li class=\"kind\">{}</li>", Escaped(color.name()));
        for (n, level) in color.short_levels(summary).iter().enumerate() {
            let _ = write!(
                text,
                "<li><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\"><g class=\"line c{}\"><polyline points=\"1,6 33,6\"/>{}</g></svg>{}</li>",
                n % 8,
                marker(n, 17.0, 6.0),
                Escaped(level)
            );
        }
        text.push_str("</ul>\n");
    }
    if let Some(dash) = &shares.dash {
        let _ = write!(text, "<ul class=\"legend\"><li class=\"kind\">{}</li>", Escaped(dash.name()));
        for (n, level) in dash.short_levels(summary).iter().enumerate() {
            let _ = write!(
                text,
                "<li><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\"><g class=\"line\"><polyline points=\"1,6 33,6\" stroke-dasharray=\"{}\"/></g></svg>{}</li>",
                DASHES[n % DASHES.len()],
                Escaped(level)
            );
        }
        text.push_str("</ul>\n");
    }
    text
}
