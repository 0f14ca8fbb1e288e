//! Warnings of files with data of the user's that every account of this machine can read: earlier versions made such files.

use crate::output::Output;
use kurabe_os::private;
use kurabe_record::{RunPath, Store};
use std::path::Path;

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
