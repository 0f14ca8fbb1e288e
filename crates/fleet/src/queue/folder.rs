//! The folder of a worker, below that of temporary files, with a folder for each of its runs.
//!
//! A folder of runs gets a name that this program makes. No name from a message becomes a part of its path. A worker that is
//! killed leaves its folder, which the next one removes. It knows such a folder by the marker in it: a file that the worker
//! holds locked while it lives. A number of its process would say less: a container that is started again has the same.

use kurabe_core::{Error, ErrorKind, Result};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use tempfile::TempDir;

/// The beginning of a worker's folder's name.
const PREFIX: &str = "kurabe-queue-";
/// The file that marks it, and the name that it has until it is locked.
const MARKER: &str = "worker";
const UNLOCKED: &str = ".worker";

/// The folder of a worker. It is removed when this is dropped.
#[derive(Debug)]
pub struct WorkFolder {
    folder: TempDir,
    /// Locked as long as this worker lives.
    _marker: File,
}

impl WorkFolder {
    /// Makes one in this folder of temporary files, and removes those that killed workers of this user left there.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if it cannot be made.
    pub fn make(base: &Path) -> Result<Self> {
        sweep(base);
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base).and_then(|folder| {
            let marker = mark(folder.path())?;
            Ok(Self { folder, _marker: marker })
        });
        made.map_err(|error| {
            Error::new(ErrorKind::Environment, format!("no folder for runs can be made: {error}"))
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the folder of a run.
    pub(super) fn of_run(&self) -> io::Result<TempDir> {
        tempfile::Builder::new().prefix("run-").tempdir_in(&self.folder)
    }
}

/// Writes the marker, which is locked when it appears.
fn mark(folder: &Path) -> io::Result<File> {
    let file = File::create_new(folder.join(UNLOCKED))?;
    file.lock()?;
    fs::rename(folder.join(UNLOCKED), folder.join(MARKER))?;
    Ok(file)
}

/// Removes the folders of killed workers. What cannot be removed stays.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_left(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether this is the folder of a worker of this user that has ended.
fn is_left(folder: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    if !folder.symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == user) {
        return false;
    }
    // A link is not followed.
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let Ok(marker) = OpenOptions::new().read(true).custom_flags(flags).open(folder.join(MARKER)) else {
        return false;
    };
    marker.metadata().is_ok_and(|meta| meta.is_file() && meta.uid() == user)
        && marker.try_lock_shared().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder as a killed worker leaves it.
    fn left(base: &Path, name: &str) -> std::path::PathBuf {
        let folder = base.join(name);
        fs::create_dir_all(folder.join("run-x/runs")).unwrap();
        fs::write(folder.join(MARKER), "").unwrap();
        folder
    }

    #[test]
    fn only_folders_of_killed_workers_are_swept() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        let living = WorkFolder::make(base).unwrap();
        let _run = living.of_run().unwrap();
        // Also one of a process that had the number of this one, as in a container that was started again.
        let killed = left(base, "kurabe-queue-killed");
        fs::write(killed.join(MARKER), std::process::id().to_string()).unwrap();
        let kept = [left(base, "other-queue-killed"), living.path().to_owned()];
        let elsewhere = left(base, "elsewhere");
        std::os::unix::fs::symlink(&elsewhere, base.join("kurabe-queue-link")).unwrap();
        let unmarked = base.join("kurabe-queue-unmarked");
        fs::create_dir(&unmarked).unwrap();
        std::os::unix::fs::symlink(elsewhere.join(MARKER), unmarked.join(MARKER)).unwrap();
        let locked = left(base, "kurabe-queue-locked");
        let lock = File::open(locked.join(MARKER)).unwrap();
        lock.lock().unwrap();
        let next = WorkFolder::make(base).unwrap();
        assert!(!killed.exists());
        for folder in kept.iter().chain([&elsewhere, &unmarked, &locked]) {
            assert!(folder.is_dir(), "{}", folder.display());
        }
        let own = next.path().to_owned();
        drop(next);
        assert!(!own.exists());
    }
}
