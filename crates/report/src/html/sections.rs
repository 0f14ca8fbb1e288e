//! The sections of the page besides the charts.

use crate::answer::{self, Ranking};
use crate::cell::Status;
use crate::finding::published::Published;
use crate::finding::{Consequence, Section, Statement};
use crate::format::{capital, command_line, glued, list, settings_list};
use crate::messages::{Language, Message};
use crate::server_statistics;
use crate::summary::Summary;
use crate::table::{Table, fixed_axes, lacking as lacking_cells, tables};
use crate::target::TargetSummary;
use crate::threshold;
use kurabe_core::sort;
use kurabe_core::units;
use maud::{Markup, html};

/// Publishing restrictions, thresholds, missing results, and what the rankings do not say.
pub(super) fn verdict(summary: &Summary, rankings: &[Ranking<'_>]) -> Markup {
    let [others, _] = answer::sentences(summary, !rankings.is_empty());
    html! {
        @for sentence in summary.sentences(Section::Publishing) { p class="note" { (glued(&sentence)) } }
        (thresholds(summary))
        @for warning in warnings(summary, true) { p class="note" { (glued(&summary.sentence(warning))) } }
        @if !others.is_empty() { ul class="verdict" { @for sentence in &others { li { (glued(sentence)) } } } }
    }
}

/// The warnings about missing results, or the others, the most serious first.
fn warnings(summary: &Summary, missing: bool) -> Vec<&Statement> {
    let is_of = |one: &&Statement| (one.finding.consequence() == Consequence::Missing) == missing;
    let mut found: Vec<&Statement> = summary.statements(Section::Warning).filter(is_of).collect();
    sort::by_key(&mut found, |warning| warning.finding.consequence());
    found
}

/// Whether each result keeps the limit of its response times.
fn thresholds(summary: &Summary) -> Markup {
    let all = threshold::all(summary);
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

/// Caveats, and each comparison as a sentence, which the rankings have in figures.
pub(super) fn caveats(summary: &Summary, rankings: &[Ranking<'_>]) -> Markup {
    let [_, said] = answer::sentences(summary, !rankings.is_empty());
    let others = warnings(summary, false);
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
pub(super) fn list_of(summary: &Summary, section: Section, heading: Message) -> Markup {
    let sentences = summary.sentences(section);
    html! {
        @if !sentences.is_empty() {
            section {
                h2 { (heading.text(summary.labels.language)) }
                @if sentences.len() > SHOWN_AT_ONCE {
                    details { summary { (sentences.len()) " findings" } (items(&sentences)) }
                } @else {
                    (items(&sentences))
                }
            }
        }
    }
}

/// The style sheet aligns columns from each of this many on.
const ALIGNED: usize = 8;

fn items(sentences: &[impl AsRef<str>]) -> Markup {
    html! { ul class="plain" { @for sentence in sentences { li { (glued(sentence.as_ref())) } } } }
}

pub(super) fn results(summary: &Summary) -> Markup {
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

/// A table. From its first column of numbers on, cells are aligned right unless they say otherwise.
pub(crate) fn one_table(table: &Table) -> Markup {
    let first = table.columns.iter().position(|column| column.right).filter(|first| *first < ALIGNED);
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
                        @for (at, column) in table.columns.iter().enumerate() {
                            th class=[class((at, column.right))] { (column.head) }
                        }
                    }
                }
                tbody {
                    @for (n, row) in table.rows.iter().enumerate() {
                        tr data-c=[table.cells.get(n)] {
                            @for (at, (column, cell)) in table.columns.iter().zip(row).enumerate() {
                                td class=[class((at, column.right))] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The server's own statistics, and what it does not report.
pub(super) fn engine(summary: &Summary) -> Markup {
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

pub(super) fn lacking(summary: &Summary) -> Markup {
    let entries = lacking_cells(summary);
    html! {
        @if !entries.is_empty() {
            section {
                h2 { (Message::NoResults.text(summary.labels.language)) }
                div class="box" {
                    table {
                        thead {
                            tr { th { "target" } th { "at" } th { "operations" } th { "status" } th { "reason" } }
                        }
                        tbody {
                            @for entry in entries {
                                @let class = if entry.status == Status::Failed { "failed" } else { "unavailable" };
                                tr {
                                    td { (entry.target) }
                                    td { (entry.place) }
                                    td { (list(&entry.operations)) }
                                    td class=(class) { (entry.status_word()) }
                                    td class="wrap" { (entry.reason) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn basis(summary: &Summary) -> Markup {
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

pub(super) fn targets(summary: &Summary) -> Markup {
    html! {
        section {
            h2 { (Message::Targets.text(summary.labels.language)) }
            @for (target, name) in summary.targets.iter().zip(&summary.labels.targets) { (one_target(target, name)) }
        }
    }
}

fn one_target(target: &TargetSummary, name: &str) -> Markup {
    let class = crate::wording::class_name(target.durability);
    html! {
        h3 { (name) " " (target.version) }
        dl {
            (entry("Durability", &format!("{class}: {}", target.durability_promise)))
            (entry("because", &settings_list(&target.durability_settings)))
            (entry("Settings", &settings_list(&target.settings)))
            (entry("Client", &target.client))
            (entry("Reached by", &target.transport))
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
pub(super) fn setup(summary: &Summary) -> Markup {
    let machine = &summary.machine;
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
                (entry("Processor", &format!("{}, {} for the tool", machine.cpu, cpus(machine.cpus))))
                (entry("Memory", &memory))
                (entry("System", &machine.system))
                (entry("Seed", &summary.seed.to_string()))
            }
            pre { code { (command_line(&summary.command)) } }
        }
    }
}

fn cpus(count: u64) -> String {
    if count == 1 { "1 CPU".to_owned() } else { format!("{count} CPUs") }
}

/// The source of the published results, and their known problems.
pub(super) fn published(published: &Published) -> Markup {
    let about = &published.about;
    html! {
        h3 { "Published results: " (about.title) }
        p class="soft" { (about.provenance) " " (about.hardware) "." }
        p class="soft" { "Known problems of these results:" }
        (items(&about.faults))
    }
}
