//! A comparison of two runs as text, Markdown and JSON.

use super::{Compared, Row};
use crate::finding::{Interval, Metric, Section};
use crate::format::{figure, micros};
use crate::markdown::{escaped, items, markdown_table, publishing};
use crate::summary::VerdictResult;
use crate::table::{Column, Table};
use crate::template::amount;
use crate::terminal::{Options, Page};
use std::fmt::Write as _;

/// The comparison for a terminal.
pub fn terminal(compared: &Compared, options: &Options) -> String {
    let mut page = Page::new(options);
    page.heading(&format!("{} → {}", compared.first, compared.second));
    page.publishing(&compared.sentences(Section::Publishing));
    page.gap();
    for table in tables(compared) {
        page.heading(&table.operation);
        page.grid(&table);
        page.gap();
    }
    for section in [Section::Verdict, Section::Caution] {
        for sentence in compared.sentences(section) {
            page.item(sentence);
        }
    }
    page.text
}

/// The comparison as Markdown.
pub fn markdown(compared: &Compared) -> String {
    let mut text = format!("# {} → {}\n\n", escaped(&compared.first), escaped(&compared.second));
    publishing(&mut text, &compared.sentences(Section::Publishing));
    items(&mut text, &compared.sentences(Section::Verdict));
    for table in tables(compared) {
        let _ = write!(text, "## {}\n\n", escaped(&table.operation));
        text.push_str(&markdown_table(&table));
    }
    let cautions = compared.sentences(Section::Caution);
    if !cautions.is_empty() {
        items(&mut text, &cautions);
    }
    text
}

/// A table for each metric that is compared, and one of what else differs.
fn tables(compared: &Compared) -> Vec<Table> {
    let metrics = [
        (Metric::Throughput, "Operations per second"),
        (Metric::ResponseP99, "Response p99"),
        (Metric::HighestRate, "Highest rate per second"),
    ];
    let of = |(metric, title): (Metric, &str)| {
        let rows: Vec<&Row> = compared.rows.iter().filter(|row| row.metric == metric).collect();
        rows_table(&rows, title)
    };
    let all = metrics.into_iter().map(of).chain([differences(compared)]);
    all.filter(|table| !table.rows.is_empty()).collect()
}

/// The comparison as one JSON object, indented, with a final newline.
pub fn json(compared: &Compared) -> String {
    serde_json::to_string_pretty(compared).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")) + "\n"
}

fn rows_table(rows: &[&Row], title: &str) -> Table {
    let count = rows.first().map_or(0, |row| row.shown.len());
    let varies = |at: &usize| {
        let mut values = rows.iter().map(|row| row.shown.get(*at));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let axes: Vec<usize> = (0..count).filter(varies).collect();
    let mut columns = vec![column("operation", false), column("target", false)];
    columns.extend(axes.iter().map(|at| column(&rows[0].shown[*at].0, false)));
    columns.extend(["first", "second", "change"].map(|head| column(head, true)));
    let value = |row: &Row, value: Option<Interval>| match (value, row.metric) {
        (None, _) => "–".to_owned(),
        (Some(value), Metric::ResponseP99) => micros(value.value),
        (Some(value), _) => figure(value.value),
    };
    let cells = |row: &&Row| {
        let mut cells = vec![row.operation.clone(), row.target.clone()];
        cells.extend(axes.iter().map(|at| row.shown[*at].1.clone()));
        cells.extend([value(row, row.first), value(row, row.second), change(row)]);
        cells
    };
    let rows = rows.iter().map(cells).collect();
    Table { operation: title.to_owned(), legend: None, means: false, columns, rows }
}

fn change(row: &Row) -> String {
    let how = row.gain().map_or_else(String::new, |ratio| amount(ratio, row.lower_bound));
    match row.result {
        VerdictResult::Faster => format!("faster: {how}"),
        VerdictResult::Slower => format!("slower: {how}"),
        VerdictResult::NoDifference => "equal".to_owned(),
        VerdictResult::NotComparable => "not compared".to_owned(),
        VerdictResult::Inconclusive => "inconclusive".to_owned(),
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
