//! The sections of the page besides the charts.

use crate::answer;
use crate::engine;
use crate::finding::{Consequence, Section, Statement};
use crate::format::{capital, command_line, glued, list, settings_list};
use crate::published::Published;
use crate::summary::{Status, Summary, TargetSummary};
use crate::table::{Table, fixed_axes, lacking as lacking_cells, tables};
use kurabe_core::units;
use maud::{Markup, html};

/// The verdicts, after publishing restrictions and missing results, and before other warnings.
pub(super) fn verdict(summary: &Summary) -> Markup {
    let notes = |section| {
        html! { @for sentence in summary.sentences(section) { p class="note" { (glued(sentence)) } } }
    };
    let mut warnings: Vec<&Statement> = summary.statements(Section::Warning).collect();
    warnings.sort_by_key(|warning| warning.finding.consequence());
    let (missing, others): (Vec<&Statement>, Vec<&Statement>) =
        warnings.into_iter().partition(|warning| warning.finding.consequence() == Consequence::Missing);
    html! {
        (notes(Section::Publishing))
        @for warning in missing { p class="note" { (glued(&warning.sentence)) } }
        @for table in answer::tables(summary) {
            h3 { (table.title) }
            (one_table(&table))
        }
        ul class="verdict" {
            @for sentence in summary.sentences(Section::Verdict) { li { (glued(sentence)) } }
        }
        @if !others.is_empty() {
            details class="caveats" {
                summary { (others.len()) (if others.len() == 1 { " caveat" } else { " caveats, the most serious first" }) }
                ul { @for warning in others { li { (glued(&warning.sentence)) } } }
            }
        }
    }
}

/// The number of sentences shown at once; the others are folded, except on paper.
const SHOWN_AT_ONCE: usize = 12;

/// A section with an item for each of its sentences; empty if there are none.
pub(super) fn list_of(summary: &Summary, section: Section, heading: &str) -> Markup {
    let sentences = summary.sentences(section);
    html! {
        @if !sentences.is_empty() {
            section {
                h2 { (heading) }
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
                h2 { "Results" }
                p class="soft" {
                    "Operations per second: the geometric mean of the continuous trials with its 95 % interval. Latencies: over all of \
                     them. CPU: of the client."
                    @if !fixed.is_empty() { " Constant: " (fixed.join(", ")) "." }
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
    let (tables, missing) = (engine::tables(summary), summary.sentences(Section::NotReported));
    html! {
        @if !tables.is_empty() || !missing.is_empty() {
            section {
                h2 { "Reported by the server" }
                @for table in tables {
                    h3 { (table.title) }
                    p class="soft" { (glued(table.legend.as_deref().unwrap_or_default())) }
                    (one_table(&table))
                }
                @if !missing.is_empty() { h3 { "Not reported" } (items(&missing)) }
            }
        }
    }
}

pub(super) fn lacking(summary: &Summary) -> Markup {
    let entries = lacking_cells(summary);
    html! {
        @if !entries.is_empty() {
            section {
                h2 { "No results" }
                div class="box" {
                    table {
                        thead {
                            tr { th { "target" } th { "cell" } th { "operations" } th { "status" } th { "reason" } }
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
            h2 { "Basis" }
            (items(&summary.sentences(Section::Basis)))
            h3 { "How to read a verdict" }
            p {
                "Each round measures every cell once, in random order. A ratio is the geometric mean of the rounds' ratios. A \
                 target or a value is called faster if the ratio's interval excludes 1. The interval is corrected for few \
                 rounds and for all comparisons. It holds for what was sampled: these servers as they ran, or any start of them."
            }
            p {
                "“Undecided” means that the interval includes 1 and reaches beyond the margin: either side may be better, by as much \
                 as the interval says. “Differ by less than” means that the whole interval lies within the margin. A ratio is valid for the tested \
                 values on this machine. A verdict on writes mentions different durability."
            }
        }
    }
}

pub(super) fn targets(summary: &Summary) -> Markup {
    html! {
        section {
            h2 { "Targets" }
            @for (target, name) in summary.targets.iter().zip(&summary.labels.targets) { (one_target(target, name)) }
        }
    }
}

fn one_target(target: &TargetSummary, name: &str) -> Markup {
    let class = crate::finding::wording::class_name(target.durability);
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
            h2 { "Setup" }
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
