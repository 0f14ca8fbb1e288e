//! Formats a comparison of two runs as text, Markdown and JSON.

use crate::catalogue;
use crate::compare::gate::{message, words};
use crate::compare::{Compared, Difference, FIRST, SECOND};
use crate::document::{Block, notices};
use crate::finding::{Finding, Runs, Section, Statement};
use crate::format::{figure, value_of};
use crate::html::{self, Document};
use crate::json::with_sentences;
use crate::labels::{Axis, Labels};
use crate::markdown::{self, escaped};
use crate::messages::{Language, Message};
use crate::metrics::is_speed;
use crate::table::{Table, dash};
use crate::target::TargetId;
use crate::terminal::{Options, Page};
use crate::verdict::{Verdict, Why, as_ratio, as_result};
use crate::wording::{amount, ratio, ratio_in_table, say};
use kurabe_core::axis::Cell;
use kurabe_core::metric::{Better, Unit};
use kurabe_core::sort;
use kurabe_core::text::printable;
use kurabe_stats::{Decision, Estimate};
use maud::Markup;
use serde::{Serialize, Serializer};
use std::fmt::Write as _;

/// The number of lines of a gate's result on a terminal.
const LINES: usize = 20;

/// The comparison for a terminal: of a gate its decision and the results that decide it, the most serious first, in at most
/// 20 lines; with all details, or without a gate, all tables below the findings.
pub fn terminal(compared: &Compared, options: &Options) -> String {
    let mut page = Page::new(options, compared.labels.language);
    let both = format!("{} → {}", compared.first, compared.second);
    if compared.gate.is_none() || options.details {
        page.write(&[Block::Title(both)]);
        page.write(&blocks(compared));
        return page.text;
    }
    page.write(&notices(compared.sentences(Section::Publishing)));
    page.write(&[Block::Items(lead(compared).into_iter().chain([both]).chain(settings(compared)).collect())]);
    let rows = judged(compared);
    let room = LINES.saturating_sub(page.lines() + 2).max(1);
    // The line that says what is left out takes the place of a row.
    let shown = if rows.len() > room { room - 1 } else { rows.len() };
    page.grid(&gate_table(&rows[..shown], &compared.labels, compared.labels.language));
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

/// The whole comparison below its title: of a gate, what was judged, then all figures.
fn blocks(compared: &Compared) -> Vec<Block> {
    let conclusion = settings(compared).into_iter().chain(compared.sentences(Section::Verdict)).collect();
    let mut figures: Vec<Block> = tables(compared).into_iter().map(Block::Table).collect();
    let rows = judged(compared);
    if compared.gate.is_some() && !rows.is_empty() {
        let language = compared.labels.language;
        let detail = Block::Details(Message::InDetail.text(language).to_owned(), figures);
        figures = vec![Block::Table(gate_table(&rows, &compared.labels, language)), detail];
    }
    notices(compared.sentences(Section::Publishing))
        .into_iter()
        .chain(filled(Block::Conclusion, conclusion))
        .chain(filled(Block::Facts, compared.sentences(Section::Warning)))
        .chain(figures)
        .collect()
}

/// A block of these sentences; `None` if there are none.
fn filled(block: fn(Vec<String>) -> Block, sentences: Vec<String>) -> Option<Block> {
    (!sentences.is_empty()).then(|| block(sentences))
}

/// What a gate says: its decision, the reasons, and what to do.
fn lead(compared: &Compared) -> Vec<String> {
    let is_of_gate = |one: &&Statement| match &one.finding {
        Finding::Runs(of) => !matches!(of, Runs::Changed { .. } | Runs::Changes { .. }),
        Finding::Gates(_) => true,
        _ => false,
    };
    compared.findings.iter().filter(is_of_gate).map(|one| compared.sentence(one)).collect()
}

/// The rows of a gate, those that did not pass first; without a gate, the primary rows.
pub(super) fn judged(compared: &Compared) -> Vec<&Verdict> {
    let of = |row: &&Verdict| if compared.gate.is_some() { row.gate.is_some() } else { row.primary };
    let mut rows: Vec<&Verdict> = compared.rows.iter().filter(of).collect();
    sort::by_key(&mut rows, |row| match row.gate {
        Some(Decision::Below) => 0,
        Some(Decision::Undecided) => 1,
        Some(Decision::NotTestable) => 2,
        Some(Decision::Above | Decision::Within) | None => 3,
    });
    rows
}

/// The judged rows: of each what it is of, both values, second ÷ first with its interval and with whether that is worse, and the
/// judgement.
fn gate_table(rows: &[&Verdict], labels: &Labels, language: Language) -> Table {
    let targets = rows.iter().any(|row| row.target != rows[0].target);
    let axes = varying(rows, labels);
    let name = |row: &Verdict| {
        // The kinds of a workload's one operation have names of their own.
        let mut name = row.name();
        for axis in &axes {
            let _ = write!(name, ", {} {}", axis.name, axis.show_of(&row.at));
        }
        if targets { format!("{name}, {}", target(row)) } else { name }
    };
    let ratio = |row: &Verdict| row.of_values().map_or_else(dash, ratio_in_table);
    let mut table = Table { rows: vec![Vec::new(); rows.len()], ..Table::default() };
    let mut add = |head: Message, right, spare, text: &dyn Fn(&Verdict) -> String| {
        table.add(head.text(language), right, spare, rows.iter().map(|row| text(row)));
    };
    let gate = |row: &Verdict| row.gate.map_or("–", |one| message(one).text(language)).to_owned();
    add(Message::Result, false, 0, &name);
    add(Message::First, true, 2, &|row| value(row, FIRST));
    add(Message::Second, true, 1, &|row| value(row, SECOND));
    add(Message::SecondToFirst, false, 0, &ratio);
    add(Message::SecondIs, false, 3, &|row| direction(row, language).trim_start().to_owned());
    add(Message::Gate, false, 0, &gate);
    table
}

/// ` worse` or ` better`, where the interval excludes 1.
pub(super) fn direction(row: &Verdict, language: Language) -> &'static str {
    match row.ratio.and_then(Estimate::ends) {
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

/// The largest number of rows in the comment of a pull request, whose length is limited.
const ROWS: usize = 60;

/// The comparison as the comment of a pull request: the decision, what is judged with ratios, and the rest collapsed. Rows that
/// did not pass come first.
pub fn pull_request(compared: &Compared) -> String {
    let mut verdict =
        if compared.gate.is_some() { lead(compared) } else { compared.sentences(Section::Verdict) };
    verdict.truncate(ROWS);
    verdict.extend(settings(compared));
    let rows = judged(compared);
    let shown = &rows[..rows.len().min(ROWS)];
    let language = compared.labels.language;
    let (title, table) = if compared.gate.is_some() {
        let title = say!(language, "What is judged", "判定したもの");
        (title, gate_table(shown, &compared.labels, language))
    } else {
        (say!(language, "Primary results", "主な結果"), rows_table(shown, &compared.labels))
    };
    let table = Block::Table(Table { title, ..table });
    let left_out = rows.len() - shown.len();
    let left_out = (left_out > 0).then(|| {
        let more = say!(
            language,
            "{left_out} more rows are left out here.",
            "ここにない行がほかに {left_out} 行あります。"
        );
        Block::Paragraph(more)
    });
    let others = differences(compared);
    let others = (!others.rows.is_empty()).then(|| {
        let title = say!(language, "Other differences between the runs", "2 つの実行のそのほかの違い");
        Block::Details(title, vec![Block::Table(others)])
    });
    let blocks: Vec<Block> = notices(compared.sentences(Section::Publishing))
        .into_iter()
        .chain(filled(Block::Conclusion, verdict))
        .chain((!rows.is_empty()).then_some(table))
        .chain(left_out)
        .chain(filled(Block::Facts, compared.sentences(Section::Warning)))
        .chain(others)
        .collect();
    let (first, second) = (escaped(&compared.first), escaped(&compared.second));
    format!("### Kurabe: {first} → {second}\n\n{}", markdown::write(&blocks))
}

/// A table for each compared metric, and one of other differences.
pub(super) fn tables(compared: &Compared) -> Vec<Table> {
    let of = |rows: &[&Verdict]| {
        let language = compared.labels.language;
        let metric = compared.labels.begun(&catalogue::translated(&rows[0].pair.metric, language));
        let title = match rows[0].unit {
            Unit::PerSecond => say!(language, "{metric} per second", "{metric}(毎秒)"),
            _ => metric,
        };
        Table { title, ..rows_table(rows, &compared.labels) }
    };
    let mut rows: Vec<&Verdict> = compared.rows.iter().collect();
    sort::by_key(&mut rows, |row| {
        compared.rows.iter().position(|first| first.pair.metric == row.pair.metric)
    });
    let all = rows.chunk_by(|a, b| a.pair.metric == b.pair.metric).map(of).chain([differences(compared)]);
    all.filter(|table| !table.rows.is_empty()).collect()
}

/// The comparison as one JSON object, indented, with a final newline.
pub fn json(compared: &Compared) -> String {
    with_sentences(compared, &compared.findings, &compared.labels)
}

/// Writes the rows as other programs read them.
pub(super) fn written<S: Serializer>(rows: &[Verdict], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(rows.iter().map(WrittenRow::of))
}

#[derive(Serialize)]
struct WrittenRow<'a> {
    target: &'a str,
    axes: &'a Cell,
    operation: &'a str,
    metric: &'a str,
    unit: Unit,
    primary: bool,
    first: Option<Estimate>,
    second: Option<Estimate>,
    #[serde(serialize_with = "as_result")]
    result: Decision,
    why: Option<&'a Why>,
    better: Better,
    /// Second ÷ first of the values.
    #[serde(flatten, serialize_with = "as_ratio")]
    ratio: Option<Estimate>,
    lower_bound: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'static str>,
}

impl<'a> WrittenRow<'a> {
    fn of(row: &'a Verdict) -> Self {
        let gate = |answer: Decision| match answer {
            Decision::Above | Decision::Within => "passed",
            Decision::Below => "slower",
            Decision::Undecided => "undecided",
            Decision::NotTestable => "not-judged",
        };
        Self {
            target: target(row),
            axes: &row.at,
            operation: &row.operation,
            metric: &row.pair.metric,
            unit: row.unit,
            primary: row.primary,
            first: row.values[FIRST],
            second: row.values[SECOND],
            result: row.result,
            why: row.why.as_ref(),
            better: row.better,
            ratio: row.of_values(),
            lower_bound: row.lower_bound,
            gate: row.gate.map(gate),
        }
    }
}

fn rows_table(rows: &[&Verdict], labels: &Labels) -> Table {
    let language = labels.language;
    let mut table = Table { rows: vec![Vec::new(); rows.len()], ..Table::default() };
    let mut add = |head: &str, right: bool, text: &dyn Fn(&Verdict) -> String| {
        table.add(head, right, 0, rows.iter().map(|row| text(row)));
    };
    if rows.iter().any(|row| row.pair.metric != rows[0].pair.metric) {
        add(Message::Metric.text(language), false, &|row| row.pair.metric.clone());
    }
    add(Message::Operation.text(language), false, &|row| match language {
        Language::English => row.operation.clone(),
        Language::Japanese => labels.plural(&row.operation),
    });
    add(Message::Target.text(language), false, &|row| target(row).to_owned());
    for axis in varying(rows, labels) {
        add(&axis.name, false, &|row| axis.show_of(&row.at));
    }
    add(Message::First.text(language), true, &|row| number(row, FIRST));
    add(Message::Second.text(language), true, &|row| number(row, SECOND));
    add(Message::Change.text(language), true, &|row| change(row, language));
    if rows.iter().any(|row| row.gate.is_some()) {
        add(Message::Gate.text(language), false, &|row| {
            row.gate.map_or_else(dash, |one| words(row, one, labels, language))
        });
    }
    table
}

/// The axes whose values vary among these rows.
fn varying<'a>(rows: &[&Verdict], labels: &'a Labels) -> Vec<&'a Axis> {
    let varies = |axis: &&Axis| rows.iter().any(|row| row.at.get(&axis.name) != rows[0].at.get(&axis.name));
    labels.axes.iter().filter(varies).collect()
}

