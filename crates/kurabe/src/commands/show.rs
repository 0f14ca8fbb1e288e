//! `kurabe show [RUN]`: shows one run in the terminal, or lists all runs.

use super::named_run;
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::places;
use anyhow::Result;
use clap::ArgMatches;
use jiff::Timestamp;
use kurabe_core::{ErrorKind, units};
use kurabe_record::{Entry, RunState};
use kurabe_report::finding::Section;
use std::fmt::Write;
use std::time::Duration;

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
    let mut text = String::new();
    for entry in &entries {
        let name = &entry.path().name;
        let _ = match entry {
            Entry::Run(summary) => {
                let spec = &summary.header.spec;
                let (when, (length, verdict)) = (date(summary.header.began), read(entry, output));
                let state = match summary.state {
                    RunState::Complete => "complete",
                    RunState::Incomplete => "stopped; 'kurabe resume' continues",
                    RunState::Running => "running",
                };
                let _ = writeln!(text, "{name}  {when}, {length}{state}");
                // A colon follows.
                let targets = spec.targets.join(" ");
                writeln!(text, "    {} on {}{verdict}", spec.experiment, targets.trim_end_matches(':'))
            }
            Entry::Unreadable { error, .. } if error.kind() == ErrorKind::Damaged => {
                writeln!(text, "{name}  damaged: {error}")
            }
            Entry::Unreadable { error, .. } => writeln!(text, "{name}  unreadable: {error}"),
        };
    }
    output.result(&text)?;
    Ok(exit::DONE)
}

/// `2026-11-20 10:17 UTC`, from seconds since 1970.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "an unknown date".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// How long a run took, and the first sentence of its verdict; both empty if it has none yet or cannot be read.
fn read(entry: &Entry, output: &Output) -> (String, String) {
    let Ok(recorded) = kurabe_record::read(entry.path()) else { return Default::default() };
    let run = recorded.run;
    let last = run.end.as_ref().map(|end| end.at_ms).or(run.trials.last().map(|trial| trial.at_ms));
    let length = last.map_or_else(String::new, |at| format!("{}, ", units::time(Duration::from_millis(at))));
    if run.trials.is_empty() {
        return (length, String::new());
    }
    let summary = kurabe_report::analyse(&run, super::report::info(&run, output));
    let verdict = summary.sentences(Section::Verdict).first().map(|sentence| format!(": {sentence}"));
    (length, verdict.unwrap_or_default())
}
