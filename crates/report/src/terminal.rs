//! The report for a terminal: the answer in few lines, or the whole document; and the page that it is written on: wrapped
//! paragraphs, items, and tables without the columns that do not fit.

use crate::answer::{self, Ranking, rankings, statements};
use crate::cell::Status;
use crate::document::{self, Block};
use crate::finding::{Finding, Note, Section, Statement};
use crate::format::{GLUE, glued};
use crate::messages::{Language, Message};
use crate::summary::Summary;
use crate::table::{Table, lacking};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use kurabe_core::sort;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The number of lines of a report without details: it is read without scrolling.
const LINES: usize = 20;

/// The number of failures that are shown in any case.
const FAILED: usize = 2;

/// The report as text that ends with a newline: the answer in at most 20 lines, unless a licence or a message of a server
/// needs more; or with all details.
pub fn render(summary: &Summary, options: &Options) -> String {
    if !options.details {
        return answer(summary, options);
    }
    let mut page = Page::new(options, summary.labels.language);
    page.write(&document::report(summary));
    format!("{}\n", page.text.trim_end())
}

/// The answer: what else the experiment answers with, the ranking at each place, what lacks results, and the most serious
/// notes.
fn answer(summary: &Summary, options: &Options) -> String {
    let mut page = Page::new(options, summary.labels.language);
    page.write(&document::notices(summary.sentences(Section::Publishing)));
    let mut all = rankings(summary);
    let [others, _] = statements(summary, !all.is_empty());
    let threshold = answer::threshold_sentence(summary);
    let least = all.first().map_or(0, |ranking| ranking.compared().count() + 2);
    let mut notes: Vec<&Statement> = summary.statements(Section::Warning).collect();
    // Those from before the first trial were shown before it.
    notes.retain(|note| {
        !matches!(note.finding, Finding::Note(Note::Preflight { .. } | Note::TargetNote { .. }))
    });
    sort::by_key(&mut notes, |note| note.finding.consequence());
    let notes: Vec<String> = notes.into_iter().map(|note| summary.sentence(note)).collect();
    // What failed is not left out for want of a line.
    let failed: Vec<String> = lacking(summary).into_iter().map(|(_, sentence)| sentence).collect();
    let needed: usize = failed.iter().take(FAILED).map(|one| page.item_height(one)).sum();
    // The last line. What was asked for comes before notes.
    let limit = usize::from(summary.spec.slo_ns.is_some());
    let most = LINES.saturating_sub(1 + limit + needed);
    let others: Vec<String> = others.into_iter().map(|one| summary.sentence(one)).collect();
    let left = page.items(&others, most.saturating_sub(least));
    let room = most.saturating_sub(page.lines() + 1);
    let height = |ranking: &Ranking<'_>| ranking.rows.len() + page.height(&ranking.heading);
    let mut cut = 0;
    if all.iter().map(height).sum::<usize>() > room {
        for ranking in &mut all {
            let before = ranking.rows.len();
            ranking.keep_compared();
            cut += before - ranking.rows.len();
        }
    }
    let heights: Vec<usize> = all.iter().map(height).collect();
    let mut shown = fitting_rankings(&all, &heights, room);
    if let Some(sentence) = left_out(summary, &all, &shown, cut) {
        shown = fitting_rankings(&all, &heights, room.saturating_sub(page.item_height(&sentence)));
    }
    if !shown.is_empty() {
        let shown: Vec<&Ranking<'_>> = shown.iter().map(|at| &all[*at]).collect();
        let (table, headings) = answer::table(&summary.experiment, &shown, summary.labels.language);
        page.groups(&table, &headings);
    }
    if let Some(sentence) = left_out(summary, &all, &shown, cut) {
        page.item(&sentence);
    }
    if let Some(sentence) = threshold {
        page.item(&sentence);
    }
    let (first, failed) = failed.split_at(failed.len().min(FAILED));
    page.items(first, usize::MAX);
    let behind = left + page.items(&[failed, &notes].concat(), LINES - 1);
    let language = summary.labels.language;
    let more = match behind {
        0 => String::new(),
        1 => Message::OneMore.text(language).to_owned(),
        more => Message::MoreFindings.with(language, &[("count", &more.to_string())]),
    };
    let command = format!("kurabe report {} --verbose", summary.run);
    page.paragraph(&Message::AllFigures.with(language, &[("more", &more), ("command", &command)]));
    page.text
}

