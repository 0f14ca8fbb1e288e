//! The Markdown report.

use crate::engine;
use crate::finding::Section;
use crate::format::{capital, command_line, list, timestamp};
use crate::summary::Summary;
use crate::table::{Table, fixed_axes, lacking, tables};
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
    items(&mut text, &summary.sentences(Section::Verdict));
    let fixed = fixed_axes(summary);
    for table in tables(summary) {
        let _ = writeln!(text, "## {}\n", escaped(&table.title(summary)));
        if let Some(legend) = &table.legend {
            let _ = writeln!(text, "{}\n", escaped(legend));
        } else if !fixed.is_empty() {
            let _ = writeln!(text, "{}\n", escaped(&fixed.join(" · ")));
        }
        text += &markdown_table(&table);
    }
    for titled in engine::tables(summary, false) {
        let _ = writeln!(text, "## {}\n", escaped(&titled.title));
        if !titled.legend.is_empty() {
            let _ = writeln!(text, "{}\n", escaped(&titled.legend));
        }
        text += &markdown_table(&titled.table);
    }
    section(&mut text, "Not reported by the server", &summary.sentences(Section::NotReported));
    section(&mut text, "Bottlenecks", &summary.sentences(Section::Bottleneck));
    let lacking = lacking(summary);
    if !lacking.is_empty() {
        text += "## No results\n\n| target | cell | operations | status | reason |\n| --- | --- | --- | --- \
                 | --- |\n";
        for entry in lacking {
            let cells =
                [&entry.target, &entry.place, &list(&entry.operations), entry.status_word(), &entry.reason];
            text += &line(cells.map(escaped).iter().map(String::as_str));
        }
        text.push('\n');
    }
    section(&mut text, "In detail", &summary.sentences(Section::Detail));
    section(&mut text, "Warnings", &summary.sentences(Section::Warning));
    text += "## Basis\n\n";
    let machine = &summary.machine;
    let origin = [
        format!(
            "Machine: {}, {} CPUs, {}, {}.",
            machine.cpu,
            machine.cpus,
            units::size(machine.memory_bytes),
            machine.system
        ),
        format!(
            "Run {}, {}, Kurabe {}, seed {}.",
            summary.run,
            timestamp(summary.began),
            summary.kurabe,
            summary.seed
        ),
    ];
    let basis = summary.sentences(Section::Basis);
    items(&mut text, &basis.into_iter().chain(origin.iter().map(String::as_str)).collect::<Vec<_>>());
    let _ = writeln!(text, "Command: `{}`", command_line(&summary.command).replace('`', "'"));
    text
}

/// The publishing restrictions, before everything else.
pub(crate) fn publishing(text: &mut String, sentences: &[&str]) {
    for sentence in sentences {
        let _ = writeln!(text, "> {}\n", escaped(sentence));
    }
}

fn section(text: &mut String, heading: &str, sentences: &[&str]) {
    if !sentences.is_empty() {
        let _ = writeln!(text, "## {heading}\n");
        items(text, sentences);
    }
}

pub(crate) fn items(text: &mut String, sentences: &[&str]) {
    for sentence in sentences {
        let _ = writeln!(text, "- {}", escaped(sentence));
    }
    text.push('\n');
}

pub(crate) fn markdown_table(table: &Table) -> String {
    let heads: Vec<String> = table.columns.iter().map(|column| escaped(&column.head)).collect();
    let mut text = line(heads.iter().map(String::as_str));
    text += &line(table.columns.iter().map(|column| if column.right { "---:" } else { "---" }));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        text += &line(cells.iter().map(String::as_str));
    }
    text.push('\n');
    text
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells: Vec<&str> = cells.collect();
    format!("| {} |\n", cells.join(" | "))
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
