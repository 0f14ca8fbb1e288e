//! `kurabe compare RUN RUN`: compares the second run with the first, cell by cell.

use super::files::{FileOptions, Files, Formats};
use super::report::{self, ViewOptions};
use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::places::{self, named_run};
use anyhow::Result;
use kurabe_core::Error;
use kurabe_core::run::Run;
use kurabe_record::Store;
use kurabe_report::compare::{self, Compared, MAX_RUNS};
use kurabe_report::{Summary, View};
use kurabe_stats::Decision;
use std::path::PathBuf;

options! {
    /// The options of `kurabe compare` besides those of its files and its view.
    CompareOptions {
        a: Option<String>,
        b: Option<String>,
        runs_dir: Option<PathBuf>,
    }
}

pub(super) fn compare(
    options: &CompareOptions,
    files: FileOptions,
    view: ViewOptions,
    output: &Output,
) -> Result<Exit> {
    let files = Files::new(files)?;
    let store = places::runs(options.runs_dir.as_deref())?;
    let (one, first) = named_run(&store, options.a.as_deref(), output)?;
    let (other, second) = named_run(&store, options.b.as_deref(), output)?;
    if one.folder == other.folder {
        let same = format!("both names are those of the same run, {}", one.name);
        if files.criteria.is_some() {
            return Err(Error::usage(same).hint("name two runs; 'kurabe runs ls' lists them").into());
        }
        output.warning(&same);
    }
    let view = view.view();
    report::warn_of_licences(&view, &[&first, &second], output);
    of_two(&store, &view, [&first, &second], &files, output)
}

/// Compares the second run with the first, and with what the store has of the same suite.
///
/// # Errors
/// If the runs cannot be compared, or the result cannot be written.
pub(super) fn of_two(
    store: &Store,
    view: &View,
    two: [&Run; 2],
    files: &Files,
    output: &Output,
) -> Result<Exit> {
    let earlier = store.before(two.map(|run| &run.header), MAX_RUNS)?;
    let infos = two.map(|run| report::info(run, output));
    let mut runs: Vec<_> = two.into_iter().zip(infos).collect();
    runs.extend(earlier.iter().map(|run| (run, infos[0])));
    let summaries = view.analyse_all(&runs)?;
    let [first, second, earlier @ ..] = &summaries[..] else { return Ok(exit::DONE) };
    judged(compare::compare(first, second, earlier), [first, second], files, output)
}

/// Judges a comparison of these runs if there is a criterion, prints and writes it, and returns the exit code.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn judged(
    mut compared: Compared,
    [first, second]: [&Summary; 2],
    files: &Files,
    output: &Output,
) -> Result<Exit> {
    if let Some(criteria) = files.criteria {
        compare::gate::judge(&mut compared, first, second, criteria);
    }
    if !files.prints() {
        let shown = compared.clone().in_language(output.language);
        output.result(&compare::terminal(&shown, &report::terminal_options(output)))?;
    }
    let formats = Formats {
        markdown: &|| compare::pull_request(&compared),
        json: &|| compare::json(&compared),
        junit: &|| compare::junit(&compared, &first.experiment),
        html: &|| compare::page(&compared.clone().in_language(output.language)),
    };
    files.write(&formats, output)?;
    Ok(match compared.gate.map(|gate| gate.decided.decision) {
        None | Some(Decision::Above | Decision::Within) => exit::DONE,
        Some(Decision::Below) => exit::SLOWER,
        Some(Decision::Undecided | Decision::NotTestable) => exit::UNDECIDED,
    })
}
