//! The report for a terminal: tables, cells without results, and findings.

use crate::engine;
use crate::finding::wording::rounds_of;
use crate::finding::{Agents, Basis, Finding, Section};
use crate::format::{GLUE, capital, command_line, glued, list, origin, timestamp};
use crate::summary::{Status, Summary};
use crate::table::{Table, fixed_axes, lacking, tables};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use kurabe_core::units;
use unicode_width::UnicodeWidthStr;

/// The layout of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The width in columns; at least 60. Text is wrapped, and columns that do not fit are omitted.
    pub width: usize,
    /// Whether to use colours and bold type (ANSI escapes).
    pub color: bool,
    /// Whether to show everything: all cells, the server's counters, the sentence of every pair of values and targets, and
    /// the basis of the results.
    pub details: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 100, color: false, details: false }
    }
}

/// The number of rows up to which a table is not shortened.
const ROWS: usize = 12;

/// The number of lines of a page that is read without scrolling. At the end of a longer one the verdict is repeated.
const SCREEN: usize = 24;

/// The report as text that ends with a newline. The verdict comes first.
pub fn render(summary: &Summary, options: &Options) -> String {
    let mut page = Page::new(options);
    let title = format!("{} · {}", summary.experiment, summary.run);
    page.heading(&title);
    if let Some(question) = &summary.question {
        page.paragraph(question);
    }
    page.publishing(&summary.sentences(Section::Publishing));
    page.gap();
    page.section("Verdict", summary.sentences(Section::Verdict));
    let mut left_out = 0;
    let (fixed, rounds) = (fixed_axes(summary).join(" · "), rounds_of(summary));
    let labels = &summary.labels;
    let target = (!labels.several_targets()).then(|| format!(" on {}", labels.targets.join("")));
    let target = target.unwrap_or_default();
    for mut table in tables(summary) {
        if !options.details && table.rows.len() > ROWS {
            left_out += table.keep_main();
        }
        let legend = table.legend.as_ref().unwrap_or(&fixed);
        page.table(&format!("{}{target}, {rounds}", table.title), legend, &table);
    }
    for table in engine::tables(summary, !options.details) {
        page.table(&table.title, table.legend.as_deref().unwrap_or_default(), &table);
    }
    page.lacking(summary);
    page.section("Bottlenecks", summary.sentences(Section::Bottleneck));
    if options.details {
        page.section("In detail", summary.sentences(Section::Detail));
        page.section("Not reported by the server", summary.sentences(Section::NotReported));
    }
    page.section("Warnings", summary.sentences(Section::Warning));
    if options.details {
        page.heading("Basis");
        for sentence in summary.sentences(Section::Basis) {
            page.paragraph(sentence);
        }
    }
    page.origin(summary, options.details);
    if let Some(agents) = agents(summary).filter(|_| !options.details) {
        page.paragraph(&format!("{}.", capital(&agents.clause())));
    }
    if !options.details {
        let cells = match left_out {
            0 => String::new(),
            1 => "another cell, ".to_owned(),
            more => format!("{} more cells, ", units::count(more as u64)),
        };
        page.paragraph(&format!(
            "Not shown: {cells}the servers' counters, the noise floor and what was verified; 'kurabe report {} --verbose' \
             shows all.",
            summary.run
        ));
    }
    if page.text.lines().count() > SCREEN {
        page.gap();
        page.section("Verdict", summary.sentences(Section::Verdict));
        page.text.truncate(page.text.trim_end().len() + 1);
    }
    page.text
}

pub(crate) struct Page {
    pub text: String,
    width: usize,
    color: bool,
}

