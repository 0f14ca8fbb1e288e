//! Files below a folder, by descriptors of folders: no link is followed, since a folder that belongs to a server's OS user
//! may contain links of its making, and this process may be root.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid};

use crate::os_user::OsUser;

/// An open folder.
pub(crate) struct OpenFolder(OwnedFd);

impl OpenFolder {
    /// Opens a folder; fails if its last name is that of a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens a folder in this one.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Creates a folder in this one that only its owner can enter.
    pub fn create_folder(&self, name: &OsStr, owner: Option<&OsUser>) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.0, name, Mode::RWXU)?;
        let made = self.folder(name)?;
        give(&made.0, owner)?;
        Ok(made)
    }

    /// Creates a file that only its owner can read.
    pub fn create(&self, name: &OsStr, owner: Option<&OsUser>) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?;
        give(&file, owner)?;
        Ok(file.into())
    }

    /// Opens a plain file at whose end is written, and creates it for this process's user if there is none.
    pub fn append(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.plain(name, flags | OFlags::NONBLOCK)
    }

    /// Opens a plain file for reading.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        self.plain(name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK)
    }

    /// A pipe or a device is refused; it could block its reader.
    fn plain(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Renames an entry.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Removes a file or a link.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes a folder with its content.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        let folder = self.folder(name)?;
        for (name, kind) in folder.entries()? {
            folder.remove(&name, kind)?;
        }
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes an entry of this kind.
    pub fn remove(&self, name: &OsStr, kind: FileType) -> io::Result<()> {
        if kind == FileType::Directory { self.remove_folder(name) } else { self.remove_file(name) }
    }

    /// The names in it, with their kinds.
    pub fn entries(&self) -> io::Result<Vec<(OsString, FileType)>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            // Some file systems do not store the kind with the name.
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                known => known,
            };
            found.push((name.to_owned(), kind));
        }
        Ok(found)
    }

    /// What the system knows of the folder itself.
    pub fn metadata(&self) -> io::Result<fs::Metadata> {
        File::from(self.0.try_clone()?).metadata()
    }

    /// Sets the folder's permissions and owner.
    pub fn set(&self, mode: u32, owner: Option<&OsUser>) -> io::Result<()> {
        rustix::fs::fchmod(&self.0, Mode::from_raw_mode(mode))?;
        give(&self.0, owner)
    }

    /// The same folder, as a file.
    pub fn into_file(self) -> File {
        self.0.into()
    }

    /// Gives all that is in it, and then the folder itself, to this user. Links and other kinds are refused, and so is a
    /// file that has a name elsewhere.
    pub fn give_all(&self, owner: OsUser) -> io::Result<()> {
        for (name, kind) in self.entries()? {
            if kind == FileType::Directory {
                self.folder(&name)?.give_all(owner)?;
            } else {
                let file = self.read(&name)?;
                alone(&file.metadata()?)?;
                give(&file, Some(&owner))?;
            }
        }
        give(&self.0, Some(&owner))
    }
}

/// Refuses a file that has a second name, which may be that of a file of somebody else.
pub(crate) fn alone(meta: &fs::Metadata) -> io::Result<()> {
    if meta.nlink() == 1 { Ok(()) } else { Err(io::Error::other("a file has several names")) }
}

/// Makes a user the owner of an open file or folder; does nothing without one.
pub(crate) fn give(file: impl rustix::fd::AsFd, owner: Option<&OsUser>) -> io::Result<()> {
    let Some(owner) = owner else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    Ok(rustix::fs::fchown(file, Some(uid), Some(gid))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed() {
        let base = tempfile::tempdir().unwrap();
        let (outside, inside) = (base.path().join("outside"), base.path().join("inside"));
        fs::create_dir(&outside).unwrap();
        fs::create_dir(&inside).unwrap();
        fs::write(outside.join("file"), "text").unwrap();
        symlink(outside.join("file"), inside.join("file")).unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        symlink(&outside, base.path().join("link")).unwrap();
        assert!(OpenFolder::open(&base.path().join("link")).is_err());
        let folder = OpenFolder::open(&inside).unwrap();
        let file = OsStr::new("file");
        assert!(
            folder.append(file).is_err() && folder.read(file).is_err() && folder.create(file, None).is_err()
        );
        assert!(folder.folder(OsStr::new("folder")).is_err());
        assert!(folder.give_all(OsUser { uid: 65534, gid: 65534 }).is_err());
        for (name, kind) in folder.entries().unwrap() {
            folder.remove(&name, kind).unwrap();
        }
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "text");
        assert_eq!(fs::read_dir(&inside).unwrap().count(), 0);
    }

    #[test]
    fn pipe_does_not_block_a_reader() {
        let base = tempfile::tempdir().unwrap();
        let folder = OpenFolder::open(base.path()).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(&folder.0, "pipe", FileType::Fifo, mode, 0).unwrap();
        assert!(folder.read(OsStr::new("pipe")).is_err() && folder.append(OsStr::new("pipe")).is_err());
    }

    #[test]
    fn file_with_a_second_name_is_not_given() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("inside")).unwrap();
        fs::write(base.path().join("file"), "text").unwrap();
        fs::hard_link(base.path().join("file"), base.path().join("inside/file")).unwrap();
        let owner =
            OsUser { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
        assert!(OpenFolder::open(&base.path().join("inside")).unwrap().give_all(owner).is_err());
    }
}
