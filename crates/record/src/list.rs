//! Lists all runs of a store, the newest first. Each run that was made here has a number, one more than the others: clocks are set
//! back and forth, and do not know which run is the last.

use crate::format::end_of;
use crate::path::{RunPath, cannot};
use crate::reader::{header_of, is_locked};
use crate::store::Store;
use kurabe_core::run::{Run, RunHeader, RunSpec};
use kurabe_core::{Error, Result, sort};
use kurabe_os::private;
use std::fs::{self, File};
use std::io::{ErrorKind as Io, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A run of a store, or the reason why it cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A run with a readable first line.
    Run(Box<RunSummary>),
    /// A directory whose run cannot be read: it is damaged, or of another version.
    Unreadable {
        path: RunPath,
        /// Why it cannot be read.
        error: Error,
        /// The modification time of its file: seconds since 1970-01-01 UTC.
        changed: u64,
    },
}

/// The summary of a run in a list: its first line, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    pub path: RunPath,
    pub header: RunHeader,
    pub state: RunState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// All planned trials are recorded.
    Complete,
    /// It was stopped or killed; `resume` can continue it.
    Incomplete,
    /// A process is writing it.
    Running,
}

impl Entry {
    /// The run at this path.
    pub fn of(path: RunPath) -> Self {
        let looked = File::open(&path.file)
            .map_err(cannot("read", &path.file))
            .and_then(|file| Ok((header_of(&file, &path.file)?, file)));
        match looked {
            Ok((header, file)) => {
                let state = state_of(file);
                Self::Run(Box::new(RunSummary { path, header, state }))
            }
            Err(error) => {
                let changed = fs::metadata(&path.file)
                    .and_then(|file| file.modified())
                    .ok()
                    .and_then(|at: SystemTime| at.duration_since(UNIX_EPOCH).ok())
                    .map_or(0, |since| since.as_secs());
                Self::Unreadable { path, error, changed }
            }
        }
    }

    pub fn path(&self) -> &RunPath {
        match self {
            Self::Run(summary) => &summary.path,
            Self::Unreadable { path, .. } => path,
        }
    }

    /// The time when it began, or when its file was last modified: seconds since 1970-01-01 UTC.
    fn timestamp(&self) -> u64 {
        match self {
            Self::Run(summary) => summary.header.began,
            Self::Unreadable { changed, .. } => *changed,
        }
    }
}

impl Store {
    /// All runs, the newest first. An unreadable run is a separate entry and hides no other. Only first and last
    /// lines are read; [`read`](crate::read) checks all lines. The list is empty if the store does not exist yet.
    ///
    /// # Errors
    /// If the store's directory itself cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == Io::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot("list the runs in", &self.dir)(error)),
        };
        let mut found: Vec<Entry> = entries
            .flatten()
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.') && entry.path().is_dir())
            .map(|entry| RunPath::in_folder(entry.path()))
            .filter(|path| path.file.exists())
            .map(Entry::of)
            .collect();
        // Runs may begin in the same second: their folders know which was first, where the file system does.
        let made =
            |entry: &Entry| fs::metadata(&entry.path().folder).and_then(|folder| folder.created()).ok();
        sort::by(&mut found, |a, b| {
            let seconds = b.timestamp().cmp(&a.timestamp());
            seconds.then_with(|| made(b).cmp(&made(a))).then_with(|| b.path().name.cmp(&a.path().name))
        });
        // Runs that were made here are in the order in which they were, whatever the clock said: they change places.
        let numbered = |at: usize| Some((at, number_of(&found[at].path().folder)?));
        let (places, numbers): (Vec<usize>, Vec<u64>) = (0..found.len()).filter_map(numbered).unzip();
        let mut known: Vec<(u64, Entry)> =
            numbers.into_iter().zip(places.iter().map(|at| found[*at].clone())).collect();
        sort::by(&mut known, |(a, _), (b, _)| b.cmp(a));
        for (at, (_, entry)) in places.into_iter().zip(known) {
            found[at] = entry;
        }
        Ok(found)
    }

    /// Complete runs of the same suite under the same conditions before the later of these two, without them: the newest
    /// `most`. There are none if the two differ in their conditions. A damaged run is left out.
    ///
    /// # Errors
    /// If the store's directory itself cannot be read.
    pub fn before(&self, two: [&RunHeader; 2], most: usize) -> Result<Vec<Run>> {
        let [a, b] = two;
        let is_earlier = |run: &RunSummary| {
            let header = &run.header;
            run.state == RunState::Complete
                && header.began < a.began.max(b.began)
                && two.iter().all(|one| one.run != header.run && is_like(one, header))
        };
        let runs = self.list()?.into_iter().filter_map(|entry| match entry {
            Entry::Run(run) => is_earlier(&run).then(|| crate::read(&run.path).ok()).flatten(),
            Entry::Unreadable { .. } => None,
        });
        Ok(runs.map(|recorded| recorded.run).take(most).collect())
    }
}

/// Whether two runs differ in nothing that was requested but their seed, and were made on the same machine.
fn is_like(a: &RunHeader, b: &RunHeader) -> bool {
    (&a.origin.suite, &a.machine.cpu, a.machine.cpus) == (&b.origin.suite, &b.machine.cpu, b.machine.cpus)
        && RunSpec { seed: b.spec.seed, ..a.spec.clone() } == b.spec
}

/// The state of the run in this file: from its lock, then from its last line.
fn state_of(mut file: File) -> RunState {
    if is_locked(&file) {
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

/// The file of a run's folder with its number.
const ORDER_FILE: &str = "order";

/// Numbers a run whose folder is not published yet. Without a number, the times of runs give their order.
pub(crate) fn number(folder: &Path, all: &Path) {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    let last = entries.filter_map(|entry| number_of(&entry.path())).max().unwrap_or(0);
    let _ = private::write_new(folder.join(ORDER_FILE), format!("{}\n", last.saturating_add(1)).as_bytes());
}

/// The number of the run in a folder.
fn number_of(folder: &Path) -> Option<u64> {
    fs::read_to_string(folder.join(ORDER_FILE)).ok()?.trim().parse().ok()
}
