//! `kurabe show [RUN]`: shows one run in the terminal, or lists all runs.

use super::named_run;
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::places;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::ErrorKind;
use kurabe_record::{Entry, RunState};
use std::fmt::Write;

pub(super) fn show(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    if matches.get_one::<String>("run").is_none() {
        return list(matches, output);
    }
    let (_, run) = named_run(matches, "run", output)?;
    output.result(&super::report::terminal(&run, output))?;
    Ok(exit::DONE)
}

fn list(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let store = places::runs(matches)?;
    let entries = store.list()?;
    if entries.is_empty() {
        output.note(&format!("no runs in {}; start one with 'kurabe run session'", store.dir().display()));
        return Ok(exit::DONE);
    }
    let width = entries.iter().map(|entry| entry.path().name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in &entries {
        let name = &entry.path().name;
        let about = match entry {
            Entry::Run(summary) => {
                let state = match summary.state {
                    RunState::Complete => "complete",
                    RunState::Incomplete => "stopped; 'kurabe resume' continues",
                    RunState::Running => "running",
                };
                format!(
                    "{} on {}, {state}",
                    summary.header.spec.experiment,
                    summary.header.spec.targets.join(" ")
                )
            }
            Entry::Unreadable { error, .. } if error.kind() == ErrorKind::Damaged => {
                format!("damaged: {error}")
            }
            Entry::Unreadable { error, .. } => format!("unreadable: {error}"),
        };
        let _ = writeln!(text, "{name:width$}  {about}");
    }
    output.result(&text)?;
    Ok(exit::DONE)
}
