//! The path of a run.

use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::limits::advice_on_file_size;
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
