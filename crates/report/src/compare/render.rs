//! Formats a comparison of two runs as text, Markdown and JSON.

use super::gate::words;
use super::{Compared, Difference, Judgement, Row};
use crate::finding::wording::{amount, ratio};
use crate::finding::{Interval, Section};
use crate::format::{capital, figure, value_of};
use crate::markdown::{escaped, items, markdown_table, publishing};
use crate::metrics::is_speed;
use crate::summary::VerdictResult;
use crate::table::{Column, Table};
use crate::terminal::{Options, Page};
use kurabe_core::metric::Unit;
use std::fmt::Write as _;

/// The comparison for a terminal.
pub fn terminal(compared: &Compared, options: &Options) -> String {
    let mut page = Page::new(options);
    page.heading(&format!("{} → {}", compared.first, compared.second));
    page.publishing(&compared.sentences(Section::Publishing));
    page.gap();
    for table in tables(compared) {
        page.table(&table.title, "", &table);
    }
    for section in [Section::Verdict, Section::Warning] {
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
        markdown_table(&mut text, "", &table);
    }
    let warnings = compared.sentences(Section::Warning);
    if !warnings.is_empty() {
        items(&mut text, &warnings);
    }
    text
}

/// The largest number of rows in the comment of a pull request, whose length is limited.
const ROWS: usize = 60;

/// The comparison as the comment of a pull request: the decision, the primary results, and the rest collapsed. Rows that
/// did not pass come first.
pub fn pull_request(compared: &Compared) -> String {
    let mut text = format!("### Kurabe: {} → {}\n\n", escaped(&compared.first), escaped(&compared.second));
    publishing(&mut text, &compared.sentences(Section::Publishing));
    let verdict = compared.sentences(Section::Verdict);
    items(&mut text, &verdict[..verdict.len().min(ROWS)]);
    let mut rows: Vec<Row> =
        compared.rows.iter().filter(|row| row.primary || row.gate.is_some()).cloned().collect();
    let order = |row: &Row| match row.gate {
        Some(Judgement::Slower) => 0,
        Some(Judgement::Undecided) => 1,
        Some(Judgement::NotJudged) => 2,
        Some(Judgement::Passed) | None => 3,
    };
    rows.sort_by_key(order);
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    if !rows.is_empty() {
        markdown_table(&mut text, "", &rows_table(&rows, "Primary results".to_owned()));
    }
    if more > 0 {
        let _ = writeln!(text, "{more} more rows are left out here.\n");
    }
    let warnings = compared.sentences(Section::Warning);
    if !warnings.is_empty() {
        items(&mut text, &warnings);
    }
    let others = differences(compared);
    if !others.rows.is_empty() {
        text.push_str("<details><summary>Other differences between the runs</summary>\n\n");
        markdown_table(&mut text, "", &others);
        text.push_str("</details>\n");
    }
    text
}

/// A table for each compared metric, and one of other differences.
pub(super) fn tables(compared: &Compared) -> Vec<Table> {
    let of = |rows: &[Row]| {
        let unit = if rows[0].unit == Unit::PerSecond { " per second" } else { "" };
        rows_table(rows, format!("{}{unit}", capital(&rows[0].metric)))
    };
    let mut rows = compared.rows.clone();
    rows.sort_by_key(|row| compared.rows.iter().position(|first| first.metric == row.metric));
    let all = rows.chunk_by(|a, b| a.metric == b.metric).map(of).chain([differences(compared)]);
    all.filter(|table| !table.rows.is_empty()).collect()
}

/// The comparison as one JSON object, indented, with a final newline.
pub fn json(compared: &Compared) -> String {
    serde_json::to_string_pretty(compared).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")) + "\n"
}

fn rows_table(rows: &[Row], title: String) -> Table {
    let count = rows.first().map_or(0, |row| row.shown.len());
    let varies = |at: &usize| {
        let mut values = rows.iter().map(|row| row.shown.get(*at));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let axes: Vec<usize> = (0..count).filter(varies).collect();
    let several = rows.iter().any(|row| row.metric != rows[0].metric);
    let mut columns: Vec<Column> = several.then(|| column("metric", false)).into_iter().collect();
    columns.extend([column("operation", false), column("target", false)]);
    columns.extend(axes.iter().map(|at| column(&rows[0].shown[*at].0, false)));
    columns.extend(["first", "second", "change"].map(|head| column(head, true)));
    let gated = rows.iter().any(|row| row.gate.is_some());
    columns.extend(gated.then(|| column("gate", false)));
    let value = |row: &Row, value: Option<Interval>| match (value, row.unit) {
        (None, _) => "–".to_owned(),
        (Some(value), Unit::PerSecond) => figure(value.value),
        (Some(value), unit) => value_of(unit, value.value),
    };
    let cells = |row: &Row| {
        let mut cells: Vec<String> = several.then(|| row.metric.clone()).into_iter().collect();
        cells.extend([row.operation.clone(), row.target.clone()]);
        cells.extend(axes.iter().map(|at| row.shown[*at].1.clone()));
        cells.extend([value(row, row.first), value(row, row.second), change(row)]);
        cells.extend(
            gated.then(|| row.gate.map_or_else(|| "–".to_owned(), |judgement| words(row, judgement))),
        );
        cells
    };
    let rows = rows.iter().map(cells).collect();
    Table { title, columns, rows, ..Table::default() }
}

pub(super) fn change(row: &Row) -> String {
    let how = row
        .result
        .gain(row.ratio, row.low, row.high)
        .map_or_else(String::new, |ratio| amount(ratio, row.lower_bound));
    let speed = is_speed(&row.metric);
    match row.result {
        VerdictResult::Better => format!("{}: {how}", if speed { "faster" } else { "better" }),
        VerdictResult::Worse => format!("{}: {how}", if speed { "slower" } else { "worse" }),
        VerdictResult::NoDifference => "equal".to_owned(),
        VerdictResult::NotComparable => "not compared".to_owned(),
        VerdictResult::Undecided => row.ratio.map_or_else(
            || "undecided".to_owned(),
            |value| format!("undecided: {}", ratio(Interval { value, low: row.low, high: row.high })),
        ),
    }
}

fn differences(compared: &Compared) -> Table {
    let row = |one: &Difference| vec![one.what.clone(), one.first.clone(), one.second.clone()];
    let rows = compared.differences.iter().map(row).collect();
    let columns = ["what", "first", "second"].map(|head| column(head, false)).into_iter().collect();
    Table { title: "Other differences".to_owned(), columns, rows, ..Table::default() }
}

fn column(head: &str, right: bool) -> Column {
    Column { head: head.to_owned(), right, spare: 0 }
}
