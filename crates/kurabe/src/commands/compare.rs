//! `kurabe compare RUN RUN`: compares the second run with the first, cell by cell.

use super::{named_run, report};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::suite::until::percentage;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::Error;
use kurabe_core::run::DEFAULT_MARGIN;
use kurabe_report::Summary;
use kurabe_report::compare::{self, Decision};
use std::path::{Path, PathBuf};

pub(super) fn compare(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let files = Files::of(matches)?;
    let (one, first) = named_run(matches, "a", output)?;
    let (other, second) = named_run(matches, "b", output)?;
    if one.folder == other.folder {
        let same = format!("both names are those of the same run, {}", one.name);
        if files.margin.is_some() {
            return Err(Error::usage(same).hint("name two runs; 'kurabe show' lists them").into());
        }
        output.warning(&same);
    }
    let view = report::view(matches);
    let infos = [report::info(&first, output), report::info(&second, output)];
    let (a, b) = view.analyse_both([&first, &second], infos)?;
    report::warn_of_licences(&view, &[&first, &second], output);
    Ok(exit_of(judged(&a, &b, &files, output)?))
}

/// What a comparison writes besides its tables, and the gate's margin.
pub(super) struct Files {
    margin: Option<f64>,
    markdown: Option<PathBuf>,
    junit: Option<PathBuf>,
    json: Option<PathBuf>,
}

impl Files {
    /// Reads the options.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if the criterion is invalid, or missing for `JUnit` XML.
    pub(super) fn of(matches: &ArgMatches) -> kurabe_core::Result<Self> {
        let file = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        let criterion = matches.get_one::<String>("fail-on");
        let margin =
            criterion.map(|text| compare::gate::criterion(text, DEFAULT_MARGIN, percentage)).transpose();
        let margin = margin.map_err(|error| error.context("--fail-on"))?;
        let files = Self { margin, markdown: file("markdown"), junit: file("junit"), json: file("json") };
        if files.junit.is_some() && margin.is_none() {
            return Err(Error::usage("--junit requires --fail-on").hint("add --fail-on slower:5%"));
        }
        let printed = [&files.markdown, &files.junit, &files.json].into_iter().flatten();
        if printed.filter(|file| is_output(file)).count() > 1 {
            return Err(Error::usage("only one of --markdown, --junit and --json can be '-'"));
        }
        Ok(files)
    }
}

fn is_output(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Compares two runs, prints and writes the comparison, and returns the gate's decision if there is one.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn judged(
    first: &Summary,
    second: &Summary,
    files: &Files,
    output: &Output,
) -> Result<Option<Decision>> {
    let mut compared = compare::compare(first, second);
    if let Some(margin) = files.margin {
        compare::gate::judge(&mut compared, first, second, margin);
    }
    let markdown = files.markdown.as_ref().map(|file| (file, compare::pull_request(&compared)));
    let json = files.json.as_ref().map(|file| (file, compare::json(&compared)));
    let junit = files.junit.as_ref().map(|file| (file, compare::junit(&compared, &first.experiment)));
    let mut printed = false;
    for (file, text) in [markdown, json, junit].into_iter().flatten() {
        if is_output(file) {
            output.result(&text)?;
            printed = true;
        } else {
            report::write(file, text.as_bytes())?;
        }
    }
    if !printed {
        output.result(&compare::terminal(&compared, &report::terminal_options(output)))?;
    }
    Ok(compared.gate.map(|gate| gate.decision))
}

/// The exit code of a gate's decision; 0 without a gate.
pub(super) fn exit_of(decision: Option<Decision>) -> Exit {
    match decision {
        None | Some(Decision::Passed) => exit::DONE,
        Some(Decision::Failed) => exit::SLOWER,
        Some(Decision::Inconclusive) => exit::INCONCLUSIVE,
    }
}
