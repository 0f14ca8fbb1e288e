//! The report for a terminal: tables, cells without results, and findings.

use crate::answer::{Ranking, rankings, sentences};
use crate::cell::Status;
use crate::engine;
use crate::finding::{Consequence, Finding, Note, Section, Statement};
use crate::format::{GLUE, command_line, glued, list, origin, timestamp};
use crate::messages::Message;
use crate::summary::Summary;
use crate::table::{Lacking, Table, fixed_axes, lacking, tables};
use crate::threshold;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};
use kurabe_core::sort;
use kurabe_core::units;
use unicode_width::UnicodeWidthStr;

/// The layout of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The width in columns; at least 60. Text is wrapped, and columns that do not fit are omitted.
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

/// The number of lines of a report without details: it is read without scrolling.
const LINES: usize = 20;

/// The number of failures that are shown in any case.
const FAILED: usize = 2;

/// The report as text that ends with a newline: the answer in at most 20 lines, unless a licence or a message of a server
/// needs more; or with all details.
pub fn render(summary: &Summary, options: &Options) -> String {
    if options.details { detailed(summary, options) } else { answer(summary, options) }
}

/// The answer: what else the experiment answers with, the ranking at each place, what lacks results, and the most serious
/// notes.
fn answer(summary: &Summary, options: &Options) -> String {
    let mut page = Page::new(options);
    page.publishing(&summary.sentences(Section::Publishing));
    let all = rankings(summary);
    let least = all.first().map_or(0, |ranking| ranking.rows.len() + 2);
    let mut notes: Vec<&Statement> = summary.statements(Section::Warning).collect();
    // Those from before the first trial were shown before it.
    notes.retain(|note| {
        !matches!(note.finding, Finding::Note(Note::Preflight { .. } | Note::TargetNote { .. }))
    });
    sort::by_key(&mut notes, |note| note.finding.consequence());
    let height = |sentence: &str| wrap(sentence, page.width - 2).len();
    // What failed is not left out for want of a line.
    let failed: Vec<String> = lacking(summary).iter().map(Lacking::sentence).collect();
    let needed: usize = failed.iter().take(FAILED).map(|one| height(one)).sum();
    // The last line, two of notes, and one where rates and ratios disagree.
    let apart = notes.iter().any(|note| note.finding.consequence() == Consequence::Apart);
    let lines: usize = notes.iter().map(|note| height(&note.sentence)).sum();
    let limit = usize::from(summary.spec.slo_ns.is_some());
    let most = LINES.saturating_sub(1 + limit + needed.max(lines.min(2 + usize::from(apart))));
    let [others, _] = sentences(summary, !all.is_empty());
    let left = page.items(others.into_iter(), most.saturating_sub(least));
    let room = most.saturating_sub(page.lines() + 1);
    let mut shown = fitting_rankings(&all, room, page.width);
    if let Some(sentence) = left_out(summary, &all, &shown) {
        shown =
            fitting_rankings(&all, room.saturating_sub(wrap(&sentence, page.width - 2).len()), page.width);
    }
    if !shown.is_empty() {
        page.ranking(summary, &shown);
    }
    if let Some(sentence) = left_out(summary, &all, &shown) {
        page.item(&sentence);
    }
    if let Some(sentence) = threshold::sentence(summary) {
        page.item(&sentence);
    }
    failed.iter().take(FAILED).for_each(|sentence| page.item(sentence));
    let failed = failed.iter().skip(FAILED).map(String::as_str);
    let notes = failed.chain(notes.iter().map(|note| &*note.sentence));
    let behind = left + page.items(notes, LINES - 1);
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

/// What was measured and has no ranking among those that are shown: operations, and values of the chart axis; of the others the
/// place, or their number.
fn left_out(summary: &Summary, all: &[Ranking<'_>], shown: &[&Ranking<'_>]) -> Option<String> {
    let labels = &summary.labels;
    let chart = labels.chart_axis();
    let of = |ranking: &Ranking<'_>| -> Option<[String; 2]> {
        let cell = ranking.rows.first()?.cell;
        let at = chart.and_then(|axis| Some(axis.name_value(cell.axes.get(&axis.name)?)));
        Some([labels.plural(&cell.operation), at.unwrap_or_default()])
    };
    let seen: Vec<[String; 2]> = shown.iter().filter_map(|ranking| of(ranking)).collect();
    let hidden = all.iter().filter(|one| !shown.iter().any(|shown| shown.heading == one.heading));
    let (mut what, mut others) = ([Vec::new(), Vec::new()], Vec::new());
    for ranking in hidden {
        let names = of(ranking).unwrap_or_default();
        match (0..2).find(|part| seen.iter().all(|one| one[*part] != names[*part])) {
            Some(part) if what[part].contains(&names[part]) => {}
            Some(part) => what[part].push(names[part].clone()),
            None => others.push(ranking.heading.clone()),
        }
    }
    let (language, count) = (labels.language, others.len().to_string());
    if others.len() > 1 {
        others = vec![Message::MorePlaces.with(language, &[("count", &count)])];
    }
    let what = [what.concat(), others].concat().join("; ");
    (!what.is_empty()).then(|| Message::NotShown.with(language, &[("what", &what)]))
}

