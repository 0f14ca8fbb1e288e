//! A temporary folder for one run, which is always removed. If the run is killed, a process that waits for its end
//! removes the folder; if that is killed too, the next run does.

use std::fs::{self, DirBuilder, File};
use std::io::Result;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Prefix of the folders' names.
const PREFIX: &str = "kurabe-data-";

/// A file in the folder that its process keeps locked, and its name before it is locked.
const IN_USE: &str = "in-use";
const EARLY: &str = "early";

/// Age at which a folder without that file is assumed to be from a run that was killed while creating it.
const UNMARKED_LIFE: Duration = Duration::from_secs(60);

/// Shell command that waits for the end of its input, which ends with the run, and removes the folder.
const REMOVE: &str = "read -r _; exec rm -rf -- \"$1\"";

/// A folder for this process alone, which goes with this value, or with the process.
#[derive(Debug)]
pub struct Temporary {
    folder: PathBuf,
    _lock: File,
    _remover: Option<Remover>,
}

impl Temporary {
    /// Creates a folder in `base`, and removes those of killed runs.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn make(base: &Path) -> Result<Self> {
        sweep(base);
        let base = base.canonicalize()?;
        let mut remover = None;
        // The process that removes it is there first: the run may be killed at any moment.
        let made = tempfile::Builder::new().prefix(PREFIX).rand_bytes(12).make_in(base, |path| {
            remover = Remover::start(path);
            DirBuilder::new().mode(0o700).create(path).inspect_err(|_| {
                // It is another's.
                if let Some(started) = remover.take() {
                    started.dismiss();
                }
            })
        })?;
        let folder = made.into_temp_path().keep()?;
        // Locked before it gets its name, so that no other run finds it unlocked.
        let early = folder.join(EARLY);
        let lock = File::create_new(&early)?;
        lock.try_lock()?;
        fs::rename(&early, folder.join(IN_USE))?;
        Ok(Self { folder, _lock: lock, _remover: remover })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What fails here, the process removes.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The process that removes the folder of a killed run.
#[derive(Debug)]
struct Remover(Child);

impl Remover {
    /// Starts the process; `None` without a shell, in which case the next run removes the folder.
    fn start(folder: &Path) -> Option<Self> {
        Command::new("/bin/sh")
            .args(["-c", REMOVE, "kurabe-remover"])
            .arg(folder)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            // Its own process group, so that Ctrl-C does not reach it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()
            .map(Self)
    }

    /// Ends the process, which then removes nothing.
    fn dismiss(mut self) {
        let _ = self.0.kill();
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Removes the folders of killed runs in `base`. Best effort: folders that cannot be removed, and those of other users,
/// stay.
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
            // Fails if the folder is not empty.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_run_removes_folders_of_killed_runs() {
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
        // It detects the end of the run by the end of its input.
        drop(remover);
        assert!(!folder.exists());
    }
}
