//! `kurabe run`: a new run, a recorded one `--again`, or the rest of one (`--resume`).

use super::execute::{Job, execute};
use super::files::Files;
use super::gate::{self, origin};
use super::{report, resume};
use crate::cli::{PGBENCH, REPLAY};
use crate::exit::{self, Exit, OfRunFile};
use crate::output::Output;
use crate::places::{self, wanted};
use crate::quiet;
use crate::settings::is_given;
use crate::suite::{Companions, Request, Several};
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
    if matches.contains_id("again") {
        return again(matches, output);
    }
    if matches.contains_id("resume") {
        return resumed(matches, output);
    }
    let (request, matches, suite): (_, _, Option<PathBuf>) =
        if let Some((name, matches)) = matches.subcommand() {
            match name {
                PGBENCH => (Request::of_pgbench(matches)?, matches, crate::custom::first_script(matches)),
                REPLAY => (Request::of_replay(matches, output)?, matches, None),
                name => (Request::of_experiment(registry::find(name)?.info, matches)?, matches, None),
            }
        } else {
            let Some(suite) = matches.get_one::<PathBuf>("suite") else {
                return Err(no_experiment(matches).into());
            };
            if let Some(several) = Several::read(suite, matches)? {
                return super::suite::run(suite, &several, matches, output);
            }
            if matches.contains_id("only") {
                return Err(Error::usage("--only is for a suite of several runs")
                    .hint("write several [[run]] into the suite file")
                    .into());
            }
            (Request::of_suite(suite, matches)?, matches, Some(suite.clone()))
        };
    let (mut files, mut spec) = (Files::of(matches)?, request.spec()?);
    let dry = matches.get_flag("dry-run");
    let store = if dry { places::runs(matches)? } else { places::writable_runs(matches)? };
    let origin = origin(suite.as_deref(), matches)?;
    let earlier = gate::earlier(matches, &store, &origin, &spec, output)?;
    match &earlier {
        // Equal data and equal inputs remove one difference between the runs.
        Some(run) if !request.names_seed() => spec.seed = run.header.spec.seed,
        None if gate::previous(matches, &spec) => files.criteria = None,
        None if files.criteria.is_some() && spec.targets.len() != 2 => {
            return Err(Error::usage("--fail-on judges the second of two targets against the first")
                .hint("name two targets, or an earlier run with --against")
                .into());
        }
        _ => {}
    }
    if !dry {
        quiet::wait(matches, output)?;
    }
    let job = Job {
        html: !matches.get_flag("no-html"),
        origin,
        may_be_long: matches.get_flag("yes") || request.names_budget(),
        dry,
        print: files.criteria.is_none() && !files.prints(),
        ..Job::of(&request, spec, store.clone())?
    };
    let (exit, made) = execute(&job, output)?;
    let Some(made) = made.filter(|_| exit != exit::INTERRUPTED) else { return Ok(exit) };
    if files.criteria.is_some() {
        return gate::judge(exit, &made, &store, earlier.as_ref(), &files, output);
    }
    report::export(&made, &files, output)?;
    Ok(exit)
}

/// The error if no experiment and no suite was given. Most likely the name is misspelt.
fn no_experiment(matches: &ArgMatches) -> Error {
    let first = matches.get_one::<String>("target").map_or("", String::as_str);
    match registry::find(first) {
        Err(error) if !first.contains(':') && !first.is_empty() => error,
        _ => Error::usage("no experiment was given").hint("write 'kurabe run session', or -f SUITE.toml"),
    }
}

/// Refuses options that would change the settings of a recorded run.
fn refuse_others(word: &str, more: &[&str], matches: &ArgMatches) -> kurabe_core::Result<()> {
    let everywhere = ["target", "no-html", "log-format", "runs-dir", "color", "quiet", "verbose"];
    let allowed = |id: &str| id == word || everywhere.contains(&id) || more.contains(&id);
    match matches.ids().map(clap::Id::as_str).find(|id| is_given(matches, id) && !allowed(id)) {
        None => Ok(()),
        Some(id) => Err(Error::usage(format!("--{word} cannot be combined with other settings ({id})"))
            .hint("the run is executed with its own settings; for others, start a new run")),
    }
}

/// Repeats a run as a new one, with the same axes, seed, rounds and times.
fn again(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    refuse_others("again", &["trust"], matches)?;
    let store = places::runs(matches)?;
    let path = store.find(&wanted(matches, "again")).map_err(OfRunFile)?;
    let RunHeader { spec, origin, cells, .. } = kurabe_record::read_header(&path).map_err(OfRunFile)?;
    refuse_what_others_chose(matches, &store, &path, &spec, &cells)?;
    spec.setup.as_ref().map_or(Ok(()), Setup::check)?;
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
    let (urls, store) = (urls(matches, &spec.targets)?, places::writable_runs(matches)?);
    let is_fitted = spec.duration_ns.is_some();
    let html = !matches.get_flag("no-html");
    let job = Job { companions, html, origin, is_fitted, ..Job::new(spec, urls, store) };
    Ok(execute(&job, output)?.0)
}

/// Continues an interrupted run.
fn resumed(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    refuse_others("resume", &["max-rounds", "trust"], matches)?;
    let store = places::runs(matches)?;
    let path = store.find(&wanted(matches, "resume")).map_err(OfRunFile)?;
    crate::exposed::warn_of_run(&store, &path, output);
    let resumed = store.resume(&path).map_err(OfRunFile)?;
    if let Some(torn) = &resumed.torn {
        output.warning(torn);
    }
    let RunHeader { spec, cells, .. } = &resumed.run.header;
    refuse_what_others_chose(matches, &store, &path, spec, cells)?;
    let urls = urls(matches, &spec.targets)?;
    let max_rounds = matches.get_one::<String>("max-rounds").filter(|_| is_given(matches, "max-rounds"));
    let max_rounds = max_rounds.map(|text| units::parse_count(text)).transpose()?;
    let max_rounds = max_rounds.map(|rounds| rounds.min(100_000) as u32);
    resume::resume(resumed, &urls, max_rounds, !matches.get_flag("no-html"), output)
}

/// Refuses what the file of a run names that this user did not make here, unless the user names it too.
fn refuse_what_others_chose(
    matches: &ArgMatches,
    store: &Store,
    path: &RunPath,
    spec: &RunSpec,
    cells: &[CellRecord],
) -> Result<()> {
    if store.is_own(path) || matches.get_flag("trust") {
        return Ok(());
    }
    let throwaway = kurabe_testbed::engines().map(|engine| format!("{UP}:{engine}"));
    let known =
        given(matches).into_iter().chain(["sqlite:", "lmdb:", "null:"].map(str::to_owned)).chain(throwaway);
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
fn given(matches: &ArgMatches) -> Vec<String> {
    let given = matches.get_many::<String>("target").filter(|_| is_given(matches, "target"));
    given.into_iter().flatten().cloned().collect()
}

/// The recorded target URLs, or the ones that the user gives again with passwords.
fn urls(matches: &ArgMatches, recorded: &[String]) -> Result<Vec<String>> {
    let given = given(matches);
    if given.is_empty() {
        return Ok(recorded.to_vec());
    }
    let shown = given.iter().map(|url| Ok(TargetUrl::parse(url)?.to_string())).collect::<Result<Vec<_>>>()?;
    if shown != recorded {
        return Err(Error::usage("these targets differ from those of the run")
            .hint(format!("give them in the same order: {}", recorded.join(" ")))
            .into());
    }
    Ok(given)
}
