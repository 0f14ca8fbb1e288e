//! The folder of runs: `--runs-dir`, `$KURABE_RUNS`, or the user's data folder; the run in it that a command names; and
//! warnings of files with data of the user's that every account of this machine can read: earlier versions made such files.

use crate::exit::OfRunFile;
use crate::output::Output;
use kurabe_core::run::Run;
use kurabe_core::{Error, Result};
use kurabe_os::private;
use kurabe_record::{RunPath, Store};
use std::path::{Path, PathBuf};

/// The store of runs. The default folder follows the XDG base directory specification.
pub(crate) fn runs(runs_dir: Option<&Path>) -> anyhow::Result<Store> {
    let folder = runs_dir.map(Path::to_owned).map_or_else(default_folder, Ok)?;
    Ok(Store::open(folder).map_err(OfRunFile)?)
}

/// The store for a new run: fails early if the folder is not writable.
pub(crate) fn writable_runs(runs_dir: Option<&Path>) -> anyhow::Result<Store> {
    writable(runs(runs_dir)?)
}

/// The store, if its folder is writable.
pub(crate) fn writable(store: Store) -> anyhow::Result<Store> {
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

/// Reads the run that a command names from the store.
pub(crate) fn named_run(
    store: &Store,
    word: Option<&str>,
    output: &Output,
) -> anyhow::Result<(RunPath, Run)> {
    let path = store.find(word.unwrap_or("last")).map_err(OfRunFile)?;
    warn_of_run(store, &path, output);
    let recorded = kurabe_record::read(&path).map_err(OfRunFile)?;
    if let Some(torn) = &recorded.torn {
        output.warning(torn);
    }
    Ok((path, recorded.run))
}

/// Warns of a file.
pub(crate) fn warn_of_file(file: &Path, output: &Output) {
    if private::is_open_to_all(file) {
        let file = file.display();
        output.warning(&format!("every account of this machine can read {file}: chmod go= {file}"));
    }
}

/// Warns of a run in the folder of runs. A run file that is elsewhere was put there to be read.
pub(crate) fn warn_of_run(store: &Store, path: &RunPath, output: &Output) {
    if path.folder.starts_with(store.dir()) && private::is_open_to_all(&path.file) {
        let (name, folder) = (&path.name, path.folder.display());
        output.warning(&format!(
            "every account of this machine can read the run {name}: chmod -R go= {folder}"
        ));
    }
}
