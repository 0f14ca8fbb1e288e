//! The location of an embedded database's file: a given path, or a temporary folder.

use super::temporary::Temporary;
use crate::prelude::*;
use std::fs;
use std::io::ErrorKind as Io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Linux's type numbers of in-memory file systems, tmpfs and ramfs (`statfs(2)`).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The database file.
pub struct Place {
    scheme: String,
    path: PathBuf,
    temporary: Option<Temporary>,
}

impl Place {
    /// Reads the path of a target; without a path, creates a temporary folder.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) for a host, [`Environment`](ErrorKind::Environment) if the folder cannot be created.
    pub fn parse(url: &TargetUrl) -> Result<Self> {
        let scheme = url.scheme.clone();
        if let Some(host) = &url.host {
            return Err(Error::usage(format!("{scheme}: has no host, but the URL names '{host}'"))
                .hint(format!("write {scheme}:PATH, or {scheme}:/ABSOLUTE/PATH")));
        }
        if url.path.is_empty() {
            let folder = std::env::temp_dir();
            let temporary = Temporary::make(&folder).map_err(|e| {
                let message = format!("{scheme}: no temporary folder in {}: {e}", folder.display());
                Error::new(ErrorKind::Environment, message)
                    .hint(format!("set TMPDIR, or name a file: {scheme}:PATH"))
            })?;
            return Ok(Self { scheme, path: temporary.path().join("kurabe.db"), temporary: Some(temporary) });
        }
        Ok(Self { scheme, path: PathBuf::from(&url.path), temporary: None })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is in a temporary folder.
    pub fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// The path for messages.
    pub fn shown(&self) -> String {
        if self.temporary.is_some() {
            format!("{}:", self.scheme)
        } else {
            format!("{}:{}", self.scheme, self.path.display())
        }
    }

    /// The file that a run locks. It is not the database itself: closing any handle of the database would release the
    /// engine's locks on it.
    pub fn lock_path(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push("-kurabe.lock");
        PathBuf::from(name)
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        }
    }

    /// Checks the path, for a better message than "unable to open database file", and the files beside it.
    ///
    /// # Errors
    /// If the path is not a file and no file can be created there; [`NotPermitted`](ErrorKind::NotPermitted) if another account
    /// put the database's journal or lock beside it, in a folder where everybody may: engines take a journal's pages for the
    /// database's.
    pub fn check(&self) -> Result<()> {
        if let Some(beside) = self.planted() {
            let beside = beside.display();
            let what = format!("{}: {beside} is of another account than the database", self.shown());
            return Err(Error::new(ErrorKind::NotPermitted, what)
                .hint("everybody may write in this folder; move the database to one of your own"));
        }
        let here = self.shown();
        match fs::metadata(&self.path) {
            Ok(found) if found.is_dir() => {
                Err(Error::usage(format!("{here}: is a folder")).hint("name a file in it"))
            }
            Ok(found) if !found.is_file() => Err(Error::usage(format!("{here}: is not a regular file"))),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == Io::NotFound => match fs::metadata(self.folder()) {
                Ok(folder) if folder.is_dir() => Ok(()),
                _ => {
                    let message = format!("{here}: there is no folder {}", self.folder().display());
                    Err(Error::new(ErrorKind::NotFound, message).hint("create it, or name another path"))
                }
            },
            Err(error) if error.kind() == Io::PermissionDenied => {
                Err(Error::new(ErrorKind::NotPermitted, format!("{here}: {error}")))
            }
            Err(error) => Err(Error::new(ErrorKind::Unreachable, format!("{here}: {error}"))),
        }
    }

    /// The first file of an engine's own beside the database that another account than its owner, this one or root put there.
    fn planted(&self) -> Option<PathBuf> {
        const EVERYBODY: u32 = 0o002;
        let owner = |path: &Path| path.symlink_metadata().ok().map(|of| of.uid());
        // Engines have their files beside the one that a link leads to.
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let folder = real.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        if self.is_temporary() || fs::metadata(folder).ok()?.mode() & EVERYBODY == 0 {
            return None;
        }
        let known = [Some(0), Some(rustix::process::geteuid().as_raw()), owner(&real)];
        let beside = ["-journal", "-wal", "-shm", "-lock"].map(|ending| {
            let mut name = real.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        });
        beside.into_iter().find(|path| path.symlink_metadata().is_ok() && !known.contains(&owner(path)))
    }

    /// Creates an empty file that its owner alone can read, whatever the umask allows, if there is none. A link to a file that
    /// is not there leads nowhere. The engine reports other errors.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) for such a link.
    pub fn create(&self) -> Result<()> {
        let made = fs::File::options().write(true).create_new(true).mode(0o600).open(&self.path);
        if made.is_err_and(|error| error.kind() == Io::AlreadyExists) && !self.path.exists() {
            let what = format!("{}: is a link to a file that does not exist", self.shown());
            return Err(Error::usage(what).hint("name the file itself"));
        }
        Ok(())
    }

    /// Adds the location and a possible reason to an error.
    #[must_use]
    pub fn explain_open(&self, error: Error) -> Error {
        let error = error.context(self.shown());
        if error.kind() == ErrorKind::Unreachable {
            error.hint("may this user read and write the file and its folder?")
        } else {
            error
        }
    }

    /// What the operating system does not let this process write: "file", or its "folder", where a database that is
    /// written has more files. `None` if it does, or there is no file yet.
    pub fn read_only_part(&self) -> Option<&'static str> {
        let refused = |path: &Path| {
            use rustix::fs::{Access, access};
            matches!(access(path, Access::WRITE_OK), Err(rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS))
        };
        let exists = self.path.is_file();
        [("file", &*self.path), ("folder", self.folder())]
            .into_iter()
            .find_map(|(part, path)| (exists && refused(path)).then_some(part))
    }

    /// The error of a database that can only be read; `why` is a clause.
    pub fn read_only(&self, why: &str) -> Error {
        Error::new(ErrorKind::NotPermitted, format!("{}: {why}", self.shown()))
            .hint("Kurabe creates its own tables in it: allow writing, or name another path")
    }

    /// Whether the file system is in memory, so that syncing has no effect.
    pub fn in_memory(&self) -> bool {
        rustix::fs::statfs(self.folder()).is_ok_and(|fs| IN_MEMORY.contains(&(fs.f_type as u64)))
    }

    /// A note about a temporary location.
    pub fn note(&self) -> Option<String> {
        self.temporary.as_ref().map(|folder| {
            format!(
                "the database file is temporary, in {}",
                folder.path().parent().unwrap_or(folder.path()).display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Result<Place> {
        Place::parse(&TargetUrl::parse(url).unwrap())
    }

    #[test]
    fn invalid_paths_are_refused() {
        for (url, part) in [("sqlite://host/x", "no host"), ("lmdb://host/x", "lmdb: has no host")] {
            let error = place(url).err().unwrap().to_string();
            assert!(error.contains(part), "{error}");
        }
        for (url, part) in [("sqlite:/", "is a folder"), ("sqlite:/no/such/x.db", "no folder /no/such")] {
            let error = place(url).unwrap().check().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(place("sqlite:some.db").unwrap().check().is_ok());
    }

    #[test]
    fn temporary_folder_is_removed_on_drop() {
        let place = place("sqlite:").unwrap();
        let folder = place.folder().to_owned();
        assert!(folder.is_dir());
        drop(place);
        assert!(!folder.exists());
    }
}
