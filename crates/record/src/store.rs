//! The directory of all runs: creates runs in it, and resumes them.

use crate::format::{Chain, header_line};
use crate::list;
use crate::list::Entry;
use crate::path::{RUN_FILE, RunPath, cannot, is_shown, no_name};
use crate::reader::{Recorded, read_file};
use crate::writer::Writer;
use kurabe_core::name::FileName;
use kurabe_core::run::{Run, RunHeader};
use kurabe_core::{Error, ErrorKind, Result, units};
use kurabe_os::private;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind as Io, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The prefix of directories that are not published yet; lists omit them.
const TEMP_PREFIX: &str = ".new-";
/// After this time an unpublished directory belongs to a process that crashed.
const TEMP_LIFETIME: Duration = Duration::from_secs(3_600);

/// The directory of all runs.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) dir: PathBuf,
    /// Makes the names in a directory durable. Tests replace it to see which directories are synced.
    pub(crate) sync: fn(&Path),
}

/// A run to resume: its content, and the writer that appends to it.
#[derive(Debug)]
pub struct Resumed {
    /// What was recorded.
    pub run: Run,
    /// A note that a torn last line was truncated.
    pub torn: Option<String>,
    /// Appends to it.
    pub writer: Writer,
}

impl Store {
    /// Opens the directory of all runs. It is created with its first run, not before.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if the path exists and is not a directory.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self> {
        let dir = dir.into();
        if dir.exists() && !dir.is_dir() {
            let message = format!("cannot store runs in {}: it is not a directory", dir.display());
            return Err(Error::new(ErrorKind::Environment, message)
                .hint("name a directory that exists or can be created"));
        }
        Ok(Self { dir, sync: sync_folder })
    }

    /// Creates the directory and checks that runs can be created in it.
    pub fn try_out(&self) -> Result<()> {
        self.make_dir()?;
        let tried = self.dir.join(temporary_name());
        private::create_dir(&tried)
            .and_then(|()| fs::remove_dir(&tried))
            .map_err(cannot("create runs in", &self.dir))
    }

    /// The directory of all runs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The run with this exact name, which has a run file.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is none.
    pub fn named(&self, name: &FileName) -> Result<RunPath> {
        let path = RunPath::in_folder(self.dir.join(name));
        if path.file.is_file() {
            return Ok(path);
        }
        Err(Error::new(ErrorKind::NotFound, format!("run '{name}' not found in {}", self.dir.display())))
    }

    /// Creates a run. Its directory appears with the complete header in it, locked, or not at all. If a run of this
    /// name exists, a number is appended to the name ([`Writer::name`], and the header's `run` in the file).
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) or [`NotPermitted`](ErrorKind::NotPermitted) if the directory cannot
    /// be created or written, [`Internal`](ErrorKind::Internal) if the name is not a plain file name.
    pub fn create(&self, header: &RunHeader) -> Result<Writer> {
        if !is_plain(&header.run) {
            return Err(Error::new(
                ErrorKind::Internal,
                format!("'{}' is not a valid name for a run", header.run),
            ));
        }
        self.make_dir()?;
        self.remove_stale();
        let temporary = self.dir.join(temporary_name());
        let made = self.publish(&temporary, header);
        if made.is_err() {
            // If this fails too, the next run removes the directory.
            let _ = fs::remove_dir_all(&temporary);
        }
        made
    }

    /// Creates the directory of all runs, if it does not exist, and makes its name durable.
    pub(crate) fn make_dir(&self) -> Result<()> {
        let missing: Vec<&Path> = self.dir.ancestors().take_while(|folder| !folder.exists()).collect();
        private::create_dir_all(&self.dir).map_err(cannot("create the directory", &self.dir))?;
        for made in missing {
            if let Some(parent) = made.parent() {
                (self.sync)(if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
            }
        }
        Ok(())
    }

    /// Writes the header into a temporary directory, and renames the directory.
    fn publish(&self, temporary: &Path, header: &RunHeader) -> Result<Writer> {
        let file_path = temporary.join(RUN_FILE);
        let failed = cannot("write", &file_path);
        private::create_dir(temporary).map_err(cannot("create the directory", temporary))?;
        list::number(temporary, &self.dir);
        let mut file = private::append_new(&file_path).map_err(failed)?;
        lock(&file, &file_path)?;
        let mut header = header.clone();
        let base = header.run.clone();
        for attempt in 1_u32.. {
            if attempt > 1 {
                header.run = format!("{base}-{attempt}");
            }
            let folder = self.dir.join(&header.run);
            if folder.exists() {
                continue;
            }
            let line = header_line(&header)?;
            file.set_len(0)
                .and_then(|()| file.write_all(&line))
                .and_then(|()| file.sync_all())
                .map_err(failed)?;
            (self.sync)(temporary);
            // A directory that another process created meanwhile contains a run, is not empty, and makes the rename
            // fail.
            match fs::rename(temporary, &folder) {
                Ok(()) => {
                    (self.sync)(&self.dir);
                    let mut chain = Chain::default();
                    chain.advance(&line[..line.len() - 1]);
                    return Ok(Writer::new(Box::new(file), RunPath::in_folder(folder), chain, 0));
                }
                Err(error) if matches!(error.kind(), Io::AlreadyExists | Io::DirectoryNotEmpty) => {}
                Err(error) => return Err(cannot("create the directory", &folder)(error)),
            }
        }
        Err(Error::new(ErrorKind::Limit, format!("too many runs are named {base}")))
    }

    /// Opens a run to resume it: locks it, reads it, and truncates a torn last line.
    ///
    /// # Errors
    /// [`InUse`](ErrorKind::InUse) if another process is writing it; else as for [`read`](crate::read).
    pub fn resume(&self, path: &RunPath) -> Result<Resumed> {
        let file = private::reopen(&path.file).map_err(cannot("write", &path.file))?;
        lock(&file, &path.file)?;
        let Recorded { run, torn, chain } = read_file(&file, &path.file)?;
        if torn.is_some() {
            file.set_len(chain.bytes)
                .and_then(|()| file.sync_data())
                .map_err(cannot("truncate the incomplete line of", &path.file))?;
        }
        let writer = Writer::new(Box::new(file), path.clone(), chain, run.trials.len() as u64);
        Ok(Resumed { run, torn, writer })
    }

    /// Removes the temporary directories of processes that crashed before they renamed them.
    fn remove_stale(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        for entry in entries.flatten() {
            let old = |at: SystemTime| at.elapsed().unwrap_or_default() > TEMP_LIFETIME;
            if entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX)
                && entry.metadata().and_then(|entry| entry.modified()).is_ok_and(old)
            {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// A name that is unique in this process and among those that share the directory.
pub(crate) fn temporary_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{TEMP_PREFIX}{}-{nanos}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether a name is one plain, visible component of a path on every file system.
pub(crate) fn is_plain(name: &str) -> bool {
    FileName::parse(name).is_ok()
}

/// Locks a run file for its only writer. A process that lists runs holds each lock briefly, so one failure is retried.
pub(crate) fn lock(file: &File, path: &Path) -> Result<()> {
    let mut tries = 10;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if tries > 0 => std::thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process is writing {}", path.display());
                return Err(Error::new(ErrorKind::InUse, message).hint("wait until it ends, or stop it"));
            }
            Err(TryLockError::Error(error)) => return Err(cannot("lock", path)(error)),
        }
        tries -= 1;
    }
}

