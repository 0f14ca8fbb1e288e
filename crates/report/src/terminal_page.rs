//! A text for a terminal: wrapped paragraphs, items, and tables without the columns that do not fit.

use crate::cell::Status;
use crate::document::Block;
use crate::format::{GLUE, glued};
use crate::messages::{Language, Message};
use crate::table::Table;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

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
                Block::Notice(text) => self.notice(text),
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
        for part in wrap(text, self.width) {
            let part = self.styled(&part, "1");
            self.line(&part);
        }
    }

    pub fn paragraph(&mut self, text: &str) {
        for part in wrap(text, self.width) {
            self.line(&part);
        }
    }

    /// A restriction, highlighted.
    fn notice(&mut self, text: &str) {
        for part in wrap(text, self.width) {
            let part = self.styled(&part, "33");
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

    #[test]
    fn wide_characters_take_two_columns() {
        let column = |head: &str, right| Column { head: head.to_owned(), right, spare: 0 };
        let table = Table {
            columns: vec![column("target", false), column("ops/s", true)],
            rows: [["比べ", "9"], ["sqlite", "10,000"]].map(|row| row.map(str::to_owned).to_vec()).to_vec(),
            ..Table::default()
        };
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
        let column = |head: &str, right| Column { head: head.to_owned(), right, spare: 0 };
        let table = Table {
            columns: vec![
                column("target", false),
                column("first", true),
                column("second", true),
                column("", true),
            ],
            rows: vec![["postgres shop", "12,300/s", "10,100/s", ""].map(str::to_owned).to_vec()],
            ..Table::default()
        };
        let mut page = Page::new(&Options { width: 32, ..Options::default() }, Language::English);
        assert!(page.lines_of(&table, &[(0, "reads".to_owned())]).is_empty());
        assert_eq!(page.text, "reads\npostgres shop\n  first 12,300/s;\n  second 10,100/s\n");
        assert!(page.text.lines().all(|line| line.width() <= 32));
    }

    #[test]
    fn column_with_highest_priority_is_dropped_first() {
        let column = |head: &str, spare| Column { head: head.to_owned(), right: false, spare };
        let wide = "x".repeat(25);
        let table = Table {
            columns: vec![column("a", 0), column("b", 2), column("c", 1)],
            rows: vec![vec![wide.clone(), wide.clone(), wide.clone()]],
            ..Table::default()
        };
        let mut page = Page::new(&Options { width: 60, ..Options::default() }, Language::English);
        page.grid(&table);
        assert_eq!(page.text.lines().next(), Some(format!("a{}c", " ".repeat(26)).as_str()));
    }
}