/// The rankings that fit into so many lines: those at the first value of the chart axis, then others; at least one.
fn fitting_rankings<'a, 'b>(all: &'b [Ranking<'a>], lines: usize, width: usize) -> Vec<&'b Ranking<'a>> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    sort::by_key(&mut order, |at| !all[*at].is_first);
    let mut used = 0;
    let mut kept: Vec<usize> = order
        .into_iter()
        .enumerate()
        .take_while(|(n, at)| {
            used += all[*at].rows.len() + wrap(&all[*at].heading, width).len();
            *n == 0 || used <= lines
        })
        .map(|(_, at)| at)
        .collect();
    kept.sort_unstable();
    kept.into_iter().map(|at| &all[at]).collect()
}

/// The report with all details.
fn detailed(summary: &Summary, options: &Options) -> String {
    let language = summary.labels.language;
    let mut page = Page::new(options);
    page.heading(&format!("{} · {}", summary.experiment, summary.run));
    if let Some(question) = &summary.question {
        page.paragraph(question);
    }
    page.publishing(&summary.sentences(Section::Publishing));
    page.gap();
    let all = rankings(summary);
    page.ranking(summary, &all.iter().collect::<Vec<_>>());
    page.gap();
    page.section(Message::Verdict.text(language), summary.sentences(Section::Verdict));
    let (fixed, rounds) = (fixed_axes(summary).join(" · "), summary.rounds_text());
    let labels = &summary.labels;
    let target = (!labels.several_targets()).then(|| format!(" on {}", labels.targets.join("")));
    let target = target.unwrap_or_default();
    for table in tables(summary) {
        let legend = table.legend.as_ref().unwrap_or(&fixed);
        page.table(&format!("{}{target}, {rounds}", table.title), legend, &table);
    }
    for table in engine::tables(summary) {
        page.table(&table.title, table.legend.as_deref().unwrap_or_default(), &table);
    }
    page.lacking(summary);
    page.section(Message::Bottlenecks.text(language), summary.sentences(Section::Bottleneck));
    page.section(Message::InDetail.text(language), summary.sentences(Section::Detail));
    page.section(Message::NotReported.text(language), summary.sentences(Section::NotReported));
    page.section(Message::Warnings.text(language), summary.sentences(Section::Warning));
    page.heading(Message::Basis.text(language));
    for sentence in summary.sentences(Section::Basis) {
        page.paragraph(sentence);
    }
    page.origin(summary);
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

    /// The number of its lines.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// An item for each sentence, as long as the page has no more than so many lines. Returns how many were left out.
    fn items<'a>(&mut self, sentences: impl Iterator<Item = &'a str>, lines: usize) -> usize {
        let mut left = 0;
        for sentence in sentences {
            if self.lines() + wrap(sentence, self.width - 2).len() <= lines {
                self.item(sentence);
            } else {
                left += 1;
            }
        }
        left
    }

    /// Rankings as one table, each below its heading.
    fn ranking(&mut self, summary: &Summary, rankings: &[&Ranking<'_>]) {
        let (mut table, headings) = crate::answer::table(rankings, summary.labels.language);
        if let Some(first) = table.columns.first_mut() {
            first.head.clone_from(&summary.experiment);
        }
        for name in table.rows.iter_mut().filter_map(|row| row.first_mut()) {
            name.insert_str(0, "  ");
        }
        self.lines_of(&table, &headings);
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
        let hidden = self.lines_of(table, &[]);
        if !hidden.is_empty() {
            self.paragraph(&format!("Not shown in {} columns: {}.", self.width, list(&hidden)));
        }
    }

    /// The lines of a table, with headings before some of its rows. Returns the columns that do not fit.
    fn lines_of<'a>(&mut self, table: &'a Table, headings: &[(usize, String)]) -> Vec<&'a str> {
        let mut grid = comfy_table::Table::new();
        grid.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        grid.set_header(table.columns.iter().map(|column| &column.head)).add_rows(&table.rows);
        let widths: Vec<usize> = grid.column_max_content_widths().into_iter().map(usize::from).collect();
        let shown = fitting(table, &widths, self.width);
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
                for part in wrap(heading, self.width) {
                    self.heading(&part);
                }
            }
            let line = line.trim_end();
            let line = if n == 0 { self.styled(line, "2") } else { line.to_owned() };
            self.line(&line);
        }
        let hidden = (0..widths.len()).filter(|at| !shown.contains(at));
        hidden.map(|at| table.columns[at].head.as_str()).collect()
    }

    fn lacking(&mut self, summary: &Summary) {
        let lacking = lacking(summary);
        if lacking.is_empty() {
            return;
        }
        self.heading(Message::NoResults.text(summary.labels.language));
        for entry in &lacking {
            let code = if entry.status == Status::Failed { "31" } else { "33" };
            self.marked(&self.styled("✗", code), &entry.sentence());
        }
        self.gap();
    }

    /// The origin of the run, and how to repeat it.
    fn origin(&mut self, summary: &Summary) {
        let machine = &summary.machine;
        let memory = units::size(machine.memory_bytes);
        let memory = if machine.memory_bytes == 0 { String::new() } else { format!(", {memory}") };
        self.paragraph(&format!("Machine: {}{memory}, {}.", machine.cpu, machine.system));
        let (began, command) = (timestamp(summary.began), command_line(&summary.command));
        self.paragraph(&format!("Kurabe {}, {began}, seed {}: {command}", summary.kurabe, summary.seed));
        if let Some(origin) = origin(&summary.origin) {
            self.paragraph(&origin);
        }
    }
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
