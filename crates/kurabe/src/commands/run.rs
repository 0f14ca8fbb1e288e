//! `kurabe run`: a new run, a recorded one `--again`, or the rest of one (`--resume`).

use super::compare::{self, origin};
use super::execute::{Job, execute};
use super::files::Files;
use super::{execute, report};
use crate::cli::{PGBENCH, QUERY, REPLAY};
use crate::exit::{self, Exit, OfRunFile};
use crate::output::Output;
use crate::run_options::RunOptions;
use crate::suite::custom::without_weight;
use crate::suite::{Companions, Request, Several};
use crate::{places, time};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::origin::Origin;
use kurabe_core::run::{CellRecord, RunHeader, RunSpec, Setup};
use kurabe_core::target::{TargetUrl, UP};
use kurabe_core::{Error, units};
use kurabe_experiments::registry;
use kurabe_record::{RunPath, Store, Trusted};
use std::path::PathBuf;

/// Starts a new run, from options or a suite file, or does what is asked with a recorded one.
pub(super) fn run(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let (experiment, matches) =
        matches.subcommand().map_or((None, matches), |(name, below)| (Some(name), below));
    let options = &RunOptions::of(matches);
    let main = &options.main;
    let store = || places::runs(main.runs_dir.as_deref());
    if let Some(name) = &main.again {
        refuse_others("again", &["trust"], options)?;
        return again(name, store()?, options, output);
    }
    if let Some(name) = &main.resume {
        refuse_others("resume", &["max-rounds", "trust"], options)?;
        return resumed(name, &store()?, options, output);
    }
    let (request, suite): (_, Option<PathBuf>) = match experiment {
        Some(PGBENCH) => {
            let first = options.pgbench.script.first();
            (Request::of_pgbench(options)?, first.map(|first| without_weight(first).into()))
        }
        Some(QUERY) => (Request::of_query(options)?, None),
        Some(REPLAY) => (Request::of_replay(options, output)?, None),
        Some(name) => (Request::of_experiment(registry::find(name)?.info, options)?, None),
        None => {
            let Some(suite) = &main.suite else { return Err(no_experiment(options).into()) };
            if let Some(several) = Several::read(suite, options)? {
                return super::suite::run(suite, &several, &store()?, options, output);
            }
            if !main.only.is_empty() {
                return Err(Error::usage("--only is for a suite of several runs")
                    .hint("write several [[run]] into the suite file")
                    .into());
            }
            (Request::of_suite(suite, options)?, Some(suite.clone()))
        }
    };
    let (mut files, mut spec) = (Files::new(options.files.clone())?, request.spec()?);
    let (dry, store) = (main.dry_run, store()?);
    let store = if dry { store } else { places::writable(store)? };
    let origin = origin(suite.as_deref(), &main.label)?;
    let earlier = compare::earlier(options, &store, &origin, &spec, output)?;
    match &earlier {
        // Equal data and equal inputs remove one difference between the runs.
        Some(run) if request.seed.is_none() => spec.seed = run.header.spec.seed,
        None if compare::previous(options, &spec) => files.criteria = None,
        None if files.criteria.is_some() && spec.targets.len() != 2 => {
            return Err(Error::usage("--fail-on judges the second of two targets against the first")
                .hint("name two targets, or an earlier run with --against")
                .into());
        }
        _ => {}
    }
    if !dry {
        time::wait_until_quiet(main.wait_quiet.as_deref(), output)?;
    }
    let job = Job {
        html: !main.no_html,
        origin,
        may_be_long: main.yes || request.budget.is_some(),
        dry,
        print: files.criteria.is_none() && !files.prints(),
        ..Job::of(&request, spec, store.clone())?
    };
    let (exit, made) = execute(&job, output)?;
    let Some(made) = made.filter(|_| exit != exit::INTERRUPTED) else { return Ok(exit) };
    if files.criteria.is_some() {
        return compare::judge(exit, made, &store, earlier.as_ref(), &files, output);
    }
    report::export(&made.summary, &files, output)?;
    Ok(exit)
}

/// Refuses a gate without files: with them, it was given as a run.
pub(super) fn gate_of_nothing(_: &ArgMatches, _: &Output) -> Result<Exit> {
    Err(Error::usage("a gate needs a suite file or pgbench scripts")
        .hint("write 'kurabe gate browse.sql TARGET TARGET', or shop.toml; 'kurabe gate --help' has more")
        .into())
}

/// The error if no experiment and no suite was given. Most likely the name is misspelt.
fn no_experiment(options: &RunOptions) -> Error {
    let first = options.workload.target.first().map_or("", String::as_str);
    match registry::find(first) {
        Err(error) if !first.contains(':') && !first.is_empty() => error,
        _ => Error::usage("no experiment was given").hint("write 'kurabe run session', or -f SUITE.toml"),
    }
}

