//! A cache of empty data folders: creating one takes several times as long as copying it.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::engine::Instance;
use crate::os_user::{OsUser, give};
use crate::programs;

const UNFINISHED: &str = ".unfinished-";

/// The path of the cached data folder of this program for this user, if there can be one.
fn place(engine: &str, instance: &Instance) -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let Instance { installed, .. } = instance;
    // Another build of the same version rarely has the same size.
    let bytes = installed.program.metadata().ok()?.len();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    let version: String = installed.version.chars().map(plain).collect();
    Some(programs::cache()?.join("templates").join(format!("{engine}-{version}-{bytes}-{user}")))
}

/// Copies a cached folder to the server's. Returns false if there is none; then the server's does not exist either.
pub(crate) fn fetch(engine: &str, instance: &Instance) -> bool {
    let Some(place) = place(engine, instance).filter(|place| is_ours(place)) else { return false };
    let copied = copy(&place, &instance.data(), instance.os_user.as_ref());
    if copied.is_err() {
        // A partial copy is not usable.
        let _ = fs::remove_dir_all(instance.data());
    }
    copied.is_ok()
}

/// Caches a copy of the server's folder before its first start. Errors only cost time.
pub(crate) fn keep(engine: &str, instance: &Instance) {
    let Some(place) = place(engine, instance).filter(|place| !place.exists()) else { return };
    let Some(parent) = place.parent() else { return };
    // Under another name first, so that a partial copy is never used.
    let save = || -> io::Result<()> {
        fs::create_dir_all(parent)?;
        sweep(parent);
        let private = PermissionsExt::from_mode(0o700);
        let unfinished =
            tempfile::Builder::new().prefix(UNFINISHED).permissions(private).tempdir_in(parent)?;
        let whole = unfinished.path().join("data");
        copy(&instance.data(), &whole, None)?;
        fs::rename(whole, &place)
    };
    let _ = save();
}

/// Removes old partial copies of killed supervisors.
fn sweep(parent: &Path) {
    let old =
        |meta: fs::Metadata| meta.modified().is_ok_and(|t| t.elapsed().is_ok_and(|age| age.as_secs() > 3600));
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if unfinished && entry.metadata().is_ok_and(old) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_ours(place: &Path) -> bool {
    place.symlink_metadata().is_ok_and(|m| m.is_dir() && m.uid() == rustix::process::geteuid().as_raw())
}

/// Copies files and folders with their permissions, for `owner`. New data folders contain no links; others are not
/// copied.
fn copy(from: &Path, to: &Path, owner: Option<&OsUser>) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target, owner)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
            give(&target, owner)?;
        } else {
            return Err(io::ErrorKind::Unsupported.into());
        }
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    give(to, owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_content_and_permissions() {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("from"), base.path().join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::write(from.join("inner/file"), "text").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        fs::set_permissions(from.join("inner"), PermissionsExt::from_mode(0o700)).unwrap();
        fs::set_permissions(from.join("inner/file"), PermissionsExt::from_mode(0o640)).unwrap();
        copy(&from, &to, None).unwrap();
        assert_eq!(fs::read_to_string(to.join("inner/file")).unwrap(), "text");
        assert_eq!((mode(&to.join("inner")), mode(&to.join("inner/file"))), (0o700, 0o640));
    }

    #[test]
    fn a_folder_with_a_link_is_not_copied() {
        let base = tempfile::tempdir().unwrap();
        let from = base.path().join("from");
        fs::create_dir(&from).unwrap();
        std::os::unix::fs::symlink("/etc", from.join("link")).unwrap();
        assert!(copy(&from, &base.path().join("to"), None).is_err());
    }
}