/// The name of a row's target.
fn target(row: &Verdict) -> &str {
    row.target.as_ref().map_or("", TargetId::name)
}

/// A row's value on one side, beside those of other metrics.
pub(super) fn value(row: &Verdict, side: usize) -> String {
    let unit = if row.unit == Unit::PerSecond && row.values[side].is_some() { "/s" } else { "" };
    number(row, side) + unit
}

/// A row's value on one side, in a table whose title has the unit of rates.
fn number(row: &Verdict, side: usize) -> String {
    match (row.values[side], row.unit) {
        (None, _) => "–".to_owned(),
        (Some(value), Unit::PerSecond) => figure(value.value),
        (Some(value), unit) => value_of(unit, value.value),
    }
}

pub(super) fn change(row: &Verdict, language: Language) -> String {
    let gain = row.result.gain(row.ratio);
    let how = gain.map_or_else(String::new, |ratio| amount(ratio, row.lower_bound, language));
    let by = |message: Message| message.with(language, &[("how", &how)]);
    match (row.result, is_speed(&row.pair.metric)) {
        (Decision::Above, true) => by(Message::Faster),
        (Decision::Above, false) => by(Message::Better),
        (Decision::Below, true) => by(Message::SlowerBy),
        (Decision::Below, false) => by(Message::Worse),
        (Decision::Within, _) => Message::Equal.text(language).to_owned(),
        (Decision::NotTestable, _) => Message::NotCompared.text(language).to_owned(),
        (Decision::Undecided, _) => row.of_values().map_or_else(
            || Message::Undecided.text(language).to_owned(),
            |of| Message::UndecidedAt.with(language, &[("ratio", &ratio(of, language))]),
        ),
    }
}