/// What was measured and is not shown: combinations in rankings, and of the rankings that are left out the operations and
/// values of the chart axis that no other has; of the rest the place, or their number.
fn left_out(summary: &Summary, all: &[Ranking<'_>], shown: &[usize], cut: usize) -> Option<String> {
    let labels = &summary.labels;
    let chart = labels.chart_axis();
    let of = |ranking: &Ranking<'_>| -> Option<[String; 2]> {
        let cell = ranking.rows.first()?.cell;
        let at = chart.and_then(|axis| Some(axis.name_value(cell.axes.get(&axis.name)?)));
        Some([labels.plural(&cell.operation), at.unwrap_or_default()])
    };
    let seen: Vec<[String; 2]> = shown.iter().filter_map(|at| of(&all[*at])).collect();
    let hidden = all.iter().enumerate().filter(|(at, _)| !shown.contains(at));
    let (mut what, mut others) = ([Vec::new(), Vec::new()], Vec::new());
    for (_, ranking) in hidden {
        let names = of(ranking).unwrap_or_default();
        match (0..2).find(|part| seen.iter().all(|one| one[*part] != names[*part])) {
            Some(part) if what[part].contains(&names[part]) => {}
            Some(part) => what[part].push(names[part].clone()),
            None => others.push(ranking.heading.clone()),
        }
    }
    let counted =
        |message: Message, count: usize| message.with(labels.language, &[("count", &count.to_string())]);
    if others.len() > 1 {
        others = vec![counted(Message::MorePlaces, others.len())];
    }
    others.extend((cut > 0).then(|| counted(Message::MoreCombinations, cut)));
    let what = [what.concat(), others].concat().join("; ");
    (!what.is_empty()).then(|| Message::NotShown.with(labels.language, &[("what", &what)]))
}

/// The rankings of these heights that fit into so many lines, by position: those at the first value of the chart axis, then
/// others; at least one.
fn fitting_rankings(all: &[Ranking<'_>], heights: &[usize], lines: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    sort::by_key(&mut order, |at| !all[*at].is_first);
    let mut used = 0;
    let mut kept: Vec<usize> = order
        .into_iter()
        .enumerate()
        .take_while(|(n, at)| {
            used += heights[*at];
            *n == 0 || used <= lines
        })
        .map(|(_, at)| at)
        .collect();
    kept.sort_unstable();
    kept
}

/// The layout of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The width in columns; at least 32. Text is wrapped, and columns that do not fit are omitted.
    pub width: usize,
    /// Whether to use colours and bold type (ANSI escapes).
    pub color: bool,
    /// Whether to show everything: all cells, the server's counters, the sentence of every comparison, and the basis of the
    /// results. Otherwise the answer in 20 lines.
    pub details: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 100, color: false, details: false }
    }
}

pub(crate) struct Page {
    pub text: String,
    width: usize,
    color: bool,
    language: Language,
}

impl Page {
    pub fn new(options: &Options, language: Language) -> Self {
        Self { text: String::new(), width: options.width.clamp(32, 200), color: options.color, language }
    }

    /// The number of its lines.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// The number of lines that a paragraph takes.
    pub fn height(&self, text: &str) -> usize {
        wrap(text, self.width).len()
    }

    /// The number of lines that an item takes.
    pub fn item_height(&self, text: &str) -> usize {
        wrap(text, self.width - 2).len()
    }

