//! The table of a suite of several runs: what was measured on which target, and why the rest was not.

mod render;

use crate::group::distinct;
use kurabe_core::run::{CellRecord, MachineFacts, Outcome, TrialRecord};
use serde::Serialize;
use std::collections::BTreeMap;

pub use render::{json, markdown, terminal};

/// The version of the table as JSON.
const VERSION: u32 = 1;

/// The table of a suite. It holds no results.
#[derive(Clone, Debug, Serialize)]
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
        Self {
            version: VERSION,
            suite,
            began,
            seconds: 0.0,
            kurabe: String::new(),
            command: Vec::new(),
            machine,
            complete: true,
            dry: false,
            targets,
            runs: Vec::new(),
        }
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
            matches!(trial.outcome, Outcome::Measured(_))
                && here(trial.cell).is_some_and(|cell| !cell.aa_control)
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

#[cfg(test)]
mod tests;
