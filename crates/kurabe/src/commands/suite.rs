//! `kurabe run -f SUITE` with a suite of several runs: executes them in order and prints what was measured on which
//! target.

use super::announcement::{about, with_starts};
use super::compare::origin;
use super::execute::{InSuite, Job, PartialRun, execute_with};
use super::files::{Files, Formats};
use super::report;
use crate::exit::{self, Exit};
use crate::output::{Output, shown};
use crate::run_options::RunOptions;
use crate::suite::{Several, SuiteRun};
use crate::{places, signals, standard_input, time};
use anyhow::Result;
use kurabe_core::target::TargetUrl;
use kurabe_core::units::counted;
use kurabe_core::{Error, ErrorKind};
use kurabe_engine::plan::Plan;
use kurabe_experiments::registry;
use kurabe_record::Store;
use kurabe_report::suite::{self, Ending, Entry, Row, State, SuiteTable};
use kurabe_report::terminal;
use kurabe_targets::SharedServers;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The width of the table if standard output is no terminal and the environment sets none.
const WIDTH: usize = 160;

/// A run with the columns of its targets.
struct Planned<'a> {
    run: &'a SuiteRun,
    job: Job<'static>,
    columns: Vec<usize>,
}

/// Executes a suite.
pub(super) fn run(
    path: &Path,
    suite: &Several,
    store: &Store,
    options: &RunOptions,
    output: &Output,
) -> Result<Exit> {
    let files = Files::new(options.files.clone())?;
    if files.criteria.is_some() {
        return Err(Error::usage(format!("{} has several runs, and a gate judges one", path.display()))
            .hint("give each run a file of its own, which the suite names by 'file'")
            .into());
    }
    if files.options.export_html.is_some() {
        return Err(Error::usage("--export-html is for one run")
            .hint("each run of a suite has a page in its folder")
            .into());
    }
    let dry = options.main.dry_run;
    let store = if dry { store.clone() } else { places::writable(store.clone())? };
    let mut all: Vec<Planned<'_>> = suite
        .runs
        .iter()
        .map(|run| Ok(Planned { run, job: job(path, run, &files, &store, options)?, columns: Vec::new() }))
        .collect::<Result<_>>()?;
    // An error in the last run must not show up after all others.
    let mut connections = 0;
    for Planned { run, job, .. } in &all {
        let planned = plan(job).map_err(|error| suite.located(run, error))?;
        connections = connections.max(planned.connections());
    }
    let names = columns(&mut all)?;
    let time = |planned: &Planned<'_>| {
        let spec = &planned.job.spec;
        with_starts(spec.budget_ns.map(Duration::from_nanos), &planned.job.urls)
    };
    if let Some(time) = all.iter().map(time).sum::<Option<Duration>>() {
        output.note(&format!("{}, {}", counted(all.len() as u64, "run"), about(time)));
    }
    signals::watch(exit::INTERRUPTED, output)?;
    let shared = suite.shares_servers.then(|| Arc::new(SharedServers::new(connections)));
    let mut table = table(path, names, dry);
    let began = Instant::now();
    let mut error_exit = None;
    for (at, Planned { run, job, columns }) in all.iter_mut().enumerate() {
        let (name, experiment) = (run.name.clone(), job.spec.experiment.clone());
        if signals::stopped() {
            let cells = columns.iter().map(|column| Entry::not_begun(*column)).collect();
            table.runs.push(Row { name, experiment, run: None, seconds: 0.0, cells });
            continue;
        }
        announce(at, suite.runs.len(), run, &experiment, output);
        if let Some(in_suite) = &mut job.in_suite {
            in_suite.shared.clone_from(&shared);
        }
        let started = Instant::now();
        let mut partial = PartialRun::default();
        let ended = execute_with(job, &mut partial, output);
        for (at, error) in &partial.unopened {
            output.warning(&format!("{}: left out of {name}: {error}", table.targets[columns[*at]]));
        }
        let cells = entries(job, columns, &partial, &ended);
        if let Err(error) = ended
            && is_new(&cells, &partial)
        {
            output.error(&error);
            error_exit = error_exit.or(Some(exit::of(&error)));
        }
        let recorded = partial.made.as_ref().filter(|made| !made.run.trials.is_empty());
        let recorded = recorded.map(|made| made.run.header.run.clone());
        table.runs.push(Row {
            name,
            experiment,
            run: recorded,
            seconds: started.elapsed().as_secs_f64(),
            cells,
        });
    }
    table.complete = !signals::stopped();
    table.seconds = began.elapsed().as_secs_f64();
    let written = write(&table, &files, output);
    if output.json {
        output.event(&json!({ "event": "suite-ends", "suite": table.suite, "complete": table.complete }));
    }
    if !table.complete {
        output.hint(&how_to_go_on(path, &table));
    }
    if let Some(shared) = shared {
        signals::wait_for("the servers to end");
        shared.stop(output);
    }
    written?;
    Ok(match error_exit {
        _ if !table.complete => exit::INTERRUPTED,
        Some(exit) => exit,
        None if table.has_failures() && !dry => exit::FAILED_CELLS,
        None => exit::DONE,
    })
}

