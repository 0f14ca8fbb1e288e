//! The order in which runs were made here: each has a number, one more than the others. Clocks are set back and forth, and do not know
//! which run is the last.

use kurabe_os::private;
use std::fs;
use std::path::Path;

/// The file of a run's folder with its number.
const FILE: &str = "order";

/// Numbers a run whose folder is not published yet. Without a number, the times of runs give their order.
pub(crate) fn number(folder: &Path, all: &Path) {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    let last = entries.filter_map(|entry| of(&entry.path())).max().unwrap_or(0);
    let _ = private::write_new(folder.join(FILE), format!("{}\n", last.saturating_add(1)).as_bytes());
}

/// The number of the run in a folder.
pub(crate) fn of(folder: &Path) -> Option<u64> {
    fs::read_to_string(folder.join(FILE)).ok()?.trim().parse().ok()
}
