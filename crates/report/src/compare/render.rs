//! Formats a comparison of two runs as text, Markdown and JSON.

use super::gate::{message, words};
use super::{Answer, Compared, Difference, Row};
use crate::finding::{Finding, Runs, Section, Statement};
use crate::format::{capital, figure, value_of};
use crate::json::with_sentences;
use crate::labels::Labels;
use crate::markdown::{escaped, items, markdown_table, publishing};
use crate::messages::{Language, Message};
use crate::metrics::is_speed;
use crate::table::{Table, dash};
use crate::terminal_page::{Options, Page};
use crate::wording::{amount, ratio, ratio_in_table};
use kurabe_core::metric::Unit;
use kurabe_core::sort;
use kurabe_stats::{Estimate, VerdictResult};
use std::fmt::Write as _;

/// The number of lines of a gate's result on a terminal.
const LINES: usize = 20;

/// The comparison for a terminal: of a gate its decision and the results that decide it, the most serious first, in at most
/// 20 lines; with all details, or without a gate, all tables below the findings.
pub fn terminal(compared: &Compared, options: &Options) -> String {
    let mut page = Page::new(options, compared.labels.language);
    let brief = compared.gate.is_some() && !options.details;
    let both = format!("{} → {}", compared.first, compared.second);
    page.publishing(&compared.sentences(Section::Publishing));
    if brief {
        for sentence in lead(compared) {
            page.item(&sentence);
        }
        page.item(&both);
    } else {
        page.heading(&both);
    }
    if let Some(sentence) = settings(compared) {
        page.item(&sentence);
    }
    if !brief {
        for section in [Section::Verdict, Section::Warning] {
            for sentence in compared.sentences(section) {
                page.item(&sentence);
            }
        }
        page.gap();
        for table in tables(compared) {
            page.table(&table.title, "", &table);
        }
        return page.text;
    }
    let rows = judged(compared);
    let room = LINES.saturating_sub(page.lines() + 2).max(1);
    // The line that says what is left out takes the place of a row.
    let shown = if rows.len() > room { room - 1 } else { rows.len() };
    page.grid(&gate_table(&rows[..shown], compared.labels.language));
    match rows.len() - shown {
        0 => {}
        more => {
            page.paragraph(
                &Message::MoreRows.with(compared.labels.language, &[("count", &more.to_string())]),
            );
        }
    }
    page.text
}

/// What a gate says: its decision, the reasons, and what to do.
fn lead(compared: &Compared) -> Vec<String> {
    let is_of_gate = |one: &&Statement| match &one.finding {
        Finding::Runs(of) => !matches!(of, Runs::Changed { .. } | Runs::Changes { .. }),
        _ => false,
    };
    compared.findings.iter().filter(is_of_gate).map(|one| compared.sentence(one)).collect()
}

/// The rows of a gate, those that did not pass first; without a gate, the primary rows.
pub(super) fn judged(compared: &Compared) -> Vec<&Row> {
    let of = |row: &&Row| if compared.gate.is_some() { row.gate.is_some() } else { row.primary };
    let mut rows: Vec<&Row> = compared.rows.iter().filter(of).collect();
    sort::by_key(&mut rows, |row| match row.gate {
        Some(Answer::DoesNotHold) => 0,
        Some(Answer::Undecided) => 1,
        Some(Answer::NotTestable) => 2,
        Some(Answer::Holds) | None => 3,
    });
    rows
}

/// The judged rows: of each what it is of, both values, second ÷ first with its interval and with whether that is worse, and the
/// judgement.
pub(super) fn gate_table(rows: &[&Row], language: Language) -> Table {
    let targets = rows.iter().any(|row| row.target != rows[0].target);
    let axes = varying(rows);
    let name = |row: &Row| {
        // The kinds of a workload's one operation have names of their own.
        let mut name = row.name();
        for at in &axes {
            let (of, value) = &row.shown[*at];
            let _ = write!(name, ", {of} {value}");
        }
        if targets { format!("{name}, {}", row.target) } else { name }
    };
    let ratio = |row: &Row| row.ratio.map_or_else(dash, ratio_in_table);
    let mut table = Table { rows: vec![Vec::new(); rows.len()], ..Table::default() };
    let mut add = |head: Message, right, spare, text: &dyn Fn(&Row) -> String| {
        table.add(head.text(language), right, spare, rows.iter().map(|row| text(row)));
    };
    let gate = |row: &Row| row.gate.map_or("–", |one| message(one).text(language)).to_owned();
    add(Message::Result, false, 0, &name);
    add(Message::First, true, 2, &|row| value(row, row.first));
    add(Message::Second, true, 1, &|row| value(row, row.second));
    add(Message::SecondToFirst, false, 0, &ratio);
    add(Message::SecondIs, false, 3, &|row| direction(row, language).trim_start().to_owned());
    add(Message::Gate, false, 0, &gate);
    table
}

/// ` worse` or ` better`, where the interval excludes 1.
pub(super) fn direction(row: &Row, language: Language) -> &'static str {
    match row.gain().and_then(Estimate::ends) {
        Some((_, high)) if high < 1.0 => Message::IsWorse.text(language),
        Some((low, _)) if low > 1.0 => Message::IsBetter.text(language),
        _ => "",
    }
}