/// Makes a new name durable. Some file systems do not support this; then nothing more can be done.
fn sync_folder(dir: &Path) {
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
}

impl Store {
    /// The run that a user names by `last`, a name, an unambiguous prefix of a name, or a path to a run's directory
    /// or file.
    ///
    /// `last` is the newest run with a readable first line. A name takes precedence over a path with the same text.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) with the nearest names, [`Usage`](ErrorKind::Usage) if several runs have
    /// this prefix.
    pub fn find(&self, wanted: &str) -> Result<RunPath> {
        let entries = self.list()?;
        if wanted == "last" {
            return self.last(&entries);
        }
        let named = |entry: &&Entry| entry.path().name == wanted;
        if let Some(entry) = entries.iter().find(named) {
            return Ok(entry.path().clone());
        }
        if wanted.contains(['/', '\\']) || Path::new(wanted).exists() {
            return RunPath::at(Path::new(wanted));
        }
        let starting: Vec<&RunPath> = entries
            .iter()
            .map(Entry::path)
            .filter(|path| !wanted.is_empty() && path.name.starts_with(wanted))
            .collect();
        match starting.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(self.not_found(wanted, &entries)),
            [newest, .., oldest] => {
                let (count, oldest, newest) = (starting.len(), &oldest.name, &newest.name);
                let message =
                    format!("'{wanted}' is ambiguous: {count} runs begin with it, from {oldest} to {newest}");
                Err(Error::usage(message).hint("give more of the name"))
            }
        }
    }

    fn last(&self, entries: &[Entry]) -> Result<RunPath> {
        let readable = entries.iter().find(|entry| matches!(entry, Entry::Run(_)));
        readable.map(|entry| entry.path().clone()).ok_or_else(|| match entries.first() {
            Some(Entry::Unreadable { error, .. }) => error.clone(),
            _ => self.empty(),
        })
    }

    fn not_found(&self, wanted: &str, entries: &[Entry]) -> Error {
        let names: Vec<&str> = entries.iter().map(|entry| entry.path().name.as_str()).collect();
        let Some(newest) = names.first() else { return self.empty() };
        if !is_shown(wanted) {
            return no_name();
        }
        let error =
            Error::new(ErrorKind::NotFound, format!("run '{wanted}' not found in {}", self.dir.display()));
        match units::nearest(wanted, &names) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint(format!("the newest is '{newest}'")),
        }
    }

    fn empty(&self) -> Error {
        let message = format!("{} contains no runs yet", self.dir.display());
        Error::new(ErrorKind::NotFound, message).hint("make one with `kurabe run`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static SYNCED: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
    }

    #[test]
    fn run_folder_and_every_folder_made_for_it_are_durable() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("data/runs");
        let store =
            Store { dir: dir.clone(), sync: |dir| SYNCED.with_borrow_mut(|all| all.push(dir.into())) };
        let header = serde_json::from_value(serde_json::json!({
            "run": "a", "began": 1, "kurabe": "0.1.0", "command": [], "cells": [], "targets": [], "overhead": [],
            "machine": { "cpu": "", "cpus": 1, "memory_bytes": 1, "system": "" },
            "spec": kurabe_core::run::RunSpec::new("kv", ["null:"]),
        }))
        .unwrap();
        store.create(&header).unwrap();
        let synced = SYNCED.take();
        let temporary = |path: &PathBuf| {
            path.parent() == Some(&dir)
                && path.file_name().unwrap().to_string_lossy().starts_with(TEMP_PREFIX)
        };
        assert_eq!(synced[..2], [root.path().join("data"), root.path().to_owned()]);
        assert!(temporary(&synced[2]) && synced[3] == dir && synced.len() == 4, "{synced:?}");
        store.create(&header).unwrap();
        assert_eq!(SYNCED.take().len(), 2, "the directory of all runs existed");
    }
}
