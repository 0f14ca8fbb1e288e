//! The report for a terminal: tables, what has no figures, verdicts, and what they rest on.

use crate::engine;
use crate::format::{GLUE, command_line, glued, list, moment, nanos, percent};
use crate::proof;
use crate::summary::{Status, Summary};
use crate::table::{Table, fixed_axes, lacking, tables};
use kurabe_core::units;

/// How the report is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal; at least 60 are used. Text is wrapped, and columns that do not fit are left out.
    pub width: usize,
    /// Whether to use colours and bold type (ANSI escapes).
    pub color: bool,
    /// Whether to show the sentence of every pair of levels and targets, not only what follows from them.
    pub details: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 100, color: false, details: false }
    }
}

/// The report as text that ends with a newline.
pub fn render(summary: &Summary, options: &Options) -> String {
    let mut page = Page::new(options);
    let title = format!("{} · {}", summary.experiment, summary.run);
    page.heading(&title);
    if let Some(question) = &summary.question {
        page.paragraph(question, 0);
    }
    page.publishing(&summary.publishing);
    page.gap();
    let fixed = fixed_axes(summary);
    for table in tables(summary) {
        page.table(&table, &fixed, summary);
    }
    for said in engine::tables(summary, !options.details) {
        page.heading(&said.title);
        page.paragraph(&said.legend, 0);
        page.grid(&said.table);
        page.gap();
    }
    page.lacking(summary);
    page.heading("Verdict");
    for sentence in &summary.summary {
        page.item(sentence);
    }
    if !summary.bounds.is_empty() {
        page.gap();
        page.heading("What bound it");
        for sentence in &summary.bounds {
            page.item(sentence);
        }
    }
    if options.details && !summary.details.is_empty() {
        page.gap();
        page.heading("In particular");
        for sentence in &summary.details {
            page.item(sentence);
        }
    }
    let untold = engine::untold(summary);
    if options.details && !untold.is_empty() {
        page.gap();
        page.heading("What the server does not tell");
        for sentence in &untold {
            page.item(sentence);
        }
    }
    page.gap();
    page.trust(summary);
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

    pub fn line(&mut self, text: &str) {
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

    pub fn paragraph(&mut self, text: &str, indent: usize) {
        for part in wrap(text, self.width.saturating_sub(indent)) {
            self.line(&format!("{}{part}", " ".repeat(indent)));
        }
    }

    /// What licences say of publishing: where it cannot be overlooked.
    pub fn publishing(&mut self, sentences: &[String]) {
        for sentence in sentences {
            for part in wrap(sentence, self.width) {
                let part = self.styled(&part, "33");
                self.line(&part);
            }
        }
    }

    pub fn item(&mut self, text: &str) {
        for (n, part) in wrap(text, self.width - 2).iter().enumerate() {
            let mark = if n == 0 { "• " } else { "  " };
            self.line(&format!("{mark}{part}"));
        }
    }

    fn table(&mut self, table: &Table, fixed: &[String], summary: &Summary) {
        let words = &summary.words;
        let rounds = crate::phrase::rounds(summary.rounds);
        let target =
            if words.several_targets() { String::new() } else { format!(" on {}", words.targets.join("")) };
        self.heading(&format!("{}{target}, {rounds}", table.title(summary)));
        match &table.legend {
            None if fixed.is_empty() => {}
            None => self.paragraph(&fixed.join(" · "), 0),
            Some(legend) => self.paragraph(legend, 0),
        }
        self.grid(table);
        self.gap();
    }

    /// A table, without the columns that do not fit.
    pub fn grid(&mut self, table: &Table) {
        let widths: Vec<usize> = table
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let cells = table.rows.iter().map(|row| length(&row[at]));
                cells.chain([length(&column.head)]).max().unwrap_or(0)
            })
            .collect();
        let shown = fitting(table, &widths, self.width);
        let head: Vec<String> = table.columns.iter().map(|column| column.head.clone()).collect();
        let head = row(table, &head, &widths, &shown);
        let head = self.styled(&head, "2");
        self.line(&head);
        for cells in &table.rows {
            self.line(&row(table, cells, &widths, &shown));
        }
    }

    fn lacking(&mut self, summary: &Summary) {
        let lacking = lacking(summary);
        if lacking.is_empty() {
            return;
        }
        self.heading("Without figures");
        for entry in &lacking {
            let code = if entry.status == Status::Failed { "31" } else { "33" };
            let place = if entry.place.is_empty() { String::new() } else { format!(", {}", entry.place) };
            let text = format!(
                "{}{place}, {}: {}: {}",
                entry.target,
                list(&entry.operations),
                entry.status_word(),
                entry.reason
            );
            for (n, part) in wrap(&text, self.width - 2).iter().enumerate() {
                let mark = if n == 0 { self.styled("✗", code) + " " } else { "  ".to_owned() };
                self.line(&format!("{mark}{part}"));
            }
        }
        self.gap();
    }

    fn trust(&mut self, summary: &Summary) {
        self.heading("What this rests on");
        self.paragraph(&summary.scope, 0);
        for note in trust(summary) {
            self.paragraph(&note, 0);
        }
        for note in &summary.notes {
            self.item(note);
        }
        let machine = &summary.machine;
        let memory = if machine.memory_bytes == 0 {
            String::new()
        } else {
            format!(", {}", units::size(machine.memory_bytes))
        };
        self.paragraph(&format!("Machine: {}{memory}, {}.", machine.cpu, machine.system), 0);
        let began = moment(summary.began);
        self.paragraph(
            &format!(
                "Kurabe {}, {began}, seed {}: {}",
                summary.kurabe,
                summary.seed,
                command_line(&summary.command)
            ),
            0,
        );
    }
}

