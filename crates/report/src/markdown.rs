//! The Markdown report.

use crate::answer;
use crate::finding::Section;
use crate::format::{capital, command_line, list, timestamp};
use crate::messages::Language;
use crate::server_statistics;
use crate::summary::Summary;
use crate::table::{Lacking, Table, fixed_axes, lacking, tables};
use kurabe_core::units;
use std::fmt::Write as _;

/// The report as Markdown text.
pub fn render(summary: &Summary) -> String {
    let labels = &summary.labels;
    let mut text =
        format!("# {}: {}\n\n", escaped(&capital(&summary.experiment)), escaped(&labels.targets.join(", ")));
    if let Some(question) = &summary.question {
        let _ = writeln!(text, "{}\n", escaped(question));
    }
    publishing(&mut text, &summary.sentences(Section::Publishing));
    for table in answer::tables(summary) {
        markdown_table(&mut text, "", &table);
    }
    text += "## Verdict\n\n";
    items(&mut text, &summary.sentences(Section::Verdict));
    let fixed = fixed_axes(summary).join(" · ");
    for table in tables(summary) {
        markdown_table(&mut text, table.legend.as_ref().unwrap_or(&fixed), &table);
    }
    for table in server_statistics::tables(summary) {
        markdown_table(&mut text, table.legend.as_deref().unwrap_or_default(), &table);
    }
    section(&mut text, "Not reported by the server", &summary.sentences(Section::NotReported));
    section(&mut text, "Bottlenecks", &summary.sentences(Section::Bottleneck));
    let lacking = lacking(summary);
    if !lacking.is_empty() {
        let rows = vec![Vec::new(); lacking.len()];
        let mut table = Table { title: "No results".to_owned(), rows, ..Table::default() };
        let mut add = |head: &str, of: fn(&Lacking) -> String| {
            table.add(head, false, 0, lacking.iter().map(of));
        };
        add("target", |entry| entry.target.clone());
        add("at", |entry| entry.place.clone());
        add("operations", |entry| list(&entry.operations));
        add("status", |entry| entry.status_word(Language::English).to_owned());
        add("reason", |entry| entry.reason.clone());
        markdown_table(&mut text, "", &table);
    }
    section(&mut text, "In detail", &summary.sentences(Section::Detail));
    section(&mut text, "Warnings", &summary.sentences(Section::Warning));
    text += "## Basis\n\n";
    let machine = &summary.machine;
    let (memory, began) = (units::size(machine.memory_bytes), timestamp(summary.began));
    let origin = [
        format!("Machine: {}, {} CPUs, {memory}, {}.", machine.cpu, machine.cpus, machine.system),
        format!("Run {}, {began}, Kurabe {}, seed {}.", summary.run, summary.kurabe, summary.seed),
    ];
    items(&mut text, &[summary.sentences(Section::Basis), origin.to_vec()].concat());
    let _ = writeln!(text, "Command: `{}`", command_line(&summary.command).replace('`', "'"));
    text
}

/// The publishing restrictions, before everything else.
pub(crate) fn publishing(text: &mut String, sentences: &[String]) {
    for sentence in sentences {
        let _ = writeln!(text, "> {}\n", escaped(sentence));
    }
}

fn section(text: &mut String, heading: &str, sentences: &[String]) {
    if !sentences.is_empty() {
        let _ = writeln!(text, "## {heading}\n");
        items(text, sentences);
    }
}

pub(crate) fn items(text: &mut String, sentences: &[String]) {
    for sentence in sentences {
        let _ = writeln!(text, "- {}", escaped(sentence));
    }
    text.push('\n');
}

/// A table with its heading and its legend, if that is not empty.
pub(crate) fn markdown_table(text: &mut String, legend: &str, table: &Table) {
    let _ = writeln!(text, "## {}\n", escaped(&table.title));
    if !legend.is_empty() {
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
    text.push('\n');
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
