//! Where runs are kept: `--runs-dir`, `$KURABE_RUNS`, or the user's data folder.

use clap::ArgMatches;
use kurabe_core::{Error, Result};
use kurabe_record::Store;
use std::path::PathBuf;

/// The folder of all runs, by the XDG base directory specification unless the user names another.
pub(crate) fn runs(matches: &ArgMatches) -> Result<Store> {
    if let Some(dir) = matches.get_one::<PathBuf>("runs-dir") {
        return Store::open(dir);
    }
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = named("KURABE_RUNS")
        .or_else(|| named("XDG_DATA_HOME").filter(|dir| dir.is_absolute()).map(|dir| dir.join("kurabe/runs")))
        .or_else(|| named("HOME").map(|dir| dir.join(".local/share/kurabe/runs")))
        .ok_or_else(|| {
            Error::usage("there is no place for runs").hint("give --runs-dir or set KURABE_RUNS")
        })?;
    Store::open(dir)
}
