//! The Markdown report, and the writer of blocks as Markdown.

use crate::document::{self, Block};
use crate::summary::Summary;
use crate::table::Table;
use std::fmt::Write as _;

/// The report as Markdown text.
pub fn render(summary: &Summary) -> String {
    write(&document::report(summary))
}

/// Blocks as Markdown text that ends with a newline.
pub(crate) fn write(blocks: &[Block]) -> String {
    format!("{}\n", all(blocks).trim_end())
}

fn all(blocks: &[Block]) -> String {
    blocks.iter().map(block).collect()
}

fn block(block: &Block) -> String {
    match block {
        Block::Title(text) => format!("# {}\n\n", escaped(text)),
        Block::Notice(text) => format!("> {}\n\n", escaped(text)),
        Block::Paragraph(text) => format!("{}\n\n", escaped(text)),
        Block::Conclusion(sentences) | Block::Items(sentences) | Block::Facts(sentences) => items(sentences),
        Block::Numbered(sentences) => {
            let number = |(at, one): (usize, &String)| format!("{}. {}\n", at + 1, escaped(one));
            sentences.iter().enumerate().map(number).collect::<String>() + "\n"
        }
        Block::Lacking(entries) => items(entries.iter().map(|(_, sentence)| sentence)),
        Block::Terms(terms) => {
            items(&terms.iter().map(|(name, text)| format!("{name}: {text}")).collect::<Vec<_>>())
        }
        Block::Command(text) => format!("`{}`\n\n", text.replace('`', "'").replace(char::is_control, " ")),
        Block::Table(table) => write_table(table),
        Block::Groups(table, headings) => table.groups(headings).iter().map(write_table).collect(),
        Block::Section(heading, blocks) => format!("## {}\n\n{}", escaped(heading), all(blocks)),
        Block::Part(heading, blocks) => format!("### {}\n\n{}", escaped(heading), all(blocks)),
        Block::Details(heading, blocks) => {
            format!("<details><summary>{}</summary>\n\n{}</details>\n\n", escaped(heading), all(blocks))
        }
    }
}

fn items<'a>(sentences: impl IntoIterator<Item = &'a String>) -> String {
    let item = |sentence: &String| format!("- {}\n", escaped(sentence));
    let items: String = sentences.into_iter().map(item).collect();
    if items.is_empty() { items } else { items + "\n" }
}

/// A table below its title and its legend.
fn write_table(table: &Table) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    if !table.title.is_empty() {
        let _ = writeln!(text, "## {}\n", escaped(&table.title));
    }
    if let Some(legend) = table.legend.as_ref().filter(|legend| !legend.is_empty()) {
        let _ = writeln!(text, "{}\n", escaped(legend));
    }
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(table.columns.iter().map(|column| escaped(&column.head)).collect());
    line(table.columns.iter().map(|column| if column.right { "---:" } else { "---" }.to_owned()).collect());
    for row in &table.rows {
        line(row.iter().map(|cell| escaped(cell)).collect());
    }
    text + "\n"
}

/// Escapes a text for Markdown, on one line.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => out.extend(['\\', letter]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
