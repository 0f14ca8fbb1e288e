//! A folder for one run. It goes with the run, however that ends: where the run is killed, a process that waits for its end
//! removes it; where that is killed too, the next run does.

use std::fs::{self, File};
use std::io::Result;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The start of the folders' names.
const PREFIX: &str = "kurabe-data-";

/// A file in the folder, locked for as long as its process lives; and before it has its name.
const IN_USE: &str = "in-use";
const EARLY: &str = "early";

/// After so long a folder without that file belongs to a run that was killed while it made it.
const UNMARKED_LIFE: Duration = Duration::from_secs(60);

/// Waits until its input ends, which it does with the run, and removes the folder.
const REMOVE: &str = "read -r _; exec rm -rf -- \"$1\"";

/// A temporary folder.
pub(super) struct Temporary {
    folder: TempDir,
    _lock: File,
    _remover: Option<Remover>,
}

impl Temporary {
    /// Makes a folder in `base`, and removes those of runs that were killed.
    pub(super) fn make(base: &Path) -> Result<Self> {
        sweep(base);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
        // Locked before it has the name by which another run could find it unlocked.
        let early = folder.path().join(EARLY);
        let lock = File::create_new(&early)?;
        lock.try_lock()?;
        fs::rename(&early, folder.path().join(IN_USE))?;
        let remover = Remover::start(folder.path());
        Ok(Self { folder, _lock: lock, _remover: remover })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The process that removes the folder of a run that was killed.
struct Remover(Child);

impl Remover {
    /// None where there is no shell: the next run removes the folder then.
    fn start(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        Command::new("/bin/sh")
            .args(["-c", REMOVE, "kurabe-remover"])
            .arg(folder)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            // Ctrl-C at the terminal is not for it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()
            .map(Self)
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Removes the folders in `base` of runs that were killed. Best effort: what cannot be read or removed, or is another user's, stays.
pub fn sweep(base: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let folder = entry.path();
        let Ok(meta) = folder.symlink_metadata() else { continue };
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) || !meta.is_dir() || meta.uid() != user {
            continue;
        }
        if let Ok(lock) = File::options().read(true).write(true).open(folder.join(IN_USE)) {
            if lock.try_lock().is_ok() {
                let _ = fs::remove_dir_all(folder);
            }
        } else if meta.modified().is_ok_and(|then| then.elapsed().is_ok_and(|age| age >= UNMARKED_LIFE)) {
            if fs::metadata(folder.join(EARLY)).is_ok_and(|early| early.len() == 0) {
                let _ = fs::remove_file(folder.join(EARLY));
            }
            // Only where nothing is left in it.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_run_that_was_killed_goes_with_the_next_one() {
        let base = tempfile::tempdir().unwrap();
        let alive = Temporary::make(base.path()).unwrap();
        let make = |name: &str, file: &str, old: bool| {
            let folder = base.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&folder).unwrap();
            if !file.is_empty() {
                fs::write(folder.join(file), "").unwrap();
            }
            if old {
                let then = std::time::SystemTime::now() - 2 * UNMARKED_LIFE;
                File::open(&folder).unwrap().set_modified(then).unwrap();
            }
            folder
        };
        let gone = [make("dead", IN_USE, false), make("empty", "", true), make("begun", EARLY, true)];
        let kept = [make("new", "", false), make("strange", "data", true)];
        let path = {
            let next = Temporary::make(base.path()).unwrap();
            assert!(gone.iter().all(|folder| !folder.exists()));
            assert!(alive.path().exists() && kept.iter().all(|folder| folder.exists()));
            next.path().to_owned()
        };
        assert!(!path.exists() && alive.path().exists());
    }

    #[test]
    fn folder_is_removed_when_its_process_is_gone() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("a b");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("data"), "x").unwrap();
        let remover = Remover::start(&folder).unwrap();
        assert!(folder.exists());
        // The end of its input is all that it sees of its process's end.
        drop(remover);
        assert!(!folder.exists());
    }
}
