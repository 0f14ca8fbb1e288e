//! The report as Markdown with tables.

use crate::engine;
use crate::format::{capital, command_line, list, moment};
use crate::summary::Summary;
use crate::table::{Table, fixed_axes, lacking, tables};
use crate::terminal::trust;
use kurabe_core::units;
use std::fmt::Write as _;

/// The report as Markdown text.
pub fn render(summary: &Summary) -> String {
    let words = &summary.words;
    let mut text =
        format!("# {}: {}\n\n", escaped(&capital(&summary.experiment)), escaped(&words.targets.join(", ")));
    if let Some(question) = &summary.question {
        let _ = writeln!(text, "{}\n", escaped(question));
    }
    publishing(&mut text, &summary.publishing);
    items(&mut text, &summary.summary);
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
    for said in engine::tables(summary, false) {
        let _ = writeln!(text, "## {}\n", escaped(&said.title));
        if !said.legend.is_empty() {
            let _ = writeln!(text, "{}\n", escaped(&said.legend));
        }
        text += &markdown_table(&said.table);
    }
    let untold = engine::untold(summary);
    if !untold.is_empty() {
        text += "## What the server does not tell\n\n";
        items(&mut text, &untold);
    }
    if !summary.bounds.is_empty() {
        text += "## What bound it\n\n";
        items(&mut text, &summary.bounds);
    }
    let lacking = lacking(summary);
    if !lacking.is_empty() {
        text += "## Without figures\n\n| target | cell | operations | status | reason |\n| --- | --- | --- | --- | --- |\n";
        for entry in lacking {
            let cells =
                [&entry.target, &entry.place, &list(&entry.operations), entry.status_word(), &entry.reason];
            text += &line(cells.map(escaped).iter().map(String::as_str));
        }
        text.push('\n');
    }
    if !summary.details.is_empty() {
        text += "## In particular\n\n";
        items(&mut text, &summary.details);
    }
    text += "## What this rests on\n\n";
    let mut rests = vec![summary.scope.clone()];
    rests.extend(trust(summary));
    rests.extend(summary.notes.iter().cloned());
    let machine = &summary.machine;
    rests.push(format!(
        "Machine: {}, {} CPUs, {}, {}.",
        machine.cpu,
        machine.cpus,
        units::size(machine.memory_bytes),
        machine.system
    ));
    rests.push(format!(
        "Run {}, {}, Kurabe {}, seed {}.",
        summary.run,
        moment(summary.began),
        summary.kurabe,
        summary.seed
    ));
    items(&mut text, &rests);
    let _ = writeln!(text, "Command: `{}`", command_line(&summary.command).replace('`', "'"));
    text
}

/// What licences say of publishing, above all else.
pub(crate) fn publishing(text: &mut String, sentences: &[String]) {
    for sentence in sentences {
        let _ = writeln!(text, "> {}\n", escaped(sentence));
    }
}

pub(crate) fn items(text: &mut String, sentences: &[String]) {
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

/// A text that Markdown shows as it is, on one line.
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
