//! Files and folders that only their owner can read, whatever the umask allows.
//!
//! What is written follows no link at the end of its path: a link that another account put there leads to another file.

use rustix::fs::OFlags;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
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