fn job(
    path: &Path,
    run: &SuiteRun,
    files: &Files,
    store: &Store,
    options: &RunOptions,
) -> Result<Job<'static>> {
    let main = &options.main;
    Ok(Job {
        html: !main.no_html,
        origin: origin(Some(path), &main.label)?,
        dry: main.dry_run,
        print: !files.prints(),
        in_suite: Some(InSuite { shared: None }),
        ..Job::of(&run.request, run.request.spec()?, store.clone())?
    })
}

fn plan(job: &Job<'_>) -> kurabe_core::Result<Plan> {
    Plan::draft(registry::of(&job.spec)?, job.spec.clone(), &kurabe_targets::applications(&job.urls)?)
}

/// Sets the columns of each run's targets, and returns their names. Runs with the same target share its column.
fn columns(all: &mut [Planned<'_>]) -> Result<Vec<String>> {
    let mut known: Vec<(TargetUrl, usize)> = Vec::new();
    for planned in all {
        let mut own: Vec<(TargetUrl, usize)> = Vec::new();
        for text in &planned.job.spec.targets {
            let url = TargetUrl::parse(text)?;
            // A run may have a target twice.
            let number = own.iter().filter(|(other, _)| *other == url).count();
            own.push((url, number));
        }
        for target in own {
            let at = known.iter().position(|other| *other == target);
            let at = at.unwrap_or_else(|| {
                known.push(target);
                known.len() - 1
            });
            planned.columns.push(at);
        }
    }
    let urls: Vec<TargetUrl> = known.into_iter().map(|(url, _)| url).collect();
    Ok(kurabe_targets::names(&urls))
}

fn table(path: &Path, names: Vec<String>, dry: bool) -> SuiteTable {
    let suite = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let began = time::since_1970().as_secs();
    SuiteTable {
        kurabe: env!("CARGO_PKG_VERSION").to_owned(),
        command: kurabe_targets::without_passwords(standard_input::words().into_iter()),
        dry,
        ..SuiteTable::new(suite, began, kurabe_observe::machine_facts(), names)
    }
}

fn announce(at: usize, of: usize, run: &SuiteRun, experiment: &str, output: &Output) {
    let number = at + 1;
    if output.json {
        let name = &run.name;
        let event = json!({ "event": "suite-run", "name": name, "experiment": experiment, "number": number, "of": of });
        output.event(&event);
    } else {
        output.note(&format!("run {number} of {of}: {}", run.name));
    }
}

/// What became of a run on each of its targets.
fn entries(job: &Job<'_>, columns: &[usize], partial: &PartialRun, ended: &Result<Exit>) -> Vec<Entry> {
    let text;
    let ending = match ended {
        Ok(exit::INTERRUPTED) => Ending::Stopped,
        Err(_) if signals::stopped() => Ending::Stopped,
        Ok(_) if job.dry => Ending::Planned,
        Ok(_) => Ending::Complete,
        Err(error) => {
            text = shown(error);
            Ending::Error(&text)
        }
    };
    let trials = partial.made.as_ref().map_or(&[][..], |made| &made.run.trials);
    let mut opened = 0..;
    let entry = |(at, column): (usize, &usize)| {
        if let Some((_, error)) = partial.unopened.iter().find(|(other, _)| *other == at) {
            return Entry::unopened(*column, &error.to_string(), is_missing(error));
        }
        let target = opened.next().unwrap_or(0);
        Entry::of(*column, target, &partial.cells, &job.spec.operations, trials, ending)
    };
    columns.iter().enumerate().map(entry).collect()
}

/// Whether an error says more than what the table has: which targets could not be opened, and what is not available.
fn is_new(cells: &[Entry], partial: &PartialRun) -> bool {
    let is_opened = |at: usize| partial.unopened.iter().all(|(other, _)| *other != at);
    cells.iter().enumerate().any(|(at, cell)| is_opened(at) && cell.state == State::Failed)
}

/// Whether a target cannot be used on this machine, which is no failure of it.
fn is_missing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported)
}

/// How to make the rest of a stopped suite.
fn how_to_go_on(path: &Path, table: &SuiteTable) -> String {
    let stopped = |row: &&Row| row.cells.iter().any(|cell| cell.state == State::Stopped);
    let (begun, rest): (Vec<&Row>, Vec<&Row>) =
        table.runs.iter().filter(stopped).partition(|row| row.run.is_some());
    let mut commands: Vec<String> =
        begun.iter().filter_map(|row| Some(format!("'kurabe run --resume {}'", row.run.as_ref()?))).collect();
    if !rest.is_empty() {
        let names: Vec<&str> = rest.iter().map(|row| row.name.as_str()).collect();
        commands.push(format!("'kurabe run -f {} --only {}'", path.display(), names.join(",")));
    }
    if commands.is_empty() {
        return "stopped".to_owned();
    }
    format!("stopped; the rest: {}", commands.join(", then "))
}

/// Prints the table, unless standard output is for a file alone, and writes the files.
fn write(table: &SuiteTable, files: &Files, output: &Output) -> Result<()> {
    if !files.prints() {
        output.result("")?;
        let options = report::terminal_options(output);
        // Without a terminal, one wide table is easier to read than several.
        let options = terminal::Options { width: output.width.unwrap_or(WIDTH), ..options };
        output.result(&suite::terminal(table, &options))?;
    }
    let formats = Formats {
        markdown: &|| suite::markdown(table),
        json: &|| suite::json(table),
        junit: &String::new,
        html: &String::new,
    };
    files.write(&formats, output)
}