    /// An item for each sentence, as long as the page has no more than so many lines. Returns how many were left out.
    pub fn items(&mut self, sentences: &[String], lines: usize) -> usize {
        let mut left = 0;
        for sentence in sentences {
            if self.lines() + self.item_height(sentence) <= lines {
                self.item(sentence);
            } else {
                left += 1;
            }
        }
        left
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// Ends what stands before by one empty line.
    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Writes blocks in order. Sections and tables stand between empty lines.
    pub fn write(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Title(text) => self.heading(text),
                Block::Notice(text) => self.styled_lines(text, "33"),
                Block::Paragraph(text) | Block::Command(text) => self.paragraph(text),
                Block::Conclusion(sentences) | Block::Items(sentences) => {
                    self.items(sentences, usize::MAX);
                }
                Block::Numbered(sentences) => {
                    for (at, sentence) in sentences.iter().enumerate() {
                        self.paragraph(&format!("[{}] {sentence}", at + 1));
                    }
                }
                Block::Facts(sentences) => sentences.iter().for_each(|one| self.paragraph(one)),
                Block::Lacking(entries) => {
                    for (status, sentence) in entries {
                        let code = if *status == Status::Failed { "31" } else { "33" };
                        self.marked(&self.styled("✗", code), sentence);
                    }
                }
                Block::Terms(terms) => {
                    for (name, text) in terms {
                        self.paragraph(&format!("{name}: {text}"));
                    }
                }
                Block::Table(table) => {
                    self.gap();
                    self.heading(&table.title);
                    self.paragraph(table.legend.as_deref().unwrap_or_default());
                    self.grid(table);
                    self.gap();
                }
                Block::Groups(table, headings) => {
                    self.gap();
                    self.groups(table, headings);
                    self.gap();
                }
                Block::Section(heading, blocks)
                | Block::Part(heading, blocks)
                | Block::Details(heading, blocks) => {
                    self.gap();
                    self.heading(heading);
                    self.write(blocks);
                    self.gap();
                }
            }
        }
    }

    fn styled(&self, text: &str, code: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub fn heading(&mut self, text: &str) {
        self.styled_lines(text, "1");
    }

    fn styled_lines(&mut self, text: &str, code: &str) {
        for part in wrap(text, self.width) {
            let part = self.styled(&part, code);
            self.line(&part);
        }
    }

    pub fn paragraph(&mut self, text: &str) {
        for part in wrap(text, self.width) {
            self.line(&part);
        }
    }

    pub fn item(&mut self, text: &str) {
        self.marked("•", text);
    }

    /// A text with a mark before its first line.
    fn marked(&mut self, mark: &str, text: &str) {
        for (n, part) in wrap(text, self.width - 2).iter().enumerate() {
            self.line(&format!("{} {part}", if n == 0 { mark } else { " " }));
        }
    }

    /// The groups of a table, each below its heading.
    pub fn groups(&mut self, table: &Table, headings: &[(usize, String)]) {
        let mut indented = table.clone();
        for name in indented.rows.iter_mut().filter_map(|row| row.first_mut()) {
            name.insert_str(0, "  ");
        }
        self.lines_of(&indented, headings);
    }

    /// A table, without the columns that do not fit.
    pub fn grid(&mut self, table: &Table) {
        let hidden = self.lines_of(table, &[]);
        if !hidden.is_empty() {
            let (width, what) = (self.width.to_string(), hidden.join(", "));
            self.paragraph(&Message::NotInWidth.with(self.language, &[("width", &width), ("what", &what)]));
        }
    }

    /// The lines of a table, with headings before some of its rows. Returns the columns that do not fit.
    fn lines_of<'a>(&mut self, table: &'a Table, headings: &[(usize, String)]) -> Vec<&'a str> {
        let mut grid = comfy_table::Table::new();
        grid.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        grid.set_header(table.columns.iter().map(|column| &column.head)).add_rows(&table.rows);
        let widths: Vec<usize> = grid.column_max_content_widths().into_iter().map(usize::from).collect();
        let shown = fitting(table, &widths, self.width);
        let hidden = (0..widths.len()).filter(|at| !shown.contains(at));
        let hidden = hidden.map(|at| table.columns[at].head.as_str()).collect();
        if needed(&widths, &shown) > self.width {
            self.rows_one_by_one(table, &shown, headings);
            return hidden;
        }
        for (at, column) in table.columns.iter().enumerate() {
            let Some(cells) = grid.column_mut(at) else { continue };
            cells.set_padding((0, 2));
            if column.right {
                cells.set_cell_alignment(CellAlignment::Right);
            }
            if !shown.contains(&at) {
                cells.set_constraint(ColumnConstraint::Hidden);
            }
        }
        for (n, line) in grid.lines().enumerate() {
            for (_, heading) in headings.iter().filter(|(row, _)| row + 1 == n) {
                self.heading(heading);
            }
            let line = line.trim_end();
            let line = if n == 0 { self.styled(line, "2") } else { line.to_owned() };
            self.line(&line);
        }
        hidden
    }

    /// The rows of a table that is too wide, each as a list: what the row is of, then its other columns with their names.
    fn rows_one_by_one(&mut self, table: &Table, shown: &[usize], headings: &[(usize, String)]) {
        let of = shown.iter().take_while(|at| !table.columns[**at].right).count();
        let (of, others) = shown.split_at(of);
        for (n, row) in table.rows.iter().enumerate() {
            for (_, heading) in headings.iter().filter(|(row, _)| *row == n) {
                self.heading(heading);
            }
            let named = |at: &usize| format!("{}{GLUE}{}", table.columns[*at].head, row[*at]);
            let is_filled = |at: &&usize| !row[**at].is_empty();
            let name = of.iter().filter(is_filled).map(|at| row[*at].clone()).collect::<Vec<_>>().join(", ");
            let figures = others.iter().filter(is_filled).map(named).collect::<Vec<_>>().join("; ");
            self.paragraph(&name);
            for part in wrap(&figures, self.width - 2) {
                self.line(&format!("  {part}"));
            }
        }
    }
}

