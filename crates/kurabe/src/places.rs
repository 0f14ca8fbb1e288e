//! The folder of runs: `--runs-dir`, `$KURABE_RUNS`, or the user's data folder; and the run in it that a command names.

use crate::exit::OfRunFile;
use crate::exposed;
use crate::output::Output;
use clap::ArgMatches;
use kurabe_core::run::Run;
use kurabe_core::{Error, Result};
use kurabe_record::{RunPath, Store};
use std::path::PathBuf;

/// The store of runs. The default folder follows the XDG base directory specification.
pub(crate) fn runs(matches: &ArgMatches) -> anyhow::Result<Store> {
    let folder = matches.get_one::<PathBuf>("runs-dir").cloned().map_or_else(default_folder, Ok)?;
    Ok(Store::open(folder).map_err(OfRunFile)?)
}

/// The same for a new run: fails early if the folder is not writable.
pub(crate) fn writable_runs(matches: &ArgMatches) -> anyhow::Result<Store> {
    let store = runs(matches)?;
    store.try_out().map_err(OfRunFile)?;
    Ok(store)
}

/// The folder of runs without `--runs-dir`.
pub(crate) fn default_folder() -> Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("KURABE_RUNS")
        .or_else(|| named("XDG_DATA_HOME").filter(|dir| dir.is_absolute()).map(|dir| dir.join("kurabe/runs")))
        .or_else(|| named("HOME").map(|dir| dir.join(".local/share/kurabe/runs")))
        .ok_or_else(|| Error::usage("there is no folder for runs").hint("give --runs-dir or set KURABE_RUNS"))
}

/// The run that the user named. A URL here is a mistake; the error must not repeat its password.
pub(crate) fn wanted(matches: &ArgMatches, name: &str) -> String {
    let word = matches.get_one::<String>(name).map_or("last", String::as_str);
    kurabe_targets::without_passwords(std::iter::once(word.to_owned())).concat()
}

/// Reads the run that a command names from the store.
pub(crate) fn named_run(matches: &ArgMatches, name: &str, output: &Output) -> anyhow::Result<(RunPath, Run)> {
    let store = runs(matches)?;
    let path = store.find(&wanted(matches, name)).map_err(OfRunFile)?;
    exposed::warn_of_run(&store, &path, output);
    let recorded = kurabe_record::read(&path).map_err(OfRunFile)?;
    if let Some(torn) = &recorded.torn {
        output.warning(torn);
    }
    Ok((path, recorded.run))
}
