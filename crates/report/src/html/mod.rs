//! The HTML report: a single page without network access, for light and dark mode, phones, paper, and browsers
//! without scripts.

mod cells;
mod chart;
mod lines;
mod metrics;
mod palette;
mod plot;
mod ranking;
mod sections;

use crate::answer::rankings;
use crate::finding::published::{self, Published};
use crate::finding::{Finding, Rates, Section};
use crate::format::{capital, timestamp};
use crate::html::chart::{Frame, View};
use crate::html::lines::{Panel, legend, panels, shares};
use crate::html::palette::{DARK, LIGHT, PAGE, properties};
use crate::labels::OperationLabels;
use crate::messages::{Language, Message};
use crate::summary::Summary;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kurabe_core::load::Load;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

pub use crate::html::plot::{Plot, time_ticks};
pub use crate::html::sections::grid;
pub(crate) use crate::html::sections::one_table;

/// Additional contents of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether to show published results in the charts, with their source and known problems, if the experiment has
    /// some.
    pub published: bool,
}

/// The page as text.
pub fn render(summary: &Summary, options: &Options) -> String {
    let published =
        summary.labels.published.filter(|_| options.published).map(published::load).unwrap_or_default();
    let rankings = rankings(summary);
    let language = summary.labels.language;
    let [filter, panel] = cells::places(language);
    let title = format!("{}: {}", capital(&summary.experiment), summary.labels.targets.join(", "));
    let body = html! {
        header {
            h1 { (title) }
            // Experiments ask in English.
            @if let Some(question) = summary.question.as_ref().filter(|_| language == Language::English) { p class="question" { (question) } }
            p class="meta" {
                (Message::Run.with(language, &[
                    ("run", &summary.run),
                    ("date", &timestamp(summary.began)),
                    ("rounds", &summary.rounds_text()),
                    ("version", &summary.kurabe),
                ]))
            }
        }
        main {
            (sections::verdict(summary, &rankings))
            (ranking::section(summary, &rankings))
            (panel)
            (sections::caveats(summary, &rankings))
            (filter)
            (metrics::primary(summary))
            (metrics::scatters(summary, &published))
            (charts(summary, &published))
            (ranking::courses(summary, &rankings))
            (metrics::further(summary))
            (sections::list_of(summary, Section::Detail, Message::InDetail))
            (sections::results(summary))
            (sections::engine(summary))
            (sections::list_of(summary, Section::Bottleneck, Message::Bottlenecks))
            (sections::lacking(summary))
            (sections::basis(summary))
            (sections::targets(summary))
            (sections::setup(summary))
        }
        footer { (Message::Footer.with(language, &[("version", &summary.kurabe)])) }
    };
    let (title, style) = (&*title, "");
    Document { language, title, style, body, script: script(summary) }.text()
}

/// The script with the data of the cells.
fn script(summary: &Summary) -> String {
    format!("\"use strict\";const DATA={};{}", cells::data(summary), include_str!("script.js"))
}

/// The style sheet with the colours of both modes.
pub fn style() -> String {
    include_str!("style.css")
        .replace("@LIGHT@", &properties(&LIGHT))
        .replace("@DARK@", &properties(&DARK))
        .replace("@PAGE-LIGHT@", PAGE[0])
        .replace("@PAGE-DARK@", PAGE[1])
}

fn charts(summary: &Summary, published: &[Published]) -> Markup {
    let language = summary.labels.language;
    let shares = shares(summary);
    let axis = summary.labels.chart_axis();
    let all: Vec<(&OperationLabels, Vec<Panel<'_>>)> = summary
        .labels
        .operations
        .iter()
        .map(|operation| (operation, panels(summary, &shares, &operation.name)))
        .filter(|(_, panels)| !panels.is_empty())
        .collect();
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
            (legend(summary, &shares))
            p class="soft" { (Message::ChartLegend.text(language)) }
            div class="charts" {
                @if together {
                    div class="panels" {
                        @for (operation, panels) in &all {
                            (figures(operation, panels, Some(&summary.labels.begun(&operation.plural))))
                        }
                    }
                } @else {
                    @for (operation, panels) in &all {
                        h3 { (summary.labels.begun(&operation.plural)) }
                        div class="panels" { (figures(operation, panels, None)) }
                    }
                }
            }
            @for published in published { (sections::published(published)) }
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
            let at = |name: &String| summary.labels.names.iter().position(|known| known == name);
            found.extend(scope.targets.iter().filter_map(at).map(|target| (target, *rate as f64)));
        }
    }
    found
}

/// The end of each page, before which its script is.
const END: &str = "</body></html>";

/// A page that is written to a file, for browsers without a network.
#[derive(Debug)]
pub struct Document<'a> {
    pub language: Language,
    pub title: &'a str,
    /// Style after that of all pages.
    pub style: &'a str,
    /// What is shown.
    pub body: Markup,
    /// The page's only script; empty: it has none.
    pub script: String,
}

impl Document<'_> {
    /// The page as text.
    pub fn text(self) -> String {
        // HTML does not allow control characters, which names from servers may contain.
        let printable = |text: String| text.replace(|c: char| c.is_control() && c != '\n', " ");
        let script = printable(self.script);
        let page = html! {
            (DOCTYPE)
            html lang=(self.language.name()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width,initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(policy(&script));
                    meta name="generator" content="Kurabe";
                    link rel="icon" href="data:,";
                    title { (self.title) }
                    style { (PreEscaped(style())) (PreEscaped(self.style)) }
                }
                body { (self.body) }
            }
        };
        // Elements of SVG may close themselves. No text has such an end: its `<` is escaped.
        let page = ["path", "circle", "polyline", "use"]
            .iter()
            .fold(printable(page.into_string()), |text, name| text.replace(&format!("></{name}>"), "/>"));
        if script.is_empty() {
            return page;
        }
        format!("{}<script>{script}</script>{END}", page.strip_suffix(END).unwrap_or(&page))
    }
}

/// What a page may do: no network access and no script but this one, even if a name from a server were taken for markup.
fn policy(script: &str) -> String {
    let scripts = if script.is_empty() {
        "'none'".to_owned()
    } else {
        format!("'sha256-{}'", BASE64_STANDARD.encode(digest(&SHA256, script.as_bytes())))
    };
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src data:; base-uri 'none'; \
         form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_allows_the_script_as_it_is_written_and_no_other() {
        let page = |script: &str| {
            let body = html! { p title="</body></html>" { "a\u{7}b</body></html>" } };
            let script = script.to_owned();
            Document { language: Language::English, title: "T", style: "", body, script }.text()
        };
        let with = page("let a = 'x\u{85}y';");
        let written = with.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
        assert!(with.contains(&policy(written)) && written == "let a = 'x y';", "{with}");
        assert_ne!(policy(written), policy("let a = 'z y';"));
        assert_eq!(with.matches("<script").count(), 1);
        let without = page("");
        assert!(without.contains("script-src 'none';") && !without.contains("<script"), "{without}");
        assert!(without.contains("a b&lt;/body") && without.ends_with(END), "{without}");
    }
}