/// The width of these columns, with two spaces between them.
fn needed(widths: &[usize], shown: &[usize]) -> usize {
    shown.iter().map(|at| widths[*at] + 2).sum::<usize>().saturating_sub(2)
}

/// The columns that fit; those with the highest priority of dropping go first.
fn fitting(table: &Table, widths: &[usize], width: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..widths.len()).collect();
    loop {
        let spare = shown.iter().copied().filter(|at| table.columns[*at].spare > 0);
        match spare.max_by_key(|at| table.columns[*at].spare) {
            Some(at) if needed(widths, &shown) > width => shown.retain(|other| *other != at),
            _ => return shown,
        }
    }
}

/// Removes control characters, so that a server's message cannot move the cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Breaks the lines of a list to at most `width` columns, at spaces only. What follows stands below the text that a line's first column
/// of spaces precedes, if that leaves half of the width, or else a little further right than the line.
pub fn wrapped_list(text: &str, width: usize) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        if line.width() <= width {
            let _ = writeln!(shown, "{line}");
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let text = &line[indent..];
        let (name, rest) = text.split_once("  ").unwrap_or(("", text));
        let rest = rest.trim_start();
        let column = line.width() - rest.width();
        let is_column = !name.is_empty() && column <= width / 2;
        let (hang, body) = if is_column { (column, rest) } else { (indent + 4, text) };
        let first = if is_column { &line[..line.len() - rest.len()] } else { &line[..indent] };
        for (n, part) in wrap(body, width.saturating_sub(hang).max(width / 2)).iter().enumerate() {
            let _ =
                if n == 0 { writeln!(shown, "{first}{part}") } else { writeln!(shown, "{:hang$}{part}", "") };
        }
    }
    shown
}

/// Breaks a text into lines of at most `width` columns, at spaces only.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in glued(&plain(text)).split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().map(|c| if c == GLUE { ' ' } else { c }));
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    /// A table of columns, each with its head, whether it has numbers, and its priority of dropping.
    fn table(columns: &[(&str, bool, u8)], rows: &[&[&str]]) -> Table {
        let column = |(head, right, spare): &(&str, bool, u8)| Column {
            head: (*head).to_owned(),
            right: *right,
            spare: *spare,
        };
        let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect());
        Table { columns: columns.iter().map(column).collect(), rows: rows.collect(), ..Table::default() }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let columns = [("target", false, 0), ("ops/s", true, 0)];
        let table = table(&columns, &[&["比べ", "9"], &["sqlite", "10,000"]]);
        let mut page = Page::new(&Options::default(), Language::English);
        page.grid(&table);
        assert_eq!(page.text, "target   ops/s\n比べ         9\nsqlite  10,000\n");
        assert_eq!(wrap("比べ 比べ 比べ", 9), ["比べ 比べ", "比べ"]);
    }

    #[test]
    fn list_is_wrapped_below_its_column_or_a_little_further_right() {
        for (text, width, expected) in [
            ("  kv    one two three four five", 20, "  kv    one two\n        three four\n        five\n"),
            ("20261128-220724-pgbench  one two three", 30, "20261128-220724-pgbench\n    one two three\n"),
            ("    one two three", 12, "    one\n        two\n        three\n"),
            ("short", 20, "short\n"),
        ] {
            assert_eq!(wrapped_list(text, width), expected, "{text}");
        }
    }

    #[test]
    fn rows_of_a_table_that_is_too_wide_stand_below_each_other() {
        let columns = [("target", false, 0), ("first", true, 0), ("second", true, 0), ("", true, 0)];
        let table = table(&columns, &[&["postgres shop", "12,300/s", "10,100/s", ""]]);
        let mut page = Page::new(&Options { width: 32, ..Options::default() }, Language::English);
        assert!(page.lines_of(&table, &[(0, "reads".to_owned())]).is_empty());
        assert_eq!(page.text, "reads\npostgres shop\n  first 12,300/s;\n  second 10,100/s\n");
        assert!(page.text.lines().all(|line| line.width() <= 32));
    }

    #[test]
    fn column_with_highest_priority_is_dropped_first() {
        let wide = "x".repeat(25);
        let table = table(&[("a", false, 0), ("b", false, 2), ("c", false, 1)], &[&[wide.as_str(); 3]]);
        let mut page = Page::new(&Options { width: 60, ..Options::default() }, Language::English);
        page.grid(&table);
        assert_eq!(page.text.lines().next(), Some(format!("a{}c", " ".repeat(26)).as_str()));
    }
}
