//! `kurabe report [RUN]`, and the table at the end of every run.

use super::files::{Files, Formats, is_output, write, write_private};
use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::places::{self, named_run};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::Error;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::run::Run;
use kurabe_experiments::registry;
use kurabe_record::{Entry, RunState};
use kurabe_report::{Language, Summary, View, csv, hgrm, html, json, markdown, openmetrics, terminal};
use std::path::PathBuf;

/// The width of the report if standard output is not a terminal and the environment sets none.
const WIDTH: usize = 110;

options! {
    /// What a report leaves out, and hides.
    ViewOptions {
        anonymise: bool,
        leave_out: Vec<String>,
    }
}

options! {
    /// The options of `kurabe report` besides.
    ReportOptions {
        run: Option<String>,
        format: Option<String>,
        output: Option<PathBuf>,
        export_html: Option<PathBuf>,
        published: bool,
        runs_dir: Option<PathBuf>,
    }
}

pub(super) fn report(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let options = ReportOptions::of(matches);
    let store = places::runs(options.runs_dir.as_deref())?;
    let (path, run) = named_run(&store, options.run.as_deref(), output)?;
    let view = ViewOptions::of(matches).view();
    let info = info(&run, output);
    let summary = view.analyse(&run, info)?;
    warn_of_licences(&view, &[&run], output);
    let (asked, published) = (options.export_html.as_ref().or(options.output.as_ref()), options.published);
    let ending = asked.and_then(|file| file.extension()?.to_str());
    let format = match (options.format.as_deref(), ending) {
        _ if options.export_html.is_some() => "html",
        (Some(format), _) => format,
        (None, Some(ending @ ("html" | "md" | "csv" | "json" | "hgrm"))) => ending,
        (None, _) if published => "html",
        (None, _) => "text",
    };
    let is_going_on = store.list()?.iter().any(|entry| match entry {
        Entry::Run(run) => run.path.folder == path.folder && run.state == RunState::Running,
        Entry::Unreadable { .. } => false,
    });
    if is_going_on {
        output.note(&format!("{} is still going on: these are its results so far", path.name));
    } else if !run.is_complete() && format != "text" {
        // Other formats have no place for a warning.
        output.warning(&format!("{} is not complete; 'kurabe run --resume' continues it", path.name));
    }
    if published && info.and_then(|info| info.published).is_none() {
        return Err(Error::usage(format!(
            "there are no published results for {}",
            run.header.spec.experiment
        ))
        .into());
    }
    let bytes = match format {
        "md" => markdown::render(&summary).into_bytes(),
        "csv" => csv::render(&summary).into_bytes(),
        "hgrm" => hgrm::render(&summary).into_bytes(),
        "windows" => csv::windows(&*view.run(&run)?).into_bytes(),
        "openmetrics" => openmetrics::render(&[(&*view.run(&run)?, !run.is_complete())]).into_bytes(),
        "json" => json::render(&summary).into_bytes(),
        "html" => {
            html::render(&summary.in_language(output.language), &html::Options { published }).into_bytes()
        }
        _ => terminal::render(&summary.in_language(output.language), &terminal_options(output)).into_bytes(),
    };
    let file = match asked {
        Some(file) if is_output(file) => None,
        Some(file) => Some(file.clone()),
        None if format == "html" => Some(path.folder.join(file_name(&view, "report", "html"))),
        None => None,
    };
    match file {
        None => output.result(&String::from_utf8_lossy(&bytes))?,
        Some(file) => {
            // What is in the run's folder is private as the run is.
            if asked.is_some() {
                write(&file, &bytes)?;
            } else {
                write_private(&file, &bytes)?;
            }
            output.result(&file.display().to_string())?;
        }
    }
    Ok(exit::DONE)
}

/// The name of a file in the run's folder. A partial view must not overwrite the complete one.
fn file_name(view: &View, name: &str, extension: &str) -> String {
    let part = match (view.is_whole(), view.anonymise) {
        (true, _) => "",
        (false, true) => "-anonymous",
        (false, false) => "-in-part",
    };
    format!("{name}{part}.{extension}")
}

impl ViewOptions {
    /// The view that is asked for. A target may be given as its URL; its password is dropped, so that no error shows it.
    pub(super) fn view(self) -> View {
        let leave_out = kurabe_targets::without_passwords(self.leave_out.into_iter());
        View { leave_out, anonymise: self.anonymise }
    }
}

/// Warns the user about licences: an anonymous report cannot name them.
pub(super) fn warn_of_licences(view: &View, runs: &[&Run], output: &Output) {
    if !view.anonymise {
        return;
    }
    let mut printed = Vec::new();
    for target in runs.iter().flat_map(|run| view.restricted(run)) {
        let Some(clause) = &target.publishing else { continue };
        let text = format!(
            "{}: {} ({}; {}); check whether that applies to anonymous results; --leave-out {} makes a \
             report without them",
            target.name, clause.says, clause.name, clause.source, target.name
        );
        if !printed.contains(&text) {
            output.warning(&text);
            printed.push(text);
        }
    }
}

/// The analysis of a run, in the language of the user.
pub(super) fn analyse(run: &Run, output: &Output) -> Summary {
    kurabe_report::analyse(run, info(run, output)).in_language(output.language)
}

/// The run as tables with verdicts.
pub(super) fn terminal(summary: &Summary, output: &Output) -> String {
    terminal::render(summary, &terminal_options(output))
}

pub(super) fn terminal_options(output: &Output) -> terminal::Options {
    terminal::Options { width: output.width.unwrap_or(WIDTH), color: output.colour, details: output.verbose }
}

/// Writes the report of a new run in the formats that were asked for.
pub(super) fn export(summary: &Summary, files: &Files, output: &Output) -> Result<()> {
    let page = || html::render(&summary.clone().in_language(output.language), &html::Options::default());
    let english = summary.clone().in_language(Language::English);
    let formats = Formats {
        markdown: &|| markdown::render(&english),
        json: &|| json::render(&english),
        junit: &String::new,
        html: &page,
    };
    files.write(&formats, output)
}

/// The description of the run's experiment. A run of an unknown experiment is shown without it.
pub(super) fn info(run: &Run, output: &Output) -> Option<&'static ExperimentInfo> {
    let found = registry::of(&run.header.spec);
    if let Err(why) = &found {
        output.warning(&format!(
            "results of experiment '{}' are shown without the question that it answers: {why}",
            run.header.spec.experiment
        ));
    }
    found.ok().map(|experiment| experiment.info)
}
