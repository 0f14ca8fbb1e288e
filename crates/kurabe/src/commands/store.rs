//! `kurabe runs`: lists, removes, annotates, exports and imports recorded runs.

use crate::exit::{self, Exit, OfRunFile};
use crate::options::options;
use crate::output::Output;
use crate::places;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_record::{Entry, RunPath, RunState, RunSummary, Store};
use kurabe_report::{Language, Message, origin, timestamp};
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

options! {
    /// The options of `kurabe runs`, of all that it does.
    StoreOptions {
        runs_dir: Option<PathBuf>,
        run: Vec<String>,
        label: Option<String>,
        suite: Option<String>,
        format: Option<String>,
        text: Option<String>,
        output: Option<PathBuf>,
        file: Vec<PathBuf>,
    }
}

pub(super) fn runs(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let (what, matches) = matches.subcommand().unwrap_or(("", matches));
    let options = &StoreOptions::of(matches);
    let store = match what {
        "import" => places::writable_runs(options.runs_dir.as_deref())?,
        _ => places::runs(options.runs_dir.as_deref())?,
    };
    match what {
        "ls" => list(&store, options, output),
        "rm" => remove(&store, options, output),
        "note" => note(&store, options, output),
        "export" => export(&store, options, output),
        "import" => import(&store, options, output),
        _ => Err(Error::usage("no such command").into()),
    }
}

fn list(store: &Store, options: &StoreOptions, output: &Output) -> Result<Exit> {
    let (label, suite) = (options.label.as_ref(), options.suite.as_ref());
    let entries = store.list()?;
    let wanted = |entry: &&Entry| match entry {
        Entry::Run(run) => {
            label.is_none_or(|label| run.header.origin.labels.contains(label))
                && suite.is_none_or(|suite| run.header.origin.suite.as_ref() == Some(suite))
        }
        Entry::Unreadable { .. } => label.is_none() && suite.is_none(),
    };
    let found: Vec<&Entry> = entries.iter().filter(wanted).collect();
    if options.format.as_deref() == Some("json") {
        let mut text = String::new();
        for entry in found {
            let _ = writeln!(text, "{}", object(entry));
        }
        // No run is no line.
        if !text.is_empty() {
            output.result(&text)?;
        }
        return Ok(exit::DONE);
    }
    if found.is_empty() {
        output.note(&format!("no such runs in {}", store.dir().display()));
        return Ok(exit::DONE);
    }
    let width = found.iter().map(|entry| entry.path().name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in found {
        let name = &entry.path().name;
        let _ = match entry {
            Entry::Run(run) => {
                let (length, verdict) = read(entry, output);
                let _ = writeln!(text, "{name:width$}  {}", about(run, length, output.language));
                verdict.map_or(Ok(()), |verdict| writeln!(text, "    {verdict}"))
            }
            Entry::Unreadable { error, .. } => {
                let is_damaged = error.kind() == ErrorKind::Damaged;
                let message = if is_damaged { Message::Damaged } else { Message::Unreadable };
                let why = message.with(output.language, &[("error", &error.to_string())]);
                writeln!(text, "{name:width$}  {why}")
            }
        };
        match entry.path().note() {
            Ok(Some(note)) => {
                for line in note.lines() {
                    let _ = writeln!(text, "    {line}");
                }
            }
            Ok(None) => {}
            Err(error) => output.warning(&error.to_string()),
        }
    }
    output.list(&text)?;
    Ok(exit::DONE)
}

/// How long a run took, and its verdict, if anything was measured.
fn read(entry: &Entry, output: &Output) -> (Option<Duration>, Option<String>) {
    let Ok(recorded) = kurabe_record::read(entry.path()) else { return Default::default() };
    let run = recorded.run;
    let last = run.end.as_ref().map(|end| end.at_ms).or(run.trials.last().map(|trial| trial.at_ms));
    let length = last.map(Duration::from_millis);
    if run.trials.is_empty() {
        return (length, None);
    }
    (length, super::report::analyse(&run, output).verdict())
}

fn state(run: &RunSummary) -> &'static str {
    match run.state {
        RunState::Complete => "complete",
        RunState::Incomplete => "stopped",
        RunState::Running => "running",
    }
}

