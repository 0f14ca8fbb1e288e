//! All runs of a store, the newest first.

use crate::format::end_of;
use crate::path::{RunPath, io_error};
use crate::reader::header_of;
use crate::store::Store;
use kurabe_core::run::RunHeader;
use kurabe_core::{Error, Result};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind as Io, Read, Seek, SeekFrom};
use std::time::{SystemTime, UNIX_EPOCH};

/// A run of a store, or what was found in its place.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A run whose first line could be read.
    Run(Box<RunSummary>),
    /// A folder whose run cannot be read: it is damaged, or of another version.
    Unreadable {
        /// Where it is.
        path: RunPath,
        /// Why it cannot be read.
        error: Error,
        /// When its file was changed last: seconds since 1970-01-01 UTC.
        changed: u64,
    },
}

/// What a list shows of a run: its first line, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Where it is.
    pub path: RunPath,
    /// How it began.
    pub header: RunHeader,
    /// How it ended, or that it did not.
    pub state: RunState,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Every planned trial was made.
    Complete,
    /// It was stopped or cut off; `resume` can go on.
    Incomplete,
    /// A process is writing it.
    Running,
}

impl Entry {
    /// Where it is.
    pub fn path(&self) -> &RunPath {
        match self {
            Self::Run(summary) => &summary.path,
            Self::Unreadable { path, .. } => path,
        }
    }

    /// When it began, or when its file was changed last: seconds since 1970-01-01 UTC.
    fn moment(&self) -> u64 {
        match self {
            Self::Run(summary) => summary.header.began,
            Self::Unreadable { changed, .. } => *changed,
        }
    }
}

impl Store {
    /// All runs, the newest first. One that cannot be read is an entry of its own and hides no other. Only first and
    /// last lines are read; [`read`](crate::read) checks all. Empty where the store does not exist yet.
    ///
    /// # Errors
    /// Where the store's folder itself cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == Io::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list the runs in", &self.dir, &error)),
        };
        let mut found: Vec<Entry> = entries
            .flatten()
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.') && entry.path().is_dir())
            .map(|entry| RunPath::in_folder(entry.path()))
            .filter(|path| path.file.exists())
            .map(look_at)
            .collect();
        found.sort_by(|a, b| (b.moment(), &b.path().name).cmp(&(a.moment(), &a.path().name)));
        Ok(found)
    }
}

fn look_at(path: RunPath) -> Entry {
    let looked = File::open(&path.file)
        .map_err(|error| io_error("read", &path.file, &error))
        .and_then(|file| Ok((header_of(&file, &path.file)?, file)));
    match looked {
        Ok((header, file)) => {
            let state = state_of(file);
            Entry::Run(Box::new(RunSummary { path, header, state }))
        }
        Err(error) => {
            let changed = fs::metadata(&path.file)
                .and_then(|file| file.modified())
                .ok()
                .and_then(|at: SystemTime| at.duration_since(UNIX_EPOCH).ok())
                .map_or(0, |since| since.as_secs());
            Entry::Unreadable { path, error, changed }
        }
    }
}

/// How the run in this file ended: by its lock, then by its last line.
fn state_of(mut file: File) -> RunState {
    // Shared, so that two that look at once do not take each other for a writer.
    if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return RunState::Running;
    }
    let mut tail = Vec::new();
    let from = file.metadata().map_or(0, |m| m.len()).saturating_sub(256);
    let read = file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_end(&mut tail));
    let whole = read.is_ok() && tail.pop_if(|last| *last == b'\n').is_some();
    let mut lines = tail.rsplit(|byte| *byte == b'\n');
    let complete = whole
        && matches!((lines.next(), lines.next()), (Some(last), Some(before))
            if end_of(before, last).is_some_and(|end| end.complete));
    if complete { RunState::Complete } else { RunState::Incomplete }
}
