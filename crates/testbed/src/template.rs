//! A cache of empty data folders: creating one takes several times as long as copying it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, SeekFrom, seek};
use rustix::io::Errno;

use crate::engine::Instance;
use crate::entries::{self, OpenFolder};
use crate::os_user::OsUser;
use crate::programs;

/// What programs put into the folders. Those of another number are not used: before 2, servers asked for no password, and
/// before 3, PostgreSQL's role was a superuser.
const FORMAT: u32 = 3;

const UNFINISHED: &str = ".unfinished-";

/// The path of the cached data folder of this program for this user, if there can be one.
fn place(engine: &str, instance: &Instance) -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let Instance { installed, .. } = instance;
    // Another build of the same version rarely has the same size.
    let bytes = installed.program.metadata().ok()?.len();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    let version: String = installed.version.chars().map(plain).collect();
    let small = if instance.spec.small_files { "-small" } else { "" };
    let name = format!("{engine}-{version}-{bytes}-{user}{small}-{FORMAT}");
    Some(programs::cache()?.join("templates").join(name))
}

/// Copies a cached folder to the server's. Returns false if there is none; then the server's does not exist either.
pub(crate) fn fetch(engine: &str, instance: &Instance) -> bool {
    let Some(place) = place(engine, instance).filter(|place| is_ours(place)) else { return false };
    // A sparse file is written more slowly than one that has its blocks, so that only tests have some.
    let holes = if instance.spec.small_files { Holes::Kept } else { Holes::Filled };
    let copied = copy_folder(&place, &instance.data(), instance.os_user.as_ref(), holes);
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
        let holes = if instance.spec.small_files { Holes::Made } else { Holes::Filled };
        copy_folder(&instance.data(), &whole, None, holes)?;
        fs::rename(whole, &place)
    };
    let _ = save();
}

/// Copies the data folder of an instance that does not run, for `owner`.
pub(crate) fn copy_of_data(
    from: &Path,
    to: &Path,
    instance: &Instance,
    owner: Option<&OsUser>,
) -> io::Result<()> {
    let holes = if instance.spec.small_files { Holes::Kept } else { Holes::Filled };
    copy_folder(from, to, owner, holes)
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
    let own = rustix::process::geteuid().as_raw();
    place.symlink_metadata().is_ok_and(|m| m.is_dir() && m.uid() == own && m.mode() & 0o022 == 0)
}

/// What becomes of the holes in sparse files, and of blocks of zeros.
#[derive(Clone, Copy)]
enum Holes {
    /// There are none: all blocks exist.
    Filled,
    /// Holes are holes of the copy.
    Kept,
    /// Blocks of zeros become holes too.
    Made,
}

/// Copies the content of a folder with its permissions, for `owner`. Data folders contain no links; one that does is not
/// copied, and no link is followed.
fn copy(from: &OpenFolder, to: &OpenFolder, owner: Option<&OsUser>, holes: Holes) -> io::Result<()> {
    for (name, kind) in from.entries()? {
        if kind == FileType::Directory {
            copy(&from.folder(&name)?, &to.create_folder(&name, None)?, owner, holes)?;
            continue;
        }
        let (from, to) = (from.read(&name)?, to.create(&name, None)?);
        let meta = from.metadata()?;
        entries::alone(&meta)?;
        copy_file(from, &to, holes)?;
        to.set_permissions(PermissionsExt::from_mode(meta.mode() & PERMISSIONS))?;
        entries::give(&to, owner)?;
    }
    to.set(from.metadata()?.mode() & PERMISSIONS, owner)
}

/// Creates a folder as a copy of another one.
fn copy_folder(from: &Path, to: &Path, owner: Option<&OsUser>, holes: Holes) -> io::Result<()> {
    let (parent, name) = to.parent().zip(to.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    let made = OpenFolder::open(parent)?.create_folder(name, None)?;
    copy(&OpenFolder::open(from)?, &made, owner, holes)
}

/// The permissions of users. A file does not run as its owner.
const PERMISSIONS: u32 = 0o777;

fn copy_file(mut from: File, mut to: &File, holes: Holes) -> io::Result<()> {
    if matches!(holes, Holes::Filled) {
        return io::copy(&mut from, &mut to).map(drop);
    }
    let length = from.metadata()?.len();
    to.set_len(length)?;
    let mut at = 0;
    while at < length {
        let start = match seek(&from, SeekFrom::Data(at)) {
            // The rest is a hole.
            Err(Errno::NXIO) => break,
            start => start?,
        };
        let end = seek(&from, SeekFrom::Hole(start))?;
        from.seek(io::SeekFrom::Start(start))?;
        to.seek(io::SeekFrom::Start(start))?;
        let part = (&mut from).take(end - start);
        if matches!(holes, Holes::Made) {
            write_without_zeros(part, to)?;
        } else {
            copy_part(part, to)?;
        }
        at = end;
    }
    Ok(())
}

fn copy_part(mut part: impl Read, mut to: &File) -> io::Result<()> {
    io::copy(&mut part, &mut to).map(drop)
}

/// Writes the blocks that are not only zeros, and moves over the others.
fn write_without_zeros(mut part: impl Read, mut to: &File) -> io::Result<()> {
    const BLOCK: usize = 4_096;
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        block.clear();
        (&mut part).take(BLOCK as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok(());
        }
        if block == [0; BLOCK] {
            to.seek(io::SeekFrom::Current(BLOCK as i64))?;
        } else {
            to.write_all(&block)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_with_holes_has_the_same_content_and_fewer_blocks() {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        let content = [vec![1; 5_000], vec![0; 500_000], vec![2; 100], vec![0; 300_000]].concat();
        fs::create_dir(path("full")).unwrap();
        fs::write(path("full/file"), &content).unwrap();
        copy_folder(&path("full"), &path("made"), None, Holes::Made).unwrap();
        copy_folder(&path("made"), &path("kept"), None, Holes::Kept).unwrap();
        copy_folder(&path("kept"), &path("filled"), None, Holes::Filled).unwrap();
        for name in ["made", "kept", "filled"] {
            assert_eq!(fs::read(path(name).join("file")).unwrap(), content, "{name}");
        }
        let blocks = |name: &str| path(name).join("file").metadata().unwrap().blocks();
        assert!(blocks("made") * 10 < blocks("full"), "{} of {}", blocks("made"), blocks("full"));
        assert!(blocks("kept") * 10 < blocks("full"), "{} of {}", blocks("kept"), blocks("full"));
    }

    #[test]
    fn a_copy_has_the_same_content_and_permissions() {
        let base = tempfile::tempdir().unwrap();
        let (from, to) = (base.path().join("from"), base.path().join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::write(from.join("inner/file"), "text").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        fs::set_permissions(from.join("inner"), PermissionsExt::from_mode(0o700)).unwrap();
        fs::set_permissions(from.join("inner/file"), PermissionsExt::from_mode(0o640)).unwrap();
        copy_folder(&from, &to, None, Holes::Filled).unwrap();
        assert_eq!(fs::read_to_string(to.join("inner/file")).unwrap(), "text");
        assert_eq!((mode(&to.join("inner")), mode(&to.join("inner/file"))), (0o700, 0o640));
    }

    #[test]
    fn a_folder_with_a_link_is_not_copied() {
        let base = tempfile::tempdir().unwrap();
        let from = base.path().join("from");
        fs::create_dir(&from).unwrap();
        std::os::unix::fs::symlink("/etc", from.join("link")).unwrap();
        assert!(copy_folder(&from, &base.path().join("to"), None, Holes::Kept).is_err());
    }
}