fn differences(compared: &Compared) -> Table {
    let (all, language) = (&compared.differences, compared.labels.language);
    let title = say!(language, "Other differences", "そのほかの違い");
    let mut table = Table { title, rows: vec![Vec::new(); all.len()], ..Table::default() };
    let mut add = |head: Message, text: &dyn Fn(&Difference) -> String| {
        table.add(head.text(language), false, 0, all.iter().map(text));
    };
    add(Message::What, &|one| one.shown(language));
    add(Message::First, &|one| catalogue::value(&one.first, language));
    add(Message::Second, &|one| catalogue::value(&one.second, language));
    table
}

/// The comparison as `JUnit` XML. Results that are slower are failures. Results that are undecided or not judged are
/// skipped, because `JUnit` has no third outcome.
pub fn junit(compared: &Compared, experiment: &str) -> String {
    let (mut cases, mut tests, mut failures, mut skipped) = (String::new(), 0_u32, 0_u32, 0_u32);
    for row in &compared.rows {
        let Some(answer) = row.gate else { continue };
        tests += 1;
        let class = escaped_xml(&format!("kurabe.{experiment}.{}", target(row)));
        let _ = write!(
            cases,
            "    <testcase name=\"{}\" classname=\"{class}\"",
            escaped_xml(&name(row, &compared.labels))
        );
        let margin = compared.gate.as_ref().and_then(|gate| gate.decided.criteria.of(row));
        let margin = margin.unwrap_or_default().0 * 100.0;
        match answer {
            Decision::Above | Decision::Within => cases.push_str("/>\n"),
            Decision::Below => {
                failures += 1;
                let message = escaped_xml(&format!("{}, beyond {margin} %", change(row, Language::English)));
                let text = escaped_xml(&interval(row));
                let failure = format!("<failure message=\"{message}\" type=\"slower\">{text}</failure>");
                let _ = writeln!(cases, ">\n      {failure}\n    </testcase>");
            }
            Decision::Undecided | Decision::NotTestable => {
                skipped += 1;
                let why = format!(
                    "{}: {}; margin {margin} %",
                    words(row, answer, &compared.labels, Language::English),
                    interval(row)
                );
                let _ =
                    writeln!(cases, ">\n      <skipped message=\"{}\"/>\n    </testcase>", escaped_xml(&why));
            }
        }
    }
    let suite = escaped_xml(&format!("kurabe {experiment}"));
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kurabe\" {counts}>\n  \
         <testsuite name=\"{suite}\" {counts}>\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

/// `read, payload 10 kB, layout blob: throughput on sqlite`.
fn name(row: &Verdict, labels: &Labels) -> String {
    let axes = labels.axes.iter().map(|axis| format!(", {} {}", axis.name, axis.show_of(&row.at)));
    format!("{}{}: {} on {}", row.operation, axes.collect::<String>(), row.pair.metric, target(row))
}

fn interval(row: &Verdict) -> String {
    let Some(Estimate { value: ratio, low, high }) = row.of_values() else {
        return "the runs cannot be compared here".to_owned();
    };
    match low.zip(high) {
        Some((low, high)) => {
            let direction = match direction(row, Language::English) {
                "" => String::new(),
                known => format!(",{known}"),
            };
            let [first, second] = [FIRST, SECOND].map(|side| value(row, side));
            format!("{first} → {second}: second ÷ first is {ratio:.3} ({low:.3} to {high:.3}){direction}")
        }
        None => format!("second ÷ first is {ratio:.3}, without an interval"),
    }
}

/// A text for an element or an attribute, without the characters that XML 1.0 does not allow.
fn escaped_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The findings and tables, without a heading.
pub fn fragment(compared: &Compared) -> Markup {
    html::write(&blocks(compared), compared.labels.language)
}

/// The comparison as a page of its own: the decision and its reasons, then what was judged, then all figures.
pub fn page(compared: &Compared) -> String {
    let language = compared.labels.language;
    let title = format!("{} → {}", compared.first, compared.second);
    let body = maud::html! { header { h1 { (title) } } main { (fragment(compared)) } };
    Document { language, title: &title, style: "", body, script: String::new() }.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_characters_that_xml_forbids_are_escaped() {
        assert_eq!(escaped_xml("a<b>&\"c\" 5 %"), "a&lt;b&gt;&amp;&quot;c&quot; 5 %");
        assert_eq!(escaped_xml("\u{1b}[31m\n\0é"), r"\u{1b}[31m\n\u{0}é");
        assert_eq!(escaped_xml("\u{ffff}"), "\u{fffd}");
    }
}
