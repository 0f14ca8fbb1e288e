//! The table of a suite of several runs: what was measured on which target, and why the rest was not.

use crate::document::Block;
use crate::format::{command_line, list, machine, timestamp};
use crate::group::{distinct, grouped};
use crate::markdown;
use crate::messages::Language;
use crate::table::{Column, Table, dash};
use crate::terminal::{Options, Page};
use crate::wording::many;
use kurabe_core::run::{CellRecord, MachineFacts, Outcome, TrialRecord};
use kurabe_core::units;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

pub use crate::json::indented as json;

/// The version of the table as JSON.
const VERSION: u32 = 1;

/// The table of a suite. It holds no results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SuiteTable {
    /// The version of this format.
    #[serde(rename = "kurabe-suite")]
    pub version: u32,
    /// The suite's name.
    pub suite: String,
    /// When its first run began: seconds since 1970-01-01 UTC.
    pub began: u64,
    /// How long all runs took, in seconds.
    pub seconds: f64,
    /// The version of Kurabe.
    pub kurabe: String,
    /// The command line, without passwords.
    pub command: Vec<String>,
    pub machine: MachineFacts,
    /// Whether all runs ended; not if the user stopped them.
    pub complete: bool,
    /// Whether nothing was measured, but planned only.
    pub dry: bool,
    /// The names of the targets of all runs: the columns.
    pub targets: Vec<String>,
    pub runs: Vec<Row>,
}

/// A run of a suite.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name in the suite.
    pub name: String,
    pub experiment: String,
    /// The name of the recorded run; `None` if nothing was recorded.
    pub run: Option<String>,
    /// How long it took, in seconds, with starting servers and loading.
    pub seconds: f64,
    /// One for each of its targets.
    pub cells: Vec<Entry>,
}

/// What became of a run on one of its targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The position of the target's column.
    pub target: usize,
    /// What became of it.
    pub state: State,
    /// The number of trials that were measured, without A/A controls.
    pub measured: usize,
    /// The number of trials that failed, with those of A/A controls.
    pub failed: usize,
    /// Why it failed, or why not all of it was measured, each reason once.
    pub reasons: Vec<String>,
}

/// What became of a run on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// All cells were measured and verified.
    Measured,
    /// Some cells were measured and verified, and the others are not available on this target.
    Partly,
    /// No cell is available on this target.
    NotAvailable,
    /// A trial failed, or the target could not be used.
    Failed,
    /// The user stopped the suite before all of it was measured.
    Stopped,
    /// It would be measured: nothing was started.
    Planned,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending<'a> {
    /// All trials were made.
    Complete,
    /// The user stopped it.
    Stopped,
    Planned,
    /// An error ended it.
    Error(&'a str),
}

impl SuiteTable {
    /// A table without rows.
    pub fn new(suite: String, began: u64, machine: MachineFacts, targets: Vec<String>) -> Self {
        Self { version: VERSION, suite, began, machine, complete: true, targets, ..Self::default() }
    }

    /// Whether a trial or a target failed, or a run measured nothing on any target.
    pub fn has_failures(&self) -> bool {
        let failed = |row: &Row| row.cells.iter().any(|entry| entry.state == State::Failed);
        let unavailable = |row: &Row| row.cells.iter().all(|entry| entry.state == State::NotAvailable);
        self.runs.iter().any(|row| failed(row) || unavailable(row))
    }
}

impl Entry {
    /// A target that could not be opened.
    pub fn unopened(column: usize, reason: &str, missing: bool) -> Self {
        let state = if missing { State::NotAvailable } else { State::Failed };
        Self { target: column, state, measured: 0, failed: 0, reasons: vec![first_line(reason)] }
    }

    /// A target of a run that was not begun.
    pub fn not_begun(column: usize) -> Self {
        Self { target: column, state: State::Stopped, measured: 0, failed: 0, reasons: Vec::new() }
    }