/// A run in one line: `2026-11-23 18:05 UTC, session on sqlite:, complete after 40 s, suite gate, label main, commit 01234567`.
fn about(run: &RunSummary, length: Option<Duration>, language: Language) -> String {
    let header = &run.header;
    let targets = header.spec.targets.join(" ");
    let of = [("experiment", &*header.spec.experiment), ("targets", &targets)];
    let ended = ended(run.state, length, &run.path.name, language);
    let parts = [timestamp(header.began), Message::RunOn.with(language, &of), ended];
    let all: Vec<String> = parts.into_iter().chain(origin(&header.origin, language)).collect();
    all.join(Message::Comma.text(language))
}

/// Whether and when a run has ended.
fn ended(state: RunState, length: Option<Duration>, name: &str, language: Language) -> String {
    let say = |message: Message| message.text(language).to_owned();
    let after = |message: Message| match length {
        Some(length) => {
            Message::After.with(language, &[("state", &say(message)), ("time", &units::time(length))])
        }
        None => say(message),
    };
    match state {
        RunState::Complete => after(Message::Complete),
        RunState::Incomplete => {
            let command = format!("kurabe run --resume {name}");
            let values = [("state", &*after(Message::Stopped)), ("command", &command)];
            Message::Resumable.with(language, &values)
        }
        RunState::Running => say(Message::Running),
    }
}

fn object(entry: &Entry) -> serde_json::Value {
    let path = entry.path();
    match entry {
        Entry::Run(run) => json!({
            "run": path.name,
            "file": path.file.display().to_string(),
            "state": state(run),
            "began": run.header.began,
            "experiment": run.header.spec.experiment,
            "targets": run.header.spec.targets,
            "kurabe": run.header.kurabe,
            "origin": run.header.origin,
            "note": path.note().ok().flatten(),
        }),
        Entry::Unreadable { error, .. } => json!({
            "run": path.name,
            "file": path.file.display().to_string(),
            "state": "unreadable",
            "error": error.to_string(),
        }),
    }
}

/// The runs that the user named, each once, all found before anything is done.
fn named(store: &Store, words: &[String]) -> Result<Vec<RunPath>> {
    let mut found: Vec<RunPath> = Vec::new();
    for word in words {
        let path = store.find(word).map_err(OfRunFile)?;
        if !found.contains(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

fn remove(store: &Store, options: &StoreOptions, output: &Output) -> Result<Exit> {
    for path in named(store, &options.run)? {
        store.remove(&path)?;
        output.note(&format!("removed {}", path.name));
    }
    Ok(exit::DONE)
}

fn note(store: &Store, options: &StoreOptions, output: &Output) -> Result<Exit> {
    for path in named(store, &options.run)? {
        match &options.text {
            Some(text) => path.set_note(text).map_err(OfRunFile)?,
            None => output.result(&path.note().map_err(OfRunFile)?.unwrap_or_default())?,
        }
    }
    Ok(exit::DONE)
}

fn export(store: &Store, options: &StoreOptions, output: &Output) -> Result<Exit> {
    let runs = named(store, &options.run)?;
    let Some(file) = &options.output else {
        return Err(Error::usage("no archive was named").hint("write -o FILE.tar.gz").into());
    };
    kurabe_record::export(&runs, file).map_err(OfRunFile)?;
    output.result(&file.display().to_string())?;
    Ok(exit::DONE)
}

fn import(store: &Store, options: &StoreOptions, output: &Output) -> Result<Exit> {
    for file in &options.file {
        for imported in kurabe_record::import(store, file).map_err(OfRunFile)? {
            if imported.known {
                output.note(&format!("{} is here already", imported.path.name));
            }
            output.result(&imported.path.name)?;
        }
    }
    Ok(exit::DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_that_measured_nothing_has_no_length() {
        let text = ended(RunState::Incomplete, None, "a-run", Language::English);
        assert_eq!(text, "stopped; 'kurabe run --resume a-run' continues");
        let complete = |language| ended(RunState::Complete, Some(Duration::from_secs(9)), "a-run", language);
        assert_eq!(complete(Language::English), "complete after 9 s");
        assert_eq!(complete(Language::Japanese), "9 s で完了");
    }
}
