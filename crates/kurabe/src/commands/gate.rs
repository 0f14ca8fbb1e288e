//! `kurabe gate SUITE --against BASE`: runs a suite and compares the run with an earlier one.

use super::compare::{Files, judged};
use super::execute::{Goal, Job, execute};
use super::{push, report};
use crate::exit::{self, Exit, OfRunFile};
use crate::output::Output;
use crate::suite::Request;
use crate::targets;
use crate::{places, quiet};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::origin::Origin;
use kurabe_core::{Error, ErrorKind};
use kurabe_record::{Entry, RunPath, RunState, RunSummary, Store};
use kurabe_report::View;
use kurabe_report::compare::Decision;
use std::path::{Path, PathBuf};

pub(super) fn gate(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let Some(suite) = matches.get_one::<PathBuf>("suite") else {
        return Err(Error::usage("no suite was given").into());
    };
    let files = Files::of(matches)?;
    let request = Request::of_suite(suite, matches)?;
    let mut spec = request.spec()?;
    let origin = origin(Some(suite), matches)?;
    let store = places::writable_runs(matches)?;
    // Without a base, a measurement would be in vain.
    let wanted = matches.get_one::<String>("against").map_or("last", String::as_str);
    let wanted = targets::without_passwords(std::iter::once(wanted.to_owned())).concat();
    let path = base(&store, &wanted, &origin, &spec.experiment).map_err(OfRunFile)?;
    let recorded = kurabe_record::read(&path).map_err(OfRunFile)?;
    if !recorded.run.is_complete() {
        let message = format!("the run {} is not complete: nothing can be compared with it", path.name);
        return Err(
            OfRunFile(Error::new(ErrorKind::NotFound, message).hint("name another with --against")).into()
        );
    }
    output.note(&format!("comparing with {}", path.name));
    if !request.names_seed() {
        // Equal data and equal inputs remove one difference between the runs.
        spec.seed = recorded.run.header.spec.seed;
    }
    let job = Job {
        spec,
        free: request.free()?,
        urls: request.target_urls(),
        cache: request.cache.clone(),
        remote: request.remote.clone(),
        fleet: request.fleet.clone(),
        store,
        html: !matches.get_flag("no-html"),
        otlp: push::collector(matches)?,
        origin,
        dry: matches.get_flag("dry-run"),
        goal: Goal::default(),
        in_suite: None,
    };
    if !job.dry {
        quiet::wait(matches, output)?;
    }
    let (exit, made) = execute(&job, output)?;
    let Some(made) = made.filter(|_| exit != exit::INTERRUPTED) else { return Ok(exit) };
    let infos = [report::info(&recorded.run, output), report::info(&made, output)];
    let (first, second) = View::default().analyse_both([&recorded.run, &made], infos)?;
    let decision = judged(&first, &second, &files, output)?;
    Ok(match decision {
        // Cells without results are the cause of what is not judged.
        Some(Decision::Passed | Decision::Inconclusive) if exit != exit::DONE => exit,
        decision => super::compare::exit_of(decision),
    })
}

/// Where a new run comes from, without its commit.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) if a label is invalid.
pub(super) fn origin(suite: Option<&Path>, matches: &ArgMatches) -> kurabe_core::Result<Origin> {
    let mut labels: Vec<String> = Vec::new();
    for label in matches.get_many::<String>("label").into_iter().flatten() {
        let plain = |character: char| character.is_alphanumeric() || "._-/".contains(character);
        if label.is_empty() || label.len() > 100 || !label.chars().all(plain) {
            return Err(Error::usage(format!("--label: '{label}' is not a label"))
                .hint("use letters, digits, '.', '_', '-' and '/', at most 100 bytes"));
        }
        if !labels.contains(label) {
            labels.push(label.clone());
        }
    }
    let suite = suite.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    Ok(Origin { suite, labels, git: None })
}

/// The run that a suite is compared with: by its exact name; then the newest complete run of this suite that has the
/// label, or else was made on the git branch without uncommitted changes; then by a path or a part of its name. `last`
/// is the newest complete run of this suite.
fn base(store: &Store, wanted: &str, of: &Origin, experiment: &str) -> kurabe_core::Result<RunPath> {
    let entries = store.list()?;
    if let Some(named) = entries.iter().find(|entry| entry.path().name == wanted) {
        return Ok(named.path().clone());
    }
    let complete = entries.iter().filter_map(|entry| match entry {
        Entry::Run(run) if run.state == RunState::Complete => Some(&**run),
        _ => None,
    });
    let runs: Vec<&RunSummary> = complete
        .filter(|run| run.header.origin.suite == of.suite && run.header.spec.experiment == experiment)
        .collect();
    let label = |run: &&&RunSummary| run.header.origin.labels.iter().any(|label| label == wanted);
    let branch = |run: &&&RunSummary| {
        let git = run.header.origin.git.as_ref();
        git.is_some_and(|git| git.branch.as_deref() == Some(wanted) && !git.dirty)
    };
    let found = match wanted {
        "last" => runs.first(),
        _ => runs.iter().find(label).or_else(|| runs.iter().find(branch)),
    };
    if let Some(found) = found {
        return Ok(found.path.clone());
    }
    let suite = of.suite.as_deref().unwrap_or_default();
    store.find(wanted).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let dir = store.dir().display();
            let message = if wanted == "last" {
                format!("there is no complete run of the suite '{suite}' in {dir}")
            } else {
                format!(
                    "'{wanted}' is neither a run, nor a label or a git branch of a complete run of the suite \
                     '{suite}' in {dir}"
                )
            };
            Error::new(ErrorKind::NotFound, message)
                .hint(format!("make one with 'kurabe run -f {suite}.toml --label main'"))
        }
        _ => error,
    })
}
