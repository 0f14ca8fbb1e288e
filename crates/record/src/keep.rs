//! Removes runs, and keeps notes beside them.

use crate::path::{RunPath, cannot};
use crate::store::{Store, lock, temporary_name};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::private;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind as Io, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The name of the file with a run's note, beside its run file.
pub const NOTE_FILE: &str = "note.txt";

/// The name of an empty file beside the run file of a run that was imported, and not made here.
pub(crate) const IMPORTED_FILE: &str = "imported";

/// The longest note that is read, in bytes.
const LONGEST_NOTE: u64 = 64 << 10;

impl Store {
    /// Whether this user made a run here: it is in this store, was not imported, and its file is the user's own. What
    /// another run names was chosen by somebody else.
    pub fn is_own(&self, path: &RunPath) -> bool {
        let is_own = |file: &Path| {
            let owner = fs::symlink_metadata(file).map(|about| about.uid());
            owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
        };
        self.is_here(path) && is_own(&path.file) && !path.folder.join(IMPORTED_FILE).exists()
    }

    /// Whether a run is in this store.
    fn is_here(&self, path: &RunPath) -> bool {
        match (self.dir.join(&path.name).canonicalize(), path.folder.canonicalize()) {
            (Ok(here), Ok(named)) => here == named && path.file.parent() == Some(path.folder.as_path()),
            _ => false,
        }
    }

    /// Removes a run of this store with everything in its directory.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) if the run is not in this store, [`InUse`](ErrorKind::InUse) if a process is writing
    /// it; else as for [`create`](Self::create).
    pub fn remove(&self, path: &RunPath) -> Result<()> {
        let folder = self.dir.join(&path.name);
        if !self.is_here(path) {
            let (file, dir) = (path.file.display(), self.dir.display());
            return Err(Error::usage(format!("{file} is not a run in {dir}"))
                .hint("only runs of the folder of runs are removed; name its folder with --runs-dir"));
        }
        // A damaged run may lack a file that can be opened for writing.
        if let Ok(file) = OpenOptions::new().append(true).open(&path.file) {
            lock(&file, &path.file)?;
        }
        // A half-removed run must not appear in lists.
        let gone = self.dir.join(temporary_name());
        fs::rename(&folder, &gone).map_err(cannot("remove", &folder))?;
        fs::remove_dir_all(&gone).map_err(cannot("remove", &gone))?;
        (self.sync)(&self.dir);
        Ok(())
    }
}

impl RunPath {
    /// The run's note; `None` if it has none.
    ///
    /// # Errors
    /// If the note cannot be read, or is longer than 64 KiB.
    pub fn note(&self) -> Result<Option<String>> {
        let file = self.folder.join(NOTE_FILE);
        match fs::metadata(&file) {
            Ok(found) if found.len() > LONGEST_NOTE => {
                let message = format!("the note {} is longer than {LONGEST_NOTE} bytes", file.display());
                return Err(Error::new(ErrorKind::Limit, message).hint("shorten it"));
            }
            _ => {}
        }
        match fs::read(&file) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).trim().to_owned();
                Ok(Some(text).filter(|text| !text.is_empty()))
            }
            Err(error) if error.kind() == Io::NotFound => Ok(None),
            Err(error) => Err(cannot("read", &file)(error)),
        }
    }

    /// Replaces the run's note; an empty text removes it. The run file does not change.
    ///
    /// # Errors
    /// If it cannot be written, or is longer than 64 KiB.
    pub fn set_note(&self, text: &str) -> Result<()> {
        let file = self.folder.join(NOTE_FILE);
        let text = text.trim();
        if text.len() as u64 > LONGEST_NOTE {
            return Err(Error::usage(format!("the note is longer than {LONGEST_NOTE} bytes")));
        }
        if text.is_empty() {
            return match fs::remove_file(&file) {
                Err(error) if error.kind() != Io::NotFound => Err(cannot("remove", &file)(error)),
                _ => Ok(()),
            };
        }
        let new = self.folder.join(temporary_name());
        let written = private::create_new(&new)
            .and_then(|mut new| new.write_all(format!("{text}\n").as_bytes()).and_then(|()| new.sync_all()))
            .and_then(|()| fs::rename(&new, &file));
        written.map_err(|error| {
            let _ = fs::remove_file(&new);
            cannot("write", &file)(error)
        })
    }
}
