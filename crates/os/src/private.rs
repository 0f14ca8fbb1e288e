//! Files and folders that only their owner can read, whatever the umask allows.
//!
//! What is written follows no link at the end of its path: a link that another account put there leads to another file.

use rustix::fs::OFlags;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The permissions of a file: its owner reads and writes it.
const FILE: u32 = 0o600;
/// The permissions of a folder: its owner lists and uses it.
const FOLDER: u32 = 0o700;

fn options() -> OpenOptions {
    let mut options = File::options();
    options.mode(FILE).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Creates a file, which must not exist.
pub fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
    options().write(true).create_new(true).open(path)
}

/// Creates a file to append to, which must not exist.
pub fn append_new(path: impl AsRef<Path>) -> io::Result<File> {
    options().append(true).create_new(true).open(path)
}

/// Opens a file to append to it, or creates it.
pub fn append(path: impl AsRef<Path>) -> io::Result<File> {
    options().append(true).create(true).open(path)
}

/// Opens a file that exists, to read it and to append to it.
pub fn reopen(path: impl AsRef<Path>) -> io::Result<File> {
    options().read(true).append(true).open(path)
}

/// Writes a file, which must not exist.
pub fn write_new(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    create_new(path)?.write_all(bytes)
}

/// Creates a folder, which must not exist.
pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER).create(path)
}

/// Creates a folder and those above it that are missing.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER).recursive(true).create(path)
}

/// Whether a path leads to something else than a file: a pipe, a socket or a device. It cannot be replaced.
pub fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|of| !of.is_file())
}

/// Opens a pipe or a device to write to it: one of the system's folder of devices, of this account or of root.
///
/// # Errors
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if it is of another account, which would get what is written.
pub fn open_special(path: &Path) -> io::Result<File> {
    let of_system = path.starts_with("/dev") || path.starts_with("/proc/self/fd");
    let owner = fs::metadata(path)?.uid();
    if !of_system && ![0, rustix::process::geteuid().as_raw()].contains(&owner) {
        let what = "it is of another account, which would read what is written there";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    File::options().write(true).open(path)
}

/// Whether a file is a database of SQLite, or is open in this process, as the file of an embedded database is: it would be lost if
/// something else were written there.
pub fn is_in_use(path: &Path) -> bool {
    const SQLITE: &[u8; 16] = b"SQLite format 3\0";
    let Some(this) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else { return false };
    let is_this = |of: fs::Metadata| (of.dev(), of.ino()) == (this.dev(), this.ino());
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let is_open = open.filter_map(|one| fs::metadata(one.path()).ok()).any(is_this);
    let begins = || {
        let mut begin = [0; SQLITE.len()];
        File::open(path)?.read_exact(&mut begin)?;
        Ok::<_, io::Error>(begin == *SQLITE)
    };
    is_open || begins().unwrap_or(false)
}

/// Whether every account of this machine can read a file, or list a folder: its permissions say so, and those of each folder above it
/// let them pass.
pub fn is_open_to_all(path: &Path) -> bool {
    let allows = |path: &Path, bits: u32| fs::metadata(path).is_ok_and(|of| of.mode() & bits == bits);
    let Ok(path) = fs::canonicalize(path) else { return false };
    allows(&path, 0o004) && path.ancestors().skip(1).all(|folder| allows(folder, 0o001))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn databases_and_open_files_are_in_use_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write_new(at("report"), b"SQLite format 3, described at length").unwrap();
        write_new(at("database"), b"SQLite format 3\0 and more").unwrap();
        symlink(at("database"), at("link")).unwrap();
        let open = create_new(at("open")).unwrap();
        let found = ["report", "database", "link", "open", "absent", "."].map(|name| is_in_use(&at(name)));
        assert_eq!(found, [false, true, true, true, false, false]);
        drop(open);
        assert!(!is_in_use(&at("open")));
    }

    #[test]
    fn what_is_made_is_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        create_new(at("a")).unwrap();
        append_new(at("b")).unwrap();
        append(at("c")).unwrap();
        write_new(at("d"), b"x").unwrap();
        create_dir(at("e")).unwrap();
        create_dir_all(at("f/g")).unwrap();
        for (name, expected) in [
            ("a", 0o600),
            ("b", 0o600),
            ("c", 0o600),
            ("d", 0o600),
            ("e", 0o700),
            ("f", 0o700),
            ("f/g", 0o700),
        ] {
            assert_eq!(mode(&at(name)), expected, "{name}");
        }
    }

    #[test]
    fn link_at_the_end_of_a_path_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        symlink(&target, &link).unwrap();
        for exists in [false, true] {
            if exists {
                fs::write(&target, "theirs").unwrap();
            }
            assert!(create_new(&link).is_err());
            assert!(append_new(&link).is_err());
            assert!(append(&link).is_err());
            assert!(reopen(&link).is_err());
            assert!(write_new(&link, b"ours").is_err());
        }
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
    }

    #[test]
    fn pipe_of_another_account_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if !made.is_ok_and(|made| made.success()) || !rustix::process::geteuid().is_root() {
            return;
        }
        assert!(
            is_special(&pipe)
                && is_special(Path::new("/dev/null"))
                && !is_special(&folder.path().join("none"))
        );
        // A pipe that is also open for reading does not wait for a reader.
        let _reader = File::options().read(true).write(true).open(&pipe).unwrap();
        open_special(&pipe).unwrap();
        std::os::unix::fs::chown(&pipe, Some(54_321), None).unwrap();
        assert_eq!(open_special(&pipe).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        open_special(Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn file_is_open_to_all_only_if_the_folders_above_it_are() {
        let folder = tempfile::tempdir().unwrap();
        let chmod = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        chmod(&file, 0o644);
        chmod(folder.path(), 0o711);
        assert!(is_open_to_all(&file));
        chmod(&file, 0o640);
        assert!(!is_open_to_all(&file));
        chmod(&file, 0o644);
        chmod(folder.path(), 0o700);
        assert!(!is_open_to_all(&file));
        assert!(!is_open_to_all(&folder.path().join("none")));
    }
}