    /// What became of a run on its target number `target`, whose column is `column`, from its cells, the names of its
    /// operations, and its trials.
    pub fn of(
        column: usize,
        target: usize,
        cells: &[CellRecord],
        operations: &[String],
        trials: &[TrialRecord],
        ending: Ending<'_>,
    ) -> Self {
        let here = |cell: usize| cells.get(cell).filter(|cell| cell.target == target);
        // The last attempt of a trial counts.
        let mut last: BTreeMap<(u32, usize, &str), &TrialRecord> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| here(trial.cell).is_some()) {
            last.insert((trial.round, trial.cell, &trial.operation), trial);
        }
        let is_result = |trial: &&&TrialRecord| {
            trial.measured().is_some() && here(trial.cell).is_some_and(|cell| !cell.aa_control)
        };
        let measured = last.values().filter(is_result).count();
        let failures: Vec<String> = last
            .values()
            .filter_map(|trial| match &trial.outcome {
                Outcome::Failed { reason, .. } => {
                    Some(format!("{}: {}", trial.operation, first_line(reason)))
                }
                Outcome::Measured(_) => None,
            })
            .collect();
        let failed = failures.len();
        let own = || cells.iter().filter(|cell| cell.target == target && !cell.aa_control);
        let parts = || own().flat_map(|cell| operations.iter().map(|operation| cell.refusal(operation)));
        let refusals: Vec<String> = distinct(parts().flatten().map(first_line));
        let is_available = own().next().is_none() || parts().any(|refusal| refusal.is_none());
        let (state, reasons) = match ending {
            _ if failed > 0 => (State::Failed, distinct(failures)),
            _ if !is_available => (State::NotAvailable, refusals),
            Ending::Error(error) => (State::Failed, vec![first_line(error)]),
            Ending::Stopped => (State::Stopped, Vec::new()),
            Ending::Planned => (State::Planned, refusals),
            Ending::Complete if measured == 0 => (State::Failed, vec!["nothing was measured".to_owned()]),
            Ending::Complete if refusals.is_empty() => (State::Measured, refusals),
            Ending::Complete => (State::Partly, refusals),
        };
        Self { target: column, state, measured, failed, reasons }
    }
}

/// Further lines of an error are a log.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

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

/// The table with its legend and its notes; divided into tables that fit into this many columns, one below the other.
fn blocks(table: &SuiteTable, width: Option<usize>) -> Vec<Block> {
    let notes = Notes::of(table);
    let grid = grid(table, &notes);
    let grids = match width {
        Some(width) => parts(&grid, width.clamp(60, 200)),
        None => vec![grid],
    };
    let legend = Some(legend(table)).filter(|legend| !legend.is_empty());
    [Block::Title(format!("{} · {}", table.suite, counts(table)))]
        .into_iter()
        .chain(grids.into_iter().map(Block::Table))
        .chain(legend.map(Block::Paragraph))
        .chain((!notes.0.is_empty()).then(|| Block::Numbered(notes.lines())))
        .collect()
}

pub fn terminal(table: &SuiteTable, options: &Options) -> String {
    let mut page = Page::new(options, Language::English);
    page.write(&blocks(table, Some(options.width)));
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
        let columns = group.iter().map(|at| table.columns[*at].clone()).collect();
        let rows = table.rows.iter().map(|row| group.iter().map(|at| row[*at].clone()).collect()).collect();
        Table { columns, rows, ..Table::default() }
    };
    groups.into_iter().map(part).collect()
}

pub fn markdown(table: &SuiteTable) -> String {
    let made = format!(
        "Kurabe {}, {}, {}; {}.",
        table.kurabe,
        timestamp(table.began),
        units::time(Duration::from_secs_f64(table.seconds.max(0.0))),
        machine(&table.machine, Language::English)
    );
    let mut blocks = blocks(table, None);
    blocks.extend([Block::Paragraph(made), Block::Command(command_line(&table.command))]);
    markdown::write(&blocks)
}

#[cfg(test)]
mod tests;
