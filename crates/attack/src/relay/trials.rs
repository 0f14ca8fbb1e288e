//! The current trial of a run, from the number of recorded trials: each is recorded before the next one begins.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Counts the trials in the only run file of a folder while it grows.
#[derive(Debug)]
pub struct TrialCount {
    runs: PathBuf,
    file: Option<File>,
    lines: usize,
}

impl TrialCount {
    /// For the run that will be recorded in this folder.
    pub fn new(runs: &Path) -> Self {
        Self { runs: runs.to_owned(), file: None, lines: 0 }
    }

    /// The number of trials recorded so far.
    pub fn now(&mut self) -> usize {
        if self.file.is_none() {
            let mut entries = std::fs::read_dir(&self.runs).into_iter().flatten().flatten();
            self.file = entries.find_map(|entry| File::open(entry.path().join("run.jsonl")).ok());
        }
        let mut new = Vec::new();
        if let Some(file) = &mut self.file {
            let _ = file.read_to_end(&mut new);
        }
        self.lines += new.split(|byte| *byte == b'\n').count() - 1;
        // The first line is the header.
        self.lines.saturating_sub(1)
    }
}
