//! The page of a report: its sections in order, and those that are text and tables.

use super::lines::Shares;
use super::{Document, cells, charts, ranking};
use crate::answer::{self, rankings};
use crate::cell::Status;
use crate::finding::published;
use crate::finding::{Comparison, Consequence, Finding, Progress, Section, Statement, Trials};
use crate::format::{capital, command_line, glued, settings_list, timestamp};
use crate::messages::{Language, Message};
use crate::server_statistics;
use crate::summary::Summary;
use crate::table::{Lacking, Table, fixed_axes, lacking as lacking_cells, tables};
use crate::target::TargetSummary;
use crate::wording::{listed, promise};
use kurabe_core::{sort, units};
use maud::{Markup, html};

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
    let (rankings, shares) = (rankings(summary), Shares::of(summary));
    // What the rankings do not say, behind the first decided comparisons.
    let [mut said, compared] = answer::statements(summary, !rankings.is_empty());
    let (first, others) = split(&compared);
    said.splice(0..0, first);
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
            (verdict(summary, &said))
            (ranking::section(summary, &shares, &rankings))
            (panel)
            (caveats(summary, &others))
            (filter)
            (charts::primary(summary, &shares))
            (charts::scatters(summary, &published))
            (charts::of_speed(summary, &shares, &published))
            (ranking::courses(summary, &shares, &rankings))
            (charts::further(summary, &shares))
            (list_of(summary, Section::Detail, Message::InDetail))
            (results(summary))
            (engine(summary))
            (list_of(summary, Section::Bottleneck, Message::Bottlenecks))
            (lacking(summary))
            (basis(summary))
            (targets(summary))
            (setup(summary))
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

/// The number of decided comparisons with which a page begins.
const CONCLUSION: usize = 2;

