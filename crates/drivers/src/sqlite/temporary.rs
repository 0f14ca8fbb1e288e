//! A folder for one run, which goes with it; and with the next one, where the run was killed.

use std::fs::{self, File};
use std::io::Result;
use std::path::Path;
use tempfile::TempDir;

/// The start of the folders' names.
const PREFIX: &str = "kurabe-sqlite-";

/// A file in the folder, locked for as long as its process lives.
const IN_USE: &str = "in-use";

/// A temporary folder.
pub(super) struct Temporary {
    folder: TempDir,
    _lock: File,
}

impl Temporary {
    /// Makes a folder in `base`, and removes those of runs that were killed.
    pub(super) fn make(base: &Path) -> Result<Self> {
        sweep(base);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
        // Locked before it has the name by which another run could find it unlocked.
        let early = folder.path().join("early");
        let lock = File::create_new(&early)?;
        lock.try_lock()?;
        fs::rename(&early, folder.path().join(IN_USE))?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Best effort: what cannot be read or removed, another user's for example, stays.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && let Ok(lock) = File::options().read(true).write(true).open(entry.path().join(IN_USE))
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
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
        let dead = base.path().join("kurabe-sqlite-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(IN_USE), "").unwrap();
        let strange = base.path().join("kurabe-sqlite-strange");
        fs::create_dir(&strange).unwrap();
        let path = {
            let next = Temporary::make(base.path()).unwrap();
            assert!(!dead.exists() && alive.path().exists() && strange.exists());
            next.path().to_owned()
        };
        assert!(!path.exists() && alive.path().exists());
    }
}
