//! The table of a suite as text, Markdown and JSON.

use super::{Entry, Row, State, SuiteTable};
use crate::format::{capital, command_line, list, timestamp};
use crate::group::{distinct, grouped};
use crate::json::indented;
use crate::markdown::{escaped, markdown_table};
use crate::messages::Language;
use crate::table::{Column, Table, dash};
use crate::terminal_page::{Options, Page};
use crate::wording::many;
use kurabe_core::units;
use std::fmt::Write as _;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// The space between two columns.
const GAP: usize = 2;

/// The notes of a table: the reasons of an entry, with the places that have just these. Entries name them by their
/// number, from 1.
struct Notes(Vec<(Vec<String>, Vec<Place>)>);

/// A run and its targets.
type Place = (String, Vec<String>);

impl Notes {
    fn of(table: &SuiteTable) -> Self {
        let entries = table.runs.iter().flat_map(|row| row.cells.iter().map(move |entry| (row, entry)));
        let noted = entries.filter(|(_, entry)| !entry.reasons.is_empty()).map(|(row, entry)| {
            let target = table.targets.get(entry.target).cloned().unwrap_or_default();
            (entry.reasons.clone(), (row.name.clone(), target))
        });
        Self(grouped(noted).into_iter().map(|(reasons, places)| (reasons, grouped(places))).collect())
    }

    /// ` [3]`; nothing without reasons.
    fn mark(&self, entry: &Entry) -> String {
        let at = self.0.iter().position(|(reasons, _)| *reasons == entry.reasons);
        at.map_or_else(String::new, |at| format!(" [{}]", at + 1))
    }

    /// `link on redis and memcached, bulk on tcp: the reason`.
    fn lines(&self) -> Vec<String> {
        let place = |(run, targets): &Place| format!("{run} on {}", list(targets));
        let line = |(reasons, places): &(Vec<String>, Vec<Place>)| {
            let places: Vec<String> = places.iter().map(place).collect();
            format!("{}: {}", places.join(", "), reasons.join("; "))
        };
        self.0.iter().map(line).collect()
    }
}

impl State {
    const ALL: [Self; 6] =
        [Self::Measured, Self::Partly, Self::Planned, Self::NotAvailable, Self::Failed, Self::Stopped];

    /// Its word in tables, the word by which it is counted, and what it means, if that is not plain.
    fn texts(self) -> [&'static str; 3] {
        match self {
            Self::Measured => ["measured", "measured", "every answer was verified"],
            Self::Partly => ["part", "measured", "measured and verified, except what is not available there"],
            Self::Planned => ["planned", "planned", ""],
            Self::NotAvailable => ["n/a", "not available", "not available on this target"],
            Self::Failed => ["FAILED", "failed", "a trial failed, or the target could not be used"],
            Self::Stopped => ["stopped", "stopped", "stopped by the user before all of it was measured"],
        }
    }
}

/// The table with a column for each target, and one for the time.
fn grid(table: &SuiteTable, notes: &Notes) -> Table {
    let column = |head: &str, right| Column { head: head.to_owned(), right, spare: 0 };
    let mut columns = vec![column("run", false)];
    columns.extend(table.targets.iter().map(|target| column(target, false)));
    columns.push(column("time", true));
    let row = |row: &Row| {
        let mut cells = vec![row.name.clone()];
        cells.extend((0..table.targets.len()).map(|at| {
            let entry = row.cells.iter().find(|entry| entry.target == at);
            entry.map_or_else(dash, |entry| format!("{}{}", entry.state.texts()[0], notes.mark(entry)))
        }));
        cells.push(units::time(Duration::from_secs_f64(row.seconds.max(0.0))));
        cells
    };
    Table { columns, rows: table.runs.iter().map(row).collect(), ..Table::default() }
}

/// `measured: every answer was verified; n/a: …`, of the states that occur.
fn legend(table: &SuiteTable) -> String {
    let entries = || table.runs.iter().flat_map(|row| &row.cells);
    let occur = State::ALL.into_iter().filter(|state| entries().any(|entry| entry.state == *state));
    let texts = occur.map(State::texts).filter(|[.., meaning]| !meaning.is_empty());
    texts.map(|[word, _, meaning]| format!("{word}: {meaning}")).collect::<Vec<_>>().join("; ")
}

/// `3 runs on 2 targets: 5 measured, 1 not available`.
fn counts(table: &SuiteTable) -> String {
    let entries = || table.runs.iter().flat_map(|row| &row.cells);
    let words = distinct(State::ALL.map(|state| state.texts()[1]));
    let counted: Vec<String> = words
        .into_iter()
        .map(|word| (entries().filter(|entry| entry.state.texts()[1] == word).count(), word))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    let runs = many(table.runs.len() as u64, "run", "runs");
    let targets = many(table.targets.len() as u64, "target", "targets");
    format!("{runs} on {targets}: {}", counted.join(", "))
}

/// The table for a terminal. If it is wider than that, the targets are in several tables, one below the other.
pub fn terminal(table: &SuiteTable, options: &Options) -> String {
    let notes = Notes::of(table);
    let mut page = Page::new(options, Language::English);
    page.heading(&format!("{} · {}", table.suite, counts(table)));
    page.gap();
    for part in parts(&grid(table, &notes), options.width.clamp(60, 200)) {
        page.grid(&part);
        page.gap();
    }
    let legend = legend(table);
    if !legend.is_empty() {
        page.paragraph(&legend);
    }
    for (at, line) in notes.lines().iter().enumerate() {
        page.paragraph(&format!("[{}] {line}", at + 1));
    }
    page.text
}

/// Divides a table into tables that fit. Each begins with the first column.
fn parts(table: &Table, width: usize) -> Vec<Table> {
    let width_of = |at: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width());
        cells.chain([table.columns[at].head.width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width_of).collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut used = 0;
    for (at, needed) in widths.iter().enumerate().skip(1) {
        match groups.last_mut() {
            Some(group) if used + GAP + needed <= width => group.push(at),
            _ => {
                groups.push(vec![0, at]);
                used = widths[0];
            }
        }
        used += GAP + needed;
    }
    let part = |group: Vec<usize>| {
        let column = |at: &usize| {
            let Column { head, right, spare } = &table.columns[*at];
            Column { head: head.clone(), right: *right, spare: *spare }
        };
        let columns = group.iter().map(column).collect();
        let rows = table.rows.iter().map(|row| group.iter().map(|at| row[*at].clone()).collect()).collect();
        Table { columns, rows, ..Table::default() }
    };
    groups.into_iter().map(part).collect()
}

pub fn markdown(table: &SuiteTable) -> String {
    let notes = Notes::of(table);
    let title = format!("{}: {}", capital(&table.suite), counts(table));
    let grid = Table { title, ..grid(table, &notes) };
    let mut text = String::new();
    markdown_table(&mut text, &legend(table), &grid);
    for (at, line) in notes.lines().iter().enumerate() {
        let _ = writeln!(text, "{}. {}", at + 1, escaped(line));
    }
    if !notes.0.is_empty() {
        text.push('\n');
    }
    let machine = &table.machine;
    let _ = writeln!(
        text,
        "Kurabe {}, {}, {}; {}, {} CPUs, {}, {}. Command: `{}`",
        table.kurabe,
        timestamp(table.began),
        units::time(Duration::from_secs_f64(table.seconds.max(0.0))),
        escaped(&machine.cpu),
        machine.cpus,
        units::size(machine.memory_bytes),
        escaped(&machine.system),
        command_line(&table.command).replace('`', "'")
    );
    text
}

pub fn json(table: &SuiteTable) -> String {
    indented(table)
}
