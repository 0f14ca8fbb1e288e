//! `kurabe compare RUN RUN`: compares the second run with the first, cell by cell.

use super::{named_run, report};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::places;
use crate::suite::until::percentage;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::Error;
use kurabe_core::run::{DEFAULT_MARGIN, Run};
use kurabe_record::Store;
use kurabe_report::compare::{self, Compared, Criteria, Decision, MAX_RUNS};
use kurabe_report::{Summary, View};
use std::path::{Path, PathBuf};

pub(super) fn compare(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let files = Files::of(matches)?;
    let (one, first) = named_run(matches, "a", output)?;
    let (other, second) = named_run(matches, "b", output)?;
    if one.folder == other.folder {
        let same = format!("both names are those of the same run, {}", one.name);
        if files.criteria.is_some() {
            return Err(Error::usage(same).hint("name two runs; 'kurabe runs ls' lists them").into());
        }
        output.warning(&same);
    }
    let view = report::view(matches);
    report::warn_of_licences(&view, &[&first, &second], output);
    of_two(&places::runs(matches)?, &view, [&first, &second], &files, output)
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

/// What is written besides tables, and the gate's criteria.
pub(super) struct Files {
    pub(super) criteria: Option<Criteria>,
    markdown: Option<PathBuf>,
    junit: Option<PathBuf>,
    json: Option<PathBuf>,
}

impl Files {
    /// Reads the options. Not every command has every option.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if the criterion is invalid, or missing for `JUnit` XML.
    pub(super) fn of(matches: &ArgMatches) -> kurabe_core::Result<Self> {
        let file = |name: &str| matches.try_get_one::<PathBuf>(name).ok().flatten().cloned();
        let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().map(String::as_str);
        let criterion = text("fail-on").or(text("against").map(|_| "slower"));
        let criteria = criterion.map(|text| Criteria::parse(text, DEFAULT_MARGIN, percentage)).transpose();
        let criteria = criteria.map_err(|error| error.context("--fail-on"))?;
        let [markdown, junit, json] = ["export-markdown", "export-junit", "export-json"].map(file);
        let files = Self { criteria, markdown, junit, json };
        if files.junit.is_some() && criteria.is_none() {
            return Err(Error::usage("--export-junit requires --fail-on").hint("add --fail-on slower:5%"));
        }
        if [&files.markdown, &files.junit, &files.json]
            .into_iter()
            .flatten()
            .filter(|file| is_output(file))
            .count()
            > 1
        {
            return Err(Error::usage(
                "only one of --export-markdown, --export-junit and --export-json can be '-'",
            ));
        }
        Ok(files)
    }

    /// Whether standard output is for one of them alone.
    pub(super) fn prints(&self) -> bool {
        [&self.markdown, &self.junit, &self.json].into_iter().flatten().any(|file| is_output(file))
    }

    /// Writes a result in the formats that were asked for.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn write(
        &self,
        markdown: impl FnOnce() -> String,
        json: impl FnOnce() -> String,
        junit: impl FnOnce() -> String,
        output: &Output,
    ) -> Result<()> {
        let write = |file: &PathBuf, text: String| {
            if is_output(file) { Ok(output.result(&text)?) } else { report::write(file, text.as_bytes()) }
        };
        self.markdown.as_ref().map_or(Ok(()), |file| write(file, markdown()))?;
        self.json.as_ref().map_or(Ok(()), |file| write(file, json()))?;
        self.junit.as_ref().map_or(Ok(()), |file| write(file, junit()))
    }
}

fn is_output(file: &Path) -> bool {
    file.as_os_str() == "-"
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
        let shown = compared.clone().in_language(first, output.language);
        output.result(&compare::terminal(&shown, &report::terminal_options(output)))?;
    }
    let junit = || compare::junit(&compared, &first.experiment);
    files.write(|| compare::pull_request(&compared), || compare::json(&compared), junit, output)?;
    Ok(match compared.gate.map(|gate| gate.decided.decision) {
        None | Some(Decision::Passed) => exit::DONE,
        Some(Decision::Failed) => exit::SLOWER,
        Some(Decision::Undecided) => exit::UNDECIDED,
    })
}