/// Publishing restrictions, thresholds, missing results, and the conclusion in words: these statements, how many comparisons are
/// undecided, and other load on the machine.
fn verdict(summary: &Summary, said: &[&Statement]) -> Markup {
    html! {
        @for sentence in summary.sentences(Section::Publishing) { p class="note" { (glued(&sentence)) } }
        (thresholds(summary))
        @for warning in warnings(summary, Place::Missing) { p class="note" { (glued(&summary.sentence(warning))) } }
        @if !said.is_empty() {
            ul class="verdict" { @for one in said { li { (glued(&summary.sentence(one))) } } }
        }
        @for warning in warnings(summary, Place::Beside) { p class="note" { (glued(&summary.sentence(warning))) } }
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

/// The warnings of a place, the most serious first.
fn warnings(summary: &Summary, of: Place) -> Vec<&Statement> {
    let mut found: Vec<&Statement> =
        summary.statements(Section::Warning).filter(|one| place(&one.finding) == of).collect();
    sort::by_key(&mut found, |warning| warning.finding.consequence());
    found
}

/// Whether each result keeps the limit of its response times.
fn thresholds(summary: &Summary) -> Markup {
    let all = answer::thresholds(summary);
    let passed = all.iter().filter(|one| one.passed).count();
    let (kept, language) = (passed == all.len(), summary.labels.language);
    html! {
        @if !all.is_empty() {
            section class="thresholds" {
                p {
                    b class=(if kept { "passed" } else { "failed" }) { ((if kept { Message::Pass } else { Message::Fail }).text(language)) }
                    (Message::ThresholdCount.with(language, &[
                        ("limit", &summary.labels.objective),
                        ("passed", &passed.to_string()),
                        ("count", &all.len().to_string()),
                    ]))
                }
                ul {
                    @for one in all {
                        li { b class=(if one.passed { "passed" } else { "failed" }) {
                                (if one.passed { "✓ " } else { "✗ " })
                                ((if one.passed { Message::Pass } else { Message::Fail }).text(language))
                            }
                            " " (one.text) }
                    }
                }
            }
        }
    }
}

/// Caveats, and these comparisons as sentences, which the rankings have in figures.
fn caveats(summary: &Summary, compared: &[&Statement]) -> Markup {
    let said: Vec<String> = compared.iter().map(|one| summary.sentence(one)).collect();
    let others = warnings(summary, Place::Below);
    html! {
        @if !others.is_empty() {
            details class="caveats" {
                summary { (caveat_count(others.len(), summary.labels.language)) }
                ul { @for warning in others { li { (glued(&summary.sentence(warning))) } } }
            }
        }
        @if !said.is_empty() {
            details class="sentences" {
                summary { (Message::InWords.with(summary.labels.language, &[("count", &said.len().to_string())])) }
                (items(&said))
            }
        }
    }
}

fn caveat_count(count: usize, language: Language) -> String {
    if count == 1 {
        Message::OneCaveat.text(language).to_owned()
    } else {
        Message::Caveats.with(language, &[("count", &count.to_string())])
    }
}

/// The number of sentences shown at once; the others are folded, except on paper.
const SHOWN_AT_ONCE: usize = 12;

/// A section with an item for each of its sentences; empty if there are none.
fn list_of(summary: &Summary, section: Section, heading: Message) -> Markup {
    let sentences = summary.sentences(section);
    html! {
        @if !sentences.is_empty() {
            section {
                h2 { (heading.text(summary.labels.language)) }
                @if sentences.len() > SHOWN_AT_ONCE {
                    @let count = sentences.len().to_string();
                    details {
                        summary { (Message::FindingCount.with(summary.labels.language, &[("count", &count)])) }
                        (items(&sentences))
                    }
                } @else {
                    (items(&sentences))
                }
            }
        }
    }
}

/// The style sheet aligns columns from each of this many on.
const ALIGNED: usize = 8;

pub(super) fn items(sentences: &[impl AsRef<str>]) -> Markup {
    html! { ul class="plain" { @for sentence in sentences { li { (glued(sentence.as_ref())) } } } }
}

fn results(summary: &Summary) -> Markup {
    let tables = tables(summary);
    let fixed = fixed_axes(summary);
    html! {
        @if !tables.is_empty() {
            section {
                h2 { (Message::Results.text(summary.labels.language)) }
                p class="soft" {
                    (Message::ResultsLegend.text(summary.labels.language))
                    @if !fixed.is_empty() { (Message::Constant.with(summary.labels.language, &[("values", &fixed.join(", "))])) }
                }
                @for table in tables {
                    h3 { (table.title) }
                    @if let Some(legend) = &table.legend { p class="soft" { (legend) } }
                    (one_table(&table))
                }
            }
        }
    }
}

pub(crate) fn one_table(table: &Table) -> Markup {
    let columns: Vec<(&str, bool)> =
        table.columns.iter().map(|column| (column.head.as_str(), column.right)).collect();
    let text = |text: &String| html! { (text) };
    grid(&columns, table.rows.iter().map(|row| row.iter().map(text).collect()), &table.cells)
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

/// The server's own statistics, and what it does not report.
fn engine(summary: &Summary) -> Markup {
    let (tables, missing) = (server_statistics::tables(summary), summary.sentences(Section::NotReported));
    html! {
        @if !tables.is_empty() || !missing.is_empty() {
            section {
                h2 { (Message::FromServer.text(summary.labels.language)) }
                @for table in tables {
                    h3 { (table.title) }
                    p class="soft" { (glued(table.legend.as_deref().unwrap_or_default())) }
                    (one_table(&table))
                }
                @if !missing.is_empty() { h3 { (Message::NotReported.text(summary.labels.language)) } (items(&missing)) }
            }
        }
    }
}

fn lacking(summary: &Summary) -> Markup {
    let (entries, language) = (lacking_cells(summary), summary.labels.language);
    let columns = [Message::Target, Message::Place, Message::Operation, Message::State, Message::Reason];
    let row = |entry: &Lacking| {
        let class = if entry.status == Status::Failed { "failed" } else { "unavailable" };
        vec![
            html! { (entry.target) },
            html! { (entry.place) },
            html! { (listed(&entry.operations, language)) },
            html! { span class=(class) { (entry.status_word(language)) } },
            html! { div class="wrap" { (entry.reason) } },
        ]
    };
    html! {
        @if !entries.is_empty() {
            section {
                h2 { (Message::NoResults.text(summary.labels.language)) }
                (grid(&columns.map(|column| (column.text(language), false)), entries.iter().map(row), &[]))
            }
        }
    }
}

fn basis(summary: &Summary) -> Markup {
    html! {
        section {
            h2 { (Message::Basis.text(summary.labels.language)) }
            (items(&summary.sentences(Section::Basis)))
            h3 { (Message::HowToRead.text(summary.labels.language)) }
            p { (Message::HowIntervals.text(summary.labels.language)) }
            p { (Message::HowUndecided.text(summary.labels.language)) }
        }
    }
}

fn targets(summary: &Summary) -> Markup {
    html! {
        section {
            h2 { (Message::Targets.text(summary.labels.language)) }
            @for (target, name) in summary.targets.iter().zip(&summary.labels.targets) { (one_target(target, name, summary.labels.language)) }
        }
    }
}

fn one_target(target: &TargetSummary, name: &str, language: Language) -> Markup {
    let class = crate::wording::class_name(target.durability);
    let durability = match language {
        Language::English => format!("{class}: {}", target.durability_promise),
        Language::Japanese => format!("{class}: {}ます", promise(target.durability, language)),
    };
    let say = |message: Message| message.text(language);
    html! {
        h3 { (name) " " (target.version) }
        dl {
            (entry(say(Message::DurabilityOf), &durability))
            (entry(say(Message::Because), &settings_list(&target.durability_settings)))
            (entry(say(Message::Settings), &settings_list(&target.settings)))
            (entry(say(Message::Client), &target.client))
            (entry(say(Message::ReachedBy), &target.transport))
            (entry("URL", &target.url))
        }
        @if !target.notes.is_empty() { (items(&target.notes)) }
    }
}

/// A term with its text; nothing if the text is empty.
fn entry(name: &str, text: &str) -> Markup {
    html! { @if !text.is_empty() { dt { (name) } dd { (text) } } }
}

/// Axes, machine, command.
fn setup(summary: &Summary) -> Markup {
    let (machine, language) = (&summary.machine, summary.labels.language);
    let say = |message: Message| message.text(language);
    let memory = if machine.memory_bytes > 0 { units::size(machine.memory_bytes) } else { String::new() };
    html! {
        section {
            h2 { (Message::Setup.text(summary.labels.language)) }
            dl {
                @for axis in &summary.labels.axes {
                    @let values = axis.values.iter().map(|value| match axis.meaning(value) {
                        Some(meaning) if !meaning.is_empty() => format!("{} ({meaning})", axis.show(value)),
                        _ => axis.show(value),
                    });
                    (entry(&capital(&axis.name), &values.collect::<Vec<_>>().join(", ")))
                }
                (entry(say(Message::Processor), &Message::ForTheTool.with(language, &[
                    ("cpu", &machine.cpu),
                    ("cpus", &units::counted(machine.cpus, "CPU")),
                ])))
                (entry(say(Message::MemoryOf), &memory))
                (entry(say(Message::System), &machine.system))
                (entry(say(Message::Seed), &summary.seed.to_string()))
            }
            pre { code { (command_line(&summary.command)) } }
        }
    }
}
