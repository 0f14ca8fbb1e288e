//! The folder of runs: `--runs-dir`, `$KURABE_RUNS`, or the user's data folder.

use crate::exit::OfRunFile;
use clap::ArgMatches;
use kurabe_core::{Error, Result};
use kurabe_record::Store;
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
