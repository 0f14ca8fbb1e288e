//! Pages of HTML: without network access, for light and dark mode, phones, paper, and browsers without scripts. The page of a
//! report is [`render`]'s: what it says before its charts, the charts, and what is behind them. Other crates show what they have in
//! a [`Document`].

mod cells;
mod chart;
mod charts;
mod lines;
mod plot;
mod ranking;

pub use crate::html::plot::{Plot, time_ticks};

use crate::answer::{self, Threshold, rankings};
use crate::cell::Status;
use crate::document::{Block, behind_charts, notices};
use crate::finding::{Comparison, Consequence, Finding, Progress, Section, Statement, Trials, published};
use crate::format::{capital, glued, timestamp};
use crate::html::plot::{DARK, LIGHT, PAGE, properties};
use crate::messages::{Language, Message};
use crate::summary::Summary;
use crate::table::Table;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kurabe_core::sort;
use lines::Series;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

/// The style sheet with the colours of both modes.
pub fn style() -> String {
    include_str!("style.css")
        .replace("@LIGHT@", &properties(&LIGHT))
        .replace("@DARK@", &properties(&DARK))
        .replace("@PAGE-LIGHT@", PAGE[0])
        .replace("@PAGE-DARK@", PAGE[1])
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

/// The number of sentences shown at once; the others are folded, except on paper.
const SHOWN_AT_ONCE: usize = 12;
/// The style sheet aligns columns from each of this many on.
const ALIGNED: usize = 8;

/// Blocks in order.
pub(crate) fn write(blocks: &[Block], language: Language) -> Markup {
    html! { @for block in blocks { (one(block, language)) } }
}

fn one(block: &Block, language: Language) -> Markup {
    match block {
        Block::Title(text) => html! { h1 { (text) } },
        Block::Notice(text) => html! { p class="note" { (glued(text)) } },
        Block::Paragraph(text) => html! { p class="soft" { (glued(text)) } },
        Block::Conclusion(sentences) => list("verdict", sentences),
        Block::Items(sentences) if sentences.len() > SHOWN_AT_ONCE => {
            let count = Message::FindingCount.with(language, &[("count", &sentences.len().to_string())]);
            html! { details { summary { (count) } (items(sentences)) } }
        }
        Block::Items(sentences) | Block::Facts(sentences) => items(sentences),
        Block::Numbered(sentences) => html! { ol { @for one in sentences { li { (glued(one)) } } } },
        Block::Lacking(entries) => html! {
            ul class="plain" {
                @for (status, sentence) in entries {
                    @let class = if *status == Status::Failed { "failed" } else { "unavailable" };
                    li { span class=(class) { "✗ " } (glued(sentence)) }
                }
            }
        },
        Block::Terms(terms) => html! { dl { @for (name, text) in terms { dt { (name) } dd { (text) } } } },
        Block::Command(text) => html! { pre { code { (text) } } },
        Block::Table(table) => titled(table),
        Block::Groups(table, headings) => {
            html! { @for table in table.groups(headings) { (titled(&table)) } }
        }
        Block::Section(heading, blocks) => html! { section { h2 { (heading) } (write(blocks, language)) } },
        Block::Part(heading, blocks) => html! { h3 { (heading) } (write(blocks, language)) },
        Block::Details(heading, blocks) => {
            html! { details class="sentences" { summary { (heading) } (write(blocks, language)) } }
        }
    }
}

fn items(sentences: &[String]) -> Markup {
    list("plain", sentences)
}

fn list(class: &str, sentences: &[String]) -> Markup {
    html! { ul class=(class) { @for sentence in sentences { li { (glued(sentence)) } } } }
}

/// A table below its title and its legend.
fn titled(table: &Table) -> Markup {
    let columns: Vec<(&str, bool)> =
        table.columns.iter().map(|column| (column.head.as_str(), column.right)).collect();
    let cells = |row: &Vec<String>| row.iter().map(|text| html! { (text) }).collect();
    html! {
        @if !table.title.is_empty() { h3 { (table.title) } }
        @if let Some(legend) = &table.legend { p class="soft" { (glued(legend)) } }
        (grid(&columns, table.rows.iter().map(cells), &table.cells))
    }
}

/// A table that scrolls by itself where it is wider than the page: the heads of its columns, and whether each has numbers.
/// From its first column of numbers on, cells are aligned right unless they say otherwise. `cells` has the cell of each row,
/// where rows are cells.
pub fn grid(
    columns: &[(&str, bool)],
    rows: impl IntoIterator<Item = Vec<Markup>>,
    cells: &[usize],
) -> Markup {
    let first = columns.iter().position(|(_, right)| *right).filter(|first| *first < ALIGNED);
    let numbers = first.map(|first| format!("n{first}"));
    let class = |(at, right): (usize, bool)| match first {
        Some(first) => (at >= first && !right).then_some("text"),
        None => right.then_some("num"),
    };
    html! {
        div class="box" {
            table class=[numbers] {
                thead {
                    tr {
                        @for (at, (head, right)) in columns.iter().enumerate() {
                            th class=[class((at, *right))] { (head) }
                        }
                    }
                }
                tbody {
                    @for (n, row) in rows.into_iter().enumerate() {
                        tr data-c=[cells.get(n)] {
                            @for (at, ((_, right), cell)) in columns.iter().zip(row).enumerate() {
                                td class=[class((at, *right))] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

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
    let (rankings, series) = (rankings(summary), Series::new(summary));
    let limits = answer::thresholds(summary);
    let opening = Opening::new(summary, !rankings.is_empty());
    let language = summary.labels.language;
    let [filter, panel] = cells::places(language);
    let title = format!("{}: {}", capital(&summary.experiment), summary.labels.targets.join(", "));
    let meta: [(&str, &str); 4] = [
        ("run", &summary.run),
        ("date", &timestamp(summary.began)),
        ("rounds", &summary.rounds_text()),
        ("version", &summary.kurabe),
    ];
    let body = html! {
        header {
            h1 { (title) }
            // Experiments ask in English.
            @if let Some(question) = summary.question.as_ref().filter(|_| language == Language::English) { p class="question" { (question) } }
            p class="meta" { (Message::Run.with(language, &meta)) }
        }
        main {
            (write(&notices(summary.sentences(Section::Publishing)), language))
            (thresholds(&limits, &summary.labels.objective, language))
            (write(&opening.conclusion, language))
            (ranking::section(summary, &series, &rankings))
            (panel)
            (write(&opening.caveats, language))
            (filter)
            (charts::primary(summary, &series))
            (charts::scatters(summary, &series, &published))
            (charts::of_speed(summary, &series, &published))
            (ranking::courses(summary, &series, &rankings))
            (charts::further(summary, &series))
            (write(&behind_charts(summary), language))
        }
        footer { (Message::Footer.with(language, &[("version", &summary.kurabe)])) }
    };
    let script = format!("\"use strict\";const DATA={};{}", cells::data(summary), include_str!("script.js"));
    Document { language, title: &title, style: "", body, script }.text()
}

/// The number of decided comparisons with which a page begins.
const CONCLUSION: usize = 2;

/// The opening of a page, before its charts.
struct Opening {
    /// Missing results, the conclusion in words, how many comparisons are undecided, and other load on the machine.
    conclusion: Vec<Block>,
    /// Caveats, the most serious first, and the other comparisons as sentences, which the rankings have in figures.
    caveats: Vec<Block>,
}

impl Opening {
    fn new(summary: &Summary, has_rankings: bool) -> Self {
        let language = summary.labels.language;
        // The first decided comparisons, then statements that the rankings lack.
        let [others, compared] = answer::statements(summary, has_rankings);
        let (mut said, compared) = split(&compared);
        said.extend(others);
        let mut warnings: Vec<&Statement> = summary.statements(Section::Warning).collect();
        sort::by_key(&mut warnings, |warning| warning.finding.consequence());
        let sentences = |all: &[&Statement]| all.iter().map(|one| summary.sentence(one)).collect::<Vec<_>>();
        let of = |wanted: Place| {
            let here = warnings.iter().filter(|warning| place(&warning.finding) == wanted);
            sentences(&here.copied().collect::<Vec<_>>())
        };
        let said = (!said.is_empty()).then(|| Block::Conclusion(sentences(&said)));
        let conclusion =
            notices(of(Place::Missing)).into_iter().chain(said).chain(notices(of(Place::Beside)));
        let counted =
            |message: Message, count: usize| message.with(language, &[("count", &count.to_string())]);
        let below = of(Place::Below);
        let heading = match below.len() {
            1 => Message::OneCaveat.text(language).to_owned(),
            count => counted(Message::Caveats, count),
        };
        let caveats = (!below.is_empty()).then_some(Block::Details(heading, notices(below)));
        let in_words = (!compared.is_empty()).then(|| {
            let heading = counted(Message::InWords, compared.len());
            Block::Details(heading, vec![Block::Facts(sentences(&compared))])
        });
        Self { conclusion: conclusion.collect(), caveats: caveats.into_iter().chain(in_words).collect() }
    }
}

/// The first comparisons that are decided, and all others.
fn split<'a>(compared: &[&'a Statement]) -> (Vec<&'a Statement>, Vec<&'a Statement>) {
    let mut left = CONCLUSION;
    compared.iter().partition(|one| {
        let is_first = left > 0 && matches!(one.finding, Finding::Comparison(Comparison::Better { .. }));
        left -= usize::from(is_first);
        is_first
    })
}

/// Where a page has a warning.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Before the conclusion: results are missing.
    Missing,
    /// Beside the conclusion: what is undecided, and other load on the machine.
    Beside,
    /// Among the caveats.
    Below,
}

fn place(finding: &Finding) -> Place {
    match finding {
        Finding::Progress(Progress::MoreRounds { .. }) | Finding::Trials(Trials::Disturbed { .. }) => {
            Place::Beside
        }
        _ if finding.consequence() == Consequence::Missing => Place::Missing,
        _ => Place::Below,
    }
}

/// Whether each result keeps the limit of its response times.
fn thresholds(all: &[Threshold], limit: &str, language: Language) -> Markup {
    let passed = all.iter().filter(|one| one.passed).count();
    let word = |passed: bool| (if passed { Message::Pass } else { Message::Fail }).text(language);
    let class = |passed: bool| if passed { "passed" } else { "failed" };
    let kept = passed == all.len();
    let counts = [("limit", limit), ("passed", &passed.to_string()), ("count", &all.len().to_string())];
    html! {
        @if !all.is_empty() {
            section class="thresholds" {
                p { b class=(class(kept)) { (word(kept)) } (Message::ThresholdCount.with(language, &counts)) }
                ul {
                    @for one in all {
                        li {
                            b class=(class(one.passed)) { (if one.passed { "✓ " } else { "✗ " }) (word(one.passed)) }
                            " " (one.text)
                        }
                    }
                }
            }
        }
    }
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
