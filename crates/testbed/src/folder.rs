//! The folder of one server: private, marked, locked while its supervisor runs, and swept afterwards.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::TestbedError;
use crate::entries::OpenFolder;
use crate::os_user::OsUser;
use crate::process::{self, Identity};
use crate::spec::Spec;

/// The prefix of the folders' names.
pub(crate) const PREFIX: &str = "kurabe-up-";
const MARKER: &str = ".kurabe-testbed";
/// The name of the marker while it is being written.
const UNNAMED: &str = ".new-marker";
/// After this time, an unmarked folder belongs to a supervisor that was killed.
const UNMARKED_LIFE: Duration = Duration::from_secs(60);
/// The content of the marker. Only marked folders are ever removed.
const MARK: &str = "kurabe-testbed 1\nMade for a throwaway server; removed with it.\n";
const SERVER: &str = ".server.json";
/// The folder with the server's sockets and the file of its process.
pub(crate) const RUN: &str = "run";
/// The folder for temporary files.
pub(crate) const TMP: &str = "tmp";
/// Paths of Unix sockets have 108 bytes with the final zero; the longest file name is PostgreSQL's.
const LONGEST: usize = 107 - "/run/.s.PGSQL.65535".len();

/// A server's folder created by this process. Its marker is locked as long as this value exists. The system releases
/// the lock however the process ends, so that a sweep detects it.
///
/// The folder is this user's, also if the server has an OS user of its own: that one can enter it, and only owns folders in
/// it, so that it can put no link where this process, which may be root, opens a file.
pub(crate) struct Folder {
    path: PathBuf,
    dir: OpenFolder,
    _lock: File,
}

impl Folder {
    /// Creates a folder that only this user and the server's can enter.
    pub fn make(base: &Path, os_user: Option<&OsUser>) -> Result<Self, TestbedError> {
        let what = format!("creating a folder for the server in {}", base.display());
        let base = base.canonicalize().map_err(TestbedError::io(what.clone()))?;
        if let Some(open) = replaceable(&base) {
            let error = format!(
                "other accounts can rename what is in {}; set KURABE_TMP to a folder that they cannot write, or chmod +t it",
                open.display()
            );
            return Err(TestbedError::Io { what, error });
        }
        let private = PermissionsExt::from_mode(0o700);
        let made = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(&base);
        let path = made.map_err(TestbedError::io(what.clone()))?.keep();
        let marked = Self::mark(path.clone(), os_user).map_err(|error| {
            // If the disk is full, a folder without a marker would never be removed.
            let _ = fs::remove_dir_all(path);
            TestbedError::io(what)(error)
        })?;
        let length = marked.path.as_os_str().len();
        if length > LONGEST {
            let error = format!("its path has {length} bytes; Unix sockets allow {LONGEST}");
            let what = format!(
                "creating a folder for the server in {}; set KURABE_TMP to a shorter one",
                base.display()
            );
            marked.remove()?;
            return Err(TestbedError::Io { what, error });
        }
        Ok(marked)
    }

