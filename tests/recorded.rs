//! A run that is recorded once, for all tests that only read one.

use crate::support::{Answer, Place};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A very short run: four cells and the A/A control, two operations, three rounds.
pub(crate) const SHORT: [&str; 15] = [
    "run", "session", "null:", "--payload", "1k,4k", "--layout", "blob", "--compress", "none,lz4",
    "--requests", "100", "--rounds", "3", "--operation", "write,read",
];

/// What a run left.
struct Recorded {
    answer: Answer,
    /// Its folder's name.
    run: String,
    /// Its files, by their names.
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn record() -> Recorded {
    let place = Place::new();
    let answer = place.run(&SHORT);
    let folder =
        std::fs::read_dir(place.path()).unwrap().flatten().next().expect("nothing was recorded").path();
    let files = std::fs::read_dir(&folder).unwrap().flatten();
    let files = files.map(|file| (file.file_name().into(), std::fs::read(file.path()).unwrap())).collect();
    Recorded { answer, run: folder.file_name().unwrap().to_str().unwrap().to_owned(), files }
}

/// A place with a copy of the run of [`SHORT`], and what the program answered to it.
pub(crate) fn short() -> (Place, &'static Answer) {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    let recorded = RECORDED.get_or_init(record);
    let place = Place::new();
    let folder = place.path().join(&recorded.run);
    std::fs::create_dir(&folder).unwrap();
    for (name, bytes) in &recorded.files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    (place, &recorded.answer)
}