impl Page {
    pub fn new(options: &Options) -> Self {
        Self { text: String::new(), width: options.width.clamp(60, 200), color: options.color }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    pub fn gap(&mut self) {
        self.text.push('\n');
    }

    fn bold(&self, text: &str) -> String {
        self.styled(text, "1")
    }

    fn styled(&self, text: &str, code: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub fn heading(&mut self, text: &str) {
        let text = self.bold(&plain(text));
        self.line(&text);
    }

    pub fn paragraph(&mut self, text: &str) {
        for part in wrap(text, self.width) {
            self.line(&part);
        }
    }

    /// The publishing restrictions, highlighted.
    pub fn publishing(&mut self, sentences: &[&str]) {
        for sentence in sentences {
            for part in wrap(sentence, self.width) {
                let part = self.styled(&part, "33");
                self.line(&part);
            }
        }
    }

    /// A heading with an item for each sentence; nothing if there are none.
    fn section(&mut self, heading: &str, sentences: Vec<&str>) {
        if sentences.is_empty() {
            return;
        }
        self.heading(heading);
        for sentence in sentences {
            self.item(sentence);
        }
        self.gap();
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

    /// A table between its heading with its legend and an empty line.
    pub fn table(&mut self, heading: &str, legend: &str, table: &Table) {
        self.heading(heading);
        self.paragraph(legend);
        self.grid(table);
        self.gap();
    }

    /// A table, without the columns that do not fit.
    pub fn grid(&mut self, table: &Table) {
        let mut grid = comfy_table::Table::new();
        grid.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        grid.set_header(table.columns.iter().map(|column| &column.head)).add_rows(&table.rows);
        let widths: Vec<usize> = grid.column_max_content_widths().into_iter().map(usize::from).collect();
        let shown = fitting(table, &widths, self.width);
        let hidden = (0..widths.len()).filter(|at| !shown.contains(at));
        let hidden: Vec<&str> = hidden.map(|at| table.columns[at].head.as_str()).collect();
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
            let line = line.trim_end();
            let line = if n == 0 { self.styled(line, "2") } else { line.to_owned() };
            self.line(&line);
        }
        if !hidden.is_empty() {
            self.paragraph(&format!("Not shown in {} columns: {}.", self.width, list(&hidden)));
        }
    }

    fn lacking(&mut self, summary: &Summary) {
        let lacking = lacking(summary);
        if lacking.is_empty() {
            return;
        }
        self.heading("No results");
        for entry in &lacking {
            let code = if entry.status == Status::Failed { "31" } else { "33" };
            let place = if entry.place.is_empty() { String::new() } else { format!(", {}", entry.place) };
            let (operations, status) = (list(&entry.operations), entry.status_word());
            let text = format!("{}{place}, {operations}: {status}: {}", entry.target, entry.reason);
            self.marked(&self.styled("✗", code), &text);
        }
        self.gap();
    }

    /// The origin of the run, and how to repeat it.
    fn origin(&mut self, summary: &Summary, with_machine: bool) {
        let machine = &summary.machine;
        let memory = units::size(machine.memory_bytes);
        let memory = if machine.memory_bytes == 0 { String::new() } else { format!(", {memory}") };
        if with_machine {
            self.paragraph(&format!("Machine: {}{memory}, {}.", machine.cpu, machine.system));
        }
        let (began, command) = (timestamp(summary.began), command_line(&summary.command));
        self.paragraph(&format!("Kurabe {}, {began}, seed {}: {command}", summary.kurabe, summary.seed));
        if let Some(origin) = origin(&summary.origin) {
            self.paragraph(&origin);
        }
    }
}

/// The agents that ran the clients; `None` without a fleet.
fn agents(summary: &Summary) -> Option<&Agents> {
    summary.findings.iter().find_map(|statement| match &statement.finding {
        Finding::Basis(Basis::Tested { fleet, .. }) => fleet.as_ref(),
        _ => None,
    })
}

/// The columns that fit; those with the highest priority of dropping go first.
fn fitting(table: &Table, widths: &[usize], width: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..widths.len()).collect();
    loop {
        let needed: usize = shown.iter().map(|at| widths[*at] + 2).sum::<usize>().saturating_sub(2);
        let spare = shown.iter().copied().filter(|at| table.columns[*at].spare > 0);
        match spare.max_by_key(|at| table.columns[*at].spare) {
            Some(at) if needed > width => shown.retain(|other| *other != at),
            _ => return shown,
        }
    }
}

/// Removes control characters, so that a server's message cannot move the cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
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
        let mut page = Page::new(&Options::default());
        page.grid(&table);
        assert_eq!(page.text, "target   ops/s\n比べ         9\nsqlite  10,000\n");
        assert_eq!(wrap("比べ 比べ 比べ", 9), ["比べ 比べ", "比べ"]);
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
        let mut page = Page::new(&Options { width: 60, ..Options::default() });
        page.grid(&table);
        assert_eq!(page.text.lines().next(), Some(format!("a{}c", " ".repeat(26)).as_str()));
    }
}