    /// Creates the marker. It is locked before it gets its name, so that no sweep sees it unlocked.
    fn mark(path: PathBuf, os_user: Option<&OsUser>) -> std::io::Result<Self> {
        let dir = OpenFolder::open(&path)?;
        let mut lock = dir.create(OsStr::new(UNNAMED), None)?;
        lock.try_lock()?;
        lock.write_all(MARK.as_bytes())?;
        dir.rename(OsStr::new(UNNAMED), OsStr::new(MARKER))?;
        for name in [TMP, RUN] {
            dir.create_folder(OsStr::new(name), os_user)?;
        }
        if let Some(os_user) = os_user {
            let uid = rustix::process::geteuid().as_raw();
            dir.set(0o710, Some(&OsUser { uid, gid: os_user.gid }))?;
        }
        Ok(Self { path, dir, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records the server's process, for a sweep after the supervisor was killed.
    pub fn note_server(&self, pid: u32) -> Result<(), TestbedError> {
        const UNFINISHED: &str = ".new-server";
        let what = format!("recording the server's process in {}", self.path.display());
        let Some(identity) = Identity::of(pid) else { return Ok(()) };
        let text = serde_json::to_vec(&identity).map_err(TestbedError::io(what.clone()))?;
        let unfinished = OsStr::new(UNFINISHED);
        replace(&self.dir, unfinished, &text, None)
            .and_then(|()| self.dir.rename(unfinished, OsStr::new(SERVER)))
            .map_err(TestbedError::io(what))
    }

    /// Removes the folder with its content.
    pub fn remove(self) -> Result<(), TestbedError> {
        remove_marked(&self.dir, &self.path)
            .map_err(TestbedError::io(format!("removing {}", self.path.display())))
    }
}

/// A folder above the new one whose entries every account can rename, if there is one.
fn replaceable(base: &Path) -> Option<&Path> {
    const STICKY: u32 = 0o1000;
    const OTHERS: u32 = 0o002;
    base.ancestors()
        .find(|folder| folder.symlink_metadata().is_ok_and(|meta| meta.mode() & (OTHERS | STICKY) == OTHERS))
}

/// Removes a folder, its marker last. If this fails or the process is killed, the next sweep removes the rest.
fn remove_marked(dir: &OpenFolder, path: &Path) -> std::io::Result<()> {
    remove_content(dir)?;
    dir.remove_file(OsStr::new(MARKER))?;
    fs::remove_dir(path)
}

/// Removes everything in a folder but its marker.
fn remove_content(dir: &OpenFolder) -> std::io::Result<()> {
    dir.entries()?
        .into_iter()
        .filter(|(name, _)| name != MARKER)
        .try_for_each(|(name, kind)| dir.remove(&name, kind))
}

/// The parent of the folders.
pub(crate) fn base(spec: &Spec) -> PathBuf {
    let set = std::env::var_os("KURABE_TMP").filter(|v| !v.is_empty()).map(PathBuf::from);
    spec.base.clone().or(set).unwrap_or_else(std::env::temp_dir)
}

/// Writes a new file that only its owner can read, in a folder of this user's.
pub(crate) fn write_private(path: &Path, bytes: &[u8], owner: Option<&OsUser>) -> Result<(), TestbedError> {
    let write = || {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(std::io::ErrorKind::InvalidInput)?;
        replace(&OpenFolder::open(folder)?, name, bytes, owner)
    };
    write().map_err(TestbedError::io(format!("writing {}", path.display())))
}

/// Writes a new file in the place of one that may be there.
fn replace(dir: &OpenFolder, name: &OsStr, bytes: &[u8], owner: Option<&OsUser>) -> std::io::Result<()> {
    let _ = dir.remove_file(name);
    dir.create(name, owner)?.write_all(bytes)
}

/// Removes the folders in `base` that killed supervisors left, with their servers if these still run, and returns
/// them. A folder must belong to this user, who alone can write in it, have the marker, and not be locked.
pub(crate) fn sweep(base: &Path) -> Vec<PathBuf> {
    let Ok(base) = base.canonicalize() else { return Vec::new() };
    let Some((open, entries)) =
        OpenFolder::open(&base).ok().and_then(|open| open.entries().ok().map(|entries| (open, entries)))
    else {
        return Vec::new();
    };
    let named = entries.into_iter().filter(|(name, _)| name.to_string_lossy().starts_with(PREFIX));
    named
        .filter_map(|(name, _)| {
            // A link is none.
            let dir = open.folder(&name).ok().filter(|dir| is_own(dir).unwrap_or(false))?;
            let path = base.join(name);
            let removed = remove_if_stale(&dir, &path).or_else(|_| remove_if_unmarked(&dir, &path));
            removed.unwrap_or(false).then_some(path)
        })
        .collect()
}

/// Whether a folder is this user's, and nobody else can write in it.
fn is_own(dir: &OpenFolder) -> std::io::Result<bool> {
    let meta = dir.metadata()?;
    Ok(meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0)
}

/// Removes a folder whose supervisor was killed before it could mark it: it is old, and contains at most an unfinished
/// marker.
fn remove_if_unmarked(dir: &OpenFolder, path: &Path) -> std::io::Result<bool> {
    if dir.metadata()?.modified()?.elapsed().unwrap_or_default() < UNMARKED_LIFE {
        return Ok(false);
    }
    if let Ok((_, text)) = read(dir, UNNAMED)
        && MARK.starts_with(&text)
    {
        dir.remove_file(OsStr::new(UNNAMED))?;
    }
    // Fails if the folder contains anything else.
    fs::remove_dir(path).map(|()| true)
}

fn remove_if_stale(dir: &OpenFolder, path: &Path) -> std::io::Result<bool> {
    let (lock, text) = read(dir, MARKER)?;
    if text != MARK {
        return Ok(false);
    }
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    if let Ok((_, text)) = read(dir, SERVER)
        && let Ok(server) = serde_json::from_str::<Identity>(&text)
        && server.lives_in(path)
    {
        process::kill_tree(server.pid);
    }
    remove_marked(dir, path)?;
    Ok(true)
}

/// Opens and reads a small plain file.
fn read(dir: &OpenFolder, name: &str) -> std::io::Result<(File, String)> {
    let mut file = dir.read(OsStr::new(name))?;
    let mut text = String::new();
    (&mut file).take(4096).read_to_string(&mut text)?;
    Ok((file, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_private_and_removed_with_its_content() {
        let base = tempfile::tempdir().unwrap();
        let folder = Folder::make(base.path(), None).unwrap();
        assert_eq!(folder.path().metadata().unwrap().mode() & 0o777, 0o700);
        fs::write(folder.path().join("data"), "x").unwrap();
        let path = folder.path().to_owned();
        folder.remove().unwrap();
        assert!(!path.exists());
    }

    /// Sweeps until at least this many folders are removed. A process started by another test inherits the locks
    /// until it executes its program.
    fn swept(base: &Path, wanted: usize) -> Vec<PathBuf> {
        let mut taken = sweep(base);
        for _ in 0..500 {
            if taken.len() >= wanted {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            taken.extend(sweep(base));
        }
        taken
    }

    #[test]
    fn clean_up_removes_only_abandoned_directories() {
        let base = tempfile::tempdir().unwrap();
        let kept = Folder::make(base.path(), None).unwrap();
        let left = Folder::make(base.path(), None).unwrap();
        let left_path = left.path().to_owned();
        // As if its supervisor had been killed: the lock is released, the folder remains.
        drop(left);
        let foreign = base.path().join("kurabe-up-foreign");
        fs::create_dir(&foreign).unwrap();
        let forged = base.path().join("kurabe-up-forged");
        fs::create_dir(&forged).unwrap();
        fs::write(forged.join(MARKER), "something else").unwrap();
        let link = base.path().join("kurabe-up-link");
        std::os::unix::fs::symlink(&foreign, &link).unwrap();

        assert_eq!(swept(base.path(), 1), [left_path.canonicalize().unwrap_or(left_path.clone())]);
        assert!(!left_path.exists());
        assert!(kept.path().exists() && foreign.exists() && forged.exists() && link.exists());
    }

    #[test]
    fn clean_up_leaves_folder_that_others_can_write() {
        let base = tempfile::tempdir().unwrap();
        let folder = Folder::make(base.path(), None).unwrap();
        let path = folder.path().to_owned();
        drop(folder);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o770)).unwrap();
        assert!(sweep(base.path()).is_empty() && path.join(MARKER).exists());
    }

    #[test]
    fn clean_up_does_not_follow_links() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "text").unwrap();
        let folder = Folder::make(base.path(), None).unwrap();
        let path = folder.path().to_owned();
        std::os::unix::fs::symlink(outside.path(), path.join("data")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("file"), path.join("tmp/file")).unwrap();
        drop(folder);
        assert_eq!(swept(base.path(), 1).len(), 1);
        assert!(!path.exists() && outside.path().join("file").exists());
    }

    #[test]
    fn folder_whose_entries_others_can_rename_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let inner = base.path().join("inner");
        fs::create_dir(&inner).unwrap();
        for (mode, refused) in [(0o777, true), (0o1777, false), (0o755, false)] {
            fs::set_permissions(base.path(), PermissionsExt::from_mode(mode)).unwrap();
            let error = Folder::make(&inner, None).err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(error.contains("other accounts can rename"), refused, "{mode:o}: {error}");
        }
    }

    #[test]
    fn clean_up_continues_an_interrupted_removal() {
        let base = tempfile::tempdir().unwrap();
        let folder = Folder::make(base.path(), None).unwrap();
        let path = folder.path().to_owned();
        fs::create_dir(path.join("data")).unwrap();
        fs::write(path.join("data/file"), "x").unwrap();
        // As if the supervisor had been killed between the removal of the content and that of the marker.
        remove_content(&OpenFolder::open(&path).unwrap()).unwrap();
        drop(folder);
        assert!(!path.join("data").exists());
        assert_eq!(swept(base.path(), 1).len(), 1);
        assert!(!path.exists());
    }

    #[test]
    fn clean_up_kills_only_abandoned_server() {
        let base = tempfile::tempdir().unwrap();
        let folder = Folder::make(base.path(), None).unwrap();
        let sleep =
            |at: &Path| std::process::Command::new("sleep").arg("60").current_dir(at).spawn().unwrap();
        let mut server = sleep(folder.path());
        folder.note_server(server.id()).unwrap();
        let elsewhere = Folder::make(base.path(), None).unwrap();
        // A process with the recorded number that is not in the folder: the number was reused.
        let mut stranger = sleep(Path::new("/"));
        elsewhere.note_server(stranger.id()).unwrap();
        drop((folder, elsewhere));

        assert_eq!(swept(base.path(), 2).len(), 2);
        assert!(!server.wait().unwrap().success());
        assert!(stranger.try_wait().unwrap().is_none());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn clean_up_removes_old_unmarked_empty_directory_only() {
        let base = tempfile::tempdir().unwrap();
        let make = |name: &str, file: &str, text: &str, old: bool| {
            let folder = base.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&folder).unwrap();
            if !file.is_empty() {
                fs::write(folder.join(file), text).unwrap();
            }
            if old {
                let then = std::time::SystemTime::now() - 2 * UNMARKED_LIFE;
                File::open(&folder).unwrap().set_modified(then).unwrap();
            }
            folder
        };
        let gone = [make("empty", "", "", true), make("begun", UNNAMED, &MARK[..9], true)];
        let kept = [
            make("new", "", "", false),
            make("full", "data", "x", true),
            make("other", UNNAMED, "something else", true),
        ];
        assert_eq!(sweep(base.path()).len(), gone.len());
        assert!(gone.iter().all(|folder| !folder.exists()));
        assert!(kept.iter().all(|folder| folder.exists()));
    }

    #[test]
    fn too_long_socket_path_is_reported() {
        let base = tempfile::tempdir().unwrap();
        let deep = base.path().join("x".repeat(100));
        fs::create_dir(&deep).unwrap();
        let error = Folder::make(&deep, None).err().unwrap().to_string();
        assert!(error.contains("KURABE_TMP"), "{error}");
        assert_eq!(fs::read_dir(&deep).unwrap().count(), 0);
    }
}