/// The settings that differ, by name and value, as one sentence.
fn settings(compared: &Compared) -> Option<String> {
    let of = |one: &Difference| {
        let values = [("name", one.setting.as_deref()?), ("a", &one.first), ("b", &one.second)];
        Some(Message::Against.with(compared.labels.language, &values))
    };
    let all: Vec<String> = compared.differences.iter().filter_map(of).collect();
    let all = all.join(Message::Comma.text(compared.labels.language));
    (!all.is_empty()).then(|| Message::SettingsDiffer.with(compared.labels.language, &[("all", &all)]))
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

/// The comparison as the comment of a pull request: the decision, what is judged with ratios, and the rest collapsed. Rows that
/// did not pass come first.
pub fn pull_request(compared: &Compared) -> String {
    let mut text = format!("### Kurabe: {} → {}\n\n", escaped(&compared.first), escaped(&compared.second));
    publishing(&mut text, &compared.sentences(Section::Publishing));
    let settings = settings(compared);
    let mut verdict =
        if compared.gate.is_some() { lead(compared) } else { compared.sentences(Section::Verdict) };
    verdict.truncate(ROWS);
    verdict.extend(settings);
    items(&mut text, &verdict);
    let rows = judged(compared);
    let shown = &rows[..rows.len().min(ROWS)];
    if compared.gate.is_some() && !rows.is_empty() {
        markdown_table(
            &mut text,
            "",
            &Table { title: "What is judged".to_owned(), ..gate_table(shown, Language::English) },
        );
    } else if !rows.is_empty() {
        let shown: Vec<Row> = shown.iter().map(|row| (*row).clone()).collect();
        markdown_table(&mut text, "", &rows_table(&shown, "Primary results".to_owned(), &compared.labels));
    }
    if rows.len() > ROWS {
        let _ = writeln!(text, "{} more rows are left out here.\n", rows.len() - ROWS);
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
        rows_table(rows, format!("{}{unit}", capital(&rows[0].metric)), &compared.labels)
    };
    let mut rows = compared.rows.clone();
    sort::by_key(&mut rows, |row| compared.rows.iter().position(|first| first.metric == row.metric));
    let all = rows.chunk_by(|a, b| a.metric == b.metric).map(of).chain([differences(compared)]);
    all.filter(|table| !table.rows.is_empty()).collect()
}

/// The comparison as one JSON object, indented, with a final newline.
pub fn json(compared: &Compared) -> String {
    with_sentences(compared, &compared.findings, &compared.labels)
}

fn rows_table(rows: &[Row], title: String, labels: &Labels) -> Table {
    let language = labels.language;
    let mut table = Table { title, rows: vec![Vec::new(); rows.len()], ..Table::default() };
    let mut add = |head: &str, right: bool, text: &dyn Fn(&Row) -> String| {
        table.add(head, right, 0, rows.iter().map(text));
    };
    if rows.iter().any(|row| row.metric != rows[0].metric) {
        add(Message::Metric.text(language), false, &|row| row.metric.clone());
    }
    add(Message::Operation.text(language), false, &|row| row.operation.clone());
    add(Message::Target.text(language), false, &|row| row.target.clone());
    for at in varying(&rows.iter().collect::<Vec<_>>()) {
        add(&rows[0].shown[at].0, false, &|row| row.shown[at].1.clone());
    }
    add(Message::First.text(language), true, &|row| value(row, row.first));
    add(Message::Second.text(language), true, &|row| value(row, row.second));
    add(Message::Change.text(language), true, &|row| change(row, language));
    if rows.iter().any(|row| row.gate.is_some()) {
        add(Message::Gate.text(language), false, &|row| {
            row.gate.map_or_else(dash, |one| words(row, one, labels))
        });
    }
    table
}

/// The axes whose values vary among these rows, by position.
fn varying(rows: &[&Row]) -> Vec<usize> {
    let varies = |at: &usize| rows.iter().any(|row| row.shown[*at] != rows[0].shown[*at]);
    (0..rows.first().map_or(0, |row| row.shown.len())).filter(varies).collect()
}

/// A row's value on one side.
pub(super) fn value(row: &Row, value: Option<Estimate>) -> String {
    match (value, row.unit) {
        (None, _) => "–".to_owned(),
        (Some(value), Unit::PerSecond) => figure(value.value),
        (Some(value), unit) => value_of(unit, value.value),
    }
}

pub(super) fn change(row: &Row, language: Language) -> String {
    let gain = row.result.gain(row.gain());
    let how = gain.map_or_else(String::new, |ratio| amount(ratio, row.lower_bound));
    let by = |message: Message| message.with(language, &[("how", &how)]);
    match (row.result, is_speed(&row.metric)) {
        (VerdictResult::Better, true) => by(Message::Faster),
        (VerdictResult::Better, false) => by(Message::Better),
        (VerdictResult::Worse, true) => by(Message::SlowerBy),
        (VerdictResult::Worse, false) => by(Message::Worse),
        (VerdictResult::NoDifference, _) => Message::Equal.text(language).to_owned(),
        (VerdictResult::NotComparable, _) => Message::NotCompared.text(language).to_owned(),
        (VerdictResult::Undecided, _) => row.ratio.map_or_else(
            || Message::Undecided.text(language).to_owned(),
            |of| Message::UndecidedAt.with(language, &[("ratio", &ratio(of, language))]),
        ),
    }
}

fn differences(compared: &Compared) -> Table {
    let all = &compared.differences;
    let (title, rows) = ("Other differences".to_owned(), vec![Vec::new(); all.len()]);
    let mut table = Table { title, rows, ..Table::default() };
    table.add("what", false, 0, all.iter().map(|one| one.what.clone()));
    table.add("first", false, 0, all.iter().map(|one| one.first.clone()));
    table.add("second", false, 0, all.iter().map(|one| one.second.clone()));
    table
}