/// Noise floor, overhead, cost of the checks and durability, a sentence each.
pub(crate) fn trust(summary: &Summary) -> Vec<String> {
    let words = &summary.words;
    let mut all = Vec::new();
    all.push(match summary.noise_floor {
        Some(floor) => {
            let of_each: Vec<String> = summary
                .noise_floors
                .iter()
                .map(|floor| {
                    let name = summary.targets.iter().position(|target| target.name == floor.target);
                    let name =
                        name.and_then(|index| words.targets.get(index)).filter(|_| words.several_targets());
                    let name = name.map_or_else(String::new, |name| format!(" on {name}"));
                    format!("{}{name} {}", words.plural(&floor.operation), percent(floor.noise_floor))
                })
                .collect();
            format!(
                "Noise floor: the baseline, measured twice in each round, may differ from itself by {} ({}).",
                percent(floor),
                of_each.join(", ")
            )
        }
        None => "Noise floor: not measured (it takes a repeated baseline and two rounds).".to_owned(),
    });
    if !summary.overhead.is_empty() {
        let each: Vec<String> =
            summary.overhead.iter().map(|o| format!("{} per {}", nanos(o.ns_per_op), o.operation)).collect();
        all.push(format!(
            "The tool itself costs {} (baseline, measured on a target that answers at once).",
            list(&each)
        ));
    }
    let share = summary.cells.iter().filter_map(|cell| cell.verify_share).max_by(f64::total_cmp);
    let checked = proof::clause(summary);
    let cost = share.map_or_else(String::new, |share| {
        format!("; checking took at most {} of the client's CPU", percent(share))
    });
    all.push(format!("{checked}{cost}."));
    for (target, name) in summary.targets.iter().zip(&words.targets) {
        let settings: Vec<String> =
            target.durability_settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let settings =
            if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) };
        let class = crate::phrase::class_name(target.durability);
        let version = if target.version.is_empty() { String::new() } else { format!(" {}", target.version) };
        all.push(format!("Durability of {name}{version}: {class}: {}{settings}.", target.durability_promise));
    }
    all
}

/// Which columns fit: the most dispensable go first.
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

fn row(table: &Table, cells: &[String], widths: &[usize], shown: &[usize]) -> String {
    let padded: Vec<String> = shown
        .iter()
        .map(|at| {
            let space = " ".repeat(widths[*at].saturating_sub(length(&cells[*at])));
            if table.columns[*at].right {
                format!("{space}{}", cells[*at])
            } else {
                format!("{}{space}", cells[*at])
            }
        })
        .collect();
    padded.join("  ")
}

/// Columns that a text takes: one a character, which holds for all that we write.
fn length(text: &str) -> usize {
    text.chars().count()
}

/// A text without control characters, so that a server's message cannot move the cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Breaks a text into lines of at most `width` columns, between words only.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in glued(&plain(text)).split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && length(&line) + 1 + length(word) > width {
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
