//! `kurabe compare RUN RUN` compares the second run with the first, cell by cell; a gate judges a new run, by itself or `--against` an
//! earlier one.

use super::execute::Made;
use super::files::{FileOptions, Files, Formats};
use super::report::{self, ViewOptions};
use crate::exit::{self, Exit, OfRunFile};
use crate::options::options;
use crate::output::Output;
use crate::places::{self, named_run};
use crate::run_options::RunOptions;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::origin::Origin;
use kurabe_core::run::{Run, RunSpec};
use kurabe_core::{Error, ErrorKind};
use kurabe_record::{Entry, RunPath, RunState, RunSummary, Store};
use kurabe_report::compare::{self, Compared, MAX_RUNS};
use kurabe_report::{Language, Summary, View};
use kurabe_stats::Decision;
use std::path::{Path, PathBuf};

options! {
    /// The options of `kurabe compare` besides those of its files and its view.
    CompareOptions {
        a: Option<String>,
        b: Option<String>,
        runs_dir: Option<PathBuf>,
    }
}

pub(super) fn compare(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let options = CompareOptions::of(matches);
    let files = Files::new(FileOptions::of(matches))?;
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
    let view = ViewOptions::of(matches).view();
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

/// The run that `--against` names, with which the new run is to be compared.
///
/// # Errors
/// If there is none, or it is not complete: a measurement would be in vain.
pub(super) fn earlier(
    options: &RunOptions,
    store: &Store,
    origin: &Origin,
    spec: &RunSpec,
    output: &Output,
) -> Result<Option<Run>> {
    let against = options.files.against.as_ref();
    let previous = || previous(options, spec).then(|| "last".to_owned());
    let Some(wanted) = against.cloned().or_else(previous) else { return Ok(None) };
    // Without a name, a run of the same scripts on the same targets.
    let like = against.is_none().then_some(spec);
    let path = match base(store, &wanted, origin, &spec.experiment, like) {
        Err(error) if against.is_none() && error.kind() == ErrorKind::NotFound => {
            let what = "there is no earlier run of this workload on this target";
            output.note(&format!("{what}: this one is the base of the next, and nothing is judged"));
            return Ok(None);
        }
        path => path.map_err(OfRunFile)?,
    };
    let recorded = kurabe_record::read(&path).map_err(OfRunFile)?;
    if !recorded.run.is_complete() {
        let message = format!("the run {} is not complete: nothing can be compared with it", path.name);
        return Err(
            OfRunFile(Error::new(ErrorKind::NotFound, message).hint("name another with --against")).into()
        );
    }
    output.note(&format!("comparing with {}", path.name));
    Ok(Some(recorded.run))
}

/// Whether a run of one target is judged against the run before it, if there is one.
pub(super) fn previous(options: &RunOptions, spec: &RunSpec) -> bool {
    options.main.previous && spec.targets.len() == 1
}

/// Judges a new run: against an earlier one, or its second target against its first.
///
/// # Errors
/// If the result cannot be written.
pub(super) fn judge(
    exit: Exit,
    made: Made,
    store: &Store,
    earlier: Option<&Run>,
    files: &Files,
    output: &Output,
) -> Result<Exit> {
    let judged = if let Some(earlier) = earlier {
        of_two(store, &View::default(), [earlier, &made.run], files, output)?
    } else {
        let summary = made.summary.in_language(Language::English);
        judged(compare::peers(&made.run, &summary), [&summary; 2], files, output)?
    };
    // Cells without results are the cause of what is not judged.
    Ok(if judged == exit::SLOWER || exit == exit::DONE { judged } else { exit })
}

/// Where a new run comes from, without its commit.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) if a label is invalid.
pub(super) fn origin(suite: Option<&Path>, given: &[String]) -> kurabe_core::Result<Origin> {
    let mut labels: Vec<String> = Vec::new();
    for label in given {
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
/// is the newest complete run of this suite; `like`: of this workload, on these targets.
fn base(
    store: &Store,
    wanted: &str,
    of: &Origin,
    experiment: &str,
    like: Option<&RunSpec>,
) -> kurabe_core::Result<RunPath> {
    let entries = store.list()?;
    if let Some(named) = entries.iter().find(|entry| entry.path().name == wanted) {
        return Ok(named.path().clone());
    }
    let complete = entries.iter().filter_map(|entry| match entry {
        Entry::Run(run) if run.state == RunState::Complete => Some(&**run),
        _ => None,
    });
    let is_like = |run: &RunSummary| {
        let of = &run.header.spec;
        like.is_none_or(|spec| (&spec.custom, &spec.targets) == (&of.custom, &of.targets))
    };
    let runs: Vec<&RunSummary> = complete
        .filter(|run| run.header.origin.suite == of.suite && run.header.spec.experiment == experiment)
        .filter(|run| is_like(run))
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
    if like.is_some() {
        return Err(Error::new(ErrorKind::NotFound, "there is no earlier run of this workload"));
    }
    let suite = of.suite.as_deref().unwrap_or_default();
    store.find(wanted).map_err(|error| match error.kind() {
        ErrorKind::NotFound if kurabe_record::is_shown(wanted) => {
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
                .hint("make one with the same command without --against, and with --label main")
        }
        _ => error,
    })
}
