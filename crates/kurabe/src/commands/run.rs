//! `kurabe run`, `rerun` and `resume`.

use super::execute::{Goal, Job, execute, go_on};
use super::gate::origin;
use super::{push, wanted};
use crate::cli::PGBENCH;
use crate::exit::{Exit, OfRunFile};
use crate::output::Output;
use crate::suite::{Request, Several};
use crate::{places, quiet};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::origin::Origin;
use kurabe_core::run::RunHeader;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, units};
use kurabe_engine::budget::Free;
use kurabe_experiments::registry;
use std::path::PathBuf;

/// Starts a new run, from options or a suite file.
pub(super) fn run(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let (request, matches, suite) = if let Some((name, matches)) = matches.subcommand() {
        let request = match name {
            PGBENCH => Request::of_pgbench(matches)?,
            name => Request::of_experiment(registry::find(name)?.info(), matches)?,
        };
        (request, matches, None)
    } else {
        let Some(suite) = matches.get_one::<PathBuf>("suite") else {
            return Err(no_experiment(matches).into());
        };
        if let Some(several) = Several::read(suite, matches)? {
            return super::suite::run(suite, &several, matches, output);
        }
        super::suite::refuse_options(matches)?;
        (Request::of_suite(suite, matches)?, matches, Some(suite.as_path()))
    };
    let spec = request.spec()?;
    let dry = matches.get_flag("dry-run");
    if !dry {
        quiet::wait(matches, output)?;
    }
    let job = Job {
        spec,
        free: request.free()?,
        urls: request.target_urls(),
        cache: request.cache.clone(),
        remote: request.remote.clone(),
        fleet: request.fleet.clone(),
        store: if dry { places::runs(matches)? } else { places::writable_runs(matches)? },
        html: !matches.get_flag("no-html"),
        otlp: push::collector(matches)?,
        origin: origin(suite, matches)?,
        dry,
        goal: Goal::default(),
        in_suite: None,
    };
    Ok(execute(&job, output)?.0)
}

/// The error if no experiment and no suite was given. Most likely the name is misspelt.
fn no_experiment(matches: &ArgMatches) -> Error {
    let first = matches.get_one::<String>("target").map_or("", String::as_str);
    match registry::find(first) {
        Err(error) if !first.contains(':') && !first.is_empty() => error,
        _ => Error::usage("no experiment was given").hint("write 'kurabe run session', or -f SUITE.toml"),
    }
}

/// Repeats a run as a new one, with the same axes, seed, rounds and times.
pub(super) fn rerun(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let path = places::runs(matches)?.find(&wanted(matches, "run")).map_err(OfRunFile)?;
    let RunHeader { spec, origin, .. } = kurabe_record::read_header(&path).map_err(OfRunFile)?;
    // A label says something of one run, not of its repetition.
    let origin = Origin { labels: Vec::new(), git: None, ..origin };
    // The first line has the spec. Damage in later lines is reported and does not matter here.
    match kurabe_record::read(&path) {
        Ok(recorded) => recorded.torn.iter().for_each(|torn| output.warning(torn)),
        Err(error) => {
            output.warning(&format!("{error}; the first line is intact, and a rerun needs only that"));
        }
    }
    let job = Job {
        urls: urls(matches, &spec.targets)?,
        cache: spec.cache.clone(),
        remote: spec.remote.clone(),
        fleet: spec.fleet.as_ref().map(|fleet| fleet.url.clone()),
        spec,
        free: Free::default(),
        store: places::writable_runs(matches)?,
        html: !matches.get_flag("no-html"),
        otlp: push::collector(matches)?,
        origin,
        dry: false,
        goal: Goal::default(),
        in_suite: None,
    };
    Ok(execute(&job, output)?.0)
}

/// Continues an interrupted run.
pub(super) fn resume(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let store = places::runs(matches)?;
    let path = store.find(&wanted(matches, "run")).map_err(OfRunFile)?;
    let resumed = store.resume(&path).map_err(OfRunFile)?;
    if let Some(torn) = &resumed.torn {
        output.warning(torn);
    }
    let urls = urls(matches, &resumed.run.header.spec.targets)?;
    let max_rounds =
        matches.get_one::<String>("max-rounds").map(|text| units::parse_count(text)).transpose()?;
    let max_rounds = max_rounds.map(|rounds| rounds.min(100_000) as u32);
    let otlp = push::collector(matches)?;
    go_on(resumed, &urls, max_rounds, !matches.get_flag("no-html"), otlp.as_ref(), output)
}

/// The recorded target URLs, or the ones that the user gives again with passwords.
fn urls(matches: &ArgMatches, recorded: &[String]) -> Result<Vec<String>> {
    let given: Vec<String> = matches.get_many::<String>("target").into_iter().flatten().cloned().collect();
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
