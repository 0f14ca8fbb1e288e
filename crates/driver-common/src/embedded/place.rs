//! Where the file of an embedded database is: a path that was named, or a temporary folder.

use super::temporary::Temporary;
use crate::prelude::*;
use std::fs;
use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};

/// The numbers by which Linux knows file systems that live in memory (`statfs(2)`).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The database file.
pub struct Place {
    scheme: String,
    path: PathBuf,
    temporary: Option<Temporary>,
}

impl Place {
    /// Reads the path of a target; a temporary folder is made where it has none.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) for a host, or where the folder cannot be made.
    pub fn parse(url: &TargetUrl) -> Result<Self> {
        let scheme = url.scheme.clone();
        if let Some(host) = &url.host {
            return Err(Error::usage(format!(
                "{scheme}: has no host, but '{host}' stands where one would be"
            ))
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

    /// Whether it lies in a folder that goes with it.
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

    /// The file whose lock says that a run uses the database. Not the database itself: closing any handle of that
    /// would drop the locks that the engine holds on it.
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

    /// Says what is wrong with the path in better words than "unable to open database file".
    ///
    /// # Errors
    /// Where the path is no file, and no file can be made there.
    pub fn check(&self) -> Result<()> {
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
                    Err(Error::new(ErrorKind::NotFound, message).hint("make it, or name another path"))
                }
            },
            Err(error) if error.kind() == Io::PermissionDenied => {
                Err(Error::new(ErrorKind::NotPermitted, format!("{here}: {error}")))
            }
            Err(error) => Err(Error::new(ErrorKind::Unreachable, format!("{here}: {error}"))),
        }
    }

    /// As the error, with the place and what may be the reason.
    #[must_use]
    pub fn explain_open(&self, error: Error) -> Error {
        let error = error.context(self.shown());
        if error.kind() == ErrorKind::Unreachable {
            error.hint("may this user read and write the file and its folder?")
        } else {
            error
        }
    }

    /// The error of a file that may only be read.
    pub fn read_only(&self) -> Error {
        Error::new(ErrorKind::NotPermitted, format!("{}: the file may only be read", self.shown()))
            .hint("Kurabe makes tables of its own in it: allow writing, or name another path")
    }

    /// Whether the file system keeps everything in memory, so that syncing makes nothing safer.
    pub fn in_memory(&self) -> bool {
        rustix::fs::statfs(self.folder()).is_ok_and(|fs| IN_MEMORY.contains(&(fs.f_type as u64)))
    }

    /// What a reader must know about the place.
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
    fn a_path_that_cannot_be_is_refused_in_words() {
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
    fn the_temporary_folder_goes_with_its_place() {
        let place = place("sqlite:").unwrap();
        let folder = place.folder().to_owned();
        assert!(folder.is_dir());
        drop(place);
        assert!(!folder.exists());
    }
}
