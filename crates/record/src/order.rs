//! The order in which runs were made here: a file with their names, to which each new one is added. Clocks are set back and forth, and
//! do not know which run is the last.

use kurabe_os::private;
use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// The name of the file in the directory of all runs, hidden as all that is no run.
const FILE: &str = ".order";

/// Adds a run. Without the file, the times of runs give their order.
pub(crate) fn note(dir: &Path, name: &str) {
    let _ =
        private::append(dir.join(FILE)).and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
}

/// The places of runs in the order, by their names.
pub(crate) fn places(dir: &Path) -> HashMap<String, usize> {
    let text = fs::read_to_string(dir.join(FILE)).unwrap_or_default();
    text.lines().enumerate().map(|(at, name)| (name.to_owned(), at)).collect()
}