/// Refuses options that would change the settings of a recorded run.
fn refuse_others(word: &str, more: &[&str], options: &RunOptions) -> kurabe_core::Result<()> {
    let everywhere = ["target", "no-html", "log-format", "runs-dir", "color", "quiet", "verbose"];
    let allowed = |id: &str| id == word || everywhere.contains(&id) || more.contains(&id);
    match options.given.iter().find(|id| !allowed(id)) {
        None => Ok(()),
        Some(id) => Err(Error::usage(format!("--{word} cannot be combined with other settings ({id})"))
            .hint("the run is executed with its own settings; for others, start a new run")),
    }
}

/// Repeats a run as a new one, with the same axes, seed, rounds and times.
fn again(name: &str, store: Store, options: &RunOptions, output: &Output) -> Result<Exit> {
    let path = store.find(name).map_err(OfRunFile)?;
    let RunHeader { spec, origin, cells, .. } = kurabe_record::read_header(&path).map_err(OfRunFile)?;
    refuse_what_others_chose(options, &store, &path, &spec, &cells)?;
    spec.setup.iter().chain(&spec.target_setups).try_for_each(Setup::check)?;
    // A label says something of one run, not of its repetition.
    let origin = Origin { labels: Vec::new(), git: None, ..origin };
    // The first line has the spec. Damage in later lines is reported and does not matter here.
    match kurabe_record::read(&path) {
        Ok(recorded) => recorded.torn.iter().for_each(|torn| output.warning(torn)),
        Err(error) => {
            output.warning(&format!("{error}; the first line is intact, and a repetition needs only that"));
        }
    }
    let companions = Companions {
        cache: spec.cache.clone(),
        remote: spec.remote.clone(),
        setup: spec.setup.as_ref().map(|setup| setup.from.clone()),
        fleet: spec.fleet.as_ref().map(|fleet| fleet.url.clone()),
    };
    let (urls, store) = (urls(options, &spec.targets)?, places::writable(store)?);
    let is_fitted = spec.duration_ns.is_some();
    let html = !options.main.no_html;
    let job = Job { companions, html, origin, is_fitted, ..Job::new(spec, urls, store) };
    Ok(execute(&job, output)?.0)
}

/// Continues an interrupted run.
fn resumed(name: &str, store: &Store, options: &RunOptions, output: &Output) -> Result<Exit> {
    let path = store.find(name).map_err(OfRunFile)?;
    crate::places::warn_of_run(store, &path, output);
    let resumed = store.resume(&path).map_err(OfRunFile)?;
    if let Some(torn) = &resumed.torn {
        output.warning(torn);
    }
    let RunHeader { spec, cells, .. } = &resumed.run.header;
    refuse_what_others_chose(options, store, &path, spec, cells)?;
    let urls = urls(options, &spec.targets)?;
    let max_rounds = &options.main.max_rounds;
    let max_rounds = max_rounds.value.as_ref().filter(|_| max_rounds.is_given());
    let max_rounds = max_rounds.map(|text| units::parse_count(text)).transpose()?;
    let max_rounds = max_rounds.map(|rounds| rounds.min(100_000) as u32);
    execute::resume(resumed, &urls, max_rounds, !options.main.no_html, output)
}

/// Refuses what the file of a run names that this user did not make here, unless the user names it too.
fn refuse_what_others_chose(
    options: &RunOptions,
    store: &Store,
    path: &RunPath,
    spec: &RunSpec,
    cells: &[CellRecord],
) -> Result<()> {
    if store.is_own(path) || options.main.trust {
        return Ok(());
    }
    let throwaway = kurabe_testbed::engines().map(|engine| format!("{UP}:{engine}"));
    let known = given(options)
        .iter()
        .cloned()
        .chain(["sqlite:", "lmdb:", "null:"].map(str::to_owned))
        .chain(throwaway);
    let way = "the run was not made here, and its file chose this: give the same targets again behind the name of the run, or \
               read the file and add --trust";
    let trusted = Trusted::new(known.collect(), store.dir().to_owned(), false, way);
    // The experiment of a workload of its own may read a file.
    let experiment = spec.custom.is_none().then(|| registry::find(&spec.experiment)).transpose()?;
    let axes = experiment.map_or(&[][..], |experiment| experiment.info.axes);
    trusted.check_recorded(spec, cells, axes)?;
    Ok(())
}

/// The targets of the command line.
fn given(options: &RunOptions) -> &[String] {
    let target = &options.targets.target;
    if target.is_given() { &target.value } else { &[] }
}

/// The recorded target URLs, or the ones that the user gives again with passwords.
fn urls(options: &RunOptions, recorded: &[String]) -> Result<Vec<String>> {
    let given = given(options);
    if given.is_empty() {
        return Ok(recorded.to_vec());
    }
    let shown = given.iter().map(|url| Ok(TargetUrl::parse(url)?.to_string())).collect::<Result<Vec<_>>>()?;
    if shown != recorded {
        return Err(Error::usage("these targets differ from those of the run")
            .hint(format!("give them in the same order: {}", recorded.join(" ")))
            .into());
    }
    Ok(given.to_vec())
}
