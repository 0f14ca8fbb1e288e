//! `kurabe doctor --runs`: checks the recorded runs.

use crate::exit::{self, Exit};
use crate::output::Output;
use kurabe_core::{ErrorKind, Result, units};
use kurabe_record::{Entry, Recorded, RunState, Store};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Reads every line of every run and prints a line per run. Returns an exit code if one cannot be read.
pub(super) fn check(store: &Store, output: &Output) -> Result<Option<Exit>> {
    let entries = store.list()?;
    let width = entries.iter().map(|entry| entry.path().name.len()).max().unwrap_or(0);
    let mut counts = BTreeMap::new();
    let mut text = String::new();
    for entry in &entries {
        let (state, about) = examine(entry);
        *counts.entry(state).or_insert(0_u64) += 1;
        let _ = writeln!(text, "{:width$}  {state}: {about}", entry.path().name);
    }
    let total: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let runs = if entries.len() == 1 { "run" } else { "runs" };
    let _ = write!(text, "{} {runs} in {}", entries.len(), store.dir().display());
    let _ = writeln!(text, "{}{}", if total.is_empty() { "" } else { ": " }, total.join(", "));
    output.list(&text)?;
    let unreadable = counts.keys().any(|state| !matches!(*state, "whole" | "torn" | "running"));
    Ok(unreadable.then_some(exit::RUN_FILE))
}

/// The state of a run file in one word, and the details.
fn examine(entry: &Entry) -> (&'static str, String) {
    let recorded = match kurabe_record::read(entry.path()) {
        Ok(recorded) => recorded,
        Err(error) if error.kind() == ErrorKind::Damaged => return ("damaged", error.to_string()),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            return ("of another version", error.to_string());
        }
        Err(error) => return ("unreadable", error.to_string()),
    };
    let Recorded { run, torn, .. } = &recorded;
    let trials = match run.trials.len() as u64 {
        1 => "1 trial".to_owned(),
        n => format!("{} trials", units::count(n)),
    };
    if matches!(entry, Entry::Run(summary) if summary.state == RunState::Running) {
        return ("running", trials);
    }
    match torn {
        Some(torn) => ("torn", format!("{trials}; {torn}")),
        None if run.end.as_ref().is_some_and(|end| end.complete) => ("whole", format!("complete, {trials}")),
        None => ("whole", format!("stopped, {trials}")),
    }
}
