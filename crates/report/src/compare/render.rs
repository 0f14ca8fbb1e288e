//! A comparison of two runs as text, Markdown and JSON.

use super::Compared;
use crate::format::figure;
use crate::markdown::{escaped, items, markdown_table, publishing};
use crate::phrase::HowMuch;
use crate::summary::{Rate, VerdictResult};
use crate::table::{Column, Table};
use crate::terminal::{Options, Page};
use kurabe_stats::{Interval, PairedRatio};
use std::fmt::Write as _;

/// The comparison for a terminal.
pub fn terminal(compared: &Compared, options: &Options) -> String {
    let mut page = Page::new(options);
    page.heading(&format!("{} → {}", compared.first, compared.second));
    page.publishing(&compared.publishing);
    page.gap();
    for table in [rows(compared), differences(compared)] {
        if !table.rows.is_empty() {
            page.heading(&table.operation);
            page.grid(&table);
            page.gap();
        }
    }
    for sentence in compared.summary.iter().chain(&compared.unmatched) {
        page.item(sentence);
    }
    page.text
}

/// The comparison as Markdown.
pub fn markdown(compared: &Compared) -> String {
    let mut text = format!("# {} → {}\n\n", escaped(&compared.first), escaped(&compared.second));
    publishing(&mut text, &compared.publishing);
    items(&mut text, &compared.summary);
    for table in [rows(compared), differences(compared)] {
        if !table.rows.is_empty() {
            let _ = write!(text, "## {}\n\n", escaped(&table.operation));
            text.push_str(&markdown_table(&table));
        }
    }
    if !compared.unmatched.is_empty() {
        items(&mut text, &compared.unmatched);
    }
    text
}

/// The comparison as one JSON object, indented, with a final newline.
pub fn json(compared: &Compared) -> String {
    serde_json::to_string_pretty(compared).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")) + "\n"
}

fn rows(compared: &Compared) -> Table {
    let count = compared.rows.first().map_or(0, |row| row.shown.len());
    let varies = |at: &usize| {
        let mut values = compared.rows.iter().map(|row| row.shown.get(*at));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let axes: Vec<usize> = (0..count).filter(varies).collect();
    let name = |at: usize| compared.rows[0].shown[at].0.as_str();
    let mut columns = vec![column("operation", false), column("target", false)];
    columns.extend(axes.iter().map(|at| column(name(*at), false)));
    columns.extend(["first", "second", "change"].map(|head| column(head, true)));
    let rate = |rate: Option<Rate>| rate.map_or_else(|| "–".to_owned(), |rate| figure(rate.median));
    let rows = compared
        .rows
        .iter()
        .map(|row| {
            let mut cells = vec![row.operation.clone(), row.target.clone()];
            cells.extend(axes.iter().map(|at| row.shown[*at].1.clone()));
            cells.extend([rate(row.first), rate(row.second), change(row)]);
            cells
        })
        .collect();
    Table { operation: "Operations per second".to_owned(), legend: None, means: false, columns, rows }
}

fn change(row: &super::Row) -> String {
    let ratio = |inverse: bool| {
        let interval = row.low.zip(row.high).map(|(low, high)| Interval { low, high });
        let ratio = PairedRatio {
            ratio: row.ratio.unwrap_or(1.0),
            interval,
            rounds: 0,
            confidence: 0.95,
            comparisons: 1,
        };
        HowMuch::of(&if inverse { ratio.inverse() } else { ratio }).amount
    };
    match row.result {
        VerdictResult::Faster => format!("faster: {}", ratio(false)),
        VerdictResult::Slower => format!("slower: {}", ratio(true)),
        VerdictResult::Indistinguishable => "no difference seen".to_owned(),
        VerdictResult::NotComparable => "not compared".to_owned(),
        VerdictResult::Open => "open".to_owned(),
    }
}

fn differences(compared: &Compared) -> Table {
    let rows = compared
        .differences
        .iter()
        .map(|difference| vec![difference.what.clone(), difference.first.clone(), difference.second.clone()])
        .collect();
    let columns = ["what", "first", "second"].map(|head| column(head, false)).into_iter().collect();
    Table {
        operation: "What differs beside the figures".to_owned(),
        legend: None,
        means: false,
        columns,
        rows,
    }
}

fn column(head: &str, right: bool) -> Column {
    Column { head: head.to_owned(), right, spare: 0 }
}
