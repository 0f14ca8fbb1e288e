//! Blocks as HTML, and the tables of pages.

use crate::cell::Status;
use crate::document::Block;
use crate::format::glued;
use crate::messages::{Language, Message};
use crate::table::Table;
use maud::{Markup, html};

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

pub(super) fn items(sentences: &[String]) -> Markup {
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
