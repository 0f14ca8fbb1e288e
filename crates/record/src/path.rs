//! The path of a run; removes runs, and keeps notes beside them.

use crate::store::{Store, lock, temporary_name};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::limits::advice_on_file_size;
use kurabe_os::private;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind as Io, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The name of the run file within its directory.
pub const RUN_FILE: &str = "run.jsonl";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPath {
    /// The run's name: that of its directory.
    pub name: String,
    /// The directory of the run, which also contains its reports.
    pub folder: PathBuf,
    /// The run file.
    pub file: PathBuf,
}

impl RunPath {
    /// The run in a directory, whether or not it exists.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let name = folder
            .file_name()
            .map_or_else(|| folder.display().to_string(), |n| n.to_string_lossy().into_owned());
        let file = folder.join(RUN_FILE);
        Self { name, folder, file }
    }

    /// The run at a path that a user gave: its directory, or a run file of any name.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if nothing exists there, or a directory without a run file.
    pub fn at(path: &Path) -> Result<Self> {
        if path.is_dir() {
            let run = Self::in_folder(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
            if run.file.is_file() {
                return Ok(run);
            }
            let message = format!("the directory {} contains no {RUN_FILE}", path.display());
            return Err(
                Error::new(ErrorKind::NotFound, message).hint("name the directory of a run, or its run file")
            );
        }
        if !path.is_file() {
            if !is_shown(&path.to_string_lossy()) {
                return Err(no_name());
            }
            return Err(Error::new(ErrorKind::NotFound, format!("no run found at {}", path.display())));
        }
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let mut run = Self::in_folder(folder.canonicalize().unwrap_or(folder));
        run.file = path.into();
        Ok(run)
    }
}

/// Whether a text that names no run may be shown: it has no other characters than names and paths. What names a database has some,
/// and may contain a password.
pub fn is_shown(wanted: &str) -> bool {
    wanted.chars().all(|c| c.is_alphanumeric() || "._-/\\~".contains(c))
}

/// The error of a text that is not shown.
pub(crate) fn no_name() -> Error {
    Error::new(ErrorKind::NotFound, "no run has such a name: names have letters, digits, '.', '-' and '_'")
        .hint("name a run, its directory or its run file; 'kurabe runs ls' lists runs")
}

/// Makes an error of the operating system: what cannot be done with this path. A full disk and a missing permission get a
/// hint.
pub(crate) fn cannot<'a>(what: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> Error + Copy + 'a {
    use std::io::ErrorKind as Io;
    move |error| {
        let limited = advice_on_file_size();
        let (kind, hint) = match error.kind() {
            Io::NotFound => (ErrorKind::NotFound, ""),
            Io::PermissionDenied => (ErrorKind::NotPermitted, "check its owner, or store runs elsewhere"),
            Io::StorageFull | Io::QuotaExceeded => {
                (ErrorKind::Environment, "free disk space, or store runs elsewhere")
            }
            Io::FileTooLarge => (ErrorKind::Environment, &*limited),
            _ => (ErrorKind::Environment, ""),
        };
        Error::of_cause(kind, format_args!("cannot {what} {}", path.display()), error).hint(hint)
    }
}

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
