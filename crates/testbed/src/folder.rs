//! The folder of one server: private, marked, locked while its supervisor runs, and swept afterwards.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::TestbedError;
use crate::os_user::{OsUser, give};
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
/// Paths of Unix sockets have 108 bytes with the final zero; the longest file name is PostgreSQL's.
const LONGEST: usize = 107 - "/.s.PGSQL.65535".len();

/// A server's folder created by this process. Its marker is locked as long as this value exists. The system releases
/// the lock however the process ends, so that a sweep detects it.
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates a folder that only the server's user can enter.
    pub fn make(base: &Path, os_user: Option<&OsUser>) -> Result<Self, TestbedError> {
        let what = format!("creating a folder for the server in {}", base.display());
        let base = base.canonicalize().map_err(TestbedError::io(what.clone()))?;
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
        let mut lock =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.join(UNNAMED))?;
        lock.try_lock()?;
        lock.write_all(MARK.as_bytes())?;
        fs::rename(path.join(UNNAMED), path.join(MARKER))?;
        fs::create_dir(path.join("tmp"))?;
        give(&path.join("tmp"), os_user)?;
        give(&path, os_user)?;
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records the server's process, for a sweep after the supervisor was killed.
    pub fn note_server(&self, pid: u32) -> Result<(), TestbedError> {
        let what = format!("recording the server's process in {}", self.path.display());
        let Some(identity) = Identity::of(pid) else { return Ok(()) };
        let text = serde_json::to_vec(&identity).map_err(TestbedError::io(what.clone()))?;
        let unnamed = self.path.join(".new-server");
        write_private(&unnamed, &text, None)?;
        fs::rename(unnamed, self.path.join(SERVER)).map_err(TestbedError::io(what))
    }

    /// Removes the folder with its content.
    pub fn remove(self) -> Result<(), TestbedError> {
        remove_marked(&self.path).map_err(TestbedError::io(format!("removing {}", self.path.display())))
    }
}

/// Removes a folder, its marker last. If this fails or the process is killed, the next sweep removes the rest.
fn remove_marked(folder: &Path) -> std::io::Result<()> {
    remove_content(folder)?;
    fs::remove_file(folder.join(MARKER))?;
    fs::remove_dir(folder)
}

/// Removes everything in a folder but its marker.
fn remove_content(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != MARKER {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The parent of the folders.
pub(crate) fn base(spec: &Spec) -> PathBuf {
    let set = std::env::var_os("KURABE_TMP").filter(|v| !v.is_empty()).map(PathBuf::from);
    spec.base.clone().or(set).unwrap_or_else(std::env::temp_dir)
}

/// Writes a new file that only its owner can read.
pub(crate) fn write_private(path: &Path, bytes: &[u8], owner: Option<&OsUser>) -> Result<(), TestbedError> {
    let write = || {
        let _ = fs::remove_file(path);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        give(path, owner)
    };
    write().map_err(TestbedError::io(format!("writing {}", path.display())))
}

/// Removes the folders in `base` that killed supervisors left, with their servers if these still run, and returns
/// them. A folder must have the marker, belong to this user, and not be locked.
pub(crate) fn sweep(base: &Path) -> Vec<PathBuf> {
    let (Ok(base), Ok(entries)) = (base.canonicalize(), fs::read_dir(base)) else { return Vec::new() };
    let named = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(PREFIX);
    let real = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries
        .flatten()
        .filter(|entry| named(entry) && real(entry))
        .map(|entry| base.join(entry.file_name()))
        .filter(|path| remove_if_stale(path).or_else(|_| remove_if_unmarked(path)).unwrap_or(false))
        .collect()
}

/// Removes a folder whose supervisor was killed before it could mark it: it is this user's, old, and contains at most
/// an unfinished marker.
fn remove_if_unmarked(folder: &Path) -> std::io::Result<bool> {
    let meta = folder.symlink_metadata()?;
    let age = meta.modified()?.elapsed().unwrap_or_default();
    if meta.uid() != rustix::process::geteuid().as_raw() || age < UNMARKED_LIFE {
        return Ok(false);
    }
    if let Ok(Some((_, text))) = read_own(&folder.join(UNNAMED))
        && MARK.starts_with(&text)
    {
        fs::remove_file(folder.join(UNNAMED))?;
    }
    // Fails if the folder contains anything else.
    fs::remove_dir(folder).map(|()| true)
}

fn remove_if_stale(folder: &Path) -> std::io::Result<bool> {
    let Some((lock, text)) = read_own(&folder.join(MARKER))? else { return Ok(false) };
    if text != MARK {
        return Ok(false);
    }
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    if let Ok(Some((_, text))) = read_own(&folder.join(SERVER))
        && let Ok(server) = serde_json::from_str::<Identity>(&text)
        && server.lives_in(folder)
    {
        process::kill_tree(server.pid);
    }
    remove_marked(folder)?;
    Ok(true)
}

/// Opens and reads a plain file of this user; `None` for other files.
fn read_own(path: &Path) -> std::io::Result<Option<(File, String)>> {
    let meta = path.symlink_metadata()?;
    if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let mut text = String::new();
    (&mut file).take(4096).read_to_string(&mut text)?;
    Ok(Some((file, text)))
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
    fn clean_up_continues_an_interrupted_removal() {
        let base = tempfile::tempdir().unwrap();
        let folder = Folder::make(base.path(), None).unwrap();
        let path = folder.path().to_owned();
        fs::create_dir(path.join("data")).unwrap();
        fs::write(path.join("data/file"), "x").unwrap();
        // As if the supervisor had been killed between the removal of the content and that of the marker.
        remove_content(&path).unwrap();
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
